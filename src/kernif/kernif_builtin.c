/* SPDX-License-Identifier: BSD-3-Clause */

/* The built-in responder on the shared port: a thread feeds it and calls its timers. */

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "kernif_impl.h"
#include "port/port_divert.h"

#define TICK_NS 50000000ull
#define TICK_MS 50
#define QUIET_MS 1000 /* at most so long without a tick if nothing is due */

/* arp_nd_config.send. The lock is held, so the ring to the wire has one producer at a time. */
static void
send_frame(void *arg, const uint8_t *frame, uint32_t len)
{
	struct kernif *k = arg;
	struct rte_mbuf *m = hca_port_divert_alloc(k->divert);
	char *to = m != NULL ? rte_pktmbuf_append(m, (uint16_t)len) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(m);
		kernif_count(&k->stats.from_kernel_drops, 1);
		return;
	}
	memcpy(to, frame, len);
	if (hca_port_divert_give(k->divert, &m, 1) == 1)
		kernif_count(&k->stats.from_kernel_pkts, 1);
	else
		kernif_count(&k->stats.from_kernel_drops, 1);
}

static void
hop_changed(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	struct kernif *k = arg;

	kernif_claim(k, hop, mac);
}

int
kernif_builtin_create(struct kernif *k)
{
	struct arp_nd_address own[ARP_ND_ADDRESSES + 1] = {
		{.prefix = 64, .vlan_id = ARP_ND_NO_VLAN}};
	uint32_t first = k->cfg.link_local ? 0 : 1;
	struct arp_nd_config ac = {
		.addresses = own + first,
		.num_addresses = k->cfg.num_addresses + 1 - first,
		.gateways = k->gateway,
		.num_gateways = k->cfg.num_gateways,
		.send = send_frame,
		.changed = hop_changed,
		.arg = k,
	};
	int err;

	if (getrandom(&ac.seed, sizeof(ac.seed), GRND_NONBLOCK) != sizeof(ac.seed))
		ac.seed = kernif_now();
	gid_of_mac(k->cfg.mac, own[0].gid);
	memcpy(own + 1, k->address, sizeof(own[0]) * k->cfg.num_addresses);
	memcpy(ac.mac, k->cfg.mac, 6);
	err = arp_nd_create(&ac, &k->responder);
	return err == 0 ? 0 : kernif_fail(err, "the responder: %s", strerror(-err));
}

int
kernif_builtin_start(struct kernif *k)
{
	int index = 0;

	pthread_mutex_lock(&k->lock);
	for (uint32_t i = 0; i < k->cfg.num_addresses && index >= 0; i++) {
		const struct arp_nd_address *a = &k->address[i];

		/* the interface behind the port has no VLAN */
		index = gid_table_add(&k->gids, a->gid, a->vlan_id, k->cfg.mac,
				      a->vlan_id == ARP_ND_NO_VLAN ? k->cfg.ifindex : 0);
	}
	pthread_mutex_unlock(&k->lock);
	return index >= 0 ? 0 : kernif_fail(index, "an address: %s", hca_driver_reason());
}

static unsigned int
feed(struct kernif *k)
{
	struct rte_mbuf *m[KERNIF_BURST];
	unsigned int n = hca_port_divert_take(k->divert, m, KERNIF_BURST);
	uint64_t now = kernif_now();

	if (n == 0)
		return 0;
	pthread_mutex_lock(&k->lock);
	for (unsigned int i = 0; i < n; i++)
		arp_nd_input(k->responder, rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len,
			     now);
	pthread_mutex_unlock(&k->lock);
	rte_pktmbuf_free_bulk(m, n);
	kernif_count(&k->stats.to_kernel_pkts, n);
	return n;
}

/* The time until the next tick, in ms. The lock is held. */
static int
until_due(struct kernif *k, uint64_t now)
{
	uint64_t due = arp_nd_due(k->responder);

	if (k->guard.busy != 0 || __atomic_load_n(&k->groups.dirty, __ATOMIC_RELAXED) ||
	    due <= now + TICK_NS)
		return TICK_MS;
	return due - now < QUIET_MS * 1000000ull ? (int)((due - now) / 1000000) : QUIET_MS;
}

/* Whatever kicks it, a frame or another thread, may bring the next tick forward. */
void *
kernif_builtin_pump(void *arg)
{
	struct kernif *k = arg;
	uint64_t tick = 0;
	int rest_ms = TICK_MS;

	while (!kernif_stopping(k)) {
		uint64_t now = kernif_now();

		if (now >= tick) {
			tick = now + TICK_NS;
			pthread_mutex_lock(&k->lock);
			kernif_groups_apply(k);
			arp_nd_tick(k->responder, now);
			move_guard_tick(&k->guard, now);
			rest_ms = until_due(k, now);
			pthread_mutex_unlock(&k->lock);
		}
		if (feed(k) != 0 || !kernif_rest(k, -1, rest_ms))
			rest_ms = TICK_MS;
	}
	pthread_mutex_lock(&k->lock);
	arp_nd_leave_all(k->responder, kernif_now());
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

int
kernif_builtin_resolve(struct kernif *k, uint32_t sgid_index, const uint8_t dgid[16],
		       uint8_t mac[6])
{
	uint64_t waited = 0;
	const struct gid_slot *g = gid_table_get(&k->gids, sgid_index);
	struct arp_nd_hop hop;
	uint16_t vlan_id;
	int err;

	if (g == NULL)
		return -EINVAL;
	vlan_id = g->vlan_id;
	arp_nd_next_hop(k->responder, dgid, vlan_id, &hop);
	if (hca_driver_get_neigh(k->drv, hop.gid, mac))
		return 0;
	for (;;) {
		err = arp_nd_lookup(k->responder, dgid, vlan_id, kernif_now(), mac, &hop);
		if (err != -EAGAIN)
			break;
		err = kernif_waited(k, waited);
		if (err != 0)
			break;
		if (waited == 0)
			kernif_ring(k->kick_fd);
		waited += kernif_wait(k);
	}
	if (err == 0)
		dest_table_note(&k->dests, sgid_index, dgid, &hop, mac);
	return err;
}
