/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peers of UB that clients have imported. The agent that sets channels up keeps the account of
 * them; here they are judged, counted for quotas, and given back with their client. And the device
 * is told which groups of TPs a client may use: those of which it has an import that is up.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_tp.h"
#include "driver_types.h"

void
hca_driver_set_agent(struct hca_driver *drv, const struct hca_driver_agent *agent, void *arg)
{
	pthread_mutex_lock(&drv->lock);
	pthread_mutex_lock(&drv->event_lock);
	drv->agent = agent;
	drv->agent_arg = arg;
	pthread_mutex_unlock(&drv->event_lock);
	pthread_mutex_unlock(&drv->lock);
}

const char *
hca_driver_agent_counter(struct hca_driver *drv, uint32_t i, uint64_t *value)
{
	const char *name = NULL;

	pthread_mutex_lock(&drv->lock);
	if (drv->agent != NULL)
		name = drv->agent->counter(drv->agent_arg, i, value);
	pthread_mutex_unlock(&drv->lock);
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
	return drv->agent != NULL ? 0 : driver_fail(-EOPNOTSUPP, "nobody sets channels up");
}

int
driver_op_import_peer(struct hca_client *client, const struct hca_ctl_peer *request,
		      uint32_t *number)
{
	struct hca_driver *drv = client->drv;
	struct hca_driver_import import = {.owner = client->uar};
	struct hca_ctl_ah ah = {.sgid_index = request->gid_index}, known;
	int err = need_agent(drv);

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
	err = drv->agent->import(drv->agent_arg, &import, number);
	if (err != 0)
		return driver_fail(err, "no more peers can be imported");
	client->count[DRIVER_PEERS]++;
	return 0;
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
		return driver_fail(-ENOMEM, "out of memory");
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
	int err = need_agent(drv);

	if (err != 0)
		return err;
	err = drv->agent->unimport(drv->agent_arg, client->uar, *number, &group);
	if (err != 0)
		return driver_fail(err, "import %#x does not exist", *number);
	leave_group(client, group);
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
	free(client->tpgs);
	client->tpgs = NULL;
}

int
driver_op_query_tp_eid(struct hca_client *client, const uint32_t *tpn, struct hca_ctl_eid *eid)
{
	struct hca_driver *drv = client->drv;
	int err;

	if (!driver_tp_lives(drv, *tpn))
		return driver_fail(-EINVAL, "TP %#x does not exist", *tpn);
	err = driver_command_out(drv, HCA_CMD_QUERY_TP, *tpn);
	if (err == 0)
		memcpy(eid->eid, ((const struct hca_tpc *)drv->mailbox_out)->path.rgid,
		       sizeof(eid->eid));
	return err;
}
