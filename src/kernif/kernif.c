/* SPDX-License-Identifier: BSD-3-Clause */

/* Life cycle of the kernel interface, and code shared by both kinds. */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "abi_reason.h"
#include "kernif_impl.h"
#include "port/port_divert.h"

#define WAIT_NS 100000000ull

HCA_REASON_DEFINE(kernif_fail, kernif_reason, 256, 0)

void
kernif_log(const struct kernif *k, const char *format, ...)
{
	char text[256];
	va_list ap;

	if (k->cfg.log == NULL)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	k->cfg.log(k->cfg.arg, text);
}

uint64_t
kernif_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool
kernif_stopping(const struct kernif *k)
{
	return __atomic_load_n(&k->stop, __ATOMIC_ACQUIRE);
}

uint64_t
kernif_wait(struct kernif *k)
{
	uint64_t start = kernif_now(), until = start + WAIT_NS, waited;
	struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
			      .tv_nsec = (long)(until % 1000000000u)};

	pthread_cond_timedwait(&k->changed, &k->lock, &ts);
	waited = kernif_now() - start;
	return waited < WAIT_NS ? waited : WAIT_NS;
}

int
kernif_waited(const struct kernif *k, uint64_t waited)
{
	uint64_t ms = k->cfg.timeout_ms != 0 ? k->cfg.timeout_ms : KERNIF_TIMEOUT_MS;

	if (kernif_stopping(k) || __atomic_load_n(&k->hurry, __ATOMIC_ACQUIRE))
		return -ESHUTDOWN;
	return waited >= ms * 1000000u ? -EHOSTUNREACH : 0;
}

void
kernif_ring(int fd)
{
	const uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* a full eventfd also wakes the reader */
}

void
kernif_kick(void *arg)
{
	kernif_ring(((struct kernif *)arg)->kick_fd);
}

bool
kernif_rest(struct kernif *k, int fd, int ms)
{
	struct pollfd p[2] = {{.fd = k->kick_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	ssize_t got = 0;
	uint64_t n;
	int found;

	if (!hca_port_divert_may_sleep(k->divert))
		return false;
	found = poll(p, fd >= 0 ? 2 : 1, ms);
	if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL)) /* the interface was removed */
		poll(p, 1, ms);
	if (p[0].revents & POLLIN)
		got = read(k->kick_fd, &n, sizeof(n));
	(void)got;
	return found == 0;
}

/* ---- addresses ---- */

int
kernif_resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	struct kernif *k = arg;
	int err;

	pthread_mutex_lock(&k->lock);
	if (!k->started || kernif_stopping(k)) {
		pthread_mutex_unlock(&k->lock);
		return -ESHUTDOWN;
	}
	k->waiting++;
	err = k->cfg.kind == KERNIF_TAP ? kernif_kernel_resolve(k, sgid_index, dgid, dmac)
					: kernif_builtin_resolve(k, sgid_index, dgid, dmac);
	if (err == 0)
		k->stats.resolved++;
	else
		k->stats.unresolved++;
	k->waiting--;
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->lock);
	return err;
}

void
kernif_link(struct kernif *k, bool up)
{
	if (k->cfg.kind == KERNIF_TAP) {
		tap_carrier(&k->tap, up);
		return;
	}
	pthread_mutex_lock(&k->lock);
	if (up && k->started)
		arp_nd_announce(k->responder, kernif_now());
	pthread_mutex_unlock(&k->lock);
	kernif_ring(k->kick_fd);
}

const char *
kernif_interface(const struct kernif *k)
{
	return k->cfg.kind == KERNIF_TAP ? k->tap.name : "";
}

void
kernif_stats(struct kernif *k, struct kernif_stats *out)
{
	pthread_mutex_lock(&k->lock);
#define X(n) out->n = __atomic_load_n(&k->stats.n, __ATOMIC_RELAXED);
	KERNIF_STATS(X)
#undef X
	out->gids_set = k->gids.set;
	out->gids_cleared = k->gids.cleared;
	out->gids_failed = k->gids.failed;
	pthread_mutex_unlock(&k->lock);
}

bool
kernif_arp_nd_stats(struct kernif *k, struct arp_nd_stats *out)
{
	if (k->responder == NULL)
		return false;
	pthread_mutex_lock(&k->lock);
	arp_nd_stats(k->responder, out);
	pthread_mutex_unlock(&k->lock);
	return true;
}

#define PUT(group, n) fn(arg, #group "_" #n, s.n);
#define PUT_DIVERT(n) PUT(divert, n)
#define PUT_KERNEL(n) PUT(kernel, n)
#define PUT_RESPONDER(n) PUT(responder, n)

static void
put_divert(struct kernif *k, kernif_counter_fn fn, void *arg)
{
	struct hca_port_divert_stats s;

	hca_port_divert_stats(k->divert, &s);
	HCA_PORT_DIVERT_STATS(PUT_DIVERT)
}

static void
put_kernel(struct kernif *k, kernif_counter_fn fn, void *arg)
{
	struct kernif_stats s;

	kernif_stats(k, &s);
	KERNIF_STATS(PUT_KERNEL)
}

void
kernif_counters(struct kernif *k, kernif_counter_fn fn, void *arg)
{
	struct arp_nd_stats s;

	put_divert(k, fn, arg);
	put_kernel(k, fn, arg);
	if (kernif_arp_nd_stats(k, &s)) {
		ARP_ND_STATS(PUT_RESPONDER)
	}
}

/* ---- life ---- */

static int
copy_config(struct kernif *k, const struct kernif_config *cfg)
{
	if (cfg->num_addresses > ARP_ND_ADDRESSES || cfg->num_gateways > ARP_ND_ADDRESSES)
		return kernif_fail(-EINVAL, "%u addresses and %u gateways, at most %u are possible",
				   cfg->num_addresses, cfg->num_gateways, ARP_ND_ADDRESSES);
	k->cfg = *cfg;
	for (uint32_t i = 0; i < cfg->num_addresses; i++)
		k->address[i] = cfg->addresses[i];
	for (uint32_t i = 0; i < cfg->num_gateways; i++)
		k->gateway[i] = cfg->gateways[i];
	k->cfg.addresses = k->address;
	k->cfg.gateways = k->gateway;
	return 0;
}

static int
init_waiting(struct kernif *k)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&k->lock, NULL);
	k->tap.fd = k->events.fd = k->ask.fd = -1;
	kernif_groups_init(k);
	k->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->group_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->kick_fd >= 0 && k->end_fd >= 0 && k->group_fd >= 0)
		return 0;
	return kernif_fail(-errno, "eventfd: %s", strerror(errno));
}

int
kernif_create(const struct kernif_config *cfg, struct kernif **out)
{
	struct kernif *k = calloc(1, sizeof(*k));
	int err;

	if (k == NULL)
		return kernif_fail(-ENOMEM, HCA_NO_MEMORY("the daemon"), "the kernel interface",
				   sizeof(*k));
	err = init_waiting(k);
	if (err == 0)
		err = copy_config(k, cfg);
	if (err == 0)
		err = k->cfg.kind == KERNIF_TAP ? kernif_kernel_create(k)
						: kernif_builtin_create(k);
	if (err != 0) {
		kernif_destroy(k);
		return err;
	}
	*out = k;
	return 0;
}

int
kernif_start(struct kernif *k, struct hca_port *divert, struct hca_driver *drv)
{
	void *(*pump)(void *) =
		k->cfg.kind == KERNIF_TAP ? kernif_kernel_pump : kernif_builtin_pump;
	uint32_t ifindex = k->cfg.kind == KERNIF_TAP ? k->tap.ifindex : k->cfg.ifindex;
	int err;

	k->divert = divert;
	k->drv = drv;
	kernif_guard_init(k);
	err = gid_table_init(&k->gids, drv, k->cfg.mac, ifindex, k->cfg.link_local);
	if (err != 0)
		return kernif_fail(err, "GID 0: %s", hca_driver_reason());
	err = pthread_create(&k->pump, NULL, pump, k);
	if (err != 0)
		return kernif_fail(-err, "no thread: %s", strerror(err));
	(void)pthread_setname_np(k->pump, "hca-addresses");
	k->pump_runs = true;
	err = k->cfg.kind == KERNIF_TAP ? kernif_kernel_start(k) : kernif_builtin_start(k);
	if (err != 0) {
		kernif_stop(k);
		return err;
	}
	pthread_mutex_lock(&k->lock);
	k->started = true;
	pthread_mutex_unlock(&k->lock);
	return 0;
}

void
kernif_hurry(struct kernif *k)
{
	__atomic_store_n(&k->hurry, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&k->lock);
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->lock);
}

void
kernif_stop(struct kernif *k)
{
	__atomic_store_n(&k->stop, true, __ATOMIC_RELEASE);
	kernif_ring(k->kick_fd);
	kernif_ring(k->end_fd);
	if (k->monitor_runs)
		pthread_join(k->monitor, NULL);
	if (k->pump_runs)
		pthread_join(k->pump, NULL);
	k->monitor_runs = k->pump_runs = false;
	pthread_mutex_lock(&k->lock);
	pthread_cond_broadcast(&k->changed);
	while (k->waiting != 0)
		(void)kernif_wait(k);
	k->started = false;
	pthread_mutex_unlock(&k->lock);
}

void
kernif_destroy(struct kernif *k)
{
	if (k == NULL)
		return;
	kernif_groups_destroy(k);
	kernif_kernel_destroy(k);
	arp_nd_destroy(k->responder);
	if (k->kick_fd >= 0)
		close(k->kick_fd);
	if (k->end_fd >= 0)
		close(k->end_fd);
	if (k->group_fd >= 0)
		close(k->group_fd);
	pthread_cond_destroy(&k->changed);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
