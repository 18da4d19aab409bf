/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMBED_IMPL_H
#define EMBED_IMPL_H

/* Shared by the files of the embedded composition. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <softhca/embed.h>

#include "driver.h"
#include "graph/executor.h"
#include "hca.h"
#include "hca_telemetry.h"
#include "host_events.h"
#include "port/port_fabric.h"
#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_pcap.h"
#include "port/port_stall.h"

struct ubagent;
struct ibagent;

#define EMBED_HCAS_MAX 16u
#define EMBED_FIRST_MAX 128u /* numbers of HCAs are bytes of addresses */
#define EMBED_CONTEXTS_MAX 64u

/*
 * One HCA, its driver, and its chain of ports: stall -> pcap -> impair -> (fabric ->) link in
 * memory, or stall -> impair -> inbound -> pcap -> device.
 */
struct embed_hca {
	struct softhca_embed *owner;
	char name[16];
	void *sleep_words; /* of its workers */
	int sleep_fd;	   /* file that holds them */
	struct hca *hca;
	struct hca_driver *drv;
	struct hca_port *wire, *pcap, *impair, *port;
	struct hca_port *fabric;  /* or NULL */
	struct hca_port *inbound; /* on a device of its own: impairment of received frames */
	struct hca_telemetry telemetry;
	struct ubagent *agent; /* UB: sets channels up; or NULL */
	struct ibagent *cm;    /* connection management */
	struct hca_usage base; /* objects in use before the first client */
};

struct softhca_embed {
	struct softhca_embed_config cfg;
	struct embed_hca side[EMBED_HCAS_MAX];
	struct hca_threads *threads;
	struct softhca_context *ctx[EMBED_CONTEXTS_MAX];
	struct hca_pcap *capture;
	pthread_mutex_t lock;	     /* protects contexts and capture */
	struct host_events notifier; /* threads */
	uint32_t forks;		     /* embed_forks() when it was created */
	int stop;
	uint64_t sim_now; /* with a fabric: simulated time, ns */
	uint32_t idle;	  /* loops without work */
	/* manual: number of loops, for checks of event queues */
	uint32_t polls;
	uint32_t cm_polls; /* of programs, for turns of connection management */
	int running __attribute__((aligned(64))); /* manual: a thread is inside the engine */
	/* manual: EQEs were written since the last check */
	uint32_t events __attribute__((aligned(64)));
};

/* Record the reason for softhca_embed_last_error(); returns err. */
int embed_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * embed.c: 0; -EPERM: the caller is a child of the process that the HCAs belong to. The second
 * one also returns -EINVAL: there is no HCA of this number.
 */
int embed_own(const struct softhca_embed *e);
int embed_own_hca(const struct softhca_embed *e, unsigned int index);

/*
 * embed_agent.c: the agent that sets up the channels of each HCA, if they speak UB. Polled by
 * threads that run the engine, outside of the drivers; with workers of their own each agent also
 * has a thread.
 */
int embed_agents_start(struct softhca_embed *e);
void embed_agents_stop(struct softhca_embed *e);
void embed_agents_poll(struct softhca_embed *e);

/* Callbacks of each agent; arg is the struct embed_hca. kick: a doorbell was rung. */
uint64_t embed_agent_now(void *arg);
void embed_agent_kick(void *arg);
void embed_agent_progress(void *arg);

/* embed_cm.c: connection management, in the same way */
int embed_cm_start(struct softhca_embed *e);
void embed_cm_stop(struct softhca_embed *e);
void embed_cm_poll(struct softhca_embed *e);

/* embed.c: manual: run the engine, without agents */
unsigned int embed_run(struct softhca_embed *e, uint32_t last);

/* embed_eal.c: start the EAL once per process, without changing the caller's CPU affinity. */
int embed_eal_start(const struct softhca_embed_config *cfg);

/* embed_lsan.c: once the EAL has started: its memory is searched for pointers to the heap. */
void embed_lsan_watch(void);

#endif
