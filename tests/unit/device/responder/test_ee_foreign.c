/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests to foreign memory: executed before the QP's state changes, refused, or postponed. */

#include <errno.h>
#include <string.h>

#include "ee_rig.h"
#include "vtp/foreign.h"

#define KEY 0x65au
#define PSN 100u
#define BASE 0x7000000u /* address of the region in its process */

/* The other process: RIG_LEN bytes at BASE; results of its next accesses. */
static uint8_t memory[RIG_LEN];
static uint64_t mtt[RIG_LEN / 4096];
static int answer;
static unsigned int answer_at, accesses;

static int
access_memory(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	assert_ptr_equal(arg, memory);
	assert_int_equal(domain, HCA_PD_DOMAIN(RIG_PD));
	assert_true(addr >= BASE && addr - BASE <= RIG_LEN - len && len != 0);
	if (accesses++ == answer_at)
		return answer;
	if (write)
		memcpy(memory + (addr - BASE), bytes, len);
	else
		memcpy(bytes, memory + (addr - BASE), len);
	return 0;
}

static int
setup(void **state)
{
	struct hca_mpt_entry *e;
	struct rig *r;

	rig_setup(state);
	r = *state;
	memset(memory, 0, sizeof(memory));
	accesses = 0;
	answer_at = UINT32_MAX;
	/* pages in the order 0, 2, 1, 3 */
	for (unsigned int i = 0; i < RTE_DIM(mtt); i++)
		mtt[i] = HCA_BUS_FOREIGN | (BASE + (i == 1 ? 2u : i == 2 ? 1u : i) * 4096);
	r->h->cfg.foreign = access_memory;
	r->h->cfg.foreign_arg = memory;
	r->h->vtp.mtt = mtt;
	r->h->vtp.domain[HCA_KEY_INDEX(KEY)] = HCA_PD_DOMAIN(RIG_PD);
	e = &r->h->vtp.mpt[HCA_KEY_INDEX(KEY)];
	*e = r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY_ALL)];
	e->base = NULL;
	e->key = KEY;
	e->state = HCA_MPT_FOREIGN;
	e->foreign = 1;
	e->page_shift = 12;
	return 0;
}

/* Address in `memory` of the region's byte off. */
static uint8_t *
at(uint32_t off)
{
	return &memory[(mtt[off / 4096] & ~HCA_BUS_FOREIGN) - BASE + off % 4096];
}

static bool
holds(uint32_t off, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (*at(off + i) != (uint8_t)(seed + i))
			return false;
	return true;
}

static struct rig_packet
write_packet(uint32_t psn, uint32_t off, uint32_t len, uint8_t seed)
{
	struct rig_packet p = rig_write(psn, off, len, seed);

	p.rkey = KEY;
	return p;
}

/* The n-th access from now on returns rc. */
static void
then(unsigned int n, int rc)
{
	accesses = 0;
	answer_at = n;
	answer = rc;
}

static void
writes(void **state)
{
	struct rig *r = *state;

	rig_feed(r, write_packet(PSN, 4000, 250, 9)); /* across a page border */
	rig_expect_ack(r, RIG_ACK, PSN);
	assert_true(holds(4000, 250, 9));
	assert_int_equal(*at(4250), 0);
	rig_feed(r, write_packet(PSN + 1, RIG_LEN - 1, 1, 3));
	rig_expect_ack(r, RIG_ACK, PSN + 1);
	assert_true(holds(RIG_LEN - 1, 1, 3));
	assert_int_equal(RIG_COUNTER(r, rx_write_requests), 2);
}

/* The memory is not mapped: refused like a key without the right. */
static void
write_fails(void **state)
{
	struct rig *r = *state;

	then(1, -EFAULT); /* the last byte */
	rig_feed(r, write_packet(PSN, 0, 100, 9));
	assert_int_equal(RIG_COUNTER(r, resp_remote_access_errors), 1);
	assert_int_equal(RIG_COUNTER(r, rx_write_requests), 0);
	assert_int_equal(r->qp->ee.epsn, PSN);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, PSN, HCA_EVENT_WQ_ACCESS);
}

/* The access is postponed: nothing changes, and the requester repeats the packet. */
static void
write_is_late(void **state)
{
	struct rig *r = *state;

	then(0, -EAGAIN);
	rig_feed(r, write_packet(PSN, 0, 100, 9));
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	assert_int_equal(RIG_COUNTER(r, resp_scatter_late), 1);
	assert_int_equal(r->qp->ee.epsn, PSN);
	assert_int_equal(r->qp->ee.msn, 0);
	rig_feed(r, write_packet(PSN, 0, 100, 9));
	rig_expect_ack(r, RIG_ACK, PSN);
	assert_true(holds(0, 100, 9));
	assert_int_equal(RIG_COUNTER(r, rx_write_requests), 1);
}

/* A list of foreign and other memory: each part is written to its place. */
static void
mixed_receive(void **state)
{
	const struct hca_sge sge[] = {{RIG_VA + 10, RIG_KEY_ALL, 30},
				      {RIG_VA + 4090, KEY, 40},
				      {RIG_VA + 100, RIG_KEY_ALL, 200}};
	struct rig *r = *state;

	rig_post(r, sge, 3);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, PSN, 200, 7));
	rig_expect_ack(r, RIG_ACK, PSN);
	assert_true(rig_holds(r, 10, 30, 7));
	assert_true(holds(4090, 40, 37));
	assert_true(rig_holds(r, 100, 130, 77));
	assert_int_equal(r->published, 1);
}

static void
receive_fails(void **state)
{
	const struct hca_sge sge = {RIG_VA, KEY, 256};
	struct rig *r = *state;

	rig_post(r, &sge, 1);
	then(0, -EAGAIN);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, PSN, 64, 1));
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	assert_int_equal(r->published, 0);
	then(0, -EFAULT);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, PSN, 64, 1));
	assert_int_equal(r->published, 1);
	assert_int_equal(r->cqe[0].opcode, HCA_CQE_OP_ERR_RECV);
	assert_int_equal(((struct hca_cqe_err *)&r->cqe[0])->syndrome, HCA_SYND_LOCAL_PROT);
	assert_int_equal(RIG_COUNTER(r, resp_local_protection_error), 1);
	rig_expect_fatal(r, HCA_NAK_REMOTE_OP, PSN, 0);
}

static void
atomics(void **state)
{
	uint64_t value = 41;
	struct rig_packet p = rig_add(PSN, 8, 1);
	struct rig *r = *state;

	memcpy(at(8), &value, 8);
	p.rkey = KEY;
	then(0, -EAGAIN); /* not read, so the value is unchanged */
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	then(UINT32_MAX, 0);
	rig_feed(r, p);
	memcpy(&value, at(8), 8);
	assert_int_equal(value, 42);
	rig_forget_responses(r);
	/* a duplicate is answered but not executed */
	rig_feed(r, p);
	memcpy(&value, at(8), 8);
	assert_int_equal(value, 42);
	rig_forget_responses(r);
	/* read, but not stored: the value is unchanged */
	p.psn = PSN + 1;
	then(1, -EAGAIN);
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN + 1);
	memcpy(&value, at(8), 8);
	assert_int_equal(value, 42);
	then(1, -EFAULT);
	rig_feed(r, p);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, PSN + 1, HCA_EVENT_WQ_ACCESS);
}

/* One access of 8 bytes, before the QP changes; a copy is answered but stores nothing. */
static void
atomic_write(void **state)
{
	struct rig_packet p = rig_atomic_write(PSN, 8, 50);
	struct rig *r = *state;

	p.rkey = KEY;
	then(0, -EAGAIN);
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	then(0, -EINPROGRESS); /* stored later: again, with the same bytes */
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	assert_int_equal(r->qp->ee.epsn, PSN);
	then(UINT32_MAX, 0);
	rig_feed(r, p);
	assert_int_equal(accesses, 1);
	assert_true(holds(8, 8, 50));
	rig_expect_confirmed(r, 0, PSN, 1);
	rig_forget_responses(r);
	*at(8) = 0;
	rig_feed(r, p);
	assert_int_equal(accesses, 1);
	rig_expect_confirmed(r, 0, PSN, 1);
	rig_forget_responses(r);
	p.psn = PSN + 1;
	then(0, -EFAULT);
	rig_feed(r, p);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, PSN + 1, HCA_EVENT_WQ_ACCESS);
}

/* Data of foreign memory is there when its request is executed: nothing is accessed. */
static void
flush(void **state)
{
	struct rig_packet p = rig_flush(PSN + 1, 0, 8, HCA_FETH_MAKE(HCA_FETH_GLOBAL, 0));
	struct rig *r = *state;

	rig_feed(r, write_packet(PSN, 0, 64, 1));
	rig_forget_responses(r);
	then(UINT32_MAX, 0);
	p.rkey = KEY;
	rig_feed(r, p);
	p.psn = PSN + 2;
	p.feth = HCA_FETH_MAKE(HCA_FETH_GLOBAL, HCA_FETH_MR);
	rig_feed(r, p);
	assert_int_equal(accesses, 0);
	rig_expect_confirmed(r, 0, PSN + 1, 2);
	rig_expect_confirmed(r, 1, PSN + 2, 3);
}

static uint64_t
value_at(uint32_t off)
{
	uint64_t value;

	memcpy(&value, at(off), 8);
	return value;
}

/* The store is executed later: the repetition gets the old value, and adds nothing. */
static void
atomic_is_stored_later(void **state)
{
	struct rig_packet p = rig_add(PSN, 8, 5);
	struct rig *r = *state;

	p.rkey = KEY;
	then(1, -EINPROGRESS);
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	assert_int_equal(r->qp->ee.epsn, PSN);
	then(0, -EAGAIN); /* not yet */
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	*at(8) = 5; /* now it is, and another request adds 100 */
	*at(8) += 100;
	then(UINT32_MAX, 0);
	rig_feed(r, p);
	assert_int_equal(accesses, 1);
	assert_int_equal(value_at(8), 105);
	assert_int_equal(r->qp->ee.epsn, PSN + 1);
	rig_expect_atomic(r, 0, PSN, 0);
	/* the next one is executed */
	p.psn = PSN + 1;
	rig_feed(r, p);
	assert_int_equal(value_at(8), 110);
	rig_expect_atomic(r, 1, PSN + 1, 105);
}

static void
fill_stores(struct rig *r, unsigned int n, uint16_t client)
{
	struct ee_ctx *ctx = ee_ctx(r->h);

	for (unsigned int i = 0; i < EE_STORES; i++)
		ctx->store[i] = (struct ee_store){.qpi = RIG_QPI,
						  .psn = PSN + 1000 + i,
						  .generation = r->qp->cfg.generation,
						  .client = client,
						  .used = i < n};
}

/* Feed the request: it is not executed, and has to be repeated. */
static void
expect_waits(struct rig *r, const struct rig_packet *p)
{
	then(UINT32_MAX, 0);
	rig_feed(r, *p);
	assert_int_equal(accesses, 0);
	assert_int_equal(value_at(8), 0);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
}

/* An atomic for which no place is free does not begin; the places of a QP that is gone are free. */
static void
stores_are_bounded(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_add(PSN, 8, 5);

	p.rkey = KEY;
	fill_stores(r, EE_STORES, r->qp->cfg.usr_page + 1); /* of another client */
	expect_waits(r, &p);
	fill_stores(r, EE_STORES_CLIENT, r->qp->cfg.usr_page);
	expect_waits(r, &p);
	ee_ctx(r->h)->store[3].generation--;
	then(1, -EINPROGRESS);
	rig_feed(r, p);
	rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), PSN);
	then(UINT32_MAX, 0);
	rig_feed(r, p);
	assert_int_equal(accesses, 1); /* looked at, not executed again */
	rig_expect_atomic(r, 0, PSN, 0);
}

/* Others of the client hold no places of this one. */
static void
stores_of_others_leave_room(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_add(PSN, 8, 5);

	p.rkey = KEY;
	fill_stores(r, EE_STORES - 1, r->qp->cfg.usr_page + 1);
	then(UINT32_MAX, 0);
	rig_feed(r, p);
	assert_int_equal(value_at(8), 5);
	rig_expect_atomic(r, 0, PSN, 0);
}

/* Range, rights and PD are checked as for any region. */
static void
checks(void **state)
{
	struct rig *r = *state;
	const struct hca_vtp *v = &r->h->vtp;
	const uint32_t wr = HCA_ACCESS_REMOTE_WRITE;
	struct hca_mpt_entry *e = &r->h->vtp.mpt[HCA_KEY_INDEX(KEY)];

	assert_null(hca_vtp_check(v, KEY, RIG_PD, wr, RIG_VA, 8));
	assert_ptr_equal(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, RIG_VA, RIG_LEN), e);
	assert_null(hca_foreign_find(v, RIG_KEY_ALL, RIG_PD, NULL, wr, RIG_VA, 8));
	assert_null(hca_foreign_find(v, KEY + 1, RIG_PD, NULL, wr, RIG_VA, 8));
	assert_null(hca_foreign_find(v, KEY, RIG_PD + 1, NULL, wr, RIG_VA, 8));
	assert_null(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, RIG_VA - 1, 8));
	assert_null(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, RIG_VA, RIG_LEN + 1));
	assert_null(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, RIG_VA + 1, RIG_LEN));
	assert_null(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, UINT64_MAX, 1));
	e->flags &= ~wr;
	assert_null(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, RIG_VA, 8));
	e->flags |= wr;
	/* a window of type 2, usable by its QP only */
	e->state = HCA_MPT_BOUND;
	e->qpn = r->qp->cfg.local_qpn;
	e->generation = r->qp->cfg.generation;
	assert_null(hca_foreign_find(v, KEY, RIG_PD, NULL, wr, RIG_VA, 8));
	assert_null(hca_vtp_check_bound(v, KEY, &r->qp->cfg, wr, RIG_VA, 8));
	assert_ptr_equal(hca_foreign_find(v, KEY, RIG_PD, &r->qp->cfg, wr, RIG_VA, 8), e);
	e->generation++;
	assert_null(hca_foreign_find(v, KEY, RIG_PD, &r->qp->cfg, wr, RIG_VA, 8));
	e->state = HCA_MPT_DYING;
	assert_null(hca_foreign_find(v, KEY, RIG_PD, &r->qp->cfg, wr, RIG_VA, 8));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(writes),
		T(write_fails),
		T(write_is_late),
		T(mixed_receive),
		T(receive_fails),
		T(atomics),
		T(atomic_write),
		T(flush),
		T(checks),
		T(atomic_is_stored_later),
		T(stores_are_bounded),
		T(stores_of_others_leave_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
