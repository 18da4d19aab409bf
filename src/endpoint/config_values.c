/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi_addr.h"
#include "abi_cmd.h"
#include "abi_ub.h"
#include "cc/cc_names.h"
#include "config_values.h"
#include "hca.h"

void
config_store(const struct config_key *key, struct endpoint_config *c, uint64_t value)
{
	char *at = (char *)c + key->at;
	uint32_t word = (uint32_t)value;
	bool flag = value != 0;

	if (key->size == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else if (key->size == sizeof(word))
		memcpy(at, &word, sizeof(word));
	else
		memcpy(at, &flag, sizeof(flag));
}

/* Decimal, or hexadecimal with 0x; nothing before or after it. */
static bool
whole_number(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	return errno == 0 && *end == '\0';
}

static bool
number_of(const struct config_key *key, const char *text, uint64_t *value)
{
	if (key->def == 0 && key->min != 0 && strcmp(text, "auto") == 0) {
		*value = 0;
		return true;
	}
	return whole_number(text, value) && *value >= key->min && *value <= key->max;
}

bool
config_number(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	uint64_t value;

	if (!number_of(key, text, &value))
		return false;
	config_store(key, c, value);
	return true;
}

bool
config_power(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	uint64_t value;

	if (!number_of(key, text, &value) || (value & (value - 1)) != 0)
		return false;
	config_store(key, c, value);
	return true;
}

/* Words are separated by blanks, commas and "or". */
bool
config_choice(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	const char *word = key->expected;
	uint64_t value = 0;

	while (*word != '\0') {
		size_t len = strcspn(word, ", ");

		if (len != 0 && strncmp(word, "or", len) != 0) {
			if (strlen(text) == len && strncmp(word, text, len) == 0) {
				config_store(key, c, value);
				return true;
			}
			value++;
		}
		word += len;
		word += strspn(word, ", ");
	}
	return false;
}

bool
config_yes_no(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0)
		return false;
	config_store(key, c, yes);
	return true;
}

bool
config_text(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	if (strlen(text) >= key->size)
		return false;
	strcpy((char *)c + key->at, text);
	return true;
}

bool
config_name(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	if (*text == '\0' || *text == '.')
		return false;
	for (const char *p = text; *p != '\0'; p++)
		if (!isalnum((unsigned char)*p) && strchr("-_.", *p) == NULL)
			return false;
	return config_text(key, c, text);
}

static bool
add_cpus(struct endpoint_config *c, uint64_t first, uint64_t last)
{
	if (last < first || last >= 4096 || last - first >= ENDPOINT_CPUS_MAX - c->num_cpus)
		return false;
	for (uint64_t cpu = first; cpu <= last; cpu++)
		c->cpus[c->num_cpus++] = (int)cpu;
	return true;
}

/* "1,3-5" */
bool
config_lcores(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	(void)key;
	c->num_cpus = 0;
	while (*text != '\0') {
		uint64_t first, last;
		char *end;

		if (!isdigit((unsigned char)*text))
			return false;
		first = last = strtoull(text, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoull(end + 1, &end, 10);
		if (!add_cpus(c, first, last))
			return false;
		if (*end == ',')
			end += 1 + strspn(end + 1, " ");
		else if (*end != '\0')
			return false;
		if (*end == '\0' && end[-1] == ',')
			return false;
		text = end;
	}
	return true;
}

bool
endpoint_is_pci(const char *text)
{
	unsigned int domain = 0, bus, device, function;
	int used = 0;

	if (sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) == 4 &&
	    used == (int)strcspn(text, ","))
		return device < 32 && function < 8;
	used = 0;
	return sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &used) == 3 &&
	       used == (int)strcspn(text, ",") && device < 32 && function < 8;
}

bool
config_device(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	bool vdev = strncmp(text, "net_", 4) == 0 || strncmp(text, "eth_", 4) == 0;

	if (strpbrk(text, " \t") != NULL || !(vdev || endpoint_is_pci(text)))
		return false;
	return config_text(key, c, text);
}

static bool
parse_mac(const char *text, uint8_t mac[6])
{
	unsigned int b[6];
	int used = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &used) != 6 ||
	    used != 17 || text[used] != '\0')
		return false;
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return hca_mac_is_unicast(mac);
}

bool
config_mac(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	(void)key;
	c->has_mac = strcmp(text, "device") != 0;
	return !c->has_mac || parse_mac(text, c->mac);
}

static bool
parse_gid(const char *text, uint8_t gid[16])
{
	uint8_t ip[4];

	if (strchr(text, ':') != NULL)
		return inet_pton(AF_INET6, text, gid) == 1;
	if (inet_pton(AF_INET, text, ip) != 1)
		return false;
	hca_gid_from_ip4(gid, ip);
	return true;
}

/* An address that a port may have: not unspecified, multicast or loopback. */
static bool
is_unicast(const uint8_t gid[16], bool v4)
{
	static const uint8_t zeros[15];

	if (v4)
		return gid[12] != 0 && gid[12] != 127 && gid[12] < 224;
	return gid[0] != 0xff && !(memcmp(gid, zeros, sizeof(zeros)) == 0 && gid[15] <= 1);
}

/* "vlan N" after an address */
static bool
vlan_of(const char *text, uint16_t *vlan)
{
	uint64_t value;

	if (*text == '\0') {
		*vlan = ENDPOINT_NO_VLAN;
		return true;
	}
	if (strncmp(text, "vlan", 4) != 0 || !isspace((unsigned char)text[4]))
		return false;
	text += 4;
	text += strspn(text, " \t");
	if (!whole_number(text, &value) || value < 1 || value > 4094)
		return false;
	*vlan = (uint16_t)value;
	return true;
}

/*
 * An address that a port may have, followed by "/" and its prefix where one is asked for. Returns
 * the text after it, or NULL.
 */
static const char *
take_address(const char *text, uint8_t gid[16], uint8_t *prefix)
{
	size_t len = strcspn(text, " \t");
	char word[64], *slash;
	uint64_t bits = 0;
	bool v4;

	if (len >= sizeof(word))
		return NULL;
	memcpy(word, text, len);
	word[len] = '\0';
	slash = strchr(word, '/');
	if ((slash != NULL) != (prefix != NULL))
		return NULL;
	if (slash != NULL)
		*slash++ = '\0';
	v4 = strchr(word, ':') == NULL;
	if (!parse_gid(word, gid) || !is_unicast(gid, v4))
		return NULL;
	if (slash != NULL && (!whole_number(slash, &bits) || bits < 1 || bits > (v4 ? 32 : 128)))
		return NULL;
	if (prefix != NULL)
		*prefix = (uint8_t)bits;
	return text + len + strspn(text + len, " \t");
}

bool
config_address(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	struct endpoint_address a = {0};

	(void)key;
	text = take_address(text, a.gid, &a.prefix);
	if (text == NULL || !vlan_of(text, &a.vlan_id) ||
	    c->num_addresses == ENDPOINT_ADDRESSES_MAX)
		return false;
	c->address[c->num_addresses++] = a;
	return true;
}

bool
config_gateway(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	struct endpoint_gateway g = {0};

	(void)key;
	text = take_address(text, g.gid, NULL);
	if (text == NULL || !vlan_of(text, &g.vlan_id) || c->num_gateways == ENDPOINT_ADDRESSES_MAX)
		return false;
	c->gateway[c->num_gateways++] = g;
	return true;
}

bool
config_neighbour(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	struct endpoint_neighbour n = {0};

	(void)key;
	text = take_address(text, n.gid, NULL);
	if (text == NULL || !parse_mac(text, n.mac) || c->num_neighbours == ENDPOINT_NEIGHBOURS_MAX)
		return false;
	c->neighbour[c->num_neighbours++] = n;
	return true;
}

bool
config_node(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	uint64_t node;

	(void)key;
	c->numa_node = -1;
	if (strcmp(text, "any") == 0)
		return true;
	if (!whole_number(text, &node) || node > 255)
		return false;
	c->numa_node = (int)node;
	return true;
}

bool
config_version(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	unsigned int part[3];
	int end = 0;

	if (sscanf(text, "%5u.%5u.%5u%n", &part[0], &part[1], &part[2], &end) != 3 ||
	    text[end] != '\0')
		return false;
	for (int i = 0; i < 3; i++)
		if (part[i] > UINT16_MAX)
			return false;
	config_store(key, c, HCA_FW_VER(part[0], part[1], part[2]));
	return HCA_FW_VER(part[0], part[1], part[2]) != 0;
}

bool
config_mode(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (!isdigit((unsigned char)*text) || *end != '\0' || mode > 0777)
		return false;
	config_store(key, c, mode);
	return true;
}

static uint32_t
ub_choice(const char *word, size_t length)
{
	static const struct {
		const char *word;
		uint32_t bit;
	} words[] = {
#define X(NAME, bit, word, choice, text) {#word, HCA_UB_SWITCH_##NAME},
		HCA_UB_SWITCH_LIST(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
			return words[i].bit;
	return 0;
}

bool
config_ub_choices(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	uint32_t choices = 0, bit;

	while (*text != '\0') {
		size_t length = strcspn(text, ", ");

		if (length != 0 && (bit = ub_choice(text, length)) == 0)
			return false;
		choices |= length != 0 ? bit : 0;
		text += length + (text[length] != '\0');
	}
	config_store(key, c, choices);
	return true;
}

bool
config_congestion(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	if (!hca_cc_is_name(text))
		return false;
	strcpy((char *)c + key->at, text);
	return true;
}

bool
config_pipelines(const struct config_key *key, struct endpoint_config *c, const char *text)
{
	uint64_t n = 0;

	if (strcmp(text, "auto") != 0 &&
	    (!whole_number(text, &n) || n == 0 || n > HCA_PIPES_MAX || (n & (n - 1)) != 0))
		return false;
	config_store(key, c, n);
	return true;
}
