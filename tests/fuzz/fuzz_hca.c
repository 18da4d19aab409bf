/* SPDX-License-Identifier: BSD-3-Clause */

#include "fuzz_hca.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softhca/softhca.h>

#include "../short_ways.h"
#include "driver.h"
#include "fuzz.h"
#include "host.h"

#define FUZZ_PAGE 4096u
#define TICK_NS 1000u
#define SETTLE_MAX 20000u

bool hca_short_ways;

unsigned int
fuzz_poll(struct hca *h, uint64_t *now)
{
	unsigned int work = 0;

	*now += TICK_NS;
	for (unsigned int i = 0; i < hca_workers(h); i++)
		work += hca_poll(h, i, *now);
	return work;
}

void
fuzz_settle(struct hca *h, uint64_t *now)
{
	unsigned int idle = 0;

	for (unsigned int i = 0; i < SETTLE_MAX && idle < FUZZ_SETTLE_IDLE; i++)
		idle = fuzz_poll(h, now) != 0 ? 0 : idle + 1;
	fuzz_check(idle == FUZZ_SETTLE_IDLE, "never quiet");
}

struct hca_driver *
fuzz_driver(struct hca *h, void (*progress)(void *arg), void *arg, uint8_t n)
{
	uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 77, 0, 1}, mac[6] = {2, 0, 0, 0, 0, 1};
	struct hca_hw hw = hca_host_hw(h);
	struct hca_driver_config dc = {.seed = 1, .timeout_ms = 60000};
	struct hca_ctl_port port = {.speed = 100000,
				    .state = SOFTHCA_PORT_ACTIVE,
				    .max_mtu = SOFTHCA_MTU_4096,
				    .active_mtu = SOFTHCA_MTU_4096};
	struct hca_driver *drv;

	hw.progress = progress;
	hw.progress_arg = arg;
	fuzz_check(hca_driver_create(&hw, &dc, &drv) == 0, "driver: %s", hca_driver_reason());
	memcpy(port.mac, mac, sizeof(mac));
	fuzz_check(hca_driver_set_gid(drv, 0, gid, mac, 0xffff) == 0 &&
			   hca_driver_set_port(drv, &port) == 0,
		   "addresses: %s", hca_driver_reason());
	for (uint8_t i = 2; i < 2 + n; i++) {
		gid[15] = mac[5] = i;
		fuzz_check(hca_driver_set_neigh(drv, gid, mac) == 0, "neighbour: %s",
			   hca_driver_reason());
	}
	return drv;
}

uint8_t *
fuzz_memory(uint32_t bytes)
{
	static uint8_t *memory;

	if (memory == NULL)
		memory = aligned_alloc(FUZZ_PAGE, RTE_ALIGN_CEIL(bytes, FUZZ_PAGE));
	fuzz_check(memory != NULL, "no memory");
	return memory;
}

void
fuzz_pattern(uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i * 167 + (i >> 8) * 13 + 5);
}

void
fuzz_check_usage(const struct hca *h, const struct hca_usage *base, const struct fuzz_port *port)
{
	struct hca_usage u;

	hca_usage(h, &u);
	fuzz_check(u.records == base->records && u.full_records == base->full_records,
		   "records leaked: %u, %u", u.records, u.full_records);
	fuzz_check(u.tx_mbufs == 0 && u.resp_mbufs == 0, "mbufs leaked: %u, %u", u.tx_mbufs,
		   u.resp_mbufs);
	fuzz_check(rte_mempool_in_use_count(port->pool) == 0, "received frames leaked: %u",
		   rte_mempool_in_use_count(port->pool));
	fuzz_check(u.edge_objects == 0 && u.backlog == 0 && u.messages == 0,
		   "left: %u on edges, %u in the backlog, %u messages", u.edge_objects, u.backlog,
		   u.messages);
	fuzz_check(u.qps == base->qps && u.cqs == base->cqs && u.mpts == base->mpts &&
			   u.srqs == base->srqs,
		   "contexts changed: %u QPs, %u CQs, %u MPTs, %u SRQs", u.qps, u.cqs, u.mpts,
		   u.srqs);
}

static const struct hca *shown;

static void
show_counters(void)
{
	for (unsigned int i = 0; i < hca_counter_count(); i++)
		if (hca_counter_value(shown, i) != 0)
			fprintf(stderr, "%s=%llu\n", hca_counter_name(i),
				(unsigned long long)hca_counter_value(shown, i));
}

void
fuzz_show_counters(const struct hca *h)
{
	shown = h;
	if (getenv("FUZZ_COUNTERS") != NULL)
		atexit(show_counters);
}
