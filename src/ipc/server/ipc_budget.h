/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_BUDGET_H
#define IPC_BUDGET_H

/*
 * How long workers may wait for foreign memory. A budget is a part of the time that passes, saved
 * up to a limit. The parts of the process are divided equally among the users that have clients
 * with foreign memory: however many clients a user has, and however slow their memory is, the
 * others keep their shares, and all together never get more than the parts. A client has a part of
 * its own within the share of its user.
 *
 * Times are CLOCK_MONOTONIC in ns. Opening and closing: any thread; the rest: any worker, without a
 * lock.
 */

#include <stdint.h>
#include <sys/types.h>

/* 1/part of the time that passes, `max` ns at most. */
struct ipc_allowance {
	uint64_t part, max;
};

/* The rest of an allowance that was used up at *empty_at. */
uint64_t ipc_allowance_left(const uint64_t *empty_at, const struct ipc_allowance *a, uint64_t now);
/* The last wait may overdraw it: it is empty then. */
void ipc_allowance_take(uint64_t *empty_at, const struct ipc_allowance *a, uint64_t now,
			uint64_t ns);

#define IPC_BUDGET_MIN_NS 5000000u /* every user can save as much, for the wait for one access */

/* X(id, part of the time, limit in ns): the budget of all users together. */
#define IPC_BUDGET_LIST(X) \
	X(SYSCALL, 10, 50000000) /* for system calls of agents */ \
	X(CPU, 4, 100000000)	 /* for agents that have no CPU */

enum ipc_budget_kind {
#define X(id, part, max) IPC_BUDGET_##id,
	IPC_BUDGET_LIST(X)
#undef X
	IPC_BUDGETS
};

/* The budgets of a user. */
struct ipc_budget;

/*
 * The budgets of this user, for another client. A user that returns has the same budgets as before.
 * NULL: no memory.
 */
struct ipc_budget *ipc_budget_open(uid_t uid, uint64_t now);
void ipc_budget_close(struct ipc_budget *b);

uint64_t ipc_budget_left(const struct ipc_budget *b, enum ipc_budget_kind kind, uint64_t now);
void ipc_budget_take(struct ipc_budget *b, enum ipc_budget_kind kind, uint64_t now, uint64_t ns);

#endif
