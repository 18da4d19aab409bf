/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages as from Linux: the connection manager is put in the place of one of two hosts of a
 * capture (tests/wire/captures/cm). It gets the messages of the other one, and its program makes
 * the calls of that host's. Each message of the host must then come from the connection manager,
 * with the same fields but for those that are chosen at random.
 *
 * Arguments: ADDRESS=CAPTURE..., the place and the file.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <cmocka.h>

#include "abi_ctx.h"
#include "ib_ip.h"
#include "ib_mad.h"
#include "ibcm.h"
#include "pcap_read.h"

#define CLIENT 1u
#define CHANNEL 1u
#define LONGEST 64u
#define CONNECTIONS 8u
#define SENT 64u
#define NS_PER_SECOND UINT64_C(1000000000)
#define ETHERNET 14u
#define UDP_TO_MAD 28u /* with BTH and DETH */
#define MTU_4096 5u
#define ACK_DELAY 15u
#define RD_ATOMIC 128u

struct message {
	bool ours; /* the host's whose place is taken */
	uint8_t own[16], peer[16];
	struct ib_mad mad;
};

/* The numbers of the capture and those of the connection manager in its place. */
struct connection {
	uint32_t client_comm; /* of the capture; SIDR: number of the request */
	uint32_t theirs, ours;
	uint32_t id;
	uint64_t request_tid, dreq_tid; /* sent in the place of the host's */
	bool told;			/* the program has the peer's event */
};

struct stage {
	struct ibcm *cm;
	uint64_t now, random;
	struct message message[LONGEST];
	uint32_t messages;
	struct ib_mad sent[SENT];
	uint32_t nsent;
	struct connection connection[CONNECTIONS];
	uint32_t connections;
	uint64_t ticket; /* of a resolution that waits */
	struct ibcm_way way;
	uint32_t listener;
	const char *name;
};

static struct stage *stage; /* of the functions of struct ibcm_ops */
static int captures;
static char **capture_names;

/* ---- the owner of a connection manager ---- */

static void
op_send(void *arg, const struct ibcm_way *way, const uint8_t mad[IBCM_MAD_BYTES])
{
	(void)arg;
	assert_memory_equal(way->own, stage->way.own, 16);
	assert_memory_equal(way->peer, stage->way.peer, 16);
	assert_in_range(stage->nsent, 0, SENT - 1);
	assert_int_equal(ib_mad_parse(mad, IBCM_MAD_BYTES, &stage->sent[stage->nsent++]),
			 IB_MAD_GOOD);
}

static void
op_event(void *arg, uint32_t owner, uint32_t channel)
{
	(void)arg;
	assert_int_equal(owner, CLIENT);
	assert_int_equal(channel, CHANNEL);
}

static void
op_resolve(void *arg, uint64_t ticket, const struct ibcm_wish *wish)
{
	(void)arg;
	(void)wish;
	stage->ticket = ticket;
}

static void
op_group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	(void)arg;
	(void)gid_index;
	(void)mgid;
	(void)joined;
}

static uint64_t
op_random(void *arg)
{
	(void)arg;
	stage->random = stage->random * 6364136223846793005u + 1442695040888963407u;
	return stage->random >> 7;
}

/* ---- captures ---- */

static void
gid_of(uint8_t gid[16], const uint8_t *address, bool ip4)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid, ip4 ? mapped : address, ip4 ? 12 : 16);
	if (ip4)
		memcpy(gid + 12, address, 4);
}

static void
read_frame(const uint8_t *frame, const uint8_t place[16], struct message *m)
{
	bool ip4 = frame[12] == 0x08;
	const uint8_t *ip = frame + ETHERNET, *source = ip + (ip4 ? 12 : 8);
	const uint8_t *mad = ip + (ip4 ? 20 : 40) + UDP_TO_MAD;
	uint8_t src[16], dst[16];

	gid_of(src, source, ip4);
	gid_of(dst, source + (ip4 ? 4 : 16), ip4);
	m->ours = memcmp(src, place, 16) == 0;
	memcpy(m->own, m->ours ? src : dst, 16);
	memcpy(m->peer, m->ours ? dst : src, 16);
	assert_memory_equal(m->own, place, 16);
	assert_int_equal(ib_mad_parse(mad, IBCM_MAD_BYTES, &m->mad), IB_MAD_GOOD);
}

static void
read_capture(struct stage *s, const char *path, const uint8_t place[16])
{
	struct pcap_frame frame;
	struct pcap_file file;

	assert_int_equal(pcap_open_file(&file, path), 0);
	while (pcap_next_frame(&file, &frame) > 0) {
		assert_in_range(s->messages, 0, LONGEST - 1);
		read_frame(frame.data, place, &s->message[s->messages++]);
	}
	pcap_close_file(&file);
	assert_true(s->messages > 0);
}

/* ---- the program in the host's place ---- */

static void
call(struct stage *s, enum hca_ctl_op op, const void *request, void *answer)
{
	const struct ibcm_client client = {CLIENT, 0};
	uint8_t none[512];
	const char *why = "";
	int err = ibcm_call(s->cm, &client, op, request, answer != NULL ? answer : none, s->now,
			    &why);

	if (err != 0)
		fail_msg("%s: operation %d: %d, %s", s->name, (int)op, err, why);
}

static uint32_t
make_id(struct stage *s, uint32_t space)
{
	struct hca_ctl_cm_create create = {
		.channel = CHANNEL,
		.space = space,
		.service = space == HCA_CTL_CM_SPACE_UDP ? HCA_ST_UD : HCA_ST_RC,
	};
	uint32_t id;

	call(s, HCA_CTL_CM_CREATE, &create, &id);
	return id;
}

static void
bind_id(struct stage *s, uint32_t id, const uint8_t gid[16], uint16_t family, uint16_t port)
{
	struct hca_ctl_cm_bind bind = {.id = id, .addr = {.family = family, .port = port}};

	memcpy(bind.addr.gid, gid, 16);
	call(s, HCA_CTL_CM_BIND, &bind, NULL);
}

/* The id's next event, which must be of this type. */
static struct hca_ctl_cm_event
await_event(struct stage *s, uint32_t type)
{
	const uint32_t channel = CHANNEL;
	struct hca_ctl_cm_event event;

	call(s, HCA_CTL_CM_EVENT, &channel, &event);
	if (event.type != type)
		fail_msg("%s: event %u instead of %u", s->name, event.type, type);
	return event;
}

static const uint8_t *
request_private(const struct ib_mad *mad)
{
	return mad->type == IB_MAD_REQ ? mad->req.private : mad->sidr_req.private;
}

static uint64_t
request_service(const struct ib_mad *mad)
{
	return mad->type == IB_MAD_REQ ? mad->req.service_id : mad->sidr_req.service_id;
}

static uint32_t
routed_id(struct stage *s, const struct message *m)
{
	struct hca_ctl_cm_resolve resolve = {0};
	struct hca_ctl_cm_route route = {0};
	struct ib_ip ip;
	uint32_t id, space;
	uint16_t port;

	assert_true(ib_ip_parse(request_private(&m->mad), &ip));
	assert_true(ib_ip_service(request_service(&m->mad), &space, &port));
	id = make_id(s, space);
	bind_id(s, id, ip.src.gid, ip.src.family, ip.src.port);
	resolve = (struct hca_ctl_cm_resolve){.id = id, .dst = ip.dst, .timeout_ms = 1000};
	resolve.dst.port = port;
	call(s, HCA_CTL_CM_RESOLVE, &resolve, NULL);
	ibcm_resolved(s->cm, s->ticket, 0, &s->way, s->now);
	await_event(s, HCA_CTL_CM_EV_ADDR_RESOLVED);
	route = (struct hca_ctl_cm_route){.id = id, .timeout_ms = 1000};
	call(s, HCA_CTL_CM_ROUTE, &route, NULL);
	await_event(s, HCA_CTL_CM_EV_ROUTE_RESOLVED);
	return id;
}

static void
do_connect(struct stage *s, struct connection *c, const struct message *m)
{
	struct hca_ctl_cm_param param = {.valid = 1};
	const struct ib_mad_req *req = &m->mad.req;
	bool sidr = m->mad.type == IB_MAD_SIDR_REQ;

	c->id = routed_id(s, m);
	param.id = c->id;
	if (!sidr) {
		param.qpn = req->qpn;
		param.responder_resources = req->responder_resources;
		param.initiator_depth = req->initiator_depth;
		param.flow_control = req->flow_control;
		param.retry_count = req->retry_count;
		param.rnr_retry_count = req->rnr_retry_count;
	}
	param.private_len = (sidr ? IB_MAD_SIDR_REQ_PRIVATE : IB_MAD_REQ_PRIVATE) - IB_IP_BYTES;
	memcpy(param.private, request_private(&m->mad) + IB_IP_BYTES, param.private_len);
	call(s, HCA_CTL_CM_CONNECT, &param, NULL);
}

static void
do_accept(struct stage *s, struct connection *c, const struct ib_mad_rep *rep)
{
	struct hca_ctl_cm_param param = {
		.id = c->id,
		.valid = 1,
		.qpn = rep->qpn,
		.responder_resources = rep->responder_resources,
		.initiator_depth = rep->initiator_depth,
		.flow_control = rep->flow_control,
		.rnr_retry_count = rep->rnr_retry_count,
		.private_len = IB_MAD_REP_PRIVATE,
	};

	memcpy(param.private, rep->private, IB_MAD_REP_PRIVATE);
	call(s, HCA_CTL_CM_ACCEPT, &param, NULL);
}

static void
do_answer_sidr(struct stage *s, struct connection *c, const struct ib_mad_sidr_rep *rep)
{
	struct hca_ctl_cm_param param = {
		.id = c->id,
		.valid = 1,
		.qpn = rep->qpn,
		.sidr_status = rep->status,
		.private_len = IB_MAD_SIDR_REP_PRIVATE,
	};

	memcpy(param.private, rep->private, IB_MAD_SIDR_REP_PRIVATE);
	call(s, HCA_CTL_CM_ACCEPT, &param, NULL);
}

static void
do_reject(struct stage *s, struct connection *c, const struct ib_mad_rej *rej)
{
	struct hca_ctl_cm_reject reject = {.id = c->id, .reason = (uint8_t)rej->reason};

	if (rej->reason == IB_MAD_REASON_TIMEOUT) { /* the process ended before the answer */
		call(s, HCA_CTL_CM_DESTROY, &c->id, NULL);
		return;
	}
	reject.private_len = IB_MAD_REJ_PRIVATE;
	memcpy(reject.private, rej->private, IB_MAD_REJ_PRIVATE);
	call(s, HCA_CTL_CM_REJECT, &reject, NULL);
}

/* The call with which the host sends this first; none where it is an answer. */
static void
program_does(struct stage *s, struct connection *c, const struct message *m)
{
	struct hca_ctl_cm_param ready = {.id = c->id};

	switch (m->mad.type) {
	case IB_MAD_REQ:
	case IB_MAD_SIDR_REQ:
		if (c->id == 0)
			do_connect(s, c, m);
		break;
	case IB_MAD_REP:
		if (!c->told)
			do_accept(s, c, &m->mad.rep);
		c->told = true;
		break;
	case IB_MAD_SIDR_REP:
		if (c->id != 0)
			do_answer_sidr(s, c, &m->mad.sidr_rep);
		break;
	case IB_MAD_RTU:
		call(s, HCA_CTL_CM_ACCEPT, &ready, NULL);
		break;
	case IB_MAD_REJ:
		if (c->id != 0)
			do_reject(s, c, &m->mad.rej);
		break;
	case IB_MAD_DREQ:
		if (c->dreq_tid == 0)
			call(s, HCA_CTL_CM_DISCONNECT, &c->id, NULL);
		break;
	default:
		break;
	}
}

/* ---- the numbers of the capture and ours ---- */

/* The communication IDs of a message; REQ and SIDR_REQ have one, SIDR_REP the peer's. */
static uint32_t *
comm_of(struct ib_mad *mad, bool remote)
{
	switch (mad->type) {
#define BOTH(NAME, name) \
	case IB_MAD_##NAME: \
		return remote ? &mad->name.remote_comm : &mad->name.local_comm;
		BOTH(MRA, mra)
		BOTH(REJ, rej)
		BOTH(REP, rep)
		BOTH(RTU, rtu)
		BOTH(DREQ, dreq)
		BOTH(DREP, drep)
#undef BOTH
	case IB_MAD_REQ:
		return remote ? NULL : &mad->req.local_comm;
	case IB_MAD_SIDR_REQ:
		return remote ? NULL : &mad->sidr_req.request;
	case IB_MAD_SIDR_REP:
		return remote ? &mad->sidr_rep.request : NULL;
	default:
		fail_msg("unexpected message %d", (int)mad->type);
		return NULL;
	}
}

static uint32_t
comm_value(struct ib_mad *mad, bool remote)
{
	const uint32_t *comm = comm_of(mad, remote);

	return comm == NULL ? 0 : *comm;
}

/* The connection of a message of the capture, by either end's number. */
static struct connection *
find_connection(struct stage *s, struct message *m)
{
	uint32_t local = comm_value(&m->mad, false), remote = comm_value(&m->mad, true);
	uint32_t own = m->ours ? local : remote, peer = m->ours ? remote : local;
	struct connection *c = s->connection;

	for (; c < s->connection + s->connections; c++)
		if ((own != 0 && (own == c->client_comm || own == c->theirs)) ||
		    (peer != 0 && peer == c->client_comm))
			return c;
	assert_in_range(s->connections, 0, CONNECTIONS - 1);
	s->connections++;
	c->client_comm = m->ours ? own : peer;
	return c;
}

/* Messages of the host's peer to ours. */
static void
translate_for_ours(struct connection *c, struct message *m)
{
	uint32_t *remote = comm_of(&m->mad, true);

	if (remote != NULL && *remote != 0 && m->mad.type != IB_MAD_SIDR_REP)
		*remote = c->ours;
	if (m->mad.type == IB_MAD_SIDR_REP)
		m->mad.sidr_rep.request = c->ours;
	if (m->mad.type == IB_MAD_DREP)
		m->mad.transaction = c->dreq_tid;
	else if (c->request_tid != 0 && m->mad.type != IB_MAD_DREQ)
		m->mad.transaction = c->request_tid;
}

/* ---- comparing ---- */

static const char *const random_fields[] = {"local_comm", "remote_comm", "request", "psn",
					    "primary_flow_label"};

static void
compare_number(const struct stage *s, const char *message, const char *member, uint64_t ours,
	       uint64_t theirs)
{
	for (size_t i = 0; i < sizeof(random_fields) / sizeof(random_fields[0]); i++)
		if (strcmp(member, random_fields[i]) == 0)
			return;
	if (ours != theirs)
		fail_msg("%s: %s: %s is %#llx, Linux sends %#llx", s->name, message, member,
			 (unsigned long long)ours, (unsigned long long)theirs);
}

static void
compare_bytes(const struct stage *s, const char *message, const char *member, const void *ours,
	      const void *theirs, size_t bytes)
{
	if (memcmp(ours, theirs, bytes) != 0)
		fail_msg("%s: %s: %s differs", s->name, message, member);
}

#define COMPARE_NUMBER(bits, member, byte, bit, width) \
	compare_number(s, name, #member, a->member, b->member);
#define COMPARE_BYTES(member, byte, bytes) \
	compare_bytes(s, name, #member, a->member, b->member, bytes);
#define X(NAME, name_, attribute) \
	static void compare_##name_(const struct stage *s, const struct ib_mad_##name_ *a, \
				    const struct ib_mad_##name_ *b) \
	{ \
		static const char name[] = #NAME; \
\
		IB_MAD_##NAME##_FIELDS(COMPARE_NUMBER, COMPARE_BYTES) \
	}
IB_MAD_LIST(X)
#undef X

static void
compare_message(const struct stage *s, const struct ib_mad *ours, const struct ib_mad *theirs)
{
	switch (ours->type) {
#define X(NAME, name, attribute) \
	case IB_MAD_##NAME: \
		compare_##name(s, &ours->name, &theirs->name); \
		break;
		IB_MAD_LIST(X)
#undef X
	default:
		fail_msg("%s: no message", s->name);
	}
}

/* The host's numbers in messages stand for ours, each time for the same. */
static void
compare_numbers(struct stage *s, struct connection *c, struct ib_mad *ours, struct message *m)
{
	uint32_t local = comm_value(ours, false), remote = comm_value(ours, true);
	bool answer = comm_value(&m->mad, false) != 0 && m->mad.type != IB_MAD_REQ &&
		      m->mad.type != IB_MAD_SIDR_REQ;

	if (c->ours == 0)
		c->ours = local;
	if (answer && c->theirs == 0)
		c->theirs = comm_value(&m->mad, false);
	/* a REJ has the number only where the peer has seen it */
	if (local != c->ours && !(m->mad.type == IB_MAD_REJ && local == 0) &&
	    m->mad.type != IB_MAD_SIDR_REP)
		fail_msg("%s: communication ID %#x, before it was %#x", s->name, local, c->ours);
	if (remote != comm_value(&m->mad, true))
		fail_msg("%s: remote communication ID %#x instead of %#x", s->name, remote,
			 comm_value(&m->mad, true));
}

static void
compare_transaction(struct stage *s, struct connection *c, const struct ib_mad *ours,
		    const struct message *m)
{
	uint64_t *own = ours->type == IB_MAD_DREQ ? &c->dreq_tid
			: ours->type == IB_MAD_REQ || ours->type == IB_MAD_SIDR_REQ
				? &c->request_tid
				: NULL;
	uint64_t wanted = own != NULL		      ? *own
			  : ours->type == IB_MAD_DREP ? m->mad.transaction
			  : c->request_tid != 0	      ? c->request_tid
						      : m->mad.transaction;

	if (own != NULL && *own == 0)
		*own = ours->transaction;
	else if (ours->transaction != wanted)
		fail_msg("%s: transaction ID %#llx instead of %#llx", s->name,
			 (unsigned long long)ours->transaction, (unsigned long long)wanted);
}

/* ---- the play ---- */

/* Take the oldest message that was sent; false: none. */
static bool
take_sent(struct stage *s, enum ib_mad_type type, struct ib_mad *mad)
{
	for (uint32_t i = 0; i < s->nsent; i++) {
		if (s->sent[i].type != type)
			continue;
		*mad = s->sent[i];
		memmove(s->sent + i, s->sent + i + 1, (--s->nsent - i) * sizeof(s->sent[0]));
		return true;
	}
	return false;
}

/* The next repetition, within a minute. */
static void
let_time_pass(struct stage *s)
{
	uint64_t due = ibcm_deadline(s->cm);

	if (due < s->now + 60 * NS_PER_SECOND) {
		s->now = due;
		ibcm_tick(s->cm, s->now);
	}
}

static void
must_send(struct stage *s, struct message *m)
{
	struct connection *c = find_connection(s, m);
	struct ib_mad ours;

	if (!take_sent(s, m->mad.type, &ours)) {
		program_does(s, c, m);
		if (s->nsent == 0)
			let_time_pass(s);
		if (!take_sent(s, m->mad.type, &ours))
			fail_msg("%s: message %d, of type %d, is not sent", s->name,
				 (int)(m - s->message) + 1, (int)m->mad.type);
	}
	compare_numbers(s, c, &ours, m);
	compare_transaction(s, c, &ours, m);
	compare_message(s, &ours, &m->mad);
}

static void
must_take(struct stage *s, struct message *m)
{
	struct connection *c = find_connection(s, m);
	uint8_t bytes[IBCM_MAD_BYTES];
	struct hca_ctl_cm_event event;
	enum ib_mad_type type = m->mad.type;

	translate_for_ours(c, m);
	ib_mad_build(&m->mad, bytes);
	ibcm_input(s->cm, &s->way, bytes, sizeof(bytes), s->now);
	if ((type == IB_MAD_REQ || type == IB_MAD_SIDR_REQ) && c->id == 0 && s->listener != 0) {
		event = await_event(s, HCA_CTL_CM_EV_CONNECT_REQUEST);
		c->id = event.id;
		compare_bytes(s, "event", "private", event.param.private,
			      request_private(&m->mad) + IB_IP_BYTES, event.param.private_len);
	} else if (type == IB_MAD_REP && !c->told) {
		event = await_event(s, HCA_CTL_CM_EV_CONNECT_RESPONSE);
		c->told = true;
		compare_bytes(s, "event", "private", event.param.private, m->mad.rep.private,
			      IB_MAD_REP_PRIVATE);
	} else if (type == IB_MAD_RTU) {
		await_event(s, HCA_CTL_CM_EV_ESTABLISHED);
	} else if (type == IB_MAD_REJ) {
		event = await_event(s, HCA_CTL_CM_EV_REJECTED);
		assert_int_equal(event.status, m->mad.rej.reason);
	}
}

/* A listener where the host has one: where it answers otherwise than "nothing listens". */
static void
begin_listening(struct stage *s)
{
	struct message *first = &s->message[0];
	struct hca_ctl_cm_listen listen = {0};
	struct ib_ip ip;
	uint32_t space;
	uint16_t port;

	for (uint32_t i = 0; i < s->messages; i++)
		if ((s->message[i].mad.type == IB_MAD_REJ &&
		     s->message[i].mad.rej.reason == IB_MAD_REASON_SERVICE_ID) ||
		    (s->message[i].mad.type == IB_MAD_SIDR_REP &&
		     s->message[i].mad.sidr_rep.status == IB_MAD_SIDR_SERVICE_ID))
			return;
	if (first->ours)
		return;
	assert_true(ib_ip_parse(request_private(&first->mad), &ip));
	assert_true(ib_ip_service(request_service(&first->mad), &space, &port));
	s->listener = make_id(s, space);
	bind_id(s, s->listener, first->own, ip.dst.family, port);
	listen = (struct hca_ctl_cm_listen){.id = s->listener, .backlog = CONNECTIONS};
	call(s, HCA_CTL_CM_LISTEN, &listen, NULL);
}

static uint64_t
node_guid(const struct stage *s)
{
	for (uint32_t i = 0; i < s->messages; i++)
		if (s->message[i].ours && s->message[i].mad.type == IB_MAD_REQ)
			return s->message[i].mad.req.ca_guid;
		else if (s->message[i].ours && s->message[i].mad.type == IB_MAD_REP)
			return s->message[i].mad.rep.ca_guid;
	return 1;
}

static void
begin(struct stage *s)
{
	static const struct ibcm_ops ops = {op_send, op_event, op_resolve, op_group, op_random};
	const struct ibcm_config config = {
		.ops = &ops,
		.node_guid = node_guid(s),
		.pkey = 0xffff,
		.mtu = MTU_4096,
		.ack_delay = ACK_DELAY,
		.max_rd_atomic = RD_ATOMIC,
	};
	struct hca_ctl_gid gid = {.valid = 1};

	s->cm = ibcm_create(&config);
	assert_non_null(s->cm);
	memcpy(gid.gid, s->message[0].own, 16);
	ibcm_set_gid(s->cm, 0, &gid, s->now);
	s->way = (struct ibcm_way){.hop_limit = 64};
	memcpy(s->way.own, s->message[0].own, 16);
	memcpy(s->way.peer, s->message[0].peer, 16);
	begin_listening(s);
}

static void
play(const char *place, const char *path)
{
	struct stage *s = calloc(1, sizeof(*s));
	uint8_t gid[16], ip4[4];

	assert_non_null(s);
	stage = s;
	s->now = NS_PER_SECOND;
	s->name = path;
	if (inet_pton(AF_INET, place, ip4) == 1)
		gid_of(gid, ip4, true);
	else
		assert_int_equal(inet_pton(AF_INET6, place, gid), 1);
	read_capture(s, path, gid);
	begin(s);
	for (uint32_t i = 0; i < s->messages; i++)
		(s->message[i].ours ? must_send : must_take)(s, &s->message[i]);
	assert_int_equal(s->nsent, 0); /* nothing that the host did not send */
	ibcm_destroy(s->cm, s->now);
	free(s);
}

static void
test_every_capture(void **state)
{
	(void)state;
	for (int i = 0; i < captures; i++) {
		char *place = strdup(capture_names[i]), *path;

		assert_non_null(place);
		path = strchr(place, '=');
		assert_non_null(path);
		*path++ = '\0';
		print_message("%s\n", capture_names[i]);
		play(place, path);
		free(place);
	}
	assert_true(captures > 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_capture)};

	captures = argc - 1;
	capture_names = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
