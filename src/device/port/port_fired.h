/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_FIRED_H
#define PORT_PORT_FIRED_H

/*
 * The last faults that a port has injected, for operators and captures. A list per queue: the
 * transmitting lcore enters them, any thread reads them; frames without faults cost no access here.
 */

#include <pthread.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "port/impair_text.h"

/* A fault and its frame, described as the frame was before the fault. */
struct hca_fired {
	uint64_t number; /* counted from 1 */
	uint64_t at;	 /* engine's time, ns */
	uint64_t frame;	 /* number of the frame in this queue of the port, counted from 1 */
	uint32_t psn, dst;
	uint16_t queue;
	uint8_t wire;  /* enum hca_wire; HCA_WIRE_NONE: psn, dst and opcode are not set */
	uint8_t fault; /* enum hca_fault */
	uint8_t rule;  /* counted from 1; 0: by chance */
	char opcode[25];
};

#define HCA_FIRED_MAX 16u

struct hca_fired_list {
	pthread_mutex_t lock;
	struct hca_fired last[HCA_FIRED_MAX];
	uint64_t n; /* faults ever entered */
};

void hca_fired_init(struct hca_fired_list *l);
void hca_fired_fini(struct hca_fired_list *l);

/* Sets the members that come from the frame; the caller sets the others. */
void hca_fired_describe(struct hca_fired *d, const struct rte_mbuf *m);
/* Sets d->number. */
void hca_fired_enter(struct hca_fired_list *l, struct hca_fired *d);
/*
 * Merges the last faults into the n faults of other queues, which are sorted by time, oldest first;
 * returns the number of faults. The last has the number of all faults of these queues.
 */
unsigned int hca_fired_read(struct hca_fired_list *l, struct hca_fired out[HCA_FIRED_MAX],
			    unsigned int n);
/* "drop by rule 2", "corrupt by chance" */
void hca_fired_text(const struct hca_fired *d, char *text, size_t size);

#endif
