/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_STAR_H
#define TESTS_SIM_STAR_H

/*
 * Small HCAs around a simulated switch (port_switch.h), each with a driver and a client, and flows
 * between them: messages of one length, as many under way as its depth allows. Simulated time. The
 * rig notes goodput of each flow, queue, drops, marks, pauses, timeouts and CNPs; data is not
 * checked here.
 *
 * STAR_TRACE=DIR in the environment: star_close() writes DIR/NAME.json, a JSON line for each flow
 * and each port (benchmarks/flows-plot draws them). STAR_NETWORK=TEXT: another
 * network for all runs. SIM_VERBOSE=1: a line of figures for each run.
 */

#include "sim_test.h"

#include "port/port_switch.h"
#include "urma_impl.h"

#define STAR_HOSTS 40u
#define STAR_FLOWS 80u
#define STAR_BUCKETS 64u
#define STAR_BUCKET_NS 500000u
#define STAR_SAMPLES 4096u /* of a queue, one each STAR_SAMPLE_NS */
#define STAR_SAMPLE_NS 10000u
#define STAR_MESSAGE_MAX (1u << 20)
#define STAR_US 1000u
#define STAR_MS 1000000u

#define STAR_CHECK(condition, ...) sim_check(NULL, condition, __VA_ARGS__)

enum star_kind {
	STAR_WRITE,    /* RC */
	STAR_READ,     /* RC; the receiver asks for the data */
	STAR_DATAGRAM, /* WRITEs over UC: nothing limits them but rate_mbps */
	STAR_UB_WRITE, /* a Jetty; one such flow between two hosts */
};

/* 0 selects the default in brackets. */
struct star_config {
	const char *name; /* of the run */
	const char *congestion;
	const char *network; /* hca_switch_parse() */
	uint32_t hosts;
	uint64_t seed;
	enum hca_layout layout;
	bool ub;	  /* both wires, otherwise RoCE */
	uint32_t pipes;	  /* of each host [1] */
	uint64_t tick_ns; /* [500] */
};

struct star;

struct star_flow {
	/* set by the test */
	uint32_t from, to; /* hosts: data goes from .. to */
	enum star_kind kind;
	uint32_t message;     /* bytes */
	uint32_t depth;	      /* messages under way */
	uint64_t start, stop; /* ns after star_run() began; stop 0: goes on */
	uint64_t rate_mbps;   /* of the messages posted, 0: no limit */
	uint32_t congestion;  /* RC: enum softhca_congestion of both QPs, 0: not given */
	/* of the rig */
	struct star *all;
	struct star_host *requester;
	struct softhca_qp *qp[2]; /* of from, to */
	urma_jetty_t *jetty;
	urma_target_jetty_t *target;
	urma_target_seg_t *theirs;
	uint32_t under_way, failed;
	uint64_t posted, done; /* messages */
	uint64_t bytes[STAR_BUCKETS];
};

struct star_host {
	struct star *all;
	uint32_t index;
	struct hca_port *port;
	struct hca *h;
	struct hca_driver *drv;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_mr *mr;
	uint8_t *memory; /* STAR_MESSAGE_MAX */
	/* UB */
	urma_context_t *urma;
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
	urma_target_seg_t *seg;
	uint32_t tps;
	uint64_t sample[STAR_SAMPLES]; /* of its port's queue: bytes, the largest of the time */
};

struct star {
	struct star_config cfg;
	struct hca_switch network;
	uint32_t n, flows;
	uint64_t now, begin, loops;
	struct star_host host[STAR_HOSTS];
	struct star_flow flow[STAR_FLOWS];
};

/* Fails the test on errors, as all of these. */
void star_open(struct star *x, const struct star_config *cfg);
/* Before star_run(). */
struct star_flow *star_add(struct star *x, struct star_flow f);
/* Until that time after the first call. */
void star_run(struct star *x, uint64_t until_ns);
/* Ends all flows and waits until nothing is under way. */
void star_stop(struct star *x);
/* Another algorithm of a host, while its flows run. */
void star_set_congestion(struct star *x, uint32_t host, const char *name);
/* After star_stop(); frames and marks of the switch must agree with the HCAs. */
void star_close(struct star *x);

/* A counter of all HCAs, by name; 0: it does not exist. */
uint64_t star_counter(const struct star *x, const char *name);
/* The same of both QPs of a flow of RoCE. */
uint64_t star_flow_counter(const struct star_flow *f, const char *name);
struct hca_port_switch_stats star_port(const struct star *x, uint32_t host);
/* Bytes of a flow in the buckets of that time, of which it has whole ones. */
uint64_t star_bytes(const struct star_flow *f, uint64_t from_ns, uint64_t to_ns);
/* Jain's index of n flows, each step-th from the first, in that time: 1 / n .. 1. */
double star_jain(const struct star *x, uint32_t first, uint32_t step, uint32_t n, uint64_t from_ns,
		 uint64_t to_ns);
/* The largest queue of a host's port in that time, bytes. */
uint64_t star_queue(const struct star *x, uint32_t host, uint64_t from_ns, uint64_t to_ns);
/* star_ub.c */
void star_ub_open(struct star_host *t);
void star_ub_flow_open(struct star_flow *f);
void star_ub_post(struct star_flow *f);
void star_ub_poll(struct star_host *t, void (*done)(struct star_flow *f, bool fine));
void star_ub_flow_close(struct star_flow *f);
void star_ub_close(struct star_host *t);
/* star_trace.c */
void star_trace(const struct star *x);
/* GID and MAC address of a host. */
void star_gid(uint32_t index, uint8_t gid[16]);
void star_mac(uint32_t index, uint8_t mac[6]);

#endif
