/* SPDX-License-Identifier: BSD-3-Clause */

/* The list of checks, their common parts, and the output of findings. */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

enum {
	OPT_ROOT = 256,
	OPT_CONFIG,
	OPT_DEVICE
};

static const char *const level_names[] = {"ok", "warn", "FAIL"};

#define ALL (1u << DOCTOR_SYSTEM | 1u << DOCTOR_OWN | 1u << DOCTOR_EMBEDDED)
#define DAEMONS (1u << DOCTOR_SYSTEM | 1u << DOCTOR_OWN)
#define SYSTEM (1u << DOCTOR_SYSTEM)

/* In this order: later ones use results of earlier ones. */
static const struct {
	void (*run)(struct doctor *d);
	unsigned int roles;
} checks[] = {
	{doctor_daemon, DAEMONS}, {doctor_hugepages, SYSTEM}, {doctor_slow_memory, SYSTEM},
	{doctor_cpu, ALL},	  {doctor_cores, SYSTEM},     {doctor_limits, SYSTEM},
	{doctor_device, SYSTEM},  {doctor_mtu, SYSTEM},	      {doctor_kernel, SYSTEM},
	{doctor_bridge, SYSTEM},  {doctor_rxe, SYSTEM},	      {doctor_sockets, SYSTEM},
	{doctor_gids, SYSTEM},	  {doctor_verbs, ALL},
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

/* ---- the command ---- */

/* Errors are judged by their number and the first one; a key with an error has its default. */
static void
report_config(struct doctor *d, int n, const char *errors)
{
	if (n < 0)
		doctor_warn(d, "configuration", "softhca-ctl doctor --config FILE",
			    "%s cannot be read: %s; the defaults are checked", d->file,
			    strerror(-n));
	else if (n > 0)
		doctor_fail(d, "configuration", "softhcad -c FILE --check", "%d error%s: %.*s", n,
			    n == 1 ? "" : "s", (int)strcspn(errors, "\n"), errors);
	else
		doctor_ok(d, "configuration", "%s: port %s", d->file, d->config.device);
}

static bool
is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value != NULL && value[0] != '\0';
}

/* The option, else the choice of the environment, else whether a daemon is configured. */
static enum doctor_role
role_of(const struct doctor *d, bool named)
{
	const char *device = getenv("SOFTHCA_DEVICE");

	if (named || d->root[0] != '\0')
		return DOCTOR_SYSTEM;
	if (device != NULL && strncmp(device, "embed", strlen("embed")) == 0)
		return DOCTOR_EMBEDDED;
	if (is_set("SOFTHCA_DIRECTORY"))
		return DOCTOR_OWN;
	return d->config.device[0] != '\0' ? DOCTOR_SYSTEM : DOCTOR_OWN;
}

static void
read_config(struct doctor *d)
{
	static const char named[] = "softhca-ctl doctor --config FILE judges the system's";
	bool given = d->file != NULL;
	char *errors = NULL;
	size_t size;
	FILE *to = open_memstream(&errors, &size);
	int n;

	if (!given)
		d->file = "/etc/softhca/softhcad.conf";
	n = to != NULL ? endpoint_config_load(&d->config, doctor_path(d, "%s", d->file), to)
		       : -ENOMEM;
	if (to != NULL)
		fclose(to);
	d->configured = n >= 0;
	d->role = role_of(d, given);
	if (d->role == DOCTOR_SYSTEM)
		report_config(d, n, errors);
	else if (d->role == DOCTOR_EMBEDDED)
		doctor_ok(d, "role", "HCAs inside programs: no daemon is needed; %s", named);
	else if (is_set("SOFTHCA_DIRECTORY"))
		doctor_ok(d, "role", "daemons of %s; %s", getenv("SOFTHCA_DIRECTORY"), named);
	else
		doctor_ok(d, "role",
			  "%s has no port: programs of softhca-run, which starts a daemon; %s",
			  d->file, named);
	free(errors);
}

/* Memory and CPUs of its daemon are those of the file, where it has them; errors are not judged. */
static void
judge_device(struct doctor *d)
{
	char *errors = NULL;
	size_t size;
	FILE *to = open_memstream(&errors, &size);

	if (to != NULL) {
		(void)endpoint_config_load(
			&d->config,
			doctor_path(d, "%s",
				    d->file != NULL ? d->file : "/etc/softhca/softhcad.conf"),
			to);
		fclose(to);
	}
	free(errors);
	snprintf(d->config.device, sizeof(d->config.device), "%s", d->device);
	doctor_nic(d, d->device);
}

static int
doctor_option(void *arg, int code, const char *value)
{
	struct doctor *d = arg;

	if (code == OPT_DEVICE && !endpoint_is_pci(value)) {
		ctl_error("--device: expected a PCI address like 0000:3b:00.0, found \"%s\"",
			  value);
		return -1;
	}
	if (code == OPT_ROOT)
		d->root = value;
	else if (code == OPT_DEVICE)
		d->device = value;
	else
		d->file = value;
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
	printf("\n%u failures, %u warnings\n", d->failed, d->warned);
}

int
ctl_run_doctor(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"root", required_argument, NULL, OPT_ROOT},
		{"config", required_argument, NULL, OPT_CONFIG},
		{"device", required_argument, NULL, OPT_DEVICE},
		{NULL, 0, NULL, 0},
	};
	static struct doctor d = {.root = ""};
	int rc = ctl_options(c, argc, argv, own, doctor_option, &d);

	if (rc != 0)
		return rc;
	d.ctl = c;
	c->timeout_s = CTL_GREETING_S;
	d.found = json_array();
	if (d.device != NULL)
		judge_device(&d);
	else
		read_config(&d);
	for (size_t i = 0; d.device == NULL && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].roles >> d.role & 1)
			checks[i].run(&d);
	conclude(&d);
	json_decref(d.found);
	return d.failed != 0 ? CTL_EXIT_FAILED : 0;
}
