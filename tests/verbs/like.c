/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program of plain verbs that sends a datagram to itself by each GID of its device, and prints
 * the IDs of the device, then of each datagram the IP version and wc.sl, read in both ways.
 */

#include "all.h"

#define GRH 40u

static struct ibv_ah *
address(struct all *all, union ibv_gid gid, int index)
{
	struct ibv_ah_attr attr = {
		.grh = {.dgid = gid, .sgid_index = (uint8_t)index, .hop_limit = 1},
		.is_global = 1,
		.port_num = PORT,
	};
	struct ibv_ah *ah = ibv_create_ah(all->pd, &attr);

	CHECK(ah != NULL);
	return ah;
}

static void
send_to_self(struct all *all, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)all->memory + 1024, 8, all->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {ah, qp->qp_num, 0x11111111},
	};
	struct ibv_send_wr *bad;

	all_recv(all, qp, 7, 0, 1024);
	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Both ways of reading must give the same completion in full. */
static void
judge(uint64_t wr_id, unsigned int opcode, uint32_t bytes, unsigned int flags)
{
	CHECK(wr_id == 7 && opcode == IBV_WC_RECV && bytes == GRH + 8);
	CHECK((flags & IBV_WC_GRH) != 0);
}

static unsigned int
sl_by_poll(struct all *all, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_wc wc;

	send_to_self(all, qp, ah);
	wc = all_wc(qp->recv_cq);
	judge(wc.wr_id, wc.opcode, wc.byte_len, (unsigned int)wc.wc_flags);
	CHECK(wc.src_qp == qp->qp_num && wc.qp_num == qp->qp_num);
	return wc.sl;
}

static unsigned int
sl_by_read(struct all *all, struct ibv_cq_ex *cq, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_poll_cq_attr attr = {0};
	unsigned int sl;

	send_to_self(all, qp, ah);
	while (ibv_start_poll(cq, &attr) != 0)
		;
	judge(cq->wr_id, ibv_wc_read_opcode(cq), ibv_wc_read_byte_len(cq),
	      ibv_wc_read_wc_flags(cq));
	sl = ibv_wc_read_sl(cq);
	ibv_end_poll(cq);
	return sl;
}

static struct ibv_qp *
make_qp(struct all *all, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = all->cq,
		.recv_cq = cq,
		.cap = {16, 16, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr state = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp *qp = ibv_create_qp(all->pd, &attr);

	CHECK(qp != NULL);
	all_to_init(qp);
	CHECK(ibv_modify_qp(qp, &state, IBV_QP_STATE) == 0);
	state.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &state, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
	return qp;
}

int
main(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_SL};
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct all all;

	all_open(&all);
	CHECK(ibv_query_device(all.context, &device) == 0);
	CHECK(ibv_query_port(all.context, PORT, &port) == 0);
	printf("%#x %u\n", device.vendor_id, device.vendor_part_id);
	cq = ibv_create_cq_ex(all.context, &attr);
	CHECK(cq != NULL);
	qp = make_qp(&all, ibv_cq_ex_to_cq(cq));
	for (int i = 0; i < port.gid_tbl_len; i++) {
		union ibv_gid gid;
		struct ibv_ah *ah;
		unsigned int sl;

		CHECK(ibv_query_gid(all.context, PORT, i, &gid) == 0);
		if (gid.global.subnet_prefix == 0 && gid.global.interface_id == 0)
			continue;
		ah = address(&all, gid, i);
		sl = sl_by_poll(&all, qp, ah);
		printf("IPv%d %u", gid.global.subnet_prefix == 0 ? 4 : 6, sl);
		printf(" %u\n", sl_by_read(&all, cq, qp, ah));
		CHECK(ibv_destroy_ah(ah) == 0);
	}
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	all_close(&all);
	return 0;
}
