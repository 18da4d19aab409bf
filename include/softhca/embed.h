/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_EMBED_H
#define SOFTHCA_EMBED_H

/*
 * Embedded mode: HCAs inside the calling process, connected back to back by links in memory, or
 * each on a DPDK device of its own. For tests, benchmarks and lab tools. This interface is in
 * libsofthca-embed, the only library that needs DPDK.
 *
 * softhca_embed_create() starts the EAL, unless the process already has, without changing the
 * caller's CPU affinity. It builds num_hcas devices with their drivers and connects HCA 0 to 1, 2
 * to 3, ... Each HCA has these GIDs:
 *   0  ::ffff:10.77.0.(1 + index)
 *   1  2001:db8:77::(1 + index)
 *   2  ::ffff:10.78.0.(1 + index), in the VLAN, if there is one
 *   3  2001:db8:78::(1 + index), in the VLAN, if there is one
 *   4  the link-local address; with link_local_first it is GID 0 and the others are 1 to 4, the
 *      order of daemons and of embedded HCAs that softhca_open() makes ("embed")
 * Its MAC address is 02:00:00:77:00:(1 + index), and its neighbour table has its peer's MAC address
 * for all of the peer's GIDs. HCAs on devices of their own have the same addresses; the other end
 * must use those of the peer: another process, with the number 1 as the first.
 *
 * fork(): a child cannot use its parent's HCAs: calls return -EPERM, softhca_embed_create()
 * included, because a process has one EAL and the parent keeps it; calls that return no error
 * code change nothing. After exec() a child may create HCAs.
 *
 * Signals: the threads of the HCAs and of DPDK block all of them, but those that a thread raises
 * itself.
 *
 * Threads: create and destroy from one thread; make all other calls from any thread. With the
 * executor "manual" only one thread at a time runs the engine; calls of other threads meanwhile do
 * not run it.
 *
 * Errors: calls return 0, or a count where documented, or a negative errno;
 * softhca_embed_last_error() explains it. -EINVAL: a parameter is out of range, for example the
 * index of an HCA.
 */

#include <stddef.h>
#include <stdint.h>
#include <softhca/softhca.h>

#ifdef __cplusplus
extern "C" {
#endif

struct softhca_embed;

/* How stages are distributed over lcores */
enum softhca_layout {
	SOFTHCA_LAYOUT_RTC,  /* all stages run to completion in one loop */
	SOFTHCA_LAYOUT_TXRX, /* the transmit side and the receive side in a loop each */
	SOFTHCA_LAYOUT_FULL, /* a loop for each stage */
};

/* Which threads run the stages */
enum softhca_executor {
	SOFTHCA_EXECUTOR_MANUAL,  /* the caller's, in post, poll and softhca_progress() */
	SOFTHCA_EXECUTOR_THREADS, /* worker threads that the library creates and ends */
};

enum softhca_idle {
	SOFTHCA_IDLE_AUTO, /* yield if there are more workers than CPUs, else back off */
	SOFTHCA_IDLE_SPIN,
};

/* When a sender of UB repeats a packet */
enum softhca_ub_rule {
	SOFTHCA_UB_RULE_DEFAULT, /* TIME */
	SOFTHCA_UB_RULE_NAK,	 /* go back to the first missing packet */
	SOFTHCA_UB_RULE_NONE, /* after a timeout; this and the next resend missing packets only */
	SOFTHCA_UB_RULE_HIGH, /* once, as soon as later packets have arrived */
	SOFTHCA_UB_RULE_MARK, /* the same, also for packets lost again */
	SOFTHCA_UB_RULE_TIME, /* when something sent later has arrived */
};

/* How a receiver of UB treats packets out of order */
enum softhca_ub_mode {
	SOFTHCA_UB_MODE_DEFAULT, /* as the rule needs: DROP with NAK, else SACK */
	SOFTHCA_UB_MODE_DROP,	 /* drops them */
	SOFTHCA_UB_MODE_TRACK,	 /* takes them and reports nothing */
	SOFTHCA_UB_MODE_SACK,	 /* takes and reports them */
};

/* Choices that the specification of UB leaves open, where not the default: a set */
enum softhca_ub_choice {
	SOFTHCA_UB_OLD_VALUE_LE = 1 << 0, /* old values of atomics, least significant byte first */
	SOFTHCA_UB_CLR_EOR_TEXT = 1 << 1, /* CLR is 2 and EOR is 1 on the wire */
	SOFTHCA_UB_EDGE = 1 << 2,	  /* execute requests with a token and E_bit 0 only */
	SOFTHCA_UB_NO_TAID = 1 << 3,	  /* channels without TAIDETAH */
	SOFTHCA_UB_NO_OFST = 1 << 4,	  /* and without OFSTETAH, of Reads */
	SOFTHCA_UB_SILENT = 1 << 5,	  /* no answer for Jettys that are gone or in error */
};

/*
 * Faults of the link, in each direction; probabilities are 0..1. An HCA on a device of its own
 * applies it to the frames it sends and to those it receives.
 */
struct softhca_impairment {
	double drop;
	double dup;
	double reorder;
	double corrupt;
	double truncate;
	double ecn; /* set the ECN bits to "congestion experienced" */
	uint32_t delay_us;
	uint32_t jitter_us;
};

/*
 * A network between two HCAs, the same in each direction: a link for each host, and paths chosen by
 * the addresses and the UDP source port. It needs links in memory and the executor "manual", and
 * time is simulated then: it advances as the engine is run, independent of the real clock.
 */
struct softhca_fabric {
	double rate_gbps; /* of each path; 0 = no such network */
	double delay_us;
	double skew_us;	   /* by which the slowest path is behind the fastest */
	uint32_t paths;	   /* 0 = 1 */
	uint32_t queue;	   /* bytes that may wait at a path, more are dropped; 0: no limit */
	uint32_t ecn;	   /* bytes that wait when frames are marked; 0 = never */
	double loss;	   /* probability per frame */
	double first_loss; /* of the first path, if it is not 0 */
};

/* A port that does not accept all frames: for tests of starvation */
struct softhca_port_stall {
	uint32_t tx_burst_max;	   /* accept 0..n frames per burst, at random; 0 = no limit */
	uint32_t down_after_ms;	   /* link down this long after the first frame */
	uint32_t down_for_ms;	   /* duration of the link's failure; 0 = never fails */
	uint32_t discard_after_us; /* discard frames not accepted for this long; 0 = 1000000 */
};

/* In every field 0 stands for the default; softhca_embed_config_init() sets the defaults. */
struct softhca_embed_config {
	uint32_t size;	   /* sizeof(struct softhca_embed_config) */
	uint32_t num_hcas; /* 2; must be even unless ports is set */
	uint32_t layout;   /* enum softhca_layout */
	uint32_t executor; /* enum softhca_executor */
	uint32_t idle;	   /* enum softhca_idle */
	uint32_t max_mtu;  /* enum softhca_mtu, 4096 */
	uint64_t seed;	   /* of all random numbers; 0 = taken from the system */
	struct softhca_impairment impair;
	struct softhca_port_stall stall;
	uint32_t edge_size; /* entries per edge: 256 */
	uint32_t mbufs;	    /* per pool (receive, transmit, response): 4096 */
	/* request records of each kind per HCA; 0 = two per QP and a shared pool */
	uint32_t records;
	uint32_t records_per_qp; /* 256 */
	uint32_t log_qps;	 /* 14 */
	uint32_t log_cqs;	 /* 14 */
	uint32_t log_srqs;	 /* 12 */
	uint32_t log_mpts;	 /* 17 */
	uint32_t log_mtts;	 /* 20 */
	uint32_t hugepages;	 /* 0 = if there are enough, 1 = required, 2 = not used */
	uint32_t memory_mb;	 /* EAL memory, if this library starts the EAL */
	uint32_t port_queue;	 /* frames the link holds in each direction: 1024 */
	uint32_t vlan;		 /* VLAN of GIDs 2 and 3, 1..4094; 0 = neither exists */
	uint32_t vendor_id;	 /* result of queries: 0x025348, 1 and 1 */
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t telemetry; /* 1: if this library starts the EAL, its socket serves /softhca/... */
	const char *const *eal_args; /* ends with NULL; replaces the built-in EAL arguments */
	/*
	 * NULL: links in memory. Otherwise a DPDK device for each HCA, "name,argument=value,...",
	 * which softhca_embed_create() probes: "net_vhost0,iface=/run/x.sock",
	 * "net_af_packet0,iface=eth1". The link of a memif is up also while it has no peer.
	 */
	const char *const *ports;
	uint32_t first;	     /* number of the first HCA, for its addresses: 0 */
	uint32_t ub;	     /* 1: the HCAs speak UB over Ethernet and RoCE; 0 = RoCE only */
	uint32_t log_tps;    /* UB: 8 */
	uint32_t ub_ops;     /* UB: requests and responses of TPs, of each: 16384 */
	uint32_t ub_records; /* UB: as records */
	struct softhca_fabric fabric;
	uint32_t ub_tps;	   /* UB: channels to a peer, 1..16: 4 */
	uint32_t ub_window;	   /* packets under way in each, a power of two, 128..2048: 1024 */
	uint32_t ub_rule;	   /* enum softhca_ub_rule */
	uint32_t ub_spray;	   /* source ports of each, a power of two up to 256: 1 */
	uint32_t ub_reorder_us;	   /* a packet late by less is not lost; 0, with ub_spray 25 */
	uint32_t ub_segment;	   /* bytes, a multiple of 4096 up to 65536: 65536 */
	uint32_t ub_choices;	   /* enum softhca_ub_choice, a set */
	uint32_t ub_mode;	   /* enum softhca_ub_mode */
	uint32_t ub_sack;	   /* bits of the largest report, a power of two, 64..1024: 1024 */
	uint32_t ub_exponent;	   /* a timeout is 2^(this - 1) times the one before it, 1..8: 2 */
	uint32_t link_local_first; /* 1: GID 0 is the link-local address; 0 = it is the last */
	const char *congestion;	   /* name of the congestion control; NULL: "none" */
	uint32_t cnp_interval_us;  /* of a QP: at most one CNP in it: 50 */
	uint32_t cnp_dscp;	   /* DSCP of CNPs, 1..63: 48 */
	/* of each HCA, each with the workers of the layout: 1, 2, 4, 8 or 16: 1 */
	uint32_t pipelines;
	uint32_t swift_base_delay_us; /* target of round trips with "swift", 5..100000: 25 */
	/* for members of later releases, which this one refuses if they are not 0 (-EOPNOTSUPP) */
	uint64_t reserved[29];
};

/*
 * A named number: a counter, or a stage's time in ns. name is valid until softhca_embed_destroy().
 */
struct softhca_value {
	const char *name;
	uint64_t value;
};

/**
 * Set all fields of a configuration to their defaults.
 *
 * @param config  configuration
 */
SOFTHCA_API void softhca_embed_config_init(struct softhca_embed_config *config);

/**
 * Create HCAs and connect them.
 *
 * @param config  NULL is not allowed; read before the call returns
 * @param embed  the new HCAs, to be freed with softhca_embed_destroy()
 * @return  0, or -EINVAL: the configuration is invalid; -EOPNOTSUPP: it has members of a later
 *   release; -EPERM: the parent process has the EAL; -ENOMEM
 */
SOFTHCA_API int softhca_embed_create(const struct softhca_embed_config *config,
				     struct softhca_embed **embed);

/**
 * Close the contexts that are still open, then destroy the HCAs.
 *
 * @param embed  HCAs, or NULL
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_embed_destroy(struct softhca_embed *embed);

/**
 * Open a context of an HCA: a client with its own UAR page, protection domains and quotas.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param ctx  the new context, to be closed with softhca_close()
 * @return  0, or -EMFILE: too many contexts are open; -EINVAL: there is no such HCA; -EPERM: the
 *   HCAs are those of the parent process
 */
SOFTHCA_API int softhca_embed_open(struct softhca_embed *embed, unsigned int index,
				   struct softhca_context **ctx);

/**
 * Run all HCAs once, if the executor is "manual".
 *
 * @param embed  HCAs of softhca_embed_create()
 * @return  amount of work done; 0: idle
 */
SOFTHCA_API unsigned int softhca_embed_progress(struct softhca_embed *embed);

/*
 * A fault applied to selected frames instead of at random: to `count` frames with a BTH opcode and
 * a PSN (or any), from the nth such frame on. The first rule that matches a frame is applied.
 */
enum softhca_fault {
	SOFTHCA_FAULT_DROP,
	SOFTHCA_FAULT_DUP,
	SOFTHCA_FAULT_REORDER, /* after the next frame */
	SOFTHCA_FAULT_DELAY,   /* by arg ns */
	SOFTHCA_FAULT_CORRUPT, /* one byte after the MAC addresses */
};

#define SOFTHCA_FAULT_ANY 0xffffffffu

struct softhca_fault_rule {
	uint32_t inbound; /* 0: frames the HCA sends; 1: frames it receives (only on a device) */
	uint32_t opcode;  /* or SOFTHCA_FAULT_ANY */
	uint32_t psn;	  /* or SOFTHCA_FAULT_ANY */
	uint32_t nth;	  /* counted from 1; 0 stands for 1 */
	uint32_t count;	  /* 0: all frames from the nth on */
	uint32_t fault;	  /* enum softhca_fault */
	uint64_t arg;
};

/**
 * Add a rule. Call it only with the executor "manual", or while there is no traffic.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param rule  the rule; copied
 * @return  0, or -ENOSPC: 32 rules exist; -EOPNOTSUPP: inbound, but HCAs are connected in memory;
 *   -EINVAL: there is no such HCA; -EPERM: the HCAs are those of the parent process
 */
SOFTHCA_API int softhca_embed_add_fault(struct softhca_embed *embed, unsigned int index,
					const struct softhca_fault_rule *rule);

/**
 * Remove all rules of an HCA; same condition as for softhca_embed_add_fault().
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_embed_clear_faults(struct softhca_embed *embed, unsigned int index);

/**
 * Read an impairment from text like "drop=0.01,delay=50". The names are those of struct
 * softhca_impairment; times are in microseconds, without "_us" in the name. Fields that the text
 * does not name become 0.
 *
 * @param text  text
 * @param out  result
 * @return  0, or -EINVAL: the text is wrong
 */
SOFTHCA_API int softhca_embed_parse_impairment(const char *text, struct softhca_impairment *out);

/**
 * Inject faults that text describes in the language of `softhca-ctl impair`, several parted by ";":
 *   "drop=0.01,delay=50"                 probabilities and us, as above; they replace those before
 *   "drop,opcode=read-response,nth=3"    a fault of frames with an opcode (by name or number), a
 *                                        psn, of one QP (qp=N, frames to it and from it) or TP of
 *                                        UB (tp=N): from the nth on, count of them. With psn or
 *                                        nth one, else all. These are added.
 *   "port=down,after=100,for=50"         the link goes down, ms after the first frame, or at once
 * A fault of an embedded HCA applies to frames that it sends; on a device of its own, also to
 * frames that it receives. Probabilities may also have opcode, qp and tp. Rules as
 * softhca_embed_add_fault().
 *
 * @param embed  HCAs; NULL: only check the text
 * @param text  one or several faults
 * @return  0, or -EINVAL: the text is wrong; -ENOENT: no HCA has this QP or TP; -ENOSPC: there are
 *   32 rules; -EOPNOTSUPP: a fault that embedded HCAs do not have; -EPERM: the HCAs are those of
 *   the parent process
 */
SOFTHCA_API int softhca_embed_impair(struct softhca_embed *embed, const char *text);

/**
 * Read the last faults of frames that an HCA sent, oldest first, one line each: "drop by rule 1
 * rc-read-response-middle PSN 1203 to 0x405".
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param text  result, always terminated; cut off if size is too small
 * @param size  bytes of text
 * @return  number of faults, up to 16, or -EINVAL: there is no such HCA; -EPERM: the HCAs are those
 *   of the parent process
 */
SOFTHCA_API int softhca_embed_faults(struct softhca_embed *embed, unsigned int index, char *text,
				     size_t size);

/**
 * Read a network from text like "rate=100,delay=50,paths=8,skew=20,loss=1e-3,loss0=0.1": Gb/s, us,
 * number, us, probability, and the probability of the first path; also queue and ecn in bytes.
 *
 * @param text  text
 * @param out  result
 * @return  0, or -EINVAL: the text is wrong
 */
SOFTHCA_API int softhca_embed_parse_fabric(const char *text, struct softhca_fabric *out);

/**
 * Read the clock of the HCAs. With a fabric this is simulated time. Callable from any thread.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @return  ns
 */
SOFTHCA_API uint64_t softhca_embed_now(const struct softhca_embed *embed);

/**
 * Change the impairment of all links, also during traffic.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param impair  the new impairment; NULL: none
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_embed_set_impairment(struct softhca_embed *embed,
					     const struct softhca_impairment *impair);

/**
 * Change how ports stall, also during traffic.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param stall  the new limits; NULL: none
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_embed_set_stall(struct softhca_embed *embed,
					const struct softhca_port_stall *stall);

/**
 * Change settings of an HCA, also during traffic. The text is that of `softhca-ctl set`:
 *   "congestion=NAME"          another congestion control for all its QPs and UB channels that have
 *                              no other one by SOFTHCA_QP_CONGESTION
 *   "swift_base_delay_us=N", "cnp_interval_us=N", "cnp_dscp=N"    as the members of struct
 *                              softhca_embed_config
 * Several settings have commas between them; if one is wrong, or a name is there twice, none
 * changes. A new algorithm is that of all these QPs and channels when the call returns; other
 * values count from the next CNP or acknowledgement on. Any thread.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param text  the settings
 * @return  0; or -EINVAL: the text is wrong, or there is no such HCA; -ENOMEM: no memory for the
 *   state of an algorithm; -EIO: the device is dead, or the command timed out, and some of the
 *   settings may have changed; -EPERM: the HCAs are those of the parent process
 */
SOFTHCA_API int softhca_embed_set(struct softhca_embed *embed, unsigned int index,
				  const char *text);

/**
 * Read the counters of an HCA and of its port.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param values  the array to fill; may be NULL if max is 0
 * @param max  size of values
 * @return  number of counters that exist, which may exceed max, or a negative errno
 */
SOFTHCA_API int softhca_embed_counters(struct softhca_embed *embed, unsigned int index,
				       struct softhca_value *values, unsigned int max);

/**
 * Read the busy time of each stage, in ns since the last softhca_embed_reset_times(); parameters
 * and result as for softhca_embed_counters().
 *
 * Measuring costs about 20 ns per stage and burst, so it is off until the first
 * softhca_embed_reset_times(). Call that and softhca_embed_stop_times() only while there is no
 * traffic.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param values  the array to fill; may be NULL if max is 0
 * @param max  size of values
 * @return  number of stages, which may exceed max, or a negative errno
 */
SOFTHCA_API int softhca_embed_stage_times(struct softhca_embed *embed, unsigned int index,
					  struct softhca_value *values, unsigned int max);

/**
 * Start the measurement of stage times from 0. Call it only while there is no traffic.
 *
 * @param embed  HCAs of softhca_embed_create()
 */
SOFTHCA_API void softhca_embed_reset_times(struct softhca_embed *embed);

/**
 * End the measurement of stage times. Call it only while there is no traffic.
 *
 * @param embed  HCAs of softhca_embed_create()
 */
SOFTHCA_API void softhca_embed_stop_times(struct softhca_embed *embed);

/**
 * Count the objects in use (QPs, records, mbufs, ...), as softhca_embed_counters(). A value other
 * than 0 after the program has destroyed all objects is a leak; with UB, one other than the same
 * call gave right after softhca_embed_create(), for the agent has objects of its own.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param index  number of the HCA, from 0
 * @param values  the array to fill; may be NULL if max is 0
 * @param max  size of values
 * @return  number of values that exist, which may exceed max, or a negative errno
 */
SOFTHCA_API int softhca_embed_resources(struct softhca_embed *embed, unsigned int index,
					struct softhca_value *values, unsigned int max);

/**
 * Write every frame that the HCAs send to a pcap file, before the link impairs it or a fabric loses
 * it. For an HCA on a device of its own, write every frame that it sends to the device and receives
 * from it. A path that ends with ".pcapng" gets this format, which records the faults of a frame as
 * a comment.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @param path  file; NULL: end the capture and close the file
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_embed_capture(struct softhca_embed *embed, const char *path);

/**
 * Number of lcores that run stages; 0 in manual mode.
 *
 * @param embed  HCAs of softhca_embed_create()
 * @return  number of lcores
 */
SOFTHCA_API unsigned int softhca_embed_lcores(const struct softhca_embed *embed);

/**
 * Version of the DPDK that this library uses.
 *
 * @return  a constant string
 */
SOFTHCA_API const char *softhca_embed_dpdk_version(void);

/**
 * Why the last embed call of this thread failed; never NULL.
 *
 * @return  a sentence, valid until the next failed embed call of this thread; never NULL
 */
SOFTHCA_API const char *softhca_embed_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
