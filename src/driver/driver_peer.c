/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peers of UB that clients have imported. The agent that sets channels up keeps the account of
 * them; here they are judged, counted for quotas, and given back with their client. And the device
 * is told which groups of TPs a client may use: those of which it has an import that is up.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi_gid_text.h"
#include "abi_tp.h"
#include "driver_types.h"

void
hca_driver_set_agent(struct hca_driver *drv, const struct hca_driver_agent *agent, void *arg)
{
	driver_lock_take(&drv->lock);
	pthread_mutex_lock(&drv->event_lock);
	drv->agent = agent;
	drv->agent_arg = arg;
	pthread_mutex_unlock(&drv->event_lock);
	driver_lock_give(&drv->lock);
}

const char *
hca_driver_agent_counter(struct hca_driver *drv, uint32_t i, uint64_t *value)
{
	const char *name = NULL;

	driver_lock_take(&drv->lock);
	if (drv->agent != NULL)
		name = drv->agent->counter(drv->agent_arg, i, value);
	driver_lock_give(&drv->lock);
	return name;
}

int
hca_driver_ub_limits(struct hca_driver *drv, uint32_t *log_tps, uint32_t *mtu_code)
{
	uint32_t word = hca_be32_to_cpu(drv->lim.ub);

	if (!driver_has_cap(drv, HCA_CAP_UB))
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	*log_tps = HCA_LIM_TPS_LOG(word);
	*mtu_code = HCA_LIM_TP_MTU(word);
	return 0;
}

static int
need_agent(const struct hca_driver *drv)
{
	if (!driver_has_cap(drv, HCA_CAP_UB))
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	return drv->agent != NULL
		       ? 0
		       : driver_fail(-EOPNOTSUPP, "the device has no agent that sets up channels "
						  "of UB: set [ub] enable = yes");
}

/* An address of one host; other invalid addresses have no MAC address. */
static bool
is_unicast(const uint8_t eid[16])
{
	static const uint8_t none[16];

	if (hca_gid_is_mapped(eid))
		return eid[12] != 0 && eid[12] < 224;
	return eid[0] != 0xff && memcmp(eid, none, sizeof(none)) != 0;
}

static int
refuse_address(const uint8_t eid[16])
{
	char text[INET6_ADDRSTRLEN];

	return driver_fail(-EINVAL, "%s is not the address of a host",
			   hca_gid_text(eid, text, sizeof(text)));
}

/* The agent gets it; the way to the peer is known. */
static int
begin_import(struct hca_client *client, const struct hca_driver_import *import, uint32_t *number)
{
	struct hca_driver *drv = client->drv;
	int err = driver_link_take(client, import->own, import->peer);

	if (err != 0)
		return err;
	err = drv->agent->import(drv->agent_arg, import, number);
	if (err != 0) {
		driver_link_give(client, import->own, import->peer);
		return driver_fail(err, err == -EBUSY ? "imports whose channels have ended must be "
							"given back first"
						      : "no more peers can be imported");
	}
	client->count[DRIVER_PEERS]++;
	return 0;
}

int
driver_op_import_peer(struct hca_client *client, const struct hca_ctl_peer *request,
		      uint32_t *number)
{
	struct hca_driver *drv = client->drv;
	struct hca_driver_import import = {.owner = client->uar, .user = client->user};
	struct hca_ctl_ah ah = {.sgid_index = request->gid_index}, known;
	int err = need_agent(drv);

	if (err == 0 && !is_unicast(request->eid))
		err = refuse_address(request->eid);
	if (err == 0)
		err = driver_quota(client, DRIVER_PEERS, 1);
	if (err != 0)
		return err;
	/* the client waits for the peer's MAC address, not the agent, which others wait for */
	memcpy(ah.dgid, request->eid, sizeof(ah.dgid));
	err = driver_op_resolve(client, &ah, &known);
	if (err == 0)
		err = need_agent(drv);
	if (err != 0)
		return err;
	memcpy(import.own, drv->gids[request->gid_index].gid, sizeof(import.own));
	memcpy(import.peer, request->eid, sizeof(import.peer));
	import.ah = known;
	return begin_import(client, &import, number);
}

/* An import of the client uses the group from now on. */
static int
use_group(struct hca_client *client, uint32_t group)
{
	struct hca_driver *drv = client->drv;
	int err = 0;

	if (client->tpgs == NULL)
		client->tpgs = calloc(drv->tpg_ids.count, sizeof(*client->tpgs));
	if (client->tpgs == NULL)
		return driver_no_memory("groups of TPs of a client",
					drv->tpg_ids.count * sizeof(*client->tpgs));
	/* its channels may have died meanwhile: then requests fail, as they would have */
	if (client->tpgs[group] == 0)
		err = driver_permit_tpg(drv, client->uar, group, true);
	client->tpgs[group]++;
	return err != 0 && drv->dead ? err : 0;
}

/* One of them does not any more. */
static void
leave_group(struct hca_client *client, uint32_t group)
{
	if (group == HCA_DRIVER_NO_TPG || client->tpgs == NULL || client->tpgs[group] == 0)
		return;
	if (--client->tpgs[group] == 0)
		(void)driver_permit_tpg(client->drv, client->uar, group, false);
}

int
driver_op_query_peer(struct hca_client *client, const uint32_t *number,
		     struct hca_ctl_peer_state *state)
{
	struct hca_driver *drv = client->drv;
	const char *why = "";
	bool first = false;
	int err = need_agent(drv);

	if (err != 0)
		return err;
	*state = (struct hca_ctl_peer_state){.up = 0};
	err = drv->agent->query(drv->agent_arg, client->uar, *number, &state->tpg, &first, &why);
	if (err == 0 && first)
		err = use_group(client, state->tpg);
	state->up = err == 0;
	if (err == 0 || err == -EINPROGRESS)
		return 0;
	return driver_fail(err, "no channel to the peer: %s", why);
}

int
driver_op_unimport_peer(struct hca_client *client, const uint32_t *number,
			struct hca_ctl_none *none)
{
	struct hca_driver *drv = client->drv;
	uint32_t group = HCA_DRIVER_NO_TPG;
	struct hca_driver_import was;
	int err = need_agent(drv);

	if (err != 0)
		return err;
	err = drv->agent->unimport(drv->agent_arg, client->uar, *number, &group, &was);
	if (err != 0)
		return driver_fail(err, "import %#x does not exist", *number);
	leave_group(client, group);
	driver_link_give(client, was.own, was.peer);
	client->count[DRIVER_PEERS]--;
	return 0;
}

void
driver_peers_forget(struct hca_client *client)
{
	struct hca_driver *drv = client->drv;

	if (client->count[DRIVER_PEERS] != 0 && drv->agent != NULL)
		drv->agent->forget(drv->agent_arg, client->uar);
	client->count[DRIVER_PEERS] = 0;
	driver_links_forget(client);
	free(client->tpgs);
	client->tpgs = NULL;
}

/* ---- senders of messages ---- */

static uint64_t
now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

/* The account of the user; the place of the one that has guessed last longest ago. */
static struct driver_guesses *
guesses_of(struct hca_driver *drv, uint32_t user)
{
	struct driver_guesses *best = &drv->guesses[0];

	for (uint32_t i = 0; i < DRIVER_GUESSERS; i++) {
		struct driver_guesses *g = &drv->guesses[i];

		if (g->wrong != 0 && g->user == user)
			return g;
		if (g->wrong == 0 || (best->wrong != 0 && g->since < best->since))
			best = g;
	}
	return best;
}

/* A client that tries many numbers would find the channels of others. */
static bool
may_guess(const struct driver_guesses *g, uint32_t user, uint64_t now)
{
	return g->wrong < DRIVER_GUESSES || g->user != user || now > g->since;
}

static void
guessed_wrong(struct driver_guesses *g, uint32_t user, uint64_t now)
{
	uint64_t forgiven = g->user == user ? now - g->since : g->wrong;

	g->wrong -= forgiven < g->wrong ? (uint32_t)forgiven : g->wrong;
	g->user = user;
	g->wrong++;
	g->since = now;
}

int
driver_op_query_tp_eid(struct hca_client *client, const uint32_t *tpn, struct hca_ctl_eid *eid)
{
	struct hca_driver *drv = client->drv;
	struct driver_guesses *g = guesses_of(drv, client->user);
	uint64_t now = now_s();
	int err;

	if (!may_guess(g, client->user, now))
		return driver_fail(-EAGAIN, "too many TPs that do not exist: one a second");
	if (!driver_tp_lives(drv, *tpn)) {
		guessed_wrong(g, client->user, now);
		return driver_fail(-EINVAL, "TP %#x does not exist", *tpn);
	}
	err = driver_command_out(drv, HCA_CMD_QUERY_TP, *tpn);
	if (err == 0)
		memcpy(eid->eid, ((const struct hca_tpc *)drv->mailbox_out)->path.rgid,
		       sizeof(eid->eid));
	return err;
}
