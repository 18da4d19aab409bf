/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dpdk_compat.h>
#include <rte_telemetry.h>

#include "abi_addr.h"
#include "abi_gid_text.h"
#include "abi_roce.h"
#include "admin_ping.h"
#include "driver.h"
#include "ibagent.h"

#define WORD_MAX 64u
#define COUNT 5u
#define INTERVAL_MS 200u
#define TIMEOUT_MS 1000u
#define TIMEOUT_MS_MAX 2000u /* ns fit into an int of telemetry */
#define MS UINT64_C(1000000)
#define RTTS 64u /* in one answer */
#define RTT_LOST (-1)
#define RTT_OPEN (-2)

/* ---- parameters ---- */

static bool
take_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	*out = v;
	return errno == 0 && *end == '\0' && v >= min && v <= max;
}

/* The address of one host, in GID form. */
static bool
take_address(const char *text, uint8_t gid[16])
{
	uint8_t ip[4];

	if (inet_pton(AF_INET, text, ip) == 1)
		hca_gid_from_ip4(gid, ip);
	else if (inet_pton(AF_INET6, text, gid) != 1)
		return false;
	return !hca_gid_is_multicast(gid);
}

struct number {
	const char *name;
	uint64_t min, max;
	uint64_t *to;
};

/* Numbers in the parameters of a ping; the structure has them in other units and widths. */
struct words {
	uint64_t session, from, scope, size, count, interval_ms, timeout_ms;
	bool to, mtu, end;
};

static bool
take_word(const char *word, struct words *w, struct admin_ping *out)
{
	const struct number numbers[] = {
		{"session=", 1, INT32_MAX, &w->session},
		{"from=", 0, IBPING_COUNT_MAX, &w->from},
		{"scope=", 0, UINT32_MAX, &w->scope},
		{"size=", IBPING_BYTES_MIN, IBPING_BYTES_MAX, &w->size},
		{"count=", 1, IBPING_COUNT_MAX, &w->count},
		{"interval_ms=", IBPING_INTERVAL_MIN / MS, 60000, &w->interval_ms},
		{"timeout_ms=", 1, TIMEOUT_MS_MAX, &w->timeout_ms},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		size_t len = strlen(numbers[i].name);

		if (strncmp(word, numbers[i].name, len) == 0)
			return take_number(word + len, numbers[i].min, numbers[i].max,
					   numbers[i].to);
	}
	w->to |= strncmp(word, "to=", 3) == 0;
	w->mtu |= strcmp(word, "mtu=yes") == 0;
	w->end |= strcmp(word, "end") == 0;
	if (strncmp(word, "to=", 3) == 0)
		return take_address(word + 3, out->request.way.peer);
	return strcmp(word, "mtu=yes") == 0 || strcmp(word, "end") == 0;
}

static int
put_words(const struct words *w, struct admin_ping *out, char *why, size_t size)
{
	if (w->to == (w->session != 0)) {
		snprintf(why, size, "expected to=ADDRESS or session=NUMBER");
		return -EINVAL;
	}
	out->begin = w->to;
	out->end = w->end;
	out->mtu = w->mtu;
	out->session = (uint32_t)w->session;
	out->from = (uint32_t)w->from;
	out->scope = (uint32_t)w->scope;
	out->request.size = (uint32_t)w->size;
	out->request.count = (uint32_t)w->count;
	out->request.interval = w->interval_ms * MS;
	out->request.timeout = w->timeout_ms * MS;
	out->request.way.hop_limit = HCA_HOP_LIMIT;
	return 0;
}

int
admin_ping_parse(const char *text, struct admin_ping *out, char *why, size_t size)
{
	struct words w = {.size = IBPING_BYTES_MIN,
			  .count = COUNT,
			  .interval_ms = INTERVAL_MS,
			  .timeout_ms = TIMEOUT_MS};
	char word[WORD_MAX];

	memset(out, 0, sizeof(*out));
	while (*text != '\0') {
		size_t len = strcspn(text, ",");

		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		if (len >= sizeof(word) || !take_word(word, &w, out)) {
			snprintf(why, size, "\"%s\" is no parameter of a ping", word);
			return -EINVAL;
		}
		text += len + (text[len] == ',');
	}
	return put_words(&w, out, why, size);
}

/* ---- begin ---- */

/* May block: the next hop is asked for. */
static int
find_way(const struct admin_ping_host *host, struct admin_ping *ping)
{
	struct ibcm_way *way = &ping->request.way;
	struct hca_ctl_ah ah = {.sgid_index = 0};
	struct hca_ctl_gid gid;
	int err = hca_driver_source(host->drv, way->peer, ping->scope, &ah.sgid_index);

	memcpy(ah.dgid, way->peer, sizeof(ah.dgid));
	if (err == 0)
		err = hca_driver_resolve(host->drv, true, &ah);
	if (err == 0)
		err = hca_driver_query_gid(host->drv, ah.sgid_index, &gid);
	if (err != 0)
		return err;
	way->gid_index = ah.sgid_index;
	memcpy(way->own, gid.gid, sizeof(way->own));
	memcpy(way->dmac, ah.dmac, sizeof(way->dmac));
	return 0;
}

static int
tell_begun(const struct ibcm_way *way, int session, struct rte_tel_data *d)
{
	const uint8_t *m = way->dmac;
	char text[64];
	int rc = rte_tel_data_start_dict(d);

	rc |= rte_tel_data_add_dict_uint(d, "session", (uint64_t)session);
	rc |= rte_tel_data_add_dict_string(d, "to", hca_gid_text(way->peer, text, sizeof(text)));
	rc |= rte_tel_data_add_dict_string(d, "from", hca_gid_text(way->own, text, sizeof(text)));
	rc |= rte_tel_data_add_dict_uint(d, "index", way->gid_index);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	rc |= rte_tel_data_add_dict_string(d, "dmac", text);
	return rc == 0 ? 0 : -ENOMEM;
}

static int
begin(const struct admin_ping_host *host, struct admin_ping *ping, struct rte_tel_data *d,
      char *why, size_t size)
{
	struct ibping_request *r = &ping->request;
	int session;

	if (r->size > IBPING_BYTES_MIN && r->size > host->size_max) {
		snprintf(why, size, "size %u: the port's RoCE MTU is %u", r->size, host->size_max);
		return -EINVAL;
	}
	if (find_way(host, ping) != 0) {
		snprintf(why, size, "%s", hca_driver_reason());
		return -EHOSTUNREACH;
	}
	r->size_max = ping->mtu ? host->size_max : 0;
	if (r->size_max > IBPING_BYTES_MAX)
		r->size_max = IBPING_BYTES_MAX;
	session = ibagent_ping_begin(host->agent, r);
	if (session > 0)
		return tell_begun(&r->way, session, d);
	snprintf(why, size, "%s",
		 session == -EBUSY ? "others are pinging; again in a moment" : strerror(-session));
	return session;
}

/* ---- how far it is ---- */

static int
put_result(struct rte_tel_data *d, const struct ibping_result *r)
{
	static const char *const peers[] =
		{[IBPING_SILENT] = "silent", [IBPING_SOFTHCA] = "softhca", [IBPING_CM] = "cm"};
	int rc = rte_tel_data_start_dict(d);

	rc |= rte_tel_data_add_dict_uint(d, "done", r->done);
	rc |= rte_tel_data_add_dict_string(d, "peer", peers[r->peer]);
#define PUT(member) rc |= rte_tel_data_add_dict_uint(d, #member, r->member)
	PUT(sent);
	PUT(received);
	PUT(duplicates);
	PUT(ce_there);
	PUT(ce_back);
	PUT(passed);
	PUT(failed);
#undef PUT
#define PUT(member) rc |= rte_tel_data_add_dict_uint(d, "rtt_" #member "_ns", r->member)
	PUT(min);
	PUT(avg);
	PUT(p50);
	PUT(p99);
	PUT(max);
#undef PUT
	return rc;
}

static int
put_round_trips(struct rte_tel_data *d, const uint64_t *rtt, uint32_t num)
{
	struct rte_tel_data *list = rte_tel_data_alloc();
	int rc = list != NULL ? rte_tel_data_start_array(list, RTE_TEL_INT_VAL) : -ENOMEM;

	for (uint32_t i = 0; i < num && rc == 0; i++)
		rc = rte_tel_data_add_array_int(list, rtt[i] == IBPING_LOST   ? RTT_LOST
						      : rtt[i] == IBPING_OPEN ? RTT_OPEN
						      : rtt[i] > INT32_MAX    ? INT32_MAX
									      : (int)rtt[i]);
	if (rc == 0)
		rc = rte_tel_data_add_dict_container(d, "rtt_ns", list, 0);
	if (rc != 0)
		rte_tel_data_free(list);
	return rc;
}

static int
look(const struct admin_ping_host *host, const struct admin_ping *ping, struct rte_tel_data *d)
{
	struct ibping_result r;
	uint64_t rtt[RTTS];
	int err = ibagent_ping_look(host->agent, ping->session, ping->from, rtt, RTTS, &r);

	if (err != 0)
		return err;
	err = put_result(d, &r);
	return err != 0 || put_round_trips(d, rtt, r.num) != 0 ? -ENOMEM : 0;
}

int
admin_ping_run(const struct admin_ping_host *host, struct admin_ping *ping, struct rte_tel_data *d,
	       char *why, size_t size)
{
	int err;

	if (ping->begin)
		return begin(host, ping, d, why, size);
	if (ping->end)
		err = ibagent_ping_end(host->agent, ping->session);
	else
		err = look(host, ping, d);
	if (err == -ENOENT)
		snprintf(why, size, "there is no session %u", ping->session);
	else if (err != 0)
		snprintf(why, size, "%s", strerror(-err));
	return err != 0 || !ping->end ? err : rte_tel_data_start_dict(d);
}
