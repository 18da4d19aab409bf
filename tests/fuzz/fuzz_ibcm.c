/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection management: clients at one HCA, which connect to each other through it, and a peer
 * that the input plays. The input is a list of steps; the first byte selects:
 *
 *	0  WHO8 SPACE8          an id is made
 *	1  ID8 HOW8 PORT8       it is bound and listens
 *	2  ID8 TO8 PORT8 ERR8   it is resolved and routed
 *	3  ID8 LEN8             it connects
 *	4  ID8 HOW8 LEN8        it accepts, establishes, rejects, disconnects
 *	5  ID8 HOW8 ARG8        options, move, notify, join, leave, attributes
 *	6  WHO8                 an event is fetched, with its id
 *	7  MS16                 time passes
 *	8  N8 AT8 XOR8          message n that was sent arrives, with a byte changed
 *	9  TYPE8 ID8 SEED8 n8   a message of the peer with the numbers of an id, and n bytes changed
 *	10 LEN8 bytes           a message of these bytes
 *	11 ID8                  it is destroyed
 *	12 HOW8                 a client is forgotten, an address changes, the HCA dies
 */

#include <errno.h>
#include <string.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "fuzz.h"
#include "ib_impl.h"

#define IDS 32u
#define SENT 32u
#define OWNERS 3u
#define CHANNELS 3u
#define MS UINT64_C(1000000)

static struct {
	uint64_t now, random;
	struct ibcm *cm;
	uint32_t id[IDS], owner[IDS], ids;
	uint32_t member;
	uint64_t ticket;
	bool resolves;
	struct ibcm_wish wish;
	struct {
		struct ibcm_way way;
		uint8_t mad[IBCM_MAD_BYTES];
	} sent[SENT];
	uint32_t nsent;
	int groups;
} world;

static const uint8_t own[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
				   {[0] = 0xfd, [15] = 1}};
static const uint8_t peer[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
				    {[0] = 0xfd, [15] = 2}};

/* ---- the owner of the CM ---- */

static void
op_send(void *arg, const struct ibcm_way *way, const uint8_t mad[IBCM_MAD_BYTES])
{
	struct ib_mad parsed;
	uint32_t n = world.nsent++ % SENT;

	(void)arg;
	fuzz_check(ib_mad_parse(mad, IBCM_MAD_BYTES, &parsed) == IB_MAD_GOOD,
		   "sends what it drops");
	world.sent[n].way = *way;
	memcpy(world.sent[n].mad, mad, IBCM_MAD_BYTES);
}

static void
op_event(void *arg, uint32_t owner, uint32_t channel)
{
	(void)arg;
	fuzz_check(owner >= 1 && owner <= OWNERS && channel >= 1 && channel <= CHANNELS,
		   "an event of channel %u of client %u", channel, owner);
}

static void
op_resolve(void *arg, uint64_t ticket, const struct ibcm_wish *wish)
{
	(void)arg;
	world.ticket = ticket;
	world.wish = *wish;
	world.resolves = true;
}

static void
op_group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	(void)arg;
	(void)gid_index;
	(void)mgid;
	world.groups += joined ? 1 : -1;
	fuzz_check(world.groups >= 0, "a group is left that was not joined");
}

static uint64_t
op_random(void *arg)
{
	(void)arg;
	world.random = world.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return world.random ^ world.random >> 29;
}

static const struct ibcm_ops ops = {
	.send = op_send,
	.event = op_event,
	.resolve = op_resolve,
	.group = op_group,
	.random = op_random,
};

static void
begin(void)
{
	struct ibcm_config cfg = {
		.ops = &ops,
		.node_guid = 0x1234,
		.pkey = 0xffff,
		.mtu = 3,
		.ack_delay = 15,
		.max_rd_atomic = 16,
		.limits = {.ids = 24,
			   .ids_user = 20,
			   .ids_client = 16,
			   .backlog = 3,
			   .pending = 6,
			   .pending_address = 4,
			   .groups = 4},
	};

	memset(&world, 0, sizeof(world));
	world.now = MS;
	world.cm = ibcm_create(&cfg);
	fuzz_check(world.cm != NULL, "no memory");
	for (uint32_t i = 0; i < 2; i++) {
		struct hca_ctl_gid gid = {.vlan_id = 0xffff, .valid = 1};

		memcpy(gid.gid, own[i], sizeof(gid.gid));
		ibcm_set_gid(world.cm, i, &gid, world.now);
	}
}

/* ---- steps ---- */

static int
call(uint32_t owner, enum hca_ctl_op op, const void *request, void *answer)
{
	struct ibcm_client client = {.owner = owner, .user = 1 + owner / 3};
	const char *why = NULL;
	int err = ibcm_call(world.cm, &client, op, request, answer, world.now, &why);

	fuzz_check(err <= 0 && why != NULL && (err == 0 || why[0] != '\0'), "%d without words",
		   err);
	return err;
}

static void
know(uint32_t owner, uint32_t id)
{
	uint32_t n = world.ids < IDS ? world.ids++ : (uint32_t)op_random(NULL) % IDS;

	world.id[n] = id;
	world.owner[n] = owner;
}

static uint32_t
pick(struct fuzz_input *in, uint32_t *owner)
{
	uint32_t n = fuzz_u8(in);

	*owner = 1 + n % OWNERS;
	if (world.ids == 0)
		return n;
	n %= world.ids;
	*owner = world.owner[n];
	return world.id[n];
}

static void
create(struct fuzz_input *in)
{
	static const uint32_t spaces[] = {HCA_CTL_CM_SPACE_TCP, HCA_CTL_CM_SPACE_UDP,
					  HCA_CTL_CM_SPACE_IB, 7};
	uint8_t who = fuzz_u8(in), space = fuzz_u8(in);
	struct hca_ctl_cm_create r = {
		.channel = 1 + who / 4 % CHANNELS,
		.space = spaces[space & 3],
		.service = (space & 3) == 1 ? HCA_ST_UD : space >> 5,
	};
	uint32_t id;

	if (call(1 + who % OWNERS, HCA_CTL_CM_CREATE, &r, &id) == 0)
		know(1 + who % OWNERS, id);
}

static void
bind_and_listen(struct fuzz_input *in)
{
	struct hca_ctl_cm_bind b = {.flags = 0};
	struct hca_ctl_cm_listen l = {.backlog = 0};
	struct hca_ctl_cm_bound bound;
	struct hca_ctl_none none;
	uint32_t owner;
	uint8_t how;

	b.id = l.id = pick(in, &owner);
	how = fuzz_u8(in);
	b.addr = ib_ip_any(how & 1 ? HCA_CTL_CM_IP6 : HCA_CTL_CM_IP4);
	if (how & 2)
		memcpy(b.addr.gid, own[how & 1], 16);
	b.flags = how >> 2 & 3;
	b.addr.port = fuzz_u8(in);
	if (how & 32) {
		b.addr.family = HCA_CTL_CM_IB;
		b.service.id = ib_ip_service_id(HCA_CTL_CM_SPACE_TCP, b.addr.port);
		b.service.mask = how & 64 ? UINT64_MAX : UINT16_MAX;
	}
	(void)call(owner, HCA_CTL_CM_BIND, &b, &bound);
	if (how & 16)
		(void)call(owner, HCA_CTL_CM_LISTEN, &l, &none);
}

static void
resolve(struct fuzz_input *in)
{
	struct hca_ctl_cm_resolve r = {.timeout_ms = 100};
	struct hca_ctl_cm_route route = {.timeout_ms = 100};
	struct ibcm_way way = {.hop_limit = 64};
	struct hca_ctl_none none;
	uint32_t owner;
	uint8_t to, err;

	r.id = route.id = pick(in, &owner);
	to = fuzz_u8(in);
	r.dst = ib_ip_any(to & 1 ? HCA_CTL_CM_IP6 : HCA_CTL_CM_IP4);
	if (to & 6)
		memcpy(r.dst.gid, to & 2 ? own[to & 1] : peer[to & 1], 16);
	r.dst.port = fuzz_u8(in);
	if (to & 8) {
		r.dst.family = HCA_CTL_CM_IB;
		r.dst_service.id = ib_ip_service_id(HCA_CTL_CM_SPACE_TCP, r.dst.port);
		r.dst_service.pkey = 0xffff;
	}
	err = fuzz_u8(in);
	world.resolves = false;
	(void)call(owner, HCA_CTL_CM_RESOLVE, &r, &none);
	if (!world.resolves || err == 1)
		return;
	memcpy(way.own, own[to & 1], 16);
	memcpy(way.peer, world.wish.dst, 16);
	way.gid_index = to & 1;
	ibcm_resolved(world.cm, world.ticket, err == 2 ? -EHOSTUNREACH : 0, &way, world.now);
	(void)call(owner, HCA_CTL_CM_ROUTE, &route, &none);
}

static struct hca_ctl_cm_param
param_of(uint32_t id, uint8_t len)
{
	struct hca_ctl_cm_param p = {.id = id,
				     .qpn = id,
				     .private_len = len,
				     .valid = 1,
				     .responder_resources = len,
				     .retry_count = len};

	return p;
}

static void
connect_id(struct fuzz_input *in)
{
	uint32_t owner, id = pick(in, &owner);
	struct hca_ctl_cm_param p = param_of(id, fuzz_u8(in));
	struct hca_ctl_none none;

	if (p.private_len > HCA_CTL_CM_PRIVATE_MAX)
		p.private_len = HCA_CTL_CM_PRIVATE_MAX;
	(void)call(owner, HCA_CTL_CM_CONNECT, &p, &none);
}

static void
answer(struct fuzz_input *in)
{
	uint32_t owner, id = pick(in, &owner);
	uint8_t how = fuzz_u8(in);
	struct hca_ctl_cm_param p = param_of(id, fuzz_u8(in));
	struct hca_ctl_cm_reject j = {.id = id, .reason = how, .private_len = p.private_len};
	struct hca_ctl_none none;

	p.valid = (how & 4) == 0;
	if ((how & 3) < 2)
		(void)call(owner, HCA_CTL_CM_ACCEPT, &p, &none);
	else if ((how & 3) == 2)
		(void)call(owner, HCA_CTL_CM_REJECT, &j, &none);
	else
		(void)call(owner, HCA_CTL_CM_DISCONNECT, &id, &none);
}

static void
other_op(struct fuzz_input *in)
{
	uint32_t owner, id = pick(in, &owner);
	uint8_t how = fuzz_u8(in), arg = fuzz_u8(in);
	struct hca_ctl_cm_option option = {.id = id, .option = arg & 3, .value = arg >> 2};
	struct hca_ctl_cm_move move = {.id = id, .channel = 1 + arg % CHANNELS};
	struct hca_ctl_cm_notify notify = {.id = id, .event = HCA_EVENT_COMM_EST};
	struct hca_ctl_cm_join join = {.id = id, .flags = arg & 1};
	struct hca_ctl_cm_ask ask = {.id = id, .qp_state = arg & 3};
	struct hca_ctl_cm_attr attr;
	struct hca_ctl_cm_info info;
	struct hca_ctl_none none;

	join.addr = ib_ip_any(HCA_CTL_CM_IP4);
	join.addr.gid[12] = 224;
	join.addr.gid[15] = arg & 2;
	switch (how % 7) {
	case 0:
		(void)call(owner, HCA_CTL_CM_OPTION, &option, &none);
		break;
	case 1:
		(void)call(owner, HCA_CTL_CM_MOVE, &move, &none);
		break;
	case 2:
		(void)call(owner, HCA_CTL_CM_NOTIFY, &notify, &none);
		break;
	case 3:
		(void)call(owner, HCA_CTL_CM_JOIN, &join, &world.member);
		break;
	case 4:
		(void)call(owner, HCA_CTL_CM_LEAVE, &world.member, &none);
		break;
	case 5:
		(void)call(owner, HCA_CTL_CM_QP_ATTR, &ask, &attr);
		break;
	default:
		(void)call(owner, HCA_CTL_CM_QUERY, &id, &info);
	}
}

static void
fetch(struct fuzz_input *in)
{
	uint8_t who = fuzz_u8(in);
	uint32_t channel = 1 + who / 4 % CHANNELS, owner = 1 + who % OWNERS;
	struct hca_ctl_cm_event e;

	if (call(owner, HCA_CTL_CM_EVENT, &channel, &e) != 0)
		return;
	fuzz_check(e.type <= HCA_CTL_CM_EV_TIMEWAIT_EXIT &&
			   e.param.private_len <= HCA_CTL_CM_PRIVATE_MAX,
		   "event %u with %u bytes", e.type, e.param.private_len);
	if (e.type == HCA_CTL_CM_EV_CONNECT_REQUEST)
		know(owner, e.id);
}

static void
pass(uint64_t ns)
{
	uint64_t until = world.now + ns, at;

	while ((at = ibcm_deadline(world.cm)) <= until) {
		world.now = at > world.now ? at : world.now;
		ibcm_tick(world.cm, world.now);
		fuzz_check(ibcm_deadline(world.cm) > world.now, "something is due for ever");
	}
	world.now = until;
}

static void
deliver(const struct ibcm_way *way, const uint8_t *mad, size_t len)
{
	struct ibcm_way from = *way;

	memcpy(from.own, way->peer, sizeof(from.own));
	memcpy(from.peer, way->own, sizeof(from.peer));
	ibcm_input(world.cm, &from, mad, len, world.now);
}

static void
arrive(struct fuzz_input *in)
{
	uint32_t n = fuzz_u8(in), at = fuzz_u8(in);
	uint8_t x = fuzz_u8(in), mad[IBCM_MAD_BYTES];

	if (world.nsent == 0)
		return;
	n %= world.nsent < SENT ? world.nsent : SENT;
	memcpy(mad, world.sent[n].mad, sizeof(mad));
	mad[at] ^= x;
	deliver(&world.sent[n].way, mad, sizeof(mad));
}

/* A message from the peer to the first address */
static const struct ibcm_way *
way_of_peer(void)
{
	static struct ibcm_way way;

	memcpy(way.own, peer[0], sizeof(way.own));
	memcpy(way.peer, own[0], sizeof(way.peer));
	way.hop_limit = 64;
	return &way;
}

#define NO_HEADER 0x40 /* bit of the seed: a request of family IB */

static void
fill_req(struct ib_mad *mad, uint8_t seed, uint8_t port)
{
	struct ib_ip ip = {.src = ib_ip_any(HCA_CTL_CM_IP4), .dst = ib_ip_any(HCA_CTL_CM_IP4)};
	struct ib_mad_req *q = &mad->req;

	memcpy(ip.src.gid, peer[0], 16);
	memcpy(ip.dst.gid, own[0], 16);
	if (mad->type == IB_MAD_SIDR_REQ) {
		mad->sidr_req.request = seed;
		mad->sidr_req.service_id = ib_ip_service_id(HCA_CTL_CM_SPACE_UDP, port);
		if (!(seed & NO_HEADER))
			ib_ip_build(&ip, mad->sidr_req.private);
		return;
	}
	q->local_comm = seed;
	q->qpn = seed & 0xf;
	q->service_id = ib_ip_service_id(HCA_CTL_CM_SPACE_TCP, port);
	q->pkey = 0xffff;
	q->mtu = 3;
	q->max_retries = seed & 3;
	q->local_timeout = q->remote_timeout = seed & 31;
	memcpy(q->primary_local_gid, peer[0], 16);
	memcpy(q->primary_remote_gid, own[0], 16);
	if (!(seed & NO_HEADER))
		ib_ip_build(&ip, q->private);
}

static void
of_peer(struct fuzz_input *in)
{
	uint32_t type = fuzz_u8(in) % IB_MAD_TYPES, owner, number = pick(in, &owner);
	uint8_t seed = fuzz_u8(in), changes = fuzz_u8(in) & 7, bytes[IBCM_MAD_BYTES];
	const struct ib_id *id = ib_id_by_number(world.cm, number);
	struct ib_mad mad = {.type = (enum ib_mad_type)type, .transaction = seed};

	if (type == IB_MAD_REQ || type == IB_MAD_SIDR_REQ) {
		fill_req(&mad, seed, (uint8_t)number);
	} else {
		/* all others begin with these two, or one, at the same places */
		mad.rtu.local_comm = seed;
		mad.rtu.remote_comm = id == NULL ? seed : id->c.local_comm;
	}
	if (type == IB_MAD_DREQ && id != NULL) {
		mad.dreq.local_comm = id->c.remote_comm;
		mad.dreq.remote_qpn = id->c.local_qpn;
	}
	if (type == IB_MAD_SIDR_REP && id != NULL)
		mad.sidr_rep.request = id->c.local_comm;
	ib_mad_build(&mad, bytes);
	while (changes-- > 0) {
		uint8_t at = fuzz_u8(in);

		bytes[at] ^= fuzz_u8(in);
	}
	deliver(way_of_peer(), bytes, sizeof(bytes));
}

static void
raw(struct fuzz_input *in)
{
	size_t n;
	const uint8_t *bytes = fuzz_bytes(in, 1u + fuzz_u8(in), &n);

	deliver(way_of_peer(), bytes, n);
}

static void
destroy(struct fuzz_input *in)
{
	uint32_t owner, id = pick(in, &owner);
	struct hca_ctl_none none;

	(void)call(owner, HCA_CTL_CM_DESTROY, &id, &none);
}

static void
accident(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	struct hca_ctl_gid gid = {.vlan_id = how, .valid = 1};

	memcpy(gid.gid, own[how & 1], 16);
	if (how < 32)
		ibcm_forget(world.cm, 1 + how % OWNERS, world.now);
	else if (how < 64)
		ibcm_forget_channel(world.cm, 1 + how % OWNERS, 1 + how / 4 % CHANNELS, world.now);
	else if (how < 250)
		ibcm_set_gid(world.cm, how & 1, &gid, world.now);
	else
		ibcm_dead(world.cm, world.now);
}

static void
later(struct fuzz_input *in)
{
	pass(fuzz_u16(in) * MS);
}

static void
step(struct fuzz_input *in)
{
	static void (*const steps[])(struct fuzz_input *
				     in) = {create,   bind_and_listen, resolve, connect_id, answer,
					    other_op, fetch,	       later,	arrive,	    of_peer,
					    raw,      destroy,	       accident};

	steps[fuzz_u8(in) % (sizeof(steps) / sizeof(steps[0]))](in);
}

/* ---- judgement ---- */

static void
check_counters(bool empty)
{
	uint64_t value, received = 0, parts = 0;
	const char *name;

	for (uint32_t i = 0; (name = ibcm_counter(world.cm, i, &value)) != NULL; i++) {
		if (strcmp(name, "cm_received") == 0)
			received = value;
		else if (strncmp(name, "cm_received_", 12) == 0 ||
			 strncmp(name, "cm_drop_", 8) == 0)
			parts += value;
		else if (empty && strncmp(name, "cm_now_", 7) == 0)
			fuzz_check(value == 0, "%s is %ju at the end", name, (uintmax_t)value);
	}
	fuzz_check(received == parts, "messages do not add up");
}

static void
check_list(void)
{
	struct ibcm_entry entry[64];
	uint32_t n = ibcm_list(world.cm, 0, entry, 64);

	fuzz_check(n == world.cm->ids && n <= 24, "%u of %u ids", n, world.cm->ids);
	fuzz_check(world.cm->share.used[CM_SHARE_half] <= 6, "%u halves",
		   world.cm->share.used[CM_SHARE_half]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};

	begin();
	while (in.p < in.end) {
		step(&in);
		check_list();
	}
	check_counters(false);
	for (uint32_t owner = 1; owner <= OWNERS; owner++)
		ibcm_forget(world.cm, owner, world.now);
	pass(4000 * 1000 * MS);
	check_counters(true);
	fuzz_check(world.groups == 0, "a group is left");
	ibcm_destroy(world.cm, world.now);
	return 0;
}
