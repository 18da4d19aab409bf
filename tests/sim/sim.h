/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

/*
 * Two HCAs back to back with the real driver and the real user library on top, in one process.
 * Time is simulated (except with the threads executor): it advances with every loop, and in jumps
 * while everything is idle, so a timeout of a second costs milliseconds.
 *
 * Stack of ports per side: stall -> impair -> wire. Impairment of side i is what i transmits.
 * SIM_PCAP=FILE in the environment captures the wire, SIM_VERBOSE=1 shows the counters of each run.
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

enum sim_executor {
	SIM_DIRECT,
	SIM_STEPPED,
	SIM_THREADS,
};

/* GIDs of both sides, at the index of the same name: X(id, name, VLAN, first 15 bytes) */
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
void sim_gid(unsigned int side, unsigned int index, uint8_t gid[16]);

/* 0 selects the default. */
struct sim_config {
	enum hca_layout layout;
	enum sim_executor executor;
	uint64_t seed;
	uint32_t edge_size, mbufs, records, full_records, records_per_qp;
	uint32_t log_num_qps; /* [8]; as many CQs, four times as many MPTs */
	uint32_t link_depth;  /* [256] */
	uint32_t max_mtu;
	uint64_t port_stall_ns;
	uint64_t tick_ns;	/* time per loop or step [500, stepped 50] */
	struct hca_quota quota; /* of each client */
	/*
	 * Threads: on all CPUs, to race each other. Else they share one and give way to each other,
	 * so that none waits longer than time-outs of milliseconds allow, whatever else the machine
	 * does.
	 */
	bool all_cpus;
	uint64_t backstop_ns; /* threads: of sleeping workers; UINT64_MAX: no alarm but deadlines */
};

struct sim_side {
	struct hca *hca;
	struct hca_driver *drv;
	struct hca_port *wire, *impair, *stall; /* stall is the port of the HCA */
	struct softhca_context *ctx;		/* the client everything is done with */
	struct softhca_pd *pd;
	struct hca_usage base; /* what is in use with the context open and nothing made */
	struct hca_driver_usage drv_base;
	uint64_t cqe_hash;
};

struct sim {
	struct sim_config cfg;
	struct sim_side side[2];
	uint64_t now;
	uint64_t loops;
	unsigned int idle;  /* loops without work so far */
	unsigned int alone; /* turns of sim_poll() with threads in which nobody wanted this CPU */
	struct hca_stepper stepper;
	struct hca_threads *threads;
	struct hca_pcap *pcap;
	struct sim_model *model; /* sim_model.h */
};

/* Starts the EAL at the first call. Fails the test where it cannot. */
struct sim *sim_open(const struct sim_config *cfg);

/* Waits until everything is quiet, checks that nothing is left in use, and frees it all. */
void sim_close(struct sim *s);

/* Another client of one side, e.g. a hostile one. Closed by softhca_close(). */
struct softhca_context *sim_client(struct sim *s, unsigned int side);

/*
 * The driver of one side goes and a new one brings the HCA up from a reset; with it the client
 * everything is done with. No other client of that side may be left.
 */
void sim_restart(struct sim *s, unsigned int side);

/* One loop over everything; returns the work done. */
unsigned int sim_poll(struct sim *s);
void sim_run_for(struct sim *s, uint64_t ns);
/* Until nothing has happened for some time and no packet is under way. Fails after max_ns. */
void sim_settle(struct sim *s);

/* done() is asked after every loop; false: max_ns of simulated (or real) time have passed. */
bool sim_run_until(struct sim *s, bool (*done)(struct sim *s, void *arg), void *arg,
		   uint64_t max_ns);

/* Code of the ack timeout for QPs: real threads may be kept waiting by whatever else runs. */
uint8_t sim_ack_timeout(const struct sim *s);

uint64_t sim_counter(const struct sim *s, unsigned int side, const char *name);
/* Fails unless nothing but the baseline is in use. */
void sim_check_usage(struct sim *s, bool objects_too);

/*
 * Every packet, request, descriptor and event that is not where it was meant to go is explained by
 * exactly one counter. Nothing may be under way; sim_close() checks it after every test.
 */
void sim_check_conservation(struct sim *s);
/* Packets dropped before a QP took them. */
uint64_t sim_packets_dropped(const struct sim *s, unsigned int side);
/* What is left of a counter of everything when all that was dropped is taken off. */
uint64_t sim_requests_executed(const struct sim *s, unsigned int side);
uint64_t sim_responses_used(const struct sim *s, unsigned int side);
uint64_t sim_chains_begun(const struct sim *s, unsigned int side);

/* Time, counters and port statistics of both sides, on stderr. */
void sim_summary(const struct sim *s);
uint64_t sim_hash_all(struct sim *s);

void sim_impair(struct sim *s, unsigned int side, const struct hca_impair *impair);
void sim_rule(struct sim *s, unsigned int side, struct hca_fault_rule rule);
void sim_clear_rules(struct sim *s);
uint64_t sim_faults(const struct sim *s);

/* The test's own randomness. */
struct sim_rng {
	uint64_t s;
};

uint64_t sim_random(struct sim_rng *r);
uint32_t sim_below(struct sim_rng *r, uint32_t n);

/*
 * What went wrong, with the state of everything, the seed and the command line that repeats it.
 * Ends the test: fail() of cmocka, or exit(1).
 */
void sim_fail(struct sim *s, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

#define sim_check(s, condition, ...) \
	do { \
		if (!(condition)) \
			sim_fail((s), __VA_ARGS__); \
	} while (0)

/* How sim_fail() ends a test, and the command line it names. */
extern void (*sim_on_fail)(void);
void sim_set_repeat(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern const char *const sim_layout_names[];
int sim_layout_of(const char *name);

/* A number from the environment, or the default. */
uint64_t sim_env(const char *name, uint64_t otherwise);

#endif
