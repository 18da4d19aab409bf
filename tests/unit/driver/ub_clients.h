/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_DRIVER_UB_CLIENTS_H
#define UNIT_DRIVER_UB_CLIENTS_H

/* A driver of a device with UB, and two clients; for one test program each. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_service.h"
#include "abi_tp.h"
#include "driver_types.h"
#include "fake_hw.h"

#define PAGE 4096u
#define PAGES 16u
#define CLIENTS 2u
#define TPS 16u
#define QUOTA 3u
#define LINKS 2u

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client[CLIENTS]; /* the first one is privileged */
static uint32_t pdn[CLIENTS], cqn[CLIENTS];
static uint8_t *memory;

static void
open_client(unsigned int i)
{
	const struct hca_client_who who = {.user = i, .privileged = i == 0};
	struct hca_ctl_cq cq = {.addr = (uintptr_t)memory + i * PAGE,
				.log_size = 5,
				.channel = HCA_CTL_NO_CHANNEL};

	assert_int_equal(hca_client_open(drv, &who, &client[i]), 0);
	assert_int_equal(hca_client_attach(client[i], (uintptr_t)memory, PAGES * PAGE), 0);
	assert_int_equal(hca_client_call(client[i], HCA_CTL_ALLOC_PD, NULL, &pdn[i], NULL), 0);
	assert_int_equal(hca_client_call(client[i], HCA_CTL_CREATE_CQ, &cq, &cqn[i], NULL), 0);
}

static void
start(bool ub)
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
	struct hca_driver_config config = {.timeout_ms = 50,
					   .quota = {.qps = QUOTA,
						     .srqs = QUOTA,
						     .peers = 2 * QUOTA,
						     .links = LINKS,
						     .known = QUOTA}};

	fake = fake_hw_create();
	fake->ub = ub;
	memory = aligned_alloc(PAGE, PAGES * PAGE);
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_driver_set_gid(drv, 0, own, (const uint8_t *)"\2\0\0\0\0\1", 0xffff),
			 0);
	assert_int_equal(hca_driver_set_neigh(drv, peer, (const uint8_t *)"\2\0\0\0\0\2"), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		open_client(i);
}

static int
setup(void **state)
{
	start(true);
	return 0;
}

static int
teardown(void **state)
{
	struct hca_driver_usage u;

	for (unsigned int i = 0; i < CLIENTS; i++)
		hca_client_close(client[i]);
	hca_driver_usage(drv, &u);
	assert_int_equal(u.qps + u.srqs + u.mrs + u.cqs, 0);
	hca_driver_destroy(drv);
	assert_int_equal(fake->windows, 0);
	free(memory);
	fake_hw_destroy(fake);
	return 0;
}

#endif
