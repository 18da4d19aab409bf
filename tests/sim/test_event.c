/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Asynchronous events from their origin to get_async_event(), and their side effects: overrun CQs,
 * errors of the responder, a drained queue, the link, addresses, acknowledgement.
 */

#include <pthread.h>
#include <unistd.h>

#include "lib_types.h"
#include "sim_duo.h"
#include "sim_test.h"
#include "../set_pkey.h"

#define PROGRAM "test_event"

/* The next event of side 0 must have that type and, unless NULL, that object. */
static void
expect(struct sim *s, uint32_t type, const void *object)
{
	struct softhca_async_event e;
	bool got = sim_async(s->side[0].ctx, &e);

	sim_check(s, got, "no event, %s is expected", softhca_event_type_str(type));
	sim_check(s, e.event_type == type, "%s, not %s", softhca_event_type_str(e.event_type),
		  softhca_event_type_str(type));
	sim_check(s, object == NULL || e.element.qp == object, "%s of something else",
		  softhca_event_type_str(type));
	softhca_ack_async_event(&e);
}

static void
expect_none(struct sim *s, unsigned int side)
{
	struct softhca_async_event e;

	if (sim_async(s->side[side].ctx, &e))
		sim_fail(s, "side %u: unexpected %s", side, softhca_event_type_str(e.event_type));
}

static struct softhca_cq *
small_cq(struct sim *s, uint32_t cqe)
{
	struct softhca_cq_init_attr ca = {.cqe = cqe};
	struct softhca_cq *cq = softhca_create_cq(s->side[0].ctx, &ca);

	sim_check(s, cq != NULL, "create_cq");
	return cq;
}

/* --- CQs that overrun -------------------- */

/*
 * A CQ of 8 entries accepts 8; then it is in error: one event, its QPs fail, and further
 * completions are counted and dropped. A QP with another CQ is not affected.
 */
static void
overrun_one(struct sim *s, bool receive)
{
	struct softhca_cq *cq = small_cq(s, 8);
	struct sim_duo d = {0}, other = {0};
	unsigned int errors = 0;
	uint64_t lost;

	*(receive ? &d.rcq[0] : &d.scq[0]) = cq;
	sim_duo_open(s, &d);
	sim_duo_open(s, &other);
	expect_none(s, 0);
	lost = sim_counter(s, 0, "cqe_overrun") + sim_counter(s, 0, "cqe_dead_cq");
	if (receive) {
		sim_duo_recv(&d, 0, 64, 20);
		sim_duo_post(&d, 1, SOFTHCA_WR_SEND, 64, 9, 0);
	} else {
		sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 64, 20, 0);
	}
	sim_duo_send(&other, 0, 10, 0);
	sim_settle(s);
	expect(s, SOFTHCA_EVENT_CQ_ERR, cq);
	expect_none(s, 0);
	sim_check(s, sim_qp_state(s, d.qp[0]) == SOFTHCA_QPS_ERR, "the QP lives");
	sim_check(s,
		  sim_counter(s, 0, "cqe_overrun") + sim_counter(s, 0, "cqe_dead_cq") - lost == 12,
		  "not 12 completions counted as lost");
	sim_check(s, sim_cq_drain(cq, &errors) == 8 && errors == 0, "what was in the CQ");
	sim_check(s, sim_cq_drain(cq, NULL) == 0, "a CQE behind the overrun");
	sim_check(s, sim_qp_state(s, other.qp[0]) == SOFTHCA_QPS_RTS, "the other QP");
	sim_duo_send(&other, 1, 10, 0);
	sim_settle(s);
	sim_check(s, sim_cq_drain(other.scq[0], &errors) == 20 && errors == 0, "the other CQ");
	sim_duo_close(&other);
	sim_duo_close(&d);
	sim_check(s, softhca_destroy_cq(cq) == 0, "destroy_cq");
}

static void
overrun_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	overrun_one(s, false);
	overrun_one(s, true);
	sim_close(s);
}
SIM_TEST(overrun)

/* A CQ that ignores overruns loses completions without room; its QP goes on. */
static void
overrun_ignored_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_cq_init_attr ca = {.cqe = 8, .flags = SOFTHCA_IGNORE_OVERRUN};
	struct softhca_cq *cq = softhca_create_cq(s->side[0].ctx, &ca);
	struct sim_duo d = {.scq = {cq}};
	unsigned int errors = 0;
	uint64_t lost;

	sim_duo_open(s, &d);
	lost = sim_counter(s, 0, "cqe_overrun");
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 64, 20, 0);
	sim_settle(s);
	expect_none(s, 0);
	sim_check(s, sim_counter(s, 0, "cqe_overrun") - lost == 12, "not 12 lost");
	sim_check(s, sim_qp_state(s, d.qp[0]) == SOFTHCA_QPS_RTS, "the QP failed");
	sim_check(s, sim_cq_drain(cq, &errors) == 8 && errors == 0, "what was in the CQ");
	/* the library takes the WQEs of those that were lost back with the next completion */
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 64, 5, 0);
	sim_settle(s);
	sim_check(s, sim_cq_drain(cq, &errors) == 5 && errors == 0, "what came later");
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 64, 64, 0);
	sim_settle(s);
	sim_check(s, sim_cq_drain(cq, &errors) == 8 && errors == 0, "a full send queue");
	sim_duo_close(&d);
	sim_check(s, softhca_destroy_cq(cq) == 0, "destroy_cq");
	sim_close(s);
}
SIM_TEST(overrun_ignored)

/* Three QPs on one CQ, as SQ, RQ and both: all fail together, the event comes once. */
static void
overrun_shared_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_cq *cq = small_cq(s, 4);
	struct sim_duo d[3] = {{.scq = {cq}}, {.rcq = {cq}}, {.scq = {cq}, .rcq = {cq}}};
	struct softhca_qp_attr again = {.qp_state = SOFTHCA_QPS_RESET};

	for (unsigned int i = 0; i < 3; i++)
		sim_duo_open(s, &d[i]);
	sim_duo_recv(&d[1], 0, 64, 8);
	sim_duo_recv(&d[2], 0, 64, 8);
	sim_duo_post(&d[0], 0, SOFTHCA_WR_RDMA_WRITE, 64, 8, 0);
	sim_settle(s);
	expect(s, SOFTHCA_EVENT_CQ_ERR, cq);
	for (unsigned int i = 0; i < 3; i++)
		sim_check(s, sim_qp_state(s, d[i].qp[0]) == SOFTHCA_QPS_ERR, "QP %u lives", i);
	/* from here on it accepts nothing from any QP */
	sim_check(s, softhca_modify_qp(d[0].qp[0], &again, SOFTHCA_QP_STATE) == 0, "to RESET");
	sim_check(s, sim_cq_drain(cq, NULL) == 0, "completions of a QP in RESET");
	sim_settle(s);
	expect_none(s, 0);
	for (unsigned int i = 0; i < 3; i++)
		sim_duo_close(&d[i]);
	sim_check(s, softhca_destroy_cq(cq) == 0, "destroy_cq");
	sim_close(s);
}
SIM_TEST(overrun_shared)

/* --- QPs -------------------- */

static void
comm_est_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_duo d = {.stay_rtr = true};

	sim_duo_open(s, &d);
	sim_settle(s);
	expect_none(s, 0);
	sim_duo_send(&d, 1, 3, 0);
	sim_settle(s);
	expect(s, SOFTHCA_EVENT_COMM_EST, d.qp[0]);
	expect_none(s, 0);
	expect_none(s, 1);
	sim_duo_rts(&d, 0);
	sim_duo_send(&d, 1, 3, 0);
	sim_settle(s);
	expect_none(s, 0);
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(comm_est)

static void
sq_drained_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_SQD, .en_sqd_async_notify = 1};
	struct sim_duo d = {0};

	sim_duo_open(s, &d);
	for (unsigned int i = 0; i < 3; i++) {
		/* requested, refused, not mentioned */
		uint32_t mask = SOFTHCA_QP_STATE | (i < 2 ? SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY : 0);

		a.qp_state = SOFTHCA_QPS_SQD;
		a.en_sqd_async_notify = i == 0;
		sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 8192, 4, 0);
		sim_check(s, softhca_modify_qp(d.qp[0], &a, mask) == 0, "to SQD: %s",
			  softhca_last_error(s->side[0].ctx));
		sim_settle(s);
		if (i == 0)
			expect(s, SOFTHCA_EVENT_SQ_DRAINED, d.qp[0]);
		expect_none(s, 0);
		a.qp_state = SOFTHCA_QPS_RTS;
		sim_check(s, softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_STATE) == 0, "to RTS");
		sim_settle(s);
		sim_check(s, sim_cq_drain(d.scq[0], NULL) == 4, "completions");
	}
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(sq_drained)

static void
lie_about_receives(struct sim_duo *d)
{
	struct lib_qp *qp = (struct lib_qp *)d->qp[0];

	__atomic_store_n(&qp->rq_record->producer, hca_cpu_to_le32(1000), __ATOMIC_RELEASE);
	sim_duo_post(d, 1, SOFTHCA_WR_SEND, 64, 1, 0);
}

static void
write_with_wrong_key(struct sim_duo *d)
{
	d->mr[0]->rkey ^= 0x100;
	sim_duo_post(d, 1, SOFTHCA_WR_RDMA_WRITE, 64, 1, 0);
	d->mr[0]->rkey ^= 0x100;
}

static void
unaligned_atomic(struct sim_duo *d)
{
	struct softhca_sge sge = {(uintptr_t)d->buf[1], 8, d->mr[1]->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = (uintptr_t)d->buf[0] + 4, .rkey = d->mr[0]->rkey},
	};
	struct softhca_send_wr *bad;

	sim_check(d->s, softhca_post_send(d->qp[1], &wr, &bad) == 0, "unaligned atomic: %s",
		  softhca_last_error(d->s->side[1].ctx));
}

static const struct {
	const char *name;
	void (*provoke)(struct sim_duo *d);
	uint32_t event;
} wrongs[] = {
	{"a lie about receives", lie_about_receives, SOFTHCA_EVENT_QP_FATAL},
	{"a wrong key", write_with_wrong_key, SOFTHCA_EVENT_QP_ACCESS_ERR},
	{"an unaligned atomic", unaligned_atomic, SOFTHCA_EVENT_QP_REQ_ERR},
};

/* Effects of the peer, or of the owner's own memory, on a QP. */
static void
responder_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct sim_duo d = {0}, other = {0};

		sim_duo_open(s, &d);
		sim_duo_open(s, &other);
		wrongs[i].provoke(&d);
		sim_settle(s);
		sim_check(s, sim_qp_state(s, d.qp[0]) == SOFTHCA_QPS_ERR, "%s: the QP lives",
			  wrongs[i].name);
		expect(s, wrongs[i].event, d.qp[0]);
		expect_none(s, 0);
		sim_check(s, sim_qp_state(s, other.qp[0]) == SOFTHCA_QPS_RTS, "another QP");
		sim_duo_close(&d);
		sim_duo_close(&other);
	}
	sim_close(s);
}
SIM_TEST(responder)

/* --- the port -------------------- */

static uint32_t
port_state(struct sim *s)
{
	struct softhca_port_attr a;

	sim_check(s, softhca_query_port(s->side[0].ctx, 1, &a) == 0, "query_port");
	return a.state;
}

/* The link goes down and up during traffic; every client gets the events. */
static void
link_state_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_context *second = sim_client(s, 0);
	struct softhca_async_event e;
	struct sim_duo d = {0};

	sim_duo_open(s, &d);
	for (unsigned int round = 0; round < 3; round++) {
		sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 4096, 8, 0);
		hca_port_stall_link(s->side[0].stall, false);
		sim_run_for(s, 30000000);
		expect(s, SOFTHCA_EVENT_PORT_ERR, NULL);
		expect_none(s, 0);
		sim_check(s, sim_async(second, &e) && e.event_type == SOFTHCA_EVENT_PORT_ERR,
			  "the second client");
		sim_check(s, port_state(s) == SOFTHCA_PORT_DOWN, "port state");
		hca_port_stall_link(s->side[0].stall, true);
		sim_run_for(s, 30000000);
		expect(s, SOFTHCA_EVENT_PORT_ACTIVE, NULL);
		expect_none(s, 0);
		sim_check(s, sim_async(second, &e) && e.event_type == SOFTHCA_EVENT_PORT_ACTIVE,
			  "the second client");
		sim_check(s, port_state(s) == SOFTHCA_PORT_ACTIVE, "port state");
		sim_settle(s);
		sim_cq_drain(d.scq[0], NULL);
	}
	expect_none(s, 1);
	sim_duo_close(&d);
	sim_check(s, softhca_close(second) == 0, "close");
	sim_close(s);
}
SIM_TEST(link_state)

static void
addresses_in(const struct sim_config *cfg)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct sim *s = sim_open(cfg);
	uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 99, 0, 1};

	expect_none(s, 0);
	sim_check(s, hca_driver_set_gid(s->side[0].drv, 6, gid, mac, 0xffff) == 0, "set_gid");
	expect(s, SOFTHCA_EVENT_GID_CHANGE, NULL);
	sim_check(s, hca_driver_set_gid(s->side[0].drv, 6, gid, mac, 0xffff) == 0, "set_gid");
	expect_none(s, 0);
	gid[15] = 7;
	sim_check(s, hca_driver_set_gid(s->side[0].drv, 6, gid, mac, 0xffff) == 0, "set_gid");
	expect(s, SOFTHCA_EVENT_GID_CHANGE, NULL);
	sim_check(s, set_pkey(s->side[0].drv, 2, 0x8005) == 0, "set_pkey");
	expect(s, SOFTHCA_EVENT_PKEY_CHANGE, NULL);
	sim_check(s, set_pkey(s->side[0].drv, 2, 0x8005) == 0, "set_pkey");
	expect_none(s, 0);
	sim_close(s);
}
SIM_TEST(addresses)

/* --- acknowledgement -------------------- */

struct destroyer {
	struct sim *s;
	struct softhca_qp *qp;
	struct softhca_cq *cq;
	int rc, done;
};

static void *
destroy(void *arg)
{
	struct destroyer *x = arg;
	int rc = x->qp != NULL ? softhca_destroy_qp(x->qp) : softhca_destroy_cq(x->cq);

	x->rc = rc;
	__atomic_store_n(&x->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Meanwhile only the thread runs the engine. Destruction must not finish before the event is
 * acknowledged.
 */
static void
destroy_unacknowledged(struct destroyer *x, struct softhca_async_event *e)
{
	pthread_t t;

	sim_check(x->s, pthread_create(&t, NULL, destroy, x) == 0, "thread");
	usleep(20000);
	sim_check(x->s, __atomic_load_n(&x->done, __ATOMIC_ACQUIRE) == 0, "destroyed too early");
	softhca_ack_async_event(e);
	pthread_join(t, NULL);
	sim_check(x->s, x->rc == 0, "destroy: %d", x->rc);
}

static void
acknowledge_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_cq *cq = small_cq(s, 2);
	struct sim_duo d = {.scq = {cq}};
	struct destroyer of_qp = {.s = s}, of_cq = {.s = s, .cq = cq};
	struct softhca_async_event cq_event, qp_event;

	sim_duo_open(s, &d);
	of_qp.qp = d.qp[0];
	write_with_wrong_key(&d);
	sim_settle(s);
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 8, 4, 0); /* all are flushed */
	sim_settle(s);
	sim_check(s, sim_async(s->side[0].ctx, &qp_event), "event of the QP");
	sim_check(s, qp_event.event_type == SOFTHCA_EVENT_QP_ACCESS_ERR, "QP: %s",
		  softhca_event_type_str(qp_event.event_type));
	sim_check(s, sim_async(s->side[0].ctx, &cq_event), "event of the CQ");
	sim_check(s, cq_event.event_type == SOFTHCA_EVENT_CQ_ERR, "CQ: %s",
		  softhca_event_type_str(cq_event.event_type));
	destroy_unacknowledged(&of_qp, &qp_event);
	destroy_unacknowledged(&of_cq, &cq_event);
	sim_check(s, softhca_dereg_mr(d.mr[0]) == 0, "dereg_mr");
	sim_check(s, softhca_destroy_cq(d.own[0]) == 0, "destroy_cq");
	sim_check(s, softhca_destroy_qp(d.qp[1]) == 0, "destroy_qp");
	sim_check(s, softhca_dereg_mr(d.mr[1]) == 0, "dereg_mr");
	sim_check(s, softhca_destroy_cq(d.own[1]) == 0, "destroy_cq");
	free(d.buf[0]);
	free(d.buf[1]);
	sim_close(s);
}
SIM_TEST(acknowledge)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overrun),	   cmocka_unit_test(overrun_shared),
		cmocka_unit_test(overrun_ignored), cmocka_unit_test(comm_est),
		cmocka_unit_test(sq_drained),	   cmocka_unit_test(responder),
		cmocka_unit_test(link_state),	   cmocka_unit_test(addresses),
		cmocka_unit_test(acknowledge),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
