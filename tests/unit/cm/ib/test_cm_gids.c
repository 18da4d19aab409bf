/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses of family IB: a GID and a service ID, messages without an IP header. */

#include <errno.h>
#include <string.h>

#include "cm_rig.h"

#define CLIENT 7u
#define SERVER 9u
#define CH 1u
#define PORT 7174u
#define TCP HCA_CTL_CM_SPACE_TCP
#define UDP HCA_CTL_CM_SPACE_UDP
#define IB HCA_CTL_CM_SPACE_IB
#define ALL_BITS UINT64_MAX
#define SPACE_BITS UINT64_C(0xffffffffffff0000)
#define PEER_SERVICE UINT64_C(0x10000ce100415453)
#define LONGEST_REQ 92u
#define LONGEST_SIDR 216u

static struct rig r;
static struct hca_ctl_none none;

static uint64_t
service(uint32_t space, uint32_t port)
{
	return (uint64_t)space << 16 | port;
}

static struct hca_ctl_cm_addr
address(const uint8_t gid[16])
{
	struct hca_ctl_cm_addr addr = ib_ip_any(HCA_CTL_CM_IB);

	if (gid != NULL)
		memcpy(addr.gid, gid, sizeof(addr.gid));
	return addr;
}

static int
bind_flags(uint32_t end, uint32_t id, const uint8_t *gid, uint64_t sid, uint64_t mask,
	   uint32_t flags)
{
	struct hca_ctl_cm_bind request = {
		.addr = address(gid),
		.id = id,
		.flags = flags,
		.service = {.id = sid, .mask = mask},
	};
	struct hca_ctl_cm_bound bound;

	return rig_call(&r, end, end == 0 ? CLIENT : SERVER, HCA_CTL_CM_BIND, &request, &bound);
}

static int
bind_gid(uint32_t end, uint32_t id, const uint8_t *gid, uint64_t sid, uint64_t mask)
{
	return bind_flags(end, id, gid, sid, mask, 0);
}

static uint32_t
listener(const uint8_t *gid, uint32_t space)
{
	uint32_t id = rig_create(&r, 1, SERVER, CH, space);

	assert_int_equal(bind_gid(1, id, gid, service(space, PORT), ALL_BITS), 0);
	assert_int_equal(rig_listen(&r, 1, SERVER, id, 0), 0);
	return id;
}

static int
resolve_key(uint32_t id, const uint8_t *dst, uint64_t sid, uint16_t pkey)
{
	struct hca_ctl_cm_resolve request = {
		.dst = address(dst),
		.id = id,
		.timeout_ms = 2000,
		.dst_service = {.id = sid, .mask = ALL_BITS, .pkey = pkey},
	};

	return rig_call(&r, 0, CLIENT, HCA_CTL_CM_RESOLVE, &request, &none);
}

/* An id of end 0 on its way to the GID: routed */
static uint32_t
routed(const uint8_t *dst, uint32_t space, uint64_t sid)
{
	uint32_t id = rig_create(&r, 0, CLIENT, CH, space);
	struct hca_ctl_cm_route request = {.id = id, .timeout_ms = 2000};

	assert_int_equal(resolve_key(id, dst, sid, 0xffff), 0);
	rig_run(&r, RIG_MS);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_RESOLVED);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_ROUTE, &request, &none), 0);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ROUTE_RESOLVED);
	return id;
}

static struct hca_ctl_cm_info
info(uint32_t end, uint32_t id)
{
	struct hca_ctl_cm_info answer;

	assert_int_equal(
		rig_call(&r, end, end == 0 ? CLIENT : SERVER, HCA_CTL_CM_QUERY, &id, &answer), 0);
	return answer;
}

/* Connect with `longest` bytes of private data, and check each. Returns the request's id. */
static uint32_t
connect_longest(uint32_t id, uint32_t longest)
{
	struct hca_ctl_cm_param param = rig_param(id, 5, NULL);
	struct hca_ctl_cm_event e;

	for (uint32_t i = 0; i < longest; i++)
		param.private[i] = (uint8_t)(i + 1);
	param.private_len = (uint8_t)(longest + 1);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_CONNECT, &param, &none), -EINVAL);
	param.private_len = (uint8_t)longest;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_CONNECT, &param, &none), 0);
	rig_run(&r, 5 * RIG_MS);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(e.param.private_len, longest);
	assert_memory_equal(e.param.private, param.private, longest);
	return e.id;
}

static void
expect_ends(uint32_t id, uint32_t child, uint32_t gid)
{
	struct hca_ctl_cm_info a = info(0, id), b = info(1, child);

	assert_int_equal(a.src.family, HCA_CTL_CM_IB);
	assert_int_equal(b.dst.family, HCA_CTL_CM_IB);
	assert_memory_equal(a.src.gid, r.gid[0][gid], 16);
	assert_memory_equal(a.dst.gid, r.gid[1][gid], 16);
	assert_memory_equal(b.src.gid, r.gid[1][gid], 16);
	assert_memory_equal(b.dst.gid, r.gid[0][gid], 16);
	assert_int_equal(a.dst_service_id, service(IB, PORT));
	assert_int_equal(a.service_id, service(IB, PORT));
	assert_int_equal(a.src_service_id, service(IB, a.src.port));
	assert_int_not_equal(a.src.port, 0);
	assert_int_equal(b.src_service_id, service(IB, PORT));
	assert_int_equal(b.service_id, service(IB, PORT));
	assert_int_equal(b.dst_service_id, 0);
	assert_int_equal(b.gid_index, gid);
}

static void
test_connect(void **state)
{
	const struct ib_mad *mad;
	uint32_t id, child;

	for (uint32_t gid = 0; gid < RIG_GIDS; gid++)
		for (uint32_t any = 0; any < 2; any++) {
			rig_begin(&r, 1, NULL);
			listener(any ? NULL : r.gid[1][gid], IB);
			id = routed(r.gid[1][gid], IB, service(IB, PORT));
			child = connect_longest(id, LONGEST_REQ);
			mad = rig_last(&r, 0, IB_MAD_REQ);
			assert_int_equal(mad->req.service_id, service(IB, PORT));
			assert_memory_equal(mad->req.primary_remote_gid, r.gid[1][gid], 16);
			assert_int_equal(rig_accept(&r, 1, SERVER, child, 6, "welcome"), 0);
			rig_run(&r, 5 * RIG_MS);
			(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
			assert_int_equal(rig_establish(&r, 0, CLIENT, id), 0);
			rig_run(&r, 5 * RIG_MS);
			(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
			expect_ends(id, child, gid);
			rig_end(&r);
		}
}

static void
test_datagrams(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id, child;

	rig_begin(&r, 1, NULL);
	listener(NULL, UDP);
	id = routed(r.gid[1][RIG_IP6], UDP, service(UDP, PORT));
	child = connect_longest(id, LONGEST_SIDR);
	assert_int_equal(rig_last(&r, 0, IB_MAD_SIDR_REQ)->sidr_req.service_id, service(UDP, PORT));
	assert_int_equal(rig_accept(&r, 1, SERVER, child, 0x66, "me"), 0);
	rig_run(&r, 5 * RIG_MS);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ESTABLISHED);
	assert_int_equal(e.param.qpn, 0x66);
	assert_memory_equal(e.dgid, r.gid[1][RIG_IP6], 16);
	rig_end(&r);
}

/* ---- which listener gets a request ---- */

/* Of IP or IB with "hello"; the listener that has it, 0: it is refused */
static uint32_t
asked_by(bool ip, struct hca_ctl_cm_event *e)
{
	const uint8_t *dst = r.gid[1][RIG_IP4];
	uint32_t id = ip ? rig_routed(&r, 0, CLIENT, CH, TCP, dst, PORT)
			 : routed(dst, TCP, service(TCP, PORT));

	assert_int_equal(rig_connect(&r, 0, CLIENT, id, ip ? 5 : 6, "hello"), 0);
	rig_run(&r, 5 * RIG_MS);
	if (rig_event(&r, 1, SERVER, CH, e))
		return e->listener;
	assert_int_equal(rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_REJECTED).status,
			 IB_MAD_REASON_SERVICE_ID);
	return 0;
}

static void
test_listener_of_ip(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_listener(&r, 1, SERVER, CH, TCP, PORT); /* the wildcard of IPv6 */
	assert_int_equal(asked_by(true, &e), id);
	assert_int_equal(asked_by(false, &e), 0);
	rig_end(&r);
}

/* It also takes requests of IP ends, with their header in the private data. */
static void
test_listener_of_ib(void **state)
{
	struct hca_ctl_cm_event e;
	struct ib_ip ip;
	uint32_t id;

	for (uint32_t any = 0; any < 2; any++) {
		rig_begin(&r, 1, NULL);
		id = listener(any ? NULL : r.gid[1][RIG_IP4], TCP);
		assert_int_equal(asked_by(false, &e), id);
		assert_string_equal((const char *)e.param.private, "hello");
		assert_int_equal(asked_by(true, &e), id);
		assert_int_equal(e.param.private_len, LONGEST_REQ);
		assert_true(ib_ip_parse(e.param.private, &ip));
		assert_memory_equal(ip.dst.gid, r.gid[1][RIG_IP4], 16);
		assert_string_equal((const char *)e.param.private + IB_IP_BYTES, "hello");
		rig_end(&r);
	}
	rig_begin(&r, 1, NULL);
	listener(r.gid[1][RIG_IP6], TCP); /* another GID */
	assert_int_equal(asked_by(false, &e), 0);
	assert_int_equal(asked_by(true, &e), 0);
	rig_end(&r);
}

/* One of each family at one address and port: each has the requests of its own family. */
static void
test_listeners_of_both(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t ip, ib;

	rig_begin(&r, 1, NULL);
	ib = listener(r.gid[1][RIG_IP4], TCP);
	ip = rig_create(&r, 1, SERVER, CH, TCP);
	assert_int_equal(rig_bind(&r, 1, SERVER, ip, RIG_IP4, r.gid[1][RIG_IP4], PORT, 0), 0);
	assert_int_equal(rig_listen(&r, 1, SERVER, ip, 0), 0);
	assert_int_equal(asked_by(true, &e), ip);
	assert_int_equal(asked_by(false, &e), ib);
	rig_end(&r);
}

/* ---- ports ---- */

static void
test_spaces(void **state)
{
	static const struct {
		uint32_t id;
		uint64_t sid, mask;
		int err;
		uint32_t space;
	} rows[] = {
		{IB, 0, 0, 0, IB},
		{TCP, 0, 0, 0, TCP},
		{UDP, 0, 0, 0, UDP},
		/* as librdmacm asks whether there is AF_IB */
		{IB, (uint64_t)TCP << 16, SPACE_BITS, 0, TCP},
		{IB, (uint64_t)UDP << 16, SPACE_BITS, 0, UDP},
		{IB, (uint64_t)IB << 16 | 7, ALL_BITS, 0, IB},
		{TCP, (uint64_t)TCP << 16 | 7, ALL_BITS, 0, TCP},
		{TCP, (uint64_t)UDP << 16, SPACE_BITS, -EPROTONOSUPPORT, 0},
		{UDP, (uint64_t)IB << 16, SPACE_BITS, -EPROTONOSUPPORT, 0},
		{IB, PEER_SERVICE, ALL_BITS, -EPROTONOSUPPORT, 0},
		{HCA_CTL_CM_SPACE_IPOIB, 0, 0, -EPROTONOSUPPORT, 0},
	};
	struct hca_ctl_cm_info answer;
	uint32_t id;

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rig_begin(&r, 1, NULL);
		id = rig_create(&r, 0, CLIENT, CH, rows[i].id);
		assert_int_equal(bind_gid(0, id, NULL, rows[i].sid, rows[i].mask), rows[i].err);
		answer = info(0, id);
		if (rows[i].err == 0) {
			assert_int_equal(answer.src_service_id >> 16, rows[i].space);
			assert_int_not_equal(answer.src.port, 0);
		} else {
			assert_int_equal(answer.state, HCA_CTL_CM_IDLE);
			assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
		}
		rig_end(&r);
	}
}

static int
bind_ip(uint32_t family, const uint8_t *gid, uint32_t flags)
{
	return rig_bind(&r, 0, CLIENT, rig_create(&r, 0, CLIENT, CH, TCP), family, gid, PORT,
			flags);
}

/* The wildcard is also that of IP; a GID and the same IP address are two addresses. */
static void
test_ports(void **state)
{
	const uint64_t sid = service(TCP, PORT);
	uint8_t *ip4, *ip6;

	rig_begin(&r, 1, NULL);
	ip4 = r.gid[0][RIG_IP4];
	ip6 = r.gid[0][RIG_IP6];
	/* an id of space IB has the port in the space of TCP */
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, IB), NULL, sid, ALL_BITS), 0);
	assert_int_equal(bind_ip(RIG_IP4, NULL, 0), -EADDRINUSE);
	assert_int_equal(bind_ip(RIG_IP6, ip6, 0), -EADDRINUSE);
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, TCP), ip4, sid, ALL_BITS),
			 -EADDRINUSE);
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, IB), NULL, service(IB, PORT),
				  ALL_BITS),
			 0);
	rig_end(&r);
	rig_begin(&r, 1, NULL);
	assert_int_equal(bind_flags(0, rig_create(&r, 0, CLIENT, CH, TCP), NULL, sid, ALL_BITS,
				    HCA_CTL_CM_AF_ONLY),
			 0);
	assert_int_equal(bind_ip(RIG_IP4, ip4, 0), 0);
	rig_end(&r);
	rig_begin(&r, 1, NULL);
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, TCP), ip4, sid, ALL_BITS), 0);
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, TCP), ip6, sid, ALL_BITS), 0);
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, TCP), ip4, sid, ALL_BITS),
			 -EADDRINUSE);
	assert_int_equal(bind_ip(RIG_IP4, ip4, 0), 0);
	assert_int_equal(bind_gid(0, rig_create(&r, 0, CLIENT, CH, TCP), r.gid[1][RIG_IP4], sid,
				  ALL_BITS),
			 -EADDRNOTAVAIL);
	rig_end(&r);
}

/* ---- destinations ---- */

/* Its service ID goes into the REQ as it is. */
static void
test_service_of_peer(void **state)
{
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = routed(r.gid[1][RIG_IP4], TCP, PEER_SERVICE);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, 5, NULL), 0);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REQ)->req.service_id, PEER_SERVICE);
	assert_int_equal(info(0, id).dst_service_id, PEER_SERVICE);
	rig_run(&r, 5 * RIG_MS);
	assert_int_equal(rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_REJECTED).status,
			 IB_MAD_REASON_SERVICE_ID);
	rig_end(&r);
}

static void
test_destinations(void **state)
{
	static const uint8_t zero[16], one[16] = {[15] = 1};
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(resolve_key(id, r.gid[1][RIG_IP4], 0, 0x8001), -ENODEV);
	assert_int_equal(info(0, id).state, HCA_CTL_CM_IDLE);
	assert_int_equal(resolve_key(id, r.gid[1][RIG_IP4], 0, 0x7fff), 0);
	/* an id of one family does not go to another one */
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(bind_gid(0, id, r.gid[0][RIG_IP4], 0, 0), 0);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, r.gid[1][RIG_IP4], PORT), -EINVAL);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP4, r.gid[0][RIG_IP4], 0, 0), 0);
	assert_int_equal(resolve_key(id, r.gid[1][RIG_IP4], 0, 0xffff), -EINVAL);
	/* the HCA itself */
	for (uint32_t i = 0; i < 2; i++) {
		id = rig_create(&r, 0, CLIENT, CH, TCP);
		assert_int_equal(resolve_key(id, i == 0 ? zero : one, 0, 0xffff), 0);
		assert_memory_equal(info(0, id).dst.gid, r.gid[0][RIG_IP4], 16);
	}
	rig_end(&r);
}

/* ---- groups ---- */

static void
test_groups(void **state)
{
	static const uint8_t groups[][16] = {{[10] = 0xff, 0xff, 239, 1, 2, 3},
					     {0xff, 0x0e, [15] = 0x76}};
	struct hca_ctl_cm_join request;
	struct hca_ctl_cm_event e;
	uint32_t number;

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		request = (struct hca_ctl_cm_join){.addr = address(groups[i])};
		request.id = rig_create(&r, 0, CLIENT, CH, UDP);
		assert_int_equal(rig_bind(&r, 0, CLIENT, request.id, i, r.gid[0][i], 0, 0), 0);
		assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_JOIN, &request, &number), 0);
		assert_int_equal(r.joined[0], i + 1);
		e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_MULTICAST_JOIN);
		assert_memory_equal(e.dgid, groups[i], 16);
	}
	request.addr = address(r.gid[1][RIG_IP6]);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_JOIN, &request, &number), -EINVAL);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_listener_of_ip),
		cmocka_unit_test(test_listener_of_ib),
		cmocka_unit_test(test_listeners_of_both),
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_service_of_peer),
		cmocka_unit_test(test_destinations),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
