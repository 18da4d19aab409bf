/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Clients of other releases: the version that both ends speak, and requests that have other
 * members, or are of operations, that this release does not have (abi_ops.h: Versions).
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "abi_release.h"
#include "ipc_msg.h"
#include "ipc_server_impl.h"

static bool
is_greeting(const struct ipc_request *h, const struct hca_ctl_hello *hello)
{
	return h->op == HCA_CTL_HELLO && h->len >= sizeof(*hello) && hello->magic == IPC_MAGIC;
}

bool
ipc_agree(const struct ipc_session *s, struct ipc_request *h, void *body)
{
	struct hca_ctl_hello *hello = body;
	int common;

	if (s->greeted || h->version == HCA_CTL_VERSION || !is_greeting(h, hello))
		return true;
	common = hca_ctl_common(h->version, hello->offer.older, HCA_CTL_VERSION, HCA_CTL_OLDER);
	if (common >= 0) {
		h->version = (uint16_t)common;
		h->len = sizeof(*hello);	    /* members of all versions */
		hello->offer.minor = HCA_CTL_MINOR; /* it was of the version before */
		return true;
	}
	ipc_fail(-EPROTONOSUPPORT,
		 "the daemon speaks version %u of the control channel, this program's libsofthca "
		 "version %u: upgrade %s",
		 HCA_CTL_VERSION, h->version,
		 h->version < HCA_CTL_VERSION ? "libsofthca" : "the daemon, and restart it");
	return false;
}

static bool
pages_formed(const struct hca_ctl_pages *r, uint32_t len)
{
	return len >= offsetof(struct hca_ctl_pages, page) && r->count <= HCA_CTL_PAGES_MAX &&
	       len == offsetof(struct hca_ctl_pages, page) + r->count * sizeof(r->page[0]);
}

bool
ipc_well_formed(uint32_t op, const void *body, uint32_t len, unsigned int num_fds)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);

	if (shape == NULL || num_fds != shape->fds_in)
		return false;
	return op == HCA_CTL_PAGES ? pages_formed(body, len) : len == hca_ctl_sizes(op, 0).request;
}

static enum ipc_form
form_of_later(uint32_t op, void *body, uint32_t len, unsigned int num_fds)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);

	if (shape == NULL) {
		ipc_fail(-EOPNOTSUPP,
			 "this daemon (%s, version %u.%u of the control channel) has no operation "
			 "%u: upgrade it, and restart it",
			 HCA_RELEASE, HCA_CTL_VERSION, HCA_CTL_MINOR, op);
		return IPC_FORM_UNKNOWN;
	}
	if (num_fds != shape->fds_in)
		return IPC_FORM_WRONG;
	if (op == HCA_CTL_PAGES || op == HCA_CTL_HELLO)
		return ipc_well_formed(op, body, len, num_fds) ? IPC_FORM_KNOWN : IPC_FORM_WRONG;
	if (ipc_fit(body, len, shape->request))
		return IPC_FORM_KNOWN;
	ipc_fail(-EOPNOTSUPP,
		 "this daemon (%s, version %u.%u of the control channel) knows less of %s than the "
		 "program's libsofthca: upgrade it, and restart it",
		 HCA_RELEASE, HCA_CTL_VERSION, HCA_CTL_MINOR, shape->name);
	return IPC_FORM_UNKNOWN;
}

enum ipc_form
ipc_form(const struct ipc_session *s, uint32_t op, void *body, uint32_t len, unsigned int num_fds)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);

	if (s->minor != 0)
		return form_of_later(op, body, len, num_fds);
	if (shape == NULL || shape->since > 0 || !ipc_well_formed(op, body, len, num_fds))
		return IPC_FORM_WRONG;
	if (op != HCA_CTL_PAGES)
		(void)ipc_fit(body, len, shape->request);
	return IPC_FORM_KNOWN;
}

void
ipc_tell_version(struct ipc_session *s)
{
	const struct ipc_server_config *c = &s->server->config;
	uint64_t bit = UINT64_C(1) << (s->minor < 63 ? s->minor : 63);

	if (s->minor == HCA_CTL_MINOR || c->differs == NULL ||
	    (__atomic_fetch_or(&s->server->told, bit, __ATOMIC_RELAXED) & bit) != 0)
		return;
	ipc_fail(-EOPNOTSUPP,
		 "its libsofthca is %s than this daemon (version %u.%u of the control channel, "
		 "here %u.%u); said once for each version",
		 s->minor < HCA_CTL_MINOR ? "older" : "newer", HCA_CTL_VERSION, s->minor,
		 HCA_CTL_VERSION, HCA_CTL_MINOR);
	c->differs(s->pid, s->uid, ipc_reason());
}

void
ipc_tell_unknown(struct ipc_session *s)
{
	const struct ipc_server_config *c = &s->server->config;

	ipc_count(s->server, IPC_COUNTER_refused_operation);
	if (c->differs != NULL && !s->told)
		c->differs(s->pid, s->uid, ipc_reason());
	s->told = true;
}
