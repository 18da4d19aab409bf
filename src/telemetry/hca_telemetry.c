/* SPDX-License-Identifier: BSD-3-Clause */

/* The registry of HCAs, the parsing of requests, and helpers for answers. */

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dpdk_compat.h>

#include "telemetry_impl.h"

#define PARAM_MAX 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hca_telemetry *first;

const struct hca_telemetry *
telemetry_first(void)
{
	return first;
}

static const struct hca_telemetry *
find(const char *name)
{
	for (const struct hca_telemetry *t = first; t != NULL; t = t->next)
		if (*name == '\0' || strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static int
parse(const char *params, struct telemetry_request *r)
{
	char text[PARAM_MAX], *comma, *end = NULL;
	int n = snprintf(text, sizeof(text), "%s", params != NULL ? params : "");

	memset(r, 0, sizeof(*r));
	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;
	comma = strchr(text, ',');
	if (comma != NULL) {
		*comma++ = '\0';
		r->number = strtoull(comma, &end, 0);
		if (!isdigit((unsigned char)*comma) || *end != '\0')
			return -EINVAL;
		r->has_number = true;
	}
	r->t = find(text);
	return r->t != NULL ? 0 : -EINVAL;
}

/* Telemetry needs a separate function for each command. */
#define X(fn, path, text) \
	static int on_##fn(const char *cmd, const char *params, struct rte_tel_data *d) \
	{ \
		struct telemetry_request r; \
		int rc; \
		(void)cmd; \
		pthread_mutex_lock(&lock); \
		rc = parse(params, &r); \
		if (rc == 0) \
			rc = telemetry_##fn(&r, d); \
		pthread_mutex_unlock(&lock); \
		return rc; \
	}
TELEMETRY_COMMANDS(X)
#undef X

#define X(fn, path, text) \
	_Static_assert(sizeof(path) <= 56 && sizeof(text) <= 128, \
		       "telemetry refuses what is longer");
TELEMETRY_COMMANDS(X)
#undef X

static void
register_commands(void)
{
#define X(fn, path, text) rte_telemetry_register_cmd(path, on_##fn, text);
	TELEMETRY_COMMANDS(X)
#undef X
}

void
hca_telemetry_add(struct hca_telemetry *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct hca_telemetry **end = &first;

	pthread_once(&once, register_commands);
	pthread_mutex_lock(&lock);
	while (*end != NULL)
		end = &(*end)->next;
	t->next = NULL;
	*end = t;
	pthread_mutex_unlock(&lock);
}

void
hca_telemetry_remove(struct hca_telemetry *t)
{
	pthread_mutex_lock(&lock);
	for (struct hca_telemetry **p = &first; *p != NULL; p = &(*p)->next) {
		if (*p != t)
			continue;
		*p = t->next;
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- answers ---- */

void
telemetry_put(struct telemetry_dict *t, const char *name, uint64_t value)
{
	if (t->rc == 0)
		t->rc = rte_tel_data_add_dict_uint(t->d, name, value);
}

void
telemetry_put_text(struct telemetry_dict *t, const char *name, const char *text)
{
	char cut[RTE_TEL_MAX_STRING_LEN];

	snprintf(cut, sizeof(cut), "%s", text);
	if (t->rc == 0)
		t->rc = rte_tel_data_add_dict_string(t->d, name, cut);
}

void
telemetry_put_values(struct telemetry_dict *t, unsigned int n, const char *(*name)(unsigned int i),
		     const uint64_t *values)
{
	for (unsigned int i = 0; i < n; i++)
		telemetry_put(t, name(i), values[i]);
}

void
telemetry_begin(struct telemetry_dict *t)
{
	t->d = rte_tel_data_alloc();
	t->rc = t->d != NULL ? rte_tel_data_start_dict(t->d) : -ENOMEM;
}

int
telemetry_end(struct telemetry_dict *t, struct rte_tel_data *list, uint32_t index)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", index);
	telemetry_put(t, "index", index);
	if (t->rc == 0)
		t->rc = rte_tel_data_add_dict_container(list, name, t->d, 0);
	if (t->rc != 0)
		rte_tel_data_free(t->d);
	return t->rc;
}
