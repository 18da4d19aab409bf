/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Multicast end to end: UD QPs of both HCAs in groups of every kind of address. Each member gets
 * exactly one copy of each datagram, also on the sender's HCA, including the sender if it is a
 * member; no other QP gets one.
 */

#include <errno.h>

#include "sim_test.h"

#define PROGRAM "test_mcast"
#define QPS 4u /* per side */
#define SLOTS 8u
#define SLOT 1152u
#define QKEY 0x0badcafeu
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* X(name, GID index of the sender, 16 bytes of the group) */
#define GROUP_LIST(X) \
	X(V4, V4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 129, 2, 3) \
	X(V6, V6, 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 1) \
	X(LINK_LOCAL, LINK_LOCAL, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 2) \
	X(V4_VLAN, V4_VLAN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 1, 2, 4) \
	X(V6_VLAN, V6_VLAN, 0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 3) \
	/* the MAC address of the first, another group */ \
	X(V4_TWIN, V4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 238, 1, 2, 3)

enum group {
#define X(name, ...) GROUP_##name,
	GROUP_LIST(X)
#undef X
	GROUPS
};

static const struct {
	union softhca_gid gid;
	uint8_t sgid;
} groups[GROUPS] = {
#define X(name, index, ...) [GROUP_##name] = {{.raw = {__VA_ARGS__}}, SIM_GID_##index},
	GROUP_LIST(X)
#undef X
};

struct message {
	uint32_t serial, group, side, qp;
};

struct club {
	struct sim *s;
	struct sim_rng rng;
	uint32_t serial;
	struct club_side {
		struct softhca_cq *cq;
		struct softhca_mr *mr;
		uint8_t *mem;
		struct softhca_ah *ah[GROUPS];
		struct softhca_qp *qp[QPS];
		bool member[QPS][GROUPS];
		bool deaf[QPS];		  /* to its own datagrams */
		uint32_t source[QPS];	  /* of its datagrams, 0: its own QPN */
		unsigned int copies[QPS]; /* of the current message */
		unsigned int sent;
	} side[2];
};

static uint8_t *
slot(struct club *c, unsigned int side, unsigned int qp, unsigned int n)
{
	return c->side[side].mem + (qp * SLOTS + n) * SLOT;
}

static void
post_recv(struct club *c, unsigned int side, unsigned int qp, unsigned int n)
{
	struct club_side *e = &c->side[side];
	struct softhca_sge sge = {(uintptr_t)slot(c, side, qp, n), SLOT, e->mr->lkey};
	struct softhca_recv_wr wr = {.wr_id = 1u << 16 | qp << 8 | n,
				     .sg_list = &sge,
				     .num_sge = 1};
	struct softhca_recv_wr *bad;

	memset(slot(c, side, qp, n), 0xee, SLOT);
	sim_check(c->s, softhca_post_recv(e->qp[qp], &wr, &bad) == 0, "post_recv");
}

static void
to_state(struct club *c, struct softhca_qp *qp, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {.qp_state = state, .port_num = 1, .qkey = QKEY, .sq_psn = 7};
	int rc = softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | mask);

	sim_check(c->s, rc == 0, "UD QP to %s: %d", softhca_qp_state_str(state), rc);
}

static void
open_qp(struct club *c, unsigned int side, unsigned int i)
{
	struct club_side *e = &c->side[side];
	struct softhca_qp_init_attr_ex a = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_UD,
		.flags = (e->deaf[i] ? (uint32_t)SOFTHCA_BLOCK_SELF_MCAST_LB : 0) |
			 (e->source[i] != 0 ? (uint32_t)SOFTHCA_SOURCE_QPN : 0),
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = c->s->side[side].pd,
		.source_qpn = e->source[i],
	};

	e->qp[i] = softhca_create_qp_ex(c->s->side[side].ctx, &a);
	sim_check(c->s, e->qp[i] != NULL, "create_qp: %s",
		  softhca_last_error(c->s->side[side].ctx));
	to_state(c, e->qp[i], SOFTHCA_QPS_INIT,
		 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY);
	to_state(c, e->qp[i], SOFTHCA_QPS_RTR, 0);
	to_state(c, e->qp[i], SOFTHCA_QPS_RTS, SOFTHCA_QP_SQ_PSN);
	for (unsigned int n = 0; n < SLOTS; n++)
		post_recv(c, side, i, n);
}

static void
open_side(struct club *c, unsigned int side)
{
	struct club_side *e = &c->side[side];
	struct softhca_cq_init_attr ca = {.cqe = 256};
	struct sim_side *ss = &c->s->side[side];

	e->cq = softhca_create_cq(ss->ctx, &ca);
	e->mem = calloc((QPS + 1) * SLOTS, SLOT);
	sim_check(c->s, e->cq != NULL && e->mem != NULL, "create_cq");
	e->mr = softhca_reg_mr(ss->pd, e->mem, (QPS + 1) * SLOTS * SLOT,
			       SOFTHCA_ACCESS_LOCAL_WRITE);
	sim_check(c->s, e->mr != NULL, "reg_mr");
	for (unsigned int i = 0; i < QPS; i++)
		open_qp(c, side, i);
	for (unsigned int g = 0; g < GROUPS; g++) {
		struct softhca_ah_attr a = {.dgid = groups[g].gid,
					    .sgid_index = groups[g].sgid,
					    .port_num = 1};

		e->ah[g] = softhca_create_ah(ss->pd, &a);
		sim_check(c->s, e->ah[g] != NULL, "create_ah: %s", softhca_last_error(ss->ctx));
	}
}

static void
club_open(struct club *c, const struct sim_config *cfg)
{
	*c = (struct club){.s = sim_open(cfg), .rng.s = cfg->seed * 7 + 1};
	open_side(c, 0);
	open_side(c, 1);
}

static void
close_qp(struct club *c, unsigned int side, unsigned int i)
{
	struct club_side *e = &c->side[side];

	if (e->qp[i] != NULL)
		sim_check(c->s, softhca_destroy_qp(e->qp[i]) == 0, "destroy_qp");
	e->qp[i] = NULL;
	memset(e->member[i], 0, sizeof(e->member[i]));
}

static void
club_close(struct club *c)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct club_side *e = &c->side[side];

		for (unsigned int i = 0; i < QPS; i++)
			close_qp(c, side, i);
		for (unsigned int g = 0; g < GROUPS; g++)
			softhca_destroy_ah(e->ah[g]);
		sim_check(c->s, softhca_destroy_cq(e->cq) == 0, "destroy_cq");
		sim_check(c->s, softhca_dereg_mr(e->mr) == 0, "dereg_mr");
		free(e->mem);
	}
	sim_close(c->s);
}

static void
join(struct club *c, unsigned int side, unsigned int qp, enum group g, bool in)
{
	struct club_side *e = &c->side[side];
	int rc = in ? softhca_attach_mcast(e->qp[qp], &groups[g].gid, 0)
		    : softhca_detach_mcast(e->qp[qp], &groups[g].gid, 0);

	sim_check(c->s, rc == 0, "%s: %d: %s", in ? "attach" : "detach", rc,
		  softhca_last_error(c->s->side[side].ctx));
	e->member[qp][g] = in;
}

static uint8_t
pattern(const struct message *m, uint32_t i)
{
	return (uint8_t)(m->serial * 17 + m->qp * 5 + i);
}

/* Send a message with this number of bytes after its first words. */
static struct message
send(struct club *c, unsigned int side, unsigned int qp, enum group g, uint32_t len, uint32_t qkey)
{
	struct club_side *e = &c->side[side];
	struct message m = {.serial = c->serial++, .group = g, .side = side, .qp = qp};
	uint8_t *buf = slot(c, side, QPS, m.serial % SLOTS);
	struct softhca_sge sge = {(uintptr_t)buf, len, e->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = m.serial & 1 ? SOFTHCA_WR_SEND_WITH_IMM : SOFTHCA_WR_SEND,
		.imm_data = m.serial,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.ud = {.ah = e->ah[g], .remote_qpn = 0xffffff, .remote_qkey = qkey},
	};
	struct softhca_send_wr *bad;

	memcpy(buf, &m, sizeof(m));
	for (uint32_t i = sizeof(m); i < len; i++)
		buf[i] = pattern(&m, i);
	sim_check(c->s, softhca_post_send(e->qp[qp], &wr, &bad) == 0, "post_send");
	return m;
}

static void
check_grh(struct club *c, const struct message *m, const uint8_t *grh)
{
	uint8_t from[16];

	sim_gid(m->side, groups[m->group].sgid, from);
	if (from[10] == 0xff) {
		sim_check(c->s, memcmp(grh + 32, from + 12, 4) == 0, "source address");
		sim_check(c->s, memcmp(grh + 36, groups[m->group].gid.raw + 12, 4) == 0,
			  "group address");
	} else {
		sim_check(c->s, memcmp(grh + 8, from, 16) == 0, "source address");
		sim_check(c->s, memcmp(grh + 24, groups[m->group].gid.raw, 16) == 0,
			  "group address");
	}
}

/* m NULL: any message that was sent. */
static uint32_t
source_of(const struct club_side *e, unsigned int qp)
{
	return e->source[qp] != 0 ? e->source[qp] : e->qp[qp]->qp_num;
}

static void
judge(struct club *c, unsigned int side, const struct softhca_wc *wc, const struct message *m)
{
	struct club_side *e = &c->side[side];
	unsigned int qp = wc->wr_id >> 8 & 0xff, n = wc->wr_id & 0xff;
	const uint8_t *p = slot(c, side, qp, n);
	struct message got;

	sim_check(c->s, wc->status == SOFTHCA_WC_SUCCESS, "%s", softhca_wc_status_str(wc->status));
	if (wc->wr_id >> 16 == 0) {
		e->sent++;
		return;
	}
	memcpy(&got, p + SOFTHCA_GRH_BYTES, sizeof(got));
	sim_check(c->s, got.side < 2 && got.qp < QPS && got.group < GROUPS, "not a message");
	if (m != NULL)
		sim_check(c->s, memcmp(&got, m, sizeof(got)) == 0, "message %u, not %u", got.serial,
			  m->serial);
	check_grh(c, &got, p);
	sim_check(c->s, wc->wc_flags & SOFTHCA_WC_GRH, "no GRH");
	sim_check(c->s,
		  !(wc->wc_flags & SOFTHCA_WC_WITH_IMM) == !(got.serial & 1) &&
			  (!(got.serial & 1) || wc->imm_data == got.serial),
		  "immediate");
	if (c->side[got.side].qp[got.qp] != NULL)
		sim_check(c->s, wc->src_qp == source_of(&c->side[got.side], got.qp), "source QP");
	for (uint32_t i = sizeof(got); i < wc->byte_len - SOFTHCA_GRH_BYTES; i++)
		sim_check(c->s, p[SOFTHCA_GRH_BYTES + i] == pattern(&got, i), "byte %u of %u", i,
			  wc->byte_len);
	e->copies[qp]++;
	if (e->qp[qp] != NULL)
		post_recv(c, side, qp, n);
}

static void
reap(struct club *c, const struct message *m)
{
	struct softhca_wc wc;

	for (unsigned int side = 0; side < 2; side++)
		while (softhca_poll_cq(c->side[side].cq, 1, &wc) == 1)
			judge(c, side, &wc, m);
}

/* Each member has exactly one copy, other QPs none. */
/* Own datagrams of a member that blocks them. */
static bool
blocked(const struct club_side *e, unsigned int side, unsigned int qp, const struct message *m)
{
	return e->deaf[qp] && m->side == side && m->qp == qp;
}

static void
check_copies(struct club *c, const struct message *m)
{
	sim_settle(c->s);
	reap(c, m);
	for (unsigned int side = 0; side < 2; side++) {
		struct club_side *e = &c->side[side];

		for (unsigned int i = 0; i < QPS; i++)
			sim_check(c->s,
				  e->copies[i] ==
					  (e->member[i][m->group] && !blocked(e, side, i, m)),
				  "group %u, message of side %u QP %u: %u copies at side %u QP %u",
				  m->group, m->side, m->qp, e->copies[i], side, i);
		memset(e->copies, 0, sizeof(e->copies));
	}
}

/* Members join and leave at random; senders are also random. */
static void
each_member_one_in(const struct sim_config *cfg)
{
	struct club c;

	club_open(&c, cfg);
	for (unsigned int round = 0; round < 150; round++) {
		enum group g = sim_below(&c.rng, GROUPS);
		unsigned int side = sim_below(&c.rng, 2), qp = sim_below(&c.rng, QPS);
		struct message m;

		for (unsigned int k = 0; k < 3; k++) {
			unsigned int s = sim_below(&c.rng, 2), i = sim_below(&c.rng, QPS);

			join(&c, s, i, g, !c.side[s].member[i][g]);
		}
		m = send(&c, side, qp, g, sizeof(m) + sim_below(&c.rng, 1025 - sizeof(m)), QKEY);
		check_copies(&c, &m);
	}
	sim_check(c.s, c.side[0].sent + c.side[1].sent == 150, "sends that did not complete");
	sim_check(c.s, sim_counter(c.s, 0, "loopback_pkts") != 0, "nothing looped");
	sim_check(c.s, sim_counter(c.s, 0, "rx_mcast_unattached") != 0, "no empty group");
	club_close(&c);
}
SIM_TEST(each_member_one)

/* A sender gets its own datagrams if and only if it is a member. */
static void
own_voice_in(const struct sim_config *cfg)
{
	struct club c;

	club_open(&c, cfg);
	for (unsigned int g = 0; g < GROUPS; g++) {
		struct message m = send(&c, 0, 1, g, 100, QKEY);

		check_copies(&c, &m);
		join(&c, 0, 1, g, true);
		m = send(&c, 0, 1, g, 100, QKEY);
		check_copies(&c, &m);
		join(&c, 0, 1, g, true); /* joining twice has no effect */
		m = send(&c, 0, 1, g, 100, QKEY);
		check_copies(&c, &m);
		join(&c, 0, 1, g, false);
		m = send(&c, 0, 1, g, 100, QKEY);
		check_copies(&c, &m);
	}
	club_close(&c);
}
SIM_TEST(own_voice)

/*
 * One that does not want its own datagrams gets those of all others, also of QPs with its number on
 * the other side, and all others get its own: under its own name and under another.
 */
static void
not_own_voice_in(const struct sim_config *cfg)
{
	struct club c;

	club_open(&c, cfg);
	for (unsigned int i = 0; i < 2; i++) {
		close_qp(&c, 0, i);
		c.side[0].deaf[i] = true;
	}
	c.side[0].source[1] = 0x123456;
	open_qp(&c, 0, 0);
	open_qp(&c, 0, 1);
	close_qp(&c, 1, 0);
	c.side[1].source[0] = c.side[0].qp[0]->qp_num;
	open_qp(&c, 1, 0);
	for (unsigned int g = 0; g < GROUPS; g++) {
		for (unsigned int i = 0; i < 3; i++)
			join(&c, 0, i, g, true);
		join(&c, 1, 0, g, true);
		for (unsigned int i = 0; i < 3; i++) {
			struct message m = send(&c, 0, i, g, 100, QKEY);

			check_copies(&c, &m);
			m = send(&c, 1, i, g, 100, QKEY);
			check_copies(&c, &m);
		}
	}
	club_close(&c);
}
SIM_TEST(not_own_voice)

/* A copy that one member refuses is still delivered to the others. */
static void
refused_by_some_in(const struct sim_config *cfg)
{
	struct club c;
	struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_RTS, .qkey = QKEY + 1};
	struct message m;
	uint64_t before;

	club_open(&c, cfg);
	for (unsigned int i = 0; i < 2 * QPS; i++)
		join(&c, i / QPS, i % QPS, GROUP_V4, true);
	/* a different Q_Key */
	sim_check(c.s,
		  softhca_modify_qp(c.side[1].qp[2], &a, SOFTHCA_QP_STATE | SOFTHCA_QP_QKEY) == 0,
		  "modify_qp");
	c.side[1].member[2][GROUP_V4] = false;
	m = send(&c, 0, 0, GROUP_V4, 500, QKEY);
	check_copies(&c, &m);
	sim_check(c.s, sim_counter(c.s, 1, "rx_bad_qkey") == 1, "the Q_Key is not counted");
	/* a Q_Key of no member */
	for (unsigned int i = 0; i < 2 * QPS; i++)
		c.side[i / QPS].member[i % QPS][GROUP_V4] = false;
	m = send(&c, 0, 0, GROUP_V4, 500, QKEY + 2);
	check_copies(&c, &m);
	sim_check(c.s, sim_counter(c.s, 1, "rx_bad_qkey") == 1 + QPS, "the Q_Keys are not counted");
	sim_check(c.s, sim_counter(c.s, 0, "rx_bad_qkey") == QPS, "the Q_Keys are not counted");
	for (unsigned int i = 0; i < 2 * QPS; i++)
		c.side[i / QPS].member[i % QPS][GROUP_V4] = true;
	c.side[1].member[2][GROUP_V4] = false;
	/* a member in ERR */
	a.qp_state = SOFTHCA_QPS_ERR;
	sim_check(c.s, softhca_modify_qp(c.side[0].qp[3], &a, SOFTHCA_QP_STATE) == 0, "to ERR");
	c.side[0].member[3][GROUP_V4] = false;
	sim_settle(c.s);
	for (struct softhca_wc wc; softhca_poll_cq(c.side[0].cq, 1, &wc) == 1;)
		;
	before = sim_counter(c.s, 0, "rx_qp_state");
	m = send(&c, 1, 1, GROUP_V4, 500, QKEY);
	check_copies(&c, &m);
	sim_check(c.s, sim_counter(c.s, 0, "rx_qp_state") == before + 1, "not counted");
	club_close(&c);
}
SIM_TEST(refused_by_some)

/* A member without a receive loses the message, the others do not. */
static void
no_receive_in(const struct sim_config *cfg)
{
	struct softhca_wc wc;
	struct club c;

	club_open(&c, cfg);
	join(&c, 1, 0, GROUP_V6, true);
	join(&c, 1, 1, GROUP_V6, true);
	for (unsigned int i = 0; i < SLOTS + 3; i++) {
		unsigned int got = 0;

		send(&c, 0, 0, GROUP_V6, 300, QKEY);
		sim_settle(c.s);
		while (softhca_poll_cq(c.side[1].cq, 1, &wc) == 1) {
			got |= 1u << (wc.wr_id >> 8 & 0xff);
			/* QP 0 gets no new ones */
			if ((wc.wr_id >> 8 & 0xff) == 1)
				post_recv(&c, 1, 1, wc.wr_id & 0xff);
		}
		sim_check(c.s, got == (i < SLOTS ? 3u : 2u), "message %u came to %#x", i, got);
	}
	sim_check(c.s, sim_counter(c.s, 1, "out_of_buffer") == 3, "out_of_buffer");
	club_close(&c);
}
SIM_TEST(no_receive)

/*
 * Members join, leave and are destroyed during a stream of datagrams: those that stay get every
 * one, the others some, and no data is wrong.
 */
static void
coming_and_going_in(const struct sim_config *cfg)
{
	unsigned int sent = 0;
	struct club c;

	club_open(&c, cfg);
	join(&c, 0, 0, GROUP_V4, true);
	join(&c, 1, 0, GROUP_V4, true);
	for (unsigned int round = 0; round < 400; round++) {
		unsigned int side = sim_below(&c.rng, 2), i = 1 + sim_below(&c.rng, QPS - 1);

		if (sent - (c.side[0].sent + c.side[1].sent) < 6 &&
		    sent - c.side[0].copies[0] < 4 && sent - c.side[1].copies[0] < 4) {
			send(&c, sim_below(&c.rng, 2), 0, GROUP_V4, 200, QKEY);
			sent++;
		}
		if (round % 20 == 19) {
			close_qp(&c, side, i);
			open_qp(&c, side, i);
		} else {
			join(&c, side, i, GROUP_V4, !c.side[side].member[i][GROUP_V4]);
		}
		for (unsigned int k = sim_below(&c.rng, 6); k > 0; k--)
			sim_poll(c.s);
		reap(&c, NULL);
	}
	sim_settle(c.s);
	reap(&c, NULL);
	sim_check(c.s, sent > 100 && c.side[0].copies[0] == sent && c.side[1].copies[0] == sent,
		  "%u sent, %u and %u came", sent, c.side[0].copies[0], c.side[1].copies[0]);
	club_close(&c);
}
SIM_TEST(coming_and_going)

/* Refused requests and their errors. */
static void
refusals_in(const struct sim_config *cfg)
{
	static const union softhca_gid not_groups[] = {
		{.raw = {[10] = 0xff, 0xff, 10, 77, 0, 2}},
		{.raw = {0xfe, 0x80, [15] = 2}},
		{.raw = {0}},
	};
	struct sim_pair *p;
	struct club c;

	club_open(&c, cfg);
	for (unsigned int i = 0; i < COUNT(not_groups); i++)
		sim_check(c.s, softhca_attach_mcast(c.side[0].qp[0], &not_groups[i], 0) == -EINVAL,
			  "address %u is taken for a group", i);
	sim_check(c.s, softhca_detach_mcast(c.side[0].qp[0], &groups[0].gid, 0) == -EINVAL,
		  "detached from a group it is not in");
	p = sim_pair_open(c.s, NULL);
	sim_check(c.s, softhca_attach_mcast(p->qp[0], &groups[0].gid, 0) == -EINVAL,
		  "an RC QP is attached");
	sim_pair_close(p);
	/* RESET removes a QP from its groups */
	join(&c, 0, 0, GROUP_V4, true);
	to_state(&c, c.side[0].qp[0], SOFTHCA_QPS_RESET, 0);
	sim_check(c.s, softhca_detach_mcast(c.side[0].qp[0], &groups[0].gid, 0) == -EINVAL,
		  "still attached after RESET");
	club_close(&c);
}
SIM_TEST(refusals)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_one), cmocka_unit_test(own_voice),
		cmocka_unit_test(not_own_voice),   cmocka_unit_test(refused_by_some),
		cmocka_unit_test(no_receive),	   cmocka_unit_test(coming_and_going),
		cmocka_unit_test(refusals),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
