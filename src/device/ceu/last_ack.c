/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Last ACKs. A program that has seen the completion of a receive may destroy its QP at once, while
 * the ACK still waits for the port. The peer, which did nothing wrong, would repeat its request
 * until it gives up. So EE is asked to send the ACK that is due before the QP is reset, and
 * that ACK is waited for until encap has it.
 */

#include "ceu/ceu.h"
#include "engine/impl.h"

/* How long ACKs are waited for; a port that has taken nothing for as long is not waited for. */
#define LAST_ACK_TIMEOUT_NS 50000000u

enum last_ack_step {
	ASK,
	ASKED, /* for that of the QP before the cursor */
	SENT,  /* by EE; it may be on the edge to encap, which would drop it */
};

static bool
acknowledges(const struct hca_core *h, const struct hca_teardown *t, uint32_t qpi)
{
	const struct hca_qp_cfg *q = &h->qp[qpi].cfg;

	if (q->local_qpn == 0 || (t->domain != HCA_DOMAIN_ALL && t->domain != q->usr_page))
		return false;
	return (q->service == HCA_ST_RC || q->service == HCA_ST_XRC_TGT) &&
	       hca_qp_state(&h->qp[qpi]) >= HCA_QPS_RTR;
}

static bool
is_late(const struct hca_core *h, struct hca_teardown *t)
{
	uint64_t now = h->ceu->now;

	if (t->until == 0)
		t->until = now + LAST_ACK_TIMEOUT_NS;
	for (unsigned int n = 0; n < h->hca->n_pipes; n++) {
		uint64_t since = __atomic_load_n(&h->hca->pipe[n].tx_wait.since, __ATOMIC_ACQUIRE);

		if (since != 0 && now > since + LAST_ACK_TIMEOUT_NS)
			return true;
	}
	return now >= t->until;
}

/* Ask EE for the next one of the range; false: no further QP, up to the cursor. */
static bool
ask_next(struct hca_core *core, struct hca_teardown *t)
{
	for (uint32_t n = 0; n < HCA_CEU_OBJECTS_PER_POLL && t->cursor <= t->last; n++) {
		uint32_t qpi = t->cursor++;
		struct hca_pipe *h = hca_pipe_of_qp(core, qpi);

		if (!acknowledges(core, t, qpi))
			continue;
		t->asked = h;
		__atomic_store_n(&h->leave_seq, h->leave_seq + 1, __ATOMIC_RELEASE);
		hca_msg_send(h, HCA_STAGE_CEU, HCA_STAGE_EE, qpi, HCA_MSG_LEAVES);
		return true;
	}
	return false;
}

static bool
is_waited_for(const struct hca_pipe *h)
{
	return __atomic_load_n(&h->line[HCA_STAGE_EE].leave_ack, __ATOMIC_ACQUIRE) != h->leave_seq;
}

/* The edges from EE to encap, one in each pipe. */
static void
mark_edges(const struct hca *dev, struct hca_teardown *t)
{
	for (unsigned int n = 0; n < dev->n_pipes; n++)
		t->mark[n][HCA_EDGE_EE_ENCAP] =
			__atomic_load_n(&dev->pipe[n].edge[HCA_EDGE_EE_ENCAP].enq,
					__ATOMIC_ACQUIRE);
}

static bool
is_on_edge(const struct hca *dev, const struct hca_teardown *t)
{
	for (unsigned int n = 0; n < dev->n_pipes; n++) {
		const struct hca_edge *e = &dev->pipe[n].edge[HCA_EDGE_EE_ENCAP];
		uint64_t deq = __atomic_load_n(&e->deq, __ATOMIC_ACQUIRE);

		if (e->ring != NULL && (int64_t)(deq - t->mark[n][HCA_EDGE_EE_ENCAP]) < 0)
			return true;
	}
	return false;
}

bool
hca_last_acks_step(struct hca_core *h, struct hca_teardown *t)
{
	if (hca_object_kind(hca_pipe_of(h), t->first) != HCA_OBJECT_QP || is_late(h, t))
		return true;
	switch (t->last_acks) {
	case ASKED:
		if (is_waited_for(t->asked))
			return false;
		/* fall through */
	case ASK:
		t->last_acks = ask_next(h, t) ? ASKED : t->cursor <= t->last ? ASK : SENT;
		mark_edges(h->hca, t);
		return false;
	default:
		return !is_on_edge(h->hca, t);
	}
}
