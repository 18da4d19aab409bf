/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The list of users. One without clients stays in it until his budgets would be full anyway, so
 * that a client that closes and opens its context again gets nothing for it.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ipc_budget.h"

struct ipc_budget {
	struct ipc_budget *next;
	uid_t uid;
	uint32_t clients;
	uint64_t empty_at[IPC_BUDGETS];
};

static const struct ipc_allowance all[IPC_BUDGETS] = {
#define X(id, part_, max_) [IPC_BUDGET_##id] = {.part = part_, .max = max_},
	IPC_BUDGET_LIST(X)
#undef X
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ipc_budget *list;
static uint32_t users; /* with clients; workers read it */

uint64_t
ipc_allowance_left(const uint64_t *empty_at, const struct ipc_allowance *a, uint64_t now)
{
	uint64_t at = __atomic_load_n(empty_at, __ATOMIC_RELAXED);
	uint64_t earned = now > at ? (now - at) / a->part : 0;

	return earned < a->max ? earned : a->max;
}

void
ipc_allowance_take(uint64_t *empty_at, const struct ipc_allowance *a, uint64_t now, uint64_t ns)
{
	uint64_t at = __atomic_load_n(empty_at, __ATOMIC_RELAXED), full, empty;

	do {
		full = now - a->part * a->max;
		empty = (at > full ? at : full) + a->part * ns;
		if (empty > now)
			empty = now;
	} while (!__atomic_compare_exchange_n(empty_at, &at, empty, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

/* Of one user, as many as there are now. */
static struct ipc_allowance
share_of(enum ipc_budget_kind kind)
{
	uint32_t n = __atomic_load_n(&users, __ATOMIC_RELAXED);
	struct ipc_allowance a = all[kind];

	if (n > 1) {
		a.part *= n;
		a.max /= n;
	}
	if (a.max < IPC_BUDGET_MIN_NS)
		a.max = IPC_BUDGET_MIN_NS;
	return a;
}

uint64_t
ipc_budget_left(const struct ipc_budget *b, enum ipc_budget_kind kind, uint64_t now)
{
	const struct ipc_allowance a = share_of(kind);

	return ipc_allowance_left(&b->empty_at[kind], &a, now);
}

void
ipc_budget_take(struct ipc_budget *b, enum ipc_budget_kind kind, uint64_t now, uint64_t ns)
{
	const struct ipc_allowance a = share_of(kind);

	ipc_allowance_take(&b->empty_at[kind], &a, now, ns);
}

static bool
is_full(const struct ipc_budget *b, uint64_t now)
{
	for (unsigned int i = 0; i < IPC_BUDGETS; i++)
		if (ipc_allowance_left(&b->empty_at[i], &all[i], now) < all[i].max)
			return false;
	return true;
}

/* Remove those that say nothing any more. */
static void
forget_full(uint64_t now)
{
	struct ipc_budget *b, **at = &list;

	while ((b = *at) != NULL)
		if (b->clients == 0 && is_full(b, now)) {
			*at = b->next;
			free(b);
		} else {
			at = &b->next;
		}
}

static struct ipc_budget *
find_or_add(uid_t uid)
{
	struct ipc_budget *b = list;

	while (b != NULL && b->uid != uid)
		b = b->next;
	if (b != NULL)
		return b;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return NULL;
	b->uid = uid;
	b->next = list;
	list = b;
	return b;
}

struct ipc_budget *
ipc_budget_open(uid_t uid, uint64_t now)
{
	struct ipc_budget *b;

	pthread_mutex_lock(&lock);
	forget_full(now);
	b = find_or_add(uid);
	if (b != NULL && b->clients++ == 0)
		__atomic_store_n(&users, users + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return b;
}

void
ipc_budget_close(struct ipc_budget *b)
{
	pthread_mutex_lock(&lock);
	if (--b->clients == 0)
		__atomic_store_n(&users, users - 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}
