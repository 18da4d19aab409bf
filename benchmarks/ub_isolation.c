/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Real time of requests of UB while another Jetty on the same channel misbehaves: two HCAs in this
 * process with one TP between them. A JFS, the bystander, writes and reads 4 KiB in turn, one
 * request after the other; a Jetty of another client works at the same time, with or without a
 * fault. It prints the medians of p50 and p99 over all turns: alone, during the work, and during
 * the same work with its fault, and how many packets were sent again.
 *
 * One thread does everything, so the work of the neighbour is in the times, but for its commands,
 * which it gives between two requests of the bystander.
 *
 *   build/release/benchmarks/ub_isolation [TURNS]
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <softhca/embed.h>
#include <softhca/urma.h>

#define REQUESTS 2000u /* of the bystander, in a turn */
#define EVERY 20u      /* of these between two faults */
#define FAULT_AT 1u    /* behind the beginning of the neighbour's work */
#define BYTES 4096u
#define LONG (4u << 20)
#define SHORT (64u << 10)
#define MEMORY (2 * LONG)
#define MAX_TURNS 101
#define TOKEN 0x5eedu
#define RNR_TIMER 1u /* 4 us */

static struct softhca_embed *embed;

static void
must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "ub_isolation: %s: %s; %s\n", what, softhca_urma_reason(),
		softhca_embed_last_error());
	exit(1);
}

/* ---- programs ---- */

struct program {
	struct softhca_context *lib;
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg, *to_seg;
	urma_target_jetty_t *to;
	char *memory;
};

static urma_jetty_t *
create_jetty(struct program *p)
{
	urma_jfr_cfg_t receives = {.depth = 16,
				   .trans_mode = URMA_TM_RM,
				   .min_rnr_timer = RNR_TIMER,
				   .jfc = p->jfc};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .rnr_retry = 7, .jfc = p->jfc},
		.jfr_cfg = &receives};
	urma_jetty_t *jetty = urma_create_jetty(p->ctx, &cfg);

	must(jetty != NULL, "Jetty");
	return jetty;
}

static urma_target_seg_t *
register_memory(struct program *p)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)p->memory,
			      .len = MEMORY,
			      .token_value.token = TOKEN,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};
	urma_target_seg_t *seg = urma_register_seg(p->ctx, &cfg);

	must(seg != NULL, "segment");
	return seg;
}

static void
open_program(struct program *p, unsigned int index)
{
	urma_jfc_cfg_t depth = {.depth = 64};

	must(softhca_embed_open(embed, index, &p->lib) == 0, "open");
	p->ctx = softhca_urma_context(p->lib);
	must(p->ctx != NULL, "context");
	p->jfc = urma_create_jfc(p->ctx, &depth);
	must(p->jfc != NULL, "JFC");
	p->memory = aligned_alloc(4096, MEMORY);
	must(p->memory != NULL, "memory");
	memset(p->memory, 1, MEMORY);
	p->seg = register_memory(p);
	p->jetty = create_jetty(p);
}

static urma_target_seg_t *
import_memory(struct program *p, urma_target_seg_t *seg, uint32_t value)
{
	urma_token_t token = {value};
	urma_target_seg_t *t =
		urma_import_seg(p->ctx, &seg->seg, &token, 0, (urma_import_seg_flag_t){0});

	must(t != NULL, "import of memory");
	return t;
}

static void
import_peer(struct program *p, const struct program *peer)
{
	urma_rjetty_t what = {.jetty_id = peer->jetty->jetty_id,
			      .trans_mode = URMA_TM_RM,
			      .type = URMA_JETTY};

	p->to = urma_import_jetty(p->ctx, &what, NULL);
	must(p->to != NULL, "import");
	p->to_seg = import_memory(p, peer->seg, TOKEN);
}

static void
write_memory(struct program *p, urma_jetty_t *jetty, urma_target_seg_t *to_seg, char *from,
	     uint32_t len)
{
	urma_sge_t own = {(uintptr_t)from, len, p->seg},
		   theirs = {to_seg->seg.ubva.va, len, to_seg};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE,
			    .flag.bs.complete_enable = 1,
			    .tjetty = p->to,
			    .rw = {.src = {&own, 1}, .dst = {&theirs, 1}}};

	must(urma_post_jetty_send_wr(jetty, &wr, NULL) == URMA_SUCCESS, "post");
}

/* The next completion is this, or a success: false. */
static bool
take_either(struct program *p, urma_cr_status_t status)
{
	urma_cr_t cr;

	while (urma_poll_jfc(p->jfc, 1, &cr) == 0)
		;
	must(cr.status == status || cr.status == URMA_CR_SUCCESS, "completion");
	return cr.status == status;
}

static void
take(struct program *p, urma_cr_status_t status)
{
	must(take_either(p, status), "completion");
}

/* ---- neighbours ---- */

struct neighbour {
	struct program own, peer; /* its programs */
	bool well;
	/* of one piece of work */
	urma_jetty_t *jetty;
	urma_target_seg_t *seg, *imported;
	struct program killed;
	uint32_t late; /* faults that came when the work was over */
};

static void
start_key(struct neighbour *n)
{
	/* the second half is behind the end of the segment */
	write_memory(&n->own, n->own.jetty, n->own.to_seg,
		     n->own.memory + MEMORY - (n->well ? SHORT : SHORT / 2), SHORT);
}

static void
end_key(struct neighbour *n)
{
	take(&n->own, n->well ? URMA_CR_SUCCESS : URMA_CR_LOC_ACCESS_ERR);
}

static void
start_token(struct neighbour *n)
{
	n->imported = import_memory(&n->own, n->peer.seg, n->well ? TOKEN : TOKEN + 1);
	write_memory(&n->own, n->own.jetty, n->imported, n->own.memory, SHORT);
}

static void
end_token(struct neighbour *n)
{
	take(&n->own, n->well ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR);
	must(urma_unimport_seg(n->imported) == URMA_SUCCESS, "unimport");
}

static void
receive(struct neighbour *n)
{
	urma_sge_t sge = {(uintptr_t)n->peer.memory, BYTES, n->peer.seg};
	urma_jfr_wr_t wr = {.src = {&sge, 1}};

	must(urma_post_jetty_recv_wr(n->peer.jetty, &wr, NULL) == URMA_SUCCESS, "receive");
}

static void
start_receives(struct neighbour *n)
{
	urma_sge_t own = {(uintptr_t)n->own.memory, BYTES, n->own.seg};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND,
			    .flag.bs.complete_enable = 1,
			    .tjetty = n->own.to,
			    .send.src = {&own, 1}};

	if (n->well)
		receive(n);
	must(urma_post_jetty_send_wr(n->own.jetty, &wr, NULL) == URMA_SUCCESS, "post");
}

static void
end_receives(struct neighbour *n)
{
	if (!n->well)
		receive(n);
	take(&n->own, URMA_CR_SUCCESS);
	take(&n->peer, URMA_CR_SUCCESS);
}

static void
start_jetty(struct neighbour *n)
{
	n->jetty = create_jetty(&n->own);
	write_memory(&n->own, n->jetty, n->own.to_seg, n->own.memory, LONG);
}

static void
fault_jetty(struct neighbour *n)
{
	must(urma_delete_jetty(n->jetty) == URMA_SUCCESS, "delete");
}

static void
end_jetty(struct neighbour *n)
{
	urma_cr_t cr;

	if (n->well) {
		take(&n->own, URMA_CR_SUCCESS);
		fault_jetty(n);
	} else if (urma_poll_jfc(n->own.jfc, 1, &cr) != 0) {
		n->late++;
	}
}

static void
start_client(struct neighbour *n)
{
	open_program(&n->killed, 0);
	import_peer(&n->killed, &n->peer);
	write_memory(&n->killed, n->killed.jetty, n->killed.to_seg, n->killed.memory, LONG);
}

/* As a process that dies; the library's memory for it is leaked. */
static void
fault_client(struct neighbour *n)
{
	urma_cr_t cr;

	if (!n->well && urma_poll_jfc(n->killed.jfc, 1, &cr) != 0)
		n->late++;
	must(softhca_close(n->killed.lib) == 0, "close");
	free(n->killed.memory);
}

static void
end_client(struct neighbour *n)
{
	if (!n->well)
		return;
	take(&n->killed, URMA_CR_SUCCESS);
	fault_client(n);
}

static void
start_segment(struct neighbour *n)
{
	n->seg = register_memory(&n->peer);
	n->imported = import_memory(&n->own, n->seg, TOKEN);
	write_memory(&n->own, n->own.jetty, n->imported, n->own.memory, LONG);
}

static void
fault_segment(struct neighbour *n)
{
	must(urma_unregister_seg(n->seg) == URMA_SUCCESS, "unregister");
}

static void
end_segment(struct neighbour *n)
{
	if (!take_either(&n->own, n->well ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR))
		n->late++;
	if (n->well)
		fault_segment(n);
	must(urma_unimport_seg(n->imported) == URMA_SUCCESS, "unimport");
}

static void
nothing(struct neighbour *n)
{
	(void)n;
}

/* Work begins, its fault comes a little later, and the remaining objects are destroyed. */
struct kind {
	const char *name;
	void (*start)(struct neighbour *n);
	void (*fault)(struct neighbour *n);
	void (*end)(struct neighbour *n);
};

static const struct kind kinds[] = {
	{"nobody", nothing, nothing, nothing},
	{"bad key", start_key, nothing, end_key},
	{"wrong token", start_token, nothing, end_token},
	{"no receives", start_receives, nothing, end_receives},
	{"Jetty goes", start_jetty, fault_jetty, end_jetty},
	{"client goes", start_client, fault_client, end_client},
	{"segment goes", start_segment, fault_segment, end_segment},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- the bystander ---- */

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double
request(struct program *p, urma_jfs_t *jfs, bool read)
{
	urma_sge_t own = {(uintptr_t)p->memory, BYTES, p->seg};
	urma_sge_t theirs = {p->to_seg->seg.ubva.va, BYTES, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = read ? URMA_OPC_READ : URMA_OPC_WRITE,
			    .flag.bs.complete_enable = 1,
			    .tjetty = p->to,
			    .rw = {.src = {read ? &theirs : &own, 1},
				   .dst = {read ? &own : &theirs, 1}}};
	double start = now_ns();

	must(urma_post_jfs_wr(jfs, &wr, NULL) == URMA_SUCCESS, "post");
	take(p, URMA_CR_SUCCESS);
	return now_ns() - start;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct figures {
	double p50[MAX_TURNS], p99[MAX_TURNS];
};

static void
take_turn(struct program *p, urma_jfs_t *jfs, struct neighbour *n, const struct kind *k,
	  struct figures *f, int turn)
{
	static double took[REQUESTS];

	for (uint32_t i = 0; i < REQUESTS; i++) {
		if (i % EVERY == 0)
			k->start(n);
		if (i % EVERY == FAULT_AT && !n->well)
			k->fault(n);
		took[i] = request(p, jfs, i % 2);
		if (i % EVERY == EVERY - 1)
			k->end(n);
	}
	qsort(took, REQUESTS, sizeof(took[0]), compare);
	if (turn < 0)
		return; /* to warm up */
	f->p50[turn] = took[REQUESTS / 2];
	f->p99[turn] = took[REQUESTS * 99 / 100];
}

static double
median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(double), compare);
	return values[n / 2];
}

/* Packets that both HCAs have sent again. */
static uint64_t
again(void)
{
	static struct softhca_value values[1024];
	uint64_t sum = 0;

	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_counters(embed, i, values, 1024);

		must(n > 0 && n <= 1024, "counters");
		for (int k = 0; k < n; k++)
			if (strncmp(values[k].name, "ub_resent_", 10) == 0)
				sum += values[k].value;
	}
	return sum;
}

static urma_jfs_t *
create_jfs(struct program *p)
{
	urma_jfs_cfg_t cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .jfc = p->jfc};
	urma_jfs_t *jfs = urma_create_jfs(p->ctx, &cfg);

	must(jfs != NULL, "JFS");
	return jfs;
}

static void
open_embed(void)
{
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.ub = 1;
	cfg.ub_tps = 1;
	cfg.executor = SOFTHCA_EXECUTOR_MANUAL;
	cfg.log_qps = cfg.log_cqs = 8;
	must(softhca_embed_create(&cfg, &embed) == 0, "embed_create");
}

int
main(int argc, char **argv)
{
	static struct figures figures[KINDS][2]; /* with the fault, without */
	static struct program bystander, peer;
	static struct neighbour n;
	int turns = argc > 1 ? atoi(argv[1]) : 11;
	urma_jfs_t *jfs;

	must(turns > 0 && turns <= MAX_TURNS, "turns");
	open_embed();
	open_program(&bystander, 0);
	open_program(&peer, 1);
	open_program(&n.own, 0);
	open_program(&n.peer, 1);
	import_peer(&bystander, &peer);
	import_peer(&n.own, &n.peer);
	jfs = create_jfs(&bystander);
	for (int turn = -1; turn < turns; turn++)
		for (size_t k = 0; k < KINDS; k++)
			for (int well = 0; well < 2; well++) {
				n.well = well;
				take_turn(&bystander, jfs, &n, &kinds[k], &figures[k][well], turn);
			}
	printf("us of a request: p50, p99 beside the work; with the fault\n");
	for (size_t k = 0; k < KINDS; k++)
		printf("%-14s %7.2f %7.2f %7.2f %7.2f\n", kinds[k].name,
		       median(figures[k][1].p50, turns) / 1e3,
		       median(figures[k][1].p99, turns) / 1e3,
		       median(figures[k][0].p50, turns) / 1e3,
		       median(figures[k][0].p99, turns) / 1e3);
	printf("%llu packets were sent again, %u faults came too late\n",
	       (unsigned long long)again(), n.late);
	return 0;
}
