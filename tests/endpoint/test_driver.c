/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A memif peer is killed: before the driver unmaps what was shared with it, the workers are waited
 * for. The peer is a process of its own, which is there before this one starts DPDK.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "endpoint_driver.h"

#define PATIENCE_MS 60000u

static char folder[] = "/tmp/softhca-driver-XXXXXX";
static pid_t peer;

static bool
open_port(const char *role)
{
	char vdev[128], prefix[64];
	const char *argv[] = {"test_driver",
			      "--no-huge",
			      "-m",
			      "64",
			      "--no-pci",
			      "--no-shconf",
			      "--no-telemetry",
			      "--iova-mode=va",
			      "--file-prefix",
			      prefix,
			      "--vdev",
			      vdev};
	struct rte_eth_conf conf = {0};
	struct rte_mempool *pool;

	snprintf(prefix, sizeof(prefix), "driver-%s-%d", role, getpid());
	snprintf(vdev, sizeof(vdev), "net_memif0,role=%s,socket=%s/wire,socket-abstract=no", role,
		 folder);
	if (rte_eal_init(RTE_DIM(argv), (char **)(uintptr_t)argv) < 0)
		return false;
	rmdir(rte_eal_get_runtime_dir()); /* nothing is put there, and nobody would remove it */
	pool = rte_pktmbuf_pool_create("p", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	return pool != NULL && rte_eth_dev_configure(0, 1, 1, &conf) == 0 &&
	       rte_eth_rx_queue_setup(0, 0, 256, 0, NULL, pool) == 0 &&
	       rte_eth_tx_queue_setup(0, 0, 256, 0, NULL) == 0;
}

/* Looks for its peer until that is there, and ends with it. */
static void
be_the_peer(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!open_port("client"))
		_exit(1);
	while (rte_eth_dev_start(0) != 0)
		usleep(20000);
	for (;;)
		pause();
}

/* Memory shared with the peer */
static unsigned int
mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "memfd:memif") != NULL;
	fclose(f);
	return n;
}

static bool
up(void)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(0, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

struct seen {
	unsigned int waits, mapped;
	bool up;
};

/* What stands when the workers are waited for. */
static void
look(void *arg)
{
	struct seen *s = arg;

	if (s->waits == 0) {
		s->mapped = mapped();
		s->up = up();
	}
	__atomic_store_n(&s->waits, s->waits + 1, __ATOMIC_RELEASE);
}

static void
peer_killed(void **state)
{
	struct seen seen = {0};
	unsigned int ms = 0;

	(void)state;
	assert_true(open_port("server"));
	assert_int_equal(rte_eth_dev_start(0), 0);
	for (; !up() && ms < PATIENCE_MS; ms++)
		usleep(1000);
	assert_true(up());
	assert_int_not_equal(mapped(), 0);
	endpoint_driver_guard(look, &seen);
	assert_int_equal(kill(peer, SIGKILL), 0);
	for (; mapped() != 0 && ms < PATIENCE_MS; ms++)
		usleep(1000);
	assert_int_equal(mapped(), 0);
	endpoint_driver_guard(NULL, NULL);
	assert_int_not_equal(__atomic_load_n(&seen.waits, __ATOMIC_ACQUIRE), 0);
	/* The mark that keeps later bursts out stands, and the memory is still there. */
	assert_false(seen.up);
	assert_int_not_equal(seen.mapped, 0);
	rte_eth_dev_stop(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(peer_killed)};
	char path[sizeof(folder) + 8];
	int failed;

	if (mkdtemp(folder) == NULL)
		return 1;
	peer = fork();
	if (peer == 0)
		be_the_peer();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	snprintf(path, sizeof(path), "%s/wire", folder);
	unlink(path);
	rmdir(folder);
	return failed;
}
