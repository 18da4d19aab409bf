/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder of UD: the GRH before the payload, the completion, and drops. */

#include "ee_rig.h"

#include <string.h>

#define GRH HCA_UD_GRH_LEN
#define SRC_QPN 0x654321u

static int
setup(void **state)
{
	rig_setup(state);
	rig_service(*state, HCA_ST_UD);
	((struct rig *)*state)->qp->addr.pkey_index = 3;
	return 0;
}

static struct rig_packet
datagram(uint32_t len, uint8_t seed)
{
	struct rig_packet p = rig_send(HCA_BTH_UD_SEND_ONLY, 0, len, seed);

	p.src_qpn = SRC_QPN;
	return p;
}

static void
received_over(struct rig *r, uint32_t network, uint8_t opcode, uint32_t bytes, uint32_t sl)
{
	const struct hca_cqe *c = &r->cqe[r->cqes - 1];

	assert_true(r->cqes > 0);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->rqpn, SRC_QPN);
	assert_int_equal(c->flags, HCA_CQE_MAKE_FLAGS(3, 1, network, sl));
	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->byte_cnt, bytes);
	assert_int_equal(c->is_send, 0);
}

static void
received(struct rig *r, uint8_t opcode, uint32_t bytes, uint32_t sl)
{
	received_over(r, HCA_CQE_NETWORK_IPV4, opcode, bytes, sl);
}

static void
alive(struct rig *r)
{
	rig_expect_silence(r);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
	assert_int_equal(r->fx->events, 0);
}

/* 20 zeros, then the header as make_packet() built it: 45h, 80h + offset in the frame. */
static void
grh_of_ip4(void **state)
{
	struct rig *r = *state;

	memset(r->mem, 0xff, 300);
	rig_post_one(r, 64, GRH + 100);
	rig_feed(r, datagram(100, 5));
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(r->mem[64 + i], 0);
	assert_int_equal(r->mem[64 + 20], 0x45);
	for (unsigned int i = 1; i < 20; i++)
		assert_int_equal(r->mem[64 + 20 + i], 0x80 + HCA_ETH_LEN + i);
	assert_true(rig_holds(r, 64 + GRH, 100, 5));
	assert_int_equal(r->mem[64 + GRH + 100], 0xff);
	assert_int_equal(r->mem[63], 0xff);
	received(r, HCA_BTH_UD_SEND_ONLY, GRH + 100, 0);
	assert_int_equal(r->cqe[0].wqe, 0);
	assert_int_equal(r->cqe[0].imm, 0);
	alive(r);
}

static void
grh_of_ip6(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = datagram(256, 5);

	p.ip6 = true;
	rig_post_one(r, 64, GRH + 256);
	rig_feed(r, p);
	assert_int_equal(r->mem[64], 0x60);
	for (unsigned int i = 1; i < 40; i++)
		assert_int_equal(r->mem[64 + i], 0x80 + HCA_ETH_LEN + i);
	assert_true(rig_holds(r, 64 + GRH, 256, 5));
	received_over(r, HCA_CQE_NETWORK_IPV6, HCA_BTH_UD_SEND_ONLY, GRH + 256, 0);
	alive(r);
}

/* The GRH overwrites headers of the packet whose contents have been read before. */
static void
immediate_solicited_and_priority(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = datagram(0, 0);

	p.opcode = HCA_BTH_UD_SEND_ONLY_IMM;
	p.imm = 0x55667788;
	p.vlan = 5 << 13 | 77;
	p.flags |= HCA_RXD_SOLICITED;
	rig_post_one(r, 0, GRH);
	rig_feed(r, p);
	received(r, HCA_BTH_UD_SEND_ONLY_IMM, GRH, 5);
	assert_int_equal(r->cqe[0].imm, 0x55667788);
	assert_true(r->solicited);
	assert_int_equal(r->vlan, 5 << 13 | 77);
	assert_false(r->told_mac);
	alive(r);
}

/* The completion says which station has sent the frame, with and without a tag. */
static void
to_the_gsi(void **state)
{
	static const uint8_t smac[6] = {0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b}; /* 80h + offset */
	struct rig *r = *state;

	for (unsigned int i = 0; i < 4; i++) {
		struct rig_packet p = datagram(256, 3);

		p.flags |= HCA_RXD_GSI;
		p.vlan = i & 1 ? 5 << 13 | 77 : 0;
		p.ip6 = (i & 2) != 0;
		r->told_mac = false;
		rig_post_one(r, 0, GRH + 256);
		rig_feed(r, p);
		assert_true(r->told_mac);
		assert_memory_equal(r->smac, smac, sizeof(smac));
		assert_int_equal(r->vlan, p.vlan);
	}
	alive(r);
}

/* The excess of management datagrams is no want of receives of a program. */
static void
gsi_without_receive(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = datagram(256, 1);

	p.flags |= HCA_RXD_GSI;
	for (unsigned int i = 0; i < 3; i++)
		rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, gsi_no_receive), 3);
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 0);
	assert_int_equal(RIG_COUNTER(r, resp_ud_dropped), 0);
	assert_int_equal(r->cqes, 0);
	alive(r);
}

/* The GRH in an SGE of its own, as programs place it that do not need it; and cut anywhere. */
static void
several_sges(void **state)
{
	static const uint32_t cut[] = {40, 1, 39, 41, 100};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(cut); i++) {
		const struct hca_sge sge[2] = {{RIG_VA + 1000, RIG_KEY_ALL, cut[i]},
					       {RIG_VA + 2000, RIG_KEY_ALL, 200}};

		memset(r->mem + 1000, 0, 1300);
		rig_post(r, sge, 2);
		rig_feed(r, datagram(90, 9));
		for (uint32_t k = 0; k < 90; k++) {
			uint32_t at = GRH + k;

			at = at < cut[i] ? 1000 + at : 2000 + at - cut[i];
			assert_int_equal(r->mem[at], (uint8_t)(9 + k));
		}
		received(r, HCA_BTH_UD_SEND_ONLY, GRH + 90, 0);
	}
	alive(r);
}

/* Each is a message of its own, whatever its PSN. */
static void
any_psn(void **state)
{
	static const uint32_t psn[] = {7, 7, 0xffffff, 0, 100};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(psn); i++) {
		struct rig_packet p = datagram(10, (uint8_t)i);

		p.psn = psn[i];
		rig_post_one(r, 0, 100);
		rig_feed(r, p);
		assert_int_equal(r->cqes, i + 1);
	}
	assert_int_equal(RIG_COUNTER(r, rx_send_requests), RTE_DIM(psn));
	assert_int_equal(RIG_COUNTER(r, duplicate_request), 0);
	alive(r);
}

static void
no_receive(void **state)
{
	struct rig *r = *state;

	rig_feed(r, datagram(10, 1));
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 1);
	assert_int_equal(RIG_COUNTER(r, resp_ud_dropped), 0);
	rig_post_one(r, 0, 100);
	rig_feed(r, datagram(10, 2));
	received(r, HCA_BTH_UD_SEND_ONLY, GRH + 10, 0);
	alive(r);
}

/* Any host may send a datagram that is too long: neither QP nor receive are affected. */
static void
too_long(void **state)
{
	struct rig *r = *state;

	memset(r->mem, 0xff, 100);
	rig_post_one(r, 0, GRH + 9);
	rig_feed(r, datagram(10, 1));
	rig_feed(r, datagram(257, 1)); /* above the MTU */
	assert_int_equal(RIG_COUNTER(r, resp_ud_dropped), 2);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->mem[0], 0xff);
	rig_feed(r, datagram(9, 2));
	received(r, HCA_BTH_UD_SEND_ONLY, GRH + 9, 0);
	assert_int_equal(r->cqe[0].wqe, 0);
	alive(r);
}

static void
no_room_for_the_grh(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, GRH - 1);
	rig_feed(r, datagram(0, 0));
	assert_int_equal(RIG_COUNTER(r, resp_ud_dropped), 1);
	assert_int_equal(r->cqes, 0);
	alive(r);
}

/* The receive itself is invalid: it completes with an error, and the QP goes to ERR. */
static void
bad_receive(void **state)
{
	static const uint32_t key[] = {RIG_KEY_NONE, RIG_KEY_FOREIGN, RIG_KEY_DEAD, RIG_KEY_STALE};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(key); i++) {
		const struct hca_sge sge = {RIG_VA, key[i], 200};
		const struct hca_cqe_err *c = (const void *)&r->cqe[i];

		r->qp->cfg.state = HCA_QPS_RTS;
		rig_post(r, &sge, 1);
		rig_feed(r, datagram(10, 1));
		assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
		assert_int_equal(r->cqes, i + 1);
		assert_int_equal(c->opcode, HCA_CQE_OP_ERR_RECV);
		assert_int_equal(c->syndrome, HCA_SYND_LOCAL_PROT);
		assert_int_equal(c->wqe, i << RIG_STRIDE_LOG);
	}
	assert_int_equal(RIG_COUNTER(r, resp_local_protection_error), RTE_DIM(key));
	assert_int_equal(RIG_COUNTER(r, resp_ud_dropped), RTE_DIM(key));
	rig_expect_silence(r);
}

/* From an SRQ, with keys of its PD. */
static void
shared(void **state)
{
	const struct hca_sge sge = {RIG_VA, RIG_KEY_FOREIGN, 200};
	struct rig *r = *state;
	uint32_t at;

	rig_share(r, 1, RIG_PD + 1);
	rig_srq_post(r, 1, &sge, 1);
	at = rig_srq_post(r, 1, &sge, 1);
	rig_feed(r, datagram(10, 1));
	rig_feed(r, datagram(20, 2));
	received(r, HCA_BTH_UD_SEND_ONLY, GRH + 20, 0);
	assert_int_equal(r->cqes, 2);
	assert_int_equal(r->cqe[1].srqn, RIG_SRQN(1));
	assert_int_equal(r->cqe[1].wqe, at);
	assert_true(rig_holds(r, GRH, 20, 2));
	rig_feed(r, datagram(20, 2));
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 1);
	alive(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
		T(grh_of_ip4),
		T(grh_of_ip6),
		T(immediate_solicited_and_priority),
		T(to_the_gsi),
		T(gsi_without_receive),
		T(several_sges),
		T(any_psn),
		T(no_receive),
		T(too_long),
		T(no_room_for_the_grh),
		T(bad_receive),
		T(shared),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
