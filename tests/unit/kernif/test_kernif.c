/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The kernel interface with a real kernel: a network namespace of this process with a TAP
 * interface, a host on the wire, and a driver on a device of arrays that records its calls.
 */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../test_eal.h"
#include "../driver/fake_hw.h"
#include "kernif_impl.h"
#include "lan.h"

#define SKIPPED 77
#define TIMEOUT_MS 240000 /* a loaded machine is slow */

static const uint8_t our_mac[6] = {2, 9, 0, 0, 0, 1};
static const uint8_t host_mac[6] = {2, 9, 0, 0, 0, 2}, new_mac[6] = {2, 9, 0, 0, 0, 3};
static const uint8_t gid4[16] = {[10] = 0xff, 0xff, 10, 9, 0, 1};
static const uint8_t gid6[16] = {0x20, 1, 0xd, 0xb8, 0, 9, [15] = 1};
static const uint8_t gid0[16] = {0xfe, 0x80, [8] = 0, 9, 0, 0xff, 0xfe, 0, 0, 1};
static const uint8_t host4[16] = {[10] = 0xff, 0xff, 10, 9, 0, 2};
static const uint8_t host6[16] = {0x20, 1, 0xd, 0xb8, 0, 9, [15] = 2};
static const uint8_t nobody4[16] = {[10] = 0xff, 0xff, 10, 9, 0, 77};
static const uint8_t far4[16] = {[10] = 0xff, 0xff, 8, 8, 8, 8};
static const uint8_t far6[16] = {0x20, 1, 0xd, 0xb8, 0x77, [15] = 1};
static const uint8_t extra4[16] = {[10] = 0xff, 0xff, 10, 9, 1, 1};
static const uint8_t other4[16] = {[10] = 0xff, 0xff, 10, 9, 2, 1};

static struct kernif *k;
static struct lan *lan;
static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static int async_fd;
static unsigned int macs_changed, logged;
static int link_state;

static void
on_mac(void *arg, const uint8_t mac[6])
{
	(void)arg;
	(void)mac;
	__atomic_fetch_add(&macs_changed, 1, __ATOMIC_RELEASE);
}

static void
on_link(void *arg, bool up)
{
	(void)arg;
	__atomic_store_n(&link_state, up ? 1 : -1, __ATOMIC_RELEASE);
}

static void
on_log(void *arg, const char *text)
{
	(void)arg;
	(void)text;
	__atomic_fetch_add(&logged, 1, __ATOMIC_RELEASE);
}

static void
shell(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s", command);
}

static struct kernif_config
config(enum kernif_kind kind)
{
	static const struct arp_nd_address own[] = {
		{{[10] = 0xff, 0xff, 10, 9, 0, 1}, 24, ARP_ND_NO_VLAN},
		{{0x20, 1, 0xd, 0xb8, 0, 9, [15] = 1}, 64, ARP_ND_NO_VLAN},
	};
	static const struct arp_nd_hop gw = {{[10] = 0xff, 0xff, 10, 9, 0, 2}, ARP_ND_NO_VLAN};
	struct kernif_config c = {
		.kind = kind,
		.name = "kt0",
		.link_local = true,
		.mtu = 1500,
		.addresses = own,
		.num_addresses = 2,
		.gateways = &gw,
		.num_gateways = 1,
		.mac_changed = on_mac,
		.link_changed = on_link,
		.log = on_log,
	};

	memcpy(c.mac, our_mac, 6);
	return c;
}

static void
begin(const struct kernif_config *c)
{
	struct hca_driver_config dc = {.timeout_ms = 5000, .resolve = kernif_resolve};

	macs_changed = logged = 0;
	link_state = 0;
	assert_int_equal(kernif_create(c, &k), 0);
	lan = lan_open(our_mac, kernif_kick, k);
	lan_host(lan, host_mac);
	fake = fake_hw_create();
	dc.resolve_arg = k;
	assert_int_equal(hca_driver_create(&fake->hw, &dc, &drv), 0);
	assert_int_equal(hca_client_open(drv, NULL, &client), 0);
	assert_int_equal(call_async_fd(client, &async_fd), 0);
	fcntl(async_fd, F_SETFL, O_NONBLOCK);
	if (kernif_start(k, lan_port(lan), drv) != 0)
		fail_msg("%s", kernif_reason());
}

static void
end(void)
{
	kernif_stop(k);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
	close(async_fd);
	lan_close(lan);
	kernif_destroy(k);
}

static bool
gid_is(uint32_t index, const uint8_t gid[16])
{
	struct hca_ctl_gid e;

	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){index}, &e, NULL),
			 0);
	return e.valid ? gid != NULL && memcmp(e.gid, gid, 16) == 0 : gid == NULL;
}

static uint32_t
ifindex_of_gid(uint32_t index)
{
	struct hca_ctl_gid e;

	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){index}, &e, NULL),
			 0);
	return e.ifindex;
}

static void
wait_gid(uint32_t index, const uint8_t gid[16])
{
	for (int ms = 0; !gid_is(index, gid); ms += 5) {
		if (ms > TIMEOUT_MS)
			fail_msg("GID %u never became what it should", index);
		usleep(5000);
	}
}

static unsigned int
gid_events(void)
{
	struct hca_ctl_event event;
	unsigned int n = 0;

	while (read(async_fd, &event, sizeof(event)) == sizeof(event))
		n += event.type == HCA_CTL_EVENT_GID_CHANGE;
	return n;
}

static int
way_to(const uint8_t dgid[16], uint32_t sgid_index, uint8_t mac[6])
{
	struct hca_ctl_ah ah = {.sgid_index = sgid_index};
	int err;

	memcpy(ah.dgid, dgid, 16);
	err = hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL);
	memcpy(mac, ah.dmac, 6);
	return err;
}

/* Repeat if there was no answer in time: on a stalled machine the other end may not have run. */
static void
assert_way(const uint8_t dgid[16], uint32_t sgid_index, const uint8_t expected[6])
{
	uint8_t mac[6];
	int err = way_to(dgid, sgid_index, mac);

	for (int ms = 0; err == -EHOSTUNREACH && ms < TIMEOUT_MS; ms += 100) {
		usleep(100000);
		err = way_to(dgid, sgid_index, mac);
	}
	if (err != 0)
		fail_msg("no way: %s", strerror(-err));
	assert_memory_equal(mac, expected, 6);
}

/* Whether the device was told that dgid is at mac. */
static bool
was_moved(const uint8_t dgid[16], const uint8_t mac[6])
{
	for (uint32_t i = 0; i < FAKE_LOG && i < fake->count; i++) {
		const struct hca_mbox_set_neigh *m = (const void *)fake->log[i].mailbox;

		if (fake->log[i].op == HCA_CMD_SET_NEIGH && memcmp(m->dgid, dgid, 16) == 0 &&
		    memcmp(m->dmac, mac, 6) == 0)
			return true;
	}
	return false;
}

/* Wait until n destinations moved, check them, and wait until the log is not written any more. */
static void
wait_moved(unsigned int n, const uint8_t mac[6])
{
	struct kernif_stats s = {0};

	for (int ms = 0; s.neighbours_moved < n; ms += 5) {
		if (ms > TIMEOUT_MS)
			fail_msg("the move was never told");
		usleep(5000);
		kernif_stats(k, &s);
	}
	assert_true(was_moved(host4, mac));
	assert_true(was_moved(host6, mac));
	assert_true(was_moved(far4, mac));
	assert_false(was_moved(nobody4, mac));
	assert_int_equal(s.neighbours_moved, n);
}

/* ---- a TAP interface ---- */

static void
gids_follow_addresses(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	struct kernif_stats s;

	(void)state;
	begin(&c);
	assert_string_equal(kernif_interface(k), "kt0");
	wait_gid(0, gid0);
	wait_gid(1, gid4);
	wait_gid(2, gid6);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(ifindex_of_gid(i), if_nametoindex("kt0"));
	gid_events();
	shell("ip addr add 10.9.1.1/24 dev kt0");
	wait_gid(3, extra4);
	assert_true(gid_events() >= 1);
	/*
	 * the middle one is removed: the others keep their index, and the next address takes its
	 * place
	 */
	shell("ip -6 addr del 2001:db8:9::1/64 dev kt0");
	wait_gid(2, NULL);
	assert_true(gid_events() >= 1);
	assert_true(gid_is(1, gid4));
	assert_true(gid_is(3, extra4));
	shell("ip addr add 10.9.2.1/24 dev kt0");
	wait_gid(2, other4);
	/* addresses of other interfaces are ignored */
	shell("ip addr add 10.9.3.1/32 dev lo");
	shell("ip addr del 10.9.1.1/24 dev kt0");
	wait_gid(3, NULL);
	assert_true(gid_is(4, NULL));
	shell("ip addr del 10.9.3.1/32 dev lo");
	kernif_stats(k, &s);
	assert_int_equal(s.gids_failed, 0);
	assert_int_equal(s.gids_cleared, 2);
	end();
	assert_int_equal(if_nametoindex("kt0"), 0);
}

/* More events than the socket holds while they are not read: the tables are read again. */
static void
events_lost(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	struct kernif_stats s;

	(void)state;
	begin(&c);
	wait_gid(2, gid6);
	shell("ip addr add 10.9.1.1/24 dev kt0");
	wait_gid(3, extra4);
	pthread_mutex_lock(&k->lock);
	shell("ip addr add 10.9.3.1/24 dev kt0"); /* this event is received, the removal is lost */
	shell("for i in $(seq 4000); do "
	      "echo \"addr add 10.20.$((i / 250)).$((i % 250 + 1))/32 dev lo\"; done | ip -batch -");
	shell("ip addr del 10.9.3.1/24 dev kt0");
	shell("ip addr del 10.9.1.1/24 dev kt0 && ip addr add 10.9.2.1/24 dev kt0");
	pthread_mutex_unlock(&k->lock);
	wait_gid(4, other4);
	wait_gid(3, NULL);
	/* all events before this one have been read by then */
	shell("ip addr add 10.9.1.1/24 dev kt0");
	wait_gid(3, extra4);
	assert_true(gid_is(1, gid4) && gid_is(2, gid6) && gid_is(5, NULL));
	kernif_stats(k, &s);
	assert_true(s.resyncs >= 1);
	shell("ip addr flush dev lo scope global");
	end();
}

static void
too_many_addresses(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	struct kernif_stats s = {0};

	(void)state;
	begin(&c);
	shell("for i in $(seq 30); do ip addr add 10.9.4.$i/24 dev kt0; done");
	for (int ms = 0; s.gids_failed < 10 && ms < TIMEOUT_MS; ms += 5) {
		usleep(5000);
		kernif_stats(k, &s);
	}
	assert_in_range(s.gids_failed, 10, 40);
	assert_true(__atomic_load_n(&logged, __ATOMIC_ACQUIRE) >= 10);
	assert_true(gid_is(1, gid4));
	end();
}

static void
next_hops(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	uint8_t mac[6];

	(void)state;
	c.timeout_ms = 1500; /* limit for an address without a host */
	begin(&c);
	wait_gid(2, gid6);
	assert_way(host4, 1, host_mac);
	assert_way(host6, 2, host_mac);
	assert_int_equal(way_to(nobody4, 1, mac), -EHOSTUNREACH);
	assert_non_null(strstr(hca_driver_reason(), "does not answer"));
	assert_int_equal(way_to(far6, 2, mac), -EHOSTUNREACH);
	assert_non_null(strstr(hca_driver_reason(), "no route"));
	/* through a gateway */
	shell("ip route add default via 10.9.0.2 dev kt0");
	assert_way(far4, 1, host_mac);
	shell("ip route add blackhole 8.0.0.0/8");
	assert_int_equal(way_to(far4, 1, mac), -EHOSTUNREACH);
	shell("ip route del blackhole 8.0.0.0/8");
	/* a permanent entry of the kernel is used */
	shell("ip neigh replace 10.9.0.77 lladdr 02:09:00:00:00:03 dev kt0");
	assert_way(nobody4, 1, new_mac);
	end();
}

/* The host comes back with another MAC address: all destinations that use it are updated. */
static void
neighbours_move(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);

	(void)state;
	begin(&c);
	wait_gid(2, gid6);
	shell("ip route add default via 10.9.0.2 dev kt0");
	assert_way(host4, 1, host_mac);
	assert_way(host6, 2, host_mac);
	assert_way(far4, 1, host_mac);
	usleep(1100000); /* the kernel ignores changes within a second */
	lan_host(lan, new_mac);
	wait_moved(3, new_mac);
	assert_way(host4, 1, new_mac);
	end();
}

/*
 * A static neighbour that is the next hop of others: neither a host that answers for its
 * address nor one that claims it changes their way.
 */
static void
static_next_hop(void **state)
{
	static const uint8_t fixed_mac[6] = {2, 9, 0, 0, 0, 9};
	static const enum kernif_kind kinds[] = {KERNIF_TAP, KERNIF_BUILTIN};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct kernif_config c = config(kinds[i]);

		begin(&c);
		wait_gid(1, gid4);
		wait_gid(2, gid6);
		if (kinds[i] == KERNIF_TAP)
			shell("ip route add default via 10.9.0.2 dev kt0");
		assert_int_equal(hca_driver_set_neigh(drv, host4, fixed_mac), 0);
		assert_way(host4, 1, fixed_mac);
		assert_way(far4, 1, fixed_mac);
		assert_way(host6, 2, host_mac);
		usleep(1100000); /* the kernel ignores changes within a second */
		lan_host(lan, new_mac);
		for (int ms = 0; !was_moved(host6, new_mac); ms += 5) {
			if (ms > TIMEOUT_MS)
				fail_msg("the move was never told");
			usleep(5000);
		}
		assert_way(far4, 1, fixed_mac);
		assert_false(was_moved(far4, new_mac) || was_moved(host4, new_mac));
		end();
	}
}

static void
interface_changes(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	struct hca_ctl_gid e = {0};

	(void)state;
	begin(&c);
	wait_gid(1, gid4);
	assert_int_equal(__atomic_load_n(&link_state, __ATOMIC_ACQUIRE), 1);
	shell("ip link set kt0 address 02:09:00:00:00:07");
	for (int ms = 0; e.mac[5] != 7 && ms < TIMEOUT_MS; ms += 5) {
		usleep(5000);
		assert_int_equal(
			hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){1}, &e, NULL), 0);
	}
	assert_memory_equal(e.mac, "\x02\x09\0\0\0\x07", 6);
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){0}, &e, NULL), 0);
	assert_int_equal(e.gid[15], 7);
	assert_true(__atomic_load_n(&macs_changed, __ATOMIC_ACQUIRE) >= 1);
	shell("ip link set kt0 down");
	for (int ms = 0; __atomic_load_n(&link_state, __ATOMIC_ACQUIRE) != -1; ms += 5) {
		assert_true(ms < TIMEOUT_MS);
		usleep(5000);
	}
	kernif_link(k, false);
	kernif_link(k, true);
	end();
}

/* CPU time of this process, in ms. */
static long
cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The interface is deleted: this is logged, and no thread loops. */
static void
interface_deleted(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	uint8_t mac[6];
	long before;

	(void)state;
	begin(&c);
	wait_gid(1, gid4);
	shell("ip link del kt0");
	wait_gid(1, NULL);
	assert_int_equal(__atomic_load_n(&link_state, __ATOMIC_ACQUIRE), -1);
	assert_true(gid_is(0, gid0));
	assert_true(way_to(host4, 1, mac) < 0);
	before = cpu_ms();
	sleep(1);
	assert_true(cpu_ms() - before < 500);
	end();
}

static void
traffic(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);

	(void)state;
	if (system("command -v ping >/dev/null") != 0) {
		print_message("ping is not installed (package iputils-ping)\n");
		return;
	}
	begin(&c);
	shell("ping -q -c 3 -i 0.2 -w 60 10.9.0.2 >/dev/null");
	assert_true(lan_pinged(lan) >= 3);
	shell("ping -q -c 3 -i 0.2 -w 60 2001:db8:9::2 >/dev/null");
	assert_true(lan_pinged(lan) >= 6);
	end();
}

static void
adopts(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);

	(void)state;
	shell("ip tuntap add dev kt0 mode tap && ip addr add 10.9.1.1/24 dev kt0");
	assert_int_equal(kernif_create(&c, &k), -EBUSY);
	assert_non_null(strstr(kernif_reason(), "kt0"));
	c.adopt = true;
	begin(&c);
	wait_gid(1, extra4);
	assert_true(gid_is(2, NULL)); /* no addresses are added */
	end();
	shell("ip addr show dev kt0 | grep -q 10.9.1.1");
	shell("ip tuntap del dev kt0 mode tap");
}

/*
 * While duplicate address detection runs for the link-local address, another own address is used as
 * source.
 */
static void
asks_from_its_address(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);

	(void)state;
	shell("sysctl -q -w net.ipv6.conf.default.dad_transmits=60");
	begin(&c);
	wait_gid(2, gid6);
	usleep(1500000); /* the host announces itself twice */
	shell("ip neigh flush dev kt0");
	assert_way(host6, 2, host_mac);
	shell("ip -6 addr show dev kt0 tentative | grep -q fe80");
	end();
	shell("sysctl -q -w net.ipv6.conf.default.dad_transmits=1");
}

static void *
ask_for_host(void *arg)
{
	*(int *)arg = kernif_resolve(k, 1, host4, (uint8_t[6]){0});
	return NULL;
}

/*
 * The kernel gives up repeatedly, as it does while an interface comes up: requests go on until
 * there is an answer.
 */
static void
given_up_early(void **state)
{
	struct kernif_config c = config(KERNIF_TAP);
	struct timespec now;
	pthread_t t;
	time_t until; /* one to two seconds of timeout_ms */
	int err = 0;

	(void)state;
	c.timeout_ms = TIMEOUT_MS;
	begin(&c);
	wait_gid(1, gid4);
	lan_silence(lan, true);
	assert_int_equal(pthread_create(&t, NULL, ask_for_host, &err), 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (until = now.tv_sec + 1; now.tv_sec <= until; clock_gettime(CLOCK_MONOTONIC, &now)) {
		shell("ip neigh replace 10.9.0.2 dev kt0 nud failed");
		usleep(20000);
	}
	lan_silence(lan, false);
	pthread_join(t, NULL);
	assert_int_equal(err, 0);
	end();
}

static void *
ask_for_nobody(void *arg)
{
	*(int *)arg = kernif_resolve(k, 1, nobody4, (uint8_t[6]){0});
	return NULL;
}

/* Stop this process for ms milliseconds. Returns when it runs again: the time before the stop. */
static uint64_t
stopped_for(unsigned int ms)
{
	uint64_t at = 0;
	int pipe_fd[2];
	pid_t us = getpid(), child;

	assert_int_equal(pipe(pipe_fd), 0);
	child = fork();
	if (child == 0) {
		usleep(50000);
		at = kernif_now();
		if (write(pipe_fd[1], &at, sizeof(at)) != sizeof(at))
			_exit(1);
		kill(us, SIGSTOP);
		usleep(ms * 1000);
		kill(us, SIGCONT);
		_exit(0);
	}
	assert_true(child > 0);
	while (waitpid(child, NULL, 0) != child)
		continue;
	assert_int_equal(read(pipe_fd[0], &at, sizeof(at)), sizeof(at));
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return at;
}

struct asked {
	uint64_t began, took; /* ns; began: 0 before the call */
	int err;
};

static void *
ask_and_measure(void *arg)
{
	struct asked *a = arg;
	uint64_t now = kernif_now();

	__atomic_store_n(&a->began, now, __ATOMIC_RELEASE);
	a->err = kernif_resolve(k, 1, nobody4, (uint8_t[6]){0});
	a->took = kernif_now() - now;
	return NULL;
}

/* One call, in which the process is stopped for a second. False: it had ended before the stop. */
static bool
asked_once(struct asked *a)
{
	uint64_t stopped_at;
	pthread_t t;

	*a = (struct asked){0};
	assert_int_equal(pthread_create(&t, NULL, ask_and_measure, a), 0);
	while (__atomic_load_n(&a->began, __ATOMIC_ACQUIRE) == 0)
		usleep(1000);
	stopped_at = stopped_for(1000);
	pthread_join(t, NULL);
	assert_int_equal(a->err, -EHOSTUNREACH);
	return a->began + a->took > stopped_at;
}

/*
 * Time in which the process does not run is not time without an answer: a stop of a second counts
 * as one wait, 100 ms. No host answers, because the time of an answer depends on the machine.
 */
static void
stopped_while_asking(void **state)
{
	static const enum kernif_kind kinds[] = {KERNIF_TAP, KERNIF_BUILTIN};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct kernif_config c = config(kinds[i]);
		struct asked a;

		c.timeout_ms = 1500;
		begin(&c);
		wait_gid(1, gid4);
		while (!asked_once(&a))
			continue;
		/* 2400 ms, less the delay of the stop; by the clock: 1500 */
		assert_true(a.took >= 2000000000u);
		end();
	}
}

/* Calls that wait for an answer return. After kernif_hurry() known answers are still given. */
static void
ends_while_asked(void **state)
{
	static const enum kernif_kind kinds[] = {KERNIF_TAP, KERNIF_BUILTIN};

	for (unsigned int i = 0; i < 4; i++) {
		struct kernif_config c = config(kinds[i / 2]);
		bool stop = i % 2 == 1;
		pthread_t t;
		int err = 0;

		c.timeout_ms = 1000000;
		begin(&c);
		wait_gid(1, gid4);
		assert_way(host4, 1, host_mac);
		assert_int_equal(pthread_create(&t, NULL, ask_for_nobody, &err), 0);
		usleep(100000);
		(stop ? kernif_stop : kernif_hurry)(k);
		pthread_join(t, NULL);
		assert_int_equal(err, -ESHUTDOWN);
		err = kernif_resolve(k, 1, host4, (uint8_t[6]){0});
		assert_int_equal(err, stop ? -ESHUTDOWN : 0);
		end();
	}
}

/* ---- the responder ---- */

static void
built_in(void **state)
{
	struct kernif_config c = config(KERNIF_BUILTIN);
	struct arp_nd_stats s;
	uint8_t mac[6];

	(void)state;
	begin(&c);
	assert_true(gid_is(0, gid0) && gid_is(1, gid4) && gid_is(2, gid6));
	assert_way(host4, 1, host_mac);
	assert_way(host6, 2, host_mac);
	assert_way(far4, 1, host_mac); /* via the gateway */
	assert_int_equal(way_to(nobody4, 1, mac), -EHOSTUNREACH);
	usleep(1100000);
	lan_host(lan, new_mac);
	wait_moved(3, new_mac);
	assert_way(host4, 1, new_mac);
	/* silence is noticed, and its end */
	lan_silence(lan, true);
	assert_int_equal(way_to(other4, 1, mac), 0); /* not on-link: via the gateway, still known */
	lan_silence(lan, false);
	kernif_link(k, false);
	kernif_link(k, true);
	assert_true(kernif_arp_nd_stats(k, &s));
	assert_true(s.moved >= 2);
	end();
}

static void
without_link_local(void **state)
{
	struct kernif_config c = config(KERNIF_BUILTIN);

	(void)state;
	c.link_local = false;
	c.ifindex = 77;
	begin(&c);
	assert_true(gid_is(0, gid4) && gid_is(1, gid6) && gid_is(2, NULL));
	assert_int_equal(ifindex_of_gid(0), 77);
	end();
	c.num_addresses = ARP_ND_ADDRESSES + 1;
	assert_int_equal(kernif_create(&c, &k), -EINVAL);
}

/* A namespace of its own, which ends with the process. */
static int
enter_namespace(void)
{
	if (access("/dev/net/tun", R_OK | W_OK) != 0 || unshare(CLONE_NEWNET) != 0) {
		printf("skipped: needs root, network namespaces and /dev/net/tun\n");
		return SKIPPED;
	}
	if (system("command -v ip >/dev/null && ip link set lo up") != 0) {
		printf("skipped: the program ip is missing (package iproute2)\n");
		return SKIPPED;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tables[] = {
		cmocka_unit_test(gids_follow_addresses), cmocka_unit_test(events_lost),
		cmocka_unit_test(too_many_addresses),	 cmocka_unit_test(next_hops),
		cmocka_unit_test(neighbours_move),	 cmocka_unit_test(interface_changes),
		cmocka_unit_test(interface_deleted),	 cmocka_unit_test(static_next_hop),
	};
	const struct CMUnitTest ways[] = {
		cmocka_unit_test(asks_from_its_address),
		cmocka_unit_test(given_up_early),
		cmocka_unit_test(stopped_while_asking),
		cmocka_unit_test(traffic),
		cmocka_unit_test(adopts),
		cmocka_unit_test(ends_while_asked),
		cmocka_unit_test(built_in),
		cmocka_unit_test(without_link_local),
	};
	int rc = enter_namespace();

	if (rc == 0)
		rc = test_eal_start(256);
	if (rc != 0)
		return rc;
	return argc > 1 && strcmp(argv[1], "ways") == 0
		       ? cmocka_run_group_tests(ways, NULL, NULL)
		       : cmocka_run_group_tests(tables, NULL, NULL);
}
