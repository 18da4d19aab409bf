/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Foreign memory that does not answer for longer than all retries of the ack timeout take: the
 * request waits for it, no retry is counted, and it completes soon after the memory answers.
 */

#include <errno.h>

#include "sim_duo.h"
#include "sim_test.h"
#include "engine/impl.h"

#define PROGRAM "test_late"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MTU 256u
#define PACKETS 6u
#define LATE_NS 200000000u /* a timeout is 1 ms */
#define SOON_NS 10000000u  /* the time between two tries is less */

static struct {
	struct sim *s;
	uint64_t until;	   /* no access is executed before */
	uint32_t answered; /* accesses executed before it is late, per side */
	uint32_t tries[2]; /* late ones */
	bool gone;	   /* not mapped any more afterwards */
	bool at_once;	   /* from the next access on */
} memory;

static int
access_memory(unsigned int side, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	if (memory.s->now < memory.until && memory.answered == 0) {
		memory.tries[side]++;
		if (memory.gone && memory.at_once)
			memory.until = 0;
		return -EAGAIN;
	}
	if (memory.answered != 0)
		memory.answered--;
	else if (memory.gone)
		return -EFAULT;
	if (write)
		memcpy((void *)(uintptr_t)addr, bytes, len);
	else
		memcpy(bytes, (void *)(uintptr_t)addr, len);
	return 0;
}

static int
access_0(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	(void)arg;
	(void)domain;
	return access_memory(0, write, addr, bytes, len);
}

static int
access_1(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	(void)arg;
	(void)domain;
	return access_memory(1, write, addr, bytes, len);
}

/* The region of that side is foreign from now on. */
static void
make_foreign(struct sim *s, unsigned int side, uint32_t key)
{
	struct hca *h = s->side[side].hca;
	struct hca_mpt_entry *e = &h->core->vtp.mpt[HCA_KEY_INDEX(key)];

	h->core->cfg.foreign = side == 0 ? access_0 : access_1;
	e->base = NULL;
	e->foreign = 1;
	__atomic_store_n(&e->state, HCA_MPT_FOREIGN, __ATOMIC_RELEASE);
}

static bool
idle(struct sim *s, void *arg)
{
	sim_reap(s);
	return !sim_outstanding(arg);
}

static uint64_t
resent(struct sim *s)
{
	return sim_counter(s, 0, "local_ack_timeout_err") + sim_counter(s, 0, "packet_seq_err") +
	       sim_counter(s, 0, "implied_nak_seq_err");
}

/*
 * Requests that were repeated for late memory are counted so on their own side, and there only:
 * late and rnr are the counts before.
 */
static void
check_reasons(struct sim *s, unsigned int side, uint64_t late, uint64_t rnr)
{
	bool as_late = sim_counter(s, 0, "again_late") != late;
	bool as_rnr = sim_counter(s, 0, "again_rnr_nak") != rnr;

	sim_check(s, as_late == (side == 0), "side %u: again_late", side);
	sim_check(s, as_rnr == (side == 1), "side %u: again_rnr_nak", side);
}

static void
one(struct sim *s, unsigned int side, uint32_t opcode, uint32_t len, uint32_t answered)
{
	const struct sim_pair_attr attr = {
		.mtu = SOFTHCA_MTU_256,
		.region = 32768,
		.sq_depth = 8,
		.rq_depth = 8,
		.psn = {0xfffffd, 0xfffffd},
		.min_rnr_timer = 13, /* 0.96 ms */
	};
	const struct sim_req r[2] = {{.opcode = opcode, .len = len, .flags = S},
				     {.opcode = SOFTHCA_WR_SEND, .len = 8, .flags = S}};
	struct sim_pair *p = sim_pair_open(s, &attr);
	uint64_t before = resent(s), late = sim_counter(s, 0, "again_late"),
		 rnr = sim_counter(s, 0, "again_rnr_nak");

	make_foreign(s, side, p->region[side].mr->lkey);
	memory.answered = answered;
	memory.tries[0] = memory.tries[1] = 0;
	memory.until = s->now + LATE_NS;
	sim_check(s, sim_post(p, 0, r, 2) == 0, "post");
	sim_check(s, sim_run_until(s, idle, p, LATE_NS + SOON_NS),
		  "op %u of %u bytes, side %u: not finished", opcode, len, side);
	sim_check(s, s->now >= memory.until && memory.tries[side] != 0, "op %u, side %u: not late",
		  opcode, side);
	sim_check(s, memory.tries[side] < 2000, "op %u, side %u: %u tries", opcode, side,
		  memory.tries[side]);
	/* packets under way when the memory was late first */
	sim_check(s, resent(s) <= before + 2, "op %u of %u bytes, side %u: %llu retries", opcode,
		  len, side, (unsigned long long)(resent(s) - before));
	check_reasons(s, side, late, rnr);
	sim_finish(s, SIM_S);
	sim_pair_close(p);
}

static void
late_in(const struct sim_config *cfg)
{
	static const uint32_t ops[] = {SOFTHCA_WR_SEND, SOFTHCA_WR_RDMA_WRITE,
				       SOFTHCA_WR_RDMA_WRITE_WITH_IMM, SOFTHCA_WR_RDMA_READ,
				       SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	struct sim *s = sim_open(cfg);

	memory.s = s;
	for (unsigned int i = 0; i < 2 * COUNT(ops); i++) {
		uint32_t op = ops[i / 2];
		bool atomic = op == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;

		for (uint32_t answered = 0; answered < (atomic ? 1 : 4); answered += 3)
			one(s, i % 2, op, atomic ? 8 : PACKETS * MTU - 1, answered);
	}
	sim_close(s);
}
SIM_TEST(late)

/* Late in the middle of a READ, and then gone: the requester learns why. */
static void
late_and_gone_read(const struct sim_config *cfg, bool at_once)
{
	struct sim *s = sim_open(cfg);
	struct sim_duo d = {.s = s};
	struct softhca_wc wc = {.status = SOFTHCA_WC_SUCCESS};
	int n = 0;

	sim_duo_open(s, &d);
	make_foreign(s, 1, d.mr[1]->rkey);
	memory.s = s;
	memory.answered = 2;
	memory.tries[1] = 0;
	memory.gone = true;
	memory.at_once = at_once;
	memory.until = s->now + LATE_NS / 100;
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_READ, 16384, 1, S);
	for (uint64_t end = s->now + LATE_NS; n == 0 && s->now < end;
	     n = softhca_poll_cq(d.own[0], 1, &wc))
		sim_poll(s);
	sim_check(s, n == 1 && wc.status == SOFTHCA_WC_REM_ACCESS_ERR, "%d: %s", n,
		  softhca_wc_status_str(wc.status));
	sim_check(s, memory.tries[1] != 0, "not late");
	sim_check(s, at_once || sim_counter(s, 1, "rnr_nak_sent") != 0, "not repeated");
	memory.gone = false;
	sim_duo_close(&d);
	sim_close(s);
}

static void
late_and_gone_in(const struct sim_config *cfg)
{
	late_and_gone_read(cfg, false);
}
SIM_TEST(late_and_gone)

static void
late_and_gone_at_once_in(const struct sim_config *cfg)
{
	late_and_gone_read(cfg, true);
}
SIM_TEST(late_and_gone_at_once)

/*
 * A late READ, then one that the responder always refuses: the QP fails while the first one is
 * unanswered. The requester learns that it was refused, and does not wait for all its retries.
 */
static void
late_then_refused_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_duo d = {.s = s};
	struct softhca_wc wc = {.status = SOFTHCA_WC_SUCCESS};
	uint64_t before;
	uint32_t key;
	int n = 0;

	sim_duo_open(s, &d);
	make_foreign(s, 1, d.mr[1]->rkey);
	memory.s = s;
	memory.answered = 0;
	memory.tries[1] = 0;
	memory.until = s->now + LATE_NS / 100;
	before = resent(s);
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_READ, 4096, 1, S);
	key = d.mr[1]->rkey;
	d.mr[1]->rkey = key ^ 1; /* a key that names no region */
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_READ, 4096, 1, S);
	d.mr[1]->rkey = key;
	for (uint64_t end = s->now + LATE_NS; n == 0 && s->now < end;
	     n = softhca_poll_cq(d.own[0], 1, &wc))
		sim_poll(s);
	sim_check(s, n == 1 && wc.status == SOFTHCA_WC_REM_ACCESS_ERR, "%d: %s", n,
		  softhca_wc_status_str(wc.status));
	sim_check(s, memory.tries[1] != 0, "not late");
	sim_check(s, resent(s) <= before + 2, "%llu retries",
		  (unsigned long long)(resent(s) - before));
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(late_then_refused)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late),
		cmocka_unit_test(late_and_gone),
		cmocka_unit_test(late_and_gone_at_once),
		cmocka_unit_test(late_then_refused),
	};

	return sim_main_of(tests, COUNT(tests));
}
