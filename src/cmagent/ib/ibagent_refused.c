/* SPDX-License-Identifier: BSD-3-Clause */

/* Refused requests of programs, for operators: their number, and the last reason. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi_gid_text.h"
#include "ibagent_impl.h"

static const struct {
	const char *name;
	int err;
} kinds[] = {
#define X(name, number, text) {#name, number},
	IBAGENT_REFUSAL_LIST(X)
#undef X
};

static void
refused_note(struct ibagent *a, enum ibagent_refusal_kind kind, uint32_t owner, const char *text)
{
	struct ibagent_refusal *r = &a->refusal[kind];

	r->count++;
	r->owner = owner;
	r->since = ibagent_now(a);
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static void
refused_address(char *text, size_t size, const struct hca_ctl_cm_addr *addr)
{
	char ip[INET6_ADDRSTRLEN];
	bool six = strchr(hca_gid_text(addr->gid, ip, sizeof(ip)), ':') != NULL;

	snprintf(text, size, "%s%s%s:%u", six ? "[" : "", ip, six ? "]" : "", addr->port);
}

void
ibagent_refused(struct ibagent *a, uint32_t owner, enum hca_ctl_op op, const void *request, int err,
		const char *why)
{
	bool ports = strcmp(why, IBCM_WHY_PORTS) == 0;
	char text[64];

	for (uint32_t i = 0; i < IBAGENT_REFUSALS; i++) {
		if (kinds[i].err != err || (i == IBAGENT_REFUSED_ports) != ports)
			continue;
		if (op == HCA_CTL_CM_BIND)
			refused_address(text, sizeof(text),
					&((const struct hca_ctl_cm_bind *)request)->addr);
		refused_note(a, (enum ibagent_refusal_kind)i, owner,
			     op == HCA_CTL_CM_BIND && !ports ? text : why);
	}
}

void
ibagent_refused_way(struct ibagent *a, const uint8_t dst[16], int err)
{
	char ip[INET6_ADDRSTRLEN], text[96];

	snprintf(text, sizeof(text), "%s (%s)", hca_gid_text(dst, ip, sizeof(ip)),
		 err == -EHOSTUNREACH  ? "its next hop does not answer"
		 : err == -ENETUNREACH ? "there is no route to it"
				       : "no address of this HCA can be the source");
	refused_note(a, IBAGENT_REFUSED_unreachable, 0, text);
}

const char *
ibagent_refusal(struct ibagent *agent, uint32_t i, struct ibagent_refusal *out)
{
	uint64_t now = ibagent_now(agent);

	if (i >= IBAGENT_REFUSALS)
		return NULL;
	pthread_mutex_lock(&agent->lock);
	*out = agent->refusal[i];
	pthread_mutex_unlock(&agent->lock);
	out->since = now > out->since ? now - out->since : 0;
	return kinds[i].name;
}
