/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_cfgfile.h>

#include "config_scan.h"

#define LINE_MAX_BYTES (CFG_NAME_LEN + CFG_VALUE_LEN) /* of rte_cfgfile, with its newline */

struct scanner {
	struct config_scan *out;
	const char *path;
	FILE *errors;
	uint32_t line;
};

static void
complain(struct scanner *s, const char *what, const char *expected, const char *found)
{
	fprintf(s->errors, "%s:%u: %s: expected %s, found \"%.60s\"\n", s->path, s->line, what,
		expected, found);
	s->out->errors++;
}

static int
append(uint32_t **array, uint32_t *n, uint32_t line)
{
	uint32_t *grown = realloc(*array, (*n + 1) * sizeof(**array));

	if (grown == NULL)
		return -ENOMEM;
	*array = grown;
	grown[(*n)++] = line;
	return 0;
}

/* Cut a comment and blanks, as rte_cfgfile does. */
static char *
trim(char *text)
{
	char *end = strchr(text, ';');

	if (end == NULL || (end != text && end[-1] == '\\'))
		end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

static int
scan_heading(struct scanner *s, char *text)
{
	if (strchr(text, ']') == NULL) {
		complain(s, "section", "[name]", text);
		s->out->unreadable = true;
		return 0;
	}
	if (strchr(text, ']')[1] != '\0')
		complain(s, "section", "nothing behind [name]", text);
	return append(&s->out->section, &s->out->sections, s->line);
}

static int
scan_entry(struct scanner *s, char *text)
{
	char *equals = strchr(text, '=');

	if (s->out->sections == 0) {
		complain(s, "file", "a [section] before the first key", text);
		s->out->unreadable = true;
		return 0;
	}
	if (equals == text)
		complain(s, "line", "key = value", text);
	else if ((size_t)(equals - text) >= CFG_NAME_LEN || strlen(equals + 1) >= CFG_VALUE_LEN)
		complain(s, "line", "a key of up to 63 and a value of up to 255 characters", text);
	return append(&s->out->entry, &s->out->entries, s->line);
}

static int
scan_line(struct scanner *s, char *raw)
{
	size_t len = strlen(raw);
	char *text;

	s->line++;
	if (len > LINE_MAX_BYTES) {
		complain(s, "line", "at most 320 characters", raw);
		s->out->unreadable = true;
		return 0;
	}
	text = trim(raw);
	if (*text == '\0')
		return 0;
	if (*text == '[')
		return scan_heading(s, text);
	if (strchr(text, '=') != NULL)
		return scan_entry(s, text);
	complain(s, "line", "[section], key = value or ; comment", text);
	return 0;
}

int
config_scan(struct config_scan *out, const char *path, FILE *errors)
{
	struct scanner s = {.out = out, .path = path, .errors = errors};
	char *raw = NULL;
	size_t size = 0;
	struct stat st = {0};
	int err = 0;
	FILE *f;

	memset(out, 0, sizeof(*out));
	f = fopen(path, "re");
	if (f == NULL)
		return -errno;
	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) { /* it is read twice */
		fprintf(errors, "%s: expected a file, found %s\n", path,
			S_ISDIR(st.st_mode) ? "a folder" : "a pipe or device");
		fclose(f);
		out->errors++;
		out->unreadable = true;
		return 0;
	}
	while (err == 0 && getline(&raw, &size, f) >= 0)
		err = scan_line(&s, raw);
	if (err == 0 && ferror(f))
		err = -EIO;
	free(raw);
	fclose(f);
	if (err != 0)
		config_scan_free(out);
	return err;
}

void
config_scan_free(struct config_scan *s)
{
	free(s->section);
	free(s->entry);
	s->section = s->entry = NULL;
}
