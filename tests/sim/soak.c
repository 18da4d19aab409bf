/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Storms with real threads: clients whose QPs are destroyed or reset, whose regions are
 * deregistered, and which are closed with everything in use, all under traffic; then HCAs that are
 * closed and reset under traffic and brought up again. Meanwhile two bystanders do verified
 * ping-pong: one is another client of the same two HCAs (until those are reset), one has two HCAs
 * of its own. Their latency before and during the storms is printed. In the end nothing may be in
 * use.
 *
 *  soak [--seconds N] [--layout rtc|txrx|full] [--seed N]
 */

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_malloc.h>

#include "abi_bar.h"
#include "abi_cmd.h"
#include "sim.h"

#define QPS 8u
#define DEPTH 32u
#define REGION (1u << 20)
#define MSG_MAX 8192u
#define SAMPLES (1u << 20)
#define GIVE_UP_NS 60000000000ull
#define ALL_ACCESS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)

/* One client of each of two HCAs, with QPs between them. */
struct ends {
	struct sim *s;
	uint32_t qps;
	struct softhca_context *ctx[2];
	struct softhca_pd *pd[2];
	struct softhca_mr *mr[2];
	struct softhca_comp_channel *channel[2];
	struct softhca_cq *cq[2];
	struct softhca_qp *qp[2][QPS];
	uint8_t *mem[2];
	struct sim_rng rng;
};

struct latency {
	uint32_t *ns;
	uint32_t n;
};

/* A thread that does ping-pong and checks every byte. */
struct bystander {
	const char *name;
	struct ends e;
	pthread_t thread;
	atomic_bool stop;
	atomic_int phase; /* 0: before the storms, 1: during them */
	atomic_ullong rounds;
	unsigned long long before; /* rounds, when the storms began */
	struct latency latency[2];
};

/* A thread that keeps QPs full, whatever becomes of its requests. */
struct load {
	struct ends e;
	pthread_t thread;
	atomic_bool stop;
	atomic_ullong done;
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- ends ---- */

static void
connect_qp(struct ends *e, unsigned int i, uint32_t n)
{
	sim_connect_rc(e->s, i, e->qp[i][n], e->qp[1 - i][n]->qp_num,
		       ALL_ACCESS & ~SOFTHCA_ACCESS_LOCAL_WRITE);
}

static void
ends_open(struct ends *e, struct sim *s, uint32_t qps, uint64_t seed)
{
	struct softhca_cq_init_attr ca = {.cqe = 2 * DEPTH * qps};

	e->s = s;
	e->qps = qps;
	e->rng.s = seed;
	for (unsigned int i = 0; i < 2; i++) {
		struct softhca_qp_init_attr qa = {.cap = {.max_send_wr = DEPTH,
							  .max_recv_wr = DEPTH,
							  .max_send_sge = 1,
							  .max_recv_sge = 1},
						  .qp_type = SOFTHCA_QPT_RC,
						  .sq_sig_all = 1};

		e->ctx[i] = sim_client(s, i);
		e->mem[i] = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
		e->pd[i] = softhca_alloc_pd(e->ctx[i]);
		e->mr[i] = softhca_reg_mr(e->pd[i], e->mem[i], REGION, ALL_ACCESS);
		e->channel[i] = ca.channel = softhca_create_comp_channel(e->ctx[i]);
		e->cq[i] = softhca_create_cq(e->ctx[i], &ca);
		sim_check(s, e->mr[i] != NULL && e->cq[i] != NULL, "MR or CQ: %s",
			  softhca_last_error(e->ctx[i]));
		qa.send_cq = qa.recv_cq = e->cq[i];
		for (uint32_t n = 0; n < qps; n++) {
			e->qp[i][n] = softhca_create_qp(e->pd[i], &qa);
			sim_check(s, e->qp[i][n] != NULL, "create_qp: %s",
				  softhca_last_error(e->ctx[i]));
		}
	}
	for (uint32_t n = 0; n < qps; n++) {
		connect_qp(e, 0, n);
		connect_qp(e, 1, n);
	}
}

/* The client closes everything that is left; then its memory must not be accessed any more. */
static void
ends_close(struct ends *e)
{
	for (unsigned int i = 0; i < 2; i++) {
		softhca_close(e->ctx[i]);
		munmap(e->mem[i], REGION);
	}
}

static int
post_one(struct ends *e, unsigned int i, uint32_t n, uint32_t op, uint32_t off, uint32_t len,
	 uint32_t remote)
{
	struct softhca_sge sge = {(uintptr_t)e->mem[i] + off, len, e->mr[i]->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = op,
				     .wr.rdma = {(uintptr_t)e->mem[1 - i] + remote,
						 e->mr[1 - i]->rkey}};
	struct softhca_send_wr *bad;

	return softhca_post_send(e->qp[i][n], &wr, &bad);
}

static void
post_receive(struct ends *e, unsigned int i, uint32_t n)
{
	struct softhca_sge sge = {(uintptr_t)e->mem[i] + REGION / 4 * 3, MSG_MAX, e->mr[i]->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	softhca_post_recv(e->qp[i][n], &wr, &bad);
}

/*
 * Requests of many QPs run concurrently, so a side's memory that is read and memory that is written
 * are separate: the first quarter is sent from, the second is the target of READs, the third their
 * source, the last is written by the peer.
 */
static int
post_any(struct ends *e, unsigned int i, uint32_t n)
{
	static const uint32_t op[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ, SOFTHCA_WR_SEND};
	const uint32_t quarter = REGION / 4;
	uint32_t k = sim_below(&e->rng, 3), off = sim_below(&e->rng, quarter - MSG_MAX);
	bool read = op[k] == SOFTHCA_WR_RDMA_READ;

	return post_one(e, i, n, op[k], (read ? quarter : 0) + off, sim_below(&e->rng, MSG_MAX),
			(read ? 2 : 3) * quarter + off);
}

/* Post a random request and a receive on every QP of both sides until the queues are full. */
static unsigned int
post_everywhere(struct ends *e, unsigned int each)
{
	unsigned int posted = 0;

	for (unsigned int i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < e->qps; n++) {
			for (unsigned int k = 0; k < each; k++) {
				post_receive(e, i, n);
				posted += post_any(e, i, n) == 0;
			}
		}
	}
	return posted;
}

static unsigned int
drain(struct ends *e)
{
	struct softhca_wc wc[32];
	unsigned int n = 0;
	int got;

	for (unsigned int i = 0; i < 2; i++)
		while ((got = softhca_poll_cq(e->cq[i], 32, wc)) > 0)
			n += (unsigned int)got;
	return n;
}

static void
run_a_while(struct ends *e)
{
	for (uint32_t n = sim_below(&e->rng, 50); n > 0; n--) {
		drain(e);
		sim_poll(e->s);
	}
}

/* ---- bystander ---- */

static void
wait_one(struct bystander *b)
{
	uint64_t began = now_ns();
	struct softhca_wc wc;

	while (softhca_poll_cq(b->e.cq[0], 1, &wc) == 0) {
		sched_yield();
		sim_check(b->e.s, now_ns() - began < GIVE_UP_NS, "bystander %s: no completion",
			  b->name);
	}
	sim_check(b->e.s, wc.status == SOFTHCA_WC_SUCCESS, "bystander %s: %s", b->name,
		  softhca_wc_status_str(wc.status));
}

static void
request(struct bystander *b, uint32_t op, uint32_t off, uint32_t len)
{
	while (post_one(&b->e, 0, 0, op, off, len, REGION / 2 + off) != 0)
		sched_yield(); /* the doorbell page is full for the moment */
	wait_one(b);
}

static void
note(struct latency *l, uint64_t ns)
{
	uint32_t v = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;

	/* when it is full, new samples replace old ones in turn */
	l->ns[l->n % SAMPLES] = v;
	l->n++;
}

/* WRITE a block, READ it back over zeros, and compare; also the other side's memory itself. */
static void *
bystander_run(void *arg)
{
	struct bystander *b = arg;
	struct ends *e = &b->e;
	uint8_t want[MSG_MAX];

	while (!atomic_load(&b->stop)) {
		uint32_t len = 1 + sim_below(&e->rng, MSG_MAX);
		uint32_t off = sim_below(&e->rng, REGION / 2 - MSG_MAX);
		uint8_t seed = (uint8_t)sim_random(&e->rng);
		uint64_t began;

		for (uint32_t i = 0; i < len; i++)
			want[i] = (uint8_t)(seed + i * 7);
		memcpy(e->mem[0] + off, want, len);
		began = now_ns();
		request(b, SOFTHCA_WR_RDMA_WRITE, off, len);
		sim_check(e->s, memcmp(e->mem[1] + REGION / 2 + off, want, len) == 0,
			  "bystander %s: wrong bytes written", b->name);
		memset(e->mem[0] + off, 0, len);
		request(b, SOFTHCA_WR_RDMA_READ, off, len);
		note(&b->latency[atomic_load(&b->phase)], now_ns() - began);
		sim_check(e->s, memcmp(e->mem[0] + off, want, len) == 0,
			  "bystander %s: wrong bytes read", b->name);
		atomic_fetch_add(&b->rounds, 1);
	}
	return NULL;
}

static void
bystander_start(struct bystander *b, const char *name, struct sim *s, uint64_t seed)
{
	b->name = name;
	ends_open(&b->e, s, 1, seed);
	for (unsigned int p = 0; p < 2; p++)
		b->latency[p].ns = malloc(SAMPLES * sizeof(uint32_t));
	pthread_create(&b->thread, NULL, bystander_run, b);
}

/* Its latency is noted as that of the storms from now on. */
static void
bystander_storms(struct bystander *b)
{
	atomic_store(&b->phase, 1);
	b->before = atomic_load(&b->rounds);
}

/* Has it done a whole round since then? One that was under way may have been noted earlier. */
static bool
bystander_has_run(const struct bystander *b)
{
	return atomic_load(&b->rounds) >= b->before + 2;
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void
print_latency(const char *name, const char *when, struct latency *l)
{
	uint32_t n = l->n < SAMPLES ? l->n : SAMPLES;

	if (n == 0)
		return;
	qsort(l->ns, n, sizeof(*l->ns), by_value);
	printf("bystander %-10s %-7s %9u rounds, WRITE + READ us: p50 %.1f p99 %.1f p99.9 %.1f "
	       "max %.1f\n",
	       name, when, l->n, l->ns[n / 2] / 1e3, l->ns[n - 1 - n / 100] / 1e3,
	       l->ns[n - 1 - n / 1000] / 1e3, l->ns[n - 1] / 1e3);
}

static void
bystander_stop(struct bystander *b)
{
	atomic_store(&b->stop, true);
	pthread_join(b->thread, NULL);
	ends_close(&b->e);
	print_latency(b->name, "before", &b->latency[0]);
	print_latency(b->name, "during", &b->latency[1]);
	sim_check(b->e.s, b->latency[1].n != 0, "bystander %s did nothing", b->name);
	for (unsigned int p = 0; p < 2; p++)
		free(b->latency[p].ns);
}

/* ---- load ---- */

static void *
load_run(void *arg)
{
	struct load *l = arg;

	while (!atomic_load(&l->stop)) {
		post_everywhere(&l->e, 1);
		atomic_fetch_add(&l->done, drain(&l->e));
		sched_yield();
	}
	return NULL;
}

static void
load_start(struct load *l, struct sim *s, uint64_t seed)
{
	ends_open(&l->e, s, QPS, seed);
	atomic_store(&l->stop, false);
	pthread_create(&l->thread, NULL, load_run, l);
}

static void
load_stop(struct load *l)
{
	atomic_store(&l->stop, true);
	pthread_join(l->thread, NULL);
	ends_close(&l->e);
}

/* ---- storms of objects ---- */

static void
destroy_all(struct ends *e)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < e->qps; n++)
			sim_check(e->s, softhca_destroy_qp(e->qp[i][n]) == 0, "destroy_qp: %s",
				  softhca_last_error(e->ctx[i]));
		sim_check(e->s,
			  softhca_destroy_cq(e->cq[i]) == 0 &&
				  softhca_destroy_comp_channel(e->channel[i]) == 0 &&
				  softhca_dereg_mr(e->mr[i]) == 0 &&
				  softhca_dealloc_pd(e->pd[i]) == 0,
			  "destroy: %s", softhca_last_error(e->ctx[i]));
	}
}

/* After dereg_mr() the memory belongs to its owner alone. */
static void
deregister(struct ends *e)
{
	unsigned int i = sim_below(&e->rng, 2);
	uint8_t fill = (uint8_t)sim_random(&e->rng);

	sim_check(e->s, softhca_dereg_mr(e->mr[i]) == 0, "dereg_mr: %s",
		  softhca_last_error(e->ctx[i]));
	memset(e->mem[i], fill, REGION);
	run_a_while(e);
	for (uint32_t at = 0; at < REGION; at++)
		sim_check(e->s, e->mem[i][at] == fill, "byte %u changed after dereg_mr", at);
}

static void
to_state(struct ends *e, uint32_t state)
{
	const struct softhca_qp_attr q = {.qp_state = state};

	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t n = 0; n < e->qps; n++)
			sim_check(e->s, softhca_modify_qp(e->qp[i][n], &q, SOFTHCA_QP_STATE) == 0,
				  "modify_qp: %s", softhca_last_error(e->ctx[i]));
}

static void
reset_and_reuse(struct ends *e)
{
	to_state(e, SOFTHCA_QPS_RESET);
	for (uint32_t n = 0; n < e->qps; n++) {
		connect_qp(e, 0, n);
		connect_qp(e, 1, n);
	}
	post_everywhere(e, DEPTH / 2);
	run_a_while(e);
}

static void
fail_and_flush(struct ends *e)
{
	to_state(e, SOFTHCA_QPS_ERR);
	run_a_while(e);
}

static void
leave_everything(struct ends *e)
{
}

static void (*const storms[])(struct ends *e) = {
	destroy_all, deregister, reset_and_reuse, fail_and_flush, leave_everything,
};

#define STORMS (sizeof(storms) / sizeof(storms[0]))

static void
object_storm(struct sim *s, struct sim_rng *rng)
{
	struct ends e = {0};

	ends_open(&e, s, QPS, sim_random(rng));
	post_everywhere(&e, DEPTH / 2);
	run_a_while(&e);
	storms[sim_below(rng, STORMS)](&e);
	ends_close(&e);
}

/* ---- storms of whole HCAs ---- */

static void
write_register(struct sim *s, unsigned int i, uint32_t off, uint32_t value)
{
	volatile uint8_t *bar = hca_bar0(s->side[i].hca);

	__atomic_store_n((volatile uint32_t *)(bar + off), hca_cpu_to_le32(value),
			 __ATOMIC_SEQ_CST);
}

static uint32_t
read_register(struct sim *s, unsigned int i, uint32_t off)
{
	volatile uint8_t *bar = hca_bar0(s->side[i].hca);

	return hca_le32_to_cpu(__atomic_load_n((volatile uint32_t *)(bar + off), __ATOMIC_SEQ_CST));
}

/* Without telling the driver, so that everything is in use when it happens. */
static void
kill_hca(struct sim *s, unsigned int i, bool reset)
{
	uint32_t off = reset ? HCA_BAR0_RESET : HCA_BAR0_HCR + offsetof(struct hca_hcr, ctrl);
	uint32_t busy = reset ? HCA_RESET_START : HCA_HCR_GO;
	uint64_t began = now_ns();

	write_register(s, i, off,
		       reset ? HCA_RESET_START : HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_CLOSE_HCA));
	while (read_register(s, i, off) & busy) {
		sched_yield();
		sim_check(s, now_ns() - began < GIVE_UP_NS, "the HCA does not come back");
	}
}

static void
hca_storm(struct sim *s, struct sim_rng *rng)
{
	unsigned int i = sim_below(rng, 2);
	struct load *l = calloc(1, sizeof(*l));
	uint64_t until;

	load_start(l, s, sim_random(rng));
	for (until = now_ns() + 5000000; now_ns() < until;)
		sim_poll(s);
	kill_hca(s, i, sim_below(rng, 2));
	load_stop(l);
	free(l);
	sim_restart(s, i);
}

/* ---- all of it ---- */

struct options {
	uint64_t seconds, seed;
	int layout;
};

static unsigned int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static unsigned int
engine_allocations(void)
{
	struct rte_malloc_socket_stats st = {0};

	rte_malloc_get_socket_stats(0, &st);
	return st.alloc_count;
}

static void
wait_until(struct sim *s, uint64_t until)
{
	while (now_ns() < until)
		sim_poll(s);
}

static void
soak(const struct options *o)
{
	struct sim_config cfg = {.layout = (enum hca_layout)o->layout,
				 .executor = SIM_THREADS,
				 .all_cpus = true,
				 .seed = o->seed};
	struct sim *stormy = sim_open(&cfg), *calm;
	struct bystander *near = calloc(1, sizeof(*near)), *far = calloc(1, sizeof(*far));
	struct load *load = calloc(1, sizeof(*load));
	uint64_t began = now_ns(), third = o->seconds * 333333333u;
	struct sim_rng rng = {o->seed};
	unsigned int objects = 0, hcas = 0;

	cfg.layout = HCA_LAYOUT_RTC;
	calm = sim_open(&cfg);
	bystander_start(near, "same HCA", stormy, o->seed + 1);
	bystander_start(far, "other HCA", calm, o->seed + 2);
	load_start(load, stormy, o->seed + 3);
	wait_until(stormy, began + third / 2);
	bystander_storms(near);
	bystander_storms(far);
	for (; now_ns() < began + 2 * third || !bystander_has_run(near); objects++)
		object_storm(stormy, &rng);
	bystander_stop(near);
	load_stop(load);
	for (; now_ns() < began + 3 * third || hcas < 4 || !bystander_has_run(far); hcas++)
		hca_storm(stormy, &rng);
	printf("layout %s, %llu s: %u storms of objects, %u of HCAs\n", sim_layout_names[o->layout],
	       (unsigned long long)o->seconds, objects, hcas);
	bystander_stop(far);
	sim_close(stormy);
	sim_close(calm);
	free(near);
	free(far);
	free(load);
}

static bool
parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return false;
		if (strcmp(argv[i], "--seconds") == 0)
			o->seconds = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--seed") == 0)
			o->seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--layout") == 0)
			o->layout = sim_layout_of(argv[i + 1]);
		else
			return false;
	}
	return o->layout >= 0 && o->seconds != 0;
}

int
main(int argc, char **argv)
{
	struct options o = {.seconds = 3, .seed = sim_env("SIM_SEED", 1)};
	struct options warm = {.seconds = 1, .seed = 1};
	unsigned int fds, allocations;
	size_t heap;

	if (!parse(argc, argv, &o)) {
		fprintf(stderr, "usage: soak [--seconds N] [--layout rtc|txrx|full] [--seed N]\n");
		return 2;
	}
	sim_set_repeat("soak --seconds %llu --layout %s --seed %llu", (unsigned long long)o.seconds,
		       sim_layout_names[o.layout], (unsigned long long)o.seed);
	warm.layout = o.layout;
	soak(&warm); /* for allocations that are made only once */
	fds = open_fds();
	allocations = engine_allocations();
	heap = mallinfo2().uordblks;
	soak(&o);
	printf("left: %d files, %d allocations of the engine, %lld bytes of the heap\n",
	       (int)(open_fds() - fds), (int)(engine_allocations() - allocations),
	       (long long)mallinfo2().uordblks - (long long)heap);
	sim_check(NULL, open_fds() == fds, "%u open files, %u before", open_fds(), fds);
	sim_check(NULL, engine_allocations() <= allocations, "%u allocations, %u before",
		  engine_allocations(), allocations);
	sim_check(NULL, mallinfo2().uordblks < heap + 65536, "the heap has grown");
	return 0;
}
