/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dpdk_compat.h>
#include <rte_common.h>
#include <rte_telemetry.h>

#include "abi_ctx.h"
#include "abi_tp.h"
#include "admin_capture.h"
#include "admin_impair.h"
#include "admin_ping.h"
#include "endpoint_admin.h"
#include "endpoint_faults.h"
#include "endpoint_impl.h"
#include "endpoint_log.h"
#include "host_setting.h"
#include "kernif.h"
#include "port/port_impair.h"
#include "port/port_memif.h"
#include "port/port_pcap.h"
#include "wire/wire_view.h"

/* Telemetry commands cannot be unregistered, so they look up the endpoint of this process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct endpoint *endpoint;
/* Commands that wait without the lock; the endpoint stays until none runs. */
static unsigned int waiting;
static pthread_cond_t none_waits = PTHREAD_COND_INITIALIZER;

/* ---- commands; called with the lock held ---- */

/*
 * Answer a refused command with {"error": text}, at most 127 characters. If the handler returned a
 * negative value the operator would only see null.
 */
static int refuse(struct rte_tel_data *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int
refuse(struct rte_tel_data *d, const char *format, ...)
{
	char why[128];
	va_list ap;
	int rc;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	rc = rte_tel_data_start_dict(d);
	return rc != 0 ? rc : rte_tel_data_add_dict_string(d, "error", why);
}

static int
refuse_disabled(struct rte_tel_data *d)
{
	return refuse(d, "impairments and captures are off: set impair = yes in section [admin], "
			 "and restart the daemon");
}

/* "there is no QP 0x123; there are 2: 0x456, 0x789", of the first of `all` */
static int
refuse_number(struct rte_tel_data *d, const char *kind, uint32_t number, const uint32_t some[4],
	      unsigned int all)
{
	char text[64] = "";

	for (unsigned int i = 0; i < RTE_MIN(all, 4u); i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s0x%x",
			 i != 0 ? ", " : "", some[i]);
	if (all == 0)
		return refuse(d, "there is no %s 0x%x, nor any other one", kind, number);
	return refuse(d, "there is no %s 0x%x; there are %u: %s%s", kind, number, all, text,
		      all > 4 ? ", ..." : "");
}

static int
refuse_qp(const struct endpoint *e, struct rte_tel_data *d, uint32_t qpn)
{
	uint32_t some[4];
	unsigned int all = hca_qp_list(e->hca, some, RTE_DIM(some));

	return refuse_number(d, "QP", qpn, some, all);
}

static int
refuse_tp(const struct endpoint *e, struct rte_tel_data *d, uint32_t tpn)
{
	uint32_t some[64];
	unsigned int all = e->cfg.ub ? hca_driver_list_tps(e->drv, 0, some, RTE_DIM(some)) : 0;

	return refuse_number(d, "TP", tpn, some, all);
}

static bool
tp_lives(const struct endpoint *e, uint32_t tpn)
{
	struct hca_tpc c;

	return e->cfg.ub && hca_driver_query_tp(e->drv, tpn, &c) == 0;
}

static int
show(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	const struct endpoint_port *p = &e->port;
	const uint8_t *m = p->mac;
	char mac[18], peer[64] = "";
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	if ((p->device.traits & ENDPOINT_DEVICE_MEMIF) != 0)
		hca_port_memif_peer(p->wire, peer, sizeof(peer));
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	rc |= rte_tel_data_add_dict_string(d, "name", e->cfg.name);
	rc |= rte_tel_data_add_dict_string(d, "device", e->cfg.device);
	rc |= rte_tel_data_add_dict_string(d, "driver", p->driver);
	rc |= rte_tel_data_add_dict_string(d, "mac", mac);
	rc |= rte_tel_data_add_dict_string(d, "socket", e->cfg.socket);
	rc |= rte_tel_data_add_dict_uint(d, "mtu", p->mtu);
	rc |= rte_tel_data_add_dict_uint(d, "roce_mtu", p->roce_mtu);
	rc |= rte_tel_data_add_dict_uint(d, "link", e->link.up);
	rc |= rte_tel_data_add_dict_uint(d, "link_downs", e->link.downs);
	rc |= rte_tel_data_add_dict_string(d, "peer", peer);
	rc |= rte_tel_data_add_dict_uint(d, "workers", hca_threads_count(e->threads));
	rc |= rte_tel_data_add_dict_uint(d, "capture", e->capture != NULL);
	return rc == 0 ? 0 : -ENOMEM;
}

static int
ipc(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	struct ipc_clean_ups u = {0};
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	if (e->server == NULL)
		return rc;
	for (unsigned int i = 0; i < ipc_server_counter_count(); i++)
		rc |= rte_tel_data_add_dict_uint(d, ipc_server_counter_name(i),
						 ipc_server_counter(e->server, i));
	ipc_server_clean_ups(e->server, &u);
	rc |= rte_tel_data_add_dict_uint(d, "clean_ups", u.count);
	rc |= rte_tel_data_add_dict_uint(d, "clean_up_longest_ns", u.longest_ns);
	return rc == 0 ? 0 : -ENOMEM;
}

static int
memif(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	struct hca_port_memif_stats st;
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	if ((e->port.device.traits & ENDPOINT_DEVICE_MEMIF) == 0)
		return rc;
	hca_port_memif_stats(e->port.wire, &st);
#define X(n) rc |= rte_tel_data_add_dict_uint(d, #n, st.n);
	HCA_PORT_MEMIF_STATS(X)
#undef X
	return rc == 0 ? 0 : -ENOMEM;
}

static int
other_traffic(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	struct kernif_stats k;
	struct arp_nd_stats a;
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	kernif_stats(e->kernel.kernif, &k);
	rc |= rte_tel_data_add_dict_string(d, "interface", kernif_interface(e->kernel.kernif));
#define X(n) rc |= rte_tel_data_add_dict_uint(d, #n, k.n);
	KERNIF_STATS(X)
#undef X
	if (kernif_arp_nd_stats(e->kernel.kernif, &a)) {
#define X(n) rc |= rte_tel_data_add_dict_uint(d, #n, a.n);
		ARP_ND_STATS(X)
#undef X
	}
	return rc == 0 ? 0 : -ENOMEM;
}

/* Packets that a QP sends carry only the number of its peer. */
static int
find_peer(struct endpoint *e, uint32_t qpn, uint32_t *remote_qpn)
{
	struct hca_qpc q;
	int rc = hca_driver_query_qp(e->drv, qpn, &q);

	if (rc == 0)
		*remote_qpn = hca_be32_to_cpu(q.remote_qpn) & 0xffffff;
	return rc;
}

static int
impair(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	struct admin_impair a;
	uint32_t peer = 0;
	char why[128];

	if (e->faults[ENDPOINT_SENT].port == NULL)
		return refuse_disabled(d);
	if (admin_impair_parse(params != NULL ? params : "", &a, why, sizeof(why)) != 0)
		return refuse(d, "%s", why);
	if (a.said.qpn != 0 && find_peer(e, a.said.qpn, &peer) != 0)
		return refuse_qp(e, d, a.said.qpn);
	if (a.said.tpn != 0 && !tp_lives(e, a.said.tpn))
		return refuse_tp(e, d, a.said.tpn);
	if (endpoint_faults_set(e, &a, peer) != 0)
		return refuse(d, "there are %u rules, and there is no room for more: use \"off\"",
			      HCA_FAULT_RULES);
	if (a.what != ADMIN_IMPAIR_NOTHING)
		LOG_INFO("%s: impairment: %s", e->cfg.name, params);
	return endpoint_faults_tell(e, d);
}

static uint64_t
epoch(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - hca_clock_ns();
}

/* Summary of a capture, for the answer. */
struct captured {
	uint64_t frames, lost;
	bool active, failed;
};

static void
summarize_capture(const struct endpoint *e, struct captured *c)
{
	memset(c, 0, sizeof(*c));
	if (e->capture == NULL)
		return;
	c->frames = hca_pcap_frames(e->capture);
	c->lost = hca_pcap_lost(e->capture);
	c->failed = hca_pcap_failed(e->capture);
	c->active = !c->failed;
}

/* Stop the capture; its counts are read after no lcore writes any more. */
static void
end_capture(struct endpoint *e, struct captured *c)
{
	memset(c, 0, sizeof(*c));
	if (e->capture == NULL)
		return;
	hca_port_pcap_attach(e->pcap, NULL);
	summarize_capture(e, c);
	c->failed = hca_pcap_close(e->capture) != 0;
	c->active = false;
	e->capture = NULL;
	LOG_INFO("%s: capture ended%s", e->cfg.name,
		 c->failed ? ": the file could not be written" : "");
	if (c->lost != 0)
		LOG_WARNING("%s: %" PRIu64 " frames are not in the capture: the disk was too slow",
			    e->cfg.name, c->lost);
}

/* Start a capture and then stop the previous one. False: refused, and d holds the reason. */
static bool
begin_capture(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	struct hca_pcap *file = NULL;
	struct admin_capture c;
	struct captured before;
	int rc;

	if (admin_capture_parse(params, &c) != 0)
		return refuse(d, "\"%.60s\" is no capture; see softhca-ctl --help", params) > 0;
	if (c.ng.one_qp && c.ng.wire == HCA_WIRE_UB) {
		c.ng.remote_qpn = UINT32_MAX; /* frames of UB name their sender */
		if (!tp_lives(e, c.ng.qpn))
			return refuse_tp(e, d, c.ng.qpn) > 0;
	} else if (c.ng.one_qp && find_peer(e, c.ng.qpn, &c.ng.remote_qpn) != 0) {
		return refuse_qp(e, d, c.ng.qpn) > 0;
	}
	c.ng.interface = e->cfg.name;
	c.ng.epoch = epoch();
	rc = hca_pcap_open_ng(c.path, &c.ng, &file);
	if (rc != 0)
		return refuse(d, "%.80s: %s%s", c.path, strerror(-rc),
			      rc == -EEXIST || rc == -ELOOP
				      ? ": a capture overwrites nothing and follows no link"
				      : "") > 0;
	end_capture(e, &before);
	e->capture = file;
	LOG_INFO("%s: capture to %s", e->cfg.name, c.path);
	hca_port_pcap_attach(e->pcap, file);
	return true;
}

static int
capture(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	bool off = params != NULL && strcmp(params, "off") == 0;
	struct captured c;
	int rc;

	if (e->pcap == NULL)
		return refuse_disabled(d);
	if (off)
		end_capture(e, &c);
	else if (params != NULL && *params != '\0' && !begin_capture(e, params, d))
		return 0;
	if (!off)
		summarize_capture(e, &c);
	rc = rte_tel_data_start_dict(d);
	rc |= rte_tel_data_add_dict_uint(d, "active", c.active);
	rc |= rte_tel_data_add_dict_uint(d, "frames", c.frames);
	rc |= rte_tel_data_add_dict_uint(d, "lost", c.lost);
	rc |= rte_tel_data_add_dict_uint(d, "failed", c.failed);
	return rc == 0 ? 0 : -ENOMEM;
}

/* Waits for the MAC address of the peer: without the lock. */
static int
ping(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	const struct admin_ping_host host = {.drv = e->drv,
					     .agent = e->cm,
					     .size_max = e->port.roce_mtu};
	struct admin_ping a;
	char why[128];
	int err;

	if (e->cm == NULL)
		return refuse(d, "pings need connection management: [cm] enabled = no");
	err = admin_ping_parse(params != NULL ? params : "", &a, why, sizeof(why));
	if (err == 0) {
		waiting++;
		pthread_mutex_unlock(&lock);
		err = admin_ping_run(&host, &a, d, why, sizeof(why));
		pthread_mutex_lock(&lock);
		waiting--;
		pthread_cond_signal(&none_waits);
	}
	return err == 0 ? 0 : refuse(d, "%s", why);
}

/* Settings that may change while the daemon runs; the answer has the present ones. */
static int
set(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	const char *text = params != NULL ? params : "";
	char why[192];
	int rc;

	if (*text != '\0') {
		if (host_setting_change(e->drv, text, why, sizeof(why)) != 0)
			return refuse(d, "%s", why);
		LOG_INFO("%s: set %s", e->cfg.name, text);
	}
	rc = rte_tel_data_start_dict(d);
	rc |= rte_tel_data_add_dict_string(d, "congestion", hca_congestion(e->hca));
#define X(name) \
	rc |= rte_tel_data_add_dict_uint(d, #name, hca_congestion_parameter(e->hca, HCA_CC_##name));
	HCA_CC_PARAMETER_LIST(X)
#undef X
	return rc == 0 ? 0 : -ENOMEM;
}

/* X(command, handler, help); help: at most 127 characters. */
#define COMMANDS(X) \
	X(show, "/softhca/endpoint", "The daemon: port, link, workers") \
	X(ipc, "/softhca/ipc", "Counters of the control socket") \
	X(memif, "/softhca/memif", "Counters of a memif port") \
	X(other_traffic, "/softhca/kernif", "Counters of what is not RoCE") \
	X(impair, "/softhca/impair", \
	  "Faults. Parameters: [dir=in|out|both,]off|drop=0..1,...|drop,opcode=ack,nth=N,qp=N|port=down|...") \
	X(set, "/softhca/set", \
	  "Settings. Parameters: congestion=NAME, cnp_dscp=N, ..., or nothing") \
	X(ping, "/softhca/ping", \
	  "Ask a peer. Parameters: to=GID[,size=N|mtu=yes][,count=N][,interval_ms=N], or session=N[,from=K|,end]") \
	X(capture, "/softhca/capture", \
	  "Frames as pcapng. Parameters: [dir=in|out,][qp|tp=N,][snaplen=N,]/PATH, or off")

#define X(fn, path, text) \
	static int on_##fn(const char *cmd, const char *params, struct rte_tel_data *d) \
	{ \
		int rc = -ENODEV; \
		(void)cmd; \
		pthread_mutex_lock(&lock); \
		if (endpoint != NULL) \
			rc = fn(endpoint, params, d); \
		pthread_mutex_unlock(&lock); \
		return rc; \
	}
COMMANDS(X)
#undef X

static void
register_commands(void)
{
#define X(fn, path, text) rte_telemetry_register_cmd(path, on_##fn, text);
	COMMANDS(X)
#undef X
}

static int
usage(void *arg, struct rte_tel_data *d)
{
	struct endpoint *e = arg;
	struct hca_driver_usage u;
	struct hca_usage h;
	int rc = 0;

	hca_usage(e->hca, &h);
	hca_driver_usage(e->drv, &u);
#define ADD(name, value) rc |= rte_tel_data_add_dict_uint(d, name, value)
	ADD("records", h.records);
	ADD("full_records", h.full_records);
	ADD("tx_mbufs", h.tx_mbufs);
	ADD("resp_mbufs", h.resp_mbufs);
	ADD("edge_objects", h.edge_objects);
	ADD("backlog", h.backlog);
	ADD("messages", h.messages);
	ADD("hw_qps", h.qps);
	ADD("hw_cqs", h.cqs);
	ADD("hw_mpts", h.mpts);
	ADD("hw_srqs", h.srqs);
	ADD("qps", u.qps);
	ADD("cqs", u.cqs);
	ADD("srqs", u.srqs);
	ADD("mrs", u.mrs);
	ADD("pds", u.pds);
	ADD("clients", u.clients);
	ADD("channels", u.channels);
#undef ADD
	return rc == 0 ? 0 : -ENOMEM;
}

static void
health(void *arg, char *text, size_t size, char *cpu, size_t cpu_size)
{
	struct endpoint *e = arg;

	endpoint_health_tell(&e->health, text, size, cpu, cpu_size);
}

static unsigned int
findings(void *arg, struct finding out[FINDINGS_MAX])
{
	struct endpoint *e = arg;

	return endpoint_health_findings(&e->health, out);
}

static bool
find_client(const struct ipc_client_info *all, unsigned int n, uint32_t uar_page,
	    struct hca_telemetry_client *out)
{
	for (unsigned int i = 0; i < n; i++) {
		if (all[i].uar_page != uar_page)
			continue;
		*out = (struct hca_telemetry_client){
			.pid = all[i].pid,
			.uid = all[i].uid,
			.attached = all[i].attached,
			.requests = all[i].requests,
			.muted = all[i].muted,
		};
		return true;
	}
	return false;
}

static bool
client(void *arg, uint32_t uar_page, struct hca_telemetry_client *out)
{
	const struct endpoint *e = arg;
	unsigned int max = e->cfg.clients, n;
	struct ipc_client_info *all;
	bool found;

	if (e->server == NULL)
		return false;
	all = calloc(max, sizeof(*all));
	if (all == NULL)
		return false;
	n = ipc_server_clients(e->server, all, max);
	found = find_client(all, n < max ? n : max, uar_page, out);
	free(all);
	return found;
}

void
endpoint_admin_add(struct endpoint *e)
{
	static const char *const layouts[] = {"rtc", "txrx", "full"};
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	e->telemetry = (struct hca_telemetry){
		.name = e->cfg.name,
		.hca = e->hca,
		.drv = e->drv,
		.cm = e->cm,
		.layout = layouts[e->cfg.layout],
		.device = e->cfg.device,
		.socket = e->cfg.socket,
		.mtu = e->port.mtu,
		.usage = usage,
		.client = client,
		.health = health,
		.findings = findings,
		.arg = e,
	};
	hca_telemetry_add(&e->telemetry);
	pthread_once(&once, register_commands);
	pthread_mutex_lock(&lock);
	endpoint = e;
	pthread_mutex_unlock(&lock);
}

void
endpoint_admin_remove(struct endpoint *e)
{
	struct captured last;

	hca_telemetry_remove(&e->telemetry);
	pthread_mutex_lock(&lock);
	endpoint = NULL;
	while (waiting != 0)
		pthread_cond_wait(&none_waits, &lock);
	end_capture(e, &last);
	pthread_mutex_unlock(&lock);
}
