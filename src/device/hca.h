/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_HCA_H
#define DEVICE_HCA_H

/*
 * The device as its composer sees it (src/embed, the daemon, tests): create an HCA on a port,
 * hand its BARs to a driver, attach DMA windows, drive it, destroy it.
 *
 * Nothing here may be called from a stage. One thread composes; hca_poll() is called by whichever
 * thread owns the worker (executor.h). Errors: 0 or negative errno.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca_limits.h"

struct hca;
struct hca_port;

/* Which stages share an lcore; same stages, same tests in all of them. */
enum hca_layout {
	HCA_LAYOUT_RTC = 0, /* all stages on one worker, edges are direct calls */
	HCA_LAYOUT_TXRX,    /* transmit side and receive side apart */
	HCA_LAYOUT_FULL,    /* every stage its own worker, every edge a ring */
};

/* All sizes are counts unless a unit is named; 0 selects the default in brackets. */
struct hca_config {
	const char *name;      /* unique in the process; names DPDK objects ["hca<n>"] */
	struct hca_port *port; /* the wire; owned by the caller, outlives the HCA */
	enum hca_layout layout;
	int socket_id; /* NUMA socket of the memory, -1 = any */

#define X(section, name, least, most, preset) uint32_t name;
	HCA_LIMIT_LIST(X)
#undef X
	uint32_t log_eqs;	/* log2 of event queues [5], at most 5 */
	uint32_t full_records;	/* with SGL or inline data [two per QP and 4096 shared] */
	uint32_t ack_every;	/* AckReq at least every so many packets [32] */
	uint64_t port_stall_ns; /* encap discards after so long without progress [1 s] */
	uint32_t max_mtu;	/* bytes, 256..4096 [4096] */
	uint8_t mac[6];		/* port address, reported by QUERY/MAD_IFC */

	/*
	 * Reads or writes [addr, addr + len) of the process that owns the domain, for memory of it
	 * that is not mapped here (HCA_BUS_FOREIGN); NULL: there is none such. Called by the
	 * workers of encap, EE and RRC, perhaps several at once: it may take its time, but not for
	 * ever. 0, -EAGAIN: not now, the packet counts as lost; anything else: the access is wrong.
	 */
	int (*foreign)(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes,
		       uint32_t len);
	void *foreign_arg;

	/*
	 * HCA_SLEEP_BYTES of zeroes for the sleep words of the workers, which others may map to
	 * read them (graph/sleep.h); belongs to the caller, outlives the HCA. NULL: memory of its
	 * own.
	 */
	void *sleep_words;
};

#define HCA_SLEEP_BYTES 4096u

int hca_create(const struct hca_config *cfg, struct hca **out);

/* The caller has stopped every worker before. */
void hca_destroy(struct hca *h);

/* Register memory of software: HCR/UAR accesses go straight to these pages. */
volatile void *hca_bar0(struct hca *h);
volatile void *hca_bar2(struct hca *h);

/*
 * DMA windows: the device touches [bus, bus + len) only on behalf of domain.
 * Domain 0 = driver (mailboxes, ICM, EQs), otherwise a UAR page number. In this process a bus
 * address is the CPU address; one with HCA_BUS_FOREIGN (never of domain 0) goes to
 * hca_config.foreign. Called while no command of that domain is in flight. Detaching memory that a
 * live region of the domain lies in, and no other window covers: -EBUSY.
 */
int hca_dma_attach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len);
int hca_dma_detach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len);

/*
 * Has fn called at the end of a poll of the CEU that wrote EQEs, with a bit per EQN, in the worker
 * that polls: fn must not wait. Before workers run.
 */
typedef void (*hca_notify_fn)(void *arg, uint32_t eqn_bits);
void hca_set_notify(struct hca *h, hca_notify_fn fn, void *arg);

/* Workers of the layout: 1 (rtc), 2 (txrx), HCA_STAGE_N (full). */
unsigned int hca_workers(const struct hca *h);

/*
 * One loop of one worker at time now (ns, monotonic): polls its stages once each with bursts of at
 * most 32, then reports a quiescent state. Returns the work done (0 = idle).
 */
unsigned int hca_poll(struct hca *h, unsigned int worker, uint64_t now);

/*
 * One burst of one stage, of at most budget frames or records, at the time `now`. This is the step
 * of simulations, which choose stage, budget and time themselves; executors call hca_poll().
 */
unsigned int hca_poll_stage(struct hca *h, unsigned int stage, uint64_t now, unsigned int budget);

/* A worker that stops polling goes offline first, so that rounds do not wait for it. */
void hca_worker_online(struct hca *h, unsigned int worker);
void hca_worker_offline(struct hca *h, unsigned int worker);

/*
 * Returns when every worker that polls has begun another loop: nothing that was changed before is
 * looked at as it was. Any thread that is no worker, while workers run.
 */
void hca_wait_workers(struct hca *h);

/* Counters by name (core/counters.h), summed over stages. Any thread, values may lag. */
unsigned int hca_counter_count(void);
const char *hca_counter_name(unsigned int i);
uint64_t hca_counter_value(const struct hca *h, unsigned int i);

/* Of a QP by its number (-ENOENT: there is none), and of the port; values[..._count()]. */
unsigned int hca_qp_counter_count(void);
const char *hca_qp_counter_name(unsigned int i);
int hca_qp_counters(const struct hca *h, uint32_t qpn, uint64_t *values);
unsigned int hca_port_counter_count(void);
const char *hca_port_counter_name(unsigned int i);
void hca_port_counters(const struct hca *h, uint64_t *values);
/* Numbers of the QPs there are, at most max of them; returns how many there are. */
unsigned int hca_qp_list(const struct hca *h, uint32_t *qpns, unsigned int max);

/*
 * What a quiet HCA must hold: used by leak tests. in_use = objects taken from the pool now.
 */
struct hca_usage {
	uint32_t records, full_records; /* in use */
	uint32_t tx_mbufs, resp_mbufs;	/* in use */
	uint32_t qps, cqs, eqs, mpts;	/* live contexts */
	uint32_t srqs;
	uint32_t edge_objects; /* objects waiting in ring edges */
	uint32_t backlog;      /* frames encap could not hand to the port yet */
	uint32_t messages;     /* per-QP messages not yet consumed */
	/*
	 * per live QP on average: beyond its queues; its queue of READs and ATOMICs to be answered
	 */
	uint32_t qp_bytes, qp_job_bytes;
};
void hca_usage(const struct hca *h, struct hca_usage *u);

/*
 * What the device believes of the port's link: a PORT_CHANGE event tells every change of it, and
 * nothing else does. Any thread.
 */
bool hca_port_link_up(const struct hca *h);

/*
 * The port has a link, took nothing for port_stall_ns, and frames for it are discarded. Any thread.
 */
bool hca_port_discarding(const struct hca *h);

/* Cycles per stage, only counted after hca_stage_times_enable(h, true); ns since then. */
void hca_stage_times_enable(struct hca *h, bool on);
bool hca_stage_times_enabled(const struct hca *h);
const char *hca_stage_name(unsigned int stage);
unsigned int hca_stage_count(void);
/* Its worker; objects and messages that wait for it (may lag). */
unsigned int hca_stage_on(const struct hca *h, unsigned int stage);
uint32_t hca_stage_waiting(const struct hca *h, unsigned int stage);
uint64_t hca_stage_cycles(const struct hca *h, unsigned int stage);
/* How often it was polled, or found something to do; in layouts of several workers bursts. */
uint64_t hca_stage_polls(const struct hca *h, unsigned int stage, bool busy);
uint64_t hca_stage_time_ns(const struct hca *h, unsigned int stage);

#endif
