/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The memif port against DPDK's net_memif in another process, which echoes frames: both roles,
 * frames of one and of several buffers, interrupts, and either end killed.
 */

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <rte_ethdev.h>

#include "memif_rig.h"

#define BURST 32u
#define ROUNDS 3000u

static pid_t peer;

/* ---- the other process ---- */

static bool
start_dpdk(const char *role, const char *more)
{
	char vdev[256], prefix[64];
	const char *argv[] = {"peer",
			      "--no-huge",
			      "-m",
			      "96",
			      "--no-pci",
			      "--no-shconf",
			      "--no-telemetry",
			      "--iova-mode=va",
			      "--log-level",
			      "critical",
			      "--file-prefix",
			      prefix,
			      "--vdev",
			      vdev};
	struct rte_eth_conf conf = {0};
	struct rte_mempool *mp;

	snprintf(prefix, sizeof(prefix), "memif-%s-%d", role, getpid());
	snprintf(vdev, sizeof(vdev), "net_memif0,role=%s,socket=%s,socket-abstract=no%s%s", role,
		 rig_socket(), more[0] != '\0' ? "," : "", more);
	if (rte_eal_init(RTE_DIM(argv), (char **)(uintptr_t)argv) < 0)
		return false;
	rmdir(rte_eal_get_runtime_dir()); /* unused, and DPDK does not remove it */
	mp = rte_pktmbuf_pool_create("p", 4095, 0, 0, RIG_ROOM, 0);
	return mp != NULL && rte_eth_dev_configure(0, 1, 1, &conf) == 0 &&
	       rte_eth_rx_queue_setup(0, 0, 256, 0, NULL, mp) == 0 &&
	       rte_eth_tx_queue_setup(0, 0, 256, 0, NULL) == 0;
}

static int
echo(const char *role, const char *more)
{
	struct rte_mbuf *m[BURST];
	struct rte_eth_link link;

	if (!start_dpdk(role, more))
		return 1;
	while (rte_eth_dev_start(0) != 0)
		usleep(10000);
	for (;;) {
		uint16_t n = 0, sent = 0;

		if (rte_eth_link_get_nowait(0, &link) == 0 && link.link_status == RTE_ETH_LINK_UP)
			n = rte_eth_rx_burst(0, 0, m, BURST);
		if (n == 0)
			sched_yield();
		while (sent < n)
			sent += rte_eth_tx_burst(0, 0, m + sent, n - sent);
	}
}

/* Start this program again, because DPDK starts once per process. */
static void
start_peer(const char *role, const char *more)
{
	peer = fork();
	assert_true(peer >= 0);
	if (peer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "peer", folder, role, more, (char *)NULL);
		_exit(1);
	}
}

static void
kill_peer(void)
{
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	peer = 0;
}

/* ---- this one ---- */

static struct rte_mbuf *
take_in_time(struct hca_port *p)
{
	struct rte_mbuf *m = NULL;

	for (unsigned int n = 0; n < TIMEOUT_MS * 20; n++) {
		if (p->ops->rx(p, 0, &m, 1, n * 1000) == 1)
			return m;
		if (n > 100)
			usleep(50);
	}
	return NULL;
}

static void
all_come_back(struct hca_port *p, uint32_t longest)
{
	uint32_t seed = 1, length[BURST];

	for (uint32_t round = 0, serial = 0; round < ROUNDS; round++) {
		struct rte_mbuf *m[BURST];
		uint16_t sent = 0;

		seed = seed * 1664525u + 1013904223u;
		for (uint32_t i = 0; i < BURST; i++) {
			length[i] = 60 + (seed >> (i % 13)) % (longest - 59);
			m[i] = rig_frame(serial + i, length[i]);
		}
		while (sent < BURST)
			sent += p->ops->tx(p, 0, m + sent, (uint16_t)(BURST - sent), 0);
		for (uint32_t i = 0; i < BURST; i++) {
			struct rte_mbuf *back = take_in_time(p);

			assert_non_null(back);
			assert_true(rig_is(back, serial + i, length[i]));
			rte_pktmbuf_free(back);
		}
		serial += BURST;
		if (longest > 2000 && round > ROUNDS / 5)
			break;
	}
	assert_int_equal(hca_port_missed(p), 0);
}

/* Sleeps before each frame, only with the alarm that the port requests. */
static void
sleeps(struct hca_port *p)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC), wait;
	struct rte_mbuf *m;
	uint64_t now = 0;
	uint32_t naps = 0;

	epoll_ctl(epoll, EPOLL_CTL_ADD, p->ops->wait_fd(p, 0), &e);
	for (uint32_t i = 0; i < 300; i++) {
		rig_send(p, i, 64);
		while (p->ops->rx(p, 0, &m, 1, now) == 0) {
			wait = p->ops->deadline(p, 0, now) == UINT64_MAX ? (int)TIMEOUT_MS : 1;
			naps += wait == 1;
			if (!p->ops->arm(p, 0, true)) {
				assert_true(p->ops->deadline(p, 0, now) <= now + 1000000 ||
					    wait != 1);
				assert_true(epoll_wait(epoll, &e, 1, wait) == 1 || wait == 1);
			}
			p->ops->arm(p, 0, false);
			now += 1000000;
		}
		assert_true(rig_is(m, i, 64));
		rte_pktmbuf_free(m);
	}
	/* no frames: the port requests no more alarms */
	for (uint32_t i = 0; i < 4; i++, now += 1000000) {
		assert_false(p->ops->arm(p, 0, true));
		p->ops->arm(p, 0, false);
		assert_int_equal(p->ops->rx(p, 0, &m, 1, now), 0);
	}
	assert_false(p->ops->arm(p, 0, true));
	assert_int_equal(p->ops->deadline(p, 0, now), UINT64_MAX);
	assert_int_not_equal(naps, 0);
	close(epoll);
}

static void
talk(const char *ours, const char *theirs, const char *more, uint32_t longest)
{
	struct hca_port *p;
	char name[64];

	start_peer(theirs, more);
	p = rig_open(ours, more);
	assert_true(rig_wait(p, true));
	hca_port_memif_peer(p, name, sizeof(name));
	assert_memory_equal(name, "DPDK", 4);
	all_come_back(p, longest);
	sleeps(p);
	kill_peer();
	assert_true(rig_wait(p, false));
	unlink(rig_socket()); /* left by a killed server */
	rig_close(p);
}

static void
dpdk_is_client(void **state)
{
	(void)state;
	talk("server", "client", "bsize=2048", 2000);
}

static void
dpdk_is_server(void **state)
{
	(void)state;
	talk("client", "server", "bsize=2048", 2000);
}

/* Frames over several descriptors. */
static void
long_frames(void **state)
{
	(void)state;
	talk("server", "client", "bsize=1024,rsize=9,secret=abc,id=4", 9000);
	talk("client", "server", "bsize=1024,rsize=9,secret=abc,id=4", 9000);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dpdk_is_client),
		cmocka_unit_test(dpdk_is_server),
		cmocka_unit_test(long_frames),
	};
	int failed;

	if (argc == 4) {
		snprintf(folder, sizeof(folder), "%s", argv[1]);
		return echo(argv[2], argv[3]);
	}
	failed = cmocka_run_group_tests(tests, rig_setup, NULL);
	if (peer > 0)
		kill_peer();
	unlink(rig_socket());
	rmdir(folder);
	return failed;
}
