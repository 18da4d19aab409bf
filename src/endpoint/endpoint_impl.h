/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_IMPL_H
#define ENDPOINT_IMPL_H

/* Shared by the files of the endpoint. */

#include "admin_impair.h"
#include "endpoint.h"
#include "endpoint_health.h"
#include "endpoint_kernel.h"
#include "endpoint_link.h"
#include "endpoint_place.h"
#include "endpoint_port.h"
#include "graph/executor.h"
#include "hca_telemetry.h"
#include "host_events.h"
#include "ibagent.h"
#include "ipc_server.h"
#include "ubagent.h"

enum endpoint_way {
	ENDPOINT_SENT,
	ENDPOINT_RECEIVED,
	ENDPOINT_WAYS
};

/*
 * The chain of ports is stall -> impair -> inbound -> divert -> pcap -> wire; port.top is the first
 * of them. Without [admin] impair: divert -> wire.
 */
struct endpoint {
	struct endpoint_config cfg;
	struct endpoint_port port;
	struct endpoint_link link;
	struct endpoint_kernif kernel;
	struct hca_port *pcap; /* NULL: not configured */
	struct admin_faults faults[ENDPOINT_WAYS];
	struct hca_port *stall; /* takes the link down; NULL: not configured */
	struct hca_port *inbound;
	uint64_t gid_event_at; /* CLOCK_MONOTONIC, ns; 0: no event is due */
	void *sleep_words;     /* wakeup words of the workers (sleep.h); NULL: not created yet */
	int sleep_fd;	       /* file that holds them */
	struct ipc_sleep sleep;
	struct hca *hca;
	struct hca_threads *threads;
	struct hca_driver *drv;
	struct ubagent *agent; /* NULL: no UB */
	struct ibagent *cm;    /* NULL: no connection management */
	struct ipc_server *server;
	struct hca_telemetry telemetry;
	struct endpoint_health health;
	struct endpoint_place place;
	struct hca_pcap *capture; /* the running capture; endpoint_admin.c */
	struct host_events events;
};

/* endpoint_agent.c: the agent that sets up the channels of UB, if it is on; before clients come. */
int endpoint_agent_start(struct endpoint *e);
void endpoint_agent_stop(struct endpoint *e);
/* Callbacks of each agent of the daemon; arg is the struct endpoint. kick: a doorbell was rung. */
uint64_t endpoint_agent_now(void *arg);
void endpoint_agent_kick(void *arg);
/* endpoint_cm.c: connection management, unless it is off; before clients come. */
int endpoint_cm_start(struct endpoint *e);
/* Peers of connections are told; after clients have gone. */
void endpoint_cm_stop(struct endpoint *e);

/* endpoint_services.c: 0 or negative errno (endpoint_fail). */

/* Create the ports in front of the wire, the kernel interface's among them; before the HCA. */
int endpoint_front_open(struct endpoint *e);
/* Set the addresses, then start to serve clients; after the driver. */
int endpoint_services_start(struct endpoint *e);
void endpoint_clients_stop(struct endpoint *e);

#endif
