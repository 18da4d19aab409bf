/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "abi_addr.h"
#include "config_keys.h"
#include "config_values.h"
#include "hca.h"
#include "wire/wire_view.h"

#define LINE_MAX_BYTES 320u /* with its newline; keys and values: with their terminating zero */
#define KEY_MAX_BYTES 64u
#define VALUE_MAX_BYTES 256u

/*
 * MiB that an HCA needs, measured as the growth of DPDK's heap: per 1024 buffers (two pools of
 * mbufs, one of receive descriptors), per table at its largest size, and for the rest.
 */
#define MIB_PER_1024_BUFFERS 16u
#define MIB_QPS 36u  /* 2^14 */
#define MIB_CQS 4u   /* 2^14 */
#define MIB_MPTS 8u  /* 2^17 */
#define MIB_MTTS 10u /* 2^20 */
#define MIB_REST 56u

struct loader {
	struct endpoint_config *c;
	const char *path;
	FILE *errors;
	uint32_t line;
	const char *section; /* of the table; NULL: unknown, its keys are ignored */
	bool in_section;     /* a heading was read */
	bool broken;	     /* syntax errors: missing keys may be in those lines */
	uint32_t *given;     /* line of each key of the table; 0: absent */
	int failed;
};

uint32_t
endpoint_roce_mtu(uint32_t mtu)
{
	for (uint32_t payload = 4096; payload >= 256; payload /= 2)
		if (payload + ENDPOINT_LARGEST_HEADERS <= mtu)
			return payload;
	return 0;
}

uint32_t
endpoint_wires(const struct endpoint_config *c)
{
	return HCA_WIRE_BIT(HCA_WIRE_ROCE) | (c->ub ? HCA_WIRE_BIT(HCA_WIRE_UB) : 0);
}

uint32_t
endpoint_workers(const struct endpoint_config *c)
{
	uint32_t pipelines = c->pipelines != 0 ? c->pipelines : 1;

	return hca_layout_workers((enum hca_layout)c->layout, pipelines, endpoint_wires(c));
}

static uint32_t
table_mib(uint32_t mib, uint32_t log, uint32_t largest)
{
	return log >= largest ? mib << (log - largest) : mib >> (largest - log);
}

uint64_t
endpoint_needed_mib(const struct endpoint_config *c)
{
	uint64_t buffers =
		(uint64_t)(c->pipelines != 0 ? c->pipelines : 1) * (c->mbufs + c->rx_descriptors);
	uint64_t need = MIB_REST + buffers * MIB_PER_1024_BUFFERS / 1024;

	need += table_mib(MIB_QPS, c->log_qps, 14) + table_mib(MIB_CQS, c->log_cqs, 14);
	need += table_mib(MIB_MPTS, c->log_mpts, 17) + table_mib(MIB_MTTS, c->log_mtts, 20);
	return need;
}

/* Whether twice as many pipelines have a CPU for each worker, and memory. */
static bool
has_room(const struct endpoint_config *c, uint32_t cpus)
{
	struct endpoint_config more = *c;

	more.pipelines *= 2;
	return endpoint_workers(&more) <= cpus && endpoint_workers(&more) <= HCA_WORKERS_MAX &&
	       endpoint_needed_mib(&more) <= c->memory_mb;
}

void
endpoint_settle_pipelines(struct endpoint_config *c, const struct endpoint_cpus *cpus)
{
	uint32_t n = c->num_cpus != 0 ? c->num_cpus : cpus->allowed;

	if (c->pipelines != 0)
		return;
	if (c->num_cpus == 0 && c->idle == ENDPOINT_IDLE_SPIN && n > 1)
		n--; /* for programs, which have no part of the quota */
	n = endpoint_cpus_within(cpus, n);
	c->fewer_pipelines = true;
	c->pipelines = 1;
	/* a guest often uses one pair of queues, which pipelines would share (port_ethdev.c) */
	if (strncmp(c->device, "net_vhost", strlen("net_vhost")) == 0)
		return;
	while (c->pipelines < HCA_PIPES_MAX && has_room(c, n))
		c->pipelines *= 2;
}

void
endpoint_config_init(struct endpoint_config *c)
{
	memset(c, 0, sizeof(*c));
	c->numa_node = -1;
	for (unsigned int i = 0; i < config_keys_count; i++) {
		const struct config_key *k = &config_keys[i];

		if (k->text != NULL)
			strcpy((char *)c + k->at, k->text);
		else if (k->def != 0)
			config_store(k, c, k->def);
	}
}

static void complain(struct loader *l, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
complain(struct loader *l, uint32_t line, const char *format, ...)
{
	va_list ap;

	if (line != 0)
		fprintf(l->errors, "%s:%u: ", l->path, line);
	else
		fprintf(l->errors, "%s: ", l->path);
	va_start(ap, format);
	vfprintf(l->errors, format, ap);
	va_end(ap);
	fputc('\n', l->errors);
	l->failed++;
}

static uint32_t
line_of(const struct loader *l, const char *section, const char *name)
{
	return l->given[config_key_find(section, name) - config_keys];
}

/* ---- lines ---- */

/* Remove blanks at both ends, in place. */
static char *
strip(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* A semicolon starts a comment, unless a backslash precedes it. */
static void
cut_comment(char *text)
{
	char *to = text;

	for (const char *p = text; *p != '\0' && *p != ';'; p++) {
		if (p[0] == '\\' && p[1] == ';')
			p++;
		*to++ = *p;
	}
	*to = '\0';
}

static void
take_entry(struct loader *l, const char *name, const char *value)
{
	const struct config_key *k = config_key_find(l->section, name);
	const char *near;
	uint32_t *given;

	if (k == NULL) {
		near = config_key_nearest(l->section, name);
		complain(l, l->line, "%s: no such key in [%s]%s%s%s", name, l->section,
			 near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		return;
	}
	given = &l->given[k - config_keys];
	if (*given != 0 && !k->repeats) {
		complain(l, l->line, "%s: expected once, found again (first on line %u)", name,
			 *given);
		return;
	}
	*given = l->line;
	if (!k->parse(k, l->c, value))
		complain(l, l->line, "%s: expected %s, found \"%s\"", name, k->expected, value);
}

static void
take_heading(struct loader *l, char *text)
{
	char *end = strchr(text, ']');
	const char *name, *near;

	l->in_section = true;
	l->section = NULL;
	if (end == NULL) {
		complain(l, l->line, "section: expected [name], found \"%.60s\"", text);
		l->broken = true;
		return;
	}
	if (end[1] != '\0')
		complain(l, l->line, "section: expected nothing after [name], found \"%.60s\"",
			 text);
	*end = '\0';
	name = strip(text + 1);
	l->section = config_section_find(name);
	if (l->section != NULL)
		return;
	near = config_section_nearest(name);
	complain(l, l->line, "[%s]: no such section%s%s%s", name, near ? ", did you mean [" : "",
		 near ? near : "", near ? "]?" : "");
}

static void
take_assignment(struct loader *l, char *text, char *equals)
{
	const char *name, *value;

	if (!l->in_section) {
		complain(l, l->line,
			 "file: expected a [section] before the first key, found \"%.60s\"", text);
		l->broken = true;
		return;
	}
	*equals = '\0';
	name = strip(text);
	value = strip(equals + 1);
	if (*name == '\0')
		complain(l, l->line, "line: expected key = value, found \"= %.60s\"", value);
	else if (strlen(name) >= KEY_MAX_BYTES || strlen(value) >= VALUE_MAX_BYTES)
		complain(l, l->line,
			 "line: expected a key of up to %u and a value of up to %u characters, "
			 "found \"%.60s\"",
			 KEY_MAX_BYTES - 1, VALUE_MAX_BYTES - 1, name);
	else if (l->section != NULL)
		take_entry(l, name, value);
}

static void
take_line(struct loader *l, char *text)
{
	char *equals;

	l->line++;
	if (strlen(text) > LINE_MAX_BYTES) {
		complain(l, l->line, "line: expected at most %u characters, found \"%.60s\"",
			 LINE_MAX_BYTES, text);
		l->broken = true;
		return;
	}
	cut_comment(text);
	text = strip(text);
	equals = strchr(text, '=');
	if (*text == '[')
		take_heading(l, text);
	else if (equals != NULL)
		take_assignment(l, text, equals);
	else if (*text != '\0')
		complain(l, l->line,
			 "line: expected [section], key = value or ; comment, found \"%.60s\"",
			 text);
}

/* ---- checks of several keys ---- */

static void
check_addresses(struct loader *l)
{
	const struct endpoint_config *c = l->c;
	uint32_t line = line_of(l, "addresses", "address");

	if (c->num_addresses == 0 && !c->link_local && !c->kernel_adopt)
		complain(l, line,
			 "address: expected at least one (or link_local = yes, or "
			 "[kernel] adopt = yes), found none");
	for (uint32_t i = 0; i < c->num_addresses; i++)
		for (uint32_t k = 0; k < i; k++)
			if (memcmp(&c->address[i].gid, &c->address[k].gid, 16) == 0 &&
			    c->address[i].vlan_id == c->address[k].vlan_id)
				complain(l, line,
					 "address: expected different ones, found number "
					 "%u twice",
					 k + 1);
}

/* Whether the first bits of two IP addresses in GID form are equal. */
static bool
same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned int bits)
{
	unsigned int whole, rest;

	if (hca_gid_is_mapped(a) != hca_gid_is_mapped(b))
		return false;
	if (hca_gid_is_mapped(a))
		bits += 96;
	whole = bits / 8;
	rest = bits % 8;
	return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static bool
reaches(const struct endpoint_config *c, const struct endpoint_gateway *g)
{
	static const uint8_t local[16] = {0xfe, 0x80};

	if (c->link_local && g->vlan_id == ENDPOINT_NO_VLAN && same_prefix(local, g->gid, 64))
		return true;
	for (uint32_t i = 0; i < c->num_addresses; i++)
		if (c->address[i].vlan_id == g->vlan_id &&
		    same_prefix(c->address[i].gid, g->gid, c->address[i].prefix))
			return true;
	return false;
}

static void
check_gateways(struct loader *l)
{
	const struct endpoint_config *c = l->c;

	for (uint32_t i = 0; i < c->num_gateways && !c->kernel_adopt; i++)
		if (!reaches(c, &c->gateway[i]))
			complain(l, line_of(l, "addresses", "gateway"),
				 "gateway: expected one within the prefix of an address, number %u "
				 "is in none",
				 i + 1);
}

static void
check_port(struct loader *l)
{
	const struct endpoint_config *c = l->c;

	if (c->device[0] == '\0')
		complain(
			l, line_of(l, "port", "device"),
			"device: expected in [port], found none: set device = "
			"net_af_packet0,iface=eth1 for an interface of the kernel, 0000:3b:00.0 for a "
			"NIC bound to vfio-pci, or "
			"net_memif0,role=server,socket=/run/softhca/wire for a process on this "
			"machine; and an address = 192.0.2.1/24 in [addresses]");
	if (c->mtu != 0 && c->roce_mtu != 0 && c->mtu < c->roce_mtu + ENDPOINT_MIN_HEADERS)
		complain(l, line_of(l, "port", "roce_mtu"),
			 "roce_mtu: expected at most the MTU of the link less %u, found %u with "
			 "mtu = %u",
			 ENDPOINT_MIN_HEADERS, c->roce_mtu, c->mtu);
}

static void
check_rest(struct loader *l)
{
	const struct endpoint_config *c = l->c;

	if (c->kernel_adopt && c->kernel == ENDPOINT_KERNEL_NONE)
		complain(l, line_of(l, "kernel", "adopt"),
			 "adopt: expected an interface whose addresses are taken, found "
			 "interface = none");
	if (c->clients_per_user > c->clients && line_of(l, "limits", "clients_per_user") != 0)
		complain(l, line_of(l, "limits", "clients_per_user"),
			 "clients_per_user: expected at most clients = %u, found %u", c->clients,
			 c->clients_per_user);
	if (c->user_memory_mb < c->quota_memory_mb && line_of(l, "quota", "user_memory_mb") != 0)
		complain(l, line_of(l, "quota", "user_memory_mb"),
			 "user_memory_mb: expected at least memory_mb = %llu, found %llu",
			 (unsigned long long)c->quota_memory_mb,
			 (unsigned long long)c->user_memory_mb);
	if (c->socket[0] != '\0' && c->socket[0] != '/' && strcmp(c->socket, "none") != 0)
		complain(l, line_of(l, "control", "socket"),
			 "socket: expected an absolute path, found \"%s\"", c->socket);
}

static void
finish(struct endpoint_config *c)
{
	char name[ENDPOINT_NAME_MAX];

	if (c->clients_per_user > c->clients)
		c->clients_per_user = c->clients;
	if (c->user_memory_mb < c->quota_memory_mb)
		c->user_memory_mb = c->quota_memory_mb;
	memcpy(name, c->name, sizeof(name));
	if (c->socket[0] == '\0')
		snprintf(c->socket, sizeof(c->socket), "/run/softhca/%s.sock", name);
	if (c->kernel_interface[0] == '\0')
		memcpy(c->kernel_interface, name, sizeof(c->kernel_interface));
}

static void
check_all(struct loader *l)
{
	check_port(l);
	check_addresses(l);
	check_gateways(l);
	check_rest(l);
	l->c->line = (struct endpoint_config_lines){
		.device = line_of(l, "port", "device"),
		.group = line_of(l, "control", "group"),
		.layout = line_of(l, "hca", "layout"),
		.pipelines = line_of(l, "hca", "pipelines"),
		.lcores = line_of(l, "hca", "lcores"),
		.memory = line_of(l, "memory", "size_mb"),
		.hugepages = line_of(l, "memory", "hugepages"),
		.clients = line_of(l, "limits", "clients"),
	};
}

static int
read_file(struct loader *l, FILE *f)
{
	char *text = NULL;
	struct stat st;
	size_t size = 0;
	int err;

	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) { /* other files might be endless */
		complain(l, 0, "expected a file, found %s",
			 S_ISDIR(st.st_mode) ? "a folder" : "a pipe or device");
		return 0;
	}
	l->given = calloc(config_keys_count, sizeof(*l->given));
	if (l->given == NULL)
		return -ENOMEM;
	while (getline(&text, &size, f) >= 0)
		take_line(l, text);
	err = ferror(f) ? -errno : 0;
	if (err == 0 && !l->broken)
		check_all(l);
	free(text);
	free(l->given);
	return err;
}

int
endpoint_config_load(struct endpoint_config *c, const char *path, FILE *errors)
{
	struct loader l = {.c = c, .path = path, .errors = errors};
	FILE *f = fopen(path, "re");
	int err = f == NULL ? -errno : 0;

	endpoint_config_init(c);
	if (f != NULL) {
		err = read_file(&l, f);
		fclose(f);
	}
	if (err != 0) {
		fprintf(errors, "%s: %s\n", path, strerror(-err));
		return err;
	}
	finish(c);
	return l.failed;
}
