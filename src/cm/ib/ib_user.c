/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Users: the accounts of the clients that one user runs. A user has at most user_share per cent of
 * the units of a stock that other users leave.
 */

#include <stdlib.h>

#include "ib_impl.h"

static struct ib_user *
user_find(const struct ibcm *cm, uint32_t number)
{
	struct ib_link *link = ib_hash_next(&cm->users, number, NULL);

	return link == NULL ? NULL : IB_CONTAINER(link, struct ib_user, link);
}

struct ib_user *
ib_user_get(struct ibcm *cm, uint32_t number)
{
	struct ib_user *u = user_find(cm, number);

	if (u == NULL) {
		u = calloc(1, sizeof(*u));
		if (u == NULL)
			return NULL;
		ib_node_init(&u->orphans);
		ib_hash_add(&cm->users, &u->link, number);
	}
	u->accounts++;
	return u;
}

void
ib_user_drop(struct ibcm *cm, struct ib_user *user)
{
	if (--user->accounts != 0)
		return;
	ib_hash_remove(&cm->users, &user->link);
	free(user);
}

bool
ib_user_may(const struct ibcm *cm, uint32_t has, uint32_t left)
{
	uint64_t all = (uint64_t)has + left, share = cm->cfg.user_share;

	return left != 0 && (share == 0 || has < (all * share + 99) / 100);
}
