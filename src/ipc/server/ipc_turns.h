/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_TURNS_H
#define IPC_TURNS_H

/*
 * A client that takes its memory away while the device uses it is ended, but coming and going costs
 * the workers more than its traffic would. The clients of a user whose client was ended for this
 * take turns: one may begin in each interval, the others wait. The interval is IPC_TURN_FIRST_MS
 * after one loss, doubles with each, and is `most` at the end; without a loss for
 * IPC_TURN_FORGET_MS the user has no past.
 *
 * Times are CLOCK_MONOTONIC in ms. Any thread.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define IPC_TURN_FIRST_MS 20u
#define IPC_TURN_FORGET_MS 10000u

struct ipc_turn;

struct ipc_turns {
	pthread_mutex_t lock;
	struct ipc_turn *list; /* of users with a loss that is not forgotten */
	uint32_t max;	       /* ms; 0: no client waits */
};

void ipc_turns_init(struct ipc_turns *turns, uint32_t max);
void ipc_turns_free(struct ipc_turns *turns);
/* A client of the user was ended because it had taken its memory away. */
void ipc_turns_lost(struct ipc_turns *turns, uid_t uid, uint64_t now);
/* Whether a client of the user may begin now, which takes the turn: 0, or how long it waits. */
uint32_t ipc_turns_take(struct ipc_turns *turns, uid_t uid, uint64_t now);

#endif
