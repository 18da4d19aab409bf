/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * To be run by hand: nanoseconds that the responder takes per 64-byte WRITE in bursts of 32 with
 * one ACK each, and those of a loop that only allocates and frees the packets. Asserts nothing.
 */

#include "ee_rig.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS 200000u
#define BYTES 64u
#define WINDOW1 6u /* MPT indexes */
#define WINDOW2 7u

static uint32_t rkey = RIG_KEY_ALL; /* of the WRITEs */

void
hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops)
{
	uint32_t run;

	hca_copy_last_byte_last(ops, hca_vtp_ptr(v, e, va, len, &run), src, len);
}

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Packets as decap passes them on. */
static void
make_burst(struct rig *r, struct rte_mbuf **m, uint8_t opcode, uint32_t psn)
{
	uint32_t ext_len = opcode == HCA_BTH_RC_WRITE_ONLY ? sizeof(struct hca_reth) : 0;

	rte_pktmbuf_alloc_bulk(r->rx_pool, m, HCA_BURST);
	for (uint32_t i = 0; i < HCA_BURST; i++) {
		struct hca_reth *reth = rte_pktmbuf_mtod_offset(m[i], struct hca_reth *, 54);

		reth->va = hca_cpu_to_be64(RIG_VA + (i & 31) * 512);
		reth->rkey = hca_cpu_to_be32(rkey);
		reth->dma_len = hca_cpu_to_be32(BYTES);
		*hca_rxd(m[i]) = (struct hca_rxd){
			.qpi = RIG_QPI,
			.psn = (psn + i) & HCA_PSN_MASK,
			.opcode = opcode,
			.flags = i == HCA_BURST - 1 ? HCA_RXD_ACKREQ : 0,
			.ext_off = 54,
			.payload_off = (uint16_t)(54 + ext_len),
			.payload_len = BYTES,
			.generation = r->qp->cfg.generation,
		};
	}
}

static double
run(struct rig *r, uint8_t opcode, bool respond)
{
	struct rte_mbuf *m[HCA_BURST];
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];
	uint32_t psn = r->qp->ee.epsn;
	double start = now_ns();

	for (uint32_t i = 0; i < ROUNDS; i++, psn += HCA_BURST) {
		make_burst(r, m, opcode, psn);
		if (!respond) {
			rte_pktmbuf_free_bulk(m, HCA_BURST);
			continue;
		}
		if (opcode == HCA_BTH_RC_SEND_ONLY)
			r->record->producer = r->qp->ee.rq_consumed + HCA_BURST;
		r->cqes = 0;
		hca_ee_process(r->h, (void **)m, HCA_BURST, i);
		hca_ee_poll(r->h, i, HCA_BURST);
		rte_pktmbuf_free_bulk((struct rte_mbuf **)e->obj, e->n);
		e->n = 0;
	}
	return (now_ns() - start) / ROUNDS / HCA_BURST;
}

static void
report(struct rig *r, const char *name, uint8_t opcode)
{
	double bare = 1e9, full = 1e9;

	for (unsigned int i = 0; i < 3; i++) {
		bare = RTE_MIN(bare, run(r, opcode, false));
		full = RTE_MIN(full, run(r, opcode, true));
	}
	printf("%-6s 64 B: %5.2f ns with the responder, %5.2f without, difference %5.2f\n", name,
	       full, bare, full - bare);
}

/* The same bytes, as 64 WQEs of 64 bytes. */
static void
make_receives(struct rig *r)
{
	r->qp->ee.rq_size_log = RIG_RQ_LOG + RIG_STRIDE_LOG - 6;
	r->qp->ee.rq_stride_log = 6;
	for (unsigned int i = 0; i < 64; i++)
		*(struct hca_data_unit *)(r->qp->ee.rq.base + 64 * i + HCA_WQE_UNIT) =
			(struct hca_data_unit){hca_cpu_to_le32(BYTES), hca_cpu_to_le32(RIG_KEY_ALL),
					       hca_cpu_to_le64(RIG_VA + 128 * i)};
}

/* Access the same memory through a window of this type. */
static void
through_window(struct rig *r, uint32_t index)
{
	struct hca_mpt_entry *e = &r->h->vtp.mpt[index];

	*e = r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY_ALL)];
	e->key = rkey = HCA_KEY_MAKE(1, index, 1);
	e->flags = HCA_ACCESS_REMOTE_WRITE;
	e->state = index == WINDOW2 ? HCA_MPT_BOUND : HCA_MPT_VALID;
	e->qpn = r->qp->cfg.local_qpn;
	e->generation = r->qp->cfg.generation;
	report(r, index == WINDOW2 ? "MW 2" : "MW 1", HCA_BTH_RC_WRITE_ONLY);
}

int
main(void)
{
	struct rig *r;

	rig_setup((void **)&r);
	r->h->icrc = hca_icrc_select();
	rte_mempool_free(r->rx_pool);
	r->rx_pool =
		rte_pktmbuf_pool_create("rig-rx", 1023, 256, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	rte_mempool_free(r->h->resp_pool);
	r->h->resp_pool =
		rte_pktmbuf_pool_create("rig-resp", 1023, 256, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	report(r, "WRITE", HCA_BTH_RC_WRITE_ONLY);
	through_window(r, WINDOW1);
	through_window(r, WINDOW2);
	make_receives(r);
	report(r, "SEND", HCA_BTH_RC_SEND_ONLY);
	printf("acks %lu, writes %lu, sends %lu\n", (unsigned long)RIG_COUNTER(r, acks_sent),
	       (unsigned long)RIG_COUNTER(r, rx_write_requests),
	       (unsigned long)RIG_COUNTER(r, rx_send_requests));
	rig_teardown((void **)&r);
	return 0;
}
