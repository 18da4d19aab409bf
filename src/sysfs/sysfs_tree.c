/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs_tree.h"

#define PATH_BYTES 1024u
#define TEXT_BYTES 512u
#define COUNTERS_MAX 512u
#define GID_TYPE "RoCE v2"
#define DEVICES "sys/devices/virtual/softhca"
#define CLASS_NETWORK "0x020000" /* PCI: network controller, Ethernet */
/* The capability mask of a port: IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS */
#define CAP_MASK "0x04010000"
#define UMAD_ABI "5"
#define UVERBS_ABI "6"
#define LIFESPAN_MS "500"

/* A folder, and the first failure in it */
struct folder {
	char path[PATH_BYTES];
	int err;
};

static void
folder_failed(struct folder *f, int err)
{
	if (f->err == 0)
		f->err = -err;
}

/* An error of `sub` is an error of `f`. */
static void
folder_join(struct folder *f, const struct folder *sub)
{
	if (sub->err != 0)
		folder_failed(f, -sub->err);
}

static void folder_make(struct folder *f, const char *top, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The folder `format` below `top`, which is made with all between them. */
static void
folder_make(struct folder *f, const char *top, const char *format, ...)
{
	size_t n = (size_t)snprintf(f->path, sizeof(f->path), "%s/", top);
	va_list ap;
	int left;

	f->err = 0;
	if (n >= sizeof(f->path)) {
		folder_failed(f, ENAMETOOLONG);
		return;
	}
	va_start(ap, format);
	left = vsnprintf(f->path + n, sizeof(f->path) - n, format, ap);
	va_end(ap);
	if (n + (size_t)left >= sizeof(f->path)) {
		folder_failed(f, ENAMETOOLONG);
		return;
	}
	for (char *p = strchr(f->path + n, '/'); f->err == 0; p = strchr(p + 1, '/')) {
		if (p != NULL)
			*p = '\0';
		if (mkdir(f->path, 0755) != 0 && errno != EEXIST)
			folder_failed(f, errno);
		if (p == NULL)
			break;
		*p = '/';
	}
}

/* Readers must not find a mixture: a file that has the text already is not written. */
static int
replace_text(const char *path, const char *text, size_t length)
{
	char old[TEXT_BYTES];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644), err = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	n = pread(fd, old, sizeof(old), 0);
	if (n != (ssize_t)length || memcmp(old, text, length) != 0) {
		if (pwrite(fd, text, length, 0) != (ssize_t)length)
			err = errno != 0 ? errno : EIO;
		if (n > (ssize_t)length && ftruncate(fd, (off_t)length) != 0)
			err = errno;
	}
	close(fd);
	return err;
}

static void write_file(struct folder *f, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
write_file(struct folder *f, const char *name, const char *format, ...)
{
	char path[PATH_BYTES + 64], text[TEXT_BYTES];
	va_list ap;
	int n, err;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text) - 1, format, ap);
	va_end(ap);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	err = replace_text(path, text, (size_t)n);
	if (err != 0)
		folder_failed(f, err);
}

static void
write_link(struct folder *f, const char *name, const char *target)
{
	char path[PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	if (symlink(target, path) != 0 && errno != EEXIST)
		folder_failed(f, errno);
}

static void
write_guid(struct folder *f, const char *name, uint64_t guid)
{
	write_file(f, name, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		   (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		   (unsigned int)guid & 0xffff);
}

/* ---- a port ---- */

static void
write_gid(struct folder *gids, struct folder *types, struct folder *ndevs,
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

/* An index without a GID reads as zeros, and has neither type nor interface, as in the kernel. */
static void
write_gids(struct folder *port, struct softhca_context *ctx, uint32_t count)
{
	struct folder gids, types, ndevs;
	struct softhca_gid_entry e;
	char index[16];

	folder_make(&gids, port->path, "gids");
	folder_make(&types, port->path, "gid_attrs/types");
	folder_make(&ndevs, port->path, "gid_attrs/ndevs");
	for (uint32_t i = 0; i < count; i++) {
		if (softhca_query_gid_ex(ctx, 1, i, &e, 0) == 0) {
			write_gid(&gids, &types, &ndevs, &e);
			continue;
		}
		snprintf(index, sizeof(index), "%u", i);
		write_file(&gids, index, "0000:0000:0000:0000:0000:0000:0000:0000");
	}
	folder_join(port, &gids);
	folder_join(port, &types);
	folder_join(port, &ndevs);
}

static void
write_pkeys(struct folder *port, struct softhca_context *ctx, uint32_t count)
{
	struct folder pkeys;
	char index[16];
	uint16_t pkey;

	folder_make(&pkeys, port->path, "pkeys");
	for (uint32_t i = 0; i < count; i++) {
		snprintf(index, sizeof(index), "%u", i);
		if (softhca_query_pkey(ctx, 1, i, &pkey) == 0)
			write_file(&pkeys, index, "0x%04x", pkey);
	}
	folder_join(port, &pkeys);
}

/* The kernel counts the data of a port in words of 4 bytes. */
static uint64_t
in_kernel_units(const struct softhca_counter *c)
{
	size_t n = strlen(c->name);

	return n > 5 && strcmp(c->name + n - 5, "_data") == 0 ? c->value / 4 : c->value;
}

static void
write_port_counters(struct folder *port, struct softhca_context *ctx)
{
	/* errors of an InfiniBand link, which Ethernet does not have */
	static const char *const never[] = {
		"VL15_dropped",
		"excessive_buffer_overrun_errors",
		"link_error_recovery",
		"local_link_integrity_errors",
		"port_rcv_constraint_errors",
		"port_rcv_remote_physical_errors",
		"port_rcv_switch_relay_errors",
		"port_xmit_constraint_errors",
		"port_xmit_wait",
		"symbol_error",
	};
	struct softhca_counter counters[32];
	const int max = (int)(sizeof(counters) / sizeof(counters[0]));
	struct folder f;
	int n;

	folder_make(&f, port->path, "counters");
	n = softhca_query_port_counters(ctx, 1, counters, (unsigned int)max);
	if (n < 0)
		folder_failed(&f, -n);
	for (int i = 0; i < n && i < max; i++)
		write_file(&f, counters[i].name, "%llu",
			   (unsigned long long)in_kernel_units(&counters[i]));
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		write_file(&f, never[i], "0");
	folder_join(port, &f);
}

static void
write_device_counters(struct folder *port, struct softhca_context *ctx)
{
	struct softhca_counter *counters = calloc(COUNTERS_MAX, sizeof(*counters));
	struct folder f;
	int n;

	folder_make(&f, port->path, "hw_counters");
	n = counters != NULL ? softhca_query_counters(ctx, counters, COUNTERS_MAX) : -ENOMEM;
	if (n < 0)
		folder_failed(&f, -n);
	for (int i = 0; i < n && i < (int)COUNTERS_MAX; i++)
		write_file(&f, counters[i].name, "%llu", (unsigned long long)counters[i].value);
	write_file(&f, "lifespan", LIFESPAN_MS);
	free(counters);
	folder_join(port, &f);
}

static void
write_port(struct folder *t, struct softhca_context *ctx)
{
	struct softhca_port_attr a;
	int err = softhca_query_port(ctx, 1, &a);

	if (err != 0) {
		folder_failed(t, -err);
		return;
	}
	write_file(t, "state", a.state == SOFTHCA_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
	write_file(t, "phys_state", a.state == SOFTHCA_PORT_ACTIVE ? "5: LinkUp" : "3: Disabled");
	write_file(t, "rate", "%g Gb/sec", (double)a.link_speed / 1000);
	write_gids(t, ctx, a.gid_tbl_len);
	write_pkeys(t, ctx, a.pkey_tbl_len);
	write_port_counters(t, ctx);
	write_device_counters(t, ctx);
}

/* Files without a value for RoCE read as in the kernel. */
static void
write_port_constants(struct folder *t)
{
	write_file(t, "link_layer", "Ethernet");
	write_file(t, "cap_mask", CAP_MASK);
	write_file(t, "lid", "0x0");
	write_file(t, "lid_mask_count", "0");
	write_file(t, "sm_lid", "0x0");
	write_file(t, "sm_sl", "0");
}

/* ---- the device on its bus ---- */

/* All CPUs, as a list and as words of 32 bits, the first CPUs last */
static void
write_cpus(struct folder *f)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	char text[TEXT_BYTES];
	size_t n = 0;

	if (cpus < 1)
		cpus = 1;
	write_file(f, "local_cpulist", cpus > 1 ? "0-%ld" : "%ld", cpus - 1);
	for (long word = (cpus - 1) / 32; word >= 0 && n + 10 < sizeof(text); word--) {
		long bits = cpus - word * 32 < 32 ? cpus - word * 32 : 32;

		n += (size_t)snprintf(text + n, sizeof(text) - n, n != 0 ? ",%08lx" : "%lx",
				      bits == 32 ? 0xffffffffl : (1l << bits) - 1);
	}
	write_file(f, "local_cpus", "%s", text);
}

static void
write_net(struct folder *bus, struct softhca_context *ctx)
{
	char target[sizeof("/sys/class/net/") + IF_NAMESIZE], interface[IF_NAMESIZE];
	struct softhca_port_attr a;
	struct softhca_gid_entry e;
	struct folder net;

	if (softhca_query_port(ctx, 1, &a) != 0)
		return;
	for (uint32_t i = 0; i < a.gid_tbl_len; i++) {
		if (softhca_query_gid_ex(ctx, 1, i, &e, 0) != 0 || e.ndev_ifindex == 0 ||
		    if_indextoname(e.ndev_ifindex, interface) == NULL)
			continue;
		folder_make(&net, bus->path, "net");
		snprintf(target, sizeof(target), "/sys/class/net/%s", interface);
		write_link(&net, interface, target);
		folder_join(bus, &net);
	}
}

/* IDs of 16 bits, as PCI has them: our vendor ID is an OUI. */
static void
write_bus(struct folder *f, const struct softhca_device_attr *a)
{
	write_file(f, "vendor", "0x%04x", a->vendor_id & 0xffff);
	write_file(f, "device", "0x%04x", a->vendor_part_id & 0xffff);
	write_file(f, "class", CLASS_NETWORK);
	write_file(f, "numa_node", "-1");
	write_cpus(f);
}

/* ---- the device of its class ---- */

static void
write_ibdev(struct folder *t, const char *name, const struct softhca_device_attr *a)
{
	char target[PATH_BYTES];

	write_file(t, "node_type", "1: CA");
	write_file(t, "node_desc", "softhca");
	write_file(t, "hca_type", "softhca");
	write_file(t, "board_id", "softhca");
	write_file(t, "fw_ver", "%s", a->fw_ver);
	write_file(t, "hw_rev", "%x", a->hw_ver);
	write_guid(t, "node_guid", a->node_guid);
	write_guid(t, "sys_image_guid", a->sys_image_guid);
	snprintf(target, sizeof(target), "../../../%s", name);
	write_link(t, "device", target);
	write_link(t, "subsystem", "../../../../../../class/infiniband");
}

static void
write_uverbs(struct folder *t, const struct sysfs_device *d)
{
	char target[PATH_BYTES];

	write_file(t, "ibdev", "%s", d->name);
	write_file(t, "abi_version", "1");
	snprintf(target, sizeof(target), "../../../%s", d->name);
	write_link(t, "device", target);
	write_link(t, "subsystem", "../../../../../../class/infiniband_verbs");
}

static void
write_class(const char *root, const char *class, const char *abi, const char *device,
	    const char *name, struct folder *whole)
{
	char target[PATH_BYTES];
	struct folder f;

	folder_make(&f, root, "sys/class/%s", class);
	if (abi != NULL)
		write_file(&f, "abi_version", "%s", abi);
	if (name != NULL) {
		snprintf(target, sizeof(target), "../../devices/virtual/softhca/%s/%s/%s", device,
			 class, name);
		write_link(&f, name, target);
	}
	folder_join(whole, &f);
}

static void
write_node(const char *root, const char *uverbs, struct folder *whole)
{
	struct folder f;

	folder_make(&f, root, "dev/infiniband");
	write_link(&f, uverbs, "/dev/null");
	folder_join(whole, &f);
}

int
sysfs_write(const char *root, const struct sysfs_device *d)
{
	struct folder bus, ib, verbs, port;
	struct softhca_device_attr a;
	char uverbs[32];
	int err = softhca_query_device(d->ctx, &a);

	if (err != 0)
		return err;
	snprintf(uverbs, sizeof(uverbs), "uverbs%u", d->number);
	folder_make(&bus, root, DEVICES "/%s", d->name);
	write_bus(&bus, &a);
	write_net(&bus, d->ctx);
	folder_make(&ib, bus.path, "infiniband/%s", d->name);
	write_ibdev(&ib, d->name, &a);
	folder_make(&port, ib.path, "ports/1");
	write_port_constants(&port);
	write_port(&port, d->ctx);
	folder_make(&verbs, bus.path, "infiniband_verbs/%s", uverbs);
	write_uverbs(&verbs, d);
	write_class(root, "infiniband", NULL, d->name, d->name, &bus);
	write_class(root, "infiniband_verbs", UVERBS_ABI, d->name, uverbs, &bus);
	write_class(root, "infiniband_mad", UMAD_ABI, d->name, NULL, &bus);
	write_node(root, uverbs, &bus);
	folder_join(&bus, &ib);
	folder_join(&bus, &port);
	folder_join(&bus, &verbs);
	return bus.err;
}

int
sysfs_refresh(const char *root, const struct sysfs_device *d)
{
	struct folder port;

	folder_make(&port, root, DEVICES "/%s/infiniband/%s/ports/1", d->name, d->name);
	write_port(&port, d->ctx);
	return port.err;
}
