/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"
#include "config_values.h"
#include "hca.h"

#define AT(f) \
	.at = offsetof(struct endpoint_config, f), .size = sizeof(((struct endpoint_config *)0)->f)

/* Keys that set more than one member, or may be repeated: X(section, name, member, expected) */
#define OWN_KEYS(ONCE, REPEATED) \
	ONCE(hca, lcores, cpus, "a list of CPUs like 2,3 or 4-7, or nothing") \
	ONCE(port, mac, mac, "a unicast MAC address or device") \
	REPEATED(addresses, address, address, "IP address/prefix, then perhaps \"vlan 1..4094\"") \
	REPEATED(addresses, gateway, gateway, "IP address, then perhaps \"vlan 1..4094\"") \
	REPEATED(addresses, neighbour, neighbour, "IP address and MAC address")

/* X(member of struct hca_quota, most) */
#define QUOTAS(X) \
	X(qps, 16384) \
	X(cqs, 16384) \
	X(srqs, 16384) \
	X(mrs, 131072) \
	X(pds, 65536) \
	X(xrcds, 65536) \
	X(channels, 65536) \
	X(mtts, 16777216) \
	X(segments, 65536) \
	X(groups, 65536) \
	X(peers, 65536) \
	X(links, 8192) \
	X(known, 992)

/* clang-format off */
const struct config_key config_keys[] = {
#define ROW(s, n, fn, member, e) .section = #s, .name = #n, .parse = fn, AT(member), .expected = e
#define NUMBER(s, n, type, member, lo, hi, d, e) \
	{ROW(s, n, config_number, member, e), .min = lo, .max = hi, .def = d},
#define POWER(s, n, type, member, lo, hi, d, e) \
	{ROW(s, n, config_power, member, e), .min = lo, .max = hi, .def = d},
#define CHOICE(s, n, member, d, e) {ROW(s, n, config_choice, member, e), .def = d},
#define YES_NO(s, n, member, d) {ROW(s, n, config_yes_no, member, "yes or no"), .def = d},
#define TEXT(s, n, bytes, member, fn, d, e) {ROW(s, n, fn, member, e), .text = d},
#define PARSED(s, n, type, member, fn, d, e) {ROW(s, n, fn, member, e), .def = d},
	ENDPOINT_CONFIG_LIST(NUMBER, POWER, CHOICE, YES_NO, TEXT, PARSED)
#define LIMIT(s, n, lo, hi, d) \
	{ROW(s, n, config_number, n, (d) != 0 ? #lo " to " #hi : "0 (by the number of QPs) to " #hi), \
	 .min = (d) != 0 ? (lo) : 0, .max = hi, .def = d},
	HCA_LIMIT_LIST(LIMIT)
#define CM_LIMIT(n, d, text) \
	{ROW(cm, n, config_number, cm_limits.n, "1 to 1048576"), .min = 1, .max = 1048576, .def = d},
	IBCM_LIMIT_LIST(CM_LIMIT)
#define QUOTA(n, hi) \
	{ROW(quota, n, config_number, quota.n, "0 (a share) to " #hi), .max = hi},
	QUOTAS(QUOTA)
#define SHARE(n, d) \
	{ROW(quota, n, config_number, quota.n, "per cent, 1 to 100"), .min = 1, .max = 100, .def = d},
	SHARE(user_share, 75)
	SHARE(client_share, 50)
#define ONCE(s, n, member, e) {ROW(s, n, config_##n, member, e)},
#define REPEATED(s, n, member, e) {ROW(s, n, config_##n, member, e), .repeats = true},
	OWN_KEYS(ONCE, REPEATED)
};
/* clang-format on */

const unsigned int config_keys_count = sizeof(config_keys) / sizeof(config_keys[0]);

const struct config_key *
config_key_find(const char *section, const char *name)
{
	for (unsigned int i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].section, section) == 0 &&
		    strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

const char *
config_section_find(const char *section)
{
	for (unsigned int i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].section, section) == 0)
			return config_keys[i].section;
	return NULL;
}

/* ---- names that were probably meant ---- */

#define NAME_MAX_CHARS 32u
#define NEAR 3u /* largest number of differing letters */

/*
 * Letters to insert, delete or change (Levenshtein); names that are too long have a large distance.
 */
static unsigned int
distance(const char *a, const char *b)
{
	unsigned int row[NAME_MAX_CHARS + 1], n = (unsigned int)strlen(b), up, diagonal;

	if (n > NAME_MAX_CHARS || strlen(a) > NAME_MAX_CHARS)
		return NAME_MAX_CHARS;
	for (unsigned int j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned int i = 1; a[i - 1] != '\0'; i++) {
		diagonal = row[0];
		row[0] = i;
		for (unsigned int j = 1; j <= n; j++) {
			bool same = tolower((unsigned char)a[i - 1]) ==
				    tolower((unsigned char)b[j - 1]);

			up = row[j];
			row[j] = diagonal + !same;
			if (up + 1 < row[j])
				row[j] = up + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diagonal = up;
		}
	}
	return row[n];
}

static const char *
nearer(const char *name, const char *candidate, const char *best, unsigned int *min)
{
	unsigned int d = distance(name, candidate);

	/* half of a short name must be right */
	if (d >= *min || 2 * d > strlen(candidate))
		return best;
	*min = d;
	return candidate;
}

const char *
config_section_nearest(const char *section)
{
	unsigned int min = NEAR + 1;
	const char *best = NULL;

	for (unsigned int i = 0; i < config_keys_count; i++)
		best = nearer(section, config_keys[i].section, best, &min);
	return best;
}

const char *
config_key_nearest(const char *section, const char *name)
{
	unsigned int min = NEAR + 1;
	const char *best = NULL;

	for (unsigned int i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].section, section) == 0)
			best = nearer(name, config_keys[i].name, best, &min);
	return best;
}
