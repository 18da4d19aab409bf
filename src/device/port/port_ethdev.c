/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <dpdk_compat.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_spinlock.h>

#include "core/mbuf.h"
#include "core/tsan.h"
#include "core/table.h"
#include "port/port_ethdev.h"
#include "port/port_ethdev_spread.h"
#include "port/port_packet.h"

#define DEFAULT_DESC 1024u
#define LINK_NS 10000000u
#define ASK_AGAIN_NS 10000000u
#define FIRST_PAUSES 32u /* a few microseconds at most */

/* Buffers, losses and copies of one receive queue; counted by its lcore. */
struct ethdev_queue {
	struct rte_mempool
		*pool;	 /* a pool of several queues would wait for a worker without a CPU */
	uint64_t copied; /* frames whose pool lacks the private area */
	uint64_t lost;	 /* [pub] frames of those lost because no mbuf was free */
	/* vhost: changes + 1 when it last took a frame, and when it took none; 0: never */
	uint32_t taken_at, refused_at;
	uint64_t ask_at; /* vhost: time from which a queue that took none gets frames again, ns */
} __rte_cache_aligned;

struct port_ethdev {
	struct hca_port port;
	uint16_t id;
	bool up;     /* [pub] state of the link as last reported */
	bool paused; /* [pub] no frames are received or sent */
	bool watched;
	bool started;
	uint64_t missed;	  /* [pub] the driver's count at the last hca_port_ethdev_look() */
	struct hca_packet packet; /* net_af_packet: its sockets */
	struct ethdev_spread spread;
	uint32_t changes; /* [pub] vhost: of the guest's queues, or of its presence */
	bool vhost;
	/* vhost: of the first queue for sending; not in the line that all pipes read */
	rte_spinlock_t first_lock __rte_cache_aligned;
	struct ethdev_queue queue[HCA_PORT_ETHDEV_QUEUES];
};

static struct rte_mbuf *
copy_to_own(struct ethdev_queue *q, struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_copy(m, q->pool, 0, UINT32_MAX);

	if (c == NULL)
		hca_port_count(&q->lost, 1);
	else
		q->copied++;
	rte_pktmbuf_free(m);
	return c;
}

static uint16_t
ethdev_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_ethdev *p = (struct port_ethdev *)port;
	uint16_t got, kept = 0;

	(void)now;
	if (unlikely(__atomic_load_n(&p->paused, __ATOMIC_RELAXED)))
		return 0;
	got = rte_eth_rx_burst(p->id, q, m, n);
	hca_tsan_take_all((void *const *)m, got);
	for (uint16_t i = 0; i < got; i++) {
		struct rte_mbuf *f = m[i];

		if (unlikely(f->priv_size < HCA_MBUF_PRIV || f->nb_segs != 1))
			f = copy_to_own(&p->queue[q], f);
		if (likely(f != NULL))
			m[kept++] = f;
	}
	return kept;
}

static uint16_t
ethdev_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_ethdev *p = (struct port_ethdev *)port;

	(void)now;
	if (unlikely(__atomic_load_n(&p->paused, __ATOMIC_RELAXED)))
		return 0;
	hca_tsan_give_all((void *const *)m, n);
	return rte_eth_tx_burst(p->id, q, m, n);
}

/* ---- vhost: the guest chooses how many of its queues are in use ---- */

static int
on_change(uint16_t id, enum rte_eth_event_type event, void *arg, void *unused)
{
	struct port_ethdev *p = arg;

	(void)id;
	(void)event;
	(void)unused;
	__atomic_fetch_add(&p->changes, 1, __ATOMIC_RELEASE);
	return 0;
}

/*
 * The number of frames that a queue took; -1: the guest does not use it. A queue that has taken
 * frames since the last change is full if it takes none. Another one may be unused, or may have no
 * buffers yet, which no event ends: it gets frames again at the next change or after ASK_AGAIN_NS.
 */
static int
offer(struct port_ethdev *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct ethdev_queue *own = &p->queue[q];
	uint32_t change = __atomic_load_n(&p->changes, __ATOMIC_ACQUIRE) + 1;
	uint16_t sent;

	if (own->refused_at == change && now < own->ask_at)
		return -1;
	sent = rte_eth_tx_burst(p->id, q, m, n);
	if (sent != 0)
		own->taken_at = change;
	if (own->taken_at == change)
		return sent;
	own->refused_at = change;
	own->ask_at = now + ASK_AGAIN_NS;
	return -1;
}

/* A short burst of another worker ends meanwhile; that of one without its CPU does not. */
static bool
lock_first(struct port_ethdev *p)
{
	for (unsigned int i = 0; i < FIRST_PAUSES; i++) {
		if (rte_spinlock_trylock(&p->first_lock))
			return true;
		rte_pause();
	}
	return false;
}

/*
 * A guest always has the first queue, which takes the frames of those that it does not use. While
 * another worker stays inside, the queue takes none, as one that is full.
 */
static uint16_t
vhost_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_ethdev *p = (struct port_ethdev *)port;
	int sent = -1;

	if (n == 0 || unlikely(__atomic_load_n(&p->paused, __ATOMIC_RELAXED)))
		return 0;
	hca_tsan_give_all((void *const *)m, n);
	if (q != 0)
		sent = offer(p, q, m, n, now);
	if (sent >= 0)
		return (uint16_t)sent;
	if (!lock_first(p))
		return 0;
	n = rte_eth_tx_burst(p->id, 0, m, n);
	rte_spinlock_unlock(&p->first_lock);
	return n;
}

static const enum rte_eth_event_type changes[] = {RTE_ETH_EVENT_QUEUE_STATE,
						  RTE_ETH_EVENT_INTR_LSC};

/* A thread of the driver may be inside the callback. */
static void
unwatch_guest(struct port_ethdev *p)
{
	for (unsigned int i = 0; p->vhost && i < RTE_DIM(changes); i++)
		while (rte_eth_dev_callback_unregister(p->id, changes[i], on_change, p) == -EAGAIN)
			rte_pause();
}

/* Without a watcher no event announces changes of the link: encap polls it. */
static uint64_t
ethdev_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_ethdev *p = (const struct port_ethdev *)port;

	return p->watched ? UINT64_MAX : now + LINK_NS;
}

bool
hca_port_ethdev_ask_link(struct hca_port *port)
{
	struct port_ethdev *p = (struct port_ethdev *)port;
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(p->id, &link) != 0)
		return __atomic_load_n(&p->up, __ATOMIC_RELAXED);
	return link.link_status == RTE_ETH_LINK_UP;
}

void
hca_port_ethdev_set_link(struct hca_port *port, bool up)
{
	__atomic_store_n(&((struct port_ethdev *)port)->up, up, __ATOMIC_RELAXED);
}

static bool
ethdev_link_up(struct hca_port *port)
{
	struct port_ethdev *p = (struct port_ethdev *)port;

	if (__atomic_load_n(&p->paused, __ATOMIC_RELAXED))
		return false;
	if (!p->watched)
		hca_port_ethdev_set_link(port, hca_port_ethdev_ask_link(port));
	return __atomic_load_n(&p->up, __ATOMIC_RELAXED);
}

void
hca_port_ethdev_pause(struct hca_port *port, bool on)
{
	__atomic_store_n(&((struct port_ethdev *)port)->paused, on, __ATOMIC_SEQ_CST);
}

/*
 * Receive RoCE multicast groups and IPv6 neighbour solicitations; drivers without filters may
 * refuse.
 */
static int
start_device(struct port_ethdev *p)
{
	int rc = rte_eth_dev_start(p->id);

	if (rc == 0)
		(void)rte_eth_allmulticast_enable(p->id);
	p->started = rc == 0;
	return rc;
}

/* Frames that the driver or the kernel has lost before the queue was read. */
static uint64_t
read_missed(struct port_ethdev *p)
{
	uint64_t lost = hca_packet_lost(&p->packet);
	struct rte_eth_stats st;

	if (rte_eth_stats_get(p->id, &st) == 0)
		lost += st.imissed + st.rx_nombuf;
	return lost;
}

void
hca_port_ethdev_look(struct hca_port *port)
{
	struct port_ethdev *p = (struct port_ethdev *)port;

	__atomic_store_n(&p->missed, read_missed(p), __ATOMIC_RELAXED);
}

static uint64_t
ethdev_missed(const struct hca_port *port)
{
	struct port_ethdev *p = (struct port_ethdev *)(uintptr_t)port;
	uint64_t lost = 0;

	for (uint16_t q = 0; q < p->port.queues; q++)
		lost += __atomic_load_n(&p->queue[q].lost, __ATOMIC_RELAXED);
	if (!p->watched)
		return lost + read_missed(p);
	return lost + __atomic_load_n(&p->missed, __ATOMIC_RELAXED);
}

static void
free_pools(struct port_ethdev *p)
{
	for (uint16_t q = 0; q < p->port.queues; q++)
		rte_mempool_free(p->queue[q].pool);
}

static void
ethdev_close(struct hca_port *port)
{
	struct port_ethdev *p = (struct port_ethdev *)port;
	struct rte_mbuf *m[32];
	uint16_t n;

	for (uint16_t q = 0; p->started && q < p->port.queues; q++)
		while ((n = rte_eth_rx_burst(p->id, q, m, RTE_DIM(m))) != 0)
			rte_pktmbuf_free_bulk(m, n);
	ethdev_spread_end(&p->spread);
	if (p->started)
		rte_eth_dev_stop(p->id);
	unwatch_guest(p);
	rte_eth_dev_close(p->id);
	free_pools(p);
	rte_free(p);
}

#define ETHDEV_OPS(send) \
	{ \
		.rx = ethdev_rx, .tx = send, .link_up = ethdev_link_up, .missed = ethdev_missed, \
		.deadline = ethdev_deadline, .close = ethdev_close, \
	}

static const struct hca_port_ops ethdev_ops = ETHDEV_OPS(ethdev_tx);
static const struct hca_port_ops vhost_ops = ETHDEV_OPS(vhost_tx);

static void
watch_guest(struct port_ethdev *p)
{
	struct rte_eth_dev_info info;

	p->vhost = p->port.queues > 1 && rte_eth_dev_info_get(p->id, &info) == 0 &&
		   info.driver_name != NULL && strstr(info.driver_name, "vhost") != NULL;
	if (!p->vhost)
		return;
	p->port.ops = &vhost_ops;
	for (unsigned int i = 0; i < RTE_DIM(changes); i++)
		rte_eth_dev_callback_register(p->id, changes[i], on_change, p);
}

static int
make_pools(struct port_ethdev *p, const struct hca_port_ethdev_config *cfg, uint16_t rx_desc)
{
	uint32_t n = cfg->rx_mbufs ? cfg->rx_mbufs : rx_desc + 4u * 32 + 512;
	uint32_t room = RTE_MAX(cfg->data_room, HCA_MBUF_DATA);
	char name[RTE_MEMPOOL_NAMESIZE];

	if (cfg->data_room_max != 0 && room > cfg->data_room_max)
		room = cfg->data_room_max;
	if (room > UINT16_MAX)
		return -EINVAL;
	for (uint16_t q = 0; q < p->port.queues; q++) {
		if (q == 0)
			snprintf(name, sizeof(name), "%.20s.rx", cfg->name);
		else
			snprintf(name, sizeof(name), "%.17s.rx%u", cfg->name, q);
		p->queue[q].pool = hca_mbuf_pool(name, n, 0, (uint16_t)room, cfg->socket_id);
		if (p->queue[q].pool == NULL)
			return -rte_errno;
	}
	return 0;
}

/* A failure is no error: drivers that cannot change the MTU may still carry jumbo frames. */
static void
ask_mtu(struct port_ethdev *p, uint32_t mtu, bool keep)
{
	uint16_t have = 1500;

	if (mtu != 0 && !keep)
		(void)rte_eth_dev_set_mtu(p->id, (uint16_t)mtu);
	(void)rte_eth_dev_get_mtu(p->id, &have);
	p->port.max_frame = (mtu > have ? mtu : have) + RTE_ETHER_HDR_LEN;
}

static void
find_sockets(struct port_ethdev *p)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->id, &info) == 0 && info.driver_name != NULL &&
	    strstr(info.driver_name, "af_packet") != NULL && info.if_index != 0)
		hca_packet_find(&p->packet, info.if_index);
}

static int
set_up_queue(struct port_ethdev *p, uint16_t q, uint16_t rx_desc, uint16_t tx_desc, int socket_id)
{
	int rc = rte_eth_rx_queue_setup(p->id, q, rx_desc, socket_id, NULL, p->queue[q].pool);

	return rc != 0 ? rc : rte_eth_tx_queue_setup(p->id, q, tx_desc, socket_id, NULL);
}

/* With RSS if the device offers it; a driver may refuse what it has offered. */
static int
configure(struct port_ethdev *p)
{
	uint16_t n = p->port.queues;
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->id, &info) == 0 && ethdev_spread_hash(&info, n, &conf) &&
	    rte_eth_dev_configure(p->id, n, n, &conf) == 0) {
		p->spread.by = ETHDEV_SPREAD_RSS;
		return 0;
	}
	conf = (struct rte_eth_conf){0};
	return rte_eth_dev_configure(p->id, n, n, &conf);
}

/* The started device puts frames into the queue of their QPN, if its driver can. */
static void
spread(struct port_ethdev *p, const struct hca_port_ethdev_config *cfg)
{
	char text[160];

	if (p->port.queues == 1)
		return;
	if (DPDK_HAS_IB_BTH)
		(void)ethdev_spread_rules(&p->spread, p->id, p->port.queues);
	snprintf(text, sizeof(text), "%u queues; the device distributes frames %s", p->port.queues,
		 ethdev_spread_text(&p->spread));
	if (cfg->log != NULL)
		cfg->log(cfg->log_arg, false, text);
}

static int
start_queues(struct port_ethdev *p, const struct hca_port_ethdev_config *cfg, uint16_t rx_desc,
	     uint16_t tx_desc)
{
	int rc = configure(p);

	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx_desc, &tx_desc);
	for (uint16_t q = 0; rc == 0 && q < p->port.queues; q++)
		rc = set_up_queue(p, q, rx_desc, tx_desc, cfg->socket_id);
	if (rc != 0)
		return rc;
	ask_mtu(p, cfg->mtu, cfg->keep_mtu);
	p->port.queue_size = rx_desc > tx_desc ? rx_desc : tx_desc;
	return start_device(p);
}

static uint16_t
queues_of(const struct hca_port_ethdev_config *cfg)
{
	struct rte_eth_dev_info info;

	if (cfg->queues < 2 || rte_eth_dev_info_get(cfg->port_id, &info) != 0)
		return 1;
	return ethdev_spread_queues(&info, cfg->queues);
}

int
hca_port_ethdev_open(const struct hca_port_ethdev_config *cfg, struct hca_port **out)
{
	uint16_t rx_desc = cfg->rx_desc ? cfg->rx_desc : DEFAULT_DESC;
	uint16_t tx_desc = cfg->tx_desc ? cfg->tx_desc : DEFAULT_DESC;
	struct port_ethdev *p;
	int rc;

	if (!rte_eth_dev_is_valid_port(cfg->port_id))
		return -ENODEV;
	if (cfg->queues > HCA_PORT_ETHDEV_QUEUES)
		return -EINVAL;
	p = rte_zmalloc_socket("hca_port", sizeof(*p), RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	p->port.ops = &ethdev_ops;
	p->port.queues = queues_of(cfg);
	p->id = cfg->port_id;
	p->up = true;
	p->watched = cfg->watched;
	rc = make_pools(p, cfg, rx_desc);
	if (rc != 0)
		goto err_pool;
	watch_guest(p);
	rc = start_queues(p, cfg, rx_desc, tx_desc);
	if (rc != 0)
		goto err_watch;
	spread(p, cfg);
	find_sockets(p);
	*out = &p->port;
	return 0;

err_watch:
	unwatch_guest(p);
err_pool:
	free_pools(p);
	rte_free(p);
	return rc;
}
