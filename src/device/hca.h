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

/* Distribution of the stages over lcores; the same stages and tests for all layouts. */
enum hca_layout {
	HCA_LAYOUT_RTC = 0, /* all stages on one worker, edges are direct calls */
	HCA_LAYOUT_TXRX,    /* the transmit side and the receive side on a worker each */
	HCA_LAYOUT_FULL,    /* each stage on its own worker, every edge a ring */
};

/* Sizes are counts unless a unit is given; 0 selects the default in brackets. */
struct hca_config {
	const char *name;      /* unique in the process; part of names of DPDK objects ["hca<n>"] */
	struct hca_port *port; /* the wire; owned by the caller, must outlive the HCA */
	uint32_t wires;	       /* its protocols: a set of HCA_WIRE_BIT() of core/wires.h [RoCE] */
	/* one more that is not in the table, for tests: wire is HCA_WIRE_TEST [none] */
	const struct hca_wire_ops *wire_more;
	enum hca_layout layout; /* of each pipeline */
	/* 1, 2, 4, 8 or 16, at most the queues of the port and 64 workers in all [1] */
	uint32_t pipelines;
	int socket_id; /* NUMA socket of the memory, -1 = any */

#define X(section, name, min, max, def) uint32_t name;
	HCA_LIMIT_LIST(X)
#undef X
	uint32_t log_eqs;	  /* log2 of event queues [5], at most 5 */
	uint32_t full_records;	  /* with SGL or inline data [two per QP and 4096 shared] */
	uint32_t ub_full_records; /* full_records of Jettys [full_records] */
	uint32_t ub_segment;	  /* bytes of a segment, a multiple of 4096 [65536] */
	uint32_t ub_choices;	  /* enum hca_ub_switch, a set [none] */
	uint32_t ack_every;	  /* largest distance of AckReqs in packets [32] */
	uint64_t fw_ver;	  /* made by HCA_FW_VER() [HCA_FW_VER_DEFAULT] */
	uint64_t port_stall_ns;	  /* encap discards frames after this time without progress [1 s] */
	uint32_t max_mtu;	  /* bytes, 256..4096 [4096] */
	const char *congestion;	  /* name of the congestion control [none]: cc/cc_names.h */
	uint32_t link_mbps; /* rate of the link, at which congestion control begins [100000] */
	/* algorithms that are not in the table, for tests; ends with NULL [none] */
	const struct hca_cc_ops *const *congestion_more;
	uint8_t mac[6]; /* address of the port, reported by QUERY commands and MAD_IFC */
	/* frames to the HCA's own addresses leave by the port, which returns them (loopback.h) */
	bool own_frames_leave;

	/*
	 * Reads or writes [addr, addr + len) in the process that owns the domain, for memory that
	 * is not mapped here (HCA_BUS_FOREIGN). NULL: no foreign memory. The workers of encap, EE
	 * and req_rx call it, possibly concurrently; it may block for a bounded time. Returns 0;
	 * -EAGAIN: not now, the packet counts as lost; -EINPROGRESS: the write will still be
	 * executed, and until then all accesses of this domain return -EAGAIN; other errors: the
	 * access is not allowed.
	 */
	int (*foreign)(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes,
		       uint32_t len);
	void *foreign_arg;

	/*
	 * Time of day for CQEs that contain it, ns since 1970; NULL: they contain the time of the
	 * poll. All workers call it, concurrently; it must not block.
	 */
	uint64_t (*wall_clock)(void);

	/*
	 * HCA_SLEEP_BYTES of zeros for the workers' sleep words, which other processes may map for
	 * reading (graph/sleep.h); owned by the caller, must outlive the HCA. NULL: allocated by
	 * the HCA.
	 */
	void *sleep_words;
};

#define HCA_SLEEP_BYTES 4096u

/* Pipelines and workers of a device: a bit each in the masks of the workers that others wake. */
#define HCA_PIPES_MAX 16u
#define HCA_WORKERS_MAX 64u

/**
 * The number of workers of a layout. Any thread, before an HCA exists; needs no DPDK.
 *
 * @param layout
 *   One of enum hca_layout, of each pipeline.
 * @param pipelines
 *   Their number; other wires than RoCE are in the first one alone.
 * @param wires
 *   The protocols, a set of HCA_WIRE_BIT()s of core/wires.h, not empty.
 * @return
 *   For each pipeline 1 (rtc), 2 (txrx), one for each stage in use (full: 9, with UB 13).
 */
unsigned int hca_layout_workers(enum hca_layout layout, unsigned int pipelines, uint32_t wires);

#define HCA_LAYOUT_PLAN_BYTES 256u

/**
 * The plan by which the workers of a pipeline share CPUs, as text: the stages of a CPU with "+", CPUs
 * with ", " between them. Any thread, before an HCA exists; needs no DPDK.
 *
 * @param layout
 *   One of enum hca_layout.
 * @param wires
 *   The protocols, a set of HCA_WIRE_BIT()s.
 * @param cpus
 *   The number of CPUs, at least 1.
 * @param text
 *   Receives the text, which ends with '\0'.
 * @param size
 *   Bytes of text; HCA_LAYOUT_PLAN_BYTES are enough.
 */
void hca_layout_plan(enum hca_layout layout, uint32_t wires, unsigned int cpus, char *text,
		     size_t size);

/**
 * Create an HCA. Needs an initialized EAL.
 *
 * @param cfg
 *   Its configuration, which is copied.
 * @param out
 *   Set to the HCA; not changed on error.
 * @return
 *   - 0: created; workers may poll.
 *   - -EINVAL: a value is outside of its range, or no algorithm has the name in congestion.
 *   - -ENOMEM: no memory for tables, pools or rings.
 *   - another negative errno of DPDK or of a system call.
 */
int hca_create(const struct hca_config *cfg, struct hca **out);

/**
 * Destroy an HCA. The caller has stopped all workers; the port stays open.
 *
 * @param h
 *   The HCA, or NULL.
 */
void hca_destroy(struct hca *h);

/**
 * Register memory for software: HCR and EQ consumer indexes are plain accesses to it.
 *
 * @param h
 *   The HCA.
 * @return
 *   Its BAR0 (abi_bar.h), valid until hca_destroy().
 */
volatile void *hca_bar0(struct hca *h);

/**
 * Doorbell pages for software: a doorbell is a plain store to one of them.
 *
 * @param h
 *   The HCA.
 * @return
 *   Its BAR2 (abi_bar.h), valid until hca_destroy().
 */
volatile void *hca_bar2(struct hca *h);

/**
 * Attach a DMA window: the device accesses memory in windows of a domain only, on behalf of that
 * domain. The first window of a client opens its doorbell page. Not while a command of the domain
 * is in progress.
 *
 * @param h
 *   The HCA.
 * @param domain
 *   0: the driver (mailboxes, ICM, EQs); others: a client, by its UAR page number.
 * @param bus
 *   Start of the window: an address in this process, or with HCA_BUS_FOREIGN (not in domain 0) one
 *   that goes to hca_config.foreign.
 * @param len
 *   Bytes.
 * @return
 *   - 0: attached.
 *   - -EINVAL: the domain is HCA_DMA_DOMAINS or more, the window is empty or wraps, or foreign
 *     memory is not possible here (domain 0, or no hca_config.foreign).
 *   - -ENOSPC: HCA_DMA_WINDOWS windows are attached.
 */
int hca_dma_attach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len);

/**
 * Detach a window of hca_dma_attach(); the last window of a client closes its doorbell page. Not
 * while a command of the domain is in progress.
 *
 * @param h
 *   The HCA.
 * @param domain
 *   The domain of the window.
 * @param bus
 *   Start of the window.
 * @param len
 *   Its length in bytes.
 * @return
 *   - 0: detached.
 *   - -EBUSY: a live region of the domain lies in the memory, and no other window covers it.
 *   - -ENOENT: the domain has no window with this start and length.
 */
int hca_dma_detach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len);

/**
 * Select how the owner of a doorbell page rings: in the part of each QP's pipe (HCA_UAR_PIPES_MAX
 * in abi_bar.h), which is the default, or in the whole page, of which pipe 0 takes the doorbells;
 * all QPs of the page must then be in pipe 0. Before the first window of the page's domain. Any
 * thread.
 *
 * @param h
 *   The HCA.
 * @param page
 *   Number of the page.
 * @param undivided
 *   Whether it rings in the whole page.
 * @return
 *   0; -EINVAL: there is no such page.
 */
int hca_uar_undivide(struct hca *h, uint32_t page, bool undivided);

/** Called by the CEU's worker with a bit per EQN that has new EQEs; must not wait. */
typedef void (*hca_notify_fn)(void *arg, uint32_t eqn_bits);

/**
 * Set the function that the CEU calls at the end of a poll that wrote EQEs. Before workers run.
 *
 * @param h
 *   The HCA.
 * @param fn
 *   The function, or NULL.
 * @param arg
 *   Its first argument.
 */
void hca_set_notify(struct hca *h, hca_notify_fn fn, void *arg);

/**
 * Number of workers. Any thread.
 *
 * @param h
 *   The HCA.
 * @return
 *   hca_layout_workers() of its configuration.
 */
unsigned int hca_workers(const struct hca *h);

/**
 * Number of pipelines. Any thread.
 *
 * @param h
 *   The HCA.
 * @return
 *   hca_config.pipelines.
 */
unsigned int hca_pipelines(const struct hca *h);

/**
 * Name of the congestion control. Any thread.
 *
 * @param h
 *   The HCA.
 * @return
 *   A name of cc/cc_names.h, "none" without an algorithm.
 */
const char *hca_congestion(const struct hca *h);

/**
 * A parameter of congestion control, which SET_CONGESTION may have changed. Any thread.
 *
 * @param h
 *   The HCA.
 * @param number
 *   One of enum hca_cc_parameter.
 * @return
 *   Its value now; 0: no parameter has this number.
 */
uint32_t hca_congestion_parameter(const struct hca *h, uint32_t number);

/**
 * Run one loop of a worker: poll each of its stages once, with bursts of at most 32, then report a
 * quiescent state. The thread that owns the worker.
 *
 * @param h
 *   The HCA.
 * @param worker
 *   Less than hca_workers().
 * @param now
 *   Time, ns, monotonic.
 * @return
 *   The amount of work done; 0: idle.
 */
unsigned int hca_poll(struct hca *h, unsigned int worker, uint64_t now);

/**
 * Run one burst of one stage. The step of simulations, which choose stage, budget and time
 * themselves; executors call hca_poll().
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param stage
 *   Less than hca_stage_count().
 * @param now
 *   Time, ns, monotonic.
 * @param budget
 *   Largest number of frames or records.
 * @return
 *   The amount of work done; 0: idle.
 */
unsigned int hca_poll_stage(struct hca *h, unsigned int pipe, unsigned int stage, uint64_t now,
			    unsigned int budget);

/**
 * RCU rounds wait for this worker again, before it polls. The worker's thread.
 *
 * @param h
 *   The HCA.
 * @param worker
 *   Less than hca_workers(); all are online after hca_create().
 */
void hca_worker_online(struct hca *h, unsigned int worker);

/**
 * RCU rounds do not wait for this worker, which does not poll from now on. The worker's thread.
 *
 * @param h
 *   The HCA.
 * @param worker
 *   Less than hca_workers().
 */
void hca_worker_offline(struct hca *h, unsigned int worker);

/**
 * Wait until every online worker has begun another loop: then none of them uses state that was
 * replaced before the call. Any thread that is not a worker, while workers run.
 *
 * @param h
 *   The HCA.
 */
void hca_wait_workers(struct hca *h);

/**
 * Number of counters of the HCA (core/counters.h). Any thread.
 *
 * @return
 *   Their number.
 */
unsigned int hca_counter_count(void);

/**
 * Name of a counter. Any thread.
 *
 * @param i
 *   Less than hca_counter_count().
 * @return
 *   The name; NULL of others.
 */
const char *hca_counter_name(unsigned int i);

/**
 * Value of a counter, summed over stages. Any thread; may lag.
 *
 * @param h
 *   The HCA.
 * @param i
 *   Less than hca_counter_count().
 * @return
 *   The value; 0 of others.
 */
uint64_t hca_counter_value(const struct hca *h, unsigned int i);

/**
 * The value of a counter in one pipeline. Any thread.
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param i
 *   Number of the counter.
 * @return
 *   Its value; 0 of others than hca_counter_count() has.
 */
uint64_t hca_pipe_counter_value(const struct hca *h, unsigned int pipe, unsigned int i);

/**
 * The wire that alone has a counter. Any thread.
 *
 * @param i
 *   Less than hca_counter_count().
 * @return
 *   One of enum hca_wire (core/wires.h); HCA_WIRE_NONE: several wires have it.
 */
unsigned int hca_counter_wire(unsigned int i);

/**
 * Number of values of hca_qp_counters(). Any thread.
 *
 * @return
 *   Their number.
 */
unsigned int hca_qp_counter_count(void);

/**
 * Name of a value of hca_qp_counters(). Any thread.
 *
 * @param i
 *   Less than hca_qp_counter_count().
 * @return
 *   The name; NULL of others.
 */
const char *hca_qp_counter_name(unsigned int i);

/**
 * Counters of a QP. Any thread; values may lag.
 *
 * @param h
 *   The HCA.
 * @param qpn
 *   Number of the QP, all 24 bits.
 * @param values
 *   hca_qp_counter_count() values, in the order of the names.
 * @return
 *   0, or -ENOENT: no QP has that number.
 */
int hca_qp_counters(const struct hca *h, uint32_t qpn, uint64_t *values);

/**
 * Number of values of hca_wire_values(). Any thread.
 *
 * @param wire
 *   One of enum hca_wire (core/wires.h).
 * @return
 *   Their number; 0: QPs of the wire have no such values.
 */
unsigned int hca_wire_value_count(unsigned int wire);

/**
 * Name of a value of hca_wire_values(). Any thread.
 *
 * @param wire
 *   One of enum hca_wire.
 * @param i
 *   Less than hca_wire_value_count().
 * @return
 *   The name; NULL of others.
 */
const char *hca_wire_value_name(unsigned int wire, unsigned int i);

/**
 * Values of a QP that other wires do not have, as the state of the initiator of a Jetty. Any
 * thread; values may lag.
 *
 * @param h
 *   The HCA.
 * @param wire
 *   The wire of the QP.
 * @param qpn
 *   Number of the QP, all 24 bits.
 * @param values
 *   hca_wire_value_count() values, in the order of the names.
 * @return
 *   0, or -ENOENT: no QP of that wire has that number, or the wire has no such values.
 */
int hca_wire_values(const struct hca *h, unsigned int wire, uint32_t qpn, uint64_t *values);

/** Round trips of a QP, ns: the shortest one, and quantiles with an error of up to a fifth. */
struct hca_round_trips {
	uint32_t samples; /* the last hundreds; 0: none yet, or the QP is not measured */
	uint64_t min_ns, p50_ns, p99_ns;
};

/**
 * Round trips of a QP. Only a limited number of active QPs is measured (requester/rtt.h). Any
 * thread.
 *
 * @param h
 *   The HCA.
 * @param qpn
 *   Number of the QP, all 24 bits.
 * @param out
 *   Set to the round trips; zeros without samples or on error.
 * @return
 *   0, or -ENOENT: no QP has that number.
 */
int hca_qp_round_trips(const struct hca *h, uint32_t qpn, struct hca_round_trips *out);

/** The limits that congestion control sets a QP or TP now; 0: no limit, or not known. */
struct hca_congestion_limits {
	const char *name;	    /* of the algorithm */
	uint64_t rate_bps;	    /* of its requests, or of a TP */
	uint64_t responses_bps;	    /* of READ responses */
	uint32_t window;	    /* packets without an answer */
	uint64_t rtt_ns, target_ns; /* the last round trip, and the one that it is to have */
};

/**
 * Limits of a QP. Any thread; they may lag.
 *
 * @param h
 *   The HCA.
 * @param qpn
 *   Number of the QP, all 24 bits.
 * @param out
 *   Set to the limits; on error to "none".
 * @return
 *   0, or -ENOENT: no QP has that number.
 */
int hca_qp_congestion(const struct hca *h, uint32_t qpn, struct hca_congestion_limits *out);

/**
 * Limits of a TP of UB, as hca_qp_congestion().
 *
 * @param h
 *   The HCA.
 * @param tpn
 *   Number of a TP, which lives.
 * @param out
 *   Set to the limits; on error to "none".
 * @return
 *   0, or -ENOENT: the HCA has no TPs.
 */
int hca_tp_congestion(const struct hca *h, uint32_t tpn, struct hca_congestion_limits *out);

/**
 * Number of values of hca_port_counters(). Any thread.
 *
 * @return
 *   Their number.
 */
unsigned int hca_port_counter_count(void);

/**
 * Name of a value of hca_port_counters(). Any thread.
 *
 * @param i
 *   Less than hca_port_counter_count().
 * @return
 *   The name; NULL of others.
 */
const char *hca_port_counter_name(unsigned int i);

/**
 * Counters of the port. Any thread; values may lag.
 *
 * @param h
 *   The HCA.
 * @param values
 *   hca_port_counter_count() values, in the order of the names.
 */
void hca_port_counters(const struct hca *h, uint64_t *values);

/**
 * Numbers of the live QPs and Jettys. Any thread.
 *
 * @param h
 *   The HCA.
 * @param qpns
 *   At least max entries.
 * @param max
 *   Largest number of entries written.
 * @return
 *   The number of live QPs, which may exceed max.
 */
unsigned int hca_qp_list(const struct hca *h, uint32_t *qpns, unsigned int max);

/** Objects in use, for leak tests: taken from pools, or live. */
struct hca_usage {
	uint32_t records, full_records; /* in use, of all wires */
	uint32_t tx_mbufs, resp_mbufs;	/* in use */
	uint32_t qps, cqs, eqs, mpts;	/* live contexts */
	uint32_t srqs;
	uint32_t edge_objects; /* objects waiting in ring edges */
	uint32_t backlog;      /* frames the port has not accepted yet */
	uint32_t messages;     /* per-QP messages not yet consumed */
	/*
	 * average per live QP: memory without its queues; its ring of READs and ATOMICs to be
	 * answered
	 */
	uint32_t qp_bytes, qp_job_bytes;
};

/**
 * Count objects in use. Any thread; values may lag.
 *
 * @param h
 *   The HCA.
 * @param u
 *   Set to the numbers.
 */
void hca_usage(const struct hca *h, struct hca_usage *u);

/**
 * State of the port's link. Each change also raises a PORT_CHANGE event. Any thread.
 *
 * @param h
 *   The HCA.
 * @return
 *   Whether the last poll of encap found the link up.
 */
bool hca_port_link_up(const struct hca *h);

/**
 * Whether encap discards frames: the port has a link but has accepted no frame for port_stall_ns.
 * Any thread.
 *
 * @param h
 *   The HCA.
 * @return
 *   True while frames are discarded.
 */
bool hca_port_discarding(const struct hca *h);

/**
 * Start or stop measuring the time of each stage. Any thread.
 *
 * @param h
 *   The HCA.
 * @param on
 *   True: values of the following functions count from now on; false: no measurement.
 */
void hca_stage_times_enable(struct hca *h, bool on);

/**
 * Whether the time of stages is measured. Any thread.
 *
 * @param h
 *   The HCA.
 * @return
 *   The last value of hca_stage_times_enable().
 */
bool hca_stage_times_enabled(const struct hca *h);

/**
 * Name of a stage. Any thread.
 *
 * @param stage
 *   Less than hca_stage_count(); stages are numbered in the order of the pipeline.
 * @return
 *   The name; NULL of others.
 */
const char *hca_stage_name(unsigned int stage);

/**
 * Number of stages. Any thread.
 *
 * @return
 *   Their number.
 */
unsigned int hca_stage_count(void);

/**
 * The worker of a stage of a pipeline. Any thread.
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param stage
 *   Less than hca_stage_count().
 * @return
 *   Less than hca_workers(); UINT_MAX: only the first pipeline has this stage.
 */
unsigned int hca_stage_on(const struct hca *h, unsigned int pipe, unsigned int stage);

/**
 * Work that waits for a stage. Any thread; may lag.
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param stage
 *   Less than hca_stage_count().
 * @return
 *   Number of objects in its ring edges and of messages; encap: also of frames for the port.
 */
uint32_t hca_stage_waiting(const struct hca *h, unsigned int pipe, unsigned int stage);

/**
 * Time of the busy polls of a stage since hca_stage_times_enable(). Any thread.
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param stage
 *   Less than hca_stage_count().
 * @return
 *   TSC cycles.
 */
uint64_t hca_stage_cycles(const struct hca *h, unsigned int pipe, unsigned int stage);

/**
 * Number of polls of a stage since hca_stage_times_enable(); with several workers, of bursts. Any
 * thread.
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param stage
 *   Less than hca_stage_count().
 * @param busy
 *   Count only polls that found work.
 * @return
 *   The number.
 */
uint64_t hca_stage_polls(const struct hca *h, unsigned int pipe, unsigned int stage, bool busy);

/**
 * hca_stage_cycles() in ns. Any thread.
 *
 * @param h
 *   The HCA.
 * @param pipe
 *   Less than hca_pipelines().
 * @param stage
 *   Less than hca_stage_count().
 * @return
 *   ns.
 */
uint64_t hca_stage_time_ns(const struct hca *h, unsigned int pipe, unsigned int stage);

#endif
