/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A writer of a CQ that stops between two instructions, while other writers and the client go on.
 * They are the handler of a signal, which a timer raises at any instruction of this thread.
 */

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "../rig.h"

#define CQN 2u
#define LOG 3u
#define SIZE (1u << LOG)
#define INTERRUPTS 5000
#define EVERY_US 50

static struct {
	struct rig *r;
	uint32_t consumed;
	volatile sig_atomic_t interrupts, refused;
} busy;

/* Writes a CQE, which the client consumes at once; false: the CQ has no slot. */
static bool
put(void)
{
	struct hca_cq_record *record = (void *)(rig_cq_mem(busy.r, CQN) + SIZE * HCA_CQE_SIZE);
	struct hca_cq_batch b = {0};
	struct hca_cqe *c = hca_cq_reserve(busy.r->h->core, CQN, &b, false, HCA_STAGE_REQ_RX);
	uint32_t n;

	if (c == NULL)
		return false;
	hca_cq_publish(c, HCA_OP_SEND | 1u << 8);
	__atomic_add_fetch(&busy.consumed, 1, __ATOMIC_SEQ_CST);
	do { /* again if the handler has stored more meanwhile */
		n = __atomic_load_n(&busy.consumed, __ATOMIC_SEQ_CST);
		__atomic_store_n(&record->consumer, hca_cpu_to_le32(n), __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&busy.consumed, __ATOMIC_SEQ_CST) != n);
	return true;
}

/* More CQEs than slots: the device reads the consumer index again. */
static void
interrupt(int number)
{
	(void)number;
	busy.interrupts++;
	for (uint32_t i = 0; i < SIZE + 2; i++)
		busy.refused += !put();
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_eq(r, 0, 2);
	rig_cq(r, CQN, LOG);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

/* The CQ has a free slot at any time, so no writer finds it full. */
static void
never_full(void **state)
{
	struct itimerval often = {{0, EVERY_US}, {0, EVERY_US}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = interrupt}, ignore = {.sa_handler = SIG_IGN};
	bool all = true;

	busy.r = *state;
	busy.r->h->core->cq[CQN].single_writer = 0;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (all && busy.refused == 0 && busy.interrupts < INTERRUPTS)
		all = put();
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &ignore, NULL); /* also one that is pending */
	assert_true(all);
	assert_int_equal(busy.refused, 0);
	assert_int_equal(busy.r->h->core->cq[CQN].state, HCA_CQ_LIVE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(never_full, setup, teardown),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
