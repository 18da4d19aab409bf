/* SPDX-License-Identifier: BSD-3-Clause */

/* Interfaces of the kernel that belong to a device, and their users on this machine. */

#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define PATH_MAX_ 512

void
doctor_link(const char *path, char *name, size_t size)
{
	char to[PATH_MAX_];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	const char *last;

	to[n > 0 ? n : 0] = '\0';
	last = strrchr(to, '/');
	snprintf(name, size, "%.*s", (int)size - 1, last != NULL ? last + 1 : to);
}

void
doctor_first_entry(const char *path, const char *begins, char *name, size_t size)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	name[0] = '\0';
	while (dir != NULL && name[0] == '\0' && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.' && strncmp(e->d_name, begins, strlen(begins)) == 0)
			snprintf(name, size, "%.*s", (int)size - 1, e->d_name);
	if (dir != NULL)
		closedir(dir);
}

/* virtio has a device of its own between those of PCI and of the network. */
void
doctor_interface(const struct doctor *d, const char *address, char *net, size_t size)
{
	char between[64];

	doctor_first_entry(doctor_path(d, DOCTOR_PCI "/net", address), "", net, size);
	if (net[0] != '\0')
		return;
	doctor_first_entry(doctor_path(d, DOCTOR_PCI, address), "virtio", between, sizeof(between));
	if (between[0] != '\0')
		doctor_first_entry(doctor_path(d, DOCTOR_PCI "/%s/net", address, between), "", net,
				   size);
}

/* Line of /proc/net/route: begins with the interface. */
static bool
is_ipv4_route(const char *line, const char *net)
{
	size_t len = strlen(net);

	return strncmp(line, net, len) == 0 && isspace((unsigned char)line[len]);
}

/*
 * Line of /proc/net/ipv6_route: begins with the destination, ends with the interface. Each
 * interface that is up has link-local and multicast routes.
 */
static bool
is_ipv6_route(const char *line, const char *net)
{
	const char *last = strrchr(line, ' ');
	bool local = line[0] == 'f' && line[1] == 'e' && strchr("89ab", line[2]) != NULL;

	if (last == NULL || local || strncmp(line, "ff", 2) == 0)
		return false;
	return strcspn(last + 1, "\n") == strlen(net) && strncmp(last + 1, net, strlen(net)) == 0;
}

static bool
has_route(const struct doctor *d, const char *table, bool (*is_route)(const char *, const char *),
	  const char *net)
{
	FILE *f = fopen(doctor_path(d, "/proc/net/%s", table), "re");
	char line[512];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = is_route(line, net);
	if (f != NULL)
		fclose(f);
	return found;
}

/* Bridge, bond or other interface that consists of this one, or is on top of it; or "". */
static void
find_upper(const struct doctor *d, const char *net, char *name, size_t size)
{
	char entry[80];

	doctor_link(doctor_path(d, "/sys/class/net/%s/master", net), name, size);
	if (name[0] != '\0')
		return;
	doctor_first_entry(doctor_path(d, "/sys/class/net/%s", net), "upper_", entry,
			   sizeof(entry));
	if (entry[0] != '\0')
		snprintf(name, size, "%.*s", (int)size - 1, entry + strlen("upper_"));
}

void
doctor_interface_user(const struct doctor *d, const char *net, char *user, size_t size)
{
	char upper[64];

	user[0] = '\0';
	if (net[0] == '\0')
		return;
	find_upper(d, net, upper, sizeof(upper));
	if (upper[0] != '\0')
		snprintf(user, size, "interface %s goes through it", upper);
	else if (has_route(d, "route", is_ipv4_route, net) ||
		 has_route(d, "ipv6_route", is_ipv6_route, net))
		snprintf(user, size, "routes of this machine go through it");
}
