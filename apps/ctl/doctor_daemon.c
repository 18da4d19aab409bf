/* SPDX-License-Identifier: BSD-3-Clause */

/* Daemons: are there any, can they be reached, do their addresses make sense. */

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi_gid_text.h"
#include "doctor.h"

/* Each finding has a section in docs/network.md. */
static void
judge_findings(struct doctor *d, struct ctl_process *p, const char *hca, const char *health)
{
	json_t *list = ctl_ask_list(p, "/softhca/findings", hca), *f;
	char fix[256];
	size_t i;
	bool mtu;

	snprintf(fix, sizeof(fix), "softhca-ctl counters --nonzero --prefix %.63s", p->prefix);
	if (json_array_size(list) == 0)
		doctor_warn(d, "daemon", fix, "%s: %s", hca, health);
	json_array_foreach(list, i, f) {
		const char *name = json_string_value(json_object_get(f, "finding"));
		const char *text = json_string_value(json_object_get(f, "text"));

		if (name == NULL || text == NULL)
			continue;
		mtu = strcmp(name, "path-mtu") == 0;
		snprintf(fix, sizeof(fix),
			 "%.63s in docs/network.md; softhca-ctl %s --prefix %.63s %s", name,
			 mtu ? "ping PEER" : "qps", p->prefix,
			 mtu ? "says which sizes pass" : "has its QPs");
		doctor_warn(d, "network", fix, "%s: %s", hca, text);
	}
	json_decref(list);
}

#define HANDED_MIN 10000 /* packets */

/*
 * Frames that the port gives to another pipeline than that of their QP cost both of them. The hash
 * of a device gives (pipelines - 1) / pipelines of them to others.
 */
static void
judge_steering(struct doctor *d, struct ctl_process *p, const char *hca, json_int_t pipelines)
{
	json_t *c = pipelines > 1 ? ctl_ask_about(p, "/softhca/hca/counters", hca, NULL) : NULL;
	double packets = json_number_value(json_object_get(c, "rcvd_pkts"));
	double handed = json_number_value(json_object_get(c, "rx_handed_over"));

	json_decref(c);
	if (pipelines <= 1 || packets < HANDED_MIN)
		return;
	if (handed * 4 >= packets)
		doctor_warn(d, "steering",
			    "a NIC that matches BTH, or memif; else as few pipelines as suffice",
			    "%s: the device gives %.0f %% of the frames to another pipeline than "
			    "that of their QP, which hands them over",
			    hca, handed / packets * 100);
	else
		doctor_ok(d, "steering", "%s: %.0f %% of the frames are handed over", hca,
			  handed / packets * 100);
}

/* The running one, which softhca-ctl set may have changed. */
static void
show_congestion(struct doctor *d, const struct ctl_process *p, const char *hca,
		const json_t *status)
{
	const char *runs = json_string_value(json_object_get(status, "congestion"));
	bool ours = d->configured && strcmp(hca, d->config.name) == 0;

	if (ours)
		d->pid = p->pid;
	if (runs == NULL)
		return;
	if (ours && strcmp(runs, d->config.congestion) != 0)
		doctor_ok(d, "congestion", "%s: congestion control: %s, after a restart %s", hca,
			  runs, d->config.congestion);
	else
		doctor_ok(d, "congestion", "%s: congestion control: %s", hca, runs);
}

static void
judge_status(struct doctor *d, struct ctl_process *p, const char *hca)
{
	json_t *s = ctl_ask_about(p, "/softhca/status", hca, NULL);
	const char *health = json_string_value(json_object_get(s, "health"));
	const char *state = json_string_value(json_object_get(s, "port_state"));
	const char *cpu = json_string_value(json_object_get(s, "cpu"));

	d->running = true;
	d->workers += (unsigned int)json_integer_value(json_object_get(s, "workers"));
	d->clients += (unsigned int)json_integer_value(json_object_get(s, "clients"));
	if (health == NULL || state == NULL)
		doctor_warn(d, "daemon", "systemctl restart softhcad",
			    "%s does not report its health: is it another version?", hca);
	else if (strcmp(health, "dead") == 0)
		doctor_fail(d, "daemon", "systemctl restart softhcad", "%s is dead", hca);
	else if (strcmp(state, "ACTIVE") != 0)
		doctor_fail(d, "daemon", NULL,
			    "%s is well, but its link is down: check the other end", hca);
	else if (strcmp(health, "well") != 0)
		judge_findings(d, p, hca, health);
	else
		doctor_ok(d, "daemon", "%s is well and its link is up", hca);
	show_congestion(d, p, hca, s);
	judge_steering(d, p, hca, json_integer_value(json_object_get(s, "pipelines")));
	if (cpu != NULL && strcmp(cpu, "enough") != 0)
		doctor_warn(d, "cores", "lcores in section [hca], or programs that wait for events",
			    "%s: %s", hca, cpu);
	json_decref(s);
}

/* ---- addresses of an HCA ---- */

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
		doctor_fail(d, "gids", "address = IP/PREFIX in section [addresses]",
			    "%s has no address", hca);
	else if (good == NULL)
		doctor_warn(d, "gids", "address = IP/PREFIX in section [addresses]",
			    "%s has link-local addresses only: no router passes them", hca);
	else if (first != 0)
		doctor_ok(d, "gids", "%s: use GID index %zu (%s), index 0 is link-local", hca,
			  first, good);
	else
		doctor_ok(d, "gids", "%s: GID index 0 is %s", hca, good);
	json_decref(list);
}

/* ---- connection management ---- */

#define RECENT_MS 600000 /* earlier refusals are not related to a present trouble */

static const struct {
	const char *name, *text, *fix;
} refusals[] = {
	{"port_taken", "another program has the address and port", "softhca-ctl cm has its client"},
	{"foreign_address", "is no address of this HCA",
	 "softhca-ctl gids has them; more: address in section [addresses]"},
	{"ports", "a program got no port", "softhca-ctl cm has the ids with ports"},
	{"limit", "is what a program was refused", "limits in section [cm]; softhca-ctl clients"},
	{"unreachable", "could not be reached",
	 "address and netmask of both ends, gateway; ping it"},
};

/* Latest refusals of programs, with the last reason. */
static void
judge_refusals(struct doctor *d, struct ctl_process *p, const char *hca)
{
	json_t *list = ctl_ask_list(p, "/softhca/cm/refusals", hca), *r;
	size_t i;

	json_array_foreach(list, i, r) {
		const char *name = json_string_value(json_object_get(r, "refusal"));
		const char *last = json_string_value(json_object_get(r, "last"));
		long long age = json_integer_value(json_object_get(r, "age_ms"));
		long long n = json_integer_value(json_object_get(r, "count"));

		for (size_t k = 0; k < sizeof(refusals) / sizeof(refusals[0]); k++)
			if (name != NULL && last != NULL && age < RECENT_MS &&
			    strcmp(refusals[k].name, name) == 0)
				doctor_warn(d, "connections", refusals[k].fix,
					    "%s: %s: %s (%lld so far; %lld s ago)", hca, last,
					    refusals[k].text, n, age / 1000);
	}
	json_decref(list);
}

/* ---- all of them ---- */

/* Judges every HCA of every process that answers; returns how many. */
static unsigned int
each_hca(struct doctor *d)
{
	struct ctl_process p[CTL_PROCESSES_MAX];
	unsigned int n, count = 0;

	if (d->root[0] != '\0')
		return 0; /* not of this machine */
	n = ctl_find(d->ctl, p, CTL_PROCESSES_MAX, &d->others);
	for (unsigned int i = 0; i < n; i++) {
		json_t *list = ctl_ask(&p[i], "/softhca/hca/list", NULL), *each;
		size_t k;

		json_array_foreach(list, k, each) {
			judge_status(d, &p[i], json_string_value(each));
			judge_gids(d, &p[i], json_string_value(each));
			judge_refusals(d, &p[i], json_string_value(each));
			count++;
		}
		json_decref(list);
	}
	ctl_close(p, n);
	return count;
}

/* Stopped, without a CPU, or its threads do not run any more. */
static void
judge_hanging(struct doctor *d)
{
	char fix[128];

	for (unsigned int i = 0; i < d->others.hung; i++) {
		const struct ctl_process *p = &d->others.hanging[i];

		snprintf(fix, sizeof(fix),
			 p->stopped ? "kill -CONT %d" : "restart the daemon # process %d", p->pid);
		doctor_fail(d, "daemon", p->pid != 0 ? fix : NULL, "%s", ctl_hangs(p));
	}
}

void
doctor_daemon(struct doctor *d)
{
	unsigned int n = each_hca(d);

	judge_hanging(d);
	if (n == 0 && d->role == DOCTOR_OWN)
		doctor_ok(d, "daemon", "none runs: softhca-run starts one for its programs");
	else if (n == 0 && d->others.hung == 0 && d->root[0] == '\0')
		doctor_warn(d, "daemon", "systemctl start softhcad",
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
		doctor_ok(d, "socket", "%s can be used", path);
	} else if (rc == ECONNREFUSED) {
		snprintf(fix, sizeof(fix), "rm %s", path);
		doctor_warn(d, "socket", fix, "no process listens on %s", path);
	} else if (rc == EACCES) {
		doctor_fail(d, "socket",
			    "usermod -aG GROUP USER # the group of the socket, then log in again",
			    "no permission to connect to %s", path);
	} else {
		doctor_fail(d, "socket", NULL, "%s: %s", path, strerror(rc));
	}
}

/* Of one file, which may have several names (/run is /var/run as well) */
static bool
is_same(const char *path, const struct stat *other)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == other->st_dev && st.st_ino == other->st_ino;
}

static void
control_sockets(struct doctor *d)
{
	const char *configured = d->config.socket;
	struct stat other = {0};
	bool more = d->configured && configured[0] == '/' &&
		    stat(doctor_path(d, "%s", configured), &other) == 0;
	glob_t found;

	if (glob(doctor_path(d, "/run/softhca/*.sock"), 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			judge_socket(d, found.gl_pathv[i]);
			more = more && !is_same(found.gl_pathv[i], &other);
		}
		globfree(&found);
	}
	if (more)
		judge_socket(d, doctor_path(d, "%s", configured));
}

void
doctor_sockets(struct doctor *d)
{
	unsigned int stale = d->others.stale;

	control_sockets(d);
	if (stale != 0)
		doctor_warn(d, "telemetry", "ls /var/run/dpdk/*/dpdk_telemetry.v2*",
			    "%u telemetry sockets of processes that ended are left", stale);
}

/* ---- configured addresses ---- */

static void
configured_addresses(struct doctor *d)
{
	char text[INET6_ADDRSTRLEN];

	if (!d->configured || d->running)
		return;
	if (d->config.kernel_adopt)
		doctor_ok(d, "gids", "those of the kernel interface");
	else if (d->config.num_addresses == 0)
		doctor_fail(d, "gids", "address = IP/PREFIX in section [addresses]",
			    "no address is configured: only link-local ones remain");
	else
		doctor_ok(d, "gids", "%s",
			  hca_gid_text(d->config.address[0].gid, text, sizeof(text)));
}

void
doctor_gids(struct doctor *d)
{
	configured_addresses(d);
}
