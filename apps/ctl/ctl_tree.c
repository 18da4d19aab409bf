/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Devices as files, with the names and texts that Linux has below /sys/class: for programs that
 * look there and not only at libibverbs. What changes, like counters, is left out.
 */

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl.h"
#include "ctl_devices.h"

#define PATH_BYTES 512u
#define GID_TYPE "RoCE v2"

/* A folder that grows, and the first failure in it */
struct tree {
	char path[PATH_BYTES];
	bool failed;
};

static void
failed(struct tree *t, const char *path)
{
	if (!t->failed)
		ctl_error("%s: %s", path, strerror(errno));
	t->failed = true;
}

/* The folder `name` below, which is made if it is not there. */
static struct tree
below(struct tree *t, const char *format, ...)
{
	struct tree sub = {.failed = t->failed};
	size_t n = (size_t)snprintf(sub.path, sizeof(sub.path), "%s/", t->path);
	va_list ap;

	va_start(ap, format);
	if (n < sizeof(sub.path))
		vsnprintf(sub.path + n, sizeof(sub.path) - n, format, ap);
	va_end(ap);
	if (mkdir(sub.path, 0755) != 0 && errno != EEXIST) {
		failed(t, sub.path);
		sub.failed = true;
	}
	return sub;
}

static void write_file(struct tree *t, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
write_file(struct tree *t, const char *name, const char *format, ...)
{
	char path[PATH_BYTES + 64];
	va_list ap;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", t->path, name);
	f = fopen(path, "we");
	if (f == NULL) {
		failed(t, path);
		return;
	}
	va_start(ap, format);
	vfprintf(f, format, ap);
	va_end(ap);
	fputc('\n', f);
	if (fclose(f) != 0)
		failed(t, path);
}

static void
write_guid(struct tree *t, const char *name, uint64_t guid)
{
	write_file(t, name, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		   (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		   (unsigned int)guid & 0xffff);
}

/* ---- a port ---- */

static void
write_gid(struct tree *gids, struct tree *types, struct tree *ndevs,
	  const struct softhca_gid_entry *e)
{
	char index[16], text[48], interface[IF_NAMESIZE];
	size_t n = 0;

	snprintf(index, sizeof(index), "%u", e->gid_index);
	for (unsigned int i = 0; i < 16; i += 2)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x%02x", i != 0 ? ":" : "",
				      e->gid.raw[i], e->gid.raw[i + 1]);
	write_file(gids, index, "%s", text);
	write_file(types, index, GID_TYPE);
	if (e->ndev_ifindex != 0 && if_indextoname(e->ndev_ifindex, interface) != NULL)
		write_file(ndevs, index, "%s", interface);
}

static void
write_gids(struct tree *port, struct softhca_context *ctx, uint32_t count)
{
	struct tree gids = below(port, "gids"), attrs = below(port, "gid_attrs");
	struct tree types = below(&attrs, "types"), ndevs = below(&attrs, "ndevs");
	struct softhca_gid_entry e;

	for (uint32_t i = 0; i < count; i++)
		if (softhca_query_gid_ex(ctx, 1, i, &e, 0) == 0)
			write_gid(&gids, &types, &ndevs, &e);
	port->failed |= gids.failed || types.failed || ndevs.failed;
}

static void
write_port(struct tree *device, struct softhca_context *ctx)
{
	struct tree ports = below(device, "ports"), t = below(&ports, "1"), pkeys;
	struct softhca_port_attr a;
	char index[16];
	uint16_t pkey;

	if (softhca_query_port(ctx, 1, &a) != 0)
		return;
	write_file(&t, "state", a.state == SOFTHCA_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
	write_file(&t, "phys_state", a.state == SOFTHCA_PORT_ACTIVE ? "5: LinkUp" : "3: Disabled");
	write_file(&t, "link_layer", "Ethernet");
	write_file(&t, "rate", "%g Gb/sec", (double)a.link_speed / 1000);
	write_file(&t, "lid", "0x0");
	write_file(&t, "lid_mask_count", "0");
	write_file(&t, "sm_lid", "0x0");
	write_file(&t, "sm_sl", "0");
	write_gids(&t, ctx, a.gid_tbl_len);
	pkeys = below(&t, "pkeys");
	for (uint32_t i = 0; i < a.pkey_tbl_len; i++) {
		snprintf(index, sizeof(index), "%u", i);
		if (softhca_query_pkey(ctx, 1, i, &pkey) == 0)
			write_file(&pkeys, index, "0x%04x", pkey);
	}
	device->failed |= ports.failed || t.failed || pkeys.failed;
}

/* ---- a device ---- */

static void
write_device(struct tree *class, const char *name, struct softhca_context *ctx)
{
	struct tree t = below(class, "%s", name);
	struct softhca_device_attr a;

	if (softhca_query_device(ctx, &a) != 0)
		return;
	write_file(&t, "node_type", "1: CA");
	write_file(&t, "node_desc", "softhca");
	write_file(&t, "hca_type", "softhca");
	write_file(&t, "board_id", "softhca");
	write_file(&t, "fw_ver", "%s", a.fw_ver);
	write_file(&t, "hw_rev", "%u", a.hw_ver);
	write_guid(&t, "node_guid", a.node_guid);
	write_guid(&t, "sys_image_guid", a.sys_image_guid);
	write_port(&t, ctx);
	class->failed |= t.failed;
}

int
ctl_tree(const char *folder, const struct ctl_device *devices, unsigned int n)
{
	struct tree root = {0}, class, verbs, node;
	struct softhca_context *ctx;

	snprintf(root.path, sizeof(root.path), "%s", folder);
	class = below(&root, "infiniband");
	verbs = below(&root, "infiniband_verbs");
	write_file(&verbs, "abi_version", "6");
	for (unsigned int i = 0; i < n; i++) {
		if (softhca_open(devices[i].open_name, &ctx) != 0)
			continue;
		write_device(&class, devices[i].name, ctx);
		softhca_close(ctx);
		/* numbered as ibv_get_device_list() numbers them */
		node = below(&verbs, "uverbs%u", i);
		write_file(&node, "ibdev", "%s", devices[i].name);
		verbs.failed |= node.failed;
	}
	return root.failed || class.failed || verbs.failed ? -1 : 0;
}
