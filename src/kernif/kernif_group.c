/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Multicast groups: kernif_group() records the groups of clients, and the thread that follows the
 * tables joins and leaves, because the kernel may take its time and the responder has one thread.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi_addr.h"
#include "kernif_impl.h"

#define SOCKET_MEMBERS 16u /* below the kernel's default limit of 20 */

void
kernif_groups_init(struct kernif *k)
{
	pthread_mutex_init(&k->groups.lock, NULL);
}

void
kernif_groups_destroy(struct kernif *k)
{
	struct kernif_groups *g = &k->groups;

	for (uint32_t i = 0; i < g->num_sockets; i++)
		close(g->socket[i].fd);
	free(g->socket);
	free(g->member);
	pthread_mutex_destroy(&g->lock);
}

/* ---- wanted groups ---- */

static struct kernif_member *
member_find(struct kernif_groups *g, uint32_t gid_index, const uint8_t mgid[16])
{
	for (uint32_t i = 0; i < g->num; i++)
		if (g->member[i].gid_index == gid_index &&
		    memcmp(g->member[i].group, mgid, 16) == 0)
			return &g->member[i];
	return NULL;
}

static int
member_add(struct kernif_groups *g, uint32_t gid_index, const uint8_t mgid[16])
{
	uint32_t room = g->room != 0 ? 2 * g->room : 64;
	struct kernif_member *m = g->member;

	if (g->num == KERNIF_GROUPS)
		return -ENOSPC;
	if (g->num == g->room) {
		m = realloc(m, room * sizeof(*m));
		if (m == NULL)
			return -ENOMEM;
		g->member = m;
		g->room = room;
	}
	m = &g->member[g->num++];
	*m = (struct kernif_member){.gid_index = gid_index, .refs = 1};
	memcpy(m->group, mgid, sizeof(m->group));
	return 0;
}

static int
member_change(struct kernif_groups *g, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	struct kernif_member *m = member_find(g, gid_index, mgid);

	if (joined && m == NULL)
		return member_add(g, gid_index, mgid);
	if (joined)
		m->refs++;
	else if (m == NULL || m->refs == 0)
		return -ENOENT;
	else
		m->refs--;
	return 0;
}

int
kernif_group(struct kernif *k, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	struct kernif_groups *g = &k->groups;
	int err;

	if (gid_index >= GID_TABLE_MAX || !hca_gid_is_multicast(mgid))
		return -EINVAL;
	pthread_mutex_lock(&g->lock);
	err = member_change(g, gid_index, mgid, joined);
	if (err == 0)
		__atomic_store_n(&g->dirty, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&g->lock);
	if (err == 0)
		kernif_ring(k->cfg.kind == KERNIF_TAP ? k->group_fd : k->kick_fd);
	return err;
}

void
kernif_groups_changed(struct kernif *k)
{
	__atomic_store_n(&k->groups.dirty, true, __ATOMIC_RELEASE);
}

/* ---- the kernel ---- */

/* Join (or leave) with a socket. */
static int
tap_member(int fd, const struct kernif_member *m, bool join)
{
	struct ip_mreqn v4 = {.imr_ifindex = (int)m->ifindex};
	struct ipv6_mreq v6 = {.ipv6mr_interface = m->ifindex};
	int rc;

	memcpy(&v4.imr_multiaddr, m->group + 12, 4);
	memcpy(&v6.ipv6mr_multiaddr, m->group, 16);
	if (hca_gid_is_mapped(m->group))
		rc = setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &v4,
				sizeof(v4));
	else
		rc = setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &v6,
				sizeof(v6));
	return rc == 0 ? 0 : -errno;
}

/* One more socket; those of IPv6 can be in groups of both versions. */
static int
tap_socket(struct kernif_groups *g)
{
	struct kernif_socket *s = realloc(g->socket, (g->num_sockets + 1) * sizeof(*s));
	int fd;

	if (s == NULL)
		return -ENOMEM;
	g->socket = s;
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) /* a kernel without IPv6 */
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	g->socket[g->num_sockets++] = (struct kernif_socket){.fd = fd};
	return 0;
}

/* The same group of two entries of a link needs two sockets; the kernel counts them. */
static int
tap_join(struct kernif *k, struct kernif_member *m)
{
	const struct kernel_link *l = kernel_tables_vlan(&k->tables, m->vlan_id);
	struct kernif_groups *g = &k->groups;
	int err;

	if (l == NULL)
		return -ENODEV;
	m->ifindex = l->ifindex;
	for (m->socket = 0;; m->socket++) {
		err = m->socket == g->num_sockets ? tap_socket(g) : 0;
		if (err != 0)
			return err;
		if (g->socket[m->socket].members >= SOCKET_MEMBERS)
			continue;
		err = tap_member(g->socket[m->socket].fd, m, true);
		if (err == -EADDRINUSE)
			continue;
		if (err == 0)
			g->socket[m->socket].members++;
		return err;
	}
}

/* The kernel has left the groups of an interface that is gone. */
static void
tap_leave(struct kernif *k, const struct kernif_member *m)
{
	struct kernif_socket *s = &k->groups.socket[m->socket];

	(void)tap_member(s->fd, m, false);
	s->members--;
}

/* ---- both kinds ---- */

static int
member_join(struct kernif *k, struct kernif_member *m)
{
	struct arp_nd_hop group = {.vlan_id = m->vlan_id};
	int err;

	memcpy(group.gid, m->group, sizeof(group.gid));
	err = k->cfg.kind == KERNIF_TAP ? tap_join(k, m)
					: arp_nd_join(k->responder, &group, kernif_now());
	if (err == 0)
		k->stats.groups_joined++;
	else
		k->stats.groups_failed++;
	if (err != 0 && !m->failed)
		kernif_log(k, "a multicast group cannot be announced: %s", strerror(-err));
	m->failed = err != 0;
	return err;
}

static void
member_leave(struct kernif *k, const struct kernif_member *m)
{
	struct arp_nd_hop group = {.vlan_id = m->vlan_id};

	memcpy(group.gid, m->group, sizeof(group.gid));
	k->stats.groups_left++;
	if (k->cfg.kind == KERNIF_TAP)
		tap_leave(k, m);
	else
		(void)arp_nd_leave(k->responder, &group, kernif_now());
}

/* Whether it is joined where its GID entry is now. */
static bool
member_is_applied(const struct kernif *k, const struct kernif_member *m, const struct gid_slot *s)
{
	const struct kernel_link *l;

	if (s == NULL || s->vlan_id != m->vlan_id)
		return false;
	if (k->cfg.kind != KERNIF_TAP)
		return true;
	l = kernel_tables_vlan(&k->tables, m->vlan_id);
	return l != NULL && l->ifindex == m->ifindex;
}

/* Apply one; false: it is over. Works on a copy, because more may be added meanwhile. */
static bool
member_apply(struct kernif *k, struct kernif_member *m)
{
	const struct gid_slot *s = gid_table_get(&k->gids, m->gid_index);

	if (m->applied && (m->refs == 0 || !member_is_applied(k, m, s))) {
		member_leave(k, m);
		m->applied = false;
	}
	if (!m->applied && m->refs != 0 && s != NULL) {
		m->vlan_id = s->vlan_id;
		m->applied = member_join(k, m) == 0;
	}
	return m->applied || m->refs != 0;
}

/* `refs` may have changed since the copy. False: the member is gone. */
static bool
member_write_back(struct kernif_groups *g, uint32_t i, const struct kernif_member *m, bool keep)
{
	uint32_t refs = g->member[i].refs;

	if (!keep && refs == 0) {
		g->member[i] = g->member[--g->num];
		return false;
	}
	g->member[i] = *m;
	g->member[i].refs = refs;
	return true;
}

void
kernif_groups_apply(struct kernif *k)
{
	struct kernif_groups *g = &k->groups;
	struct kernif_member m;
	uint64_t n;
	bool keep;

	if (k->cfg.kind == KERNIF_TAP && read(k->group_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	if (!__atomic_exchange_n(&g->dirty, false, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->num;) {
		m = g->member[i];
		pthread_mutex_unlock(&g->lock);
		keep = member_apply(k, &m);
		pthread_mutex_lock(&g->lock);
		i += member_write_back(g, i, &m, keep);
	}
	pthread_mutex_unlock(&g->lock);
}
