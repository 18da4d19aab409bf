/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Agents of three hosts, each with a driver and a device made of arrays. The test carries their
 * datagrams, and the clock is simulated.
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../driver/fake_hw.h"
#include "abi_addr.h"
#include "ubagent_impl.h"

#define HOSTS 3u
#define TPS 2u /* of a link */
#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define STEP (10 * MS)

struct host {
	struct fake_hw *fake;
	struct hca_driver *drv;
	struct hca_client *client; /* a program */
	struct ubagent *agent;
	uint8_t eid[16];
	uint32_t sent;	   /* datagrams taken from it */
	uint32_t receives; /* of its receives, used */
	uint32_t cqes;
	bool deaf; /* nothing arrives there */
};

static struct host host[HOSTS];
static uint64_t now;
static sem_t answer;   /* the neighbour that host 1 asks for */
static sem_t never;    /* and those that are not there */
static uint32_t spray; /* of agents: log2 of source ports + 1 */
static uint32_t choices[HOSTS];
static struct ubagent_config knobs; /* mode, sack, exponent, rule */

static uint64_t
clock_of(void *arg)
{
	return now;
}

static void
mac_of(unsigned int i, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)i}, 6);
}

/* ---- hosts ---- */

static void carry(void *arg);

/*
 * Host 1 has the address of host 2, and must ask for that of host 0. For 10.9.x.x no answer comes.
 */
static int
ask(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	while (sem_wait(dgid[13] == 9 ? &never : &answer) != 0)
		;
	if (dgid[15] != host[0].eid[15])
		return -EHOSTUNREACH;
	mac_of(0, dmac);
	return 0;
}

static void
open_host(unsigned int i, bool asks)
{
	struct host *h = &host[i];
	struct hca_driver_config config = {.timeout_ms = 50, .resolve = asks ? ask : NULL};
	struct ubagent_config agent = {.asks = asks,
				       .seed = 77 + i,
				       .now = clock_of,
				       .progress = carry,
				       .tps = TPS,
				       .spray = spray,
				       .choices = choices[i],
				       .rule = knobs.rule,
				       .mode = knobs.mode,
				       .sack = knobs.sack,
				       .exponent = knobs.exponent};
	uint8_t mac[6];

	h->fake = fake_hw_create();
	h->fake->ub = true;
	assert_int_equal(hca_driver_create(&h->fake->hw, &config, &h->drv), 0);
	mac_of(i, mac);
	assert_int_equal(hca_driver_set_gid(h->drv, 0, h->eid, mac, 0xffff), 0);
	for (unsigned int n = 0; n < HOSTS; n++) {
		mac_of(n, mac);
		if (n != i && !(asks && n == 0))
			assert_int_equal(hca_driver_set_neigh(h->drv, host[n].eid, mac), 0);
	}
	agent.drv = h->drv;
	assert_int_equal(ubagent_create(&agent, &h->agent), 0);
	assert_int_equal(hca_client_open(h->drv, NULL, &h->client), 0);
}

static int
start(bool asks)
{
	memset(host, 0, sizeof(host));
	now = SECOND;
	sem_init(&answer, 0, 0);
	sem_init(&never, 0, 0);
	for (unsigned int i = 0; i < HOSTS; i++)
		memcpy(host[i].eid,
		       (const uint8_t[16]){[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(1 + i)}, 16);
	for (unsigned int i = 0; i < HOSTS; i++)
		open_host(i, asks && i == 1);
	return 0;
}

static int
setup(void **state)
{
	return start(false);
}

#define SPRAY_LOG 2u

static int
setup_spraying(void **state)
{
	int err;

	spray = SPRAY_LOG + 1;
	err = start(false);
	spray = 0;
	return err;
}

static int
setup_asking(void **state)
{
	return start(true);
}

static void
close_host(struct host *h)
{
	struct ubagent *agent = h->agent;

	hca_client_close(h->client);
	ubagent_destroy(agent);
	h->agent = NULL;
	assert_int_equal(h->fake->live[LIVE_TP], 0);
	hca_driver_destroy(h->drv);
	assert_int_equal(h->fake->windows, 0);
	fake_hw_destroy(h->fake);
}

static int
teardown(void **state)
{
	sem_post(&answer);
	for (unsigned int i = 0; i < HOSTS; i++)
		close_host(&host[i]);
	sem_destroy(&answer);
	sem_destroy(&never);
	return 0;
}

/* ---- devices and network ---- */

static void
complete(struct host *h, struct hca_cqe_ub cqe)
{
	struct cmagent_mail *m = &h->agent->mail;
	struct hca_cqe_ub *slot = (struct hca_cqe_ub *)(void *)m->cq + h->cqes++ % 256u;

	assert_int_equal(slot->owner, HCA_OWNER_HW);
	cqe.owner = 0;
	*slot = cqe;
}

static void
deliver(struct host *to, const struct host *from, const uint8_t *bytes, uint32_t len)
{
	struct cmagent_mail *m = &to->agent->mail;
	uint32_t slot = to->receives % (1u << m->cfg.log_receives);
	uint8_t *at = m->receives + (size_t)slot * m->cfg.receive_bytes, mac[6];

	if (to->deaf || m->rq_posted == to->receives)
		return;
	to->receives++;
	memset(at, 0, CMAGENT_MAIL_ADDRESSES);
	at[20] = 0x45;
	memcpy(at + 32, from->eid + 12, 4);
	memcpy(at + 36, to->eid + 12, 4);
	memcpy(at + CMAGENT_MAIL_ADDRESSES, bytes, len);
	mac_of((unsigned int)(from - host), mac);
	complete(to, (struct hca_cqe_ub){.wqe = hca_cpu_to_le32(slot << 6),
					 .imm = hca_cpu_to_le64(hca_mac_number(mac)),
					 .bytes = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES + len)});
}

static struct host *
host_of(const uint8_t eid[16])
{
	for (unsigned int i = 0; i < HOSTS; i++)
		if (memcmp(host[i].eid, eid, 16) == 0)
			return &host[i];
	return NULL;
}

/* The WQE as the device's ABI has it: next, UB and address units, one data unit. */
static void
take_send(struct host *from)
{
	const struct {
		struct hca_next_unit next;
		struct hca_ub_unit ub;
		struct hca_ud_unit ud;
		struct hca_data_unit data;
	} *w = (const void *)(from->agent->mail.sq +
			      ((size_t)(from->sent++ % (1u << from->agent->mail.cfg.log_sends))
			       << 7));
	struct host *to = host_of(w->ud.dgid);

	assert_int_equal(w->ub.tc, 0); /* to Jetty 0 */
	if (to != NULL && to->agent != NULL)
		deliver(to, from, (const uint8_t *)(uintptr_t)hca_le64_to_cpu(w->data.addr),
			hca_le32_to_cpu(w->data.byte_cnt));
	complete(from, (struct hca_cqe_ub){.is_send = 1});
}

static void
carry(void *arg)
{
	for (unsigned int i = 0; i < HOSTS; i++) {
		struct hca_uar_page *page;
		struct cmagent_mail *m;

		if (host[i].agent == NULL)
			continue;
		m = &host[i].agent->mail;
		page = (void *)(uintptr_t)hca_client_uar(m->client);

		while (host[i].sent != m->sq_head)
			take_send(&host[i]);
		for (uint32_t s = 0; s < HCA_UAR_FIFO_SLOTS; s++)
			page->fifo[s] = HCA_DB_EMPTY;
	}
}

static void
turn(void)
{
	for (unsigned int i = 0; i < HOSTS; i++)
		ubagent_poll(host[i].agent);
	carry(NULL);
	now += STEP;
}

static void
run_for(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end;)
		turn();
}

/* ---- programs ---- */

static int
import(unsigned int i, unsigned int peer, uint32_t *number)
{
	struct hca_ctl_peer p = {.gid_index = 0};

	memcpy(p.eid, host[peer].eid, sizeof(p.eid));
	return hca_client_call(host[i].client, HCA_CTL_IMPORT_PEER, &p, number, NULL);
}

static int
query(unsigned int i, uint32_t number, struct hca_ctl_peer_state *s)
{
	return hca_client_call(host[i].client, HCA_CTL_QUERY_PEER, &number, s, NULL);
}

static int
unimport(unsigned int i, uint32_t number)
{
	return hca_client_call(host[i].client, HCA_CTL_UNIMPORT_PEER, &number, NULL, NULL);
}

/* The group of an import that succeeds within a second */
static uint32_t
group_of(unsigned int i, uint32_t number)
{
	struct hca_ctl_peer_state s = {.up = 0};

	for (uint64_t end = now + SECOND; now < end && s.up == 0; turn())
		assert_int_equal(query(i, number, &s), 0);
	assert_int_equal(s.up, 1);
	return s.tpg;
}

static uint32_t
tps_in(unsigned int i, enum hca_tp_state state)
{
	uint32_t tpns[FAKE_TPS], n = hca_driver_list_tps(host[i].drv, 0, tpns, FAKE_TPS), found = 0;
	struct hca_tpc c;

	for (uint32_t t = 0; t < n; t++) {
		assert_int_equal(hca_driver_query_tp(host[i].drv, tpns[t], &c), 0);
		found += hca_tpc_get(&c, HCA_TPC_STATE) == state;
	}
	return found;
}

static uint64_t
counter(unsigned int i, const char *name)
{
	const char *n;
	uint64_t value;

	for (uint32_t k = 0;; k++) {
		n = hca_driver_agent_counter(host[i].drv, k, &value);
		if (n == NULL)
			fail_msg("no counter %s", name);
		else if (strcmp(n, name) == 0)
			return value;
	}
}

/* ---- tests ---- */

/* Whether the client of the host may use the group, by the command that was issued last */
static bool
may_use(unsigned int i, uint32_t group)
{
	const struct fake_command *c = fake_last(host[i].fake, HCA_CMD_PERMIT_TPG);

	assert_non_null(c);
	assert_int_equal(c->in_modifier, group);
	assert_int_not_equal(HCA_TPG_DOMAIN(c->in_param), 0);
	return c->in_param & HCA_TPG_PERMIT;
}

/* Users of a host share a group, which both ends have; and the peer's users use theirs of it. */
static void
test_import(void **state)
{
	uint32_t first, second, back, group;
	const struct hca_tpc *tpc;
	struct hca_ctl_peer_state s;

	assert_int_equal(import(0, 1, &first), 0);
	assert_int_equal(query(0, first, &s), 0);
	assert_int_equal(s.up, 0);
	group = group_of(0, first);
	assert_int_equal(import(0, 1, &second), 0);
	assert_int_equal(group_of(0, second), group);
	assert_int_equal(import(1, 0, &back), 0);
	(void)group_of(1, back);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(tps_in(i, HCA_TPS_ACTIVE), TPS);
	/* timeouts by round trips may be short, so there are more of them */
	tpc = (const void *)fake_last(host[1].fake, HCA_CMD_SW2HW_TP)->mailbox;
	assert_int_equal(hca_tpc_get(tpc, HCA_TPC_RETRIES), 11);
	assert_int_equal(counter(0, "cm_opened"), 1);
	assert_int_equal(counter(0, "cm_sent_REQ"), 2);
	assert_int_equal(counter(1, "cm_handled_REQ"), 2);
	assert_int_equal(counter(1, "cm_sent_REP"), 1);
	assert_int_equal(counter(0, "sent"), 3);
	assert_int_equal(counter(0, "received"), 2);
	assert_int_equal(unimport(0, first), 0);
	assert_int_equal(unimport(0, first), -EINVAL);
	assert_true(may_use(0, group));
	assert_int_equal(unimport(0, second), 0);
	assert_false(may_use(0, group));
	assert_int_equal(unimport(1, back), 0);
}

/* A receive without a datagram is counted, and serves another message. */
static void
test_bad_receives(void **state)
{
	const struct hca_cqe_ub bad[] = {
		{.tpn = hca_cpu_to_le32(5), .bytes = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES + 16)},
		{.status = HCA_UB_STATUS_LOCAL_LENGTH,
		 .bytes = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES + 16)},
		{.opcode = HCA_UB_TA_SEND_IMM,
		 .bytes = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES + 16)},
		{.bytes = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES - 1)},
		{.bytes = hca_cpu_to_le32(1089)},
		/* addresses of no version */
		{.bytes = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES + 16)},
	};
	const uint32_t n = sizeof(bad) / sizeof(bad[0]);
	struct host *h = &host[1];
	uint32_t posted = h->agent->mail.rq_posted, number;

	for (uint32_t i = 0; i < n; i++) {
		struct hca_cqe_ub cqe = bad[i];
		uint32_t slot = h->receives++;

		cqe.wqe = hca_cpu_to_le32(slot << 6);
		h->agent->mail.receives[slot * h->agent->mail.cfg.receive_bytes + 20] =
			i < n - 1 ? 0x45 : 0;
		complete(h, cqe);
	}
	turn();
	assert_int_equal(counter(1, "bad"), n);
	assert_int_equal(counter(1, "received"), 0);
	assert_int_equal(h->agent->mail.rq_posted, posted + n);
	assert_int_equal(import(0, 1, &number), 0);
	(void)group_of(0, number);
	assert_int_equal(counter(1, "bad"), n);
}

/* Without an answer the import fails after all repetitions, and none of it is left. */
static void
test_no_answer(void **state)
{
	struct hca_ctl_peer_state s;
	uint32_t number, again;

	host[1].deaf = true;
	assert_int_equal(import(0, 1, &number), 0);
	run_for(25 * SECOND);
	assert_int_equal(query(0, number, &s), 0);
	assert_int_equal(s.up, 0);
	run_for(SECOND);
	assert_int_equal(query(0, number, &s), -ETIMEDOUT);
	assert_non_null(strstr(hca_driver_reason(), "no answer"));
	assert_int_equal(counter(0, "cm_sent_REQ"), 1 + UBCM_REPEATS);
	assert_int_equal(counter(0, "cm_begun"), counter(0, "cm_ended"));
	assert_int_equal(host[0].fake->live[LIVE_TP], 0);
	assert_int_equal(host[0].agent->loop.deadline, UBCM_NEVER);
	assert_int_equal(unimport(0, number), 0);
	turn();
	assert_int_equal(host[0].agent->account.import[0].state, IMPORT_FREE);
	host[1].deaf = false;
	assert_int_equal(import(0, 1, &again), 0);
	(void)group_of(0, again);
}

/*
 * A channel is dead and its event not here yet: an import now gets new channels, not those.
 */
static void
test_just_dead(void **state)
{
	uint32_t old, number, group, tpn[FAKE_TPS];
	struct hca_ctl_peer_state s;

	assert_int_equal(import(0, 1, &old), 0);
	group = group_of(0, old);
	run_for(100 * MS);
	assert_int_equal(hca_driver_list_tps(host[0].drv, 0, tpn, FAKE_TPS), TPS);
	hca_tpc_set(&host[0].fake->tp[tpn[1] % FAKE_TPS], HCA_TPC_STATE, HCA_TPS_ERROR);
	assert_int_equal(import(0, 1, &number), 0);
	ubagent_poll(host[0].agent);
	assert_int_equal(query(0, number, &s), 0);
	assert_int_equal(s.up, 0);
	assert_int_equal(query(0, old, &s), -ETIMEDOUT);
	/* the old number stays the former user's until he gives it back */
	assert_int_not_equal(group_of(0, number), group);
	run_for(100 * MS);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(tps_in(i, HCA_TPS_ACTIVE), TPS);
	assert_int_equal(counter(1, "cm_handled_DISC"), 1);
	assert_int_equal(unimport(0, old), 0);
}

/* The channels of a host together take each path once that its low bits choose. */
static void
expect_ports(uint32_t of_each)
{
	uint32_t number, tpn[FAKE_TPS], paths = 2 * TPS * of_each;
	uint64_t taken = 0;
	struct hca_tpc c;

	for (unsigned int peer = 1; peer <= 2; peer++) {
		assert_int_equal(import(0, peer, &number), 0);
		(void)group_of(0, number);
	}
	assert_int_equal(hca_driver_list_tps(host[0].drv, 0, tpn, FAKE_TPS), 2 * TPS);
	for (uint32_t i = 0; i < 2 * TPS; i++) {
		assert_int_equal(hca_driver_query_tp(host[0].drv, tpn[i], &c), 0);
		assert_int_equal(1u << hca_tpc_get(&c, HCA_TPC_SPORTS_LOG), of_each);
		for (uint32_t k = 0; k < of_each; k++) {
			uint32_t port = hca_tpc_get(&c, HCA_TPC_SPORT) + k;

			assert_in_range(port, 0xc000, 0xffff);
			taken |= UINT64_C(1) << port % paths;
		}
	}
	assert_int_equal(taken, (UINT64_C(1) << paths) - 1);
}

static void
test_ports(void **state)
{
	expect_ports(1);
}

static void
test_ports_of_spray(void **state)
{
	expect_ports(1u << SPRAY_LOG);
}

static void
expect_flags(unsigned int peer, uint32_t flags)
{
	struct hca_ctl_eid eid;
	uint32_t number, tpn[FAKE_TPS], n;
	struct hca_tpc c;

	assert_int_equal(import(0, peer, &number), 0);
	(void)group_of(0, number);
	n = hca_driver_list_tps(host[0].drv, 0, tpn, FAKE_TPS);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(hca_driver_query_tp(host[0].drv, tpn[i], &c), 0);
		memcpy(eid.eid, c.path.rgid, sizeof(eid.eid));
		if (memcmp(eid.eid, host[peer].eid, sizeof(eid.eid)) == 0)
			assert_int_equal(hca_tpc_get(&c, HCA_TPC_FLAGS), flags);
	}
	assert_int_equal(unimport(0, number), 0);
}

/* Channels follow the specification's text, except for the choices of either end. */
static void
test_choices(void **state)
{
	expect_flags(1, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_TELL | HCA_TP_FLAG_CNP);
	expect_flags(2, HCA_TP_FLAG_OFST | HCA_TP_FLAG_RSP_BE | HCA_TP_FLAG_CNP);
}

static int
setup_choosing(void **state)
{
	int err;

	choices[1] = HCA_UB_SWITCH_OLD_VALUE_LE | HCA_UB_SWITCH_EDGE;
	choices[2] = HCA_UB_SWITCH_NO_TAID | HCA_UB_SWITCH_SILENT;
	err = start(false);
	memset(choices, 0, sizeof(choices));
	return err;
}

/* Receive mode, size of TPSACKs and exponent of timeouts are the configuration's. */
static void
test_knobs(void **state)
{
	uint32_t number, tpn;
	struct hca_tpc c;

	assert_int_equal(import(0, 1, &number), 0);
	(void)group_of(0, number);
	assert_true(hca_driver_list_tps(host[0].drv, 0, &tpn, 1) != 0);
	assert_int_equal(hca_driver_query_tp(host[0].drv, tpn, &c), 0);
	assert_int_equal(hca_tpc_get(&c, HCA_TPC_MODE), HCA_TP_MODE_TRACK);
	assert_int_equal(hca_tpc_get(&c, HCA_TPC_RULE), HCA_TP_RULE_NONE);
	assert_int_equal(HCA_TP_SACK_BITS(hca_tpc_get(&c, HCA_TPC_SACK)), 256);
	assert_int_equal(hca_tpc_get(&c, HCA_TPC_RTO_EXPONENT), 0);
}

static int
setup_knobs(void **state)
{
	int err;

	knobs = (struct ubagent_config){.mode = HCA_TP_MODE_TRACK + 1, .sack = 256, .exponent = 1};
	err = start(false);
	knobs = (struct ubagent_config){0};
	return err;
}

/* The event of a dead channel tells its users, and the peer. */
static void
test_dies(void **state)
{
	struct hca_ctl_peer_state s;
	uint32_t number, tpn[FAKE_TPS];

	assert_int_equal(import(0, 1, &number), 0);
	(void)group_of(0, number);
	run_for(100 * MS);
	assert_int_equal(hca_driver_list_tps(host[0].drv, 0, tpn, FAKE_TPS), TPS);
	ubagent_face.event(host[0].agent, tpn[0]);
	run_for(100 * MS);
	assert_int_equal(query(0, number, &s), -ETIMEDOUT);
	assert_int_equal(host[0].fake->live[LIVE_TP] + host[1].fake->live[LIVE_TP], 0);
	assert_int_equal(counter(0, "events"), 1);
}

/* A group without users for a minute: both ends drain it; a user in time keeps it. */
static void
test_idle(void **state)
{
	uint32_t number, group;

	assert_int_equal(import(0, 1, &number), 0);
	group = group_of(0, number);
	assert_int_equal(unimport(0, number), 0);
	run_for(59 * SECOND);
	assert_int_equal(tps_in(0, HCA_TPS_ACTIVE), TPS);
	assert_int_equal(import(0, 1, &number), 0);
	assert_int_equal(group_of(0, number), group);
	run_for(90 * SECOND);
	assert_int_equal(tps_in(0, HCA_TPS_ACTIVE), TPS);
	assert_int_equal(unimport(0, number), 0);
	/* the other end has asked more than once, and asks again before this one does */
	run_for(SECOND);
	assert_int_equal(tps_in(1, HCA_TPS_ACTIVE), TPS);
	for (unsigned int i = 0; i < 6000 && tps_in(0, HCA_TPS_DRAIN) == 0; i++)
		turn();
	assert_int_equal(tps_in(0, HCA_TPS_DRAIN), TPS);
	run_for(2 * SECOND);
	assert_int_equal(host[0].fake->live[LIVE_TP] + host[1].fake->live[LIVE_TP], 0);
	assert_int_equal(counter(0, "cm_ended"), 1);
}

/* A program that ends gives back its imports, also in the middle of one. */
static void
test_client_ends(void **state)
{
	uint32_t number, other;

	assert_int_equal(import(0, 1, &number), 0);
	(void)group_of(0, number);
	assert_int_equal(import(0, 2, &other), 0);
	hca_client_close(host[0].client);
	assert_int_equal(hca_client_open(host[0].drv, NULL, &host[0].client), 0);
	run_for(62 * SECOND);
	assert_int_equal(host[0].fake->live[LIVE_TP], 0);
	assert_int_equal(counter(0, "cm_begun"), counter(0, "cm_ended"));
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(host[0].agent->account.import[i].state, IMPORT_FREE);
	assert_int_equal(query(0, number, &(struct hca_ctl_peer_state){0}), -EINVAL);
}

/* Others go on while the MAC address of an asker is looked for; then it is also answered. */
static void
test_unknown_neighbour(void **state)
{
	uint32_t slow, fast;
	struct hca_ctl_peer_state s = {.up = 0};

	assert_int_equal(import(0, 1, &slow), 0);
	run_for(100 * MS);
	assert_int_equal(counter(1, "kept"), 1);
	assert_int_equal(import(2, 1, &fast), 0);
	(void)group_of(2, fast);
	assert_int_equal(query(0, slow, &s), 0);
	assert_int_equal(s.up, 0);
	assert_int_equal(tps_in(1, HCA_TPS_ACTIVE), TPS);
	sem_post(&answer);
	for (unsigned int i = 0; i < 2000 && s.up == 0; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		turn();
		assert_int_equal(query(0, slow, &s), 0);
	}
	assert_int_equal(s.up, 1);
	run_for(100 * MS);
	assert_int_equal(tps_in(1, HCA_TPS_ACTIVE), 2 * TPS);
	assert_int_equal(counter(1, "unresolved"), 0);
}

static void
kill_channels(unsigned int i)
{
	uint32_t tpn[FAKE_TPS], n = hca_driver_list_tps(host[i].drv, 0, tpn, FAKE_TPS);

	for (uint32_t t = 0; t < n; t++)
		ubagent_face.event(host[i].agent, tpn[t]);
	run_for(100 * MS);
	assert_int_equal(host[i].fake->live[LIVE_TP], 0);
}

/*
 * A program whose peer ends its channels again and again keeps the imports: their groups cannot be
 * used again, so it gets no more until it gives some back. Another user does.
 */
static void
test_keeps_dead(void **state)
{
	const struct hca_client_who who = {.user = 1};
	struct hca_client *first = host[0].client;
	uint32_t number[FAKE_TPS], n = 0, other;

	for (; n < FAKE_TPS && import(0, 1, &number[n]) == 0; n++) {
		(void)group_of(0, number[n]);
		kill_channels(0);
	}
	assert_int_equal(n, FAKE_TPS / 4);
	assert_int_equal(import(0, 1, &number[n]), -EBUSY);
	assert_non_null(strstr(hca_driver_reason(), "given back first"));
	assert_int_equal(hca_client_open(host[0].drv, &who, &host[0].client), 0);
	assert_int_equal(import(0, 1, &other), 0);
	(void)group_of(0, other);
	hca_client_close(host[0].client);
	host[0].client = first;
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(unimport(0, number[i]), 0);
	turn();
	assert_int_equal(host[0].agent->account.ngone, 0);
	assert_int_equal(import(0, 1, &other), 0);
	(void)group_of(0, other);
}

/* A message of a host at 10.9.0.n, by the station n / 100 */
static void
keep_of_nobody(uint32_t n)
{
	static const uint8_t bytes[] = {UBCM_VERSION};
	struct cmagent_mail_letter l = {.mac = {2, 9, (uint8_t)(n / 100)},
					.bytes = bytes,
					.len = 1};

	memcpy(l.own, host[1].eid, sizeof(l.own));
	memcpy(l.peer, (const uint8_t[16]){[10] = 0xff, 0xff, 10, 9, (uint8_t)(n >> 8), (uint8_t)n},
	       16);
	cmagent_hops_keep(&host[1].agent->hops, l.own, l.peer, l.mac, l.bytes, l.len);
}

static uint32_t
places(enum cmagent_hop_state state, bool taken)
{
	struct cmagent_hops *hs = &host[1].agent->hops;
	uint32_t n = 0;

	pthread_mutex_lock(&hs->lock);
	for (uint32_t i = 0; i < host[1].agent->hops.cfg.places; i++)
		n += hs->hop[i].state == state && hs->hop[i].taken == taken;
	pthread_mutex_unlock(&hs->lock);
	return n;
}

/*
 * Stations with addresses that do not exist: one has a few places and keeps one thread busy; many
 * have all places, and the oldest gives way. A neighbour is found meanwhile.
 */
static void
test_stations(void **state)
{
	struct hca_ctl_peer_state s = {.up = 0};
	uint32_t number;

	for (uint32_t n = 0; n < 100; n++)
		keep_of_nobody(n);
	assert_int_equal(places(CMAGENT_HOP_ASKED, false) + places(CMAGENT_HOP_ASKED, true),
			 CMAGENT_HOP_OF_STATION);
	for (uint32_t n = 100; n < 500; n++)
		keep_of_nobody(n);
	assert_int_equal(counter(1, "replaced"), 5 * (100 - CMAGENT_HOP_OF_STATION));
	for (unsigned int i = 0; i < 2000 && places(CMAGENT_HOP_ASKED, true) != 5; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(places(CMAGENT_HOP_ASKED, true), 5);
	sem_post(&answer);
	assert_int_equal(import(0, 1, &number), 0);
	for (unsigned int i = 0; i < 2000 && s.up == 0; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		turn();
		assert_int_equal(query(0, number, &s), 0);
	}
	assert_int_equal(s.up, 1);
	assert_int_equal(places(CMAGENT_HOP_ASKED, true), 5);
	for (unsigned int i = 0; i < host[1].agent->hops.cfg.places; i++)
		sem_post(&never);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_import),
		TEST(test_bad_receives),
		TEST(test_no_answer),
		TEST(test_just_dead),
		TEST(test_keeps_dead),
		TEST(test_ports),
		cmocka_unit_test_setup_teardown(test_ports_of_spray, setup_spraying, teardown),
		cmocka_unit_test_setup_teardown(test_choices, setup_choosing, teardown),
		cmocka_unit_test_setup_teardown(test_knobs, setup_knobs, teardown),
		TEST(test_dies),
		TEST(test_idle),
		TEST(test_client_ends),
		cmocka_unit_test_setup_teardown(test_unknown_neighbour, setup_asking, teardown),
		cmocka_unit_test_setup_teardown(test_stations, setup_asking, teardown),
	};

	return cmocka_run_group_tests_name("ubagent", tests, NULL, NULL);
}
