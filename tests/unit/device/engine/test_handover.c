/* SPDX-License-Identifier: BSD-3-Clause */

/* The pipe that a frame belongs to, and the rings between the pipes of a device. */

#include <string.h>

#include "fixture.h"

#include "core/mbuf.h"
#include "core/table.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/handover.h"
#include "wire/roce_frame.h"
#include "wire/udp_template.h"

#define PIPES 4u
#define LONG 64u /* behind the UDP header */

static struct fx *fx;
static struct hca_ctxmgt *ctxmgt;
static uint8_t frame[256];

static int
setup(void **state)
{
	fx = fx_create(NULL);
	ctxmgt = calloc(1, sizeof(*ctxmgt));
	assert_non_null(ctxmgt);
	fx->h->ctxmgt = ctxmgt;
	fx->h->pipe_mask = PIPES - 1;
	return 0;
}

static int
teardown(void **state)
{
	fx->h->ctxmgt = NULL;
	fx->h->pipe_mask = 0;
	free(ctxmgt);
	fx_destroy(fx);
	return 0;
}

static void
put16(uint32_t at, uint32_t v)
{
	frame[at] = (uint8_t)(v >> 8);
	frame[at + 1] = (uint8_t)v;
}

/* A frame for a QPN; returns its length. */
static uint32_t
make(bool vlan, bool ipv6, uint32_t port, uint32_t qpn)
{
	uint32_t at = HCA_ETH_LEN;

	memset(frame, 0, sizeof(frame));
	if (vlan) {
		put16(12, HCA_ETHERTYPE_VLAN);
		at += HCA_VLAN_LEN;
	}
	put16(at - 2, ipv6 ? HCA_ETHERTYPE_IPV6 : HCA_ETHERTYPE_IPV4);
	frame[at] = ipv6 ? 0x60 : 0x45;
	frame[at + (ipv6 ? 6 : 9)] = HCA_IPPROTO_UDP;
	at += ipv6 ? HCA_IPV6_LEN : HCA_IPV4_LEN;
	put16(at + 2, port);
	at += HCA_UDP_LEN;
	frame[at + 4] = 0xff; /* reserved */
	frame[at + 5] = (uint8_t)(qpn >> 16);
	put16(at + 6, qpn);
	return at + LONG;
}

static unsigned int
pipe_of(uint32_t len)
{
	return hca_pipe_of_frame(&fx->h->core, frame, len);
}

static void
test_qpn_selects_the_pipe(void **state)
{
	for (unsigned int form = 0; form < 4; form++)
		for (uint32_t qpn = 0x123450; qpn < 0x123458; qpn++)
			assert_int_equal(pipe_of(make(form & 1, form & 2, HCA_ROCE_UDP_PORT, qpn)),
					 qpn % PIPES);
}

static void
test_datagrams_of_qp_1(void **state)
{
	assert_int_equal(pipe_of(make(false, false, HCA_ROCE_UDP_PORT, HCA_QPN_GSI)), 0);
	ctxmgt->gsi_qpn = 0x777773;
	assert_int_equal(pipe_of(make(false, false, HCA_ROCE_UDP_PORT, HCA_QPN_GSI)), 3);
}

static void
test_multicast_is_for_all(void **state)
{
	assert_int_equal(pipe_of(make(true, true, HCA_ROCE_UDP_PORT, HCA_QPN_MULTICAST)),
			 HCA_PIPE_ALL);
}

/* Frames that are not RoCE, or that the pipe cannot be read from: the first pipe counts them. */
static void
test_others_are_for_the_first(void **state)
{
	uint32_t len = make(false, false, HCA_ROCE_UDP_PORT, 3);

	for (uint32_t n = 0; n < len - LONG + HCA_ROCE_BTH_LEN; n++)
		assert_int_equal(pipe_of(n), 0);
	assert_int_equal(pipe_of(len - LONG + HCA_ROCE_BTH_LEN), 3);
	assert_int_equal(pipe_of(make(false, false, HCA_ROCE_UDP_PORT + 1, 3)), 0);
	len = make(false, false, HCA_ROCE_UDP_PORT, 3);
	frame[HCA_ETH_LEN] = 0x46; /* options */
	assert_int_equal(pipe_of(len), 0);
	len = make(false, true, HCA_ROCE_UDP_PORT, 3);
	frame[HCA_ETH_LEN + 6] = 44; /* a fragment */
	assert_int_equal(pipe_of(len), 0);
}

static void
test_least_room(void **state)
{
	struct hca_handover o = {{NULL}};
	struct rte_mempool *pool = hca_mbuf_pool("handover", 3, 0, HCA_MBUF_DATA, SOCKET_ID_ANY);
	struct rte_mbuf *m;

	assert_non_null(pool);
	assert_int_equal(hca_handover_room(&o, PIPES), UINT32_MAX);
	assert_int_equal(hca_handover_init(fx->h, &o, "test", 8, 1u << 1 | 1u << 3), 0);
	assert_null(o.to[0]);
	assert_null(o.to[2]);
	assert_int_equal(hca_handover_room(&o, PIPES), 8);
	for (unsigned int i = 0; i < 3; i++) {
		m = rte_pktmbuf_alloc(pool);
		assert_non_null(m);
		assert_int_equal(rte_ring_enqueue(o.to[3], m), 0);
	}
	assert_int_equal(hca_handover_room(&o, PIPES), 5);
	hca_handover_fini(&o);
	assert_null(o.to[3]);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	rte_mempool_free(pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_qpn_selects_the_pipe), T(test_datagrams_of_qp_1),
		T(test_multicast_is_for_all), T(test_others_are_for_the_first),
		T(test_least_room),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
