/* SPDX-License-Identifier: BSD-3-Clause */

/* softhca-ctl devices: devices that programs find, and whether they can open them. */

#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "ctl_devices.h"

#define EMBEDDED 2u

enum {
	OPT_TREE = 256,
	OPT_FOLLOW
};

/* Opens it to see whether a program can. */
static void
device_judge(struct ctl_device *d)
{
	struct softhca_context *ctx;
	struct softhca_device_attr attr;

	if (softhca_open(d->open_name, &ctx) != 0) {
		snprintf(d->reason, sizeof(d->reason), "%s", softhca_last_error(NULL));
		return;
	}
	if (d->guid == 0 && softhca_query_device(ctx, &attr) == 0)
		d->guid = attr.node_guid;
	softhca_close(ctx);
}

/* "/run/softhca/hca0.sock" is hca0 */
static void
name_path(struct ctl_device *d, const char *path)
{
	const char *name = strrchr(path, '/') + 1, *dot = strrchr(name, '.');

	snprintf(d->name, sizeof(d->name), "%.*s",
		 (int)(dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name)), name);
}

/* Devices of programs that are started with SOFTHCA_DEVICE=embed: here devices of this process */
static unsigned int
embedded_devices(struct ctl_device *d)
{
	const char *port = getenv("SOFTHCA_EMBED_PORT");
	unsigned int n = port != NULL && port[0] != '\0' ? 1 : EMBEDDED;

	for (unsigned int i = 0; i < n; i++) {
		memset(&d[i], 0, sizeof(d[i]));
		snprintf(d[i].name, sizeof(d[i].name), "embed%u", i);
		snprintf(d[i].open_name, sizeof(d[i].open_name), i == 0 ? "embed" : "embed:%u", i);
		device_judge(&d[i]);
	}
	return n;
}

static unsigned int
chosen_device(struct ctl_device *d, const char *chosen)
{
	if (strcmp(chosen, "embed") == 0)
		return embedded_devices(d);
	memset(d, 0, sizeof(*d));
	snprintf(d->open_name, sizeof(d->open_name), "%s", chosen);
	if (strchr(chosen, '/') != NULL)
		name_path(d, chosen);
	else
		snprintf(d->name, sizeof(d->name), "%s", chosen);
	device_judge(d);
	return 1;
}

unsigned int
ctl_devices(struct ctl_device *out, unsigned int max)
{
	const char *chosen = getenv("SOFTHCA_DEVICE");
	struct softhca_device **list;
	unsigned int count = 0;
	int n = 0;

	if (chosen != NULL && chosen[0] != '\0')
		return chosen_device(out, chosen);
	list = softhca_get_device_list(&n);
	if (list == NULL) {
		ctl_error("%s", softhca_last_error(NULL));
		return 0;
	}
	for (int i = 0; i < n && count < max; i++) {
		struct ctl_device *d = &out[count++];

		memset(d, 0, sizeof(*d));
		snprintf(d->name, sizeof(d->name), "%s", softhca_get_device_name(list[i]));
		memcpy(d->open_name, d->name, sizeof(d->name));
		d->guid = softhca_get_device_guid(list[i]);
		device_judge(d);
	}
	softhca_free_device_list(list);
	return count;
}

/* ---- the command ---- */

static json_t *
row_of(const struct ctl_device *d)
{
	char guid[24];

	snprintf(guid, sizeof(guid), "%016llx", (unsigned long long)d->guid);
	return json_pack("{s:s, s:s, s:b, s:s}", "name", d->name, "guid", guid, "usable",
			 d->reason[0] == '\0', "use", d->reason[0] == '\0' ? "yes" : d->reason);
}

static void
print(const struct ctl *c, json_t *rows)
{
	static const struct ctl_column columns[] = {
		{"name", "NAME", CTL_TEXT},
		{"guid", "GUID", CTL_TEXT},
	};
	json_t *row;
	size_t i;

	if (c->json) {
		json_t *all = ctl_frame(NULL, NULL, "devices", json_incref(rows));

		ctl_json(stdout, all);
		json_decref(all);
		return;
	}
	ctl_table(stdout, columns, sizeof(columns) / sizeof(columns[0]), rows);
	json_array_foreach(rows, i, row)
		if (!json_is_true(json_object_get(row, "usable")))
			printf("%s cannot be used: %s\n",
			       json_string_value(json_object_get(row, "name")),
			       json_string_value(json_object_get(row, "use")));
}

/* Where files of the devices are written, and the lock that says until when */
struct tree {
	const char *folder;
	const char *lock; /* NULL: once */
};

static int
devices_option(void *arg, int code, const char *value)
{
	struct tree *tree = arg;

	if (code == OPT_TREE)
		tree->folder = value;
	else
		tree->lock = value;
	return 0;
}

static int
tree_write(const struct tree *tree, struct ctl_device *devices, unsigned int n)
{
	if (tree->folder == NULL)
		return 0;
	if (ctl_tree(tree->folder, devices, n) != 0)
		return CTL_EXIT_FAILED;
	if (tree->lock != NULL && ctl_tree_follow(tree->folder, devices, n, tree->lock) != 0)
		return CTL_EXIT_FAILED;
	return 0;
}

int
ctl_run_devices(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"tree", required_argument, NULL, OPT_TREE},
		{"follow", required_argument, NULL, OPT_FOLLOW},
		{NULL, 0, NULL, 0},
	};
	static struct ctl_device devices[CTL_DEVICES_MAX];
	struct tree tree = {0};
	unsigned int n, usable = 0;
	json_t *rows;
	int rc = ctl_options(c, argc, argv, own, devices_option, &tree);

	if (rc != 0)
		return rc;
	n = ctl_devices(devices, CTL_DEVICES_MAX);
	rows = json_array();
	for (unsigned int i = 0; i < n; i++) {
		usable += devices[i].reason[0] == '\0';
		json_array_append_new(rows, row_of(&devices[i]));
	}
	print(c, rows);
	json_decref(rows);
	if (usable == 0) {
		ctl_error("programs find no device");
		return CTL_EXIT_FAILED;
	}
	return tree_write(&tree, devices, n);
}
