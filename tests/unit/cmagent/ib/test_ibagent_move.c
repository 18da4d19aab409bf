/* SPDX-License-Identifier: BSD-3-Clause */

/* Next hops that move: the agent asks for the MAC address of a peer that does not answer. */

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "../../driver/fake_hw.h"
#include "abi_addr.h"
#include "fake_ibcm.h"
#include "ibagent_impl.h"

#define SECOND UINT64_C(1000000000)

static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t first_mac[6] = {2, 0, 0, 0, 0, 2};

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static struct ibagent *agent;
static uint64_t now;
static uint32_t sent;
static uint8_t place; /* last byte of the MAC address that the neighbour has now; atomic */

static uint64_t
clock_of(void *arg)
{
	return __atomic_load_n(&now, __ATOMIC_RELAXED);
}

static int
ask_neighbour(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	memcpy(dmac, first_mac, 6);
	dmac[5] = __atomic_load_n(&place, __ATOMIC_RELAXED);
	return 0;
}

static int
setup(void **state)
{
	struct hca_driver_config config = {.timeout_ms = 50, .resolve = ask_neighbour};
	struct ibagent_config c = {.seed = 5, .now = clock_of, .asks = true};

	now = SECOND;
	sent = 0;
	sem_init(&ticked, 0, 0);
	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_driver_set_gid(drv, 0, own, own_mac, 0xffff), 0);
	c.drv = drv;
	assert_int_equal(ibagent_create(&c, &agent), 0);
	assert_int_equal(hca_client_open(drv, &(struct hca_client_who){.user = 1000}, &client), 0);
	return 0;
}

static int
teardown(void **state)
{
	cm.sends = 0;
	hca_client_close(client);
	ibagent_destroy(agent);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
	sem_destroy(&ticked);
	return 0;
}

/* The last byte of the MAC address that the next datagram goes to */
static uint8_t
goes_to(void)
{
	struct cmagent_mail *m = &agent->mail;
	const struct hca_ud_unit *ud;
	uint32_t id = 1, slot = sent & ((1u << m->cfg.log_sends) - 1);

	(void)hca_client_call(client, HCA_CTL_CM_DESTROY, &id, NULL, NULL);
	(void)ibagent_poll(agent);
	assert_int_equal(m->sq_head, ++sent);
	ud = (const void *)(m->sq + ((size_t)slot << m->log_send_stride) +
			    sizeof(struct hca_next_unit));
	return (uint8_t)HCA_UD_DMAC(hca_le32_to_cpu(ud->mac_lo), hca_le32_to_cpu(ud->dmac_hi));
}

static void
await_place(uint8_t last)
{
	struct hca_ctl_ah ah = {.sgid_index = 0};

	while (!cmagent_hops_find(&agent->hops, own, peer, &ah) || ah.dmac[5] != last)
		sched_yield();
}

static void
follows(void **state)
{
	struct ibcm_way *to = &cm.to;

	place = 7;
	*to = (struct ibcm_way){.hop_limit = 64};
	memcpy(to->own, own, 16);
	memcpy(to->peer, peer, 16);
	memcpy(to->dmac, first_mac, 6);
	cm.sends = 1;
	assert_int_equal(goes_to(), 2);
	to->doubted = true;
	(void)goes_to(); /* it is asked for, if it is not known yet */
	await_place(7);
	assert_int_equal(goes_to(), 7);
	/* and again: a known address is old after half a second */
	__atomic_store_n(&place, 8, __ATOMIC_RELAXED);
	assert_int_equal(goes_to(), 7);
	__atomic_store_n(&now, 2 * SECOND, __ATOMIC_RELAXED);
	(void)goes_to();
	await_place(8);
	assert_int_equal(goes_to(), 8);
	/* one that answers is not asked for */
	to->doubted = false;
	assert_int_equal(goes_to(), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(follows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
