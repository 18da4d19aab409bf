/* SPDX-License-Identifier: BSD-3-Clause */

/* A QP with two requests and two CQEs for gdb to look at: test_printers.py. */

#include "abi_cqe.h"
#include "engine/impl.h"

static struct hca_qp qps[2];
static struct hca_record records[2];
static struct hca_record_full full_records[1];
static uint32_t window[4];
static struct hca_cqe good_cqe, error_cqe;

static void
fill_qp(struct hca_qp *qp)
{
	qp->cfg.local_qpn = 0x000401;
	qp->cfg.remote_qpn = 0x000802;
	qp->cfg.state = HCA_QPS_RTS;
	qp->cfg.service = HCA_ST_UC;
	qp->cfg.retry_cnt = 7;
	qp->parser.window = window;
	qp->parser.window_mask = 3;
	qp->parser.head = 5;
	qp->sq_next = 4;
	qp->req_tx.next_psn = 120;
	qp->sq_una = UINT64_C(3) << 32 | 100;
	qp->req_rx.rewind = (uint64_t)HCA_AGAIN_SEQ_NAK << 24 | 100;
	qp->ee.epsn = 77;
}

/* gdb stops here. */
__attribute__((noinline)) static void
look(const struct hca_pipe *hca)
{
	__asm__ volatile("" : : "r"(hca), "r"(&good_cqe), "r"(&error_cqe) : "memory");
}

int
main(void)
{
	static struct hca_pipe hca;

	fill_qp(&qps[1]);
	records[1] = (struct hca_record){
		.op = HCA_OP_RDMA_WRITE,
		.flags = HCA_REC_SIGNALED | HCA_REC_SENT,
		.len = 20480,
		.wqe_index = 3,
		.psn = 100,
		.npsn = 20,
		.raddr = 0x1000,
		.rkey = 0x55,
	};
	full_records[0].r = (struct hca_record){.op = HCA_OP_SEND,
						.flags = HCA_REC_FULL,
						.len = 12,
						.syndrome = HCA_SYND_LOCAL_PROT};
	window[3] = 1;
	window[0] = HCA_RECREF_FULL;
	good_cqe = (struct hca_cqe){.my_qpn = 0x401,
				    .opcode = HCA_OP_RDMA_WRITE,
				    .is_send = 1,
				    .byte_cnt = 20480};
	error_cqe = (struct hca_cqe){.my_qpn = 0x401,
				     .opcode = HCA_CQE_OP_ERR_RECV,
				     .imm = HCA_SYND_WR_FLUSH,
				     .wqe = 128};
	hca.qp = qps;
	hca.records[HCA_WIRE_ROCE].small.mem = records;
	hca.records[HCA_WIRE_ROCE].full.mem = full_records;
	look(&hca);
	return 0;
}
