/* SPDX-License-Identifier: BSD-3-Clause */

/* Claims that a next hop has moved, against frames that still come from the old MAC address. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "move_guard.h"

#define MS 1000000ull
#define SLOTS 40

static struct move_guard guard;
static struct {
	bool on, seen, any_ip;
	uint8_t mac[6];
} slot[SLOTS];
static int slots_left;
static uint8_t at[6]; /* as last reported */
static unsigned int told, backs;
static uint64_t now;

static const struct arp_nd_hop hop = {.gid = {[10] = 0xff, 0xff, 10, 0, 0, 2}, .vlan_id = 7};
static const uint8_t owner[6] = {2, 0, 0, 0, 0, 1}, liar[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t third[6] = {2, 0, 0, 0, 0, 3};

static int
watch(void *arg, const uint8_t mac[6], const uint8_t *gid, uint16_t vlan_id)
{
	for (int i = 0; i < slots_left; i++)
		if (!slot[i].on) {
			slot[i].on = true;
			slot[i].seen = false;
			slot[i].any_ip = gid == NULL;
			memcpy(slot[i].mac, mac, 6);
			assert_int_equal(vlan_id, hop.vlan_id);
			return i;
		}
	return -1;
}

static bool
seen(void *arg, int handle)
{
	bool was = slot[handle].seen;

	assert_true(slot[handle].on);
	slot[handle].seen = false;
	return was;
}

static void
unwatch(void *arg, int handle)
{
	assert_true(slot[handle].on);
	slot[handle].on = false;
}

static void
moved(void *arg, const struct arp_nd_hop *h, const uint8_t mac[6], bool back)
{
	memcpy(at, mac, 6);
	told++;
	backs += back;
}

/* One frame from that MAC address */
static void
frame(const uint8_t mac[6])
{
	for (int i = 0; i < SLOTS; i++)
		if (slot[i].on && memcmp(slot[i].mac, mac, 6) == 0)
			slot[i].seen = true;
}

static unsigned int
watched(void)
{
	unsigned int n = 0;

	for (int i = 0; i < SLOTS; i++)
		n += slot[i].on;
	return n;
}

static void
pass(uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 50) {
		now += 50 * MS;
		move_guard_tick(&guard, now);
	}
}

/* Time passes, with frames from that MAC address */
static void
pass_with(const uint8_t mac[6], uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 50) {
		frame(mac);
		pass(50);
	}
}

static void
claim(const uint8_t *old, const uint8_t mac[6])
{
	move_guard_claim(&guard, &hop, old, mac, true, now);
}

static int
setup(void **state)
{
	const struct move_guard_config cfg = {watch, seen, unwatch, moved, NULL};

	memset(slot, 0, sizeof(slot));
	slots_left = SLOTS;
	told = backs = 0;
	now = 1000 * MS;
	move_guard_init(&guard, &cfg);
	return 0;
}

static int
teardown(void **state)
{
	/* Without further frames, all claims end. */
	for (int i = 0; i < 3; i++) {
		now += MOVE_GUARD_WATCH_NS;
		move_guard_tick(&guard, now);
	}
	assert_int_equal(watched(), 0);
	assert_int_equal(guard.busy, 0);
	return 0;
}

static void
owner_is_silent(void **state)
{
	claim(owner, liar);
	pass(150);
	assert_int_equal(told, 0);
	pass(100);
	assert_int_equal(told, 1);
	assert_memory_equal(at, liar, 6);
	pass(40000);
	assert_int_equal(told, 1);
	assert_int_equal(watched(), 0);
}

static void
owner_sends(void **state)
{
	for (unsigned int i = 1; i <= 100; i++) {
		claim(owner, liar);
		pass_with(owner, 650);
		assert_int_equal(told, i - 1);
		pass_with(owner, 50);
		assert_int_equal(backs, i);
		assert_memory_equal(at, owner, 6);
	}
	assert_int_equal(guard.refused, 100);
	/* frames of the liar prove nothing */
	claim(owner, liar);
	frame(liar);
	pass_with(owner, 700);
	assert_memory_equal(at, owner, 6);
}

/* The hop really moves: its last frames from the old address arrive after the claim. */
static void
last_frames(void **state)
{
	claim(owner, third);
	pass_with(owner, 300);
	assert_int_equal(told, 0);
	pass(200);
	assert_memory_equal(at, third, 6);
	assert_int_equal(guard.refused, 0);
}

/* The owner is silent for 5 s and then sends: within a tick it has its address back. */
static void
comes_back(void **state)
{
	claim(owner, liar);
	pass(5000);
	assert_memory_equal(at, liar, 6);
	claim(liar, liar);
	frame(owner);
	pass(50);
	assert_memory_equal(at, owner, 6);
	assert_int_equal(guard.taken_back, 1);
	assert_int_equal(watched(), 0);
	/* Frames before and after the watch do not count. */
	frame(owner);
	pass(1000);
	assert_int_equal(told, 2);
}

static void
owner_answers(void **state)
{
	claim(owner, liar);
	claim(owner, owner);
	assert_memory_equal(at, owner, 6);
	assert_int_equal(watched(), 0);
	claim(owner, liar);
	pass(300);
	claim(liar, owner);
	assert_memory_equal(at, owner, 6);
	assert_int_equal(backs, 0);
	pass(1000);
	assert_memory_equal(at, owner, 6);
}

static void
moves_on(void **state)
{
	claim(owner, liar);
	pass(300);
	assert_memory_equal(at, liar, 6);
	claim(liar, third);
	frame(owner); /* it is not watched any more */
	pass(300);
	assert_memory_equal(at, third, 6);
	frame(liar);
	pass(50);
	assert_memory_equal(at, liar, 6);
}

static void
first_known(void **state)
{
	claim(NULL, liar);
	assert_int_equal(told, 1);
	assert_int_equal(watched(), 0);
}

/* More hops than can be watched: no claim is lost, and held ones are decided. */
static void
many(void **state)
{
	struct arp_nd_hop h = hop;

	slots_left = 3;
	for (unsigned int i = 0; i < 100; i++) {
		h.gid[15] = (uint8_t)i;
		move_guard_claim(&guard, &h, owner, liar, false, now);
	}
	assert_int_equal(told, 97);
	assert_true(slot[0].any_ip);
	pass(300);
	assert_int_equal(told, 100);
	slots_left = SLOTS;
	for (unsigned int i = 0; i < 100; i++) {
		h.gid[15] = (uint8_t)(100 + i);
		move_guard_claim(&guard, &h, owner, liar, false, now);
	}
	pass(300);
	assert_int_equal(told, 200);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(owner_is_silent), T(owner_sends), T(last_frames), T(comes_back),
		T(owner_answers),   T(moves_on),    T(first_known), T(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
