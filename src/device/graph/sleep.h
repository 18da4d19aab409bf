/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_SLEEP_H
#define GRAPH_SLEEP_H

/*
 * Workers that sleep, and how they are woken.
 *
 * Each worker has a sleep word on its own cache line: bit 0: asleep; the rest counts. Only workers
 * write it; others, including processes of clients, read it.
 *
 *   sleeper (worker)                     kicker
 *   word = asleep                        publish the work
 *   full fence                           full fence
 *   check everything once more           load the word; if asleep, and this sleep was not
 *   work found: awake                    kicked yet: write 1 to an eventfd
 *   deadline; RCU offline, epoll, online
 *   word = awake, check everything
 *
 * The eventfds are never read: O_NONBLOCK belongs to the open file description, which a client
 * shares, so a read could block without end. The descriptors are edge-triggered: each write
 * triggers.
 *
 * A sleep lasts until next_deadline(), which asks every stage and the port. Work that waits for
 * room which is not announced is polled after short sleeps of 20 us, growing to 1 ms; frames of a
 * port without an interrupt after 50 us, growing the same way. In addition an alarm wakes the
 * worker after 20 ms, growing to 320 ms while nothing happens; work that it finds without a (late)
 * kick is counted as wake_missed: a defect. It looks while its word still says asleep and waits
 * 1 ms for the kick: work published later may have met a worker that is awake, and needs none.
 *
 * A sleeping worker is RCU-offline. Between two polls it holds no pointers; its state is
 * checked by generation, as after any quiescent point.
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine/stage.h"

struct hca;

#define HCA_SLEEP_ASLEEP 1u
#define HCA_SLEEP_BACKSTOP_NS 20000000u

/* The sleep word of a worker; of the one that checks a pipe's doorbells, and its offset. */
const uint32_t *hca_sleep_word(const struct hca *h, unsigned int worker);
const uint32_t *hca_doorbell_word(const struct hca *h, unsigned int pipe);
uint32_t hca_sleep_offset(const struct hca *h, unsigned int pipe);
/* Whether every worker sleeps. Any thread. */
bool hca_sleep_all(const struct hca *h);

/* ---- kicks: after the work was published ---- */

/* Wake the worker of a stage, or all workers. Any thread. */
void hca_kick_stage(struct hca *h, enum hca_stage_id stage);
void hca_kick_all(struct hca *h);
/* The process's own eventfd of the worker that checks a pipe's doorbells; -1: it never sleeps. */
int hca_kick_fd(const struct hca *h, unsigned int pipe);

/*
 * Add an eventfd to which the client of doorbell page `page` may write, to wake the worker that
 * checks the doorbells of a pipe. remove: those of all pipes; called by the thread that closes the
 * descriptors, before it does.
 */
int hca_kick_add(struct hca *h, uint32_t page, unsigned int pipe, int fd);
void hca_kick_remove(struct hca *h, uint32_t page);
/* Number of times that useless kicks of the client were ignored for a time (MUTE_NS). */
uint64_t hca_kick_muted(const struct hca *h, uint32_t page);

/* ---- executors ---- */

/*
 * Create the descriptors of all workers. backstop_ns 0: the default, UINT64_MAX: none (tests). If
 * called again it only changes that.
 */
int hca_sleep_prepare(struct hca *h, uint64_t backstop_ns);
/*
 * The earliest time for which a stage of the worker or its port waits, ns; UINT64_MAX: they wait
 * for a kick, for room, or for frames only. Called between two polls of that worker, by tests:
 * hca_sleep() reads the same.
 */
uint64_t hca_sleep_alarm(const struct hca *h, unsigned int worker, uint64_t now);
/*
 * Called between two polls: sleep repeatedly while there is nothing to do; returns when there is
 * work, or *stop is set, or at once if the worker may not sleep. True: work was announced or found.
 */
bool hca_sleep(struct hca *h, unsigned int worker, const int *stop);
/* hca_poll(): wake the workers to which this one has passed something. */
void hca_wake_those(struct hca *h, unsigned int worker);

/* ---- hca_create() ---- */

int hca_sleep_init(struct hca *h);
void hca_sleep_fini(struct hca *h);

#endif
