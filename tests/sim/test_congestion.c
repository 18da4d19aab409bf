/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The seam of congestion control: made-up algorithms are asked before anything leaves and obeyed,
 * and they are told of all that was sent, acknowledged, timed, lost and notified, with the time of
 * the simulated clock.
 */

#include <inttypes.h>

#include "cc/cc_names.h"
#include "sim_link.h"
#include "sim_tagged.h"
#include "sim_test.h"
#include "sim_told.h"
#include "sim_victim.h"
#include "engine/impl.h"
#include "graph/sleep.h"

#define PROGRAM "test_congestion"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MESSAGES 8u
#define BYTES (4 * TOLD_MTU)
#define DELAY_NS 20000u
#define TIMEOUT 14u
#define US 1000u
#define MS 1000000u

static struct sim *
open_with(const struct sim_config *cfg, const struct hca_cc_ops *ops)
{
	struct sim_config c = *cfg;
	struct sim *s;

	c.congestion = ops;
	s = sim_open(&c);
	sim_told_clock(s);
	return s;
}

static struct sim_told *
told_side(struct sim *s, const struct sim_pair *p, unsigned int side)
{
	const struct hca_pipe *h = &s->side[side].hca->pipe[0];

	return hca_cc_state(h, hca_qp_index(&h->core, p->qp[side]->qp_num));
}

static void
post(struct sim_pair *p, uint32_t opcode, unsigned int n)
{
	const struct sim_req req = {
		.opcode = opcode,
		.len = BYTES,
		.flags = SOFTHCA_SEND_SIGNALED,
	};

	for (unsigned int i = 0; i < n; i++)
		sim_check(p->s, sim_post(p, 0, &req, 1) == 0, "post");
}

/* Never more than one frame unanswered, though no other rule asks for ACKs of single packets. */
static void
window_of_one_in(const struct sim_config *cfg)
{
	const struct hca_impair slow = {.delay_ns = DELAY_NS};
	const struct sim_pair_attr a = {.timeout = TIMEOUT};
	struct sim *s = open_with(cfg, &sim_told_window);
	struct sim_pair *p = sim_pair_open(s, &a);
	const struct sim_told *t = told_side(s, p, 0);
	uint32_t psns = 2 * MESSAGES * BYTES / TOLD_MTU;

	sim_impair(s, 0, &slow);
	sim_impair(s, 1, &slow);
	post(p, SOFTHCA_WR_RDMA_WRITE, MESSAGES);
	post(p, SOFTHCA_WR_SEND, MESSAGES);
	sim_finish(s, SIM_S);
	sim_check(s, t->begun == 1 && t->asked >= psns, "asked %u times", t->asked);
	sim_check(s, t->most == 1, "%u frames unanswered", t->most);
	sim_check(s, t->not_frames == 0 && t->psns + 1 == psns, "asked about %u PSNs", t->psns);
	sim_check(s, t->frames == psns && t->bytes == (uint64_t)psns * TOLD_FRAME,
		  "told of %u frames of %llu bytes", t->frames, (unsigned long long)t->bytes);
	sim_check(s, t->acked == psns, "%u of %u PSNs", t->acked, psns);
	sim_check(s, t->timed == psns && t->shortest >= 2 * DELAY_NS,
		  "%u round trips, the shortest %llu ns", t->timed,
		  (unsigned long long)t->shortest);
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(window_of_one)

/* READs and small messages: a READ leaves when its bytes fit, its responses count as PSNs. */
static void
all_operations_in(const struct sim_config *cfg)
{
	static const struct hca_cc_ops *const ops[] = {&sim_told_window, &sim_told_hesitant,
						       &sim_told_rate, &sim_told_open};

	for (unsigned int k = 0; k < COUNT(ops); k++) {
		const struct sim_pair_attr a = {.timeout = TIMEOUT};
		struct sim *s = open_with(cfg, ops[k]);
		struct sim_pair *p = sim_pair_open(s, &a);

		for (unsigned int n = 0; n < 60; n++) {
			const struct sim_req req = sim_random_req(p, 3 * TOLD_MTU);

			if (sim_post(p, n & 1, &req, 1) != 0)
				sim_finish(s, SIM_S);
		}
		sim_finish(s, SIM_S);
		for (unsigned int side = 0; side < 2; side++) {
			const struct sim_told *t = told_side(s, p, side);

			sim_check(s, t->frames == sim_counter(s, side, "req_packets"),
				  "side %u: told of %u frames", side, t->frames);
			sim_check(s, t->acked >= t->frames && t->timed != 0,
				  "side %u: %u PSNs, %u round trips", side, t->acked, t->timed);
		}
		sim_pair_close(p);
		sim_close(s);
	}
}
SIM_TEST(all_operations)

static void
paced_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.timeout = TIMEOUT};
	struct sim *s = open_with(cfg, &sim_told_rate);
	struct sim_pair *p = sim_pair_open(s, &a);
	const struct sim_told *t = told_side(s, p, 0);
	uint64_t start = s->now;

	post(p, SOFTHCA_WR_RDMA_WRITE, MESSAGES);
	sim_finish(s, SIM_S);
	sim_check(s, t->refused != 0 && t->frames == MESSAGES * BYTES / TOLD_MTU, "%u frames",
		  t->frames);
	sim_check(s, s->now - start >= (t->frames - 1) * (uint64_t)TOLD_GAP_NS, "took %llu ns",
		  (unsigned long long)(s->now - start));
	/* Reset and destruction find a QP that waits; the next life is told to begin. */
	for (unsigned int i = 1; i <= 3; i++) {
		post(p, SOFTHCA_WR_RDMA_WRITE, MESSAGES);
		sim_run_for(s, TOLD_GAP_NS * i);
		sim_pair_reset(p);
		sim_check(s, t->begun == i + 1 && t->frames == 0, "begun %u times", t->begun);
	}
	post(p, SOFTHCA_WR_RDMA_WRITE, MESSAGES);
	sim_run_for(s, 2 * TOLD_GAP_NS);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(paced)

/* A QP that waits for a late time goes on when an ACK comes, or when a loss is found. */
static void
waits_end_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.timeout = TIMEOUT};
	struct sim *s = open_with(cfg, &sim_told_hesitant);
	struct sim_pair *p = sim_pair_open(s, &a);
	const struct sim_told *t = told_side(s, p, 0);
	uint64_t start = s->now;

	post(p, SOFTHCA_WR_RDMA_WRITE, MESSAGES);
	sim_finish(s, SIM_S);
	sim_check(s, t->most == 1, "%u frames at once", t->most);
	sim_check(s, s->now - start < TOLD_FOREVER_NS / 10, "took %llu ns",
		  (unsigned long long)(s->now - start));
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(waits_end)

/* A frame that does not arrive: req_rx reports one loss, and no round trip. */
static void
lose_one(const struct sim_config *cfg, const struct hca_cc_ops *ops, uint32_t opcode,
	 unsigned int side, enum hca_cc_loss why)
{
	const struct sim_pair_attr a = {.timeout = TIMEOUT};
	struct sim *s = open_with(cfg, ops);
	struct sim_pair *p = sim_pair_open(s, &a);
	const struct sim_told *t = told_side(s, p, 0);

	sim_rule(s, side,
		 (struct hca_fault_rule){.opcode = HCA_FAULT_ANY,
					 .psn = HCA_FAULT_ANY,
					 .nth = 2,
					 .count = 1,
					 .fault = HCA_FAULT_DROP});
	post(p, opcode, 2);
	sim_finish(s, SIM_S);
	sim_check(s, sim_faults(s) != 0 && t->lost[why] != 0, "loss %d is not told", (int)why);
	sim_check(s, t->frames == sim_counter(s, 0, "req_packets"), "told of %u frames", t->frames);
	sim_check(s, t->acked == 2 * BYTES / TOLD_MTU, "%u PSNs", t->acked);
	sim_check(s, (t->lost_after >= HCA_ACK_TIMEOUT_NS(TIMEOUT)) == (why == HCA_CC_TIMEOUT),
		  "told %llu ns after the frame", (unsigned long long)t->lost_after);
	sim_check(s, t->timed < t->acked, "a frame that was sent twice is timed");
	sim_pair_close(p);
	sim_close(s);
}

static void
losses_in(const struct sim_config *cfg)
{
	lose_one(cfg, &sim_told_window, SOFTHCA_WR_RDMA_WRITE, 0, HCA_CC_TIMEOUT);
	lose_one(cfg, &sim_told_hesitant, SOFTHCA_WR_RDMA_WRITE, 0, HCA_CC_TIMEOUT);
	lose_one(cfg, &sim_told_open, SOFTHCA_WR_RDMA_WRITE, 0, HCA_CC_GAP);
	lose_one(cfg, &sim_told_open, SOFTHCA_WR_RDMA_READ, 1, HCA_CC_GAP);
}
SIM_TEST(losses)

/* That of the frames of a QP over IPv4; 0 also of UD, whose headers are not the QP's. */
static uint32_t
ecn_of(const struct hca_pipe *h, uint32_t qpn)
{
	return h->qp[hca_qp_index(&h->core, qpn)].encap.tmpl.bytes[HCA_ETH_LEN + 1] & 3;
}

/* CNPs from the peer of a reliable QP reach the algorithm; UC and UD ignore theirs. */
static void
notifications_in(const struct sim_config *cfg)
{
	const struct sim_packet packet = {.opcode = HCA_BTH_CNP, .len = 16};
	struct sim *s = open_with(cfg, &sim_told_open);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int kind = 0; kind < SIM_VICTIM_XRC_TGT; kind++) {
		bool told_it = kind != SIM_VICTIM_UC && kind != SIM_VICTIM_UD;
		uint64_t handled = sim_counter(s, 1, "rp_cnp_handled");
		uint64_t ignored = sim_counter(s, 1, "rp_cnp_ignored");
		const struct hca_pipe *h = &s->side[1].hca->pipe[0];
		struct sim_victim v;
		const struct sim_told *t;
		uint64_t start;

		sim_victim_open(s, &v, kind, SIM_GID_V4);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		sim_settle(s);
		t = hca_cc_state(h, hca_qp_index(&h->core, v.qp->qp_num));
		start = s->now;
		sim_check(s, ecn_of(h, v.qp->qp_num) == (told_it ? HCA_ECN_ECT0 : 0), "%s: ECN",
			  sim_victim_names[kind]);
		for (unsigned int n = 0; n < 50; n++)
			sim_inject_packet(&x, &v.path, &packet);
		sim_settle(s);
		handled = sim_counter(s, 1, "rp_cnp_handled") - handled;
		ignored = sim_counter(s, 1, "rp_cnp_ignored") - ignored;
		sim_check(s, handled == (told_it ? 50 : 0) && t->cnps == handled,
			  "%s: %u of %llu are told", sim_victim_names[kind], t->cnps,
			  (unsigned long long)handled);
		sim_check(s, t->cnp_at <= s->now && (t->cnp_at > start) == told_it,
			  "%s: told at %llu", sim_victim_names[kind],
			  (unsigned long long)t->cnp_at);
		sim_check(s, handled + ignored <= 50, "%s: counted twice", sim_victim_names[kind]);
		sim_victim_check(&v, true);
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(notifications)

#define READ_PSN 0xfff000u
#define LOST_PSN (READ_PSN + 2)

struct behind_gap {
	struct sim_injector x;
	struct hca_roce_path path;
	unsigned int came; /* how often LOST_PSN did */
};

/* READ responses: one is lost; its repetition is followed by a CNP, whose PSN is 0. */
static bool
lose_and_notify(void *arg, uint8_t *frame, uint32_t len)
{
	const struct sim_packet packet = {.opcode = HCA_BTH_CNP, .len = 16};
	struct behind_gap *g = arg;
	struct roce_view v;

	if (roce_parse(frame, len, &v) < 0)
		return false;
	if (v.psn == LOST_PSN)
		return g->came++ == 0;
	if (v.psn == LOST_PSN + 1 && g->came == 2) {
		g->came++;
		sim_inject_packet(&g->x, &g->path, &packet);
	}
	return false;
}

/* The packet behind a gap says whether the missing one was lost or late; a CNP does not. */
static void
notified_behind_gap_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.timeout = TIMEOUT, .psn = {1, READ_PSN}};
	const struct sim_req read = {.opcode = SOFTHCA_WR_RDMA_READ,
				     .len = 8 * TOLD_MTU,
				     .flags = SOFTHCA_SEND_SIGNALED};
	struct sim *s = open_with(cfg, &sim_told_open);
	struct sim_pair *p = sim_pair_open(s, &a);
	struct sim_victim v;
	struct behind_gap g;

	sim_injector_open(s, &g.x);
	sim_victim_open(s, &v, SIM_VICTIM_RC, SIM_GID_V4);
	g.path = v.path;
	g.path.qpn = p->qp[1]->qp_num;
	g.came = 0;
	sim_link_lose(s->side[0].wire, lose_and_notify, &g);
	sim_check(s, sim_post(p, 1, &read, 1) == 0, "post");
	sim_finish(s, SIM_S);
	sim_link_lose(s->side[0].wire, NULL, NULL);
	sim_check(s, g.came == 3 && sim_counter(s, 1, "rp_cnp_handled") == 1, "no CNP");
	sim_check(s, sim_counter(s, 1, "rx_missing") == 1, "nothing is missing");
	sim_check(s, sim_counter(s, 1, "rx_late") == 0, "what was lost is late");
	sim_victim_close(&v);
	sim_injector_close(&g.x);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(notified_behind_gap)

struct marks {
	unsigned int frames, ect;
};

static bool
count_marks(void *arg, uint8_t *frame, uint32_t len)
{
	struct marks *m = arg;
	struct roce_view v;

	if (roce_parse(frame, len, &v) < 0)
		return false;
	m->frames++;
	m->ect += (v.ip_version == 4 ? frame[v.l3 + 1] & 3 : frame[v.l3 + 1] >> 4 & 3) ==
		  HCA_ECN_ECT0;
	return false;
}

/* Switches may mark packets only where an algorithm asks for it. */
static void
marks_in(const struct sim_config *cfg)
{
	static const enum sim_gid gids[] = {SIM_GID_V4, SIM_GID_V6_VLAN};

	for (unsigned int k = 0; k < 2 * COUNT(gids); k++) {
		const struct sim_pair_attr a = {.timeout = TIMEOUT, .gid = gids[k / 2]};
		bool marked = k % 2 == 0;
		struct sim *s = open_with(cfg, marked ? &sim_told_open : &sim_told_window);
		struct sim_pair *p = sim_pair_open(s, &a);
		struct marks m = {0};

		sim_link_lose(s->side[0].wire, count_marks, &m);
		post(p, SOFTHCA_WR_RDMA_WRITE, 2);
		sim_finish(s, SIM_S);
		sim_link_lose(s->side[0].wire, NULL, NULL);
		sim_check(s, m.frames >= 2 * BYTES / TOLD_MTU, "%u frames", m.frames);
		sim_check(s, m.ect == (marked ? m.frames : 0), "%u of %u frames are ECT(0)", m.ect,
			  m.frames);
		sim_pair_close(p);
		sim_close(s);
	}
}
SIM_TEST(marks)

#define CNPS_QPS 3u

/* CNPs that a side sends, by QP, and the times between those of one. */
struct cnps {
	struct sim *s;
	unsigned int frames;
	uint32_t qpn[CNPS_QPS];
	uint64_t at[CNPS_QPS], shortest;
	uint8_t dscp; /* of the last one */
};

static uint8_t
dscp_of(const uint8_t *frame, const struct roce_view *v)
{
	const uint8_t *ip = frame + v->l3;
	uint8_t tclass = v->ip_version == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);

	return tclass >> 2;
}

static bool
watch_cnps(void *arg, uint8_t *frame, uint32_t len)
{
	struct cnps *c = arg;
	struct roce_view v;
	uint64_t now = c->s->cfg.executor == SIM_STEPPED ? c->s->stepper.now : c->s->now;

	if (roce_parse(frame, len, &v) < 0 || v.opcode != HCA_BTH_CNP)
		return false;
	c->frames++;
	c->dscp = dscp_of(frame, &v);
	for (unsigned int i = 0; i < CNPS_QPS; i++) {
		if (c->qpn[i] != 0 && c->qpn[i] != v.qpn)
			continue;
		if (c->qpn[i] != 0)
			c->shortest = RTE_MIN(c->shortest, now - c->at[i]);
		c->qpn[i] = v.qpn;
		c->at[i] = now;
		break;
	}
	return false;
}

/*
 * Without an algorithm, as with one, marked requests and READ responses are answered with CNPs, at
 * most one of a QP in 50 us.
 */
static void
cnps_in(const struct sim_config *cfg)
{
	static const uint32_t op[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ, SOFTHCA_WR_SEND};
	const struct hca_impair marks = {.ecn = 0.5, .delay_ns = DELAY_NS};
	struct sim *s = sim_open(cfg);
	struct cnps c[2] = {{.s = s, .shortest = UINT64_MAX}, {.s = s, .shortest = UINT64_MAX}};
	struct sim_pair *p[CNPS_QPS];

	for (unsigned int side = 0; side < 2; side++) {
		sim_impair(s, side, &marks);
		sim_link_lose(s->side[side].wire, watch_cnps, &c[side]);
	}
	for (unsigned int i = 0; i < CNPS_QPS; i++) {
		const struct sim_pair_attr a = {.timeout = TIMEOUT};

		p[i] = sim_pair_open(s, &a);
	}
	for (unsigned int n = 0; n < 20; n++) {
		for (unsigned int i = 0; i < CNPS_QPS; i++)
			post(p[i], op[i], 2);
		sim_finish(s, SIM_S);
	}
	sim_run_for(s, 3 * DELAY_NS); /* the last CNP arrives */
	for (unsigned int side = 0; side < 2; side++) {
		sim_link_lose(s->side[side].wire, NULL, NULL);
		sim_check(s, c[side].frames >= 10 && c[side].shortest >= 50000,
			  "side %u: %u CNPs, the shortest interval %llu ns", side, c[side].frames,
			  (unsigned long long)c[side].shortest);
		sim_check(s, c[side].frames == sim_counter(s, side, "np_cnp_sent"),
			  "side %u: %u CNPs on the wire", side, c[side].frames);
		sim_check(s, c[side].frames == sim_counter(s, 1 - side, "rp_cnp_ignored"),
			  "side %u: %u CNPs left", side, c[side].frames);
		sim_check(s, sim_counter(s, side, "np_cnp_suppressed") != 0, "all marks sent");
	}
	for (unsigned int i = 0; i < CNPS_QPS; i++)
		sim_pair_close(p[i]);
	sim_close(s);
}
SIM_TEST(cnps)

/* ---- SET_CONGESTION ---- */

static void
set(struct sim *s, unsigned int side, uint32_t number)
{
	int rc = hca_driver_set_congestion(s->side[side].drv, number);

	sim_check(s, rc == 0, "set_congestion: %d: %s", rc, hca_driver_reason());
}

static void
set_parameter(struct sim *s, unsigned int side, uint32_t number, uint32_t value)
{
	const struct hca *h = s->side[side].hca;
	int rc = hca_driver_set_congestion_parameter(s->side[side].drv, number, value);

	sim_check(s, rc == 0, "parameter %u: %d: %s", number, rc, hca_driver_reason());
	sim_check(s, hca_congestion_parameter(h, number) == value, "parameter %u: %u", number,
		  hca_congestion_parameter(h, number));
	for (unsigned int n = 1; n < h->n_pipes; n++) {
#define X(name) \
	sim_check(s, h->pipe[n].cfg.name == h->pipe[0].cfg.name, #name " of pipe %u: %u", n, \
		  h->pipe[n].cfg.name);
		HCA_CC_PARAMETER_LIST(X)
#undef X
	}
}

static uint64_t
target_ns(const struct sim *s, const struct sim_pair *p)
{
	struct hca_congestion_limits l;

	hca_qp_congestion(s->side[0].hca, p->qp[0]->qp_num, &l);
	return l.target_ns;
}

/* Other values while QPs work: those of CNPs at the receiver, the target of swift at the sender. */
static void
parameters_in(const struct sim_config *cfg)
{
	const struct hca_impair marks = {.ecn = 1, .delay_ns = DELAY_NS};
	const struct sim_pair_attr a = {.timeout = TIMEOUT};
	struct sim_config two = *cfg;
	struct sim_pair *p;
	struct sim *s;
	struct cnps c;

	two.pipes = 2;
	s = sim_open(&two);
	set(s, 0, hca_cc_number("swift"));
	p = sim_pair_open(s, &a);
	sim_impair(s, 0, &marks);
	sim_link_lose(s->side[1].wire, watch_cnps, &c);
	for (uint32_t interval = 50; interval <= 500; interval += 450) {
		set_parameter(s, 1, HCA_CC_cnp_interval_us, interval);
		set_parameter(s, 1, HCA_CC_cnp_dscp, interval / 50);
		set_parameter(s, 0, HCA_CC_swift_base_delay_us, interval * 20);
		c = (struct cnps){.s = s, .shortest = UINT64_MAX};
		for (unsigned int n = 0; n < 60; n++) {
			post(p, SOFTHCA_WR_RDMA_WRITE, 2);
			sim_finish(s, SIM_S);
			sim_run_for(s, 10 * US);
		}
		sim_check(s, c.frames >= 3 && c.dscp == interval / 50, "%u CNPs, DSCP %u", c.frames,
			  c.dscp);
		/* stages that run one at a time send a CNP some steps after its time */
		sim_check(s, c.shortest + US >= interval * US && c.shortest < 2 * interval * US,
			  "%u us: the shortest interval %" PRIu64 " ns", interval, c.shortest);
		sim_check(s, target_ns(s, p) / (interval * 20 * US) - 1 < 4,
			  "target %" PRIu64 " ns", target_ns(s, p));
	}
	sim_link_lose(s->side[1].wire, NULL, NULL);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(parameters)

/* A stage that waits for a time, and for nothing else, lets its worker sleep until then. */
static void
check_sleeps(struct sim *s, unsigned int side, const char *what)
{
	const struct hca *h = s->side[side].hca;

	if (s->cfg.executor == SIM_THREADS)
		return;
	for (unsigned int w = 0; w < h->num_workers; w++)
		sim_check(s, hca_sleep_alarm(h, w, s->now) >= s->now + MS,
			  "%s wait, worker %u polls", what, w);
}

/* Requests and READ responses that an algorithm holds for seconds leave when it ends. */
static void
wakes_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.timeout = 20};
	struct sim *s = open_with(cfg, &sim_told_never);
	struct sim_pair *p = sim_pair_open(s, &a);
	uint64_t start = s->now;

	/* the requester is free, the responses wait */
	set(s, 0, hca_cc_number("none"));
	post(p, SOFTHCA_WR_RDMA_READ, 4);
	sim_run_for(s, MS);
	sim_check(s, sim_counter(s, 1, "resp_packets") == 0, "responses left");
	check_sleeps(s, 1, "responses");
	set(s, 1, hca_cc_number("none"));
	sim_finish(s, SIM_S);
	/* requests wait */
	set(s, 0, s->side[0].hca->core->cc_room->numbers);
	post(p, SOFTHCA_WR_RDMA_WRITE, 4);
	sim_run_for(s, MS);
	sim_check(s, sim_counter(s, 0, "req_packets") == 4, "requests left");
	check_sleeps(s, 0, "requests");
	set(s, 0, hca_cc_number("none"));
	sim_finish(s, SIM_S);
	sim_check(s, s->now - start < TOLD_FOREVER_NS / 10, "took %" PRIu64 " ns", s->now - start);
	sim_check(s, sim_counter(s, 0, "local_ack_timeout_err") == 0, "timeouts");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(wakes)

/* An algorithm begins while frames are under way: it is told of later ones, and of all ACKs. */
static void
begins_late_in(const struct sim_config *cfg)
{
	const struct hca_impair slow = {.delay_ns = 20 * US};
	const struct sim_pair_attr a = {.timeout = 14};
	struct sim *s = open_with(cfg, &sim_told_window);
	struct sim_pair *p;
	const struct sim_told *t;
	uint32_t last = s->side[0].hca->core->cc_room->numbers;

	set(s, 0, hca_cc_number("none"));
	p = sim_pair_open(s, &a);
	t = hca_cc_state(&s->side[0].hca->pipe[0],
			 hca_qp_index(s->side[0].hca->core, p->qp[0]->qp_num));
	sim_impair(s, 0, &slow);
	sim_impair(s, 1, &slow);
	post(p, SOFTHCA_WR_RDMA_WRITE, 4);
	sim_run_for(s, 10 * US);
	sim_check(s, t->begun == 0 && t->frames == 0, "told before it begins");
	set(s, 0, last);
	post(p, SOFTHCA_WR_RDMA_WRITE, 4);
	sim_finish(s, SIM_S);
	sim_check(s, t->begun == 1 && t->frames >= 16 && t->acked == 32 && t->refused != 0,
		  "begun %u, %u frames, %u acknowledged, %u refused", t->begun, t->frames, t->acked,
		  t->refused);
	sim_check(s, t->timed != 0 && t->shortest >= 40 * US, "%u round trips, %" PRIu64 " ns",
		  t->timed, t->shortest);
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	/* names have the numbers of the attribute */
#define X(name, number, text) \
	sim_check(s, (number) == 0 || hca_cc_number(text) == (number), "number of %s", text);
	SOFTHCA_CONGESTION_LIST(X)
#undef X
	/* numbers that are none */
	sim_check(s,
		  hca_driver_set_congestion(s->side[0].drv, 0) == -EINVAL &&
			  hca_driver_set_congestion(s->side[0].drv, last + 1) == -EINVAL,
		  "took a wrong number");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(begins_late)

static void
exchange(struct sim_tagged *t, unsigned int messages)
{
	struct sim_rng *r = &sim_model(t->s)->rng;

	while (messages > 0) {
		bool one = sim_tagged_send(t, sim_below(r, 2), sim_below(r, t->attr.flows));

		messages -= one;
		if (!one || sim_below(r, 4) == 0)
			sim_poll(t->s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
}

/* With a thread per worker, and queues that are never empty: every message arrives. */
static void
threads(void **state)
{
	static const uint32_t turn[] = {SOFTHCA_CONGESTION_DCQCN, SOFTHCA_CONGESTION_SWIFT,
					SOFTHCA_CONGESTION_NONE};
	uint64_t seed = sim_env("SIM_SEED", 1);

	for (unsigned int i = 0; i < 4; i++) {
		const struct sim_tagged_attr a = {.service = i & 1 ? SIM_XRC : SIM_RC,
						  .timeout = 17};
		const struct sim_config cfg = {.layout = i < 2 ? HCA_LAYOUT_TXRX : HCA_LAYOUT_FULL,
					       .executor = SIM_THREADS,
					       .all_cpus = true,
					       .pipes = i == 0 ? 2 : 1,
					       .seed = seed};
		struct sim_tagged *t;
		struct sim *s;

		sim_set_repeat("SIM_SEED=%llu CMOCKA_TEST_FILTER=threads %s",
			       (unsigned long long)seed, PROGRAM);
		s = sim_open(&cfg);
		t = sim_tagged_open(s, &a);
		t->lossless = true;
		for (unsigned int round = 0; round < 30; round++) {
			set(s, round & 1, turn[round % COUNT(turn)]);
			exchange(t, 20);
		}
		sim_tagged_finish(t);
		sim_tagged_close(t);
		sim_close(s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_of_one), cmocka_unit_test(all_operations),
		cmocka_unit_test(paced),	 cmocka_unit_test(losses),
		cmocka_unit_test(notifications), cmocka_unit_test(notified_behind_gap),
		cmocka_unit_test(waits_end),	 cmocka_unit_test(marks),
		cmocka_unit_test(cnps),		 cmocka_unit_test(wakes),
		cmocka_unit_test(begins_late),	 cmocka_unit_test(threads),
		cmocka_unit_test(parameters),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
