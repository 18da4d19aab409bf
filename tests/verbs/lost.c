/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program of plain verbs that sends datagrams from the first device to the last, one after the
 * other, and prints the numbers of those that did not arrive. It uses no name of softhca.
 */

#include <unistd.h>

#include "all.h"

#define MESSAGES 1000u
#define MARKERS 200u /* sent behind the messages, until one arrives */
#define GRH 40u
#define SLOT 64u
#define WAITS 2000u /* ms for a marker */

static struct ibv_qp *
receiver(struct all *to, struct ibv_cq *cq, uint8_t *memory, struct ibv_mr *mr)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {1, MESSAGES + MARKERS, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(to->pd, &attr);
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};

	CHECK(qp != NULL);
	all_to_init(qp);
	CHECK(ibv_modify_qp(qp, &rtr, IBV_QP_STATE) == 0);
	for (uint32_t i = 0; i < MESSAGES + MARKERS; i++) {
		struct ibv_sge sge = {(uintptr_t)memory + (size_t)i * SLOT, SLOT, mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		CHECK(ibv_post_recv(qp, &wr, &bad) == 0);
	}
	return qp;
}

static void
send_number(struct all *from, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t to, uint32_t number)
{
	struct ibv_sge sge = {(uintptr_t)&number, sizeof(number), 0};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		.wr.ud = {ah, to, 0x11111111},
	};
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	all_wc(from->cq);
}

/* Note an arrived datagram; returns whether it was a marker. */
static bool
look(struct ibv_cq *cq, const uint8_t *memory, bool *arrived)
{
	struct ibv_wc wc;
	uint32_t number;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		CHECK(wc.status == IBV_WC_SUCCESS);
		memcpy(&number, memory + wc.wr_id * SLOT + GRH, sizeof(number));
		CHECK(number < MESSAGES + MARKERS && !arrived[number]);
		arrived[number] = true;
		if (number >= MESSAGES)
			return true;
	}
	CHECK(n == 0);
	return false;
}

/* Frames stay in their order: with a marker all before it have arrived, or never will. */
static bool
marked(struct ibv_cq *cq, const uint8_t *memory, bool *arrived)
{
	for (unsigned int i = 0; i < WAITS; i++) {
		if (look(cq, memory, arrived))
			return true;
		usleep(1000);
	}
	return false;
}

int
main(void)
{
	static bool arrived[MESSAGES + MARKERS];
	const size_t bytes = (size_t)(MESSAGES + MARKERS) * SLOT;
	uint8_t *memory = calloc(1, bytes);
	struct all from, to;
	struct ibv_mr *mr;
	struct ibv_qp *out, *in;
	struct ibv_cq *cq;
	struct ibv_ah *ah;
	uint32_t number = 0;

	all_open_at(&from, 0);
	all_open_at(&to, -1);
	from.gid = to.gid;
	mr = ibv_reg_mr(to.pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(to.context, MESSAGES + MARKERS, NULL, NULL, 0);
	CHECK(mr != NULL && cq != NULL);
	in = receiver(&to, cq, memory, mr);
	out = all_qp(&from, IBV_QPT_UD, from.cq, NULL, 0);
	ah = all_ah(&from);
	for (; number < MESSAGES; number++) {
		send_number(&from, out, ah, in->qp_num, number);
		look(cq, memory, arrived);
	}
	do {
		CHECK(number < MESSAGES + MARKERS);
		send_number(&from, out, ah, in->qp_num, number++);
	} while (!marked(cq, memory, arrived));
	for (number = 0; number < MESSAGES; number++)
		if (!arrived[number])
			printf("%u\n", number);
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(out) == 0 && ibv_destroy_qp(in) == 0);
	CHECK(ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(mr) == 0);
	all_close(&to);
	all_close(&from);
	free(memory);
	return 0;
}
