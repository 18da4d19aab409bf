/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

/*
 * Two HCAs back to back, with the real driver and the real library, in one process. Time is
 * simulated (except with the threads executor): it advances with every loop, and jumps while
 * everything is idle, so that a timeout of a second takes milliseconds.
 *
 * Ports per side: stall -> impair -> wire. The impairment of side i applies to frames that i sends.
 * With SIM_PCAP=FILE in the environment the frames of both are captured, before they are impaired;
 * each simulation of a program overwrites the file, so all of them are read from a pipe.
 * SIM_VERBOSE=1 prints the counters of each run.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <softhca/softhca.h>

#include "driver.h"
#include "graph/executor.h"
#include "hca.h"
#include "port/port_impair.h"
#include "port/port_pcap.h"
#include "port/port_stall.h"
#include "sim_stepper.h"

enum sim_executor {
	SIM_DIRECT,
	SIM_STEPPED,
	SIM_THREADS,
};

/* GIDs of both sides, at the index of that name: X(id, name, VLAN, first 15 bytes) */
#define SIM_GID_LIST(X) \
	X(V4, "IPv4", 0xffff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0) \
	X(V6, "IPv6", 0xffff, 0x20, 0x01, 0x0d, 0xb8, 0, 0x77) \
	X(LINK_LOCAL, "link-local", 0xffff, 0xfe, 0x80) \
	X(V4_VLAN, "IPv4 on VLAN", 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 78, 0) \
	X(V6_VLAN, "IPv6 on VLAN", 5, 0x20, 0x01, 0x0d, 0xb8, 0, 0x78)

enum sim_gid {
#define X(id, name, vlan, ...) SIM_GID_##id,
	SIM_GID_LIST(X)
#undef X
	SIM_GIDS
};

extern const char *const sim_gid_names[SIM_GIDS];
extern const uint16_t sim_gid_vlan[SIM_GIDS]; /* 0xffff: none */
void sim_gid(unsigned int side, unsigned int index, uint8_t gid[16]);

/* 0 selects the default. */
struct sim_config {
	enum hca_layout layout;
	enum sim_executor executor;
	uint32_t wires; /* of both HCAs, as in struct hca_config */
	uint32_t pipes; /* of both HCAs [SIM_PIPES of the environment, or 1] */
	uint64_t seed;
	uint32_t edge_size, mbufs, records, full_records, records_per_qp;
	uint32_t ub_ops;      /* of each kind [1024] */
	uint32_t log_num_qps; /* [8]; as many CQs, four times as many MPTs */
	uint32_t log_tps;     /* [4] */
	uint32_t link_depth;  /* [256] */
	uint32_t max_mtu;
	uint64_t port_stall_ns;
	uint64_t tick_ns;	/* time per loop or step [500, stepped 50 / pipes] */
	struct hca_quota quota; /* of each client */
	/*
	 * Threads: use all CPUs, so that they race. Otherwise they share one and yield to each
	 * other, so that none waits longer than timeouts of milliseconds allow, whatever else the
	 * machine does.
	 */
	bool all_cpus;
	const struct hca_cc_ops *congestion; /* of both HCAs [none] */
	uint64_t backstop_ns; /* threads: alarm of sleeping workers; UINT64_MAX: only deadlines */
};

struct sim_side {
	struct hca *hca;
	struct hca_driver *drv;
	struct hca_port *wire, *impair, *stall; /* stall is the port of the HCA */
	struct softhca_context *ctx;		/* the client used by default */
	struct softhca_pd *pd;
	struct hca_usage base; /* objects in use when only the context is open */
	struct hca_driver_usage drv_base;
	uint64_t cqe_hash;
};

struct sim {
	struct sim_config cfg;
	struct sim_side side[2];
	uint64_t now;
	uint64_t loops;
	unsigned int idle; /* number of loops without work */
	/* threads: turns of sim_poll() in which no other thread wanted this CPU */
	unsigned int alone;
	struct sim_stepper stepper;
	struct hca_threads *threads;
	struct hca_pcap *pcap;
	struct sim_model *model; /* sim_model.h */
	/* Called at the end of each sim_poll(), also while a command is awaited. NULL: not. */
	void (*watch)(void *arg);
	void *watch_arg;
};

/*
 * Bring an RC QP of a side from RESET to RTS, with a QP of the other side as its peer, both PSNs 0
 * and a timeout of two seconds, for tests whose threads may have to wait for a CPU.
 */
void sim_connect_rc(struct sim *s, unsigned int side, struct softhca_qp *qp, uint32_t peer,
		    uint32_t access);

/* Start the EAL, if it does not run, and open the two HCAs. Fails the test on errors. */
struct sim *sim_open(const struct sim_config *cfg);

/* Wait until everything is idle, check that nothing is in use, and free everything. */
void sim_close(struct sim *s);

/* Open another client on one side, for example a hostile one; closed by softhca_close(). */
struct softhca_context *sim_client(struct sim *s, unsigned int side);

/*
 * Destroy the driver of one side; a new one resets the HCA and brings it up, and the default client
 * is opened again. That side must have no other clients.
 */
void sim_restart(struct sim *s, unsigned int side);

/* Run one loop over everything; returns the amount of work done. */
unsigned int sim_poll(struct sim *s);
void sim_run_for(struct sim *s, uint64_t ns);
/* Simulated time passes while no worker runs; with threads nothing happens. */
void sim_pass(struct sim *s, uint64_t ns);
/* Run until no work was done for some time and no packet is in flight. Fails after max_ns. */
void sim_settle(struct sim *s);

/*
 * Run until done() returns true, which is called after every loop; false: max_ns of simulated (or
 * real) time have passed.
 */
bool sim_run_until(struct sim *s, bool (*done)(struct sim *s, void *arg), void *arg,
		   uint64_t max_ns);

/* Ack timeout for QPs: real threads may have to wait for whatever else runs. */
uint8_t sim_ack_timeout(const struct sim *s);

uint64_t sim_counter(const struct sim *s, unsigned int side, const char *name);
/* Fails unless only the baseline is in use. */
void sim_check_usage(struct sim *s, bool objects_too);

/*
 * Check that exactly one counter explains every packet, request, descriptor and event that did not
 * reach its destination. Nothing may be in flight; sim_close() calls it after every test.
 */
void sim_check_conservation(struct sim *s);
/* Number of packets dropped before a QP accepted them. */
uint64_t sim_packets_dropped(const struct sim *s, unsigned int side);
/* Counted requests minus dropped ones. */
uint64_t sim_requests_executed(const struct sim *s, unsigned int side);
uint64_t sim_responses_used(const struct sim *s, unsigned int side);
uint64_t sim_chains_begun(const struct sim *s, unsigned int side);

/* Print time, counters and port statistics of both sides on stderr. */
void sim_summary(const struct sim *s);
uint64_t sim_hash_all(struct sim *s);

void sim_impair(struct sim *s, unsigned int side, const struct hca_impair *impair);
void sim_rule(struct sim *s, unsigned int side, struct hca_fault_rule rule);
void sim_clear_rules(struct sim *s);
uint64_t sim_faults(const struct sim *s);

/* The fields of completions that only larger CQEs have */
#define SIM_WC_LARGE \
	(SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP | SOFTHCA_WC_EX_WITH_CVLAN | \
	 SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/*
 * As softhca_poll_cq(), of a CQ with SIM_WC_LARGE: takes completions one by one, reads every field,
 * checks their times. vlan: the VLAN tag of each. Not with real threads.
 */
int sim_read_cq(struct sim *s, struct softhca_cq *cq, int num, struct softhca_wc *wc,
		uint16_t *vlan);

/* The test's own random generator. */
struct sim_rng {
	uint64_t s;
};

uint64_t sim_random(struct sim_rng *r);
uint32_t sim_below(struct sim_rng *r, uint32_t n);

/*
 * Print the error, the state of everything, the seed and a command line that repeats the run. Ends
 * the test: fail() of cmocka, or exit(1).
 */
void sim_fail(struct sim *s, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

#define sim_check(s, condition, ...) \
	do { \
		if (!(condition)) \
			sim_fail((s), __VA_ARGS__); \
	} while (0)

/* How sim_fail() ends a test, and the command line it prints. */
extern void (*sim_on_fail)(void);
void sim_set_repeat(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern const char *const sim_layout_names[];
int sim_layout_of(const char *name);

/* A number from the environment, or the default. */
uint64_t sim_env(const char *name, uint64_t otherwise);

#endif
