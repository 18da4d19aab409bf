/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A TAP interface on the shared port. The pump moves frames; the monitor follows the kernel's
 * tables and updates GIDs and next hops.
 */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/neighbour.h>

#include "kernif_impl.h"
#include "port/port_divert.h"

#define PUMP_REST_MS 1000
#define FULL_NS 50000		  /* retry interval while the ring to the wire is full */
#define FRESHEN_NS 15000000000ull /* interval of verifying the neighbours in use */

/* ---- frames ---- */

static unsigned int
to_kernel(struct kernif *k)
{
	struct rte_mbuf *m[KERNIF_BURST];
	unsigned int n = hca_port_divert_take(k->divert, m, KERNIF_BURST), bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		ssize_t sent =
			write(k->tap.fd, rte_pktmbuf_mtod(m[i], const void *), m[i]->data_len);

		bad += sent != m[i]->data_len;
	}
	if (n == 0)
		return 0;
	rte_pktmbuf_free_bulk(m, n);
	kernif_count(&k->stats.to_kernel_pkts, n - bad);
	kernif_count(&k->stats.to_kernel_drops, bad);
	return n;
}

/* Read a frame from the interface; NULL: no frame waits. */
static struct rte_mbuf *
read_frame(struct kernif *k, bool *full)
{
	struct rte_mbuf *m = hca_port_divert_alloc(k->divert);
	ssize_t n;

	*full = m == NULL;
	if (m == NULL)
		return NULL;
	n = read(k->tap.fd, rte_pktmbuf_mtod(m, void *), HCA_PORT_DIVERT_FRAME);
	if (n <= 0) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->data_len = (uint16_t)n;
	m->pkt_len = (uint32_t)n;
	return m;
}

/* Frames that do not fit stay in the interface's queue, which slows down the senders. */
static unsigned int
from_kernel(struct kernif *k, bool *full)
{
	struct rte_mbuf *m[KERNIF_BURST];
	unsigned int room = hca_port_divert_room(k->divert), n = 0, gone;

	*full = room == 0;
	while (n < KERNIF_BURST && n < room && (m[n] = read_frame(k, full)) != NULL)
		n++;
	if (n == 0)
		return 0;
	gone = hca_port_divert_give(k->divert, m, n);
	kernif_count(&k->stats.from_kernel_pkts, gone);
	kernif_count(&k->stats.from_kernel_drops, n - gone);
	return n;
}

void *
kernif_kernel_pump(void *arg)
{
	const struct timespec later = {.tv_nsec = FULL_NS};
	struct kernif *k = arg;

	while (!kernif_stopping(k)) {
		unsigned int work = to_kernel(k);
		bool full;

		work += from_kernel(k, &full);
		if (work != 0)
			continue;
		if (full)
			nanosleep(&later, NULL);
		else
			kernif_rest(k, k->tap.fd, PUMP_REST_MS);
	}
	return NULL;
}

/* ---- the kernel's tables ---- */

static void
tell_link(struct kernif *k, bool up)
{
	if (k->link_up == up)
		return;
	k->link_up = up;
	if (k->cfg.link_changed != NULL)
		k->cfg.link_changed(k->cfg.arg, up);
}

static void
on_main_link(struct kernif *k, const struct kernel_link *l, bool gone)
{
	tell_link(k, !gone && l->up);
	if (gone) {
		kernif_log(k, "interface %s was removed", k->tap.name);
		return;
	}
	if (memcmp(l->mac, k->cfg.mac, 6) != 0) {
		memcpy(k->cfg.mac, l->mac, 6);
		hca_port_divert_set_mac(k->divert, l->mac);
		if (k->cfg.mac_changed != NULL)
			k->cfg.mac_changed(k->cfg.arg, l->mac);
	}
}

static void
on_link(void *arg, const struct kernel_link *l, bool gone)
{
	struct kernif *k = arg;

	if (l->vlan_id == ARP_ND_NO_VLAN)
		on_main_link(k, l, gone);
	if (gone)
		gid_table_remove_vlan(&k->gids, l->vlan_id);
	else
		gid_table_set_mac(&k->gids, l->vlan_id, l->mac);
	kernif_groups_changed(k);
}

static void
on_address(void *arg, const struct kernel_link *l, const uint8_t gid[16], bool gone)
{
	struct kernif *k = arg;
	int index;

	kernif_groups_changed(k);
	if (gone) {
		gid_table_remove(&k->gids, gid, l->vlan_id);
		return;
	}
	index = gid_table_add(&k->gids, gid, l->vlan_id, l->mac, l->ifindex);
	if (index < 0)
		kernif_log(k, "an address of %s cannot be a GID: %s", k->tap.name,
			   index == -ENOSPC ? "the table is full" : hca_driver_reason());
}

static void
on_neighbour(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	struct kernif *k = arg;

	kernif_claim(k, hop, mac);
}

static void
on_message(void *arg, const struct nlmsghdr *h)
{
	kernel_tables_event(&((struct kernif *)arg)->tables, h);
}

static int
dump(struct kernif *k, uint16_t type, const void *header, size_t len)
{
	struct nl_request r;

	nl_begin(&r, type, NLM_F_DUMP, header, len);
	return nl_talk(&k->ask, &r, on_message, k);
}

/* Read all tables; lock held. Links come first, because addresses and neighbours refer to them. */
static int
resync(struct kernif *k)
{
	const struct ifinfomsg link = {0};
	const struct ifaddrmsg address = {0};
	const struct ndmsg neighbour = {0};
	int err = dump(k, RTM_GETLINK, &link, sizeof(link));

	gid_table_mark(&k->gids);
	if (err == 0)
		err = dump(k, RTM_GETADDR, &address, sizeof(address));
	if (err != 0)
		return err; /* an incomplete list must not remove entries */
	gid_table_sweep(&k->gids);
	return dump(k, RTM_GETNEIGH, &neighbour, sizeof(neighbour));
}

static void
ignore(void *arg, const struct nlmsghdr *h)
{
	(void)arg;
	(void)h;
}

/*
 * Resynchronize; lock held. Pending events are older than the tables and may be obsolete, so they
 * are discarded before the tables are read.
 */
static int
read_tables(struct kernif *k)
{
	int err;

	do
		err = nl_drain(&k->events, ignore, NULL);
	while (err == -ENOBUFS);
	return resync(k);
}

/* Resynchronize after events were lost. */
static void
start_over(struct kernif *k)
{
	int err;

	k->stats.resyncs++;
	err = read_tables(k);
	if (err != 0)
		kernif_log(k, "cannot read the kernel's tables of %s: %s", k->tap.name,
			   strerror(-err));
}

/*
 * RoCE traffic does not confirm neighbours to the kernel, which would never verify them. As a
 * packet would, this makes it verify entries that are stale.
 */
static void
freshen(struct kernif *k)
{
	for (uint32_t i = 0; i < k->dests.end; i++) {
		const struct dest *d = &k->dests.dest[i];
		const struct kernel_link *l = kernel_tables_vlan(&k->tables, d->hop.vlan_id);

		if (d->used && d->lost < DEST_LOST_MAX && l != NULL)
			(void)kernif_probe(&k->ask, l->ifindex, d->hop.gid);
	}
}

static void *
monitor_main(void *arg)
{
	struct kernif *k = arg;
	struct pollfd p[3] = {{.fd = k->events.fd, .events = POLLIN},
			      {.fd = k->end_fd, .events = POLLIN},
			      {.fd = k->group_fd, .events = POLLIN}};
	uint64_t fresh = kernif_now() + FRESHEN_NS;

	(void)pthread_setname_np(pthread_self(), "hca-netlink");
	while (!kernif_stopping(k)) {
		int err;

		poll(p, 3, 1000);
		pthread_mutex_lock(&k->lock);
		err = nl_drain(&k->events, on_message, k);
		if (err == -ENOBUFS)
			start_over(k);
		kernif_groups_apply(k);
		if (kernif_now() >= fresh) {
			freshen(k);
			fresh = kernif_now() + FRESHEN_NS;
		}
		pthread_mutex_unlock(&k->lock);
	}
	return NULL;
}

/* ---- life ---- */

int
kernif_kernel_create(struct kernif *k)
{
	const struct kernel_tables_ops ops = {.link = on_link,
					      .address = on_address,
					      .neighbour = on_neighbour,
					      .arg = k};
	uint32_t mtu = k->cfg.mtu < KERNIF_MTU_MAX ? k->cfg.mtu : KERNIF_MTU_MAX;
	int err = nl_open(&k->events,
			  RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_NEIGH);

	if (err == 0)
		err = nl_open(&k->ask, 0);
	if (err != 0)
		return kernif_fail(err, "netlink: %s", strerror(-err));
	err = tap_open(&k->tap, k->cfg.name, !k->cfg.adopt);
	if (err != 0)
		return err;
	err = tap_set_link(&k->ask, k->tap.ifindex, k->cfg.mac, mtu);
	if (err != 0)
		return kernif_fail(err, "MAC address and MTU %u of %s: %s", mtu, k->tap.name,
				   strerror(-err));
	kernel_tables_init(&k->tables, k->tap.ifindex, &ops);
	return 0;
}

int
kernif_kernel_start(struct kernif *k)
{
	int err = tap_set_up(&k->ask, k->tap.ifindex);

	if (err != 0)
		return kernif_fail(err, "cannot set up %s: %s", k->tap.name, strerror(-err));
	for (uint32_t i = 0; i < k->cfg.num_addresses && !k->cfg.adopt; i++) {
		err = tap_add_address(&k->ask, &k->tap, &k->address[i]);
		if (err != 0)
			return err;
	}
	pthread_mutex_lock(&k->lock);
	err = read_tables(k);
	pthread_mutex_unlock(&k->lock);
	if (err != 0)
		return kernif_fail(err, "the kernel's tables: %s", strerror(-err));
	err = pthread_create(&k->monitor, NULL, monitor_main, k);
	if (err != 0)
		return kernif_fail(-err, "no thread: %s", strerror(err));
	k->monitor_runs = true;
	return 0;
}

void
kernif_kernel_destroy(struct kernif *k)
{
	tap_close(&k->tap);
	nl_close(&k->events);
	nl_close(&k->ask);
}
