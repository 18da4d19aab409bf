/* SPDX-License-Identifier: BSD-3-Clause */

#include "cm_rig.h"

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"

static struct rig *rig_now; /* of the functions of struct ibcm_ops */

/* ---- the owner of a CM ---- */

static uint32_t
end_of(const void *arg)
{
	return (uint32_t)(uintptr_t)arg;
}

static void
rig_log(struct rig *r, uint32_t end, const struct ibcm_way *way, const uint8_t *mad)
{
	struct rig_sent *s = &r->log[r->sent % RIG_LOG];

	s->end = end;
	s->at = r->now;
	s->way = *way;
	assert_int_equal(ib_mad_parse(mad, IBCM_MAD_BYTES, &s->mad), IB_MAD_GOOD);
	r->sent++;
}

void
rig_put(struct rig *r, const struct rig_message *m, uint64_t delay)
{
	if (r->nmessages == RIG_MESSAGES)
		return;
	r->message[r->nmessages] = *m;
	r->message[r->nmessages].at = r->now + delay;
	r->message[r->nmessages++].order = r->order++;
}

void
rig_bad(struct rig *r, const struct rig_message *m)
{
	uint32_t copies = 1;

	while (copies < 4 && rig_random(r, 100) < r->copies)
		copies++;
	for (uint32_t i = 0; i < copies; i++)
		if (rig_random(r, 100) >= r->loss)
			rig_put(r, m, 1 + (uint64_t)rig_random(r, 1000) * r->latest / 1000);
}

void
rig_lost(struct rig *r, const struct rig_message *m)
{
	(void)r;
	(void)m;
}

static void
op_send(void *arg, const struct ibcm_way *way, const uint8_t mad[IBCM_MAD_BYTES])
{
	struct rig *r = rig_now;
	struct rig_message m = {.way = *way};

	memcpy(m.mad, mad, sizeof(m.mad));
	rig_log(r, end_of(arg), way, mad);
	if (r->fate != NULL)
		r->fate(r, &m);
	else
		rig_put(r, &m, RIG_DELAY);
}

static void
op_event(void *arg, uint32_t owner, uint32_t channel)
{
	(void)owner;
	if (channel < RIG_CHANNELS)
		rig_now->signals[end_of(arg)][channel]++;
}

static void
op_resolve(void *arg, uint64_t ticket, const struct ibcm_wish *wish)
{
	struct rig *r = rig_now;
	uint32_t end = end_of(arg);

	if (r->nwait[end] == sizeof(r->wait[end]) / sizeof(r->wait[end][0]))
		return;
	r->wait[end][r->nwait[end]++] = (struct rig_wait){ticket, *wish};
}

static void
op_group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	(void)gid_index;
	(void)mgid;
	if (joined)
		rig_now->joined[end_of(arg)]++;
	else
		rig_now->left[end_of(arg)]++;
}

static uint64_t
op_random(void *arg)
{
	struct rig *r = rig_now;

	(void)arg;
	r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (r->random ^ r->random >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

static const struct ibcm_ops ops = {
	.send = op_send,
	.event = op_event,
	.resolve = op_resolve,
	.group = op_group,
	.random = op_random,
};

uint32_t
rig_random(struct rig *r, uint32_t below)
{
	rig_now = r;
	return (uint32_t)((op_random(NULL) >> 32) % below);
}

/* ---- begin and end ---- */

static void
rig_addresses(struct rig *r, uint32_t end)
{
	uint8_t *ip4 = r->gid[end][RIG_IP4], *ip6 = r->gid[end][RIG_IP6];

	ip4[10] = ip4[11] = 0xff;
	ip4[12] = 10;
	ip4[15] = (uint8_t)(1 + end);
	ip6[0] = 0xfd;
	ip6[15] = (uint8_t)(1 + end);
	for (uint32_t i = 0; i < RIG_GIDS; i++) {
		struct hca_ctl_gid gid = {.vlan_id = 0xffff, .valid = 1};

		memcpy(gid.gid, r->gid[end][i], sizeof(gid.gid));
		gid.mac[5] = (uint8_t)(1 + end);
		ibcm_set_gid(r->cm[end], i, &gid, r->now);
	}
}

void
rig_begin(struct rig *r, uint64_t seed, const struct ibcm_limits *limits)
{
	memset(r, 0, sizeof(*r));
	rig_now = r;
	r->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	r->now = RIG_SECOND;
	for (uint32_t e = 0; e < RIG_ENDS; e++) {
		r->cfg[e] = (struct ibcm_config){
			.ops = &ops,
			.arg = (void *)(uintptr_t)e,
			.node_guid = 0x1000 + e,
			.pkey = 0xffff,
			.mtu = 3,
			.ack_delay = 15,
			.max_rd_atomic = 16,
			.user_share = 50,
		};
		if (limits != NULL)
			r->cfg[e].limits = *limits;
		r->cm[e] = ibcm_create(&r->cfg[e]);
		assert_non_null(r->cm[e]);
		rig_addresses(r, e);
	}
}

void
rig_end(struct rig *r)
{
	rig_now = r;
	for (uint32_t e = 0; e < RIG_ENDS; e++) {
		rig_sums(r, e);
		ibcm_destroy(r->cm[e], r->now);
	}
}

/* ---- time ---- */

static bool
rig_is_end(const struct rig *r, const uint8_t gid[16], uint32_t *end, uint32_t *index)
{
	for (*end = 0; *end < RIG_ENDS; (*end)++)
		for (*index = 0; *index < RIG_GIDS; (*index)++)
			if (memcmp(r->gid[*end][*index], gid, 16) == 0)
				return true;
	return false;
}

static void
rig_deliver(struct rig *r, const struct rig_message *m)
{
	struct ibcm_way from = {.hop_limit = 64};
	uint32_t end, index, sender;

	if (!rig_is_end(r, m->way.peer, &end, &index))
		return;
	memcpy(from.own, m->way.peer, sizeof(from.own));
	memcpy(from.peer, m->way.own, sizeof(from.peer));
	from.gid_index = index;
	if (rig_is_end(r, m->way.own, &sender, &index))
		memcpy(from.dmac,
		       (const uint8_t[6]){2, [4] = r->moved[sender], (uint8_t)(1 + sender)}, 6);
	ibcm_input(r->cm[end], &from, m->mad, sizeof(m->mad), r->now);
}

void
rig_inject(struct rig *r, uint32_t end, const uint8_t peer[16], const struct ib_mad *mad)
{
	struct ibcm_way from = {.hop_limit = 64, .gid_index = RIG_IP4};
	uint8_t bytes[IBCM_MAD_BYTES];

	rig_now = r;
	memcpy(from.own, r->gid[end][RIG_IP4], sizeof(from.own));
	memcpy(from.peer, peer, sizeof(from.peer));
	ib_mad_build(mad, bytes);
	ibcm_input(r->cm[end], &from, bytes, sizeof(bytes), r->now);
}

/* Addresses of 10.0.0.0/24 and fd00::/64 can be reached. */
static void
rig_answer_wish(struct rig *r, uint32_t end, const struct rig_wait *w)
{
	struct ibcm_way way = {.hop_limit = 64};
	uint32_t family = ib_ip_family(w->wish.dst) == HCA_CTL_CM_IP4 ? RIG_IP4 : RIG_IP6;

	memcpy(way.own, w->wish.fixed ? w->wish.own : r->gid[end][family], sizeof(way.own));
	memcpy(way.peer, w->wish.dst, sizeof(way.peer));
	way.gid_index = family;
	ibcm_resolved(r->cm[end], w->ticket,
		      memcmp(way.peer, r->gid[0][family], 15) == 0 ? 0 : -EHOSTUNREACH, &way,
		      r->now);
}

static bool
rig_resolutions(struct rig *r)
{
	for (uint32_t e = 0; e < RIG_ENDS && !r->mute; e++) {
		if (r->nwait[e] == 0)
			continue;
		rig_answer_wish(r, e, &r->wait[e][--r->nwait[e]]);
		return true;
	}
	return false;
}

bool
rig_step(struct rig *r, uint64_t limit)
{
	uint64_t due[RIG_ENDS], first = limit;
	uint32_t best = r->nmessages;

	rig_now = r;
	if (rig_resolutions(r))
		return true;
	for (uint32_t e = 0; e < RIG_ENDS; e++) {
		due[e] = ibcm_deadline(r->cm[e]);
		first = due[e] < first ? due[e] : first;
	}
	for (uint32_t i = 0; i < r->nmessages; i++)
		if (r->message[i].at < first ||
		    (r->message[i].at == first &&
		     (best == r->nmessages || r->message[i].order < r->message[best].order))) {
			best = i;
			first = r->message[i].at;
		}
	if (first >= limit)
		return false;
	r->now = first > r->now ? first : r->now;
	if (best < r->nmessages) {
		struct rig_message m = r->message[best];

		r->message[best] = r->message[--r->nmessages];
		rig_deliver(r, &m);
		return true;
	}
	ibcm_tick(r->cm[due[0] <= due[1] ? 0 : 1], r->now);
	return true;
}

void
rig_run(struct rig *r, uint64_t for_ns)
{
	uint64_t until = r->now + for_ns;

	while (rig_step(r, until))
		;
	r->now = until;
}

/* ---- sent messages ---- */

static uint32_t
rig_first_logged(const struct rig *r)
{
	return r->sent > RIG_LOG ? r->sent - RIG_LOG : 0;
}

uint32_t
rig_count(const struct rig *r, uint32_t end, enum ib_mad_type type)
{
	uint32_t n = 0;

	for (uint32_t i = rig_first_logged(r); i < r->sent; i++)
		n += r->log[i % RIG_LOG].end == end && r->log[i % RIG_LOG].mad.type == type;
	return n;
}

const struct ib_mad *
rig_last(const struct rig *r, uint32_t end, enum ib_mad_type type)
{
	for (uint32_t i = r->sent; i-- > rig_first_logged(r);)
		if (r->log[i % RIG_LOG].end == end && r->log[i % RIG_LOG].mad.type == type)
			return &r->log[i % RIG_LOG].mad;
	fail_msg("no message of type %d was sent", type);
	return NULL;
}

/* ---- clients ---- */

int
rig_call(struct rig *r, uint32_t end, uint32_t owner, enum hca_ctl_op op, const void *request,
	 void *answer)
{
	struct ibcm_client client = {.owner = owner, .user = owner};
	int err;

	rig_now = r;
	r->why = NULL;
	err = ibcm_call(r->cm[end], &client, op, request, answer, r->now, &r->why);
	assert_non_null(r->why);
	assert_true(err == 0 || r->why[0] != '\0');
	return err;
}

uint32_t
rig_create(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t space)
{
	struct hca_ctl_cm_create request = {
		.channel = channel,
		.space = space,
		.service = space == HCA_CTL_CM_SPACE_UDP ? HCA_ST_UD : HCA_ST_RC,
	};
	uint32_t id = 0;

	return rig_call(r, end, owner, HCA_CTL_CM_CREATE, &request, &id) == 0 ? id : 0;
}

int
rig_destroy(struct rig *r, uint32_t end, uint32_t owner, uint32_t id)
{
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_DESTROY, &id, &none);
}

int
rig_bind(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t family,
	 const uint8_t *gid, uint16_t port, uint32_t flags)
{
	struct hca_ctl_cm_bind request = {
		.addr = ib_ip_any(family == RIG_IP4 ? HCA_CTL_CM_IP4 : HCA_CTL_CM_IP6),
		.id = id,
		.flags = flags,
	};
	struct hca_ctl_cm_bound bound;

	if (gid != NULL)
		memcpy(request.addr.gid, gid, sizeof(request.addr.gid));
	request.addr.port = port;
	return rig_call(r, end, owner, HCA_CTL_CM_BIND, &request, &bound);
}

int
rig_listen(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t backlog)
{
	struct hca_ctl_cm_listen request = {.id = id, .backlog = backlog};
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_LISTEN, &request, &none);
}

uint32_t
rig_listener(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t space,
	     uint16_t port)
{
	uint32_t id = rig_create(r, end, owner, channel, space);

	assert_int_not_equal(id, 0);
	assert_int_equal(rig_bind(r, end, owner, id, RIG_IP6, NULL, port, 0), 0);
	assert_int_equal(rig_listen(r, end, owner, id, 0), 0);
	return id;
}

int
rig_resolve(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, const uint8_t dst[16],
	    uint16_t port)
{
	struct hca_ctl_cm_resolve request = {.id = id, .timeout_ms = 2000};
	struct hca_ctl_none none;

	memcpy(request.dst.gid, dst, sizeof(request.dst.gid));
	request.dst.family = ib_ip_family(dst);
	request.dst.port = port;
	return rig_call(r, end, owner, HCA_CTL_CM_RESOLVE, &request, &none);
}

static int
rig_route(struct rig *r, uint32_t end, uint32_t owner, uint32_t id)
{
	struct hca_ctl_cm_route request = {.id = id, .timeout_ms = 2000};
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_ROUTE, &request, &none);
}

uint32_t
rig_routed(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t space,
	   const uint8_t dst[16], uint16_t port)
{
	uint32_t id = rig_create(r, end, owner, channel, space);

	assert_int_not_equal(id, 0);
	assert_int_equal(rig_resolve(r, end, owner, id, dst, port), 0);
	while (rig_resolutions(r))
		;
	(void)rig_expect(r, end, owner, channel, HCA_CTL_CM_EV_ADDR_RESOLVED);
	assert_int_equal(rig_route(r, end, owner, id), 0);
	(void)rig_expect(r, end, owner, channel, HCA_CTL_CM_EV_ROUTE_RESOLVED);
	return id;
}

struct hca_ctl_cm_param
rig_param(uint32_t id, uint32_t qpn, const char *text)
{
	struct hca_ctl_cm_param param = {
		.id = id,
		.qpn = qpn,
		.responder_resources = 4,
		.initiator_depth = 5,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.valid = 1,
	};

	if (text != NULL) {
		param.private_len = (uint8_t)(strlen(text) + 1);
		memcpy(param.private, text, param.private_len);
	}
	return param;
}

int
rig_connect(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t qpn,
	    const char *text)
{
	struct hca_ctl_cm_param param = rig_param(id, qpn, text);
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_CONNECT, &param, &none);
}

int
rig_accept(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t qpn, const char *text)
{
	struct hca_ctl_cm_param param = rig_param(id, qpn, text);
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_ACCEPT, &param, &none);
}

int
rig_establish(struct rig *r, uint32_t end, uint32_t owner, uint32_t id)
{
	struct hca_ctl_cm_param param = {.id = id};
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_ACCEPT, &param, &none);
}

int
rig_reject(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, const char *text)
{
	struct hca_ctl_cm_reject request = {.id = id, .reason = IB_MAD_REASON_CONSUMER};
	struct hca_ctl_none none;

	request.private_len = (uint8_t)(strlen(text) + 1);
	memcpy(request.private, text, request.private_len);
	return rig_call(r, end, owner, HCA_CTL_CM_REJECT, &request, &none);
}

int
rig_disconnect(struct rig *r, uint32_t end, uint32_t owner, uint32_t id)
{
	struct hca_ctl_none none;

	return rig_call(r, end, owner, HCA_CTL_CM_DISCONNECT, &id, &none);
}

uint32_t
rig_state(struct rig *r, uint32_t end, uint32_t owner, uint32_t id)
{
	struct hca_ctl_cm_info info;

	assert_int_equal(rig_call(r, end, owner, HCA_CTL_CM_QUERY, &id, &info), 0);
	return info.state;
}

bool
rig_event(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel,
	  struct hca_ctl_cm_event *event)
{
	int err = rig_call(r, end, owner, HCA_CTL_CM_EVENT, &channel, event);

	assert_true(err == 0 || err == -EAGAIN);
	return err == 0;
}

struct hca_ctl_cm_event
rig_expect(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t type)
{
	struct hca_ctl_cm_event event;

	if (!rig_event(r, end, owner, channel, &event))
		fail_msg("no event waits, but %u is expected", type);
	if (event.type != type)
		fail_msg("event %u (%d), but %u is expected", event.type, event.status, type);
	return event;
}

/* ---- counters ---- */

uint64_t
rig_counter(const struct rig *r, uint32_t end, const char *name)
{
	const char *at;
	uint64_t value;

	for (uint32_t i = 0; (at = ibcm_counter(r->cm[end], i, &value)) != NULL; i++)
		if (strcmp(at, name) == 0)
			return value;
	fail_msg("no counter %s", name);
	return 0;
}

void
rig_sums(const struct rig *r, uint32_t end)
{
	uint64_t value, received = 0, parts = 0, sent_rej = 0, rejected = 0;
	const char *name;

	for (uint32_t i = 0; (name = ibcm_counter(r->cm[end], i, &value)) != NULL; i++) {
		if (strcmp(name, "cm_received") == 0)
			received = value;
		else if (strncmp(name, "cm_received_", 12) == 0 ||
			 strncmp(name, "cm_drop_", 8) == 0)
			parts += value;
		else if (strncmp(name, "cm_rejected_", 12) == 0)
			rejected += value;
		if (strcmp(name, "cm_sent_rej") == 0)
			sent_rej += value;
		if (strcmp(name, "cm_repeated_rej") == 0)
			sent_rej -= value;
	}
	assert_int_equal(received, parts);
	assert_int_equal(sent_rej, rejected);
}
