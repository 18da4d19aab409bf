/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The whole table of transitions: every command in every state, for every service, with each
 * attribute left out or added. QUERY_QP must report exactly the values that were set; a refused
 * command changes nothing.
 */

#include <string.h>

#include "../../../qp_transitions.h"
#include "../rig.h"

#define QPI 5u
#define QPN RIG_QPN(QPI)

enum {
	RST,
	INIT,
	RTR,
	RTS,
	SQE,
	SQD,
	ERR,
	STATES
};

static const char *const state_names[STATES] = {"RST", "INIT", "RTR", "RTS", "SQE", "SQD", "ERR"};

static const struct row {
	const char *name;
	uint32_t from, to, command, services, required, optional;
} rows[] = {
#define X(from, to, command, services, required, optional) \
	{#command, from, to, HCA_CMD_##command##_QPEE, services, required, optional},
	T_LIST(X)
#undef X
};

static const struct t_more more[] = {HCA_QP_TRANSITION_LIST(T_MORE_ROW)};

static const uint32_t services[] = {HCA_ST_RC, HCA_ST_UC, HCA_ST_UD, HCA_ST_XRC_INI,
				    HCA_ST_XRC_TGT};

static const struct row *
find(uint32_t command, uint32_t from, uint32_t service)
{
	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		if (rows[i].command == command && rows[i].from == from &&
		    rows[i].services & 1u << service)
			return &rows[i];
	return NULL;
}

/* ---- attributes: where they stand in the mailboxes of MODIFY_QP and QUERY_QP ---- */

static const struct {
	uint32_t attr;
	uint16_t word;
	uint32_t bits;
} fields[] = {
#define FIELD(attr, member, field_word, field, ...) \
	{HCA_QP_ATTR_##attr, offsetof(struct hca_qpc, field_word) / 4, \
	 HCA_BITS_OF(HCA_QPC_##field)},
#define WHOLE(attr, field_word, bits) \
	{HCA_QP_ATTR_##attr, offsetof(struct hca_qpc, field_word) / 4, bits},
	HCA_QP_VALUE_LIST(FIELD) HCA_QP_WORD_LIST(WHOLE)
#undef FIELD
#undef WHOLE
};

static uint32_t
word_of(const void *qpc, uint16_t word)
{
	return hca_get_be32((const uint8_t *)qpc + 4u * word);
}

static uint32_t
next_value(uint32_t n)
{
	static uint32_t seed = 1;

	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

static void
random_path(struct hca_qpc_path *p)
{
	p->port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, next_value(2)));
	p->ackto =
		hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 0, 2 + next_value(9), 1 + next_value(255)));
	p->sl_tclass_flow =
		hca_cpu_to_be32(HCA_QPC_MAKE_SL_TCLASS_FLOW(next_value(8), next_value(64) * 4,
							    next_value(0x100000)));
	memset(p->rgid, 0, sizeof(p->rgid));
	p->rgid[10] = p->rgid[11] = 0xff;
	p->rgid[12] = 10;
	p->rgid[15] = (uint8_t)(2 + next_value(200));
	p->mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(next_value(0x10000), 0));
	p->dmac_hi = hca_cpu_to_be32(0x02000000 + next_value(0x10000));
}

static void
random_field(hca_be32 *word, uint32_t bits, uint32_t min, uint32_t max, uint32_t rule)
{
	uint32_t others = hca_be32_to_cpu(*word) & ~bits, value;

	if (max == HCA_ATTR_ANY)
		return;
	value = min + next_value(max - min + 1);
	if (rule == HCA_QP_ATTR_CUT)
		value &= max;
	*word = hca_cpu_to_be32(others | value << rte_bsf32(bits));
}

static void
random_fields(struct hca_qpc *q)
{
#define RANDOM(attr, member, word, field, min, max, limit, rule, verbs) \
	random_field(&q->word, HCA_BITS_OF(HCA_QPC_##field), min, max, HCA_QP_ATTR_##rule);
	HCA_QP_FIELD_LIST(RANDOM)
#undef RANDOM
}

/* A valid mailbox; each value that can differ from the previous one does. */
static struct hca_qpc *
mailbox(struct rig *r, uint32_t service, uint32_t mask, uint32_t to)
{
	struct hca_qpc *q = rig_qpc(r, QPI, mask);

	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(to, service, HCA_MIG_MIGRATED, 0));
	q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(1, 31, 6, 6));
	if (service == HCA_ST_XRC_INI || service == HCA_ST_XRC_TGT)
		q->rcv_wqe_len = 0;
	if (service == HCA_ST_XRC_TGT) {
		q->snd_wqe_len = 0;
		q->xrcd = hca_cpu_to_be32(7);
	}
	random_path(&q->path);
	random_path(&q->alt_path);
	q->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_HAS_GRH);
	random_fields(q);
	/* more would have to be allocated before RTR */
	q->rd_atomic = hca_cpu_to_be32(
		HCA_QPC_MAKE_RD_ATOMIC(next_value(17), next_value(17), next_value(8)));
	q->qkey = hca_cpu_to_be32(next_value(0x1000000) << 7 | next_value(128));
	return q;
}

/* ---- walking ---- */

static int
modify(struct rig *r, uint32_t command, uint32_t service, uint32_t mask, uint32_t to)
{
	mailbox(r, service, mask, to);
	return rig_mbox(r, (uint16_t)command, QPN);
}

static void
step(struct rig *r, uint32_t command, uint32_t from, uint32_t service)
{
	const struct row *w = find(command, from, service);

	assert_non_null(w);
	assert_int_equal(modify(r, command, service, w->required, w->to), HCA_STAT_OK);
}

/* Reset the QP and bring it to a state; all stages have handled their messages. */
static void
to_state(struct rig *r, uint32_t service, uint32_t state)
{
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
	if (state != RST)
		step(r, HCA_CMD_RST2INIT_QPEE, RST, service);
	if (state != RST && state != INIT)
		step(r, HCA_CMD_INIT2RTR_QPEE, INIT, service);
	if (state == RTS || state == SQD || state == SQE)
		step(r, HCA_CMD_RTR2RTS_QPEE, RTR, service);
	if (state == SQD)
		step(r, HCA_CMD_RTS2SQD_QPEE, RTS, service);
	if (state == SQE)
		r->h->core->qp[QPI].cfg.state = HCA_QPS_SQE; /* RC does not enter this state */
	if (state == ERR)
		assert_int_equal(rig_cmd(r, HCA_CMD_2ERR_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
	for (unsigned int i = 0; i < 4; i++)
		rig_poll(r);
}

static void
query(struct rig *r, struct hca_qpc *out)
{
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, QPN), HCA_STAT_OK);
	memcpy(out, r->out, sizeof(*out));
}

static uint32_t
state_of(struct rig *r)
{
	return r->h->core->qp[QPI].cfg.local_qpn == 0 ? (uint32_t)HCA_QPS_RST
						      : r->h->core->qp[QPI].cfg.state;
}

static void
told(const struct row *w, uint32_t service, uint32_t mask, int rc)
{
	print_error("%s from %s, service %u, attributes %#x: status %#x\n", w->name,
		    state_names[w->from], service, mask, rc);
}

/* The fields of these attributes equal those of the mailbox; the others are unchanged. */
static void
check_fields(const struct row *w, uint32_t service, uint32_t mask, const struct hca_qpc *before,
	     const struct hca_qpc *set, const struct hca_qpc *after)
{
	for (unsigned int i = 0; i < RTE_DIM(fields); i++) {
		const void *from = mask & fields[i].attr ? set : before;
		uint32_t is = word_of(after, fields[i].word) & fields[i].bits;
		uint32_t due = word_of(from, fields[i].word) & fields[i].bits;

		if (is == due)
			continue;
		told(w, service, mask, 0);
		fail_msg("word %#x of attribute %#x: %#x, not %#x", fields[i].word * 4u,
			 fields[i].attr, is, due);
	}
}

static void
accepted(struct rig *r, const struct row *w, uint32_t service, uint32_t mask)
{
	struct hca_qpc before, set, after;
	int rc;

	to_state(r, service, w->from);
	query(r, &before);
	if (w->from == RST) /* no attribute: a new QP is MIGRATED */
		before.flags = hca_cpu_to_be32(HCA_MIG_MIGRATED << 11);
	rc = modify(r, w->command, service, mask, w->to);
	memcpy(&set, r->in, sizeof(set));
	if (rc != HCA_STAT_OK || state_of(r) != w->to) {
		told(w, service, mask, rc);
		fail_msg("the QP is in %s", state_names[state_of(r)]);
	}
	if (w->to == RST || w->to == ERR)
		return;
	query(r, &after);
	check_fields(w, service, mask, &before, &set, &after);
}

static void
refused(struct rig *r, const struct row *w, uint32_t service, uint32_t mask)
{
	int rc;

	mailbox(r, service, mask, w->to);
	rig_remember(r, QPI);
	rc = rig_mbox(r, (uint16_t)w->command, QPN);
	if (rc != HCA_STAT_BAD_PARAM) {
		told(w, service, mask, rc);
		fail_msg("not refused");
	}
	rig_unchanged(r, QPI);
}

static void
each_attribute(struct rig *r, const struct row *w, uint32_t service)
{
	const struct t_more row = {w->from, w->to, service, 0};
	uint32_t optional = w->optional | T_STATE | t_more_of(more, RTE_DIM(more), &row);

	accepted(r, w, service, w->required);
	accepted(r, w, service, w->required | optional);
	for (uint32_t bit = 0; bit < 32; bit++) {
		uint32_t attr = 1u << bit;

		if (w->required & attr) {
			to_state(r, service, w->from);
			refused(r, w, service, w->required & ~attr);
		} else if (optional & attr) {
			accepted(r, w, service, w->required | attr);
		} else {
			to_state(r, service, w->from);
			refused(r, w, service, w->required | attr);
		}
	}
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);
	struct hca_mbox_set_pkey *m = (void *)r->in;

	rig_qp_world(r);
	memset(m, 0, sizeof(*m));
	m->index = hca_cpu_to_be32(1);
	m->pkey = hca_cpu_to_be32(0x8123);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_PKEY, 0), HCA_STAT_OK);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static void
every_attribute(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		for (unsigned int k = 0; k < RTE_DIM(services); k++)
			if (rows[i].services & 1u << services[k])
				each_attribute(r, &rows[i], services[k]);
}

/* Commands in states they do not apply to. */
static void
every_command_elsewhere(void **state)
{
	struct rig *r = *state;

	for (unsigned int k = 0; k < RTE_DIM(services); k++)
		for (uint32_t from = 0; from < STATES; from++)
			for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
				int rc;

				if (find(rows[i].command, from, services[k]) != NULL)
					continue;
				to_state(r, services[k], from);
				mailbox(r, services[k], rows[i].required, rows[i].to);
				rig_remember(r, QPI);
				rc = rig_mbox(r, (uint16_t)rows[i].command, QPN);
				if (rc == HCA_STAT_BAD_QP_STATE || (from == RST && rc != 0)) {
					rig_unchanged(r, QPI);
					continue;
				}
				told(&rows[i], services[k], rows[i].required, rc);
				fail_msg("in %s", state_names[from]);
			}
}

/* The next state in the mailbox must be the one the command leads to. */
static void
other_next_state(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		if (!(rows[i].services & 1u << HCA_ST_UC))
			continue;
		for (uint32_t to = 0; to < 16; to++) {
			if (to == rows[i].to)
				continue;
			to_state(r, HCA_ST_UC, rows[i].from);
			mailbox(r, HCA_ST_UC, rows[i].required | T_STATE, to);
			rig_remember(r, QPI);
			assert_int_equal(rig_mbox(r, (uint16_t)rows[i].command, QPN),
					 HCA_STAT_BAD_PARAM);
			rig_unchanged(r, QPI);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(every_attribute),
		T(every_command_elsewhere),
		T(other_next_state),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
