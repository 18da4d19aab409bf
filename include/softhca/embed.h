/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_EMBED_H
#define SOFTHCA_EMBED_H

/*
 * Embedded mode: HCAs inside the calling process, joined back to back by a link in memory, or each
 * on a DPDK device of its own. For tests, benchmarks and lab tools. Lives in libsofthca-embed, the
 * only library that needs DPDK.
 *
 * softhca_embed_create() starts the EAL if the process has not (without touching the affinity of
 * the caller), builds num_hcas devices and their drivers and joins HCA 0 to 1, 2 to 3, ... Each
 * HCA has GID 0 = ::ffff:10.77.0.(1 + index) and GID 1 = 2001:db8:77::(1 + index), with a VLAN
 * GIDs 2 and 3 of the same kinds on it (10.78.0.x, 2001:db8:78::x), the link-local address as GID
 * 4, and knows its peer's MAC address for all of them: 02:00:00:77:00:(1 + index). With devices of
 * their own HCAs have the same addresses; what is at the other end takes those of the peer.
 *
 * fork(): the child has no use of its parent's HCAs: calls give -EPERM, also
 * softhca_embed_create(), as there is one EAL to a process and the parent keeps it. A child that
 * runs another program is free.
 *
 * Threads: create and destroy from one thread; everything else from any. With the executor
 * "manual" only one thread at a time runs the engine; others that call in skip it.
 */

#include <stdint.h>
#include <softhca/softhca.h>

#ifdef __cplusplus
extern "C" {
#endif

struct softhca_embed;

/* How stages are laid over lcores */
enum softhca_layout {
	SOFTHCA_LAYOUT_RTC,  /* all stages run to completion in one loop */
	SOFTHCA_LAYOUT_TXRX, /* transmit and receive side apart */
	SOFTHCA_LAYOUT_FULL, /* every stage on its own */
};

/* Who runs the stages */
enum softhca_executor {
	SOFTHCA_EXECUTOR_MANUAL,  /* the caller, in post, poll and softhca_progress() */
	SOFTHCA_EXECUTOR_THREADS, /* worker threads, made and ended by this library */
};

enum softhca_idle {
	SOFTHCA_IDLE_AUTO, /* yield when workers outnumber CPUs, else back off */
	SOFTHCA_IDLE_SPIN,
};

/*
 * What the link does to frames, each direction alike; probabilities 0..1. On a device of its own an
 * HCA applies it to what it sends and to what it has received.
 */
struct softhca_impairment {
	double drop;
	double dup;
	double reorder;
	double corrupt;
	uint32_t delay_us;
	uint32_t jitter_us;
};

/* A port that does not take what it is given: starvation tests */
struct softhca_port_stall {
	uint32_t tx_burst_max;	   /* accept 0..n frames per burst, at random; 0 = no limit */
	uint32_t down_after_ms;	   /* link down this long after the first frame ... */
	uint32_t down_for_ms;	   /* ... for this long; 0 = never */
	uint32_t discard_after_us; /* nothing taken so long: discard and count; 0 = 1000000 */
};

/* 0 stands for the default in every field; softhca_embed_config_init() fills the defaults in. */
struct softhca_embed_config {
	uint32_t size;	   /* sizeof(struct softhca_embed_config) */
	uint32_t num_hcas; /* 2; even, unless they have ports */
	uint32_t layout;   /* enum softhca_layout */
	uint32_t executor; /* enum softhca_executor */
	uint32_t idle;	   /* enum softhca_idle */
	uint32_t max_mtu;  /* enum softhca_mtu, 4096 */
	uint64_t seed;	   /* 0 = from the system; everything random follows it */
	struct softhca_impairment impair;
	struct softhca_port_stall stall;
	uint32_t edge_size; /* entries per edge: 256 */
	uint32_t mbufs;	    /* per pool (receive, transmit, response): 4096 */
	uint32_t records;   /* request records of each kind per HCA: two per QP, and shared ones */
	uint32_t records_per_qp; /* 256 */
	uint32_t log_qps;	 /* 14 */
	uint32_t log_cqs;	 /* 14 */
	uint32_t log_mpts;	 /* 17 */
	uint32_t log_mtts;	 /* 20 */
	uint32_t hugepages;	 /* 0 = when there are enough, 1 = must, 2 = never */
	uint32_t memory_mb;	 /* EAL memory, where this library starts the EAL */
	uint32_t port_queue;	 /* frames the link holds per direction: 1024 */
	uint32_t vlan;		 /* 1..4094: VLAN of GIDs 2 and 3; 0 = there are none */
	uint32_t telemetry; /* 1: the EAL, if started here, answers /softhca/... on its socket */
	const char *const *eal_args; /* NULL-terminated, replaces the built-in EAL arguments */
	/*
	 * NULL: HCAs are joined in memory. Else a DPDK device for each, "name,argument=value,...",
	 * probed here: "net_vhost0,iface=/run/x.sock", "net_af_packet0,iface=eth1".
	 */
	const char *const *ports;
};

/* One number with a name: a counter, or a stage's time in ns. name stays valid until destroy. */
struct softhca_value {
	const char *name;
	uint64_t value;
};

SOFTHCA_API void softhca_embed_config_init(struct softhca_embed_config *config);
SOFTHCA_API int softhca_embed_create(const struct softhca_embed_config *config,
				     struct softhca_embed **embed);

/* Contexts that are still open are closed first. */
SOFTHCA_API int softhca_embed_destroy(struct softhca_embed *embed);

/* A client of HCA `index` with a UAR page, a protection domain space and a quota of its own. */
SOFTHCA_API int softhca_embed_open(struct softhca_embed *embed, unsigned int index,
				   struct softhca_context **ctx);

/* Run all HCAs once (manual). Returns the work done, 0 = idle. */
SOFTHCA_API unsigned int softhca_embed_progress(struct softhca_embed *embed);

/*
 * A fault that happens to chosen frames instead of at random: those of one BTH opcode and one PSN
 * (or any), from the nth on, so many of them. The first rule that matches a frame decides.
 */
enum softhca_fault {
	SOFTHCA_FAULT_DROP,
	SOFTHCA_FAULT_DUP,
	SOFTHCA_FAULT_REORDER, /* behind the next frame */
	SOFTHCA_FAULT_DELAY,   /* by arg ns */
	SOFTHCA_FAULT_CORRUPT, /* one byte behind the MAC addresses */
};

#define SOFTHCA_FAULT_ANY 0xffffffffu

struct softhca_fault_rule {
	uint32_t inbound; /* 0: frames the HCA sends; 1: those it receives, on a device only */
	uint32_t opcode;  /* or SOFTHCA_FAULT_ANY */
	uint32_t psn;	  /* or SOFTHCA_FAULT_ANY */
	uint32_t nth;	  /* counted from 1; 0 as 1 */
	uint32_t count;	  /* 0: all that come */
	uint32_t fault;	  /* enum softhca_fault */
	uint64_t arg;
};

/* Both with the executor "manual" only, or while nothing is under way. -ENOSPC: 32 rules stand. */
SOFTHCA_API int softhca_embed_add_fault(struct softhca_embed *embed, unsigned int index,
					const struct softhca_fault_rule *rule);
SOFTHCA_API int softhca_embed_clear_faults(struct softhca_embed *embed, unsigned int index);

/* Change the link while it runs. NULL = clean. */
SOFTHCA_API int softhca_embed_set_impairment(struct softhca_embed *embed,
					     const struct softhca_impairment *impair);
SOFTHCA_API int softhca_embed_set_stall(struct softhca_embed *embed,
					const struct softhca_port_stall *stall);

/*
 * Counters of HCA `index`, then those of its port. Fills at most max values, returns how many
 * there are (call with max 0 to learn it) or a negative errno.
 */
SOFTHCA_API int softhca_embed_counters(struct softhca_embed *embed, unsigned int index,
				       struct softhca_value *values, unsigned int max);

/*
 * Busy time of each stage in ns since the last reset. Taking it costs about 20 ns per stage and
 * burst, so it is off until the first softhca_embed_reset_times(); call that and
 * softhca_embed_stop_times() while nothing is under way.
 */
SOFTHCA_API int softhca_embed_stage_times(struct softhca_embed *embed, unsigned int index,
					  struct softhca_value *values, unsigned int max);
SOFTHCA_API void softhca_embed_reset_times(struct softhca_embed *embed);
SOFTHCA_API void softhca_embed_stop_times(struct softhca_embed *embed);

/* Objects in use (QPs, records, mbufs, ...): what is not 0 after the last destroy has leaked. */
SOFTHCA_API int softhca_embed_resources(struct softhca_embed *embed, unsigned int index,
					struct softhca_value *values, unsigned int max);

/* Write every frame on the link to a pcap file; NULL ends it. */
SOFTHCA_API int softhca_embed_capture(struct softhca_embed *embed, const char *path);

/* Number of lcores that run stages: 0 in manual mode. */
SOFTHCA_API unsigned int softhca_embed_lcores(const struct softhca_embed *embed);

/* Of the DPDK this library runs on. */
SOFTHCA_API const char *softhca_embed_dpdk_version(void);

/* Why the last embed call of this thread failed; never NULL. */
SOFTHCA_API const char *softhca_embed_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
