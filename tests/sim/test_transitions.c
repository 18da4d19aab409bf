/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * modify_qp and query_qp as a program sees them: every pair of states for every type of QP, each
 * attribute left out or added, through library, driver and device. Query must return what was set;
 * a refused call changes nothing. PSNs equal those of the traffic.
 */

#include <errno.h>
#include <stdlib.h>

#include "../qp_transitions.h"
#include "abi_cmd.h"
#include "abi_roce.h"
#include "lib_types.h"
#include "sim_duo.h"
#include "sim_test.h"
#include "../set_pkey.h"

#define PROGRAM "test_transitions"

enum {
	RST = SOFTHCA_QPS_RESET,
	INIT = SOFTHCA_QPS_INIT,
	RTR = SOFTHCA_QPS_RTR,
	RTS = SOFTHCA_QPS_RTS,
	SQD = SOFTHCA_QPS_SQD,
	SQE = SOFTHCA_QPS_SQE,
	ERR = SOFTHCA_QPS_ERR,
	STATES
};

static const struct row {
	uint32_t from, to, services, required, optional;
} rows[] = {
#define X(from, to, command, services, required, optional) {from, to, services, required, optional},
	T_LIST(X)
#undef X
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct service {
	const char *name;
	uint32_t type, bit;
} services[] = {
	{"RC", SOFTHCA_QPT_RC, T_RC},
	{"UC", SOFTHCA_QPT_UC, T_UC},
	{"UD", SOFTHCA_QPT_UD, T_UD},
	{"XRC initiator", SOFTHCA_QPT_XRC_SEND, T_INI},
	{"XRC target", SOFTHCA_QPT_XRC_RECV, T_TGT},
};

static const struct t_more more[] = {HCA_QP_TRANSITION_LIST(T_MORE_ROW)};

#define SERVICES (sizeof(services) / sizeof(services[0]))

struct one {
	struct sim *s;
	const struct service *service;
	struct softhca_context *ctx;
	struct softhca_cq *cq;
	struct softhca_xrcd *xrcd;
	struct softhca_qp *qp;
	struct sim_rng rng;
};

static const struct row *
find(uint32_t from, uint32_t to, uint32_t service)
{
	for (unsigned int i = 0; i < ROWS; i++)
		if (rows[i].from == from && rows[i].to == to && rows[i].services & service)
			return &rows[i];
	return NULL;
}

static void
open_one(struct one *o, struct sim *s, const struct service *service)
{
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_xrcd_init_attr xa = {0};
	struct softhca_qp_init_attr_ex a = {
		.qp_type = service->type,
		.cap = {.max_send_wr = 8, .max_send_sge = 1},
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = s->side[0].pd,
	};

	sim_check(s, set_pkey(s->side[0].drv, 1, 0x8123) == 0, "set_pkey");
	*o = (struct one){.s = s, .service = service, .ctx = s->side[0].ctx, .rng = {s->cfg.seed}};
	o->cq = softhca_create_cq(o->ctx, &ca);
	a.send_cq = a.recv_cq = o->cq;
	if (service->bit & (T_RC | T_UC | T_UD))
		a.cap.max_recv_wr = a.cap.max_recv_sge = 1;
	if (service->bit == T_TGT) {
		xa.fd = -1;
		o->xrcd = softhca_open_xrcd(o->ctx, &xa);
		a = (struct softhca_qp_init_attr_ex){.qp_type = service->type,
						     .comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD,
						     .xrcd = o->xrcd};
	}
	o->qp = softhca_create_qp_ex(o->ctx, &a);
	sim_check(s, o->qp != NULL, "create_qp %s: %s", service->name, softhca_last_error(o->ctx));
}

static void
close_one(struct one *o)
{
	sim_check(o->s, softhca_destroy_qp(o->qp) == 0, "destroy_qp");
	if (o->xrcd != NULL)
		sim_check(o->s, softhca_close_xrcd(o->xrcd) == 0, "close_xrcd");
	sim_check(o->s, softhca_destroy_cq(o->cq) == 0, "destroy_cq");
}

/* ---- attributes ---- */

static struct softhca_ah_attr
random_address(struct one *o)
{
	struct softhca_ah_attr a = {
		.flow_label = sim_below(&o->rng, 0x100000),
		.sgid_index = (uint8_t)sim_below(&o->rng, SIM_GIDS),
		.hop_limit = (uint8_t)(1 + sim_below(&o->rng, 255)),
		.traffic_class = (uint8_t)sim_below(&o->rng, 256),
		.sl = (uint8_t)sim_below(&o->rng, 8),
		.static_rate = (uint8_t)(2 + sim_below(&o->rng, 20)),
		.port_num = 1,
		.is_global = 1,
	};

	sim_gid(1, a.sgid_index, a.dgid.raw);
	return a;
}

static uint32_t
random_value(struct sim_rng *r, uint32_t min, uint32_t max, enum hca_qp_attr_rule rule)
{
	uint32_t value = min + sim_below(r, max == HCA_ATTR_ANY ? max : max - min + 1);

	return rule == HCA_QP_ATTR_CUT ? value & max : value;
}

/* Valid values of all attributes. */
static struct softhca_qp_attr
random_attr(struct one *o, uint32_t to)
{
	const struct hca_ctl_info *info = &((struct lib_context *)o->ctx)->info;
	struct softhca_qp_attr a = {.qp_state = to, .cur_qp_state = o->qp->state};
	struct sim_rng *r = &o->rng;

#define RANDOM(attr, member, word, field, min, max, limit, rule, verbs) \
	a.member = (__typeof__(a.member))random_value(r, min, limit, HCA_QP_ATTR_##rule);
	HCA_QP_FIELD_LIST(RANDOM)
#undef RANDOM
	a.ah_attr = random_address(o);
	a.alt_ah_attr = random_address(o);
	a.path_mig_state = SOFTHCA_MIG_MIGRATED;
	/* those that have a P_Key */
	a.pkey_index = (uint16_t)sim_below(r, 2);
	a.alt_pkey_index = (uint16_t)sim_below(r, 2);
	/* more would have to be allocated before RTR */
	a.max_dest_rd_atomic = (uint8_t)sim_below(r, 17);
	return a;
}

#define FIELD(attr, member, ...) \
	{HCA_QP_ATTR_##attr, offsetof(struct softhca_qp_attr, member), \
	 sizeof(((struct softhca_qp_attr *)0)->member), #member},

static const struct {
	uint32_t attr;
	size_t off, len;
	const char *name;
} fields[] = {HCA_QP_FIELD_LIST(FIELD) HCA_QP_PATH_LIST(FIELD, AV, ah_attr, path)
		      FIELD(AV, ah_attr.dgid) FIELD(ALT_PATH, alt_ah_attr)};

static struct softhca_qp_attr
query(struct one *o)
{
	struct softhca_qp_attr a;

	sim_check(o->s, softhca_query_qp(o->qp, &a, 0, NULL) == 0, "query_qp: %s",
		  softhca_last_error(o->ctx));
	return a;
}

/* Attributes in the mask are as in `set`, others as in `before`. */
static void
check_fields(struct one *o, uint32_t mask, const struct softhca_qp_attr *before,
	     const struct softhca_qp_attr *set)
{
	const struct softhca_qp_attr is = query(o);

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct softhca_qp_attr *due = mask & fields[i].attr ? set : before;

		sim_check(o->s,
			  memcmp((const char *)&is + fields[i].off,
				 (const char *)due + fields[i].off, fields[i].len) == 0,
			  "%s, mask %#x: %s is another one", o->service->name, mask,
			  fields[i].name);
	}
}

/* ---- walking ---- */

static void
step(struct one *o, uint32_t to)
{
	const struct row *w = find(o->qp->state, to, o->service->bit);
	struct softhca_qp_attr a = random_attr(o, to);
	int rc = w != NULL ? softhca_modify_qp(o->qp, &a, w->required | T_STATE) : -ENOENT;

	sim_check(o->s, rc == 0, "%s to %s: %s", o->service->name, softhca_qp_state_str(to),
		  softhca_last_error(o->ctx));
}

/* A request that fails to be gathered. */
static void
send_error(struct one *o)
{
	struct softhca_ah_attr where = random_address(o);
	struct softhca_ah *ah = softhca_create_ah(o->s->side[0].pd, &where);
	struct softhca_sge sge = {0x1000, 64, 0x12345678};
	struct softhca_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = SOFTHCA_WR_SEND};
	struct softhca_send_wr *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 77;
	sim_check(o->s, ah != NULL && softhca_post_send(o->qp, &wr, &bad) == 0, "post_send: %s",
		  softhca_last_error(o->ctx));
	sim_settle(o->s);
	softhca_destroy_ah(ah);
	sim_check(o->s, sim_qp_state(o->s, o->qp) == SOFTHCA_QPS_SQE, "not in SQE");
	sim_cq_drain(o->cq, NULL);
}

static void
to_state(struct one *o, uint32_t state)
{
	if (o->qp->state != RST)
		step(o, RST);
	if (state != RST)
		step(o, INIT);
	if (state == ERR)
		step(o, ERR);
	if (state != RST && state != INIT && state != ERR)
		step(o, RTR);
	if (state == RTS || state == SQD || state == SQE)
		step(o, RTS);
	if (state == SQD)
		step(o, SQD);
	if (state == SQE)
		send_error(o);
}

/* SQE exists only for services that keep the connection after send errors. */
static bool
reachable(const struct one *o, uint32_t state)
{
	return state != SQE || o->service->bit & (T_UC | T_UD);
}

static void
accepted(struct one *o, const struct row *w, uint32_t mask)
{
	struct softhca_qp_attr before, a;
	int rc;

	to_state(o, w->from);
	before = query(o);
	a = random_attr(o, w->to);
	rc = softhca_modify_qp(o->qp, &a, mask | T_STATE);
	sim_check(o->s, rc == 0, "%s, %s to %s, mask %#x: %s", o->service->name,
		  softhca_qp_state_str(w->from), softhca_qp_state_str(w->to), mask,
		  softhca_last_error(o->ctx));
	sim_check(o->s, sim_qp_state(o->s, o->qp) == w->to, "state");
	/* after RESET, attributes that were not set have their initial values */
	if (w->to != RST && w->to != ERR && w->from != RST)
		check_fields(o, mask, &before, &a);
}

static void
refused(struct one *o, uint32_t from, uint32_t to, uint32_t mask)
{
	struct softhca_qp_attr a = random_attr(o, to), before = query(o);
	int rc = softhca_modify_qp(o->qp, &a, mask | T_STATE);

	sim_check(o->s, rc == -EINVAL, "%s, %s to %s, mask %#x: %d", o->service->name,
		  softhca_qp_state_str(from), softhca_qp_state_str(to), mask, rc);
	sim_check(o->s, sim_qp_state(o->s, o->qp) == from, "state");
	check_fields(o, 0, &before, &before);
}

static void
each_attribute(struct one *o, const struct row *w)
{
	const struct t_more row = {w->from, w->to, (uint32_t)__builtin_ctz(o->service->bit), 0};
	uint32_t optional = w->optional | t_more_of(more, sizeof(more) / sizeof(more[0]), &row);
	bool fresh = false;

	accepted(o, w, w->required);
	accepted(o, w, w->required | optional);
	for (uint32_t bit = 1; bit < 32; bit++) {
		uint32_t attr = 1u << bit;

		if (optional & attr) {
			accepted(o, w, w->required | attr);
			fresh = false;
			continue;
		}
		if (!fresh)
			to_state(o, w->from);
		fresh = true; /* still so: nothing has changed */
		refused(o, w->from, w->to, w->required ^ attr);
	}
}

static void
each_pair(struct one *o)
{
	for (uint32_t from = 0; from < STATES; from++) {
		if (!reachable(o, from))
			continue;
		for (uint32_t to = 0; to < STATES; to++) {
			const struct row *w = find(from, to, o->service->bit);

			if (w != NULL) {
				each_attribute(o, w);
				continue;
			}
			to_state(o, from);
			refused(o, from, to, 0);
		}
	}
}

static void
whole_table_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < SERVICES; i++) {
		struct one o;

		open_one(&o, s, &services[i]);
		each_pair(&o);
		close_one(&o);
	}
	sim_close(s);
}
SIM_TEST(whole_table)

/* ---- the program's state of the QP ---- */

static void
believes(struct one *o, uint32_t state, uint32_t to, int expected)
{
	struct softhca_qp_attr a = {.qp_state = to, .cur_qp_state = state};
	uint32_t before = sim_qp_state(o->s, o->qp);
	int rc = softhca_modify_qp(o->qp, &a, SOFTHCA_QP_STATE | SOFTHCA_QP_CUR_STATE);

	sim_check(o->s, rc == expected, "%s believed to be in %s: %d", o->service->name,
		  softhca_qp_state_str(state), rc);
	sim_check(o->s, sim_qp_state(o->s, o->qp) == (rc == 0 ? to : before), "state");
}

static void
believed_state_in(const struct sim_config *cfg)
{
	static const uint32_t from[] = {RTS, SQD, SQE};
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < SERVICES; i++) {
		struct one o;

		open_one(&o, s, &services[i]);
		for (unsigned int k = 0; k < 3; k++) {
			if (!reachable(&o, from[k]))
				continue;
			to_state(&o, from[k]);
			for (uint32_t state = 0; state < STATES; state++)
				if (state != from[k])
					believes(&o, state, RTS, -EINVAL);
			believes(&o, from[k], RTS, 0);
		}
		close_one(&o);
	}
	sim_close(s);
}
SIM_TEST(believed_state)

/* The device has changed the state, but the library still has the old one. */
static void
outdated_in(const struct sim_config *cfg)
{
	static const uint32_t from[] = {RTR, RTS, SQD, SQE};
	struct sim *s = sim_open(cfg);
	struct lib_context *lib = (struct lib_context *)s->side[0].ctx;
	struct hca_ctl_modify err = {.opcode = HCA_CMD_2ERR_QPEE};
	struct one o;

	open_one(&o, s, &services[1]);
	err.qpn = o.qp->qp_num;
	for (unsigned int k = 0; k < 4; k++) {
		to_state(&o, from[k]);
		sim_check(s, LIB_CALL(lib, MODIFY_QP, &err, NULL) == 0, "2ERR");
		sim_check(s, o.qp->state == from[k], "heard of it");
		believes(&o, from[k], RTS, -EINVAL);
		sim_check(s, o.qp->state == ERR, "not heard of it");
	}
	/* from RTS to SQE by its own error: RTS to RTS does not leave it */
	to_state(&o, SQE);
	o.qp->state = RTS;
	believes(&o, RTS, RTS, -EINVAL);
	believes(&o, SQE, RTS, 0);
	close_one(&o);
	sim_close(s);
}
SIM_TEST(outdated)

/* ---- PSNs ---- */

static void
expect_psns(struct sim *s, struct softhca_qp *qp, uint32_t sq, uint32_t rq)
{
	struct softhca_qp_attr a;

	sim_check(s, softhca_query_qp(qp, &a, 0, NULL) == 0, "query_qp");
	sim_check(s, a.sq_psn == (sq & 0xffffff), "sq_psn %#x, not %#x", a.sq_psn, sq);
	sim_check(s, a.rq_psn == (rq & 0xffffff), "rq_psn %#x, not %#x", a.rq_psn, rq);
}

/* Each packet of a message has a PSN, for READs at the requester; across the wrap. */
static void
live_psns_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.psn = {0xfffffa, 0x7ffffe}};
	const struct sim_req req[] = {
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 3000, .flags = SOFTHCA_SEND_SIGNALED},
		{.opcode = SOFTHCA_WR_RDMA_READ, .len = 5000, .flags = SOFTHCA_SEND_SIGNALED},
		{.opcode = SOFTHCA_WR_SEND, .len = 0, .flags = SOFTHCA_SEND_SIGNALED},
	};
	static const uint32_t packets[] = {3, 5, 1};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &a);
	uint32_t sent[2] = {0, 0};

	expect_psns(s, p->qp[0], a.psn[0], a.psn[1]);
	for (unsigned int i = 0; i < 12; i++) {
		unsigned int side = i % 4 == 3;

		sim_check(s, sim_post(p, side, &req[i % 3], 1) == 0, "post");
		sent[side] += packets[i % 3];
		sim_finish(s, SIM_S);
		for (unsigned int k = 0; k < 2; k++)
			expect_psns(s, p->qp[k], a.psn[k] + sent[k], a.psn[1 - k] + sent[1 - k]);
	}
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(live_psns)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_table),
		cmocka_unit_test(believed_state),
		cmocka_unit_test(outdated),
		cmocka_unit_test(live_psns),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
