/* SPDX-License-Identifier: BSD-3-Clause */

/* The test is the peer: it sends MADs as Linux would, and counts the answers. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "cm_rig.h"

#define CLIENT 7u
#define SERVER 9u
#define CH 1u
#define PORT 7174u
#define QP_A 0x111u
#define PEER_QP 0x333u
#define PEER_COMM 0x44444444u
#define PEER_GUID UINT64_C(0x505400fffe000077)
#define TRANSACTION UINT64_C(0x123456789a)

static const uint8_t peer[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 77};
static const uint8_t stranger[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 78};
static struct rig r;

/* ---- messages of the peer ---- */

static struct ib_mad
req(uint32_t comm, uint32_t qpn)
{
	struct ib_mad mad = {.type = IB_MAD_REQ, .transaction = TRANSACTION};
	struct ib_mad_req *q = &mad.req;
	struct ib_ip ip = {.src = ib_ip_any(HCA_CTL_CM_IP4), .dst = ib_ip_any(HCA_CTL_CM_IP4)};

	q->local_comm = comm;
	q->service_id = ib_ip_service_id(HCA_CTL_CM_SPACE_TCP, PORT);
	q->ca_guid = PEER_GUID;
	q->qpn = qpn;
	q->responder_resources = 1;
	q->initiator_depth = 2;
	q->remote_timeout = q->local_timeout = 20;
	q->psn = 0xabcdef;
	q->retry_count = q->rnr_retry_count = 7;
	q->pkey = 0xffff;
	q->mtu = 3;
	q->max_retries = 15;
	q->primary_local_lid = q->primary_remote_lid = 0xffff;
	memcpy(q->primary_local_gid, peer, 16);
	memcpy(q->primary_remote_gid, r.gid[0][RIG_IP4], 16);
	q->primary_hop_limit = 64;
	q->primary_ack_timeout = 19;
	memcpy(ip.src.gid, peer, 16);
	ip.src.port = 40000;
	memcpy(ip.dst.gid, r.gid[0][RIG_IP4], 16);
	ib_ip_build(&ip, q->private);
	return mad;
}

static void
inject(const struct ib_mad *mad)
{
	rig_inject(&r, 0, peer, mad);
}

static struct ib_mad
rep(const struct ib_mad *q)
{
	return (struct ib_mad){
		.type = IB_MAD_REP,
		.transaction = q->transaction,
		.rep = {.local_comm = PEER_COMM,
			.remote_comm = q->req.local_comm,
			.qpn = PEER_QP,
			.psn = 0x111111,
			.responder_resources = 3,
			.initiator_depth = 2,
			.ack_delay = 15,
			.rnr_retry_count = 7,
			.ca_guid = PEER_GUID},
	};
}

static struct ib_mad
rtu(const struct ib_mad *p)
{
	return (struct ib_mad){
		.type = IB_MAD_RTU,
		.transaction = p->transaction,
		.rtu = {.local_comm = p->rep.remote_comm, .remote_comm = p->rep.local_comm},
	};
}

static struct ib_mad
dreq(uint32_t local, uint32_t remote, uint32_t qpn)
{
	return (struct ib_mad){
		.type = IB_MAD_DREQ,
		.transaction = TRANSACTION + 9,
		.dreq = {.local_comm = local, .remote_comm = remote, .remote_qpn = qpn},
	};
}

/* ---- the active end ---- */

static uint32_t
connecting(void)
{
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, peer, PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, "hello"), 0);
	return id;
}

static void
test_req(void **state)
{
	uint32_t id = connecting();
	const struct ib_mad *mad = rig_last(&r, 0, IB_MAD_REQ);
	const struct ib_mad_req *q = &mad->req;
	struct hca_ctl_cm_info info;
	struct ib_ip ip;

	assert_int_equal(q->service_id, 0x01061c06);
	assert_int_equal(q->ca_guid, 0x1000);
	assert_int_equal(q->qpn, QP_A);
	assert_int_equal(q->responder_resources, 4);
	assert_int_equal(q->initiator_depth, 5);
	assert_int_equal(q->remote_timeout, 20);
	assert_int_equal(q->local_timeout, 20);
	assert_int_equal(q->transport, 0);
	assert_int_equal(q->retry_count, 7);
	assert_int_equal(q->rnr_retry_count, 6);
	assert_int_equal(q->pkey, 0xffff);
	assert_int_equal(q->mtu, 3);
	assert_int_equal(q->max_retries, 15);
	assert_int_equal(q->primary_local_lid, 0xffff);
	assert_int_equal(q->primary_remote_lid, 0xffff);
	assert_memory_equal(q->primary_local_gid, r.gid[0][RIG_IP4], 16);
	assert_memory_equal(q->primary_remote_gid, peer, 16);
	assert_int_equal(q->primary_hop_limit, 64);
	assert_int_equal(q->primary_subnet_local, 0);
	assert_int_equal(q->primary_ack_timeout, 19);
	assert_int_equal(q->alternate_local_lid, 0);
	assert_true(ib_ip_parse(q->private, &ip));
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_QUERY, &id, &info), 0);
	assert_int_equal(ip.src.port, info.src.port);
	assert_memory_equal(ip.dst.gid, peer, 16);
	assert_string_equal((const char *)q->private + IB_IP_BYTES, "hello");
	rig_end(&r);
}

static void
test_active_end(void **state)
{
	uint32_t id = connecting(), own;
	struct ib_mad q = *rig_last(&r, 0, IB_MAD_REQ), p = rep(&q), d;
	struct hca_ctl_cm_event e;

	own = q.req.local_comm;
	inject(&p);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
	assert_int_equal(e.param.responder_resources, 2);
	assert_int_equal(e.param.initiator_depth, 3);
	/* it comes again: the program has not answered yet */
	inject(&p);
	assert_int_equal(rig_count(&r, 0, IB_MAD_MRA), 1);
	assert_int_equal(rig_last(&r, 0, IB_MAD_MRA)->mra.message, IB_MAD_OF_REP);
	assert_int_equal(rig_last(&r, 0, IB_MAD_MRA)->mra.remote_comm, PEER_COMM);
	assert_int_equal(rig_last(&r, 0, IB_MAD_MRA)->mra.local_comm, own);
	assert_int_equal(rig_establish(&r, 0, CLIENT, id), 0);
	assert_int_equal(rig_establish(&r, 0, CLIENT, id), -EINVAL);
	assert_int_equal(rig_count(&r, 0, IB_MAD_RTU), 1);
	assert_int_equal(rig_last(&r, 0, IB_MAD_RTU)->transaction, q.transaction);
	/* and again: the RTU was lost */
	inject(&p);
	assert_int_equal(rig_count(&r, 0, IB_MAD_RTU), 2);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	/* a DREQ for another QP, from another address, for another connection of the peer */
	d = dreq(PEER_COMM, own, QP_A + 1);
	inject(&d);
	assert_int_equal(rig_counter(&r, 0, "cm_drop_qpn"), 1);
	d.dreq.remote_qpn = QP_A;
	rig_inject(&r, 0, stranger, &d);
	assert_int_equal(rig_counter(&r, 0, "cm_drop_address"), 1);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREP), 0);
	d.dreq.local_comm++;
	inject(&d);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREP), 1);
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_ESTABLISHED);
	/* the right one, twice, and once more when all is over */
	d.dreq.local_comm--;
	for (uint32_t i = 0; i < 3; i++) {
		inject(&d);
		assert_int_equal(rig_count(&r, 0, IB_MAD_DREP), 2 + i);
		assert_int_equal(rig_last(&r, 0, IB_MAD_DREP)->transaction, d.transaction);
		assert_int_equal(rig_last(&r, 0, IB_MAD_DREP)->drep.remote_comm, PEER_COMM);
		assert_int_equal(rig_last(&r, 0, IB_MAD_DREP)->drep.local_comm, own);
		if (i == 0)
			(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_DISCONNECTED);
		if (i == 1)
			rig_run(&r, 10 * RIG_SECOND);
	}
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REQ), 1);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREQ), 0);
	rig_end(&r);
}

/* After an MRA the peer has the time that it asked for, is reminded, and then has its retries. */
static void
test_mra_received(void **state)
{
	uint32_t id = connecting();
	struct ib_mad q = *rig_last(&r, 0, IB_MAD_REQ);
	struct ib_mad m = {
		.type = IB_MAD_MRA,
		.transaction = q.transaction,
		.mra = {.local_comm = PEER_COMM,
			.remote_comm = q.req.local_comm,
			.message = IB_MAD_OF_REQ,
			.service_timeout = 24},
	};
	struct hca_ctl_cm_event e;
	uint64_t reqs;

	inject(&m);
	rig_run(&r, 68 * RIG_SECOND);
	reqs = rig_count(&r, 0, IB_MAD_REQ);
	assert_in_range(reqs, 5, 20);
	rig_run(&r, 50 * RIG_SECOND);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	rig_run(&r, 200 * RIG_SECOND);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_UNREACHABLE);
	assert_int_equal(e.id, id);
	assert_in_range(rig_count(&r, 0, IB_MAD_REQ), reqs + 14, reqs + 17);
	/* the peer gets the news that its request has ended */
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 1);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 4);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.info_len, 8);
	assert_int_equal(hca_get_be64(rig_last(&r, 0, IB_MAD_REJ)->rej.info), 0x1000);
	rig_end(&r);
}

/* Answers that are not those of a connection */
static void
test_strange_answers(void **state)
{
	uint32_t id = connecting();
	struct ib_mad q = *rig_last(&r, 0, IB_MAD_REQ), p = rep(&q), u = rtu(&p);
	struct ib_mad m = {.type = IB_MAD_MRA,
			   .mra = {.remote_comm = q.req.local_comm, .message = IB_MAD_OF_REP}};
	struct hca_ctl_cm_event e;

	rig_inject(&r, 0, stranger, &p);
	assert_int_equal(rig_counter(&r, 0, "cm_drop_address"), 1);
	p.rep.remote_comm++;
	inject(&p);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 6);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.message, IB_MAD_OF_REP);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.remote_comm, PEER_COMM);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.local_comm, p.rep.remote_comm);
	u.rtu.remote_comm = q.req.local_comm;
	inject(&u);
	inject(&m);
	assert_int_equal(rig_counter(&r, 0, "cm_drop_state"), 2);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_CONNECTING);
	/* destroyed: the peer is told, and its late REP is refused */
	assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 4);
	p.rep.remote_comm--;
	inject(&p);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 6);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 3);
	assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
	rig_end(&r);
}

/* The peer accepts with a QP of a connection here: stale, or being ended and over. */
static void
test_stale_rep(void **state)
{
	struct hca_ctl_cm_event e;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t id = connecting(), second;
		struct ib_mad p = rep(rig_last(&r, 0, IB_MAD_REQ));

		inject(&p);
		(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
		assert_int_equal(rig_establish(&r, 0, CLIENT, id), 0);
		second = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, peer, PORT);
		assert_int_equal(rig_connect(&r, 0, CLIENT, second, QP_A + 1, NULL), 0);
		if (i == 1)
			assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
		p = rep(rig_last(&r, 0, IB_MAD_REQ));
		p.rep.local_comm++;
		inject(&p);
		assert_int_equal(rig_count(&r, 0, IB_MAD_DREQ), 1);
		assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), i == 0);
		assert_int_equal(rig_event(&r, 0, CLIENT, CH, &e), i == 1);
		if (i == 0)
			assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 10);
		rig_end(&r);
	}
}

/* The port of the peer has a smaller MTU: the REQ goes again with that, once for each. */
static void
test_smaller_mtu(void **state)
{
	uint32_t id = connecting();
	struct ib_mad q = *rig_last(&r, 0, IB_MAD_REQ), p = rep(&q);
	struct ib_mad j = {.type = IB_MAD_REJ,
			   .transaction = q.transaction,
			   .rej = {.remote_comm = q.req.local_comm,
				   .message = IB_MAD_OF_REQ,
				   .reason = IB_MAD_REASON_MTU,
				   .info_len = 1,
				   .info = {2}}};
	struct hca_ctl_cm_ask ask = {.id = id, .qp_state = HCA_QPS_RTR};
	struct hca_ctl_cm_attr attr;

	inject(&j);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REQ), 2);
	q.req.mtu = 2;
	assert_memory_equal(&rig_last(&r, 0, IB_MAD_REQ)->req, &q.req, sizeof(q.req));
	inject(&p);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_QP_ATTR, &ask, &attr), 0);
	assert_int_equal(attr.path_mtu, 2);
	rig_end(&r);
	/* none that is smaller, none at all */
	for (uint32_t i = 0; i < 3; i++) {
		(void)connecting();
		j.rej.remote_comm = rig_last(&r, 0, IB_MAD_REQ)->req.local_comm;
		j.rej.info[0] = i == 0 ? 3 : 0;
		j.rej.info_len = i < 2;
		inject(&j);
		(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_REJECTED);
		assert_int_equal(rig_count(&r, 0, IB_MAD_REQ), 1);
		rig_end(&r);
	}
}

/* ---- the passive end ---- */

static struct hca_ctl_cm_event
requested(const struct ib_mad *q)
{
	rig_begin(&r, 1, NULL);
	(void)rig_listener(&r, 0, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	inject(q);
	return rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
}

/* The addresses of the rig are there before it begins. */
static struct ib_mad
first_req(void)
{
	rig_begin(&r, 1, NULL);
	rig_end(&r);
	return req(PEER_COMM, PEER_QP);
}

static void
test_passive_end(void **state)
{
	struct ib_mad q = first_req(), p, u, again;
	struct hca_ctl_cm_event e = requested(&q);
	uint32_t id = e.id;

	/* it comes again: the program has not answered yet */
	inject(&q);
	assert_int_equal(rig_count(&r, 0, IB_MAD_MRA), 1);
	assert_int_equal(rig_last(&r, 0, IB_MAD_MRA)->mra.message, IB_MAD_OF_REQ);
	assert_int_equal(rig_last(&r, 0, IB_MAD_MRA)->mra.service_timeout, 24);
	assert_int_equal(rig_accept(&r, 0, SERVER, id, QP_A, "welcome"), 0);
	p = *rig_last(&r, 0, IB_MAD_REP);
	assert_int_equal(p.transaction, TRANSACTION);
	assert_int_equal(p.rep.remote_comm, PEER_COMM);
	assert_int_equal(p.rep.qpn, QP_A);
	assert_int_equal(p.rep.responder_resources, 4);
	assert_int_equal(p.rep.initiator_depth, 5);
	assert_int_equal(p.rep.ack_delay, 15);
	assert_int_equal(p.rep.ca_guid, 0x1000);
	assert_string_equal((const char *)p.rep.private, "welcome");
	/* and again: the REP was lost; it is the same */
	inject(&q);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REP), 2);
	again = *rig_last(&r, 0, IB_MAD_REP);
	assert_memory_equal(&again, &p, sizeof(p));
	u = rtu(&p);
	inject(&u);
	inject(&u);
	e = rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
	assert_false(rig_event(&r, 0, SERVER, CH, &e));
	assert_int_equal(rig_counter(&r, 0, "cm_now_halves"), 0);
	rig_run(&r, 100 * RIG_SECOND);
	assert_int_equal(r.sent, 3);
	rig_end(&r);
}

/* The program is slow: an MRA goes before the peer's time for the answer is over, once. */
static void
test_mra_sent(void **state)
{
	struct ib_mad q = first_req();

	(void)requested(&q);
	rig_run(&r, 3 * RIG_SECOND);
	assert_int_equal(r.sent, 0);
	rig_run(&r, 3 * RIG_SECOND / 2); /* 4.29 s are the time in the REQ */
	assert_int_equal(rig_count(&r, 0, IB_MAD_MRA), 1);
	assert_true(r.log[0].at < RIG_SECOND + ib_time(20));
	rig_run(&r, 100 * RIG_SECOND);
	assert_int_equal(r.sent, 1);
	rig_end(&r);
}

/* A REP that nothing answers: as often as the REQ says, then UNREACHABLE. */
static void
test_rep_unanswered(void **state)
{
	struct ib_mad q = first_req();
	struct hca_ctl_cm_event e;

	q.req.max_retries = 3;
	e = requested(&q);
	assert_int_equal(rig_accept(&r, 0, SERVER, e.id, QP_A, NULL), 0);
	rig_run(&r, 100 * RIG_SECOND);
	e = rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_UNREACHABLE);
	assert_int_equal(e.status, -ETIMEDOUT);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REP), 4);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 4);
	assert_int_equal(rig_counter(&r, 0, "cm_now_halves"), 0);
	rig_end(&r);
}

/* Times of 0 in the REQ and an MRA of 68.7 s: the REP goes on at the pace of the first wait. */
static void
test_rep_to_hasty_peer(void **state)
{
	struct ib_mad q = first_req(), mra = {.type = IB_MAD_MRA, .transaction = TRANSACTION};
	struct hca_ctl_cm_event e;

	q.req.local_timeout = q.req.remote_timeout = q.req.primary_ack_timeout = 0;
	e = requested(&q);
	assert_int_equal(rig_accept(&r, 0, SERVER, e.id, QP_A, NULL), 0);
	mra.mra.local_comm = PEER_COMM;
	mra.mra.remote_comm = rig_last(&r, 0, IB_MAD_REP)->rep.local_comm;
	mra.mra.message = IB_MAD_OF_REP;
	mra.mra.service_timeout = 24;
	inject(&mra);
	rig_run(&r, 10 * RIG_SECOND);
	assert_in_range(rig_count(&r, 0, IB_MAD_REP), 10, 40);
	rig_end(&r);
}

/* The text of a refusal is kept: the program is not asked again. */
static void
test_refusal_again(void **state)
{
	struct ib_mad q = first_req();
	struct hca_ctl_cm_event e = requested(&q);

	assert_int_equal(rig_reject(&r, 0, SERVER, e.id, "no"), 0);
	assert_int_equal(rig_destroy(&r, 0, SERVER, e.id), 0);
	inject(&q);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 2);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 28);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.message, IB_MAD_OF_REQ);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.local_comm, 0);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.remote_comm, PEER_COMM);
	assert_string_equal((const char *)rig_last(&r, 0, IB_MAD_REJ)->rej.private, "no");
	assert_false(rig_event(&r, 0, SERVER, CH, &e));
	rig_run(&r, 20 * RIG_SECOND);
	assert_int_equal(rig_counter(&r, 0, "cm_now_halves"), 0);
	rig_end(&r);
}

/* The peer gives up: a REJ names the connection by its GUID and number. */
static void
test_peer_gives_up(void **state)
{
	struct ib_mad q = first_req();
	struct ib_mad j = {
		.type = IB_MAD_REJ,
		.rej = {.local_comm = PEER_COMM,
			.message = IB_MAD_OF_OTHER,
			.reason = IB_MAD_REASON_TIMEOUT,
			.info_len = 8},
	};
	struct hca_ctl_cm_event e = requested(&q);

	hca_put_be64(j.rej.info, PEER_GUID);
	inject(&j);
	e = rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_REJECTED);
	assert_int_equal(e.status, 4);
	assert_int_equal(rig_accept(&r, 0, SERVER, e.id, QP_A, NULL), -EINVAL);
	/* before the program has fetched the request it does not learn of it */
	q.req.local_comm = j.rej.local_comm = PEER_COMM + 1;
	inject(&q);
	assert_int_equal(rig_counter(&r, 0, "cm_now_halves"), 1);
	inject(&j);
	assert_int_equal(rig_counter(&r, 0, "cm_now_halves"), 0);
	assert_false(rig_event(&r, 0, SERVER, CH, &e));
	rig_end(&r);
}

static uint32_t
established(struct ib_mad *q, struct ib_mad *p)
{
	struct hca_ctl_cm_event e;
	struct ib_mad u;

	*q = first_req();
	e = requested(q);
	assert_int_equal(rig_accept(&r, 0, SERVER, e.id, QP_A, NULL), 0);
	*p = *rig_last(&r, 0, IB_MAD_REP);
	u = rtu(p);
	inject(&u);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
	return e.id;
}

/* The peer begins again with a QP that is in a connection here: it has restarted. */
static void
test_stale(void **state)
{
	struct ib_mad q, p, d;
	uint32_t id = established(&q, &p);
	struct hca_ctl_cm_event e;

	q.req.local_comm++;
	inject(&q);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 10);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.remote_comm, PEER_COMM + 1);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREQ), 1);
	assert_int_equal(rig_last(&r, 0, IB_MAD_DREQ)->dreq.remote_qpn, PEER_QP);
	assert_int_equal(rig_last(&r, 0, IB_MAD_DREQ)->dreq.remote_comm, PEER_COMM);
	d = (struct ib_mad){.type = IB_MAD_DREP,
			    .drep = {.local_comm = PEER_COMM, .remote_comm = p.rep.local_comm}};
	inject(&d);
	e = rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_DISCONNECTED);
	assert_int_equal(e.id, id);
	/* now it may */
	inject(&q);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	/* the same from another address is another peer */
	assert_int_equal(rig_counter(&r, 0, "cm_stale"), 1);
	rig_end(&r);
}

/* The peer tries again with the same QP: refused, given up, or ended here before. */
static void
test_same_qp_again(void **state)
{
	struct ib_mad q = first_req(), p;
	struct hca_ctl_cm_event e = requested(&q);
	uint32_t id;

	assert_int_equal(rig_reject(&r, 0, SERVER, e.id, "no"), 0);
	q.req.local_comm++;
	inject(&q);
	e = rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	id = e.id;
	assert_int_equal(rig_accept(&r, 0, SERVER, id, QP_A, NULL), 0);
	q.req.local_comm++;
	inject(&q);
	e = rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_REJECTED);
	assert_int_equal(e.id, id);
	assert_int_equal(e.status, 10);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 1);
	rig_end(&r);
	id = established(&q, &p);
	assert_int_equal(rig_disconnect(&r, 0, SERVER, id), 0);
	q.req.local_comm++;
	inject(&q);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_DISCONNECTED);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 0);
	rig_end(&r);
}

/* A DREQ before the RTU: the peer was established, so the program gets both events. */
static void
test_dreq_before_rtu(void **state)
{
	struct ib_mad q = first_req(), p, d;
	struct hca_ctl_cm_event e = requested(&q);

	assert_int_equal(rig_accept(&r, 0, SERVER, e.id, QP_A, NULL), 0);
	p = *rig_last(&r, 0, IB_MAD_REP);
	d = dreq(PEER_COMM, p.rep.local_comm, QP_A);
	inject(&d);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_DISCONNECTED);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREP), 1);
	rig_end(&r);
}

/* The server destroys its id after its REP: REJ, and DREQ until the peer confirms. */
static void
test_destroyed_after_rep(void **state)
{
	struct ib_mad q = first_req(), p, d;
	struct hca_ctl_cm_event e = requested(&q);

	assert_int_equal(rig_accept(&r, 0, SERVER, e.id, QP_A, NULL), 0);
	p = *rig_last(&r, 0, IB_MAD_REP);
	assert_int_equal(rig_destroy(&r, 0, SERVER, e.id), 0);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 1);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, 28);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.message, IB_MAD_OF_OTHER);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.local_comm, p.rep.local_comm);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREQ), 0);
	inject(&q);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), 2);
	rig_run(&r, RIG_SECOND);
	assert_true(rig_count(&r, 0, IB_MAD_DREQ) > 0);
	d = (struct ib_mad){.type = IB_MAD_DREP,
			    .drep = {.local_comm = PEER_COMM, .remote_comm = p.rep.local_comm}};
	inject(&d);
	rig_run(&r, 20 * RIG_SECOND);
	assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
	rig_end(&r);
}

/* A late REJ of the REQ does not end an established connection; one of the REP does. */
static void
test_rej_of_established(void **state)
{
	struct ib_mad q, p;
	uint32_t id = established(&q, &p);
	struct ib_mad j = {.type = IB_MAD_REJ,
			   .rej = {.local_comm = PEER_COMM,
				   .remote_comm = p.rep.local_comm,
				   .message = IB_MAD_OF_REQ,
				   .reason = IB_MAD_REASON_STALE}};

	inject(&j);
	assert_int_equal(rig_state(&r, 0, SERVER, id), HCA_CTL_CM_ESTABLISHED);
	j.rej.message = IB_MAD_OF_REP;
	rig_inject(&r, 0, stranger, &j);
	assert_int_equal(rig_state(&r, 0, SERVER, id), HCA_CTL_CM_ESTABLISHED);
	inject(&j);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_DISCONNECTED);
	rig_end(&r);
}

/* ---- REQs that no listener gets ---- */

static void
test_bad_reqs(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		uint16_t reason;
	} bad[] = {
#define BAD(member, index, value, reason) \
	{offsetof(struct ib_mad, req.member) + (index), (value), (reason)}
		BAD(primary_local_gid, 15, 99, 12),
		BAD(primary_remote_gid, 15, 99, 12),
		BAD(mtu, 0, 4, 26),
		BAD(mtu, 0, 0, 26),
		BAD(mtu, 0, 15, 26),
		BAD(pkey, 0, 1, 5),
		BAD(transport, 0, IB_MAD_UC, 9),
		BAD(transport, 0, IB_MAD_RD, 9),
		BAD(transport, 0, IB_MAD_EXTENDED, 9),
		BAD(service_id, 0, 0, 8),
		BAD(service_id, 2, 7, 8),
		BAD(service_id, 7, 1, 8),
		BAD(private, 0, 1, 8),
		BAD(private, 1, 0x50, 8),
		BAD(private, 35, 99, 8),
	};
	struct ib_mad good = first_req();
	uint32_t n = sizeof(bad) / sizeof(bad[0]);
	struct hca_ctl_cm_event e;

	rig_begin(&r, 1, NULL);
	(void)rig_listener(&r, 0, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < n; i++) {
		struct ib_mad q = good;

		((uint8_t *)&q)[bad[i].at] = bad[i].value;
		inject(&q);
		assert_int_equal(rig_count(&r, 0, IB_MAD_REJ), i + 1);
		assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.reason, bad[i].reason);
		assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.remote_comm, PEER_COMM);
		assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->transaction, TRANSACTION);
		if (bad[i].reason == 26)
			assert_int_equal(rig_last(&r, 0, IB_MAD_REJ)->rej.info[0], 3);
	}
	assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
	assert_false(rig_event(&r, 0, SERVER, CH, &e));
	inject(&good);
	(void)rig_expect(&r, 0, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	rig_end(&r);
}

/* A datagram's question is no connection: the peer cannot end it by DREQ. */
static void
test_dreq_of_datagram(void **state)
{
	struct ib_mad mad = {.type = IB_MAD_DREQ};
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_UDP, peer, PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, NULL), 0);
	mad.dreq.local_comm = PEER_COMM;
	mad.dreq.remote_comm = rig_last(&r, 0, IB_MAD_SIDR_REQ)->sidr_req.request;
	mad.dreq.remote_qpn = QP_A;
	rig_inject(&r, 0, peer, &mad);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_CONNECTING);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREP), 0);
	assert_int_equal(rig_counter(&r, 0, "cm_drop_state"), 1);
	rig_end(&r);
}

/* LAP is answered: alternate paths are not offered over RoCE. */
static void
test_lap(void **state)
{
	struct ib_mad q, p;
	struct ib_mad l = {.type = IB_MAD_LAP, .transaction = 5};

	(void)established(&q, &p);
	l.lap.local_comm = PEER_COMM;
	l.lap.remote_comm = p.rep.local_comm;
	inject(&l);
	assert_int_equal(rig_last(&r, 0, IB_MAD_APR)->apr.status, IB_MAD_APR_UNSUPPORTED);
	assert_int_equal(rig_last(&r, 0, IB_MAD_APR)->apr.remote_comm, PEER_COMM);
	l.lap.remote_comm++;
	inject(&l);
	assert_int_equal(rig_last(&r, 0, IB_MAD_APR)->apr.status, IB_MAD_APR_COMM_ID);
	l = (struct ib_mad){.type = IB_MAD_APR};
	inject(&l);
	assert_int_equal(rig_counter(&r, 0, "cm_drop_service"), 1);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_req),
		cmocka_unit_test(test_active_end),
		cmocka_unit_test(test_mra_received),
		cmocka_unit_test(test_strange_answers),
		cmocka_unit_test(test_stale_rep),
		cmocka_unit_test(test_smaller_mtu),
		cmocka_unit_test(test_passive_end),
		cmocka_unit_test(test_mra_sent),
		cmocka_unit_test(test_rep_unanswered),
		cmocka_unit_test(test_rep_to_hasty_peer),
		cmocka_unit_test(test_refusal_again),
		cmocka_unit_test(test_peer_gives_up),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_same_qp_again),
		cmocka_unit_test(test_dreq_before_rtu),
		cmocka_unit_test(test_destroyed_after_rep),
		cmocka_unit_test(test_rej_of_established),
		cmocka_unit_test(test_bad_reqs),
		cmocka_unit_test(test_dreq_of_datagram),
		cmocka_unit_test(test_lap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
