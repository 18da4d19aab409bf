/* SPDX-License-Identifier: BSD-3-Clause */

/* Tables for people, JSON for programs. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"

#define COLUMNS_MAX 32u
#define CELL 64u

static void
scaled(char *cell, double v, double base, const char *const *units, unsigned int n)
{
	unsigned int u = 0;

	while (v >= base && u + 1 < n) {
		v /= base;
		u++;
	}
	if (u == 0 && v == (double)(uint64_t)v)
		snprintf(cell, CELL, "%" PRIu64, (uint64_t)v);
	else
		snprintf(cell, CELL,
			 v < 10	   ? "%.2f%s"
			 : v < 100 ? "%.1f%s"
				   : "%.0f%s",
			 v, units[u]);
}

static void
format_cell(char *cell, const struct ctl_column *c, const json_t *value)
{
	static const char *const bytes[] = {"", " Ki", " Mi", " Gi", " Ti"};
	static const char *const rate[] = {"", " k", " M", " G", " T"};

	snprintf(cell, CELL, "-");
	if (json_is_string(value))
		snprintf(cell, CELL, "%s", json_string_value(value));
	if (!json_is_number(value))
		return;
	switch (c->format) {
	case CTL_TEXT:
	case CTL_NUMBER:
		if (json_is_real(value))
			snprintf(cell, CELL, "%.1f", json_real_value(value));
		else
			snprintf(cell, CELL, "%" PRId64, (int64_t)json_integer_value(value));
		break;
	case CTL_HEX:
		snprintf(cell, CELL, "0x%" PRIx64, (uint64_t)json_integer_value(value));
		break;
	case CTL_BYTES:
		scaled(cell, json_number_value(value), 1024, bytes, 5);
		break;
	case CTL_RATE:
		scaled(cell, json_number_value(value), 1000, rate, 5);
		break;
	case CTL_PERCENT:
		snprintf(cell, CELL, "%.1f%%", 100 * json_number_value(value));
		break;
	}
}

static void
line(FILE *out, const struct ctl_column *columns, unsigned int n, const int *width,
     char cells[][CELL])
{
	for (unsigned int i = 0; i < n; i++) {
		bool last = i + 1 == n;

		if (columns[i].format != CTL_TEXT)
			fprintf(out, "%*s", width[i], cells[i]);
		else if (last)
			fprintf(out, "%s", cells[i]);
		else
			fprintf(out, "%-*s", width[i], cells[i]);
		fputs(last ? "\n" : "  ", out);
	}
}

void
ctl_table(FILE *out, const struct ctl_column *columns, unsigned int n, const json_t *rows)
{
	char cells[COLUMNS_MAX][CELL];
	int width[COLUMNS_MAX];
	json_t *row;
	size_t r;

	for (unsigned int i = 0; i < n; i++)
		width[i] = (int)strlen(columns[i].title);
	json_array_foreach(rows, r, row)
		for (unsigned int i = 0; i < n; i++) {
			format_cell(cells[0], &columns[i], json_object_get(row, columns[i].key));
			if ((int)strlen(cells[0]) > width[i])
				width[i] = (int)strlen(cells[0]);
		}
	for (unsigned int i = 0; i < n; i++)
		snprintf(cells[i], CELL, "%s", columns[i].title);
	line(out, columns, n, width, cells);
	json_array_foreach(rows, r, row) {
		for (unsigned int i = 0; i < n; i++)
			format_cell(cells[i], &columns[i], json_object_get(row, columns[i].key));
		line(out, columns, n, width, cells);
	}
}

void
ctl_members(FILE *out, const json_t *object)
{
	static const struct ctl_column plain = {.format = CTL_NUMBER};
	char cell[CELL];
	const char *key;
	json_t *value;
	int width = 0;

	json_object_foreach((json_t *)object, key, value)
		if ((int)strlen(key) > width)
			width = (int)strlen(key);
	json_object_foreach((json_t *)object, key, value) {
		if (json_is_string(value)) {
			fprintf(out, "%-*s  %s\n", width, key, json_string_value(value));
			continue;
		}
		format_cell(cell, &plain, value);
		fprintf(out, "%-*s  %s\n", width, key, cell);
	}
}

void
ctl_json(FILE *out, const json_t *value)
{
	json_dumpf(value, out, JSON_INDENT(2));
	fputc('\n', out);
}

void
ctl_json_line(FILE *out, const json_t *value)
{
	json_dumpf(value, out, JSON_COMPACT);
	fputc('\n', out);
	fflush(out);
}

static void
utc(char *text, size_t size)
{
	struct timespec ts;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, size - n, ".%03ldZ", ts.tv_nsec / 1000000);
}

json_t *
ctl_frame(const char *process, const char *hca, const char *name, json_t *value)
{
	char now[40];

	utc(now, sizeof(now));
	return json_pack("{s:s?, s:s?, s:s, s:o}", "process", process, "hca", hca, "time", now,
			 name, value);
}

void
ctl_show(const struct ctl *c, const char *process, const char *hca, const char *name,
	 json_t *answer)
{
	if (c->json) {
		answer = ctl_frame(process, hca, name, answer);
		ctl_json(stdout, answer);
	} else {
		ctl_members(stdout, answer);
	}
	json_decref(answer);
}
