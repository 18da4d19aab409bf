/* SPDX-License-Identifier: BSD-3-Clause */

/* The list of checks, what they share, and how findings are printed. */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

enum {
	OPT_ROOT = 256,
	OPT_CONFIG
};

static const char *const level_names[] = {"ok", "warn", "FAIL"};

/* In this order: later ones use what earlier ones have learned. */
static void (*const checks[])(struct doctor *d) = {
	doctor_daemon, doctor_hugepages, doctor_slow_memory, doctor_cpu,    doctor_cores,
	doctor_limits, doctor_device,	 doctor_mtu,	     doctor_kernel, doctor_bridge,
	doctor_rxe,    doctor_sockets,	 doctor_gids,
};

void
doctor_report(struct doctor *d, enum doctor_level level, const char *check, const char *fix,
	      const char *format, ...)
{
	char text[512];
	json_t *j;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	d->failed += level == DOCTOR_FAIL;
	d->warned += level == DOCTOR_WARN;
	j = json_pack("{s:s, s:s, s:s}", "check", check, "level", level_names[level], "text", text);
	if (fix != NULL)
		json_object_set_new(j, "fix", json_string(fix));
	json_array_append_new(d->found, j);
	if (d->ctl->json)
		return;
	printf("%-5s %-14s %s\n", level_names[level], check, text);
	if (fix != NULL)
		printf("%-5s %-14s   %s\n", "", "", fix);
}

/* ---- files ---- */

const char *
doctor_path(const struct doctor *d, const char *format, ...)
{
	static char path[512];
	size_t n = (size_t)snprintf(path, sizeof(path), "%s", d->root);
	va_list ap;

	if (n >= sizeof(path))
		n = sizeof(path) - 1;
	va_start(ap, format);
	vsnprintf(path + n, sizeof(path) - n, format, ap);
	va_end(ap);
	return path;
}

int
doctor_read(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (f == NULL)
		return -1;
	n = fread(text, 1, size - 1, f);
	fclose(f);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return 0;
}

long
doctor_number(const char *path)
{
	char text[64];

	return doctor_read(path, text, sizeof(text)) == 0 ? strtol(text, NULL, 10) : -1;
}

static char *
trimmed(char *s)
{
	char *end;

	s += strspn(s, " \t");
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

/* The daemon's own reader judges the file; here only what it says matters. */
bool
doctor_key(const struct doctor *d, const char *section, const char *key, char *value, size_t size)
{
	FILE *f = fopen(doctor_path(d, "%s", d->config), "re");
	char line[512], *s, *equals;
	bool inside = false, found = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		s = trimmed(line);
		if (*s == '[') {
			inside = strncmp(s + 1, section, strlen(section)) == 0 &&
				 s[1 + strlen(section)] == ']';
			continue;
		}
		equals = strchr(s, '=');
		if (!inside || *s == ';' || *s == '#' || equals == NULL)
			continue;
		*equals = '\0';
		if (strcmp(trimmed(s), key) != 0)
			continue;
		snprintf(value, size, "%s", trimmed(equals + 1));
		found = true;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

bool
doctor_device_arg(const char *device, const char *name, char *value, size_t size)
{
	size_t len = strlen(name);

	for (const char *s = strchr(device, ','); s != NULL; s = strchr(s, ',')) {
		s++;
		if (strncmp(s, name, len) != 0 || s[len] != '=')
			continue;
		snprintf(value, size, "%.*s", (int)strcspn(s + len + 1, ","), s + len + 1);
		return true;
	}
	return false;
}

/* 0000:3b:00.0, perhaps with arguments */
bool
doctor_is_pci(const char *device)
{
	unsigned int domain, bus, slot, function;

	return sscanf(device, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4 ||
	       sscanf(device, "%2x:%2x.%1x", &bus, &slot, &function) == 3;
}

/* ---- the command ---- */

static void
read_config(struct doctor *d)
{
	char text[64];
	FILE *f = fopen(doctor_path(d, "%s", d->config), "re");
	int why = errno;

	d->configured = f != NULL;
	if (f != NULL)
		fclose(f);
	d->memory_mb = 512;
	snprintf(d->idle, sizeof(d->idle), "auto");
	snprintf(d->layout, sizeof(d->layout), "rtc");
	snprintf(d->kernel, sizeof(d->kernel), "none");
	snprintf(d->hugepages, sizeof(d->hugepages), "auto");
	doctor_key(d, "port", "device", d->device, sizeof(d->device));
	doctor_key(d, "hca", "idle", d->idle, sizeof(d->idle));
	doctor_key(d, "hca", "layout", d->layout, sizeof(d->layout));
	doctor_key(d, "kernel", "interface", d->kernel, sizeof(d->kernel));
	doctor_key(d, "memory", "hugepages", d->hugepages, sizeof(d->hugepages));
	if (doctor_key(d, "memory", "size_mb", text, sizeof(text)))
		d->memory_mb = strtod(text, NULL);
	doctor_key(d, "memory", "slow_memory", d->slow_memory, sizeof(d->slow_memory));
	if (!d->configured)
		doctor_warn(d, "configuration", "softhca-ctl doctor --config FILE",
			    "%s cannot be read: %s; what depends on it is not judged", d->config,
			    strerror(why));
	else if (d->device[0] == '\0')
		doctor_fail(d, "configuration",
			    "set device in section [port], then: softhcad -c FILE --check",
			    "%s names no port", d->config);
	else
		doctor_ok(d, "configuration", "%s: port %s", d->config, d->device);
}

static int
take(void *arg, int code, const char *value)
{
	struct doctor *d = arg;

	if (code == OPT_ROOT)
		d->root = value;
	else
		d->config = value;
	return 0;
}

static void
conclude(const struct doctor *d)
{
	if (d->ctl->json) {
		json_t *all = ctl_frame(NULL, NULL, "checks", json_incref(d->found));

		json_object_set_new(all, "failed", json_integer(d->failed));
		json_object_set_new(all, "warned", json_integer(d->warned));
		ctl_json(stdout, all);
		json_decref(all);
		return;
	}
	printf("\n%u to mend, %u to think about\n", d->failed, d->warned);
}

int
ctl_run_doctor(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"root", required_argument, NULL, OPT_ROOT},
		{"config", required_argument, NULL, OPT_CONFIG},
		{NULL, 0, NULL, 0},
	};
	static struct doctor d = {.root = "", .config = "/etc/softhca/softhcad.conf"};
	int rc = ctl_options(c, argc, argv, own, take, &d);

	if (rc != 0)
		return rc;
	d.ctl = c;
	c->patience = CTL_GREETING_S;
	d.found = json_array();
	read_config(&d);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&d);
	conclude(&d);
	json_decref(d.found);
	return d.failed != 0 ? CTL_EXIT_FAILED : 0;
}
