/* SPDX-License-Identifier: BSD-3-Clause */

/* Peers that clients import: the driver's calls of the agent, its counts, its commands. */

#include "ub_clients.h"

/* ---- peers: an agent with answers of the test ---- */

#define IMPORTS 64u
#define ALL_LINKS 3u

static struct {
	struct hca_driver_import import;
	uint32_t imports, given_back, forgotten, owner;
	int answer;  /* of query */
	int refuses; /* imports */
	bool told[IMPORTS];
	struct hca_driver_import was[IMPORTS];
} agent;

static int
agent_import(void *arg, const struct hca_driver_import *request, uint32_t *number)
{
	if (agent.refuses != 0)
		return agent.refuses;
	assert_true(agent.imports < IMPORTS);
	agent.import = *request;
	agent.was[agent.imports] = *request;
	*number = 0x7000 + agent.imports++;
	return 0;
}

static int
agent_query(void *arg, uint32_t owner, uint32_t number, uint32_t *tpg, bool *first,
	    const char **why)
{
	agent.owner = owner;
	*tpg = 5;
	*first = agent.answer == 0 && !agent.told[number - 0x7000];
	agent.told[number - 0x7000] |= agent.answer == 0;
	*why = "no answer";
	return agent.answer;
}

static int
agent_unimport(void *arg, uint32_t owner, uint32_t number, uint32_t *tpg,
	       struct hca_driver_import *was)
{
	if (number < 0x7000 || number >= 0x7000 + agent.imports)
		return -EINVAL;
	*tpg = agent.told[number - 0x7000] ? 5 : HCA_DRIVER_NO_TPG;
	*was = agent.was[number - 0x7000];
	agent.given_back++;
	return 0;
}

static uint32_t
agent_links(void *arg)
{
	return ALL_LINKS;
}

static void
agent_forget(void *arg, uint32_t owner)
{
	agent.forgotten = owner;
}

static const char *
agent_counter(void *arg, uint32_t i, uint64_t *value)
{
	*value = 40 + i;
	return i < 2 ? "counter" : NULL;
}

static const struct hca_driver_agent fake_agent = {
	.import = agent_import,
	.query = agent_query,
	.unimport = agent_unimport,
	.links = agent_links,
	.forget = agent_forget,
	.counter = agent_counter,
};

static int
import(unsigned int i, uint32_t gid_index, uint8_t last, uint32_t *number)
{
	struct hca_ctl_peer p = {.gid_index = gid_index,
				 .eid = {[10] = 0xff, 0xff, 10, 0, 0, last}};

	return hca_client_call(client[i], HCA_CTL_IMPORT_PEER, &p, number, NULL);
}

static int
query_peer(unsigned int i, uint32_t number, struct hca_ctl_peer_state *s)
{
	return hca_client_call(client[i], HCA_CTL_QUERY_PEER, &number, s, NULL);
}

static int
unimport(unsigned int i, uint32_t number)
{
	return hca_client_call(client[i], HCA_CTL_UNIMPORT_PEER, &number, NULL, NULL);
}

static void
peers(void **state)
{
	struct hca_ctl_peer_state s;
	uint64_t value;
	uint32_t number;

	memset(&agent, 0, sizeof(agent));
	assert_int_equal(import(1, 0, 2, &number), -EOPNOTSUPP); /* no agent */
	assert_null(hca_driver_agent_counter(drv, 0, &value));
	hca_driver_set_agent(drv, &fake_agent, NULL);
	assert_int_equal(import(1, 0, 2, &number), 0);
	assert_int_equal(number, 0x7000);
	assert_int_equal(agent.import.own[15], 1);
	assert_int_equal(agent.import.peer[15], 2);
	/* the way to it is known already */
	assert_memory_equal(agent.import.ah.dmac, "\2\0\0\0\0\2", 6);
	assert_memory_equal(agent.import.ah.smac, "\2\0\0\0\0\1", 6);
	assert_int_equal(import(1, 3, 2, &number), -EINVAL);	   /* no such address */
	assert_int_equal(import(1, 0, 9, &number), -EHOSTUNREACH); /* no MAC address */
	assert_int_equal(agent.imports, 1);
	agent.answer = -EINPROGRESS;
	assert_int_equal(query_peer(1, 0x7000, &s), 0);
	assert_int_equal(s.up, 0);
	assert_int_equal(agent.owner, agent.import.owner);
	agent.answer = 0;
	assert_int_equal(query_peer(1, 0x7000, &s), 0);
	assert_int_equal(s.up, 1);
	assert_int_equal(s.tpg, 5);
	agent.answer = -ETIMEDOUT;
	assert_int_equal(query_peer(1, 0x7000, &s), -ETIMEDOUT);
	assert_non_null(strstr(hca_driver_reason(), "no answer"));
	assert_int_equal(unimport(1, 0x6fff), -EINVAL);
	assert_int_equal(unimport(1, 0x7000), 0);
	assert_string_equal(hca_driver_agent_counter(drv, 1, &value), "counter");
	assert_int_equal(value, 41);
	assert_null(hca_driver_agent_counter(drv, 2, &value));
	hca_driver_set_agent(drv, NULL, NULL);
	assert_int_equal(unimport(1, 0x7000), -EOPNOTSUPP);
}

/* A quota of imports: the place of an import is free after it is given back or the client ends. */
static void
peers_have_a_quota(void **state)
{
	uint32_t number, other;

	memset(&agent, 0, sizeof(agent));
	hca_driver_set_agent(drv, &fake_agent, NULL);
	for (unsigned int k = 0; k < 2 * QUOTA; k++)
		assert_int_equal(import(1, 0, 2, &number), 0);
	assert_int_equal(import(1, 0, 2, &other), -ENOMEM);
	assert_non_null(strstr(hca_driver_reason(), "imported peers"));
	assert_int_equal(import(0, 0, 2, &other), 0);
	assert_int_equal(unimport(1, number), 0);
	assert_int_equal(unimport(1, 1), -EINVAL); /* gives nothing back */
	assert_int_equal(import(1, 0, 2, &number), 0);
	assert_int_equal(import(1, 0, 2, &number), -ENOMEM);
	hca_client_close(client[1]);
	assert_int_equal(agent.forgotten, agent.import.owner);
	open_client(1);
	for (unsigned int k = 0; k < 2 * QUOTA; k++)
		assert_int_equal(import(1, 0, 2, &number), 0);
	assert_int_equal(import(1, 0, 2, &number), -ENOMEM);
}

/* ---- links: an address of the host and a peer ---- */

static void
know_peers(uint32_t n)
{
	memset(&agent, 0, sizeof(agent));
	hca_driver_set_agent(drv, &fake_agent, NULL);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(
			hca_driver_set_neigh(
				drv,
				(const uint8_t[16]){[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(2 + i)},
				(const uint8_t *)"\2\0\0\0\0\2"),
			0);
}

static uint32_t
links_of(unsigned int i)
{
	struct hca_driver_client_info info[CLIENTS];

	assert_int_equal(hca_driver_list_clients(drv, 0, info, CLIENTS), CLIENTS);
	return info[i].links;
}

/*
 * A client has a quota of peers, each imported any number of times; a peer of several clients is
 * paid once.
 */
static void
links_have_a_quota(void **state)
{
	uint32_t number[4], other[4], again;

	know_peers(4);
	for (uint8_t k = 0; k < LINKS; k++)
		assert_int_equal(import(1, 0, 2 + k, &number[k]), 0);
	assert_int_equal(import(1, 0, 2, &again), 0);
	assert_int_equal(links_of(1), LINKS);
	assert_int_equal(import(1, 0, 4, &number[2]), -ENOMEM);
	assert_non_null(strstr(hca_driver_reason(), "[quota] links = 2"));
	/* the other one shares a link, and has one of its own: the last there is */
	assert_int_equal(import(0, 0, 2, &other[0]), 0);
	assert_int_equal(import(0, 0, 4, &other[1]), 0);
	assert_int_equal(links_of(0), 1);
	assert_int_equal(import(0, 0, 5, &other[2]), -ENOMEM);
	assert_non_null(strstr(hca_driver_reason(), "0 are left"));
	/* an existing link is free */
	assert_int_equal(import(1, 0, 4, &number[2]), 0);
	assert_int_equal(links_of(1), LINKS);
	/* the last import of the payer: the other one pays */
	assert_int_equal(unimport(1, number[0]), 0);
	assert_int_equal(links_of(1), LINKS);
	assert_int_equal(unimport(1, again), 0);
	assert_int_equal(links_of(1), LINKS - 1);
	assert_int_equal(links_of(0), 2);
	assert_int_equal(unimport(0, other[0]), 0);
	assert_int_equal(links_of(0), 1);
	assert_int_equal(import(0, 0, 5, &other[2]), 0);
}

/* When a client ends, its links end; a link that another client imports passes to that client. */
static void
links_end_with_their_client(void **state)
{
	uint32_t number;

	know_peers(4);
	assert_int_equal(import(1, 0, 2, &number), 0);
	assert_int_equal(import(1, 0, 3, &number), 0);
	assert_int_equal(import(0, 0, 3, &number), 0);
	assert_int_equal(links_of(0), 0);
	hca_client_close(client[1]);
	open_client(1);
	assert_int_equal(links_of(0), 1);
	assert_int_equal(links_of(1), 0);
	/* a refused import is not paid */
	agent.refuses = -ENOMEM;
	assert_int_equal(import(1, 0, 2, &number), -ENOMEM);
	assert_int_equal(links_of(1), 0);
}

/* These addresses have MAC addresses, but are not of hosts: the import is refused. */
static void
not_unicast(void **state)
{
	static const uint8_t bad[][16] = {
		{[10] = 0xff, 0xff, 224, 0, 0, 1},
		{[10] = 0xff, 0xff, 239, 255, 255, 255},
		{[10] = 0xff, 0xff, 255, 255, 255, 255},
		{[10] = 0xff, 0xff, 0, 0, 0, 0},
		{0xff, 2, [15] = 1},
		{0},
	};

	know_peers(1);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hca_ctl_peer p = {.gid_index = 0};
		uint32_t number;

		memcpy(p.eid, bad[i], 16);
		assert_int_equal(hca_client_call(client[1], HCA_CTL_IMPORT_PEER, &p, &number, NULL),
				 -EINVAL);
		assert_non_null(strstr(hca_driver_reason(), "not the address of a host"));
	}
	assert_int_equal(agent.imports, 0);
}

/* ---- whose TP it is ---- */

static int
tp_eid(unsigned int i, uint32_t tpn)
{
	struct hca_ctl_eid eid;

	return hca_client_call(client[i], HCA_CTL_QUERY_TP_EID, &tpn, &eid, NULL);
}

/* A user that tries numbers is slowed down; others are not. */
static void
tpns_cannot_be_guessed(void **state)
{
	uint32_t refused = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		int err = tp_eid(1, 0x1000 + i);

		assert_true(err == -EINVAL || err == -EAGAIN);
		refused += err == -EAGAIN;
	}
	assert_true(refused >= 900);
	assert_int_equal(tp_eid(0, 0x1000), -EINVAL);
	hca_client_close(client[1]); /* the user is the same one afterwards */
	open_client(1);
	refused = 0;
	for (uint32_t i = 0; i < 1000; i++)
		refused += tp_eid(1, 0x2000 + i) == -EAGAIN;
	assert_true(refused >= 900);
}

/* ---- which groups clients may use ---- */

/* The last PERMIT_TPG command names the group, and permits or revokes the client. */
static void
permitted(bool may)
{
	const struct fake_command *c = fake_last(fake, HCA_CMD_PERMIT_TPG);

	assert_non_null(c);
	assert_int_equal(c->in_modifier, 5);
	assert_int_equal(c->in_param, agent.import.owner | (may ? HCA_TPG_PERMIT : 0));
	fake->count = 0;
}

static void
not_changed(void)
{
	assert_null(fake_last(fake, HCA_CMD_PERMIT_TPG));
}

/* From the first import of a group that is up to the end of the last. */
static void
imports_permit(void **state)
{
	struct hca_ctl_peer_state s;
	uint32_t number[3];

	memset(&agent, 0, sizeof(agent));
	hca_driver_set_agent(drv, &fake_agent, NULL);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(import(1, 0, 2, &number[i]), 0);
	agent.answer = -EINPROGRESS;
	assert_int_equal(query_peer(1, number[0], &s), 0);
	not_changed();
	agent.answer = 0;
	assert_int_equal(query_peer(1, number[0], &s), 0);
	permitted(true);
	assert_int_equal(query_peer(1, number[0], &s), 0); /* asked once more */
	assert_int_equal(query_peer(1, number[1], &s), 0);
	not_changed();
	assert_int_equal(unimport(1, number[2]), 0); /* which was not up */
	assert_int_equal(unimport(1, number[0]), 0);
	not_changed();
	assert_int_equal(unimport(1, number[1]), 0);
	permitted(false);
	/* another client is another one's */
	assert_int_equal(import(0, 0, 2, &number[0]), 0);
	assert_int_equal(query_peer(0, number[0], &s), 0);
	permitted(true);
}

/* Its channels have died meanwhile, or there is no device any more. */
static void
permits_fail(void **state)
{
	struct hca_ctl_peer_state s;
	uint32_t number;

	memset(&agent, 0, sizeof(agent));
	hca_driver_set_agent(drv, &fake_agent, NULL);
	assert_int_equal(import(1, 0, 2, &number), 0);
	fake->fail_op = HCA_CMD_PERMIT_TPG;
	assert_int_equal(query_peer(1, number, &s), 0);
	assert_int_equal(s.up, 1);
	assert_int_equal(unimport(1, number), 0);
	fake->fail_op = 0;
	assert_int_equal(hca_driver_permit_tpg(drv, 1, 7, true), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(peers),
		T(peers_have_a_quota),
		T(links_have_a_quota),
		T(links_end_with_their_client),
		T(not_unicast),
		T(tpns_cannot_be_guessed),
		T(imports_permit),
		T(permits_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
