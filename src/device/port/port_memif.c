/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "core/mbuf.h"
#include "core/stage.h"
#include "core/table.h"
#include "port/port_memif_impl.h"

#define RX_MBUFS 1664u /* for bursts and packets inside the stages */
/*
 * Each worker's cache of free mbufs. It returns the mbufs freed last, which are in the CPU's
 * caches; without it mbufs would cycle through the whole pool, 7 MB of 4 KiB frames.
 */
#define RX_CACHE 64u
#define RX_CACHED (RX_CACHE * 3 / 2 * HCA_STAGE_N) /* largest number of mbufs in the caches */

static bool
memif_link_up(struct hca_port *port)
{
	return memif_of(port)->cfg.carrier || hca_port_memif_connected(port, NULL);
}

bool
hca_port_memif_connected(const struct hca_port *port, uint64_t *connects)
{
	const struct port_memif *p = memif_of(port);

	if (connects != NULL)
		*connects = __atomic_load_n(&p->stats.connects, __ATOMIC_RELAXED);
	return __atomic_load_n(&p->conn, __ATOMIC_RELAXED) != NULL;
}

static int
memif_wait_fd(const struct hca_port *port, uint16_t q)
{
	return memif_of(port)->queue[q].wait_fd;
}

void
hca_port_memif_stats(const struct hca_port *port, struct hca_port_memif_stats *out)
{
	const struct port_memif *p = memif_of(port);

	hca_port_counted(out, &p->stats, sizeof(*out));
	for (unsigned int side = 0; side < MEMIF_SIDES; side++)
		for (uint16_t q = 0; q < port->queues; q++)
			hca_port_add_counted(out, &p->worker[side][q].stats, sizeof(*out));
}

static uint64_t
memif_missed(const struct hca_port *port)
{
	struct hca_port_memif_stats st;

	hca_port_memif_stats(port, &st);
	return st.rx_bad_buffer + st.rx_too_long + st.rx_too_short + st.rx_bad_chain;
}

void
hca_port_memif_peer(const struct hca_port *port, char *name, uint32_t size)
{
	struct port_memif *p = memif_of(port);

	pthread_mutex_lock(&p->lock);
	snprintf(name, size, "%s", p->peer);
	pthread_mutex_unlock(&p->lock);
}

static void
close_all(struct port_memif *p)
{
	int fds[] = {p->listener, p->timer, p->broken_fd, p->stop_fd, p->epoll, p->event_fd};

	if (p->listener >= 0 && p->bound && !p->cfg.abstract)
		unlink(p->cfg.socket);
	for (size_t i = 0; i < RTE_DIM(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (uint16_t q = 0; q < p->port.queues; q++) {
		if (p->queue[q].wait_fd >= 0)
			close(p->queue[q].wait_fd);
		rte_mempool_free(p->queue[q].pool);
	}
	pthread_mutex_destroy(&p->lock);
	rte_free(p);
}

static void
memif_close(struct hca_port *port)
{
	struct port_memif *p = memif_of(port);
	uint64_t one = 1;

	__atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
	if (write(p->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(p->thread, NULL);
	memif_end_sessions(p);
	close_all(p);
}

static const struct hca_port_ops memif_ops = {
	.rx = memif_rx,
	.tx = memif_tx,
	.link_up = memif_link_up,
	.missed = memif_missed,
	.wait_fd = memif_wait_fd,
	.arm = memif_arm,
	.deadline = memif_deadline,
	.close = memif_close,
};

/* ---- opening ---- */

static int
make_pool(struct port_memif *p, uint16_t q)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t n = p->cfg.rx_mbufs != 0 ? p->cfg.rx_mbufs : RX_MBUFS;
	uint32_t data_room = RTE_MAX(p->cfg.data_room, HCA_MBUF_DATA);
	uint32_t cache = n >= RX_MBUFS / 2 ? RX_CACHE : 0;

	if (data_room > UINT16_MAX)
		return -EINVAL;
	if (q == 0)
		snprintf(name, sizeof(name), "%.20s.rx", p->cfg.name);
	else
		snprintf(name, sizeof(name), "%.17s.rx%u", p->cfg.name, q);
	p->queue[q].pool = hca_mbuf_pool(name, cache == 0 ? n : n + RX_CACHED, cache,
					 (uint16_t)data_room, p->cfg.socket_id);
	return p->queue[q].pool == NULL ? -rte_errno : 0;
}

static int
watch(int epoll, int fd, void *what, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = what};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

static int
make_descriptors(struct port_memif *p)
{
	int err;

	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->broken_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p->epoll < 0 || p->event_fd < 0 || p->broken_fd < 0 || p->stop_fd < 0 || p->timer < 0)
		return -errno;
	err = memif_set_timer(p, false);
	if (err == 0)
		err = watch(p->epoll, p->broken_fd, &p->broken_fd, EPOLLIN);
	if (err == 0)
		err = watch(p->epoll, p->stop_fd, &p->stop_fd, EPOLLIN);
	if (err == 0)
		err = watch(p->epoll, p->timer, &p->timer, EPOLLIN);
	return err;
}

static int
make_queue(struct port_memif *p, uint16_t q)
{
	int err = make_pool(p, q);

	if (err != 0)
		return err;
	p->queue[q].wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->queue[q].wait_fd < 0)
		return -errno;
	return watch(p->queue[q].wait_fd, p->event_fd, NULL, EPOLLIN | EPOLLET);
}

/* Block all signals in the new thread but those that its own accesses cause. */
static int
start_thread(struct port_memif *p)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&p->thread, NULL, memif_thread, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0)
		(void)pthread_setname_np(p->thread, "hca-memif");
	return -err;
}

static void
set_up(struct port_memif *p, const struct hca_port_memif_config *cfg)
{
	p->port.ops = &memif_ops;
	p->port.queues = cfg->queues != 0 ? cfg->queues : 1;
	p->port.max_frame = cfg->mtu + RTE_ETHER_HDR_LEN;
	p->port.queue_size = 1u << cfg->log2_ring;
	p->cfg = *cfg;
	if (cfg->buffer == 0)
		p->cfg.buffer = (uint16_t)RTE_MIN(RTE_ALIGN_CEIL(p->port.max_frame + RTE_VLAN_HLEN,
								 RTE_CACHE_LINE_SIZE),
						  UINT16_MAX);
	snprintf(p->name, sizeof(p->name), "%s", cfg->name);
	p->cfg.name = p->name;
	p->listener = p->timer = p->broken_fd = p->stop_fd = -1;
	p->epoll = p->event_fd = -1;
	for (uint16_t q = 0; q < p->port.queues; q++)
		p->queue[q].wait_fd = -1;
	pthread_mutex_init(&p->lock, NULL);
	p->fences = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

int
hca_port_memif_open(const struct hca_port_memif_config *cfg, struct hca_port **out)
{
	struct port_memif *p;
	int err;

	if (cfg->queues > HCA_PORT_MEMIF_QUEUES)
		return -EINVAL;
	p = rte_zmalloc_socket("hca_memif", sizeof(*p), RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	set_up(p, cfg);
	err = make_descriptors(p);
	for (uint16_t q = 0; q < p->port.queues && err == 0; q++)
		err = make_queue(p, q);
	if (err == 0 && cfg->server)
		err = memif_listen(p);
	if (err == 0)
		err = start_thread(p);
	if (err != 0) {
		close_all(p);
		return err;
	}
	*out = &p->port;
	return 0;
}
