/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion events with real threads: workers, a thread that forwards events, threads that post,
 * block and poll. Times are not asserted, only that each wakeup comes.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "sim_duo.h"
#include "sim_test.h"

#define LOST_MS 60000 /* an event that takes longer counts as lost */
#define ENOUGH_S 3    /* fewer rounds if many threads share few CPUs; SIM_SECONDS overrides it */

struct pump {
	struct sim *s;
	pthread_t thread;
	int stop;
};

/* A daemon's event thread: forwards events of both HCAs to the channels. */
static void *
pump_main(void *arg)
{
	struct pump *p = arg;

	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED))
		for (unsigned int i = 0; i < 2; i++)
			if (hca_driver_poll(p->s->side[i].drv) == 0)
				sched_yield();
	return NULL;
}

static void
pump_start(struct pump *p, struct sim *s)
{
	*p = (struct pump){.s = s};
	sim_check(s, pthread_create(&p->thread, NULL, pump_main, p) == 0, "thread");
}

static void
pump_stop(struct pump *p)
{
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELAXED);
	pthread_join(p->thread, NULL);
}

static struct softhca_cq *
cq_on(struct sim *s, struct softhca_comp_channel *ch, uint32_t vector, void *context)
{
	struct softhca_cq_init_attr ca = {.cqe = 64,
					  .channel = ch,
					  .comp_vector = vector,
					  .cq_context = context};
	struct softhca_cq *cq = softhca_create_cq(s->side[0].ctx, &ca);

	sim_check(s, cq != NULL, "create_cq");
	return cq;
}

/* --- arming against completing -------------------- */

struct race {
	struct sim_duo d;
	struct softhca_comp_channel *channel;
	struct softhca_cq *cq;
	uint32_t rounds;
	uint32_t wanted; /* number of requests that the consumer has asked for */
	bool over;	 /* it asks for no more */
	uint32_t slept, waited;
	const char *failed;
};

/* Wait until the consumer has asked for another round, or has ended. */
static bool
race_asked(struct race *r, uint32_t i)
{
	while (__atomic_load_n(&r->wanted, __ATOMIC_ACQUIRE) == i) {
		if (__atomic_load_n(&r->over, __ATOMIC_RELAXED))
			return false;
		sched_yield();
	}
	return true;
}

static void *
race_poster(void *arg)
{
	struct race *r = arg;
	struct sim_rng rng = {.s = 99};

	for (uint32_t i = 0; race_asked(r, i); i++) {
		for (volatile uint32_t spin = sim_below(&rng, 500); spin > 0;)
			spin = spin - 1;
		sim_duo_post(&r->d, 0, SOFTHCA_WR_RDMA_WRITE, 8, 1, 0);
	}
	return NULL;
}

/* The standard sequence: arm, poll once more, and only then sleep. */
static bool
race_round(struct race *r)
{
	struct pollfd p = {.fd = r->channel->fd, .events = POLLIN};
	struct softhca_cq *cq;

	softhca_req_notify_cq(r->cq, 0);
	if (sim_cq_drain(r->cq, NULL) == 1)
		return true;
	r->slept++;
	while (sim_cq_drain(r->cq, NULL) == 0) {
		if (poll(&p, 1, LOST_MS) != 1) {
			r->failed = "a wake-up was lost";
			return false;
		}
		/* of this round, or of an earlier one whose completion was found by polling */
		if (softhca_get_cq_event(r->channel, &cq, NULL) != 0 || cq != r->cq) {
			r->failed = "an event of something else";
			return false;
		}
		softhca_ack_cq_events(cq, 1);
		r->waited++;
		softhca_req_notify_cq(r->cq, 0);
	}
	return true;
}

/*
 * Waits between asking and arming so that the completion is earlier in about half of the rounds;
 * `longest` is adapted.
 */
static void *
race_consumer(void *arg)
{
	struct race *r = arg;
	struct sim_rng rng = {.s = 7};
	uint32_t longest = 4000, i;
	time_t end = time(NULL) + (time_t)sim_env("SIM_SECONDS", ENOUGH_S);

	for (i = 0; i < r->rounds && time(NULL) < end; i++) {
		uint32_t slept = r->slept;

		__atomic_store_n(&r->wanted, i + 1, __ATOMIC_RELEASE);
		for (volatile uint32_t spin = sim_below(&rng, longest); spin > 0;)
			spin = spin - 1;
		if (!race_round(r))
			break;
		longest = r->slept != slept ? longest + 20 : longest > 120 ? longest - 20 : 100;
	}
	r->rounds = i;
	__atomic_store_n(&r->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void
race_in(const struct sim_config *cfg, uint32_t rounds)
{
	struct sim *s = sim_open(cfg);
	struct race r = {.rounds = rounds};
	struct softhca_cq *cq;
	pthread_t t[2];
	struct pump p;

	r.channel = softhca_create_comp_channel(s->side[0].ctx);
	sim_check(s, r.channel != NULL, "channel");
	fcntl(r.channel->fd, F_SETFL, O_NONBLOCK);
	r.cq = cq_on(s, r.channel, 0, NULL);
	r.d.scq[0] = r.cq;
	sim_duo_open(s, &r.d);
	pump_start(&p, s);
	sim_check(s, pthread_create(&t[0], NULL, race_consumer, &r) == 0, "thread");
	sim_check(s, pthread_create(&t[1], NULL, race_poster, &r) == 0, "thread");
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	sim_check(s, r.failed == NULL, "%s", r.failed);
	print_message("%u rounds, %u slept, %u events waited for\n", r.rounds, r.slept, r.waited);
	pump_stop(&p);
	while (softhca_get_cq_event(r.channel, &cq, NULL) == 0)
		softhca_ack_cq_events(cq, 1);
	sim_duo_close(&r.d);
	sim_check(s, softhca_destroy_cq(r.cq) == 0, "destroy_cq");
	sim_check(s, softhca_destroy_comp_channel(r.channel) == 0, "destroy_channel");
	sim_close(s);
}

/* --- many CQs, one channel, several threads that block on it -------------------- */

#define CQS 12u
#define READERS 4u

struct crowd {
	struct softhca_comp_channel *channel;
	struct softhca_cq *cq[CQS];
	uint32_t events[CQS]; /* received, per CQ */
	uint32_t got, stop;
};

static void *
crowd_reader(void *arg)
{
	struct crowd *c = arg;
	struct softhca_cq *cq;
	void *context;

	while (softhca_get_cq_event(c->channel, &cq, &context) == 0) {
		uint32_t i = (uint32_t)(uintptr_t)context;

		if (i < CQS && c->cq[i] == cq)
			__atomic_fetch_add(&c->events[i], 1, __ATOMIC_RELAXED);
		softhca_ack_cq_events(cq, 1);
		__atomic_fetch_add(&c->got, 1, __ATOMIC_RELEASE);
		if (__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE))
			break;
	}
	return NULL;
}

static void
await(struct sim *s, struct crowd *c, uint32_t want)
{
	uint64_t end = s->now + LOST_MS * UINT64_C(1000000);
	uint32_t got;

	do {
		sim_poll(s);
		got = __atomic_load_n(&c->got, __ATOMIC_ACQUIRE);
	} while (got < want && s->now < end);
	sim_check(s, got == want, "%u events, not %u", got, want);
}

static void
crowd_in(const struct sim_config *cfg, uint32_t rounds)
{
	struct sim *s = sim_open(cfg);
	struct sim_duo d[CQS];
	struct crowd c = {0};
	pthread_t t[READERS];
	uint32_t total = 0;

	c.channel = softhca_create_comp_channel(s->side[0].ctx);
	memset(d, 0, sizeof(d));
	for (uint32_t i = 0; i < CQS; i++) {
		c.cq[i] = cq_on(s, c.channel, i % s->side[0].ctx->num_comp_vectors,
				(void *)(uintptr_t)i);
		d[i].scq[0] = c.cq[i];
		sim_duo_open(s, &d[i]);
	}
	for (uint32_t i = 0; i < READERS; i++)
		sim_check(s, pthread_create(&t[i], NULL, crowd_reader, &c) == 0, "thread");
	for (uint32_t k = 0; k < rounds; k++) {
		for (uint32_t i = 0; i < CQS; i++)
			softhca_req_notify_cq(c.cq[i], 0);
		for (uint32_t i = 0; i < CQS; i++)
			sim_duo_post(&d[i], 0, SOFTHCA_WR_RDMA_WRITE, 8, 3, 0);
		total += CQS;
		await(s, &c, total);
		/* the other two create no completions */
		for (uint32_t i = 0; i < CQS; i++)
			for (uint32_t n = 0; n < 3; sim_poll(s))
				n += sim_cq_drain(c.cq[i], NULL);
		for (uint32_t i = 0; i < CQS; i++)
			sim_check(s, c.events[i] == k + 1, "CQ %u: %u events after %u rounds", i,
				  c.events[i], k + 1);
	}
	/* an event for each reader, so that it ends */
	__atomic_store_n(&c.stop, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < READERS; i++) {
		softhca_req_notify_cq(c.cq[i], 0);
		sim_duo_post(&d[i], 0, SOFTHCA_WR_RDMA_WRITE, 8, 1, 0);
	}
	await(s, &c, total + READERS);
	for (uint32_t i = 0; i < READERS; i++)
		pthread_join(t[i], NULL);
	sim_settle(s);
	for (uint32_t i = 0; i < CQS; i++) {
		sim_duo_close(&d[i]);
		sim_check(s, softhca_destroy_cq(c.cq[i]) == 0, "destroy_cq");
	}
	sim_check(s, softhca_destroy_comp_channel(c.channel) == 0, "destroy_channel");
	sim_close(s);
}

/* --- resizing while others post and poll -------------------- */

struct busy {
	struct sim *s;
	struct sim_duo *d;
	struct softhca_cq *cq;
	uint32_t requests, polled;
	bool failed; /* the following members tell how */
	uint64_t wr_id;
	uint32_t status;
};

static void *
busy_poster(void *arg)
{
	struct busy *b = arg;
	struct softhca_sge sge = {(uintptr_t)b->d->buf[0], 32, b->d->mr[0]->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED,
				     .wr.rdma = {(uintptr_t)b->d->buf[1], b->d->mr[1]->rkey}};
	struct softhca_send_wr *bad;

	for (uint32_t i = 0; i < b->requests && !__atomic_load_n(&b->failed, __ATOMIC_ACQUIRE);) {
		wr.wr_id = i;
		if (i - __atomic_load_n(&b->polled, __ATOMIC_ACQUIRE) < 60 &&
		    softhca_post_send(b->d->qp[0], &wr, &bad) == 0)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static void *
busy_poller(void *arg)
{
	struct busy *b = arg;
	struct softhca_wc wc[8];

	while (b->polled < b->requests) {
		int n = softhca_poll_cq(b->cq, 8, wc);

		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id == b->polled + (uint32_t)i &&
			    wc[i].status == SOFTHCA_WC_SUCCESS)
				continue;
			b->wr_id = wc[i].wr_id;
			b->status = wc[i].status;
			__atomic_store_n(&b->failed, true, __ATOMIC_RELEASE);
			return NULL;
		}
		if (n > 0)
			__atomic_store_n(&b->polled, b->polled + (uint32_t)n, __ATOMIC_RELEASE);
		else
			sched_yield();
	}
	return NULL;
}

static void
resize_in(const struct sim_config *cfg, uint32_t requests)
{
	struct sim *s = sim_open(cfg);
	struct sim_duo first = {0}, d = {0};
	struct busy b = {.s = s, .d = &d, .requests = requests};
	uint32_t done = 0;
	pthread_t t[2];

	/* with several pipes the second QP is in another one than the CEU, which switches the CQ */
	sim_duo_open(s, &first);
	b.cq = cq_on(s, NULL, 0, NULL);
	d.scq[0] = b.cq;
	sim_duo_open(s, &d);
	sim_check(s, pthread_create(&t[0], NULL, busy_poster, &b) == 0, "thread");
	sim_check(s, pthread_create(&t[1], NULL, busy_poller, &b) == 0, "thread");
	while (__atomic_load_n(&b.polled, __ATOMIC_ACQUIRE) < requests &&
	       !__atomic_load_n(&b.failed, __ATOMIC_ACQUIRE)) {
		/* never fewer than the poster leaves unpolled */
		int rc = softhca_resize_cq(b.cq, done % 3 == 0 ? 64 : done % 3 == 1 ? 1024 : 256);

		sim_check(s, rc == 0, "resize_cq: %d: %s", rc, softhca_last_error(NULL));
		done++;
		sim_poll(s);
	}
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	sim_check(s, !b.failed, "after %u completions: wr_id %llu, status %u", b.polled,
		  (unsigned long long)b.wr_id, b.status);
	print_message("%u requests, %u resizes\n", requests, done);
	sim_duo_close(&first);
	sim_duo_close(&d);
	sim_check(s, softhca_destroy_cq(b.cq) == 0, "destroy_cq");
	sim_close(s);
}

/* --- all of them in all layouts; more workers, fewer rounds -------------------- */

static void
in_layouts(const char *test, void (*fn)(const struct sim_config *cfg, uint32_t n), uint32_t n)
{
	static const unsigned int part[] = {1, 4, 20};

	for (unsigned int i = 0; i < 3; i++) {
		const struct sim_config cfg = {.layout = (enum hca_layout)i,
					       .executor = SIM_THREADS,
					       .all_cpus = true,
					       .seed = sim_env("SIM_SEED", 1)};

		if (getenv("SIM_LAYOUT") != NULL &&
		    strcmp(getenv("SIM_LAYOUT"), sim_layout_names[i]) != 0)
			continue;
		sim_set_repeat("SIM_SEED=%llu SIM_LAYOUT=%s CMOCKA_TEST_FILTER=%s %s",
			       (unsigned long long)cfg.seed, sim_layout_names[i], test,
			       "test_notify");
		fn(&cfg, (uint32_t)sim_env("SIM_ROUNDS", n) / part[i]);
	}
}

#define THREADS_TEST(name, n) \
	static void name(void **state) \
	{ \
		(void)state; \
		in_layouts(#name, name##_in, n); \
	}

THREADS_TEST(race, 100000)
THREADS_TEST(crowd, 200)
THREADS_TEST(resize, 60000)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(race),
		cmocka_unit_test(crowd),
		cmocka_unit_test(resize),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
