/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_HCA_TELEMETRY_H
#define TELEMETRY_HCA_TELEMETRY_H

/*
 * DPDK telemetry of the HCAs of this process, for whoever composes them: commands /softhca/...,
 * which softhca-ctl and dpdk-telemetry.py ask. Commands cannot be taken back, so they are
 * registered once and look HCAs up by name; a lock keeps an HCA there while it is read. The
 * registry is the process's, like DPDK's own; the device knows nothing of it.
 *
 * Any thread may add and remove. Answers come from a thread of DPDK: from words that are atomic,
 * which may lag, and from the driver under its lock.
 */

#include <stdbool.h>
#include <stddef.h>

#include <rte_telemetry.h>

#include "driver.h"
#include "hca.h"

/* Who a client is, where the composition knows */
struct hca_telemetry_client {
	int pid;
	uint32_t uid;
	uint64_t attached; /* bytes of memory */
	uint64_t requests;
	uint64_t muted; /* times its kicks without doorbells were not listened to for a while */
};

/*
 * Memory of the caller, filled in before it is added and left alone until it is removed. What the
 * composition does not have is NULL or 0.
 */
struct hca_telemetry {
	struct hca_telemetry *next; /* of the registry */
	const char *name;
	struct hca *hca;
	struct hca_driver *drv;
	const char *layout;
	const char *device; /* of the port */
	const char *socket; /* where clients attach */
	uint32_t mtu;	    /* of IP packets */
	/* Adds what is in use to a dictionary: for leak checks. */
	int (*usage)(void *arg, struct rte_tel_data *d);
	/* Client of that UAR page; false: not known. NULL: none is. */
	bool (*client)(void *arg, uint32_t uar_page, struct hca_telemetry_client *out);
	/* health: "well" or what is wrong; cpu: "enough" or what is short. NULL: not watched. */
	void (*health)(void *arg, char *health, size_t health_size, char *cpu, size_t cpu_size);
	void *arg;
};

/* An HCA that is complete can be asked about until it is removed, before anything of it goes. */
void hca_telemetry_add(struct hca_telemetry *t);
/* Not added: nothing happens. */
void hca_telemetry_remove(struct hca_telemetry *t);

#endif
