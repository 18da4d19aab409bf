/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SQD at any time: requests that have begun complete, others wait, and SQ_DRAINED is raised once,
 * for every service, on good and bad links, at full speed and paced. SIM_MOMENTS=n of each.
 */

#include "sim_duo.h"
#include "sim_mix.h"
#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_drain"

struct drain {
	struct sim_tagged *t;
	unsigned int events;
};

static void
take_events(struct drain *d)
{
	struct sim *s = d->t->s;
	struct softhca_async_event e;

	while (sim_async(s->side[0].ctx, &e)) {
		if (e.event_type == SOFTHCA_EVENT_SQ_DRAINED) {
			sim_check(s, e.element.qp == d->t->end[0].qp[0], "of another QP");
			d->events++;
		}
		softhca_ack_async_event(&e);
	}
}

static bool
has_drained(struct sim *s, void *arg)
{
	struct drain *d = arg;

	(void)s;
	sim_tagged_reap(d->t);
	sim_tagged_fill(d->t);
	take_events(d);
	return d->events != 0;
}

static void
move(struct drain *d, uint32_t state)
{
	struct softhca_qp_attr a = {.qp_state = state, .en_sqd_async_notify = 1};
	uint32_t mask = SOFTHCA_QP_STATE;
	int rc;

	if (state == SOFTHCA_QPS_SQD)
		mask |= SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY;
	rc = softhca_modify_qp(d->t->end[0].qp[0], &a, mask);
	sim_check(d->t->s, rc == 0, "to %s: %s", softhca_qp_state_str(state),
		  softhca_last_error(d->t->s->side[0].ctx));
}

static bool
is_draining(struct drain *d)
{
	struct softhca_qp_attr a;

	sim_check(d->t->s, softhca_query_qp(d->t->end[0].qp[0], &a, SOFTHCA_QP_STATE, NULL) == 0,
		  "query");
	sim_check(d->t->s, a.qp_state == SOFTHCA_QPS_SQD, "not in SQD");
	return a.sq_draining;
}

static void
send_some(struct drain *d, struct sim_rng *r)
{
	for (unsigned int n = sim_below(r, 30); n > 0; n--)
		if (!sim_tagged_send(d->t, 0, 0))
			return;
}

static void
poll_some(struct drain *d, struct sim_rng *r, unsigned int most)
{
	for (unsigned int k = sim_below(r, most); k > 0; k--) {
		sim_poll(d->t->s);
		sim_tagged_reap(d->t);
		sim_tagged_fill(d->t);
	}
}

static void
one_moment(struct drain *d, struct sim_rng *r, unsigned int moment)
{
	struct sim *s = d->t->s;
	uint32_t before;

	send_some(d, r);
	poll_some(d, r, moment % 3 == 0 ? 4 : 60);
	d->events = 0;
	move(d, SOFTHCA_QPS_SQD);
	if (moment & 1)
		send_some(d, r);
	sim_check(s, sim_run_until(s, has_drained, d, 5 * SIM_S),
		  "%s, moment %u: no SQ_DRAINED, %u of %u sends completed",
		  sim_service_names[d->t->attr.service], moment, d->t->dir[0][0].completed,
		  d->t->dir[0][0].sent);
	sim_check(s, !is_draining(d), "drained, and draining");
	sim_tagged_reap(d->t);
	before = d->t->dir[0][0].completed;
	send_some(d, r);
	poll_some(d, r, 30);
	sim_run_for(s, 3000000);
	sim_tagged_reap(d->t);
	sim_check(s, d->t->dir[0][0].completed == before, "sent while drained");
	take_events(d);
	sim_check(s, d->events == 1, "%u events", d->events);
	move(d, SOFTHCA_QPS_RTS);
	sim_tagged_finish(d->t);
	take_events(d);
	sim_check(s, d->events == 1, "%u events", d->events);
}

static void
service(const struct sim_config *cfg, enum sim_service which, unsigned int moments)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 31 + which};

	for (unsigned int kind = 0; kind < 3; kind++) {
		const struct sim_tagged_attr a = {
			.service = which,
			.gid = which % SIM_GIDS,
			.max_len = which == SIM_UD ? 1024 : 8000,
			.static_rate = kind == 2 ? SOFTHCA_RATE_2_5_GBPS : 0,
		};
		struct drain d = {.t = sim_tagged_open(s, &a)};
		const struct hca_impair *link = kind == 1 ? &sim_bad_link : NULL;

		d.t->duplicates = kind == 1;
		sim_impair(s, 0, link);
		sim_impair(s, 1, link);
		for (unsigned int i = 0; i < moments; i++)
			one_moment(&d, &r, i);
		sim_impair(s, 0, NULL);
		sim_impair(s, 1, NULL);
		sim_settle(s);
		take_events(&d);
		sim_tagged_close(d.t);
	}
	sim_close(s);
}

static void
moments_in(const struct sim_config *cfg)
{
	for (unsigned int which = 0; which < SIM_SERVICES; which++)
		service(cfg, which, (unsigned int)sim_env("SIM_MOMENTS", 8));
}
SIM_TEST(moments)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
