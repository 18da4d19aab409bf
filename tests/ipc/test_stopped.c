/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A daemon that is stopped: posts do not wait for it and succeed until the send queue is full,
 * however small the doorbell page is. No request is lost. A context can be closed, and the daemon
 * does not write to the program's memory when it goes on.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "ipc_rig.h"

#define QPS 512u
#define DEPTH 16u
#define SLOT 8u
#define GIVE_UP_NS (RIG_TIMEOUT_S * UINT64_C(1000000000))
#define ALARM_US 10000
#define LATE 3000 /* alarms: less than the limit of a reply */

_Static_assert(QPS *DEPTH *SLOT <= PEER_BYTES / 2, "a place for each request");

RIG_OF_ALL(rig)

struct ends {
	struct peer a, b;
	struct softhca_cq *cq;
	struct softhca_qp *qa[QPS], *qb[QPS];
};

static void
alarms_every(suseconds_t us)
{
	const struct itimerval often = {{0, us}, {0, us}};

	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static int
tidy(void **state)
{
	alarms_every(0);
	kill(rig.pid, SIGCONT);
	return rig_tidy(state);
}

static struct softhca_qp *
make_qp(const struct peer *p, struct softhca_cq *cq)
{
	struct softhca_qp_init_attr qa = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};

	return softhca_create_qp(p->pd, &qa);
}

static void
ends_open(struct ends *e)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_cq_init_attr ca = {.cqe = QPS * DEPTH};

	assert_int_equal(peer_open(&e->a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&e->b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&e->a, &e->b), 0);
	e->cq = softhca_create_cq(e->a.ctx, &ca);
	assert_non_null(e->cq);
	for (unsigned int i = 0; i < QPS; i++) {
		e->qa[i] = make_qp(&e->a, e->cq);
		e->qb[i] = make_qp(&e->b, e->b.cq);
		assert_non_null(e->qa[i]);
		assert_non_null(e->qb[i]);
		assert_int_equal(peer_connect_qp(&e->a, e->qa[i], e->qb[i]->qp_num, 1, 7), 0);
		assert_int_equal(peer_connect_qp(&e->b, e->qb[i], e->qa[i]->qp_num, 7, 1), 0);
	}
}

static void
ends_close(struct ends *e)
{
	for (unsigned int i = 0; i < QPS; i++) {
		assert_int_equal(softhca_destroy_qp(e->qa[i]), 0);
		assert_int_equal(softhca_destroy_qp(e->qb[i]), 0);
	}
	assert_int_equal(softhca_destroy_cq(e->cq), 0);
	peer_close(&e->a);
	peer_close(&e->b);
}

/* WRITE number k of QP i has its own target. */
static int
post(struct ends *e, unsigned int i, unsigned int k)
{
	uint64_t at = (i * DEPTH + k % DEPTH) * SLOT;
	struct softhca_sge sge = {(uintptr_t)e->a.buf + at, SLOT, e->a.mr->lkey};
	struct softhca_send_wr *bad, wr = {
					     .wr_id = i * DEPTH + k,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = SOFTHCA_WR_RDMA_WRITE,
					     .send_flags = SOFTHCA_SEND_SIGNALED,
					     .wr.rdma = {e->b.me.addr + at, e->b.me.rkey},
				     };

	return softhca_post_send(e->qa[i], &wr, &bad);
}

static void
reap(struct ends *e)
{
	uint64_t give_up = rig_now_ns() + GIVE_UP_NS;
	unsigned int next[QPS] = {0}, got = 0;
	struct softhca_wc wc[32];

	while (got < QPS * DEPTH) {
		int n = softhca_poll_cq(e->cq, 32, wc);

		assert_true(n >= 0 && rig_now_ns() < give_up);
		for (int i = 0; i < n; i++) {
			assert_int_equal(wc[i].status, SOFTHCA_WC_SUCCESS);
			assert_int_equal(wc[i].wr_id % DEPTH, next[wc[i].wr_id / DEPTH]++);
		}
		got += (unsigned int)n;
		if (n == 0)
			usleep(100);
	}
}

static void
posts_go_on(void **state)
{
	struct ends *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	ends_open(e);
	for (uint32_t round = 1; round <= 2; round++) {
		peer_fill(e->a.buf, QPS * DEPTH * SLOT, round);
		rig_suspend(&rig);
		for (unsigned int k = 0; k < DEPTH; k++)
			for (unsigned int i = 0; i < QPS; i++)
				assert_int_equal(post(e, i, k), 0);
		for (unsigned int i = 0; i < QPS; i++)
			assert_int_equal(post(e, i, DEPTH), -ENOMEM);
		sleep(1);
		kill(rig.pid, SIGCONT);
		reap(e);
		assert_true(peer_verify(e->b.buf, QPS * DEPTH * SLOT, round));
	}
	assert_int_equal(rig_ask(&rig, "device", 0, "sq_catas"), 0);
	ends_close(e);
	free(e);
}

/* The file in which memory at addr lies */
static unsigned long
inode_of(const void *addr)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long first, end, inode = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &first, &end, &inode) == 3 &&
		    (uintptr_t)addr >= first && (uintptr_t)addr < end)
			break;
	fclose(maps);
	return inode;
}

static volatile sig_atomic_t late;

/* A close that waits for the daemon ends here. */
static void
on_alarm(int number)
{
	static volatile sig_atomic_t count;

	(void)number;
	if (++count < LATE)
		return;
	late = 1;
	kill(rig.pid, SIGCONT);
}

/*
 * A context is closed while the daemon is stopped with requests to its memory; signals do not make
 * the wait longer. That memory is not used again: the program's next memory lies in another file,
 * which the requests cannot reach.
 */
static void
close_does_not_wait(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct sigaction action = {.sa_handler = on_alarm};
	unsigned long file;
	struct peer a, b;
	uint8_t *fresh;

	assert_int_equal(peer_open(&a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&a, &b), 0);
	file = inode_of(a.buf);
	rig_suspend(&rig);
	for (unsigned int i = 0; i < DEPTH; i++)
		assert_int_equal(peer_post(&b, SOFTHCA_WR_RDMA_WRITE, i, 0, 65536, 0), 0);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	alarms_every(ALARM_US);
	assert_int_equal(softhca_close(a.ctx), 0);
	alarms_every(0);
	assert_false(late);
	assert_int_equal(softhca_free(a.buf), 0);
	fresh = softhca_alloc(PEER_BYTES);
	assert_non_null(fresh);
	assert_int_not_equal(inode_of(fresh), file);
	peer_fill(fresh, PEER_BYTES, 3);
	kill(rig.pid, SIGCONT);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	assert_true(peer_verify(fresh, PEER_BYTES, 3));
	assert_int_equal(softhca_free(fresh), 0);
	peer_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(posts_go_on, tidy),
		cmocka_unit_test_teardown(close_does_not_wait, tidy),
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
