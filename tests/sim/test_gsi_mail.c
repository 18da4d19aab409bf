/* SPDX-License-Identifier: BSD-3-Clause */

/* The mail of two agents: management datagrams over each kind of address, its rings, errors. */

#include "gsi_mail.h"
#include "sim_test.h"

#define PROGRAM "test_gsi_mail"
#define MAD 256u
#define MS UINT64_C(1000000)

struct gsi {
	struct sim *s;
	struct cmagent_mail mail[2];
};

static void
open_gsi(struct gsi *g, const struct sim_config *cfg)
{
	g->s = sim_open(cfg);
	for (unsigned int i = 0; i < 2; i++) {
		int err = gsi_mail_open(&g->mail[i], g->s->side[i].drv, false);

		sim_check(g->s, err == 0, "mail: %d: %s", err, hca_driver_reason());
		err = hca_driver_set_gsi(g->s->side[i].drv, g->mail[i].qpn);
		sim_check(g->s, err == 0, "GSI: %d: %s", err, hca_driver_reason());
	}
}

static void
close_gsi(struct gsi *g)
{
	sim_settle(g->s);
	for (unsigned int i = 0; i < 2; i++)
		cmagent_mail_close(&g->mail[i]);
	sim_close(g->s);
}

static struct cmagent_mail_to
way(struct gsi *g, unsigned int from, unsigned int to, enum sim_gid gid)
{
	struct cmagent_mail_to t = {.ah = {.sgid_index = gid}};
	int err;

	sim_gid(to, gid, t.ah.dgid);
	err = hca_driver_resolve(g->s->side[from].drv, false, &t.ah);
	sim_check(g->s, err == 0, "no way: %d", err);
	return t;
}

static void
post(struct gsi *g, unsigned int from, const struct cmagent_mail_to *to, uint8_t first, size_t len)
{
	uint8_t bytes[GSI_MAIL_BYTES];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(first + i);
	sim_check(g->s, cmagent_mail_send(&g->mail[from], to, bytes, len), "no room");
}

static enum cmagent_mail_kind
take(struct gsi *g, unsigned int side, struct cmagent_mail_letter *l)
{
	enum cmagent_mail_kind kind = CMAGENT_MAIL_NONE;

	for (uint32_t i = 0; i < 20000 && kind == CMAGENT_MAIL_NONE; i++) {
		sim_poll(g->s);
		kind = cmagent_mail_take(&g->mail[side], l);
	}
	return kind;
}

static void
expect(struct gsi *g, unsigned int side, enum cmagent_mail_kind kind)
{
	struct cmagent_mail_letter l;
	enum cmagent_mail_kind got = take(g, side, &l);

	sim_check(g->s, got == kind, "a completion of kind %d instead of %d", got, kind);
}

/* The datagram that post() has sent, with its sender. */
static void
expect_letter(struct gsi *g, unsigned int side, unsigned int from, enum sim_gid gid, uint8_t first,
	      size_t len)
{
	struct cmagent_mail_to back = way(g, side, from, gid);
	struct cmagent_mail_letter l;
	enum cmagent_mail_kind kind = take(g, side, &l);
	uint8_t own[16];
	bool same = true;

	sim_check(g->s, kind == CMAGENT_MAIL_LETTER && l.len == len, "kind %d", kind);
	for (size_t i = 0; i < len; i++)
		same &= l.bytes[i] == (uint8_t)(first + i);
	sim_gid(side, gid, own);
	sim_check(g->s, same && l.from_qpn == HCA_QPN_GSI, "from QPN %u", l.from_qpn);
	sim_check(g->s,
		  memcmp(l.own, own, sizeof(own)) == 0 &&
			  memcmp(l.peer, back.ah.dgid, sizeof(l.peer)) == 0,
		  "addresses");
	sim_check(g->s, memcmp(l.mac, back.ah.dmac, sizeof(l.mac)) == 0, "MAC address");
	sim_check(g->s, l.vlan == (sim_gid_vlan[gid] & 0xfff) % 0xfff, "VLAN %u", l.vlan);
	cmagent_mail_give_back(&g->mail[side], l.slot);
}

static void
both_ways_in(const struct sim_config *cfg)
{
	struct gsi g;

	open_gsi(&g, cfg);
	for (unsigned int gid = 0; gid < SIM_GIDS; gid++)
		for (unsigned int from = 0; from < 2; from++) {
			struct cmagent_mail_to to = way(&g, from, 1 - from, gid);

			post(&g, from, &to, (uint8_t)gid, MAD);
			expect_letter(&g, 1 - from, from, gid, (uint8_t)gid, MAD);
			expect(&g, from, CMAGENT_MAIL_SENT);
		}
	close_gsi(&g);
}
SIM_TEST(both_ways)

/* To the own address: the host talks to itself. */
static void
to_itself_in(const struct sim_config *cfg)
{
	struct cmagent_mail_to to;
	struct cmagent_mail_letter l;
	uint32_t seen = 0;
	struct gsi g;

	open_gsi(&g, cfg);
	to = way(&g, 0, 0, SIM_GID_V4);
	post(&g, 0, &to, 3, MAD);
	for (unsigned int i = 0; i < 2; i++) {
		enum cmagent_mail_kind kind = take(&g, 0, &l);

		seen |= 1u << kind;
		if (kind == CMAGENT_MAIL_LETTER)
			cmagent_mail_give_back(&g.mail[0], l.slot);
	}
	sim_check(g.s, seen == (1u << CMAGENT_MAIL_SENT | 1u << CMAGENT_MAIL_LETTER), "seen %#x",
		  seen);
	close_gsi(&g);
}
SIM_TEST(to_itself)

/* Many rounds of both rings, and a padded datagram is received whole. */
static void
rings_in(const struct sim_config *cfg)
{
	struct cmagent_mail_to to;
	struct gsi g;

	open_gsi(&g, cfg);
	to = way(&g, 0, 1, SIM_GID_V6);
	for (uint32_t n = 0; n < 1500; n++) {
		post(&g, 0, &to, (uint8_t)n, MAD);
		expect_letter(&g, 1, 0, SIM_GID_V6, (uint8_t)n, MAD);
		expect(&g, 0, CMAGENT_MAIL_SENT);
	}
	post(&g, 0, &to, 9, 1024);
	expect_letter(&g, 1, 0, SIM_GID_V6, 9, 1024);
	expect(&g, 0, CMAGENT_MAIL_SENT);
	close_gsi(&g);
}
SIM_TEST(rings)

/* An agent that does not poll loses only the datagrams beyond its receives. */
static void
flood_in(const struct sim_config *cfg)
{
	struct cmagent_mail_letter l;
	uint32_t sent = 0, got = 0;
	struct cmagent_mail_to to;
	struct gsi g;

	open_gsi(&g, cfg);
	to = way(&g, 0, 1, SIM_GID_V4);
	while (sent < 3u << g.mail[1].cfg.log_receives) {
		uint8_t bytes[MAD] = {0};

		sent += cmagent_mail_send(&g.mail[0], &to, bytes, sizeof(bytes));
		sim_poll(g.s);
		(void)cmagent_mail_take(&g.mail[0], &l);
	}
	sim_settle(g.s);
	while (cmagent_mail_take(&g.mail[1], &l) == CMAGENT_MAIL_LETTER) {
		cmagent_mail_give_back(&g.mail[1], l.slot);
		got++;
	}
	sim_check(g.s, got == 1u << g.mail[1].cfg.log_receives, "%u letters", got);
	while (cmagent_mail_take(&g.mail[0], &l) != CMAGENT_MAIL_NONE)
		;
	post(&g, 0, &to, 5, MAD);
	expect_letter(&g, 1, 0, SIM_GID_V4, 5, MAD);
	close_gsi(&g);
}
SIM_TEST(flood)

/* A send from an address that has gone is refused; when all have completed, sends leave again. */
static void
refused_in(const struct sim_config *cfg)
{
	struct cmagent_mail_to good, gone;
	struct gsi g;

	open_gsi(&g, cfg);
	good = gone = way(&g, 0, 1, SIM_GID_V4);
	gone.ah.sgid_index = SIM_GIDS;
	post(&g, 0, &gone, 1, MAD);
	post(&g, 0, &good, 2, MAD);
	expect(&g, 0, CMAGENT_MAIL_SENT);
	sim_check(g.s, g.mail[0].refused, "not refused");
	gsi_mail_recover(&g.mail[0]);
	sim_check(g.s, g.mail[0].refused, "recovered with a send in the queue");
	expect(&g, 0, CMAGENT_MAIL_SENT);
	gsi_mail_recover(&g.mail[0]);
	sim_check(g.s, !g.mail[0].refused, "not recovered");
	post(&g, 0, &good, 3, MAD);
	expect_letter(&g, 1, 0, SIM_GID_V4, 3, MAD);
	expect(&g, 0, CMAGENT_MAIL_SENT);
	close_gsi(&g);
}
SIM_TEST(refused)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways), cmocka_unit_test(to_itself), cmocka_unit_test(rings),
		cmocka_unit_test(flood),     cmocka_unit_test(refused),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
