/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The destinations that clients have asked for: which address of the host is the source, and the
 * MAC address of the next hop. Threads of the agent's hops look for them, or the agent itself where
 * the driver has a table.
 */

#include <errno.h>
#include <string.h>

#include "ibagent_impl.h"

void
ibagent_ask(struct ibagent *a, uint64_t ticket, const struct ibcm_wish *wish)
{
	struct cmagent_hop_wish w = {.ticket = ticket,
				     .client = wish->owner,
				     .scope = wish->scope,
				     .gid_index =
					     wish->fixed ? wish->gid_index : CMAGENT_HOP_NO_GID};

	memcpy(w.peer, wish->dst, sizeof(w.peer));
	ibagent_count(a, IBAGENT_ways_asked);
	if (cmagent_hops_ask(&a->hops, &w) != 0)
		ibagent_count(a, IBAGENT_ways_lost); /* the timeout of the client ends it */
}

/* Error that the state machines report to clients */
static int
way_error(int err)
{
	switch (err) {
	case 0:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
		return err;
	case -EADDRNOTAVAIL:
	case -EINVAL:
		return -ENODEV;
	default:
		return -EHOSTUNREACH;
	}
}

static void
way_answer(struct ibagent *a, const struct cmagent_hop_answer *answer)
{
	struct ibcm_way way = {.gid_index = answer->ah.sgid_index,
			       .hop_limit = CMAGENT_MAIL_HOP_LIMIT};
	int err = way_error(answer->err);

	memcpy(way.own, answer->own, sizeof(way.own));
	memcpy(way.peer, answer->ah.dgid, sizeof(way.peer));
	memcpy(way.dmac, answer->ah.dmac, sizeof(way.dmac));
	if (err != 0)
		ibagent_count(a, IBAGENT_ways_failed);
	pthread_mutex_lock(&a->lock);
	if (err != 0)
		ibagent_refused_way(a, answer->ah.dgid, err);
	ibcm_resolved(a->cm, answer->ticket, err, &way, ibagent_now(a));
	pthread_mutex_unlock(&a->lock);
}

unsigned int
ibagent_answers(struct ibagent *a)
{
	struct cmagent_hop_answer answer;
	unsigned int n = 0;

	for (; cmagent_hops_answer(&a->hops, &answer); n++)
		way_answer(a, &answer);
	return n;
}
