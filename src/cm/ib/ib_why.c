/* SPDX-License-Identifier: BSD-3-Clause */

/* Refusals of operations in words: the value, the rule, and what the program can do. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "abi_gid_text.h"
#include "ib_impl.h"

/* The reason of the thread's last refused operation */
static _Thread_local char why_text[256];

static const char *
why_state(uint32_t state)
{
	static const char *const name[] = {
#define X(NAME) [HCA_CTL_CM_##NAME] = #NAME,
		HCA_CTL_CM_STATE_LIST(X)
#undef X
	};

	return state < sizeof(name) / sizeof(name[0]) ? name[state] : "unknown";
}

int
ib_op_fail(struct ib_op *op, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why_text, sizeof(why_text), format, args);
	va_end(args);
	op->why = why_text;
	return err;
}

int
ib_op_state(struct ib_op *op, const struct ib_id *id, const char *rule)
{
	return ib_op_fail(op, -EINVAL, "id %u is in state %s: %s", id->number, why_state(id->state),
			  rule);
}

int
ib_op_private(struct ib_op *op, uint32_t bytes, uint32_t max)
{
	return bytes <= max ? 0
			    : ib_op_fail(op, -EINVAL,
					 "%u bytes of private data: this message has at most %u",
					 bytes, max);
}

int
ib_op_family(struct ib_op *op, const struct hca_ctl_cm_addr *addr)
{
	return ib_op_fail(op, -EAFNOSUPPORT,
			  "address of family %u: expected an IPv4 or IPv6 address, or a GID",
			  addr->family);
}

int
ib_op_address(struct ib_op *op, int err, const struct hca_ctl_cm_addr *addr, const char *rule)
{
	char ip[INET6_ADDRSTRLEN];

	return ib_op_fail(op, err, "%s %s", hca_gid_text(addr->gid, ip, sizeof(ip)), rule);
}
