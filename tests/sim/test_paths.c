/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fields of a connection in the network: UDP source ports, constant per QP but different for
 * different QPs, and P_Keys, of which both ends must be members.
 */

#include "sim_link.h"
#include "sim_tagged.h"
#include "sim_test.h"
#include "roce_craft.h"
#include "../set_pkey.h"

#define PROGRAM "test_paths"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- source ports -------------------- */

#define QPNS 64u

/* The source port of frames to each destination QPN. */
struct tap {
	struct sim *s;
	struct {
		uint32_t qpn;
		uint16_t port;
	} seen[QPNS];
	unsigned int n;
	unsigned int frames;
};

static bool
look(void *arg, uint8_t *frame, uint32_t len)
{
	struct tap *t = arg;
	struct roce_view v;
	uint16_t port;
	unsigned int i;

	sim_check(t->s, roce_parse(frame, len, &v) == 0, "a frame that is none");
	port = hca_get_be16(frame + v.bth - HCA_UDP_LEN);
	t->frames++;
	for (i = 0; i < t->n && t->seen[i].qpn != v.qpn; i++)
		;
	sim_check(t->s, i < QPNS, "too many QPNs");
	if (i == t->n) {
		t->seen[i].qpn = v.qpn;
		t->seen[i].port = port;
		t->n++;
	}
	sim_check(t->s, t->seen[i].port == port, "frames to QP %#x come from port %u and %u", v.qpn,
		  port, t->seen[i].port);
	sim_check(t->s, port >= HCA_ROCE_SPORT_BASE, "source port %u", port);
	return false;
}

static unsigned int
distinct(const struct tap *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->n; i++) {
		bool first = true;

		for (unsigned int k = 0; k < i; k++)
			first = first && t->seen[k].port != t->seen[i].port;
		n += first;
	}
	return n;
}

/* Many QPs with one peer: each uses one port, whatever is lost; together they use many. */
static void
source_ports_in(const struct sim_config *cfg)
{
	const struct hca_impair lossy = {.drop = 0.02, .dup = 0.02, .reorder = 0.02};

	for (unsigned int i = 0; i < SIM_SERVICES * 2; i++) {
		const struct sim_tagged_attr a = {
			.service = i / 2,
			.gid = i & 1 ? SIM_GID_V6_VLAN : SIM_GID_V4,
			.flows = SIM_TAGGED_FLOWS,
			.max_len = i / 2 == SIM_UD ? 1024 : 3000,
		};
		struct tap tap[2] = {{0}};
		struct sim *s = sim_open(cfg);
		struct sim_tagged *t = sim_tagged_open(s, &a);

		t->duplicates = true;
		for (unsigned int side = 0; side < 2; side++) {
			tap[side].s = s;
			sim_link_lose(s->side[side].wire, look, &tap[side]);
			sim_impair(s, side, &lossy);
		}
		for (uint32_t k = 0; k < 10 * SIM_TAGGED_FLOWS; k++) {
			sim_tagged_send(t, 0, k % SIM_TAGGED_FLOWS);
			sim_tagged_send(t, 1, k % SIM_TAGGED_FLOWS);
			sim_poll(s);
			sim_tagged_reap(t);
			sim_tagged_fill(t);
		}
		sim_tagged_finish(t);
		for (unsigned int side = 0; side < 2; side++) {
			sim_check(s, tap[side].n >= SIM_TAGGED_FLOWS && tap[side].frames > 300,
				  "%u QPNs, %u frames", tap[side].n, tap[side].frames);
			/* of 32 in 2^14, two are equal once in 33 runs */
			sim_check(s, distinct(&tap[side]) >= SIM_TAGGED_FLOWS - 3,
				  "%s: %u ports for %u QPs", sim_service_names[a.service],
				  distinct(&tap[side]), tap[side].n);
			sim_link_lose(s->side[side].wire, NULL, NULL);
			sim_impair(s, side, NULL);
		}
		sim_tagged_close(t);
		sim_close(s);
	}
}
SIM_TEST(source_ports)

/* A flow label says which port, whatever the QPs; of one with more bits 20 are taken. */
static void
flow_labels_in(const struct sim_config *cfg)
{
	static const struct {
		uint32_t label;
		uint16_t port;
	} rows[] = {{0x12345, 0xc000 | (0x2345 ^ 4)}, {UINT32_MAX, 0xffc0}};

	for (unsigned int i = 0; i < SIM_SERVICES * COUNT(rows); i++) {
		const struct sim_tagged_attr a = {
			.service = i / COUNT(rows),
			.gid = i & 1 ? SIM_GID_V6_VLAN : SIM_GID_V4,
			.flows = 4,
			.max_len = 1000,
			.flow_label = rows[i % COUNT(rows)].label,
		};
		struct sim *s = sim_open(cfg);
		struct sim_tagged *t = sim_tagged_open(s, &a);
		struct tap tap = {.s = s};

		sim_link_lose(s->side[0].wire, look, &tap);
		for (uint32_t k = 0; k < 8; k++)
			sim_tagged_send(t, 0, k % 4);
		sim_tagged_finish(t);
		sim_link_lose(s->side[0].wire, NULL, NULL);
		sim_check(s,
			  tap.n != 0 && distinct(&tap) == 1 &&
				  tap.seen[0].port == rows[i % COUNT(rows)].port,
			  "%s: label %#x, port %#x", sim_service_names[a.service], a.flow_label,
			  tap.seen[0].port);
		sim_tagged_close(t);
		sim_close(s);
	}
}
SIM_TEST(flow_labels)

/* --- partitions -------------------- */

/* Both sides have this table. */
static const uint16_t pkeys[] = {0xffff, 0x7fff, 0x9234, 0x1234, 0x9235};

static bool
may_talk(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0;
}

/* All were sent; the number that failed; the receives. */
struct outcome {
	unsigned int ok, failed, received;
	uint32_t status;
};

static void
collect(struct sim *s, struct sim_tagged *t, struct outcome *o)
{
	struct softhca_wc wc;

	sim_settle(s);
	while (softhca_poll_cq(t->end[0].cq, 1, &wc) == 1) {
		if (wc.opcode & SOFTHCA_WC_RECV)
			continue; /* flushed with it */
		o->ok += wc.status == SOFTHCA_WC_SUCCESS;
		o->failed += wc.status != SOFTHCA_WC_SUCCESS;
		o->status = wc.status;
	}
	while (softhca_poll_cq(t->end[1].cq, 1, &wc) == 1) {
		o->received++;
		sim_check(s, wc.status == SOFTHCA_WC_SUCCESS, "a receive");
		sim_check(s, t->attr.service != SIM_UD || wc.pkey_index == t->attr.pkey_index[1],
			  "P_Key index %u", wc.pkey_index);
	}
}

static void
pair_of_keys(struct sim *s, enum sim_service service, unsigned int i, unsigned int k)
{
	const struct sim_tagged_attr a = {
		.service = service,
		.pkey_index = {(uint16_t)i, (uint16_t)k},
		.gid = (i + k) % SIM_GIDS,
		.max_len = 900,
		.timeout = 1,
	};
	bool reliable = service == SIM_RC || service == SIM_XRC,
	     talk = may_talk(pkeys[i], pkeys[k]);
	uint64_t bad = sim_counter(s, 1, "rx_bad_pkey");
	struct sim_tagged *t = sim_tagged_open(s, &a);
	struct outcome o = {0};

	for (unsigned int n = 0; n < 3; n++)
		sim_check(s, sim_tagged_send(t, 0, 0), "no room");
	collect(s, t, &o);
	bad = sim_counter(s, 1, "rx_bad_pkey") - bad;
	sim_check(s, o.received == (talk ? 3u : 0u), "%s: %04x to %04x: %u received",
		  sim_service_names[service], pkeys[i], pkeys[k], o.received);
	sim_check(s, talk ? bad == 0 : bad >= 3, "%llu bad P_Keys counted",
		  (unsigned long long)bad);
	/* a side that cannot be reached cannot answer */
	sim_check(s, o.failed == (talk || !reliable ? 0u : 3u), "%u requests failed", o.failed);
	sim_tagged_close(t);
}

static void
partitions_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < COUNT(pkeys); i++)
			sim_check(s, set_pkey(s->side[side].drv, i, pkeys[i]) == 0, "set_pkey");
	for (unsigned int service = 0; service < SIM_SERVICES; service++)
		for (unsigned int i = 0; i < COUNT(pkeys); i++)
			for (unsigned int k = 0; k < COUNT(pkeys); k++)
				pair_of_keys(s, service, i, k);
	sim_close(s);
}
SIM_TEST(partitions)

/* A QP without a partition: an index without a key, or outside the table. */
static void
no_partition_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_cq_init_attr ca = {.cqe = 8};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};
	static const uint16_t bad[] = {1, 7, 63, 64, 127, 128, 1000, 0xffff};
	struct softhca_qp *qp;

	qa.send_cq = qa.recv_cq = softhca_create_cq(s->side[0].ctx, &ca);
	qp = softhca_create_qp(s->side[0].pd, &qa);
	sim_check(s, qp != NULL, "create_qp");
	for (unsigned int i = 0; i < COUNT(bad); i++) {
		const struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_INIT,
						  .port_num = 1,
						  .pkey_index = bad[i]};

		sim_check(s,
			  softhca_modify_qp(qp, &a,
					    SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX |
						    SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS) != 0,
			  "P_Key index %u is taken", bad[i]);
	}
	sim_check(s, softhca_destroy_qp(qp) == 0 && softhca_destroy_cq(qa.send_cq) == 0, "destroy");
	sim_close(s);
}
SIM_TEST(no_partition)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_ports),
		cmocka_unit_test(flow_labels),
		cmocka_unit_test(partitions),
		cmocka_unit_test(no_partition),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
