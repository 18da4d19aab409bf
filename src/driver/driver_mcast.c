/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Multicast groups: the device has a table of them, each with a small number of members. The driver
 * counts both per client and user, so that no client can take all.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver_types.h"

/* A group with members */
struct driver_group {
	struct driver_group *next;
	uint8_t mgid[16];
	uint32_t members;
};

/* Membership of a QP in a group */
struct driver_member {
	struct driver_member *next; /* of the same QP */
	struct driver_group *group;
};

static uint32_t
all_groups(const struct hca_driver *drv)
{
	uint32_t word = hca_be32_to_cpu(drv->lim.mcast);

	return word != 0 ? 1u << (HCA_LIM_MCGS_LOG(word) & 31) : 0;
}

uint64_t
driver_groups_left(const struct hca_driver *drv)
{
	uint32_t all = all_groups(drv);

	return all > drv->num_groups ? all - drv->num_groups : 0;
}

static struct driver_group *
find_group(struct hca_driver *drv, const uint8_t mgid[16])
{
	struct driver_group *g = drv->groups;

	while (g != NULL && memcmp(g->mgid, mgid, sizeof(g->mgid)) != 0)
		g = g->next;
	return g;
}

/* Number of the client's QPs in the group */
static uint32_t
members_of(const struct hca_client *client, const struct driver_group *g)
{
	uint32_t n = 0;

	for (const struct driver_qp *qp = client->qps; qp != NULL; qp = qp->next)
		for (const struct driver_member *m = qp->groups; m != NULL; m = m->next)
			n += m->group == g;
	return n;
}

static struct driver_member **
find_member(struct driver_qp *qp, const struct driver_group *g)
{
	struct driver_member **link = &qp->groups;

	while (*link != NULL && (*link)->group != g)
		link = &(*link)->next;
	return link;
}

/* Members of one group are shared by the general rule. */
static int
judge_places(const struct hca_client *client, const struct driver_group *g, uint32_t own)
{
	const struct hca_quota *q = &client->drv->config.quota;
	uint32_t all = HCA_LIM_QP_PER_MCG(hca_be32_to_cpu(client->drv->lim.mcast)), user = 0;
	uint32_t left = all > g->members ? all - g->members : 0, max;

	if (q->user_share == 0 || q->client_share == 0 || left == 0)
		return 0; /* the device refuses if the group is full */
	for (const struct hca_client *c = client->drv->clients; c != NULL; c = c->next)
		user += c->user == client->user ? members_of(c, g) : 0;
	max = (user + left) * q->user_share / 100;
	left = max > user ? max - user : 0;
	if (own < (own + left) * q->client_share / 100)
		return 0;
	return driver_fail(
		-ENOMEM,
		"the client has %u places in the group, %u are left to its user ([quota] "
		"user_share = %u, client_share = %u)",
		own, left, q->user_share, q->client_share);
}

static void
drop_group(struct hca_driver *drv, struct driver_group *g)
{
	struct driver_group **link = &drv->groups;

	if (g->members != 0)
		return;
	while (*link != g)
		link = &(*link)->next;
	*link = g->next;
	drv->num_groups--;
	free(g);
}

static struct driver_group *
new_group(struct hca_driver *drv, const uint8_t mgid[16])
{
	struct driver_group *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	g->next = drv->groups;
	drv->groups = g;
	drv->num_groups++;
	return g;
}

static void
leave(struct driver_qp *qp, struct driver_member **link)
{
	struct driver_member *m = *link;
	struct driver_group *g = m->group;

	*link = m->next;
	free(m);
	g->members--;
	if (members_of(qp->owner, g) == 0)
		qp->owner->count[DRIVER_GROUPS]--;
	drop_group(qp->owner->drv, g);
}

void
driver_mcast_forget(struct driver_qp *qp)
{
	while (qp->groups != NULL)
		leave(qp, &qp->groups);
}

static int
command(struct hca_driver *drv, const struct driver_qp *qp, const uint8_t mgid[16], uint32_t op)
{
	struct hca_mbox_mcast *mailbox = driver_mailbox(drv);

	memcpy(mailbox->mgid, mgid, sizeof(mailbox->mgid));
	return driver_command_in(drv, op, qp->qpn);
}

static int
enter(struct hca_driver *drv, struct driver_qp *qp, struct driver_group *g)
{
	uint32_t own = members_of(qp->owner, g);
	struct driver_member *m;
	int err = own == 0 ? driver_quota(qp->owner, DRIVER_GROUPS, 1) : 0;

	if (err == 0)
		err = judge_places(qp->owner, g, own);
	if (err != 0)
		return err;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return driver_no_memory("a member of a group", sizeof(*m));
	err = command(drv, qp, g->mgid, HCA_CMD_MCAST_ATTACH);
	if (err != 0) {
		free(m);
		return err;
	}
	*m = (struct driver_member){qp->groups, g};
	qp->groups = m;
	g->members++;
	qp->owner->count[DRIVER_GROUPS] += own == 0;
	return 0;
}

static int
attach(struct hca_driver *drv, struct driver_qp *qp, const uint8_t mgid[16])
{
	struct driver_group *g = find_group(drv, mgid);
	int err;

	if (g != NULL && *find_member(qp, g) != NULL)
		return command(drv, qp, mgid, HCA_CMD_MCAST_ATTACH);
	if (g == NULL)
		g = new_group(drv, mgid);
	if (g == NULL)
		return driver_no_memory("a group", sizeof(*g));
	err = enter(drv, qp, g);
	drop_group(drv, g);
	return err;
}

static int
detach(struct hca_driver *drv, struct driver_qp *qp, const uint8_t mgid[16])
{
	struct driver_group *g = find_group(drv, mgid);
	struct driver_member **link = g != NULL ? find_member(qp, g) : NULL;
	int err = command(drv, qp, mgid, HCA_CMD_MCAST_DETACH);

	if (err == 0 && link != NULL && *link != NULL)
		leave(qp, link);
	return err;
}

int
driver_mcast(struct driver_qp *qp, const uint8_t mgid[16], bool is_attach)
{
	struct hca_driver *drv = qp->owner->drv;

	if (qp->service != HCA_ST_UD)
		return driver_fail(-EINVAL, "only a UD QP takes multicasts");
	if (!qp->live)
		return driver_fail(-EINVAL, "the QP is in RESET");
	return is_attach ? attach(drv, qp, mgid) : detach(drv, qp, mgid);
}
