/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_HCA_H
#define DEVICE_HCA_H

/*
 * The device as its composition sees it (src/embed, src/endpoint, tests): create an HCA on a port,
 * pass its BARs to a driver, attach DMA windows, run it, destroy it.
 *
 * Stages must not call these functions. One thread makes the calls, except where "any thread" is
 * stated; the thread that owns a worker calls hca_poll() (executor.h). Errors are 0 or a negative
 * errno.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca_limits.h"

struct hca;
struct hca_cc_ops;
struct hca_port;
struct hca_wire_ops;

/* How stages are distributed over lcores; the same stages and tests for all layouts. */
enum hca_layout {
	HCA_LAYOUT_RTC = 0, /* all stages on one worker, edges are direct calls */
	HCA_LAYOUT_TXRX,    /* the transmit side and the receive side on a worker each */
	HCA_LAYOUT_FULL,    /* each stage on its own worker, every edge a ring */
};

/* Sizes are counts unless a unit is given; 0 selects the default in brackets. */
struct hca_config {
	const char *name;      /* unique in the process; part of names of DPDK objects ["hca<n>"] */
	struct hca_port *port; /* the wire; owned by the caller, must outlive the HCA */
	uint32_t wires;	       /* protocols on it: HCA_WIRE_BIT() of core/wires.h, a set [RoCE] */
	/* one more that is not in the table, of tests: wire is HCA_WIRE_TEST [none] */
	const struct hca_wire_ops *wire_more;
	enum hca_layout layout;
	int socket_id; /* NUMA socket of the memory, -1 = any */

#define X(section, name, least, most, preset) uint32_t name;
	HCA_LIMIT_LIST(X)
#undef X
	uint32_t log_eqs;	  /* log2 of event queues [5], at most 5 */
	uint32_t full_records;	  /* with SGL or inline data [two per QP and 4096 shared] */
	uint32_t ub_full_records; /* likewise, of Jettys */
	uint32_t ub_segment;	  /* bytes of a segment, a multiple of 4096 [65536] */
	uint32_t ub_choices;	  /* enum hca_ub_switch, a set [none] */
	uint32_t ack_every;	  /* largest distance of AckReqs in packets [32] */
	uint64_t fw_ver;	  /* as HCA_FW_VER() makes it [HCA_FW_VER_PRESET] */
	uint64_t port_stall_ns;	  /* encap discards frames after this time without progress [1 s] */
	uint32_t max_mtu;	  /* bytes, 256..4096 [4096] */
	const char *congestion;	  /* name of the congestion control [none]: cc/cc_names.h */
	/* algorithms that are not in the table, of tests; ends with NULL [none] */
	const struct hca_cc_ops *const *congestion_more;
	uint8_t mac[6]; /* address of the port, reported by QUERY commands and MAD_IFC */
	/* frames for own addresses leave by the port, which brings them back (engine/loopback.h) */
	bool own_frames_leave;

	/*
	 * Reads or writes [addr, addr + len) of the process that owns the domain, for memory that
	 * is not mapped here (HCA_BUS_FOREIGN); NULL: there is none. Called by the workers of
	 * encap, EE and req_rx, possibly concurrently; it may block, but not for ever. 0; -EAGAIN:
	 * not now, the packet counts as lost; -EINPROGRESS: the write will still be executed, and
	 * until then all accesses of this domain return -EAGAIN; other errors: the access is not
	 * allowed.
	 */
	int (*foreign)(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes,
		       uint32_t len);
	void *foreign_arg;

	/*
	 * ns since 1970, for CQEs that have it; NULL: as the time of polls. Called by all workers,
	 * concurrently; it must not block.
	 */
	uint64_t (*wall_clock)(void);

	/*
	 * HCA_SLEEP_BYTES of zeros for the workers' sleep words, which others may map for reading
	 * (graph/sleep.h); owned by the caller, must outlive the HCA. NULL: allocated by the HCA.
	 */
	void *sleep_words;
};

#define HCA_SLEEP_BYTES 4096u

/*
 * The number of workers that a layout makes. Any thread, before there is an HCA; needs no DPDK.
 *
 * @param layout
 *   One of enum hca_layout.
 * @param wires
 *   The protocols, a set of HCA_WIRE_BIT()s of core/wires.h, not empty.
 * @return
 *   1 (rtc), 2 (txrx), one for each stage in use (full: 9, with UB 13).
 */
unsigned int hca_layout_workers(enum hca_layout layout, uint32_t wires);

int hca_create(const struct hca_config *cfg, struct hca **out);

/* Destroy an HCA. The caller has stopped all workers. */
void hca_destroy(struct hca *h);

/* Register memory for software: HCR and UAR accesses are plain accesses to these pages. */
volatile void *hca_bar0(struct hca *h);
volatile void *hca_bar2(struct hca *h);

/*
 * Attach and detach DMA windows: the device accesses [bus, bus + len) only on behalf of domain (0 =
 * driver: mailboxes, ICM, EQs; otherwise a UAR page number). In this process a bus address is the
 * CPU address; one with HCA_BUS_FOREIGN (not in domain 0) goes to hca_config.foreign. Not while a
 * command of the domain is in progress. -EBUSY: a live region of the domain lies in the memory, and
 * no other window covers it.
 */
int hca_dma_attach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len);
int hca_dma_detach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len);

/*
 * Has fn called at the end of a poll of the CEU that wrote EQEs, with a bit per EQN, in the worker
 * that polls: fn must not wait. Before workers run.
 */
typedef void (*hca_notify_fn)(void *arg, uint32_t eqn_bits);
void hca_set_notify(struct hca *h, hca_notify_fn fn, void *arg);

/* Workers of an HCA: hca_layout_workers() of its configuration. */
unsigned int hca_workers(const struct hca *h);
/* The name of its congestion control. Any thread. */
const char *hca_congestion(const struct hca *h);

/*
 * Run one loop of a worker at time now (ns, monotonic): poll each of its stages once, with bursts
 * of at most 32, then report a quiescent state. Returns the amount of work done (0 = idle).
 */
unsigned int hca_poll(struct hca *h, unsigned int worker, uint64_t now);

/*
 * One burst of one stage, of at most budget frames or records, at the time `now`. This is the step
 * of simulations, which choose stage, budget and time themselves; executors call hca_poll().
 */
unsigned int hca_poll_stage(struct hca *h, unsigned int stage, uint64_t now, unsigned int budget);

/* A worker that stops polling must go offline first, so that rounds do not wait for it. */
void hca_worker_online(struct hca *h, unsigned int worker);
void hca_worker_offline(struct hca *h, unsigned int worker);

/*
 * Wait until every polling worker has begun another loop: then none uses what was changed before
 * the call. Any thread that is not a worker, while workers run.
 */
void hca_wait_workers(struct hca *h);

/* Counters by name (core/counters.h), summed over stages. Any thread; values may lag. */
unsigned int hca_counter_count(void);
const char *hca_counter_name(unsigned int i);
uint64_t hca_counter_value(const struct hca *h, unsigned int i);

/*
 * Counters of a QP by its number (-ENOENT: there is none), and of the port; values has ..._count()
 * entries.
 */
unsigned int hca_qp_counter_count(void);
const char *hca_qp_counter_name(unsigned int i);
int hca_qp_counters(const struct hca *h, uint32_t qpn, uint64_t *values);
/* The same of a Jetty or JFS: what its initiator is at; -ENOENT: there is none of that number. */
unsigned int hca_jetty_value_count(void);
const char *hca_jetty_value_name(unsigned int i);
int hca_jetty_values(const struct hca *h, uint32_t number, uint64_t *values);
/*
 * Round trips of a QP, ns: the shortest one, and quantiles of the last hundreds, to a fifth.
 * samples: how many these are of; 0: none yet, or more QPs are at work than are measured. Any
 * thread. -ENOENT: there is no such QP.
 */
struct hca_round_trips {
	uint32_t samples;
	uint64_t min_ns, p50_ns, p99_ns;
};
int hca_qp_round_trips(const struct hca *h, uint32_t qpn, struct hca_round_trips *out);
unsigned int hca_port_counter_count(void);
const char *hca_port_counter_name(unsigned int i);
void hca_port_counters(const struct hca *h, uint64_t *values);
/* Write the numbers of QPs to qpns, at most max; returns how many exist. */
unsigned int hca_qp_list(const struct hca *h, uint32_t *qpns, unsigned int max);

/* Objects in use, for leak tests: taken from pools, or live. */
struct hca_usage {
	uint32_t records, full_records; /* in use */
	uint32_t tx_mbufs, resp_mbufs;	/* in use */
	uint32_t qps, cqs, eqs, mpts;	/* live contexts */
	uint32_t srqs;
	uint32_t edge_objects; /* objects waiting in ring edges */
	uint32_t backlog;      /* frames the port has not accepted yet */
	uint32_t messages;     /* per-QP messages not yet consumed */
	/*
	 * average per live QP: memory beside its queues; its ring of READs and ATOMICs to be
	 * answered
	 */
	uint32_t qp_bytes, qp_job_bytes;
};
void hca_usage(const struct hca *h, struct hca_usage *u);

/*
 * State of the port's link as the device knows it; every change is reported by a PORT_CHANGE event.
 * Any thread.
 */
bool hca_port_link_up(const struct hca *h);

/*
 * Whether the port has a link but has accepted nothing for port_stall_ns, so that frames are
 * discarded. Any thread.
 */
bool hca_port_discarding(const struct hca *h);

/* Time per stage in ns since hca_stage_times_enable(h, true); not measured otherwise. */
void hca_stage_times_enable(struct hca *h, bool on);
bool hca_stage_times_enabled(const struct hca *h);
const char *hca_stage_name(unsigned int stage);
unsigned int hca_stage_count(void);
/* The worker of a stage; number of objects and messages waiting for it (may lag). */
unsigned int hca_stage_on(const struct hca *h, unsigned int stage);
uint32_t hca_stage_waiting(const struct hca *h, unsigned int stage);
uint64_t hca_stage_cycles(const struct hca *h, unsigned int stage);
/* Number of polls, or of those that found something to do; with several workers, of bursts. */
uint64_t hca_stage_polls(const struct hca *h, unsigned int stage, bool busy);
uint64_t hca_stage_time_ns(const struct hca *h, unsigned int stage);

#endif
