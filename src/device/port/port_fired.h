/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_FIRED_H
#define PORT_PORT_FIRED_H

/*
 * The last faults that a port has injected, for operators and captures. The transmitting lcore
 * enters them, any thread reads them; frames without faults touch nothing here.
 */

#include <pthread.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "port/impair_text.h"

/* A fault of a frame, which is described as it was before. */
struct hca_fired {
	uint64_t number; /* counted from 1 */
	uint64_t at;	 /* engine's time, ns */
	uint64_t frame;	 /* which one that the port was given, counted from 1 */
	uint32_t psn, dst;
	uint8_t wire;  /* enum hca_wire; HCA_WIRE_NONE: psn, dst and opcode say nothing */
	uint8_t fault; /* enum hca_fault */
	uint8_t rule;  /* counted from 1; 0: by chance */
	char opcode[25];
};

#define HCA_FIRED_MAX 16u

struct hca_fired_list {
	pthread_mutex_t lock;
	struct hca_fired last[HCA_FIRED_MAX];
	uint64_t n; /* ever */
};

void hca_fired_init(struct hca_fired_list *l);
void hca_fired_fini(struct hca_fired_list *l);

/* What the frame says of itself; the rest of *d is the caller's. */
void hca_fired_describe(struct hca_fired *d, const struct rte_mbuf *m);
/* Sets d->number. */
void hca_fired_enter(struct hca_fired_list *l, struct hca_fired *d);
/* Oldest first; returns how many. */
unsigned int hca_fired_read(struct hca_fired_list *l, struct hca_fired out[HCA_FIRED_MAX]);
/* "drop by rule 2", "corrupt by chance" */
void hca_fired_text(const struct hca_fired *d, char *text, size_t size);

#endif
