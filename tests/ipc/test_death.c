/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Abrupt ends: clients killed or stopped in full traffic while others continue, and a daemon killed
 * with clients attached. Times are printed with the load of the machine; only completion is
 * asserted.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"

#define KILLS 40u /* by hand: SOFTHCA_KILLS=1000 */
#define STOPS 10u
#define SOME_DEATHS 6u
#define SOME_QPS 3u
#define PAIRS 32u
#define VICTIM_QPS 8u
#define GIVE_UP_NS (RIG_TIMEOUT_S * UINT64_C(1000000000))

RIG_OF_ALL(rig)
static uint64_t seed = 1;

static uint32_t
random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- a victim: QPs to both sides, posting as fast as it can until it is killed ---- */

static void
flood(struct peer *a, struct peer *b, unsigned int n)
{
	struct softhca_wc wc[16];

	for (uint64_t id = 0;; id++) {
		for (unsigned int i = 0; i < n; i++) {
			peer_post_recv(&b[i], id, 0, 4096);
			peer_post(&a[i], SOFTHCA_WR_RDMA_WRITE, id, 0, 65536, 0);
			peer_post(&b[i], SOFTHCA_WR_RDMA_READ, id, 131072, 65536, 0);
			peer_post(&a[i], SOFTHCA_WR_SEND, id, 0, 4096, 0);
			softhca_poll_cq(a[i].cq, 16, wc);
			softhca_poll_cq(b[i].cq, 16, wc);
		}
	}
}

static int
victim(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	unsigned int n = *(unsigned int *)arg;
	struct peer *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
	int err = 0;

	for (unsigned int i = 0; i < n && err == 0; i++) {
		err = peer_open(&a[i], rig.path[0], &cfg);
		if (err == 0)
			err = peer_open(&b[i], rig.path[1], &cfg);
		if (err == 0)
			err = peer_connect_pair(&a[i], &b[i]);
	}
	if (err == 0)
		err = peer_meet(sock);
	if (err == 0)
		flood(a, b, n);
	return err;
}

static void
stop_bystanders(struct bystanders *by)
{
	bystanders_stop(by);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
}

/* Wait until only the bystanders are left on both sides; returns ns since `from` */
static uint64_t
wait_for_base(uint64_t from)
{
	static const char *const names[] = {"clients", "hca_qps", "hca_mpts", "qps", "mrs"};
	int64_t base[] = {1, 1, 4, 1, 4};
	bool back = false;

	while (!back && rig_now_ns() - from < GIVE_UP_NS) {
		back = true;
		for (unsigned int i = 0; i < 5 && back; i++)
			for (unsigned int side = 0; side < 2 && back; side++)
				back = rig_ask(&rig, "usage", side, names[i]) == base[i];
	}
	return rig_now_ns() - from;
}

struct times {
	uint64_t longest, sum;
	unsigned int count;
};

static void
note(struct times *t, uint64_t ns)
{
	t->sum += ns;
	t->count++;
	if (ns > t->longest)
		t->longest = ns;
}

static void
print_times(const char *what, const struct times *t)
{
	double load = 0;

	getloadavg(&load, 1);
	printf("%s: %u times, clean again after %.1f ms on average, %.1f ms at most (in the daemon: "
	       "%.1f and %.1f ms at most); load %.1f on %ld CPUs\n",
	       what, t->count, (double)t->sum / t->count / 1e6, (double)t->longest / 1e6,
	       (double)rig_ask(&rig, "cleanups", 0, "longest_ns") / 1e6,
	       (double)rig_ask(&rig, "cleanups", 1, "longest_ns") / 1e6, load,
	       sysconf(_SC_NPROCESSORS_ONLN));
}

static void
killed_in_traffic(void **state)
{
	const char *more = getenv("SOFTHCA_KILLS");
	unsigned int qps = VICTIM_QPS, kills = more != NULL ? (unsigned int)atoi(more) : KILLS;
	struct times t = {0};
	struct bystanders by;
	int sock;

	bystanders_start(&by, &rig);
	printf("seed %lu\n", (unsigned long)seed);
	for (unsigned int i = 0; i < kills; i++) {
		pid_t pid;
		uint64_t from;

		qps = 1 + random_below(VICTIM_QPS);
		pid = rig_fork(victim, &qps, &sock);
		assert_int_equal(peer_meet(sock), 0);
		usleep(random_below(20000));
		from = rig_now_ns();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(sock);
		note(&t, wait_for_base(from));
	}
	print_times("killed in full traffic", &t);
	assert_true(t.longest < GIVE_UP_NS);
	stop_bystanders(&by);
}

/* Stopped anywhere, also between reserving a doorbell and writing it, and then killed. */
static void
stopped_and_killed(void **state)
{
	unsigned int qps = 2;
	struct times t = {0};
	struct bystanders by;
	int sock;

	bystanders_start(&by, &rig);
	for (unsigned int i = 0; i < STOPS; i++) {
		pid_t pid = rig_fork(victim, &qps, &sock);
		uint64_t from;

		assert_int_equal(peer_meet(sock), 0);
		usleep(random_below(20000));
		kill(pid, SIGSTOP);
		usleep(20000);
		from = rig_now_ns();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(sock);
		note(&t, wait_for_base(from));
	}
	print_times("stopped, then killed", &t);
	assert_true(t.longest < GIVE_UP_NS);
	stop_bystanders(&by);
}

/* ---- many clients ---- */

struct crowd {
	unsigned int clients, qps; /* QPs of each client */
	struct peer *peer;
	struct softhca_qp **more; /* beyond the peer's own: qps - 1 of each client */
};

/* The further QPs of both ends of a pair of clients, connected to each other. */
static int
connect_more(struct crowd *c, unsigned int pair)
{
	struct peer *a = &c->peer[2 * pair], *b = a + 1;
	struct softhca_qp **qa = c->more + 2ul * pair * (c->qps - 1), **qb = qa + c->qps - 1;
	int err = 0;

	for (unsigned int i = 0; i + 1 < c->qps && err == 0; i++) {
		struct softhca_qp_init_attr attr[] = {
			{.send_cq = a->cq,
			 .recv_cq = a->cq,
			 .cap = {4, 4, 1, 1, 0},
			 .qp_type = SOFTHCA_QPT_RC},
			{.send_cq = b->cq,
			 .recv_cq = b->cq,
			 .cap = {4, 4, 1, 1, 0},
			 .qp_type = SOFTHCA_QPT_RC},
		};

		qa[i] = softhca_create_qp(a->pd, &attr[0]);
		qb[i] = softhca_create_qp(b->pd, &attr[1]);
		if (qa[i] == NULL || qb[i] == NULL) {
			fprintf(stderr, "QP %u: %s\n", i, softhca_last_error(NULL));
			return -1;
		}
		err = peer_connect_qp(a, qa[i], qb[i]->qp_num, 0, 0);
		if (err == 0)
			err = peer_connect_qp(b, qb[i], qa[i]->qp_num, 0, 0);
	}
	return err;
}

static int
gather(struct crowd *c)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	int err = 0;

	c->peer = calloc(c->clients, sizeof(*c->peer));
	c->more = calloc((size_t)c->clients * c->qps, sizeof(*c->more));
	for (unsigned int i = 0; i < c->clients / 2 && err == 0; i++) {
		struct peer *p = &c->peer[2 * i];

		err = peer_open(&p[0], rig.path[0], &cfg);
		if (err == 0)
			err = peer_open(&p[1], rig.path[1], &cfg);
		if (err == 0)
			err = peer_connect_pair(&p[0], &p[1]);
		if (err == 0)
			err = connect_more(c, i);
	}
	return err;
}

/* On every QP in turn; the rest is posted the next time. */
static void
chatter(const struct crowd *c)
{
	for (uint64_t id = 0;; id++) {
		for (unsigned int i = 0; i < c->clients; i++) {
			struct peer *p = &c->peer[i], as = *p;
			struct softhca_wc wc[16];

			if (id % c->qps != 0)
				as.qp = c->more[i * (c->qps - 1ul) + id % c->qps - 1];
			peer_post(&as, SOFTHCA_WR_RDMA_WRITE, id, 0, 65536, 0);
			softhca_poll_cq(p->cq, 16, wc);
		}
	}
}

static int
crowd(int sock, void *arg)
{
	struct crowd *c = arg;
	int err = gather(c);

	if (err == 0)
		err = peer_meet(sock);
	if (err == 0)
		chatter(c);
	return err;
}

/*
 * The daemon's threads close descriptors after the objects are gone, on a busy machine late: the
 * number has to stay the same for a second.
 */
static int
files_at_rest(void)
{
	int n = rig_open_files(rig.pid), before;

	for (unsigned int same = 0; same < 50; same++) {
		before = n;
		usleep(20000);
		n = rig_open_files(rig.pid);
		if (n != before)
			same = 0;
	}
	return n;
}

static int
visitor(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct peer p;

	(void)sock;
	(void)arg;
	return peer_open(&p, rig.path[0], &cfg);
}

static unsigned int
number_of(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? (unsigned int)atoi(text) : otherwise;
}

/*
 * Processes of 64 clients with traffic on all their QPs, attached and killed in turns: in the end
 * the daemon has the objects and descriptors that it had before. By hand, 6,400 clients of 32 QPs:
 * DEATHS=100 DEATHS_QPS=32 test_ipc_death many_after_each_other
 */
static void
many_after_each_other(void **state)
{
	struct crowd c = {.clients = 2 * PAIRS, .qps = number_of("DEATHS_QPS", SOME_QPS)};
	unsigned int deaths = number_of("DEATHS", SOME_DEATHS);
	int files, sock;
	uint64_t from;

	rig_join(rig_fork(visitor, NULL, &sock)); /* opens files that stay open */
	close(sock);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	files = files_at_rest();

	for (unsigned int i = 0; i < deaths; i++) {
		pid_t pid = rig_fork(crowd, &c, &sock);

		assert_int_equal(peer_meet(sock), 0);
		if (i == 0)
			for (unsigned int side = 0; side < 2; side++)
				assert_int_equal(rig_ask(&rig, "usage", side, "qps"),
						 PAIRS * c.qps);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(sock);
	}
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	from = rig_now_ns();
	while (rig_open_files(rig.pid) > files) { /* its threads are closing them */
		if (rig_now_ns() - from > GIVE_UP_NS)
			fail_msg("%d descriptors, %d before", rig_open_files(rig.pid), files);
		usleep(1000);
	}
	printf("%u clients of %u QPs: nothing is left\n", deaths * c.clients, c.qps);
}

/* ---- one client with very much ---- */

#define MANY 1000u

static int
hoarder(int sock, void *arg)
{
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq = NULL;
	void *mem = softhca_alloc(64 << 20);
	int err = softhca_open(rig.path[0], &ctx);

	pd = err == 0 ? softhca_alloc_pd(ctx) : NULL;
	if (pd == NULL)
		return -1;
	for (unsigned int i = 0; i < MANY; i++) {
		struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_INIT, .port_num = 1};
		struct softhca_qp_init_attr qa = {
			.qp_type = SOFTHCA_QPT_RC,
			.cap = {16, 16, 1, 1, 0},
		};
		struct softhca_qp *qp;

		if (i % 8 == 0)
			cq = softhca_create_cq(ctx, &ca);
		qa.send_cq = qa.recv_cq = cq;
		qp = cq != NULL ? softhca_create_qp(pd, &qa) : NULL;
		if (qp == NULL || softhca_reg_mr(pd, mem, 64 << 20, 0) == NULL ||
		    softhca_modify_qp(qp, &a,
				      SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
					      SOFTHCA_QP_ACCESS_FLAGS) != 0) {
			fprintf(stderr, "object %u: %s\n", i, softhca_last_error(ctx));
			return -1;
		}
	}
	peer_meet(sock);
	pause();
	return 0;
}

static void
killed_with_many_objects(void **state)
{
	int sock;
	pid_t pid = rig_fork(hoarder, NULL, &sock);
	int64_t took;

	assert_int_equal(peer_meet(sock), 0);
	assert_int_equal(rig_ask(&rig, "usage", 0, "qps"), MANY);
	kill(pid, SIGKILL);
	took = rig_wait_empty(&rig, 0);
	waitpid(pid, NULL, 0);
	close(sock);
	printf("%u QPs, %u CQs, %u regions of 64 MiB: clean after %.1f ms\n", MANY, MANY / 8, MANY,
	       (double)took / 1e6);
	assert_true(took >= 0);
}

/* A process whose child survives it: the socket stays open, but the client is cleaned up. */
static void
outlived_by_its_child(void **state)
{
	int up[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (pid == 0) {
		const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
		struct peer p;

		if (peer_open(&p, rig.path[0], &cfg) != 0)
			_exit(1);
		if (fork() == 0) {
			sleep(3);
			_exit(0);
		}
		c = 'r';
		_exit(write(up[1], &c, 1) == 1 ? 0 : 1);
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	rig_join(pid);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	close(up[0]);
	close(up[1]);
}

/* ---- the daemon ---- */

struct waiter {
	struct peer *p;
	int result, second;
	uint32_t event;
	uint64_t when;
};

static void *
wait_for_async(void *arg)
{
	struct waiter *w = arg;
	struct softhca_async_event e = {.event_type = 0xffff};

	w->result = softhca_get_async_event(w->p->ctx, &e);
	w->event = e.event_type;
	w->when = rig_now_ns();
	w->second = softhca_get_async_event(w->p->ctx, &e);
	return NULL;
}

static void *
wait_for_completion(void *arg)
{
	struct waiter *w = arg;
	struct softhca_cq *cq;

	w->result = softhca_get_cq_event(w->p->channel, &cq, NULL);
	w->when = rig_now_ns();
	return NULL;
}

static void *
poll_for_ever(void *arg)
{
	struct waiter *w = arg;
	struct softhca_wc wc;

	do {
		w->result = softhca_poll_cq(w->p->cq, 1, &wc);
	} while (w->result >= 0);
	w->when = rig_now_ns();
	return NULL;
}

static void *
ask_for_ever(void *arg)
{
	struct waiter *w = arg;
	struct softhca_port_attr attr;

	do {
		w->result = softhca_query_port(w->p->ctx, 1, &attr);
	} while (w->result == 0);
	w->when = rig_now_ns();
	return NULL;
}

static void
daemon_killed(void **state)
{
	static void *(*const waits[])(void *) = {wait_for_async, wait_for_completion, poll_for_ever,
						 ask_for_ever};
	static const char *const names[] = {"asynchronous event", "completion event", "poll_cq",
					    "query_port"};
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true};
	struct waiter w[4];
	pthread_t thread[4];
	struct rig other;
	struct peer p;
	uint64_t from;

	rig_start(&other, NULL);
	assert_int_equal(peer_open(&p, other.path[0], &cfg), 0);
	assert_int_equal(softhca_req_notify_cq(p.cq, 0), 0);
	for (int i = 0; i < 4; i++) {
		w[i] = (struct waiter){.p = &p};
		assert_int_equal(pthread_create(&thread[i], NULL, waits[i], &w[i]), 0);
	}
	usleep(50000);
	from = rig_now_ns();
	rig_kill(&other);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		printf("daemon killed: %s after %.2f ms\n", names[i],
		       (double)(w[i].when - from) / 1e6);
		assert_true(w[i].when - from < GIVE_UP_NS);
	}
	assert_int_equal(w[0].result, 0);
	assert_int_equal(w[0].event, SOFTHCA_EVENT_DEVICE_FATAL);
	assert_int_equal(w[0].second, -EIO);
	for (int i = 1; i < 4; i++)
		assert_int_equal(w[i].result, -EIO);
	p.qp->state = SOFTHCA_QPS_RTS; /* as if it had been connected */
	assert_int_equal(peer_post(&p, SOFTHCA_WR_RDMA_WRITE, 1, 0, 64, 0), -EIO);
	assert_int_equal(peer_post_recv(&p, 1, 0, 64), -EIO);
	assert_null(softhca_alloc_pd(p.ctx));
	assert_int_equal(softhca_close(p.ctx), 0);
	assert_int_equal(softhca_free(p.buf), 0);
}

/* A daemon that ends as it should, with clients attached */
static void
daemon_ended(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_async_event e;
	struct rig other;
	struct peer p;

	rig_start(&other, NULL);
	assert_int_equal(peer_open(&p, other.path[1], &cfg), 0);
	rig_stop(&other);
	assert_int_equal(softhca_get_async_event(p.ctx, &e), 0);
	assert_int_equal(e.event_type, SOFTHCA_EVENT_DEVICE_FATAL);
	peer_close(&p);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(killed_in_traffic, rig_tidy),
		cmocka_unit_test_teardown(stopped_and_killed, rig_tidy),
		cmocka_unit_test_teardown(many_after_each_other, rig_tidy),
		cmocka_unit_test_teardown(killed_with_many_objects, rig_tidy),
		cmocka_unit_test_teardown(outlived_by_its_child, rig_tidy),
		cmocka_unit_test_teardown(daemon_killed, rig_tidy),
		cmocka_unit_test_teardown(daemon_ended, rig_tidy),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, start, shut_down);
}
