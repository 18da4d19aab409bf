/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder's memory through a memory window of type 2. */

#include <errno.h>
#include <string.h>

#include "ep.h"

static bool
has_window(const struct ep *ep)
{
	return (ep->test.flags & EP_WINDOW) != 0 && !ep->test.requester;
}

/* The program chooses the key for the bind. */
int
ep_window_open(struct ep *ep)
{
	if (!has_window(ep))
		return 0;
	ep->window = ibv_alloc_mw(ep->pd, IBV_MW_TYPE_2);
	if (ep->window == NULL)
		return ep_fail(ep, -errno, "alloc_mw: %s", strerror(errno));
	ep->test.rkey = ibv_inc_rkey(ep->window->rkey);
	return 0;
}

static int
wait_bound(struct ep *ep)
{
	uint64_t end = ep_now() + EP_LATE_MS * 1000000ull;
	unsigned int idle = 0;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(ep->cq, 1, &wc)) == 0) {
		ep_idle(&idle);
		if (ep_now() > end)
			return ep_fail(ep, -ETIMEDOUT, "the window is not bound");
	}
	if (n < 0 || wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_BIND_MW)
		return ep_fail(ep, -EIO, "binding the window: %s, opcode %u",
			       ibv_wc_status_str(wc.status), wc.opcode);
	return 0;
}

int
ep_window_bind(struct ep *ep)
{
	struct ibv_send_wr wr, *bad;
	int err;

	if (!has_window(ep))
		return 0;
	memset(&wr, 0, sizeof(wr));
	wr.opcode = IBV_WR_BIND_MW;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = ep->window;
	wr.bind_mw.rkey = (uint32_t)ep->test.rkey;
	wr.bind_mw.bind_info.mr = ep->mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)ep->memory;
	wr.bind_mw.bind_info.length = ep->length;
	wr.bind_mw.bind_info.mw_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	err = ibv_post_send(ep->qp, &wr, &bad);
	return err == 0 ? wait_bound(ep) : ep_fail(ep, -EIO, "post_send of a bind: error %d", err);
}
