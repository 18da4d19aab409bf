/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Frames that the driver of a port has lost: for a watched port only hca_port_ethdev_look() enters
 * the driver; threads that read the count, the data path's among them, do not.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "../../../test_eal.h"
#include "port/port_ethdev.h"

static unsigned int entered;
static uint64_t lost;

int __wrap_rte_eth_stats_get(uint16_t id, struct rte_eth_stats *st);

int
__wrap_rte_eth_stats_get(uint16_t id, struct rte_eth_stats *st)
{
	(void)id;
	entered++;
	memset(st, 0, sizeof(*st));
	st->imissed = lost;
	st->rx_nombuf = 1;
	return 0;
}

static struct hca_port *
port_open(const char *name, struct rte_ring *r, bool watched)
{
	int id = rte_eth_from_rings(name, &r, 1, &r, 1, 0);
	const struct hca_port_ethdev_config cfg = {.port_id = (uint16_t)id,
						   .watched = watched,
						   .name = name,
						   .socket_id = SOCKET_ID_ANY};
	struct hca_port *p;

	assert_true(id >= 0);
	assert_int_equal(hca_port_ethdev_open(&cfg, &p), 0);
	return p;
}

static void
watched(void **state)
{
	struct rte_ring *r = rte_ring_create("missed_w", 64, SOCKET_ID_ANY, 0);
	struct hca_port *p = port_open("missed_w", r, true);

	(void)state;
	entered = 0;
	lost = 5;
	assert_int_equal(hca_port_missed(p), 0);
	assert_int_equal(entered, 0);
	hca_port_ethdev_look(p);
	assert_int_equal(entered, 1);
	lost = 7;
	assert_int_equal(hca_port_missed(p), 6);
	assert_int_equal(hca_port_missed(p), 6);
	assert_int_equal(entered, 1);
	hca_port_ethdev_look(p);
	assert_int_equal(hca_port_missed(p), 8);
	p->ops->close(p);
	rte_ring_free(r);
}

/* No thread looks at such a port, so the reader of the count does. */
static void
unwatched(void **state)
{
	struct rte_ring *r = rte_ring_create("missed_u", 64, SOCKET_ID_ANY, 0);
	struct hca_port *p = port_open("missed_u", r, false);

	(void)state;
	lost = 3;
	assert_int_equal(hca_port_missed(p), 4);
	p->ops->close(p);
	rte_ring_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watched),
		cmocka_unit_test(unwatched),
	};

	if (test_eal_start(64) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
