/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The parts around the HCA: ports in front of the wire, the kernel interface, the clients' server.
 */

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint_address.h"
#include "endpoint_impl.h"
#include "endpoint_log.h"
#include "graph/sleep.h"
#include "host.h"
#include "port/port_divert.h"
#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_pcap.h"
#include "port/port_stall.h"

/* ---- ports in front of the wire ---- */

static int
add_pcap(struct endpoint *e)
{
	int err = hca_port_pcap_open(NULL, e->port.top, e->cfg.numa_node, &e->pcap);

	if (err == 0) {
		hca_port_pcap_both_ways(e->pcap);
		e->port.top = e->pcap;
	}
	return err == 0 ? 0
			: endpoint_fail(err,
					"no memory to capture with: raise [memory] size_mb = %u",
					e->cfg.memory_mb);
}

static int
add_inbound(struct endpoint *e)
{
	char name[32];
	struct hca_port_impair_config ic = {
		.name = name,
		.seed = ~e->cfg.seed,
		.socket_id = e->cfg.numa_node,
	};
	int err;

	snprintf(name, sizeof(name), "%.16s.in", e->cfg.name);
	err = hca_port_inbound_open(&ic, e->port.top, &e->port.top);
	if (err == 0) {
		e->inbound = e->port.top;
		e->faults[ENDPOINT_RECEIVED].port = hca_port_inbound_impair(e->port.top);
	}
	return err;
}

static int
add_impair(struct endpoint *e)
{
	struct hca_port_impair_config ic = {
		.name = e->cfg.name,
		.seed = e->cfg.seed,
		.socket_id = e->cfg.numa_node,
	};
	struct hca_port_stall_config sc = {.socket_id = e->cfg.numa_node};
	int err = add_inbound(e);

	if (err == 0)
		err = hca_port_impair_open(&ic, e->port.top, &e->port.top);
	if (err == 0) {
		sc.deaf = hca_port_inbound_deaf(e->inbound);
		e->faults[ENDPOINT_SENT].port = e->port.top;
		hca_port_impair_watch(e->port.top, hca_port_pcap_mark, e->pcap);
		err = hca_port_stall_open(&sc, e->port.top, &e->port.top);
	}
	if (err == 0)
		e->stall = e->port.top;
	return err == 0 ? 0
			: endpoint_fail(
				  err,
				  "no memory to inject faults with: raise [memory] size_mb = %u",
				  e->cfg.memory_mb);
}

int
endpoint_front_open(struct endpoint *e)
{
	int err = e->cfg.impair ? add_pcap(e) : 0;

	if (err == 0)
		err = endpoint_kernel_open(&e->kernel, &e->cfg, &e->port);
	if (err == 0 && e->cfg.impair)
		err = add_impair(e);
	return err;
}

/* ---- clients ---- */

static int
find_group(const struct endpoint_config *c, struct ipc_server_config *sc)
{
	char text[65536]; /* with the names of its members */
	struct group group, *found = NULL;
	int err;

	if (c->socket_group[0] == '\0')
		return 0;
	err = getgrnam_r(c->socket_group, &group, text, sizeof(text), &found);
	if (err != 0)
		return endpoint_fail(-err, "[control] group: %s cannot be looked up: %s",
				     c->socket_group, strerror(err));
	if (found == NULL)
		return endpoint_fail(
			-EINVAL, "[control] group: there is no group %s; 'groupadd %s' makes it",
			c->socket_group, c->socket_group);
	sc->set_group = true;
	sc->group = found->gr_gid;
	return 0;
}

static int
find_user(const char *name, uid_t *uid)
{
	struct passwd user, *found = NULL;
	char text[4096], *end;

	*uid = (uid_t)strtoul(name, &end, 10);
	if (isdigit((unsigned char)*name) && *end == '\0')
		return 0;
	if (getpwnam_r(name, &user, text, sizeof(text), &found) != 0 || found == NULL)
		return endpoint_fail(-EINVAL, "[control] privileged_users: there is no user %s",
				     name);
	*uid = found->pw_uid;
	return 0;
}

static int
find_privileged(const struct endpoint_config *c, struct ipc_server_config *sc)
{
	char names[sizeof(c->privileged_users)], *rest = names, *name;
	int err = 0;

	memcpy(names, c->privileged_users, sizeof(names));
	while (err == 0 && (name = strsep(&rest, ", \t")) != NULL) {
		if (*name == '\0')
			continue;
		if (sc->num_privileged == IPC_PRIVILEGED_MAX)
			return endpoint_fail(
				-EINVAL,
				"[control] privileged_users: expected at most %u names; leave "
				"some out, or use [control] group",
				IPC_PRIVILEGED_MAX);
		err = find_user(name, &sc->privileged[sc->num_privileged++]);
	}
	return err;
}

/* ipc_server_config.slow */
static void
log_slow(pid_t pid, uid_t uid)
{
	LOG_INFO(
		"client %d (user %u) has registered memory that is reached the slow way, by system "
		"calls of the workers",
		(int)pid, (unsigned int)uid);
}

/* ipc_server_config.differs */
static void
log_differs(pid_t pid, uid_t uid, const char *words)
{
	LOG_INFO("client %d (user %u): %s", (int)pid, (unsigned int)uid, words);
}

static int
start_server(struct endpoint *e)
{
	const struct endpoint_config *c = &e->cfg;
	struct ipc_server_config sc = {
		.path = c->socket,
		.name = c->name,
		.driver = e->drv,
		.sleep = &e->sleep,
		.mode = c->socket_mode,
		.clients_max = c->clients,
		.clients_per_uid = c->clients_per_user,
		.memory_max = c->quota_memory_mb << 20,
		.memory_per_uid = c->user_memory_mb << 20,
		.segments_max = c->quota.segments,
		.slow_memory = c->slow_memory,
		.slow = log_slow,
		.differs = log_differs,
		.trust_own = c->trust_own,
		.turn_ms = c->turn_ms,
	};
	int err = endpoint_unlink_stale(c->socket);
	struct ipc_server *server;

	e->sleep = (struct ipc_sleep){
		.page_fd = e->sleep_fd,
		.pipes = hca_pipelines(e->hca),
		.add = hca_host_kick_add,
		.remove = hca_host_kick_remove,
		.muted = hca_host_kick_muted,
		.arg = e->hca,
	};
	for (uint32_t i = 0; i < e->sleep.pipes; i++)
		e->sleep.offset[i] = hca_sleep_offset(e->hca, i);
	if (err == -EADDRINUSE)
		return endpoint_fail(err, "another daemon listens on %s", c->socket);
	if (err != 0)
		return endpoint_fail(err, "%s: %s", c->socket, strerror(-err));
	err = find_group(c, &sc);
	if (err == 0)
		err = find_privileged(c, &sc);
	if (err == 0) {
		err = ipc_server_create(&sc, &server);
		if (err != 0)
			return endpoint_fail(err, "control socket: %s", ipc_server_reason());
		__atomic_store_n(&e->server, server, __ATOMIC_RELEASE); /* workers read it */
	}
	return err;
}

static void
wake_transmitter(void *h)
{
	hca_kick_stage(h, HCA_STAGE_ENCAP);
}

int
endpoint_services_start(struct endpoint *e)
{
	int err;

	hca_port_divert_set_wake(e->kernel.divert, wake_transmitter, e->hca);
	err = endpoint_kernel_start(&e->kernel, e->drv);

	if (err == 0)
		err = endpoint_set_neighbours(e->drv, &e->cfg);
	if (err == 0 && strcmp(e->cfg.socket, "none") != 0)
		err = start_server(e);
	return err;
}

void
endpoint_clients_stop(struct endpoint *e)
{
	if (e->server != NULL)
		ipc_server_destroy(e->server);
	/* no client: workers make no foreign accesses any more */
	__atomic_store_n(&e->server, NULL, __ATOMIC_RELEASE);
}
