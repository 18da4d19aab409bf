/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_telemetry.h>

#include "abi_ctx.h"
#include "admin_capture.h"
#include "admin_impair.h"
#include "endpoint_admin.h"
#include "endpoint_impl.h"
#include "endpoint_log.h"
#include "kernif.h"
#include "port/port_impair.h"
#include "port/port_pcap.h"

/* Commands cannot be taken back: they look for the endpoint of this process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct endpoint *endpoint;

/* ---- commands; the lock is held ---- */

static int
show(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	const struct endpoint_port *p = &e->port;
	const uint8_t *m = p->mac;
	char mac[18];
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	rc |= rte_tel_data_add_dict_string(d, "name", e->cfg.name);
	rc |= rte_tel_data_add_dict_string(d, "device", e->cfg.device);
	rc |= rte_tel_data_add_dict_string(d, "driver", p->driver);
	rc |= rte_tel_data_add_dict_string(d, "mac", mac);
	rc |= rte_tel_data_add_dict_string(d, "socket", e->cfg.socket);
	rc |= rte_tel_data_add_dict_u64(d, "mtu", p->mtu);
	rc |= rte_tel_data_add_dict_u64(d, "roce_mtu", p->roce_mtu);
	rc |= rte_tel_data_add_dict_u64(d, "link", e->link.up);
	rc |= rte_tel_data_add_dict_u64(d, "link_downs", e->link.downs);
	rc |= rte_tel_data_add_dict_u64(d, "restarts", e->link.restarts);
	rc |= rte_tel_data_add_dict_u64(d, "workers", hca_threads_count(e->threads));
	rc |= rte_tel_data_add_dict_u64(d, "capture", e->capture != NULL);
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
		rc |= rte_tel_data_add_dict_u64(d, ipc_server_counter_name(i),
						ipc_server_counter(e->server, i));
	ipc_server_clean_ups(e->server, &u);
	rc |= rte_tel_data_add_dict_u64(d, "clean_ups", u.count);
	rc |= rte_tel_data_add_dict_u64(d, "clean_up_longest_ns", u.longest_ns);
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
#define X(n) rc |= rte_tel_data_add_dict_u64(d, #n, k.n);
	KERNIF_STATS(X)
#undef X
	if (kernif_arp_nd_stats(e->kernel.kernif, &a)) {
#define X(n) rc |= rte_tel_data_add_dict_u64(d, #n, a.n);
		ARP_ND_STATS(X)
#undef X
	}
	return rc == 0 ? 0 : -ENOMEM;
}

/* For operators: rules stand behind the probabilities, which replace each other. */
static void
note_impairment(struct endpoint *e, const char *params)
{
	size_t used = strlen(e->impairment);
	char *rules = strstr(e->impairment, "rule=");
	char kept[sizeof(e->impairment)] = "";

	if (strncmp(params, "rule=", 5) == 0) {
		snprintf(e->impairment + used, sizeof(e->impairment) - used, "%s%s",
			 used != 0 ? " " : "", params);
		return;
	}
	if (rules != NULL && strcmp(params, "off") != 0)
		snprintf(kept, sizeof(kept), " %s", rules);
	snprintf(e->impairment, sizeof(e->impairment), "%.80s%.40s",
		 strcmp(params, "off") != 0 ? params : "", kept);
}

static int
impair(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	struct hca_port_impair_stats s;
	int rc;

	if (e->impair == NULL)
		return -ENOTSUP;
	rc = admin_impair(e->impair, e->hca, params);
	if (rc != 0)
		return rc;
	if (params != NULL && *params != '\0') {
		LOG_INFO("%s: impairment: %s", e->cfg.name, params);
		note_impairment(e, params);
	}
	hca_port_impair_stats(e->impair, &s);
	rc = rte_tel_data_start_dict(d);
#define X(n) rc |= rte_tel_data_add_dict_u64(d, #n, s.n);
	HCA_PORT_IMPAIR_STATS(X)
#undef X
	rc |= rte_tel_data_add_dict_string(d, "setting", e->impairment);
	return rc == 0 ? 0 : -ENOMEM;
}

static uint64_t
epoch(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - hca_clock_ns();
}

/* *frames: how many the file holds, all of them: counted once no lcore writes it any more. */
static int
end_capture(struct endpoint *e, uint64_t *frames)
{
	int rc;

	*frames = 0;
	if (e->capture == NULL)
		return 0;
	hca_port_pcap_attach(e->pcap, NULL);
	*frames = hca_pcap_frames(e->capture);
	rc = hca_pcap_close(e->capture);
	e->capture = NULL;
	LOG_INFO("%s: capture ended%s", e->cfg.name, rc == 0 ? "" : ", and is not complete");
	return rc;
}

/* Packets the QP sends carry the number of its peer only. */
static int
find_peer(struct endpoint *e, struct hca_pcap_ng *ng)
{
	struct hca_qpc q;
	int rc = ng->one_qp ? hca_driver_query_qp(e->drv, ng->qpn, &q) : 0;

	if (rc == 0 && ng->one_qp)
		ng->remote_qpn = hca_be32_to_cpu(q.remote_qpn) & 0xffffff;
	return rc;
}

static int
begin_capture(struct endpoint *e, const char *params)
{
	struct admin_capture c;
	uint64_t frames_before;
	int rc = admin_capture_parse(params, &c);

	if (rc == 0)
		rc = find_peer(e, &c.ng);
	if (rc == 0)
		rc = end_capture(e, &frames_before);
	if (rc != 0)
		return rc;
	c.ng.interface = e->cfg.name;
	c.ng.epoch = epoch();
	rc = hca_pcap_open_ng(c.path, &c.ng, &e->capture);
	if (rc != 0)
		return rc;
	LOG_INFO("%s: capture to %s", e->cfg.name, c.path);
	hca_port_pcap_attach(e->pcap, e->capture);
	return 0;
}

static int
capture(struct endpoint *e, const char *params, struct rte_tel_data *d)
{
	uint64_t frames;
	int rc = 0;

	if (e->pcap == NULL)
		return -ENOTSUP;
	frames = e->capture != NULL ? hca_pcap_frames(e->capture) : 0;
	if (params != NULL && strcmp(params, "off") == 0)
		rc = end_capture(e, &frames);
	else if (params != NULL && *params != '\0')
		rc = begin_capture(e, params);
	if (rc != 0)
		return rc;
	rc = rte_tel_data_start_dict(d);
	rc |= rte_tel_data_add_dict_u64(d, "active", e->capture != NULL);
	rc |= rte_tel_data_add_dict_u64(d, "frames", frames);
	return rc == 0 ? 0 : -ENOMEM;
}

/* At most 127 characters of help each. */
#define COMMANDS(X) \
	X(show, "/softhca/endpoint", "The daemon: port, link, workers") \
	X(ipc, "/softhca/ipc", "Counters of the control socket") \
	X(other_traffic, "/softhca/kernif", "Counters of what is not RoCE") \
	X(impair, "/softhca/impair", \
	  "Faults of sent frames. Parameters: off, drop|dup|...=0..1, delay_us=N, rule=...") \
	X(capture, "/softhca/capture", \
	  "Frames as pcapng. Parameters: [dir=in|out,][qp=N,][snaplen=N,]/PATH, or off")

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
#define ADD(name, value) rc |= rte_tel_data_add_dict_u64(d, name, value)
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
		.layout = layouts[e->cfg.layout],
		.device = e->cfg.device,
		.socket = e->cfg.socket,
		.mtu = e->port.mtu,
		.usage = usage,
		.client = client,
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
	uint64_t frames;

	hca_telemetry_remove(&e->telemetry);
	pthread_mutex_lock(&lock);
	endpoint = NULL;
	end_capture(e, &frames);
	pthread_mutex_unlock(&lock);
}
