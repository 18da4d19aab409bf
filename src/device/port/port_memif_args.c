/* SPDX-License-Identifier: BSD-3-Clause */

/* Arguments of DPDK's net_memif, with the same names and defaults. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_memif_impl.h"

#define DEFAULT_SOCKET "/run/memif.sock"
#define VALUE_MAX 256u

struct parse {
	struct hca_port_memif_config *cfg;
	char *why;
	uint32_t size;
};

static int fail(const struct parse *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int
fail(const struct parse *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(p->why, p->size, format, ap);
	va_end(ap);
	return -EINVAL;
}

static int
number(const struct parse *p, const char *key, const char *value, uint64_t least, uint64_t most,
       uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || *out < least ||
	    *out > most)
		return fail(p, "%s=%s: a number from %llu to %llu is expected", key, value,
			    (unsigned long long)least, (unsigned long long)most);
	return 0;
}

static int
yes_or_no(const struct parse *p, const char *key, const char *value, bool *out)
{
	*out = strcmp(value, "yes") == 0;
	return *out || strcmp(value, "no") == 0
		       ? 0
		       : fail(p, "%s=%s: yes or no is expected", key, value);
}

static int
take_role(const struct parse *p, const char *key, const char *value)
{
	p->cfg->server = strcmp(value, "server") == 0 || strcmp(value, "master") == 0;
	if (p->cfg->server || strcmp(value, "client") == 0 || strcmp(value, "slave") == 0)
		return 0;
	return fail(p, "%s=%s: server or client is expected", key, value);
}

static int
take_id(const struct parse *p, const char *key, const char *value)
{
	uint64_t n = 0;
	int err = number(p, key, value, 0, UINT32_MAX, &n);

	p->cfg->id = (uint32_t)n;
	return err;
}

static int
take_bsize(const struct parse *p, const char *key, const char *value)
{
	uint64_t n = 0;
	int err = number(p, key, value, 64, UINT16_MAX, &n);

	p->cfg->buffer = (uint16_t)n;
	return err;
}

static int
take_rsize(const struct parse *p, const char *key, const char *value)
{
	uint64_t n = 0;
	int err = number(p, key, value, 1, RING_LOG_MAX, &n);

	p->cfg->log2_ring = (uint8_t)n;
	return err;
}

static int
take_socket(const struct parse *p, const char *key, const char *value)
{
	if (value[0] == '\0' || strlen(value) >= sizeof(p->cfg->socket) - 1)
		return fail(p, "%s=%s: 1 to %zu characters are expected", key, value,
			    sizeof(p->cfg->socket) - 2);
	snprintf(p->cfg->socket, sizeof(p->cfg->socket), "%s", value);
	return 0;
}

static int
take_abstract(const struct parse *p, const char *key, const char *value)
{
	return yes_or_no(p, key, value, &p->cfg->abstract);
}

static int
take_owner(const struct parse *p, const char *key, const char *value)
{
	uint64_t n = 0;
	int err = number(p, key, value, 0, UINT32_MAX - 1, &n);

	if (strcmp(key, "owner-uid") == 0)
		p->cfg->owner_uid = (uid_t)n;
	else
		p->cfg->owner_gid = (gid_t)n;
	return err;
}

static int
take_mac(const struct parse *p, const char *key, const char *value)
{
	unsigned int m[6];
	char rest;

	if (sscanf(value, "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
		   &rest) != 6)
		return fail(p, "%s=%s: a MAC address is expected", key, value);
	for (size_t i = 0; i < RTE_DIM(m); i++)
		p->cfg->mac[i] = (uint8_t)m[i];
	p->cfg->has_mac = true;
	return 0;
}

static int
take_zero_copy(const struct parse *p, const char *key, const char *value)
{
	bool wanted;
	int err = yes_or_no(p, key, value, &wanted);

	if (err == 0 && wanted)
		return fail(p,
			    "%s=yes: frames are copied into shared memory of their own; leave "
			    "it out (a peer may have it)",
			    key);
	return err;
}

static int
take_secret(const struct parse *p, const char *key, const char *value)
{
	if (strlen(value) >= sizeof(p->cfg->secret))
		return fail(p, "%s: up to %zu characters are expected", key,
			    sizeof(p->cfg->secret) - 1);
	snprintf(p->cfg->secret, sizeof(p->cfg->secret), "%s", value);
	return 0;
}

static const struct {
	const char *key;
	int (*take)(const struct parse *p, const char *key, const char *value);
} arguments[] = {
	{"role", take_role},	   {"id", take_id},
	{"bsize", take_bsize},	   {"rsize", take_rsize},
	{"socket", take_socket},   {"socket-abstract", take_abstract},
	{"owner-uid", take_owner}, {"owner-gid", take_owner},
	{"mac", take_mac},	   {"zero-copy", take_zero_copy},
	{"secret", take_secret},
};

static int
take_argument(const struct parse *p, const char *text, size_t length)
{
	char key[VALUE_MAX], *value;

	if (length >= sizeof(key))
		return fail(p, "an argument is too long: %.32s...", text);
	memcpy(key, text, length);
	key[length] = '\0';
	value = strchr(key, '=');
	if (value == NULL)
		return fail(p, "%s: NAME=VALUE is expected", key);
	*value++ = '\0';
	for (size_t i = 0; i < RTE_DIM(arguments); i++)
		if (strcmp(key, arguments[i].key) == 0)
			return arguments[i].take(p, key, value);
	return fail(p, "there is no argument %s", key);
}

bool
hca_port_memif_is(const char *device)
{
	return strncmp(device, HCA_PORT_MEMIF_DEVICE, strlen(HCA_PORT_MEMIF_DEVICE)) == 0;
}

int
hca_port_memif_parse(const char *args, struct hca_port_memif_config *out, char *why, uint32_t size)
{
	const struct parse p = {.cfg = out, .why = why, .size = size};
	int err = 0;

	*out = (struct hca_port_memif_config){
		.abstract = true,
		.log2_ring = HCA_PORT_MEMIF_LOG2_RING,
		.owner_uid = (uid_t)-1,
		.owner_gid = (gid_t)-1,
		.socket = DEFAULT_SOCKET,
	};
	while (*args != '\0' && err == 0) {
		size_t length = strcspn(args, ",");

		err = take_argument(&p, args, length);
		args += length + (args[length] == ',');
	}
	return err;
}
