/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses: their kinds and comparison. */

#include "abi_addr.h"
#include "abi_test.h"

#define V4(a, b, c, d) \
	{ \
		[10] = 0xff, 0xff, a, b, c, d \
	}

static void
kinds(void **state)
{
	static const struct {
		uint8_t gid[16];
		bool mapped, multicast, link_local;
	} cases[] = {
		{V4(10, 0, 0, 1), true, false, false},
		{V4(169, 254, 0, 1), true, false, true},
		{V4(224, 0, 0, 5), true, true, true},
		{V4(224, 0, 1, 5), true, true, false},
		{V4(239, 255, 255, 255), true, true, false},
		{V4(240, 0, 0, 1), true, false, false},
		{{0x20, 1, [15] = 1}, false, false, false},
		{{0xfe, 0x80, [15] = 1}, false, false, true},
		{{0xfe, 0xbf, [15] = 1}, false, false, true},
		{{0xfe, 0xc0, [15] = 1}, false, false, false},
		{{0xff, 2, [15] = 1}, false, true, true},
		{{0xff, 0x12, [15] = 1}, false, true, true},
		{{0xff, 5, [15] = 1}, false, true, false},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(hca_gid_is_mapped(cases[i].gid), cases[i].mapped);
		assert_int_equal(hca_gid_is_multicast(cases[i].gid), cases[i].multicast);
		assert_int_equal(hca_gid_is_link_local(cases[i].gid), cases[i].link_local);
	}
}

static void
common_bits(void **state)
{
	uint8_t a[16] = V4(10, 0, 0, 1), b[16];

	(void)state;
	for (unsigned int bit = 0; bit < 128; bit++) {
		memcpy(b, a, 16);
		b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		assert_int_equal(hca_gid_common_bits(a, b), bit);
	}
	assert_int_equal(hca_gid_common_bits(a, a), 128);
}

static void
multicast_macs(void **state)
{
	static const uint8_t v4[16] = V4(239, 129, 2, 3), v6[16] = {0xff, 5, [12] = 1, 2, 3, 4};
	uint8_t mac[6];

	(void)state;
	hca_gid_multicast_mac(v4, mac);
	assert_memory_equal(mac, "\x01\x00\x5e\x01\x02\x03", 6);
	hca_gid_multicast_mac(v6, mac);
	assert_memory_equal(mac, "\x33\x33\x01\x02\x03\x04", 6);
}

/* The addresses of a network spread over a table, by whichever bits of them differ. */
static void
hashes(void **state)
{
	(void)state;
	for (unsigned int byte = 0; byte < 16; byte++)
		for (uint64_t key = 1; key < 4; key++) {
			bool used[256] = {false};
			uint8_t gid[16] = V4(10, 0, 0, 1);
			unsigned int n = 0;

			for (unsigned int i = 0; i < 256; i++) {
				gid[byte] = (uint8_t)i;
				n += !used[hca_gid_hash(gid, key) % 256];
				used[hca_gid_hash(gid, key) % 256] = true;
			}
			assert_true(n > 100); /* by chance: 162 */
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(common_bits),
		cmocka_unit_test(multicast_macs),
		cmocka_unit_test(hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
