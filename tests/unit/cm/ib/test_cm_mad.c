/* SPDX-License-Identifier: BSD-3-Clause */

/* The codec: every field at its place, messages of a Linux peer, and refusals. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ib_ip.h"
#include "ib_mad.h"

/* The REQ of rping to 10.0.0.2, port 7174, as Linux 6.1 with rxe fills it; the rest is 0. */
static const uint8_t rping_req[IB_MAD_BYTES] = {
	/* common header: version, class, class version, method; status; transaction; attribute */
	0x01, 0x07, 0x02, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x2c, 0x4e, 0x8a,
	0x7f, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* local communication id, reserved, service id */
	0x7f, 0x8a, 0x4e, 0x2c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x06, 0x1c,
	0x06,
	/* CA GUID, reserved, Q_Key, QPN and responder resources, EECN and initiator depth */
	0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x11, 0x01, 0x00, 0x00, 0x00, 0x01,
	/* remote EECN, remote response timeout 20, RC; PSN, local timeout 20, retry count 7 */
	0x00, 0x00, 0x00, 0xa0, 0xab, 0xcd, 0xef, 0xa7,
	/* P_Key, MTU 1024 and RNR retry 7, 15 retries of the CM */
	0xff, 0xff, 0x37, 0xf0,
	/* LIDs, GIDs, flow label and rate, traffic class, hop limit, SL, ack timeout 19 */
	0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
	0xff, 0x0a, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xff, 0xff, 0x0a, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03, 0x00, 0x40, 0x00, 0x98,
	/* no alternate path */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* IP CM header: version, IPv4, source port, addresses */
	0x00, 0x40, 0x9c, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x0a, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x0a, 0x00, 0x00, 0x02};

static void
test_req_of_linux(void **state)
{
	uint8_t bytes[IB_MAD_BYTES];
	struct ib_mad mad;
	const struct ib_mad_req *req = &mad.req;
	struct ib_ip ip;

	assert_int_equal(ib_mad_parse(rping_req, sizeof(rping_req), &mad), IB_MAD_GOOD);
	assert_int_equal(mad.type, IB_MAD_REQ);
	assert_int_equal(mad.transaction, 0x000000052c4e8a7fu);
	assert_int_equal(req->local_comm, 0x7f8a4e2c);
	assert_int_equal(req->service_id, 0x01061c06);
	assert_int_equal(req->ca_guid, 0x505400fffe123456u);
	assert_int_equal(req->qpn, 0x11);
	assert_int_equal(req->responder_resources, 1);
	assert_int_equal(req->initiator_depth, 1);
	assert_int_equal(req->remote_timeout, 20);
	assert_int_equal(req->transport, IB_MAD_RC);
	assert_int_equal(req->psn, 0xabcdef);
	assert_int_equal(req->local_timeout, 20);
	assert_int_equal(req->retry_count, 7);
	assert_int_equal(req->pkey, 0xffff);
	assert_int_equal(req->mtu, 3);
	assert_int_equal(req->rnr_retry_count, 7);
	assert_int_equal(req->max_retries, 15);
	assert_int_equal(req->primary_local_lid, 0xffff);
	assert_int_equal(req->primary_rate, 3);
	assert_int_equal(req->primary_hop_limit, 64);
	assert_int_equal(req->primary_ack_timeout, 19);
	assert_true(ib_ip_parse(req->private, &ip));
	assert_int_equal(ip.src.port, 40000);
	assert_int_equal(ip.src.gid[15], 1);
	assert_memory_equal(ip.dst.gid, req->primary_remote_gid, 16);
	ib_mad_build(&mad, bytes);
	assert_memory_equal(bytes, rping_req, sizeof(bytes));
	memset(bytes, 0xff, IB_IP_BYTES);
	ib_ip_build(&ip, bytes);
	assert_memory_equal(bytes, req->private, IB_IP_BYTES);
}

/* One bit of each field: it moves that bit of the message only. */
struct place {
	enum ib_mad_type type;
	size_t member, size;
	uint32_t byte, bit, width;
};

#define PLACE(message, type, member, bytes, byte, bit, width) \
	{(type), offsetof(struct ib_mad, message.member), (bytes), (byte), (bit), (width)},

/* the macros of each message name its member of struct ib_mad */
/* clang-format off */
#define NUMBER(bits, name, byte, bit, width) PLACE(MAD, TYPE, name, (bits) / 8, byte, bit, width)
#define BYTES(name, byte, bytes) PLACE(MAD, TYPE, name, bytes, byte, 0, 0)
static const struct place places[] = {
#define MAD req
#define TYPE IB_MAD_REQ
	IB_MAD_REQ_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD mra
#define TYPE IB_MAD_MRA
	IB_MAD_MRA_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD rej
#define TYPE IB_MAD_REJ
	IB_MAD_REJ_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD rep
#define TYPE IB_MAD_REP
	IB_MAD_REP_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD rtu
#define TYPE IB_MAD_RTU
	IB_MAD_RTU_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD dreq
#define TYPE IB_MAD_DREQ
	IB_MAD_DREQ_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD drep
#define TYPE IB_MAD_DREP
	IB_MAD_DREP_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD sidr_req
#define TYPE IB_MAD_SIDR_REQ
	IB_MAD_SIDR_REQ_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD sidr_rep
#define TYPE IB_MAD_SIDR_REP
	IB_MAD_SIDR_REP_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD lap
#define TYPE IB_MAD_LAP
	IB_MAD_LAP_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
#define MAD apr
#define TYPE IB_MAD_APR
	IB_MAD_APR_FIELDS(NUMBER, BYTES)
#undef MAD
#undef TYPE
};
/* clang-format on */

static uint32_t
bits_set(const uint8_t *bytes, size_t n, uint32_t *last)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < 8 * n; i++)
		if ((bytes[i / 8] >> (7 - i % 8) & 1) != 0) {
			set++;
			*last = i;
		}
	return set;
}

static void
test_every_bit(void **state)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct place *p = &places[i];
		uint32_t bits = p->width != 0 ? p->width : 8 * (uint32_t)p->size;

		for (uint32_t bit = 0; bit < bits; bit++) {
			uint8_t bytes[IB_MAD_BYTES] = {1, 7, 2,
						       3, [17] = (uint8_t)(0x10 + p->type)};
			uint8_t built[IB_MAD_BYTES];
			uint32_t at = 8 * p->byte + p->bit + bit, found = 0;
			struct ib_mad mad;

			bytes[IB_MAD_HEADER + at / 8] |= (uint8_t)(0x80 >> at % 8);
			assert_int_equal(ib_mad_parse(bytes, sizeof(bytes), &mad), IB_MAD_GOOD);
			assert_int_equal(mad.type, p->type);
			/* it is in this member, and in no other one */
			assert_int_equal(bits_set((uint8_t *)&mad + p->member, p->size, &found), 1);
			assert_int_equal(bits_set((uint8_t *)&mad + offsetof(struct ib_mad, req),
						  sizeof(mad) - offsetof(struct ib_mad, req),
						  &found),
					 1);
			ib_mad_build(&mad, built);
			assert_memory_equal(built, bytes, sizeof(bytes));
		}
	}
}

static void
test_refused(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t value;
		enum ib_mad_fault fault;
	} bad[] = {
		{0, 2, IB_MAD_FAULT_base_version},  {1, 3, IB_MAD_FAULT_class},
		{2, 1, IB_MAD_FAULT_class_version}, {3, 0x83, IB_MAD_FAULT_method},
		{17, 0x0f, IB_MAD_FAULT_attribute}, {17, 0x1b, IB_MAD_FAULT_attribute},
		{16, 1, IB_MAD_FAULT_attribute},
	};
	struct ib_mad mad;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t bytes[IB_MAD_BYTES];

		memcpy(bytes, rping_req, sizeof(bytes));
		bytes[bad[i].at] = bad[i].value;
		assert_int_equal(ib_mad_parse(bytes, sizeof(bytes), &mad), bad[i].fault);
	}
	for (size_t len = 0; len < IB_MAD_BYTES; len++)
		assert_int_equal(ib_mad_parse(rping_req, len, &mad), IB_MAD_FAULT_length);
}

/* Bits beyond a field do not reach its neighbours. */
static void
test_cut(void **state)
{
	struct ib_mad mad = {.type = IB_MAD_REQ, .req = {.qpn = 0xff123456, .retry_count = 0x1f}};
	struct ib_mad back;
	uint8_t bytes[IB_MAD_BYTES];

	ib_mad_build(&mad, bytes);
	assert_int_equal(ib_mad_parse(bytes, sizeof(bytes), &back), IB_MAD_GOOD);
	assert_int_equal(back.req.qpn, 0x123456);
	assert_int_equal(back.req.retry_count, 7);
	assert_int_equal(back.req.local_timeout, 0);
	assert_int_equal(back.req.responder_resources, 0);
}

static void
test_services(void **state)
{
	uint8_t bytes[IB_IP_BYTES] = {0, 0x50};
	struct ib_ip ip;
	uint32_t space;
	uint16_t port;

	assert_true(ib_ip_service(0x01061c06, &space, &port));
	assert_int_equal(space, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(port, 7174);
	assert_false(ib_ip_service(0x01060000, &space, &port));
	assert_false(ib_ip_service(0x01071c06, &space, &port));
	assert_false(ib_ip_service(0x1000000001061c06u, &space, &port));
	/* neither IPv4 nor IPv6; another version */
	assert_false(ib_ip_parse(bytes, &ip));
	bytes[1] = 0x60;
	assert_true(ib_ip_parse(bytes, &ip));
	bytes[0] = 0x10;
	assert_false(ib_ip_parse(bytes, &ip));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_req_of_linux), cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_refused),	     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
