/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_H
#define APPS_PERF_PERF_H

/*
 * softhca-perf: bandwidth, message rate and latency of two HCAs back to back, with the data
 * checked.
 *
 * A run is one embedded pair of HCAs (struct perf_session) and a row per message size (struct
 * perf_row). Each row makes its QPs and memory (perf_setup.c), runs the timed pass (perf_pass.c), a
 * short pass with the stage clocks on and the checking pass (perf_check.c), and is printed
 * (perf_report.c, perf_results.c). One thread does all of it and drives both ends: side 0 requests,
 * side 1 responds (and answers, in the ping-pong of the latency test). Between two processes, see
 * remote.h, each drives side 0 by the same code.
 *
 * Errors: 0 or negative errno; the function that found the error has printed it to stderr.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

/* X(name, enum name, opcode) */
#define PERF_OP_LIST(X) \
	X("write", WRITE, SOFTHCA_WR_RDMA_WRITE) \
	X("read", READ, SOFTHCA_WR_RDMA_READ) \
	X("send", SEND, SOFTHCA_WR_SEND) \
	X("atomic-fa", FETCH_ADD, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD) \
	X("atomic-cas", CMP_SWAP, SOFTHCA_WR_ATOMIC_CMP_AND_SWP) \
	X("swap", SWAP, PERF_UB_ONLY | 0x21) \
	X("notify", NOTIFY, PERF_UB_ONLY | 0x02) \
	X("atomic-write", ATOMIC_WRITE, SOFTHCA_WR_ATOMIC_WRITE) \
	X("flush", FLUSH, SOFTHCA_WR_FLUSH)

/* Opcodes of URMA that verbs has no like of */
#define PERF_UB_ONLY 0x100u

enum perf_op {
#define X(name, id, wr) PERF_OP_##id,
	PERF_OP_LIST(X)
#undef X
	PERF_OP_COUNT
};

/* The wires. X(name, enum name) */
#define PERF_WIRE_LIST(X) \
	X("roce", ROCE) \
	X("ub", UB)

enum perf_wire {
#define X(name, id) PERF_WIRE_##id,
	PERF_WIRE_LIST(X)
#undef X
};

enum perf_test {
	PERF_TEST_BW,
	PERF_TEST_LAT,
};

/* X(name, enum name, QP type) */
#define PERF_SERVICE_LIST(X) \
	X("rc", RC, SOFTHCA_QPT_RC) \
	X("uc", UC, SOFTHCA_QPT_UC) \
	X("ud", UD, SOFTHCA_QPT_UD) \
	X("xrc", XRC, SOFTHCA_QPT_XRC_SEND)

enum perf_service {
#define X(name, id, type) PERF_SERVICE_##id,
	PERF_SERVICE_LIST(X)
#undef X
	PERF_SERVICE_COUNT
};

#define PERF_ATOMIC_SIZE 8u
#define PERF_QKEY 0x5005ca11u
#define PERF_POLL_MAX 32 /* completions fetched per poll */
#define PERF_LINE 64	 /* bytes of a cache line */
/* notify: stored at the end of the slot, when the data is there */
#define PERF_NOTIFY_SIZE 8u
#define PERF_NOTIFY_VALUE(wr_id) (~(uint64_t)(wr_id))

/* The form of two processes: remote.h */
struct perf_remote_options {
	const char *device; /* NULL: that of the environment, or the first */
	const char *client; /* HOST[:PORT] of the server to go to */
	bool server;
	uint32_t port;
	bool cm;	   /* meet by connection management, not over TCP */
	bool once;	   /* server: ends after one client */
	bool bidir;	   /* both ends make requests */
	bool gids;	   /* print the GID table, no more */
	int32_t gid_index; /* own; -1 = automatic */
	uint32_t timeout;  /* s the other end may be silent */
};

#define PERF_OPTIONS_MAX 96

struct perf_options {
	enum perf_op op;
	enum perf_wire wire;
	uint32_t congestion; /* enum softhca_congestion */
	enum perf_service service;
	enum perf_test test;
	bool srq;	  /* receives from one SRQ per side; XRC always */
	uint32_t ip;	  /* 4 or 6 */
	bool events;	  /* wait for completion events instead of polling */
	bool memory_poll; /* wait for a WRITE without a call */
	uint64_t size;	  /* bytes; 0 together with all_sizes */
	bool all_sizes;
	uint32_t qps;
	uint32_t depth;	    /* messages outstanding per QP */
	uint32_t mtu;	    /* bytes */
	uint32_t post_list; /* requests per doorbell */
	uint32_t signal_every;
	double duration;      /* s per size; 0: iters counts */
	uint64_t iters;	      /* messages per size; 0: duration counts */
	uint64_t stride;      /* bytes; 0 = automatic */
	uint32_t slots;	      /* per QP; 0 = automatic */
	uint32_t ack_timeout; /* InfiniBand's code; 0 = automatic */
	uint64_t seed;	      /* of the data, and of the engine where it was given */
	bool verify;
	bool list_counters;
	const char *json; /* file names, or NULL */
	const char *pcap;
	const char *histogram;
	const char *plot;
	const char *fabric; /* its text, or NULL */
	const char *flows;  /* file name, or NULL: perf_flows.h */
	char faults[512];   /* parts of --impair that embed.impair lacks: rules, of QPs; or "" */
	bool pause;	    /* hold the QPs before their traffic */
	bool fixed_addresses;
	double load;	     /* --test lat: Gb/s of the messages that are due; 0: one at a time */
	uint32_t inline_max; /* messages up to this many bytes are sent inline; 0: none */
	double report_every; /* s between lines about the pass that runs; 0: none */
	char given[PERF_OPTIONS_MAX]; /* was on the command line: perf_option_given() */
	uint32_t jettys;	      /* UB: in place of qps, 0: not given */
	struct perf_remote_options remote;
	struct softhca_embed_config embed;
};

/* --fabric: the clock of the HCAs, which is simulated, is that of passes. */
static inline bool
perf_is_simulated(const struct perf_options *opt)
{
	return opt->embed.fabric.rate_gbps != 0;
}

enum perf_area_kind {
	PERF_SOURCE, /* data is taken from here */
	PERF_SINK,   /* data arrives here; the counters of atomics */
	PERF_AREA_KINDS
};

/* A region of slots: those of QP 0, then those of QP 1, ... with guard bytes before and after. */
struct perf_area {
	uint8_t *base; /* NULL at the side of another process */
	uint64_t length;
	void *map;
	uint64_t map_length;
	struct softhca_mr *mr;
	uint64_t addr; /* as a peer names it */
	uint32_t rkey;
};

/*
 * Requests made ready once and posted again and again, as lists of `group` with one doorbell each.
 */
struct perf_ring {
	uint32_t count; /* requests; a multiple of group, except in perf_verify.c */
	uint32_t group;
	struct softhca_send_wr *wr;
	struct softhca_sge *sge;       /* count for wr, twice that for recv */
	struct softhca_send_wr *flush; /* --op flush: behind the WRITE of wr; otherwise NULL */
	struct softhca_recv_wr *recv; /* SEND only: those of the peer, when it is of this process */
	struct perf_ub_ring *ub;      /* NULL: RoCE */
};

/* Of the QPs of a flow that are of this process */
struct perf_flow_class {
	uint8_t traffic_class;
	uint8_t congestion; /* enum softhca_congestion */
};

/* Two connected QPs, one at each side; each message uses members of the first cache line. */
struct perf_flow {
	_Alignas(PERF_LINE) struct softhca_qp *qp[2];
	uint32_t next;	    /* request the next list begins with */
	uint32_t room;	    /* messages that may still be posted */
	uint32_t recv_next; /* the same for receives */
	uint32_t recv_room; /* receives posted and, in one process, not claimed by a send */
	uint32_t recv_done; /* receives completed and not posted again */
	uint32_t expected;  /* index of the request that completes next */
	struct perf_ring ring;
	struct perf_ring back;	      /* the requests of side 1 with the receives of side 0 */
	struct softhca_qp *target[2]; /* XRC: executes the peer's requests */
	uint32_t qpn[2];	      /* numbers of qp, known when the other side is a process */
	uint32_t executes[2];	      /* QPN that takes the peer's requests: of target or qp */
	uint32_t psn[2];	      /* each side's first */
	struct perf_flow_class class;
};

#define PERF_VALUES_MAX 512

/* Named numbers: counters of a row, stage times. Names belong to the embed library. */
struct perf_values {
	unsigned int count;
	struct softhca_value value[PERF_VALUES_MAX];
};

struct remote;

struct perf_session {
	const struct perf_options *opt;
	struct remote *peer; /* NULL: both sides are of this process */
	struct softhca_embed *embed;
	struct softhca_context *ctx[2];
	struct softhca_pd *pd[2];
	struct softhca_device_attr device;
	bool local[2]; /* sides in this process: both, or 0 only when there is a daemon */
	uint8_t sgid_index[2];
	union softhca_gid gid[2];

	/* of the row being measured */
	uint64_t size;
	uint64_t stride;
	uint32_t slots;
	struct perf_area area[2][PERF_AREA_KINDS];
	struct softhca_cq *send_cq[2];
	struct softhca_cq *recv_cq[2];
	struct softhca_comp_channel *channel[2]; /* --events */
	bool armed;				 /* --events: the next idle poll waits */
	int wake_fd;		/* --events: that this is readable ends waiting too */
	struct perf_wake *wake; /* --events between daemons */
	struct softhca_srq *srq[2];
	uint32_t srqn[2];
	struct softhca_xrcd *xrcd[2];
	struct softhca_ah *ah[2]; /* UD: to the other side */
	uint8_t *grh[2];	  /* UD: where headers of datagrams go */
	struct softhca_mr *grh_mr[2];
	struct perf_flow *flows;
	uint32_t num_flows;
	struct perf_ub *ub; /* NULL: RoCE */
	/* objects that the HCAs themselves use: those of their agents */
	struct perf_values in_use[2];
};

#define PERF_HISTOGRAM_MAX 192

/* Points of the distribution: `total` of the latencies are at most `ns`. */
struct perf_histogram {
	uint32_t count;
	double level[PERF_HISTOGRAM_MAX]; /* 0..1 */
	uint32_t ns[PERF_HISTOGRAM_MAX];
	uint32_t total[PERF_HISTOGRAM_MAX];
};

#define PERF_SERIES_MAX 1024

/* Messages done over time, in steps that double when there are too many. */
struct perf_series {
	uint32_t count;
	uint64_t step_ns;
	uint64_t at_ns[PERF_SERIES_MAX]; /* from the beginning of the pass */
	uint64_t done[PERF_SERIES_MAX];
};

struct perf_latency {
	double min, p50, p99, p999, max, avg, stdev; /* us */
};

enum perf_verdict {
	PERF_NOT_VERIFIED,
	PERF_VERIFIED,
	PERF_WRONG,  /* a byte or a completion was wrong */
	PERF_FAILED, /* the check did not come to its end: nothing is known of the rest */
};

struct perf_row {
	uint64_t size;
	uint64_t stride;
	uint32_t slots;
	uint64_t msgs;
	double seconds;
	double peak_mmsg; /* best 10 ms */
	uint64_t lost;	  /* UC, UD between processes: messages that did not arrive */
	bool has_latency;
	struct perf_latency lat;
	struct perf_histogram histogram; /* of has_latency */
	struct perf_series series;
	enum perf_verdict verified;
	uint64_t verified_msgs;
	uint64_t retransmissions;
	struct perf_values counters[2]; /* increments of the row */
	struct perf_values stages[2];	/* ns in the stage pass */
	uint64_t stage_msgs;		/* messages in it, 0: no measurement */
	double cpu_wait;		/* share of the timed pass this thread waited for a CPU */
};

/* --- perf_options.c: 0, 1 = done (help), -EINVAL = reported -------------------- */
int perf_options_parse(int argc, char **argv, struct perf_options *opt);
/* Whether the options go together, with defaults filled in; NULL or why not. Prints nothing. */
const char *perf_options_check(struct perf_options *opt);
/* name: without dashes. */
bool perf_option_given(const struct perf_options *opt, const char *name);
static inline bool
perf_is_remote(const struct perf_options *opt)
{
	return opt->remote.server || opt->remote.client != NULL;
}
extern const char *const perf_op_names[PERF_OP_COUNT];
extern const char *const perf_service_names[PERF_SERVICE_COUNT];
extern const uint32_t perf_op_codes[PERF_OP_COUNT];	      /* enum softhca_wr_opcode */
extern const uint32_t perf_service_types[PERF_SERVICE_COUNT]; /* enum softhca_qp_type */
extern const char *const perf_wire_names[2];
/* By enum softhca_congestion */
extern const char *const perf_congestion_names[];
extern const char *const perf_layout_names[3];
extern const char *const perf_executor_names[2];
const char *perf_test_name(enum perf_test test);
/* enum softhca_mtu, or 0 */
uint32_t perf_mtu_code(uint32_t bytes);
/* Watches a byte for some 30 us without a call; whether it has come. */
static inline bool
perf_watch(const volatile uint8_t *at, uint8_t value)
{
	for (uint32_t i = 0; i < 1u << 16; i++)
		if (__atomic_load_n(at, __ATOMIC_ACQUIRE) == value)
			return true;
	return false;
}
/* UC, UD: lost messages are not sent again. */
static inline bool
perf_is_lossy(const struct perf_options *opt)
{
	return opt->service == PERF_SERVICE_UC || opt->service == PERF_SERVICE_UD;
}
/* Atomics that return the old value. */
static inline bool
perf_is_atomic(enum perf_op op)
{
	return op == PERF_OP_FETCH_ADD || op == PERF_OP_CMP_SWAP || op == PERF_OP_SWAP;
}

/* Operations of 8 bytes at addresses that are multiples of 8. */
static inline bool
perf_has_word(enum perf_op op)
{
	return perf_is_atomic(op) || op == PERF_OP_ATOMIC_WRITE;
}
/* Operations that RoCE alone has. */
static inline bool
perf_is_of_roce(enum perf_op op)
{
	return op == PERF_OP_ATOMIC_WRITE || op == PERF_OP_FLUSH;
}

/* --- perf_setup.c -------------------- */
int perf_session_open(struct perf_session *s, const struct perf_options *opt);
/* Number of kinds of objects that were still in use after everything was destroyed. */
unsigned int perf_session_close(struct perf_session *s);
/* Memory, queues and QPs of the local sides. */
int perf_row_open(struct perf_session *s, uint64_t size);
/* Every QP of a local side to RTS; the numbers of both sides are known. */
int perf_row_connect(struct perf_session *s);
void perf_row_close(struct perf_session *s);
/* Receives of one QP, or a QP's share of an SRQ */
uint32_t perf_recv_depth(const struct perf_session *s);
/* NULL at a side of another process; perf_slot_addr() is the address in its peer's requests. */
uint8_t *perf_slot(const struct perf_session *s, unsigned int side, enum perf_area_kind kind,
		   uint32_t flow, uint32_t slot);
uint64_t perf_slot_addr(const struct perf_session *s, unsigned int side, enum perf_area_kind kind,
			uint32_t flow, uint32_t slot);
/*
 * Requests of flow f from side `side`, receives of the other one, as far as they are local; slots
 * are used in turn. wr_id: flow << 32 | index.
 */
int perf_ring_build(const struct perf_session *s, uint32_t f, unsigned int side, uint32_t count,
		    uint32_t group, uint32_t signal_every, struct perf_ring *ring);
/* Where requests find or leave their data at their own side, and at the other one. */
enum perf_area_kind perf_local_kind(enum perf_op op);
enum perf_area_kind perf_remote_kind(enum perf_op op);
void perf_ring_free(struct perf_ring *ring);
/* Requests of `side`, with the receives of the other one */
static inline struct perf_ring *
perf_ring_of(struct perf_flow *f, unsigned int side)
{
	return side == 0 ? &f->ring : &f->back;
}
int perf_post(struct perf_session *s, struct perf_flow *f, unsigned int side,
	      struct softhca_send_wr *wr);
int perf_post_recv(struct perf_session *s, struct perf_flow *f, unsigned int side,
		   struct softhca_recv_wr *wr);
/* Begins with n receives of the ring, a multiple of its group. */
int perf_receives_start(struct perf_session *s, struct perf_flow *f, unsigned int side, uint32_t n);
/* Posts the receives that are done again, in whole lists. */
int perf_receives_post(struct perf_session *s, struct perf_flow *f, unsigned int side);
/* One more receive is done. */
static inline int
perf_receive_again(struct perf_session *s, struct perf_flow *f, unsigned int side)
{
	if (++f->recv_done < perf_ring_of(f, !side)->group)
		return 0;
	return perf_receives_post(s, f, side);
}
/* Bytes a receive reports beyond the message: the header in front of a datagram. */
static inline uint32_t
perf_recv_extra(const struct perf_session *s)
{
	return s->opt->service == PERF_SERVICE_UD ? SOFTHCA_GRH_BYTES : 0;
}

/* --- completions of either wire -------------------- */
enum perf_queue {
	PERF_SENDS,
	PERF_RECEIVES,
};

/* perf_ub_ring.c: a status that is not success has the URMA one in vendor_err. */
int perf_ub_poll(const struct perf_session *s, unsigned int side, enum perf_queue queue, int max,
		 struct softhca_wc *wc);
/* As softhca_poll_cq(); max: PERF_POLL_MAX at most. */
static inline int
perf_poll(const struct perf_session *s, unsigned int side, enum perf_queue queue, int max,
	  struct softhca_wc *wc)
{
	if (__builtin_expect(s->ub != NULL, 0))
		return perf_ub_poll(s, side, queue, max, wc);
	return softhca_poll_cq(queue == PERF_SENDS ? s->send_cq[side] : s->recv_cq[side], max, wc);
}

/* --- perf_event.c: --events -------------------- */
int perf_channels_open(struct perf_session *s);
void perf_channels_close(struct perf_session *s);
/*
 * Called when a poll of all CQs found nothing: the first time it arms them (poll again), the second
 * time it waits for an event, at most a second. 0 or negative errno.
 */
int perf_wait(struct perf_session *s);

/* The same where only the receive queues' completions are waited for. */
int perf_wait_recv(struct perf_session *s);

/* --- perf_bw.c, perf_lat.c, perf_load.c -------------------- */
int perf_bw_run(struct perf_session *s, struct perf_row *row);
/* The same with the clocks of the stages on; short. In one process only. */
int perf_bw_stages(struct perf_session *s, struct perf_row *row);
int perf_lat_run(struct perf_session *s, struct perf_row *row);
int perf_load_run(struct perf_session *s, struct perf_row *row);
static inline int
perf_measure(struct perf_session *s, struct perf_row *row)
{
	if (s->opt->test != PERF_TEST_LAT)
		return perf_bw_run(s, row);
	return s->opt->load != 0 ? perf_load_run(s, row) : perf_lat_run(s, row);
}

/* --- perf_check.c -------------------- */
/* -EILSEQ after a wrong byte or completion: row->verified says so, and the first one is printed. */
int perf_check_run(struct perf_session *s, struct perf_row *row);

/* --- softhca_perf.c -------------------- */
struct perf_results;
/* Every row of the options */
int perf_rows_run(struct perf_session *s, struct perf_results *results);

/* --- perf_pause.c: -EINTR when it was interrupted -------------------- */

/* --pause-before-traffic: print the QPs of a pass and wait for a line or SIGUSR1. */
int perf_pause(struct perf_session *s, const char *pass);
/* --fixed-addresses: start the program again where the kernel puts memory at the same addresses. */
int perf_fix_addresses(const struct perf_options *opt, char **argv);

/* --- perf_report.c -------------------- */
void perf_report_header(const struct perf_options *opt);
void perf_report_row(const struct perf_options *opt, const struct perf_row *row);
void perf_report_counters(const struct perf_row *row);
int perf_counters_read(struct perf_session *s, struct perf_values values[2]);
/* Leaves in row->counters the increments since `before`, and adds up the retransmissions. */
int perf_counters_diff(struct perf_session *s, const struct perf_values before[2],
		       struct perf_row *row);
/* Result of a failed check for the data: wrong, or unknown. */
static inline enum perf_verdict
perf_verdict(int err)
{
	return err == 0 ? PERF_VERIFIED : err == -EILSEQ ? PERF_WRONG : PERF_FAILED;
}
/* --report-every: a line now and then; begin with a zeroed structure. done: messages so far. */
struct perf_interval {
	uint64_t begin, at, done;
};
void perf_report_interval(const struct perf_session *s, struct perf_interval *i, uint64_t done);
/* ns this thread was runnable and had no CPU; 0 where the kernel does not say. */
uint64_t perf_cpu_wait_ns(void);
/*
 * Progress on a terminal; draws at most twice a second. done: 0..1; negative takes the line away.
 */
void perf_progress(const struct perf_session *s, const char *what, double done);
/* A completion that is no success: say which, return -EIO. */
int perf_bad_completion(const struct perf_session *s, const struct softhca_wc *wc);
/* Nothing completes any more: say so with the counters that may explain it, return -ETIMEDOUT. */
int perf_stuck(struct perf_session *s);

/* --- perf_histogram.c -------------------- */
/* sorted: n latencies in ns, n > 0 */
void perf_histogram_make(const uint32_t *sorted, uint32_t n, struct perf_histogram *h);
/* In HdrHistogram's text form */
void perf_histogram_print(FILE *f, const struct perf_options *opt, const struct perf_row *row);

/* --- perf_results.c -------------------- */
/*
 * Output of the options in addition to the table. All files are open before the first row is
 * measured.
 */
struct perf_results {
	const struct perf_options *opt;
	struct perf_json *json; /* NULL: none */
	FILE *histogram;	/* NULL: none */
	uint32_t rows;
	const char *json_path;
	char temporary[256]; /* for --plot without --json */
};
/* After an error only perf_results_close() may follow. */
int perf_results_open(struct perf_results *r, const struct perf_options *opt);
int perf_results_row(struct perf_results *r, const struct perf_session *s,
		     const struct perf_row *row);
int perf_results_close(struct perf_results *r);

/* --- perf_json.c, perf_host.c -------------------- */
struct perf_json *perf_json_open(const struct perf_options *opt, const char *path);
int perf_json_row(struct perf_json *j, const struct perf_session *s, const struct perf_row *row);
int perf_json_close(struct perf_json *j); /* writes the file; frees j */

struct perf_host {
	char cpu[128];
	char kernel[128];
	unsigned int cores;
	/* One way between two CPUs, ns: nearest and farthest pair; 0 = not measured */
	double core_to_core_min;
	double core_to_core_max;
};
/* core_to_core: measure that too (about 30 ms per pair of CPUs, at most six pairs). */
void perf_host_query(struct perf_host *host, bool core_to_core);

/* --- interruption and time -------------------- */

/* Set by SIGINT and SIGTERM: passes end early, partial results are reported. */
bool perf_interrupted(void);

/* Give up when no completion has come for this time. */
#define PERF_STUCK_NS 20000000000ull

/* Time of passes: simulated with --fabric. */
uint64_t perf_pass_clock(const struct perf_session *s);

/* Monotonic. Not for the inside of loops: perf_clock.h has cheap clocks. */
uint64_t perf_now_ns(void);

#endif
