/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "abi_cqe.h"
#include "abi_gid_text.h"
#include "endpoint_address.h"
#include "endpoint_admin.h"
#include "endpoint_faults.h"
#include "endpoint_eal.h"
#include "endpoint_impl.h"
#include "endpoint_log.h"
#include "endpoint_machine.h"
#include "graph/sleep.h"
#include "hca.h"
#include "host.h"
#include "host_events.h"
#include "sd_notify.h"

/* ---- building ---- */

/* Access to a client's memory that is not mapped here; called from workers. */
static int
access_foreign(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	struct endpoint *e = arg;
	struct ipc_server *server = __atomic_load_n(&e->server, __ATOMIC_ACQUIRE);

	return server == NULL ? -EFAULT
			      : ipc_server_access(server, domain, write, addr, bytes, len);
}

static int
create_hca(struct endpoint *e)
{
	const struct endpoint_config *c = &e->cfg;
	struct hca_config hc = {
		.name = c->name,
		.port = e->port.top,
		.layout = (enum hca_layout)c->layout,
		.pipelines = c->pipelines,
		.congestion = c->congestion,
		.link_mbps = e->port.speed,
		.socket_id = c->numa_node,
#define X(section, name, ...) .name = c->name,
		HCA_LIMIT_LIST(X)
#undef X
			.full_records = c->records,
		.fw_ver = c->fw_ver,
		.port_stall_ns = (uint64_t)c->discard_after_us * 1000,
		.wires = endpoint_wires(c),
		.ub_segment = c->ub_segment,
		.ub_choices = c->ub_choices,
		.max_mtu = e->port.roce_mtu,
		.own_frames_leave = c->own_frames == ENDPOINT_OWN_FRAMES_PORT,
		.foreign = access_foreign,
		.foreign_arg = e,
		.wall_clock = hca_host_wall_clock,
	};
	int err;

	memcpy(hc.mac, e->port.mac, sizeof(hc.mac));
	err = hca_host_sleep_open(&e->sleep_words, &e->sleep_fd);
	if (err != 0)
		return endpoint_fail(err, "the sleep words of the workers: %s", strerror(-err));
	hc.sleep_words = e->sleep_words;
	err = hca_create(&hc, &e->hca);
	if (err != 0)
		return endpoint_fail(err,
				     "the HCA could not be created: %s ([memory] size_mb = %u)",
				     strerror(-err), c->memory_mb);
	host_events_watch(&e->events, 0, e->hca);
	return 0;
}

static int
start_threads(struct endpoint *e)
{
	struct hca_threads_config tc = {
		.hca = &e->hca,
		.num_hca = 1,
		.cpus = e->cfg.cpus,
		.num_cpus = e->cfg.num_cpus,
		.spin = e->cfg.idle == ENDPOINT_IDLE_SPIN,
	};
	int err = hca_threads_start(&tc, &e->threads);

	if (err != 0)
		return endpoint_fail(err, "the workers did not start: %s", strerror(-err));
	return 0;
}

/* Number of an MTU in verbs: 256 bytes is 1. */
static uint32_t
mtu_code(uint32_t payload)
{
	uint32_t code = 1;

	while ((128u << code) < payload)
		code++;
	return code;
}

static int
set_port(struct endpoint *e)
{
	struct hca_ctl_port port = {
		.speed = e->port.speed,
		.state = hca_port_link_up(e->hca) ? HCA_PORT_ACTIVE : HCA_PORT_DOWN,
		.max_mtu = mtu_code(e->port.roce_mtu),
		.active_mtu = mtu_code(e->port.roce_mtu),
	};

	memcpy(port.mac, e->port.mac, sizeof(port.mac));
	return hca_driver_set_port(e->drv, &port);
}

/* Free EAL memory for queues of clients; an eighth is kept back. */
static uint64_t
memory_left(void)
{
	struct rte_malloc_socket_stats stats;
	uint64_t left = 0;

	for (unsigned int i = 0; i < rte_socket_count(); i++)
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0)
			left += stats.heap_freesz_bytes;
	return left - left / 8;
}

static int
create_driver(struct endpoint *e)
{
	struct hca_hw hw = hca_host_hw(e->hca);
	struct hca_driver_config dc = {
		.seed = e->cfg.seed,
		.quota = e->cfg.quota,
		.device_bytes = memory_left(),
		.resolve = endpoint_kernel_resolve,
		.source = endpoint_kernel_source,
		.resolve_arg = &e->kernel,
		.urge = host_events_urge,
		.urge_arg = &e->events,
	};
	int err;

	hw.progress = hca_host_wait;
	hw.progress_arg = e->hca;
	err = hca_driver_create(&hw, &dc, &e->drv);
	if (err != 0)
		return endpoint_fail(err, "the driver did not start: %s", hca_driver_reason());
	return set_port(e);
}

static int
start_events(struct endpoint *e)
{
	int err = host_events_start(&e->events);

	if (err != 0)
		return endpoint_fail(err, "the event thread did not start: %s", strerror(-err));
	host_events_forward(&e->events, 0, e->drv);
	return 0;
}

/* A link that comes up may have another speed. */
static void
link_changed(void *arg, bool up)
{
	struct endpoint *e = arg;

	if (up && e->drv != NULL) {
		endpoint_port_take_speed(&e->port);
		(void)set_port(e);
	}
	endpoint_kernel_link(&e->kernel, up);
}

/* Each pipeline has a queue of the port. */
static int
fit_pipelines(struct endpoint *e)
{
	uint32_t queues = hca_port_queues(e->port.wire);

	if (e->cfg.pipelines <= queues)
		return 0;
	if (!e->cfg.fewer_pipelines)
		return endpoint_fail(-EINVAL,
				     "[hca] pipelines = %u: device %s has %u queue%s: expected as "
				     "many pipelines at most, or auto",
				     e->cfg.pipelines, e->port.device.name, queues,
				     queues == 1 ? "" : "s");
	while (e->cfg.pipelines > queues)
		e->cfg.pipelines /= 2;
	return 0;
}

static int
build(struct endpoint *e)
{
	int err = endpoint_machine_cpus(&e->cfg);

	endpoint_machine_files(&e->cfg);
	if (err == 0)
		err = endpoint_device_parse(&e->cfg, endpoint_netdev_mtu, &e->port.device);

	if (err == 0)
		err = endpoint_eal_start(&e->cfg, &e->port.device);
	if (err == 0)
		err = endpoint_port_open(&e->port, &e->cfg);
	if (err == 0)
		err = fit_pipelines(e);
	if (err == 0)
		err = endpoint_front_open(e);
	if (err == 0)
		err = create_hca(e);
	if (err == 0) {
		endpoint_link_init(&e->link, &e->port, e->hca, link_changed, e);
		err = start_threads(e);
	}
	if (err == 0)
		err = create_driver(e);
	if (err == 0)
		err = start_events(e);
	if (err == 0)
		err = endpoint_agent_start(e);
	if (err == 0)
		err = endpoint_cm_start(e);
	if (err == 0)
		err = endpoint_services_start(e);
	return err;
}

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void
tell(const struct endpoint *e)
{
	static const char *const layout[] = {"rtc", "txrx", "full"};
	unsigned int workers = hca_threads_count(e->threads);
	const struct endpoint_port *p = &e->port;
	const uint8_t *m = p->mac;
	char text[64];

	LOG_INFO("%s: port %s (%s), MAC %02x:%02x:%02x:%02x:%02x:%02x, MTU %u, RoCE MTU %u",
		 e->cfg.name, p->device.name, p->driver, m[0], m[1], m[2], m[3], m[4], m[5], p->mtu,
		 p->roce_mtu);
	LOG_INFO("%s: %u pipeline%s of layout %s, %u worker%s, congestion control %s, %u MB on %s",
		 e->cfg.name, e->cfg.pipelines, e->cfg.pipelines == 1 ? "" : "s",
		 layout[e->cfg.layout], workers, workers == 1 ? "" : "s", e->cfg.congestion,
		 e->cfg.memory_mb, endpoint_eal_huge() ? "hugepages" : "ordinary pages");
	for (uint32_t i = 0; i < e->cfg.num_addresses; i++)
		LOG_INFO("%s: GID %u is %s", e->cfg.name, i + (e->cfg.link_local ? 1 : 0),
			 hca_gid_text(e->cfg.address[i].gid, text, sizeof(text)));
}

int
endpoint_create(const struct endpoint_config *config, struct endpoint **out)
{
	struct endpoint *e = aligned_alloc(64, sizeof(*e) + (-sizeof(*e) & 63));
	int err;

	if (e == NULL)
		return endpoint_fail(-ENOMEM, "no memory for the state of the daemon: %zu bytes",
				     sizeof(*e));
	memset(e, 0, sizeof(*e));
	e->cfg = *config;
	endpoint_log_level(e->cfg.log_level);
	err = build(e);
	if (err != 0) {
		endpoint_destroy(e);
		return err;
	}
	endpoint_health_init(&e->health, e->cfg.name, e->hca, e->threads, monotonic_ns());
	endpoint_place_init(&e->place, NULL, monotonic_ns());
	if (e->cfg.telemetry)
		endpoint_admin_add(e);
	tell(e);
	*out = e;
	return 0;
}

void
endpoint_destroy(struct endpoint *e)
{
	if (e == NULL)
		return;
	endpoint_kernel_hurry(&e->kernel); /* those below ask */
	endpoint_admin_remove(e);
	endpoint_clients_stop(e);
	endpoint_cm_stop(e);
	endpoint_agent_stop(e);
	endpoint_kernel_stop(&e->kernel);
	host_events_stop(&e->events);
	if (e->drv != NULL)
		hca_driver_destroy(e->drv);
	endpoint_link_stop(&e->link);
	hca_threads_stop(e->threads);
	hca_destroy(e->hca);
	if (e->sleep_words != NULL)
		hca_host_sleep_close(e->sleep_words, e->sleep_fd);
	endpoint_port_close(&e->port);
	endpoint_kernel_close(&e->kernel);
	free(e);
}

/* ---- running ---- */

/* Feed systemd's watchdog, so that it restarts a daemon that hangs or whose device is dead. */
static void
feed_watchdog(struct endpoint *e, uint64_t now, uint64_t every, uint64_t *due)
{
	if (every == 0 || now < *due || hca_driver_dead(e->drv))
		return;
	*due = now + every;
	sd_notify_send("WATCHDOG=1");
}

static struct timespec
period(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Time until the next look: shorter while a worker waits for a CPU. One that sleeps does not. */
static uint64_t
pause_ns(struct endpoint *e, uint64_t now)
{
	uint64_t usual = e->cfg.link_poll_ms * 1000000ull;
	int tids[ENDPOINT_PLACE_WORKERS];
	unsigned int n = hca_threads_count(e->threads);

	if (hca_sleep_all(e->hca))
		return usual;
	for (unsigned int i = 0; i < n && i < ENDPOINT_PLACE_WORKERS; i++)
		tids[i] = hca_threads_tid(e->threads, i);
	return endpoint_place_watch(&e->place, tids, n, now) && usual > ENDPOINT_PLACE_PERIOD_NS
		       ? ENDPOINT_PLACE_PERIOD_NS
		       : usual;
}

static void
watch(struct endpoint *e)
{
	struct timespec rest = period(e->cfg.link_poll_ms * 1000000ull);
	uint64_t every = sd_notify_watchdog_ns(), due = 0, now;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	for (;;) {
		int number = sigtimedwait(&set, NULL, &rest);

		if (number == SIGHUP)
			LOG_WARNING("SIGHUP ignored: the configuration is read at the start only");
		else if (number > 0)
			break;
		now = monotonic_ns();
		endpoint_link_watch(&e->link);
		endpoint_health_watch(&e->health, now);
		endpoint_faults_watch(e, now);
		rest = period(pause_ns(e, now));
		feed_watchdog(e, now, every, &due);
	}
}

int
endpoint_run(struct endpoint *e)
{
	int err = sd_notify_send("READY=1");

	if (err != 0)
		LOG_WARNING("systemd could not be told: %s", strerror(-err));
	LOG_INFO("%s: ready", e->cfg.name);
	watch(e);
	sd_notify_send("STOPPING=1");
	LOG_INFO("%s: stopping", e->cfg.name);
	return 0;
}
