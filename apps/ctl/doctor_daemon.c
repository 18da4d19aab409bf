/* SPDX-License-Identifier: BSD-3-Clause */

/* Daemons: are there any, can they be reached, do their addresses make sense. */

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "doctor.h"

/* Calls fn for every HCA of every process that answers; returns how many. */
static unsigned int
each_hca(struct doctor *d, void (*fn)(struct doctor *d, struct ctl_process *p, const char *hca))
{
	struct ctl_process p[CTL_PROCESSES_MAX];
	unsigned int n, count = 0;

	if (d->root[0] != '\0')
		return 0; /* not of this machine */
	n = ctl_find(d->ctl, p, CTL_PROCESSES_MAX, NULL);
	for (unsigned int i = 0; i < n; i++) {
		json_t *list = ctl_ask(&p[i], "/softhca/hca/list", NULL), *each;
		size_t k;

		json_array_foreach(list, k, each) {
			fn(d, &p[i], json_string_value(each));
			count++;
		}
		json_decref(list);
	}
	ctl_close(p, n);
	return count;
}

static void
judge_status(struct doctor *d, struct ctl_process *p, const char *hca)
{
	json_t *s = ctl_ask_about(p, "/softhca/status", hca, NULL);
	const char *health = json_string_value(json_object_get(s, "health"));
	const char *state = json_string_value(json_object_get(s, "port_state"));

	d->running = true;
	if (health == NULL || state == NULL)
		doctor_report(d, DOCTOR_WARN, "daemon", "systemctl restart softhcad",
			      "%s does not say how it is: another version?", hca);
	else if (strcmp(health, "well") != 0)
		doctor_report(d, DOCTOR_FAIL, "daemon", "systemctl restart softhcad", "%s is %s",
			      hca, health);
	else if (strcmp(state, "ACTIVE") != 0)
		doctor_report(d, DOCTOR_FAIL, "daemon", NULL,
			      "%s is well, but its link is down: look at the other end", hca);
	else
		doctor_report(d, DOCTOR_OK, "daemon", NULL, "%s is well and its link is up", hca);
	json_decref(s);
}

void
doctor_daemon(struct doctor *d)
{
	if (each_hca(d, judge_status) == 0 && d->root[0] == '\0')
		doctor_report(d, DOCTOR_WARN, "daemon", "systemctl start softhcad",
			      "no HCA answers; is one running, and as another user?");
}

/* ---- control sockets ---- */

static void
judge_socket(struct doctor *d, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char fix[256];
	int fd, rc;

	if (strlen(path) >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	rc = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? 0 : errno;
	close(fd);
	if (rc == 0) {
		doctor_report(d, DOCTOR_OK, "socket", NULL, "%s can be used", path);
	} else if (rc == ECONNREFUSED) {
		snprintf(fix, sizeof(fix), "rm %s", path);
		doctor_report(d, DOCTOR_WARN, "socket", fix, "nobody listens on %s any more", path);
	} else if (rc == EACCES) {
		doctor_report(d, DOCTOR_FAIL, "socket",
			      "usermod -aG GROUP USER # the group of the socket, then log in again",
			      "%s is not yours to use", path);
	} else {
		doctor_report(d, DOCTOR_FAIL, "socket", NULL, "%s: %s", path, strerror(rc));
	}
}

static void
control_sockets(struct doctor *d)
{
	char other[128];
	glob_t found;
	struct stat st;

	if (glob(doctor_path(d, "/run/softhca/*.sock"), 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			judge_socket(d, found.gl_pathv[i]);
		globfree(&found);
	}
	if (!doctor_key(d, "control", "socket", other, sizeof(other)) || other[0] != '/' ||
	    strncmp(other, "/run/softhca/", 13) == 0)
		return;
	if (stat(doctor_path(d, "%s", other), &st) == 0)
		judge_socket(d, doctor_path(d, "%s", other));
}

void
doctor_sockets(struct doctor *d)
{
	struct ctl_process p[CTL_PROCESSES_MAX];
	unsigned int stale = 0;

	control_sockets(d);
	if (d->root[0] != '\0')
		return;
	ctl_close(p, ctl_find(d->ctl, p, CTL_PROCESSES_MAX, &stale));
	if (stale != 0)
		doctor_report(d, DOCTOR_WARN, "telemetry", "ls /var/run/dpdk/*/dpdk_telemetry.v2*",
			      "%u telemetry sockets of processes that ended are left", stale);
}

/* ---- addresses ---- */

static bool
is_link_local(const char *ip)
{
	return strncmp(ip, "fe8", 3) == 0 || strncmp(ip, "169.254.", 8) == 0;
}

/* Does it answer the question at all? */
static bool
knows(struct ctl_process *p, const char *hca)
{
	json_t *answer = ctl_ask_about(p, "/softhca/gids", hca, NULL);
	bool some = answer != NULL;

	json_decref(answer);
	return some;
}

static void
judge_gids(struct doctor *d, struct ctl_process *p, const char *hca)
{
	json_t *list = ctl_ask_list(p, "/softhca/gids", hca), *g;
	const char *good = NULL;
	size_t i, first = 0;

	if (json_array_size(list) == 0 && !knows(p, hca)) {
		json_decref(list);
		return; /* another version: was said */
	}
	json_array_foreach(list, i, g) {
		const char *ip = json_string_value(json_object_get(g, "ip"));

		if (ip == NULL || is_link_local(ip) || good != NULL)
			continue;
		good = ip;
		first = (size_t)json_integer_value(json_object_get(g, "index"));
	}
	if (json_array_size(list) == 0)
		doctor_report(d, DOCTOR_FAIL, "gids", "address = IP/PREFIX in section [addresses]",
			      "%s has no address", hca);
	else if (good == NULL)
		doctor_report(d, DOCTOR_WARN, "gids", "address = IP/PREFIX in section [addresses]",
			      "%s has link-local addresses only: no router passes them", hca);
	else if (first != 0)
		doctor_report(d, DOCTOR_OK, "gids", NULL,
			      "%s: use GID index %zu (%s), index 0 is link-local", hca, first,
			      good);
	else
		doctor_report(d, DOCTOR_OK, "gids", NULL, "%s: GID index 0 is %s", hca, good);
	json_decref(list);
}

static void
configured_addresses(struct doctor *d)
{
	char text[128];

	if (!d->configured || d->running)
		return;
	if (doctor_key(d, "kernel", "adopt", text, sizeof(text)) && strcmp(text, "yes") == 0)
		doctor_report(d, DOCTOR_OK, "gids", NULL, "those of the kernel interface");
	else if (!doctor_key(d, "addresses", "address", text, sizeof(text)))
		doctor_report(d, DOCTOR_FAIL, "gids", "address = IP/PREFIX in section [addresses]",
			      "no address is configured: only link-local ones remain");
	else
		doctor_report(d, DOCTOR_OK, "gids", NULL, "%s", text);
}

void
doctor_gids(struct doctor *d)
{
	each_hca(d, judge_gids);
	configured_addresses(d);
}
