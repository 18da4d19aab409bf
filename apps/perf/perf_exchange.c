/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_exchange.h"

static const struct field {
	const char *name;
	size_t offset;
} fields[] = {
#define X(f) {#f, offsetof(struct perf_exchange, f)},
	PERF_EXCHANGE_FIELDS(X)
#undef X
};

#define NUM_FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t *
field_of(struct perf_exchange *x, size_t i)
{
	return (uint64_t *)(void *)((char *)x + fields[i].offset);
}

static int
has_gid(const struct perf_exchange *x)
{
	static const uint8_t none[16];

	return memcmp(x->gid, none, sizeof(none)) != 0;
}

int
perf_exchange_format(char *line, size_t room, const char *word, const struct perf_exchange *x)
{
	struct perf_exchange copy = *x;
	size_t n = (size_t)snprintf(line, room, "%s", word);

	for (size_t i = 0; i < NUM_FIELDS && n < room; i++) {
		uint64_t v = *field_of(&copy, i);

		if (v != 0)
			n += (size_t)snprintf(line + n, room - n, " %s=%llu", fields[i].name,
					      (unsigned long long)v);
	}
	if (n < room && has_gid(x)) {
		n += (size_t)snprintf(line + n, room - n, " gid=");
		for (unsigned int i = 0; i < sizeof(x->gid) && n < room; i++)
			n += (size_t)snprintf(line + n, room - n, "%02x", x->gid[i]);
	}
	if (n < room && x->text[0] != '\0')
		n += (size_t)snprintf(line + n, room - n, " text=%s", x->text);
	if (n < room)
		n += (size_t)snprintf(line + n, room - n, "\n");
	return n < room ? (int)n : -ENOSPC;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int
parse_gid(const char *value, size_t length, uint8_t gid[16])
{
	if (length != 32)
		return -EPROTO;
	for (unsigned int i = 0; i < 16; i++) {
		int high = hex_digit(value[2 * i]), low = hex_digit(value[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EPROTO;
		gid[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static int
parse_number(const char *value, size_t length, uint64_t *out)
{
	char digits[24], *end;

	if (length == 0 || length >= sizeof(digits) || !isdigit((unsigned char)value[0]))
		return -EPROTO;
	memcpy(digits, value, length);
	digits[length] = '\0';
	errno = 0;
	*out = strtoull(digits, &end, 10);
	return errno == 0 && *end == '\0' ? 0 : -EPROTO;
}

static int
exchange_take(struct perf_exchange *x, const char *key, size_t key_length, const char *value,
	      size_t length)
{
	if (key_length == 3 && memcmp(key, "gid", 3) == 0)
		return parse_gid(value, length, x->gid);
	for (size_t i = 0; i < NUM_FIELDS; i++)
		if (strlen(fields[i].name) == key_length &&
		    memcmp(fields[i].name, key, key_length) == 0)
			return parse_number(value, length, field_of(x, i));
	return 0;
}

static void
take_text(struct perf_exchange *x, const char *value)
{
	size_t n = strcspn(value, "\n");

	if (n >= sizeof(x->text))
		n = sizeof(x->text) - 1;
	memcpy(x->text, value, n);
	x->text[n] = '\0';
}

int
perf_exchange_parse(const char *line, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	size_t n = strcspn(line, " \n");

	memset(x, 0, sizeof(*x));
	if (n == 0 || n >= PERF_EXCHANGE_WORD)
		return -EPROTO;
	memcpy(word, line, n);
	word[n] = '\0';
	for (line += n; *line == ' '; line += n) {
		size_t key;

		line++;
		n = strcspn(line, " \n");
		key = strcspn(line, "= \n");
		if (key == 0 || line[key] != '=')
			return -EPROTO;
		if (key == 4 && memcmp(line, "text", 4) == 0) {
			take_text(x, line + key + 1);
			return 0;
		}
		if (exchange_take(x, line, key, line + key + 1, n - key - 1) != 0)
			return -EPROTO;
	}
	return 0;
}
