/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The agent of connection management, over a device made of arrays, with state machines of the test
 * in the place of cm/ib.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../driver/fake_hw.h"
#include "abi_addr.h"
#include "fake_ibcm.h"
#include "ibagent_impl.h"

#define SECOND UINT64_C(1000000000)
#define VLAN 7u
#define GROUPS 8u

/* ---- the host ---- */

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static struct ibagent *agent;
static uint64_t now;
static uint32_t sent, received, cqes, kicks;

static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t own6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t stranger[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};
static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 3};

static struct {
	uint32_t gid_index;
	uint8_t first; /* byte of the group */
	bool joined;
} told[GROUPS];
static uint32_t ntold;

static uint64_t
clock_of(void *arg)
{
	return __atomic_load_n(&now, __ATOMIC_RELAXED);
}

static void
kick(void *arg)
{
	kicks++;
}

static void
group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	assert_true(ntold < GROUPS);
	told[ntold].gid_index = gid_index;
	told[ntold].first = mgid[0];
	told[ntold++].joined = joined;
}

static void progress(void *arg);

static void
start(bool thread)
{
	struct hca_driver_config config = {.timeout_ms = 50};
	struct ibagent_config c = {.thread = thread,
				   .seed = 5,
				   .now = clock_of,
				   .kick = kick,
				   .progress = progress,
				   .group = group,
				   .rate = 4000,
				   .first_rate = 1000,
				   .address_rate = 2000};

	now = SECOND;
	sent = received = cqes = kicks = ntold = 0;
	sem_init(&ticked, 0, 0);
	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_driver_set_gid(drv, 0, own, own_mac, 0xffff), 0);
	assert_int_equal(hca_driver_set_gid(drv, 1, own, own_mac, VLAN), 0);
	assert_int_equal(hca_driver_set_gid(drv, 2, own6, own_mac, 0xffff), 0);
	assert_int_equal(hca_driver_set_neigh(drv, peer, peer_mac), 0);
	c.drv = drv;
	assert_int_equal(ibagent_create(&c, &agent), 0);
	assert_int_equal(hca_client_open(drv, &(struct hca_client_who){.user = 1000}, &client), 0);
}

static int
setup(void **state)
{
	start(false);
	(void)ibagent_poll(agent);
	return 0;
}

static int
setup_thread(void **state)
{
	start(true);
	return 0;
}

static int
teardown(void **state)
{
	hca_client_close(client);
	ibagent_destroy(agent);
	assert_int_equal(fake_last(fake, HCA_CMD_CONF_SPECIAL_QP)->in_modifier, 0);
	hca_driver_destroy(drv);
	assert_int_equal(fake->windows, 0);
	fake_hw_destroy(fake);
	sem_destroy(&ticked);
	return 0;
}

static int
call(enum hca_ctl_op op, const void *request, void *answer)
{
	return hca_client_call(client, op, request, answer, NULL);
}

static int
begin(void)
{
	uint32_t id = 1;

	return call(HCA_CTL_CM_DESTROY, &id, NULL);
}

static uint64_t
counter(const char *name)
{
	uint64_t value = 0;
	const char *at;

	for (uint32_t i = 0; (at = hca_driver_cm_counter(drv, i, &value)) != NULL; i++)
		if (strcmp(at, name) == 0)
			return value;
	fail_msg("no counter %s", name);
	return 0;
}

/* ---- the device ---- */

static void
complete(struct hca_cqe cqe, struct hca_cqe_more more)
{
	struct hca_cqe *slot =
		(void *)(agent->mail.cq +
			 (size_t)(cqes++ & ((1u << agent->mail.log_cq) - 1)) * HCA_CQE_LARGE_SIZE);

	assert_int_equal(slot->owner, HCA_OWNER_HW);
	*(struct hca_cqe_more *)(slot + 1) = more;
	cqe.owner = 0;
	*slot = cqe;
}

struct wqe {
	struct hca_next_unit next;
	struct hca_ud_unit ud;
	struct hca_data_unit data;
};

/* The WQE that was posted next; the device carries it out. */
static const struct wqe *
take_send(void)
{
	struct hca_uar_page *page = (void *)(uintptr_t)hca_client_uar(agent->mail.client);
	uint32_t mask = (1u << agent->mail.cfg.log_sends) - 1;
	const struct wqe *w =
		(void *)(agent->mail.sq + ((size_t)(sent & mask) << agent->mail.log_send_stride));

	assert_int_not_equal(agent->mail.sq_head, sent);
	sent++;
	complete((struct hca_cqe){.is_send = 1}, (struct hca_cqe_more){.vlan = 0});
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		page->fifo[i] = HCA_DB_EMPTY;
	return w;
}

/* With a CE mark in the IP header. */
static void
deliver_bytes(const uint8_t from[16], const uint8_t to[16], uint16_t vlan, uint32_t qpn,
	      const uint8_t *bytes, uint32_t len)
{
	struct cmagent_mail *m = &agent->mail;
	uint32_t slot = received++ & ((1u << m->cfg.log_receives) - 1);
	uint8_t *at = m->receives + (size_t)slot * m->cfg.receive_bytes;
	struct hca_cqe_more more = {.vlan = hca_cpu_to_le16(vlan)};

	memcpy(more.smac, other_mac, sizeof(more.smac));
	memset(at, 0, CMAGENT_MAIL_ADDRESSES);
	at[20] = 0x45;
	at[21] = 3;
	memcpy(at + 32, from + 12, 4);
	memcpy(at + 36, to + 12, 4);
	memcpy(at + CMAGENT_MAIL_ADDRESSES, bytes, len);
	complete((struct hca_cqe){.wqe = hca_cpu_to_le32(slot << 6),
				  .rqpn = hca_cpu_to_le32(qpn),
				  .byte_cnt = hca_cpu_to_le32(CMAGENT_MAIL_ADDRESSES + len)},
		 more);
}

/* The device executes its requests. */
static void
progress(void *arg)
{
	while (agent->mail.sq_head != sent)
		(void)take_send();
}

static void
deliver(const uint8_t from[16], const uint8_t to[16], uint16_t vlan, uint32_t qpn,
	uint16_t attribute)
{
	const uint8_t mad[IBCM_MAD_BYTES] = {[16] = (uint8_t)(attribute >> 8), (uint8_t)attribute};

	deliver_bytes(from, to, vlan, qpn, mad, sizeof(mad));
}

static void
deliver_good(void)
{
	deliver(peer, own, 0, HCA_QPN_GSI, 0x13);
}

/* ---- tests ---- */

static void
begins(void **state)
{
	assert_int_equal(fake_last(fake, HCA_CMD_CONF_SPECIAL_QP)->in_modifier, agent->mail.qpn);
	assert_int_equal(cm.gids, 3);
	assert_int_equal(cm.cfg.pkey, 0xffff);
	assert_true(cm.cfg.node_guid == hca_driver_node_guid(drv));
	assert_int_not_equal(cm.cfg.mtu, 0);
	assert_int_not_equal(cm.cfg.ops->random(agent), cm.cfg.ops->random(agent));
}

/* Operations are the client's, answers and words come back, events are in its channel. */
static void
operations(void **state)
{
	struct hca_ctl_cm_create create = {.space = HCA_CTL_CM_SPACE_TCP};
	struct hca_ctl_event record;
	uint32_t id = 0;
	int fd;

	assert_int_equal(call_create_channel(client, &create.channel, &fd), 0);
	assert_int_equal(call(HCA_CTL_CM_CREATE, &create, &id), 0);
	assert_int_equal(id, 5);
	assert_int_equal(cm.op, HCA_CTL_CM_CREATE);
	assert_int_equal(cm.user, 1000);
	assert_int_not_equal(cm.owner, 0);
	assert_int_equal(read(fd, &record, sizeof(record)), sizeof(record));
	assert_int_equal(record.type, HCA_CTL_EVENT_CM);
	assert_int_equal(record.object, create.channel);
	assert_int_equal(call(HCA_CTL_CM_DESTROY, &id, NULL), -EADDRINUSE);
	assert_string_equal(hca_driver_reason(), "the test refuses it");
	/* the channel ends: so do its ids */
	assert_int_equal(call(HCA_CTL_DESTROY_CHANNEL, &create.channel, NULL), 0);
	assert_int_equal(cm.channel, create.channel);
	close(fd);
}

static void
end_of_client(void **state)
{
	struct hca_client *second;

	assert_int_equal(hca_client_open(drv, NULL, &second), 0);
	hca_client_close(second);
	assert_int_equal(cm.forgotten, 1);
}

/* To a neighbour of the table, from QP 1 to QP 1; not under the lock of the driver. */
static void
sends(void **state)
{
	const struct wqe *w;
	uint64_t dmac;

	cm.to = (struct ibcm_way){.gid_index = 0, .hop_limit = 3, .traffic_class = 8};
	memcpy(cm.to.own, own, 16);
	memcpy(cm.to.peer, peer, 16);
	memcpy(cm.to.dmac, other_mac, 6); /* the table has another one */
	cm.sends = 2;
	assert_int_equal(begin(), -EADDRINUSE);
	assert_int_equal(agent->mail.sq_head, 0);
	assert_int_not_equal(ibagent_poll(agent), 0);
	assert_int_equal(kicks, 1);
	w = take_send();
	dmac = HCA_UD_DMAC(hca_le32_to_cpu(w->ud.mac_lo), hca_le32_to_cpu(w->ud.dmac_hi));
	assert_true(dmac == hca_mac_number(peer_mac));
	assert_int_equal(hca_le32_to_cpu(w->ud.dqpn), HCA_QPN_GSI);
	assert_int_equal(hca_le32_to_cpu(w->ud.port), HCA_UD_MAKE_PORT(1, 0, 3, 8));
	assert_memory_equal(w->ud.dgid, peer, 16);
	assert_int_equal(hca_le32_to_cpu(w->data.byte_cnt), IBCM_MAD_BYTES);
	assert_int_equal(*(const uint8_t *)(uintptr_t)hca_le64_to_cpu(w->data.addr), 1);
	w = take_send();
	assert_int_equal(*(const uint8_t *)(uintptr_t)hca_le64_to_cpu(w->data.addr), 2);
	assert_int_equal(counter("mads_sent"), 2);
	assert_int_equal(counter("mads_returned"), 0);
	cm.sends = 0;
}

/* No neighbour: to the station that the peer's datagram came from, if there is one. */
static void
sends_back(void **state)
{
	const struct wqe *w;
	uint64_t dmac;

	cm.to = (struct ibcm_way){.gid_index = 2};
	memcpy(cm.to.own, own, 16); /* the index is that of another address by now */
	memcpy(cm.to.peer, stranger, 16);
	memcpy(cm.to.dmac, other_mac, 6);
	cm.sends = 1;
	(void)begin();
	(void)ibagent_poll(agent);
	w = take_send();
	dmac = HCA_UD_DMAC(hca_le32_to_cpu(w->ud.mac_lo), hca_le32_to_cpu(w->ud.dmac_hi));
	assert_true(dmac == hca_mac_number(other_mac));
	assert_int_equal(HCA_UD_SGID_INDEX(hca_le32_to_cpu(w->ud.port)), 0);
	assert_int_equal(counter("mads_returned"), 1);
	memset(cm.to.dmac, 0, 6);
	(void)begin();
	(void)ibagent_poll(agent);
	memset(cm.to.dmac, 0xff, 6); /* a group is no station */
	(void)begin();
	(void)ibagent_poll(agent);
	assert_int_equal(counter("mads_no_hop"), 2);
	memcpy(cm.to.own, stranger, 16);
	(void)begin();
	(void)ibagent_poll(agent);
	assert_int_equal(counter("mads_no_address"), 1);
	assert_int_equal(counter("mads_sent"), 1);
	assert_int_equal(agent->mail.sq_head, 1);
	cm.sends = 0;
}

/* A message without room in the queue of sends leaves later; one beyond all bounds is counted. */
static void
sends_many(void **state)
{
	uint32_t depth = 1u << agent->mail.cfg.log_sends;

	cm.to = (struct ibcm_way){.gid_index = 0};
	memcpy(cm.to.own, own, 16);
	memcpy(cm.to.peer, peer, 16);
	cm.sends = IBAGENT_OUT + 5;
	(void)begin();
	assert_int_equal(counter("mads_queue_full"), 5);
	for (uint32_t i = 0; i < IBAGENT_OUT; i++) {
		if (agent->mail.sq_head == sent)
			(void)ibagent_poll(agent);
		assert_true(agent->mail.sq_head - sent <= depth);
		(void)take_send();
	}
	(void)ibagent_poll(agent);
	assert_int_equal(counter("mads_sent"), IBAGENT_OUT);
	cm.sends = 0;
}

static void
receives(void **state)
{
	deliver(peer, own, 0, HCA_QPN_GSI, 0x10);
	deliver(stranger, own, 5 << 13 | VLAN, HCA_QPN_GSI, 0x10);
	assert_int_not_equal(ibagent_poll(agent), 0);
	assert_int_equal(cm.inputs, 2);
	assert_memory_equal(cm.from[0].own, own, 16);
	assert_memory_equal(cm.from[0].peer, peer, 16);
	assert_memory_equal(cm.from[0].dmac, other_mac, 6);
	assert_int_equal(cm.from[0].gid_index, 0);
	assert_memory_equal(cm.from[1].peer, stranger, 16);
	assert_int_equal(cm.from[1].gid_index, 1);
	deliver(peer, stranger, 0, HCA_QPN_GSI, 0x10); /* no own address */
	deliver(peer, own, 0, 77, 0x10);	       /* not from QP 1 */
	(void)ibagent_poll(agent);
	assert_int_equal(cm.inputs, 2);
	assert_int_equal(counter("mads_bad"), 2);
	assert_int_equal(counter("mads_received"), 4);
	/* an address that goes is not known any more */
	assert_int_equal(hca_driver_clear_gid(drv, 0), 0);
	assert_int_equal(hca_driver_clear_gid(drv, 1), 0);
	deliver_good();
	(void)ibagent_poll(agent);
	assert_int_equal(counter("mads_bad"), 3);
}

static void
rest(void)
{
	for (uint32_t i = 0; i < 20; i++)
		(void)ibagent_poll(agent);
}

/* 2,000 a second of one address are 100 at once; another address is not affected. */
static void
one_address_floods(void **state)
{
	for (uint32_t i = 0; i < 150; i++)
		deliver_good();
	deliver(stranger, own, 0, HCA_QPN_GSI, 0x13);
	rest();
	assert_in_range(cm.inputs, 100, 103);
	assert_memory_equal(cm.from[cm.inputs - 1].peer, stranger, 16);
	assert_int_equal(counter("mads_excess_address"), 151 - cm.inputs);
	now += SECOND / 100;
	for (uint32_t i = 0; i < 30; i++)
		deliver_good();
	rest();
	assert_in_range(cm.inputs, 120, 124);
}

/* Messages that begin a request leave room for those of begun ones. */
static void
requests_flood(void **state)
{
	for (uint32_t i = 0; i < 150; i++)
		deliver(stranger, own, 0, HCA_QPN_GSI, i & 1 ? 0x10 : 0x17);
	deliver_good();
	rest();
	assert_in_range(cm.inputs, 51, 53);
	assert_memory_equal(cm.from[cm.inputs - 1].peer, peer, 16);
	assert_int_equal(counter("mads_excess_first"), 151 - cm.inputs);
}

/* All together: the agent stops to take them, and goes on when the next is due. */
static void
all_flood(void **state)
{
	uint8_t from[16] = {[10] = 0xff, 0xff, 10, 7};
	uint32_t before;

	for (uint32_t i = 0; i < 300; i++) {
		from[14] = (uint8_t)(i >> 8);
		from[15] = (uint8_t)i;
		deliver(from, own, 0, HCA_QPN_GSI, 0x13);
	}
	rest();
	before = cm.inputs;
	assert_in_range(before, 200, 203);
	assert_int_not_equal(counter("mads_pauses"), 0);
	assert_true(agent->loop.mail_at > now);
	assert_int_equal(agent->loop.deadline, agent->loop.mail_at);
	now = agent->loop.mail_at;
	rest();
	assert_true(cm.inputs > before);
	now += SECOND;
	rest();
	assert_int_equal(cm.inputs, 300);
}

static void
ways(void **state)
{
	cm.wishes = true;
	memcpy(cm.wish.dst, peer, 16);
	(void)begin();
	assert_int_equal(cm.resolved, 0); /* not under the lock of the driver */
	(void)ibagent_poll(agent);
	assert_int_equal(cm.resolved, 1);
	assert_int_equal(cm.ticket, 99);
	assert_int_equal(cm.err, 0);
	assert_memory_equal(cm.way.own, own, 16);
	assert_memory_equal(cm.way.peer, peer, 16);
	assert_memory_equal(cm.way.dmac, peer_mac, 6);
	cm.wish.fixed = true;
	cm.wish.gid_index = 1;
	(void)begin();
	(void)ibagent_poll(agent);
	assert_int_equal(cm.err, 0);
	assert_int_equal(cm.way.gid_index, 1);
	memcpy(cm.wish.dst, stranger, 16);
	(void)begin();
	(void)ibagent_poll(agent);
	assert_int_equal(cm.err, -EHOSTUNREACH);
	cm.wish.gid_index = 2; /* IPv6 */
	(void)begin();
	(void)ibagent_poll(agent);
	assert_int_equal(cm.err, -ENODEV);
	assert_int_equal(counter("ways_failed"), 2);
	assert_int_equal(counter("ways_asked"), 4);
}

/* A link-local destination of an interface is reached by the address of that interface. */
static void
scopes(void **state)
{
	static const uint8_t near_peer[16] = {0xfe, 0x80, [15] = 2};

	for (uint32_t i = 3; i < 5; i++) {
		const uint8_t near_own[16] = {0xfe, 0x80, [15] = (uint8_t)(0x10 + i)};

		assert_int_equal(hca_driver_set_gid_of(drv, i, near_own, own_mac, 0xffff, i), 0);
	}
	assert_int_equal(hca_driver_set_neigh(drv, near_peer, peer_mac), 0);
	cm.wishes = true;
	memcpy(cm.wish.dst, near_peer, 16);
	for (cm.wish.scope = 3; cm.wish.scope < 5; cm.wish.scope++) {
		(void)begin();
		(void)ibagent_poll(agent);
		assert_int_equal(cm.err, 0);
		assert_int_equal(cm.way.gid_index, cm.wish.scope);
	}
}

static void
join(uint8_t first, bool joined)
{
	const uint8_t mgid[16] = {first};

	pthread_mutex_lock(&agent->lock);
	cm.cfg.ops->group(agent, 1, mgid, joined);
	pthread_mutex_unlock(&agent->lock);
	cmagent_loop_wake(&agent->loop);
}

/* An address that has come and gone in between is not announced. */
static void
groups(void **state)
{
	join(1, true);
	join(2, true);
	join(2, false);
	(void)ibagent_poll(agent);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].first, 1);
	assert_int_equal(told[0].gid_index, 1);
	assert_true(told[0].joined);
	join(1, false);
	join(1, true);
	(void)ibagent_poll(agent);
	assert_int_equal(ntold, 1);
	join(1, false);
	join(3, true);
	(void)ibagent_poll(agent);
	assert_int_equal(ntold, 3);
	assert_true(told[1].first == 1 && !told[1].joined && told[2].joined);
}

static void
deadlines(void **state)
{
	cm.deadline = now + 10;
	(void)begin(); /* the agent is told of it */
	(void)ibagent_poll(agent);
	assert_int_equal(cm.ticks, 0);
	now += 9;
	(void)ibagent_poll(agent);
	assert_int_equal(cm.ticks, 0);
	now += 1;
	(void)ibagent_poll(agent);
	assert_int_equal(cm.ticks, 1);
}

/* Peers are told at the end; more than the queue of sends takes at once. */
static void
last_words(void **state)
{
	cm.to = (struct ibcm_way){.gid_index = 0};
	memcpy(cm.to.own, own, 16);
	memcpy(cm.to.peer, peer, 16);
	cm.sends = 300;
	ibagent_destroy(agent);
	agent = NULL;
	cm.sends = 0;
	assert_int_equal(sent, 300);
}

/* Each step that fails leaves nothing, and says so; then it works. */
static void
create_fails(void **state)
{
	static const uint32_t ops[] = {HCA_CMD_SW2HW_CQ, HCA_CMD_RST2INIT_QPEE,
				       HCA_CMD_RTR2RTS_QPEE, HCA_CMD_CONF_SPECIAL_QP};
	const struct ibagent_config c = {.drv = drv, .now = clock_of};

	ibagent_destroy(agent);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		agent = NULL;
		fake->fail_op = ops[i];
		fake->fail_status = HCA_STAT_EXCEED_LIM;
		assert_int_not_equal(ibagent_create(&c, &agent), 0);
		assert_null(agent);
		assert_int_equal(fake->live[LIVE_QP] + fake->live[LIVE_CQ], 0);
		assert_int_equal(begin(), -EOPNOTSUPP);
	}
	assert_int_equal(ibagent_create(&c, &agent), 0);
}

static void
dead_device(void **state)
{
	uint32_t key = 4;

	fake->mute = true;
	assert_int_not_equal(call_drop(client, HCA_CTL_DEREG_MR, key), 0);
	(void)hca_driver_clear_gid(drv, 0);
	assert_true(hca_driver_dead(drv));
	for (unsigned int i = 0; i < 3; i++)
		(void)ibagent_poll(agent);
	assert_int_equal(cm.deaths, 1);
}

static int
teardown_dead(void **state)
{
	hca_client_close(client);
	ibagent_destroy(agent);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
	sem_destroy(&ticked);
	return 0;
}

static void
lists(void **state)
{
	struct ibcm_entry e[2];

	assert_int_equal(ibagent_list(agent, 0, e, 2), 1);
	assert_int_equal(e[0].index, 3);
	assert_true(e[0].since == SECOND / 2); /* ns ago */
	assert_int_equal(ibagent_list(agent, 4, e, 2), 0);
	assert_int_equal(counter("req_received"), 77);
}

/* Its own thread is woken by a client's request, and runs on its deadline. */
static void
thread(void **state)
{
	pthread_mutex_lock(&agent->lock);
	cm.deadline = now;
	pthread_mutex_unlock(&agent->lock);
	(void)begin();
	while (sem_wait(&ticked) != 0)
		;
	cm.wishes = true;
	memcpy(cm.wish.dst, peer, 16);
	(void)begin();
	for (uint32_t n = 0; n != 1;) {
		usleep(100);
		pthread_mutex_lock(&agent->lock);
		n = cm.resolved;
		pthread_mutex_unlock(&agent->lock);
	}
}

/* ---- pings ---- */

static const uint8_t *
sent_bytes(const struct wqe *w)
{
	return (const uint8_t *)(uintptr_t)hca_le64_to_cpu(w->data.addr);
}

/* Those of peers are answered, without the state machines. */
static void
answers_pings(void **state)
{
	uint8_t bytes[IBPING_BYTES_MAX] = {1,	 0x4f,	   1,	     1,	   [8] = 0xab, [16] = 0x53,
					   0x48, [22] = 1, [37] = 2, 0x53, 0x48,       1};
	const struct wqe *w;

	deliver_bytes(peer, own, 0, HCA_QPN_GSI, bytes, 256);
	bytes[22] = 0x0f;
	deliver_bytes(stranger, own, VLAN, HCA_QPN_GSI, bytes, 3840);
	(void)ibagent_poll(agent);
	assert_int_equal(cm.inputs, 0);
	assert_int_equal(counter("pings_answered"), 2);
	w = take_send();
	assert_int_equal(hca_le32_to_cpu(w->data.byte_cnt), 256);
	assert_memory_equal(w->ud.dgid, peer, 16);
	assert_int_equal(hca_le32_to_cpu(w->ud.port),
			 HCA_UD_MAKE_PORT(1, 0, CMAGENT_MAIL_HOP_LIMIT, IBPING_TRAFFIC_CLASS));
	assert_int_equal(sent_bytes(w)[3], 0x81);
	assert_int_equal(sent_bytes(w)[8], 0xab);
	assert_int_equal(sent_bytes(w)[41], 3); /* the mark */
	w = take_send();
	assert_int_equal(hca_le32_to_cpu(w->data.byte_cnt), 64);
	assert_int_equal(HCA_UD_SGID_INDEX(hca_le32_to_cpu(w->ud.port)), 1);
	bytes[3] = 0x99;
	deliver_bytes(peer, own, 0, HCA_QPN_GSI, bytes, 256);
	(void)ibagent_poll(agent);
	assert_int_equal(counter("pings_bad"), 1);
	assert_int_equal(cm.inputs, 0);
}

static void
pings(void **state)
{
	struct ibping_request q = {.count = 2,
				   .size = 256,
				   .interval = SECOND / 10,
				   .timeout = SECOND};
	struct ibping_result r;
	uint8_t bytes[256];
	uint64_t rtt[2];
	int number;

	memcpy(q.way.own, own, 16);
	memcpy(q.way.peer, peer, 16);
	q.way.hop_limit = 64;
	number = ibagent_ping_begin(agent, &q);
	assert_true(number > 0);
	for (uint32_t i = 0; i < 2; i++) {
		(void)ibagent_poll(agent);
		memcpy(bytes, sent_bytes(take_send()), sizeof(bytes));
		bytes[3] = 0x81;
		bytes[41] = 2;
		now += SECOND / 100;
		deliver_bytes(peer, own, 0, HCA_QPN_GSI, bytes, sizeof(bytes));
		(void)ibagent_poll(agent);
		now += SECOND / 10;
	}
	(void)ibagent_poll(agent);
	assert_int_equal(ibagent_ping_look(agent, (uint32_t)number, 0, rtt, 2, &r), 0);
	assert_true(r.done);
	assert_int_equal(r.received, 2);
	assert_int_equal(r.ce_back, 2);
	assert_int_equal(rtt[0], SECOND / 100);
	assert_int_equal(rtt[1], SECOND / 100);
	assert_int_equal(cm.inputs, 0);
	assert_int_equal(ibagent_ping_end(agent, (uint32_t)number), 0);
	assert_int_equal(ibagent_ping_end(agent, (uint32_t)number), -ENOENT);
}

/* Refusals of a port are not those of an address. */
static void
refusals(void **state)
{
	struct hca_ctl_cm_bind bind = {
		.addr = {.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .port = 7}};
	struct ibagent_refusal r;

	cm.refusal = -EADDRNOTAVAIL;
	for (uint32_t i = 0; i < 2; i++) {
		cm.why = i == 0 ? "not ours" : IBCM_WHY_PORTS;
		assert_int_equal(call(HCA_CTL_CM_BIND, &bind, NULL), -EADDRNOTAVAIL);
		(void)ibagent_refusal(agent, IBAGENT_REFUSED_foreign_address + i, &r);
		assert_string_equal(r.text, i == 0 ? "10.0.0.1:7" : IBCM_WHY_PORTS);
	}
}

/* Without a manager of connections the operations are refused. */
static void
after_the_end(void **state)
{
	ibagent_destroy(agent);
	agent = NULL;
	assert_int_equal(begin(), -EOPNOTSUPP);
	assert_non_null(strstr(hca_driver_reason(), "no connection manager"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(begins),
		T(operations),
		T(refusals),
		T(end_of_client),
		T(sends),
		T(sends_back),
		T(sends_many),
		T(receives),
		T(one_address_floods),
		T(requests_flood),
		T(all_flood),
		T(ways),
		T(scopes),
		T(groups),
		T(deadlines),
		T(last_words),
		T(lists),
		T(create_fails),
		T(answers_pings),
		T(pings),
		T(after_the_end),
#undef T
		cmocka_unit_test_setup_teardown(dead_device, setup, teardown_dead),
		cmocka_unit_test_setup_teardown(thread, setup_thread, teardown),
	};

	return cmocka_run_group_tests_name("ibagent", tests, NULL, NULL);
}
