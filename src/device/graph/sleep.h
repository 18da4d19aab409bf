/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_SLEEP_H
#define GRAPH_SLEEP_H

/*
 * Workers that sleep, and who wakes them.
 *
 * Each worker has a sleep word on a cache line of its own: bit 0 asleep, the rest counts. Workers
 * alone write it; others, processes of clients among them, read it.
 *
 *	sleeper (worker)			kicker
 *	word = asleep				publish the work
 *	full fence				full fence
 *	look at everything once more		load the word; asleep, and this sleep was not
 *	found: awake				kicked yet: write 1 to an eventfd
 *	until when? RCU offline, epoll, online
 *	word = awake, look at everything
 *
 * Nobody ever reads an eventfd: O_NONBLOCK is the open file description's, which a client shares,
 * so a read might sleep for ever. The descriptors are edge-triggered: each write is an edge.
 *
 * The time of the sleep is what next_deadline() says, which asks every stage and the port. What
 * waits for room that nobody announces is looked for by naps of 20 us, growing to 1 ms; frames of a
 * port without an interrupt by naps of 50 us, growing likewise. Beside that an alarm rings after
 * 20 ms; what it finds without a kick that comes (late) for it is counted as wake_missed: a defect.
 *
 * A worker that sleeps is RCU-offline. Between two polls it holds no pointer; what it remembers is
 * judged by generation, as after any quiescent point.
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine/stage.h"

struct hca;

#define HCA_SLEEP_ASLEEP 1u
#define HCA_SLEEP_BACKSTOP_NS 20000000u

/*
 * The sleep word of a worker, or of the one that looks at doorbells, and where it is in the page.
 */
const uint32_t *hca_sleep_word(const struct hca *h, unsigned int worker);
uint32_t hca_sleep_offset(const struct hca *h);

/* ---- kicks: after the work was published ---- */

/* Any thread: the worker of a stage, or all of them. */
void hca_kick_stage(struct hca *h, enum hca_stage_id stage);
void hca_kick_all(struct hca *h);
/* The eventfd of the process itself for the worker that looks at doorbells; -1: it never sleeps. */
int hca_kick_fd(const struct hca *h);

/*
 * An eventfd that the client of doorbell page `page` may write to. remove: by the thread that
 * closes the descriptor, before it does.
 */
int hca_kick_add(struct hca *h, uint32_t page, int fd);
void hca_kick_remove(struct hca *h, uint32_t page);
/*
 * How often that client's kicks were not listened to for a while, because nothing was behind them.
 */
uint64_t hca_kick_muted(const struct hca *h, uint32_t page);

/* ---- executors ---- */

/*
 * Descriptors for all workers. backstop_ns 0: the default, UINT64_MAX: none (tests). Again: only
 * that.
 */
int hca_sleep_prepare(struct hca *h, uint64_t backstop_ns);
/*
 * Between two polls: sleeps as often and as long as there is nothing to do, and returns when there
 * is something, or *stop is set. Returns at once where the worker may not sleep. true: the spell
 * without work is over.
 */
bool hca_sleep(struct hca *h, unsigned int worker, const int *stop);
/* hca_poll(): kicks the workers this one has given something to. */
void hca_wake_those(struct hca *h, unsigned int worker);

/* ---- hca_create() ---- */

int hca_sleep_init(struct hca *h);
void hca_sleep_fini(struct hca *h);

#endif
