/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * doctor --device: a NIC that a daemon is to have, judged before the start by its files in /sys.
 * docs/guide/nic.md lists the needs of each driver.
 */

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define CLASS_NETWORK 0x02
#define CLASS_BRIDGE 0x06

/* How DPDK gets at the devices of a driver of the kernel */
static const struct family {
	const char *driver; /* of the kernel */
	long vendor;
	bool shared;	    /* the driver keeps the device, DPDK goes through it */
	const char *module; /* also needed; or NULL */
} families[] = {
	{"mlx5_core", 0x15b3, true, "mlx5_ib"}, {"mlx4_en", 0x15b3, true, "mlx4_ib"},
	{"mana", 0x1414, true, "mana_ib"},	{"ice", 0x8086, false, NULL},
	{"i40e", 0x8086, false, NULL},		{"ixgbe", 0x8086, false, NULL},
	{"bnxt_en", 0x14e4, false, NULL},	{"virtio-pci", 0x1af4, false, NULL},
};

struct nic {
	struct doctor *d;
	char address[16];
	char driver[64];	     /* "" if it has none */
	char net[64];		     /* interface of the kernel; "" if it has none */
	char user[128];		     /* users of the interface on this machine, or "" */
	const struct family *family; /* NULL: one that is not in the table */
};

/* A number with 0x */
static long
read_hex(const char *path)
{
	char text[32];

	return doctor_read(path, text, sizeof(text)) == 0 ? strtol(text, NULL, 16) : -1;
}

static long
attribute(const struct nic *n, const char *name)
{
	return read_hex(doctor_path(n->d, DOCTOR_PCI "/%s", n->address, name));
}

/* By the driver that it has; one of Mellanox without a driver too, which must not go to VFIO. */
static const struct family *
find_family(const char *driver, long vendor)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strcmp(families[i].driver, driver) == 0)
			return &families[i];
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (families[i].shared && families[i].vendor == vendor)
			return &families[i];
	return NULL;
}

static bool
find_device(struct nic *n)
{
	struct doctor *d = n->d;
	long vendor, device, class;

	if (access(doctor_path(d, DOCTOR_PCI, n->address), F_OK) != 0) {
		doctor_fail(d, "device", "dpdk-devbind.py --status-dev net",
			    "there is no PCI device %s", n->address);
		return false;
	}
	vendor = attribute(n, "vendor");
	device = attribute(n, "device");
	class = attribute(n, "class");
	if (class >= 0 && class >> 16 != CLASS_NETWORK) {
		doctor_fail(d, "device", "dpdk-devbind.py --status-dev net",
			    "%s is no network device (class %06lx)", n->address, class);
		return false;
	}
	doctor_link(doctor_path(d, DOCTOR_PCI "/driver", n->address), n->driver, sizeof(n->driver));
	doctor_interface(d, n->address, n->net, sizeof(n->net));
	doctor_interface_user(d, n->net, n->user, sizeof(n->user));
	n->family = find_family(n->driver, vendor);
	doctor_ok(d, "device", "%s is there: %04lx:%04lx%s%s", n->address, vendor, device,
		  access(doctor_path(d, DOCTOR_PCI "/physfn", n->address), F_OK) == 0
			  ? ", a virtual function: its physical one decides on MTU and VLANs"
			  : "",
		  n->family != NULL ? "" : ", of no driver that docs/guide/nic.md names");
	return true;
}

/* ---- drivers ---- */

static bool
is_shared(const struct nic *n)
{
	return n->family != NULL && n->family->shared;
}

static bool
is_vfio(const struct nic *n)
{
	return strcmp(n->driver, "vfio-pci") == 0;
}

static bool
is_uio(const struct nic *n)
{
	return strcmp(n->driver, "uio_pci_generic") == 0 || strcmp(n->driver, "igb_uio") == 0;
}

/* The device itself answers frames of RoCE, which then do not come to DPDK. */
static void
judge_roce(struct nic *n)
{
	char name[64], gid[64] = "", fix[200];

	doctor_first_entry(doctor_path(n->d, DOCTOR_PCI "/infiniband", n->address), "", name,
			   sizeof(name));
	if (name[0] == '\0')
		return;
	doctor_read(doctor_path(n->d, DOCTOR_PCI "/infiniband/%s/ports/1/gids/0", n->address, name),
		    gid, sizeof(gid));
	snprintf(fix, sizeof(fix),
		 "devlink dev param set pci/%s name enable_roce value false cmode driverinit; "
		 "devlink dev reload pci/%s",
		 n->address, n->address);
	if (strspn(gid, "0:") != strlen(gid))
		doctor_warn(n->d, "roce", fix,
			    "%s has RoCE of its own switched on: it takes frames of UDP port 4791",
			    name);
	else
		doctor_ok(n->d, "roce", "%s leaves frames of UDP port 4791 to DPDK", name);
}

/* DPDK sends and receives through the driver of the kernel, and through verbs. */
static void
shared_driver(struct nic *n)
{
	char fix[128], node[64];

	if (strcmp(n->driver, n->family->driver) != 0) {
		snprintf(fix, sizeof(fix), "dpdk-devbind.py -b %s %s", n->family->driver,
			 n->address);
		doctor_fail(n->d, "driver", fix,
			    "%s belongs to %s: its driver of DPDK goes through %s, which must "
			    "have it",
			    n->address, n->driver[0] != '\0' ? n->driver : "no driver",
			    n->family->driver);
		return;
	}
	doctor_ok(n->d, "driver", "%s has it, as DPDK needs it", n->driver);
	snprintf(fix, sizeof(fix), "modprobe ib_uverbs; modprobe %s", n->family->module);
	doctor_first_entry(doctor_path(n->d, "/dev/infiniband"), "uverbs", node, sizeof(node));
	if (node[0] == '\0')
		doctor_fail(n->d, "uverbs", fix,
			    "/dev/infiniband/uverbsN is missing: DPDK reaches "
			    "this device through it");
	else
		doctor_ok(n->d, "uverbs", "/dev/infiniband/%s is there", node);
	judge_roce(n);
}

static void
judge_driver(struct nic *n)
{
	char fix[160];

	if (is_shared(n)) {
		shared_driver(n);
		return;
	}
	if (n->user[0] != '\0')
		snprintf(fix, sizeof(fix), "another device: %s is in use, see interface", n->net);
	else
		snprintf(fix, sizeof(fix), "modprobe vfio-pci; dpdk-devbind.py -b vfio-pci %s",
			 n->address);
	if (is_vfio(n))
		doctor_ok(n->d, "driver", "bound to vfio-pci");
	else if (is_uio(n))
		doctor_warn(n->d, "driver", fix, "bound to %s: no IOMMU protects memory from it",
			    n->driver);
	else
		doctor_fail(n->d, "driver", fix, "%s belongs to %s, not to vfio-pci", n->address,
			    n->driver[0] != '\0' ? n->driver : "no driver");
}

/* ---- interface of the kernel ---- */

/* It goes away when the device is bound: traffic of this machine must not need it. */
static void
interface_to_lose(struct nic *n, const char *state)
{
	char fix[128];

	snprintf(fix, sizeof(fix), "ip link set %s down", n->net);
	if (n->user[0] != '\0')
		doctor_fail(n->d, "interface",
			    "another device, or move what needs this one to another interface",
			    "%s is in use: %s, and it vanishes with vfio-pci", n->net, n->user);
	else if (strcmp(state, "up") == 0)
		doctor_warn(n->d, "interface", fix,
			    "%s is up; no route and no other interface needs it; it vanishes with "
			    "vfio-pci",
			    n->net);
	else
		doctor_ok(n->d, "interface", "%s is %s", n->net, state);
}

static void
interface_to_keep(struct nic *n, const char *state)
{
	char fix[128];
	long mtu = doctor_number(doctor_path(n->d, "/sys/class/net/%s/mtu", n->net));

	snprintf(fix, sizeof(fix), "ip link set %s up", n->net);
	if (strcmp(state, "up") != 0)
		doctor_fail(n->d, "interface", fix, "%s is %s: no frame passes", n->net, state);
	else
		doctor_ok(n->d, "interface", "%s is up, MTU %ld; it stays with the kernel", n->net,
			  mtu);
	snprintf(fix, sizeof(fix), "ip link set %s mtu 4200 # and on the switch", n->net);
	if (mtu > 0 && endpoint_roce_mtu((unsigned int)mtu) < 4096)
		doctor_warn(n->d, "mtu", fix, "MTU %ld gives RoCE packets of %u bytes", mtu,
			    endpoint_roce_mtu((unsigned int)mtu));
}

static void
judge_interface(struct nic *n)
{
	char state[32] = "unknown";

	if (n->net[0] == '\0') {
		if (is_shared(n))
			doctor_fail(n->d, "interface", NULL, "the kernel has no interface of it");
		return;
	}
	doctor_read(doctor_path(n->d, "/sys/class/net/%s/operstate", n->net), state, sizeof(state));
	if (is_shared(n))
		interface_to_keep(n, state);
	else
		interface_to_lose(n, state);
}

/* ---- IOMMU ---- */

/* Another device of the group that VFIO does not have; bridges stay with the kernel. */
static bool
find_stranger(const struct nic *n, const char *group, char *name, size_t size, char *driver,
	      size_t driver_size)
{
	DIR *dir = opendir(doctor_path(n->d, "/sys/kernel/iommu_groups/%s/devices", group));
	bool found = false;
	struct dirent *e;

	while (dir != NULL && !found && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, n->address) == 0 ||
		    read_hex(doctor_path(n->d, DOCTOR_PCI "/class", e->d_name)) >> 16 ==
			    CLASS_BRIDGE)
			continue;
		doctor_link(doctor_path(n->d, DOCTOR_PCI "/driver", e->d_name), driver,
			    driver_size);
		snprintf(name, size, "%.*s", (int)size - 1, e->d_name);
		found = driver[0] != '\0' && strcmp(driver, "vfio-pci") != 0;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

/* Binding it must not take a disk or the uplink from this machine. */
static void
group_fix(const struct nic *n, const char *other, char *fix, size_t size)
{
	char net[64], user[128];
	long class = read_hex(doctor_path(n->d, DOCTOR_PCI "/class", other));

	doctor_interface(n->d, other, net, sizeof(net));
	doctor_interface_user(n->d, net, user, sizeof(user));
	if (class >= 0 && class >> 16 != CLASS_NETWORK)
		snprintf(fix, size, "another slot: %s is no network device", other);
	else if (user[0] != '\0')
		snprintf(fix, size, "another slot: %s is in use, %s", net, user);
	else
		snprintf(fix, size, "dpdk-devbind.py -b vfio-pci %s", other);
}

static void
no_group(struct nic *n)
{
	char text[8] = "N";

	doctor_read(doctor_path(n->d, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"),
		    text, sizeof(text));
	if (text[0] == 'Y')
		doctor_warn(n->d, "iommu", NULL,
			    "there is none: VFIO works in its unsafe mode, the device reaches all "
			    "memory");
	else
		doctor_fail(n->d, "iommu",
			    "boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and switch VT-d or "
			    "AMD-Vi on in the firmware",
			    "%s has no IOMMU group: vfio-pci does not take it", n->address);
}

static void
judge_iommu(struct nic *n)
{
	char group[16], other[64], driver[64], fix[320];

	if (is_shared(n) || is_uio(n))
		return;
	doctor_link(doctor_path(n->d, DOCTOR_PCI "/iommu_group", n->address), group, sizeof(group));
	if (group[0] == '\0') {
		no_group(n);
		return;
	}
	if (find_stranger(n, group, other, sizeof(other), driver, sizeof(driver))) {
		group_fix(n, other, fix, sizeof(fix));
		doctor_fail(n->d, "iommu", fix,
			    "group %s has %s too, which belongs to %s: VFIO opens a group as a "
			    "whole",
			    group, other, driver);
		return;
	}
	doctor_ok(n->d, "iommu", "group %s, and no other driver has a device of it", group);
	if (!is_vfio(n))
		return;
	if (access(doctor_path(n->d, "/dev/vfio/%s", group), R_OK | W_OK) != 0)
		doctor_fail(n->d, "vfio", "run softhcad as root, or give its user this file",
			    "/dev/vfio/%s is missing, or may not be opened", group);
	else
		doctor_ok(n->d, "vfio", "/dev/vfio/%s can be opened", group);
}

/* ---- NUMA ---- */

static bool
list_has(const char *list, unsigned long cpu)
{
	while (isdigit((unsigned char)*list)) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (cpu >= first && cpu <= last)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

static void
judge_cpus(struct nic *n, long node)
{
	const struct endpoint_config *c = &n->d->config;
	char local[256] = "", fix[300];

	if (doctor_read(doctor_path(n->d, DOCTOR_PCI "/local_cpulist", n->address), local,
			sizeof(local)) != 0)
		return;
	snprintf(fix, sizeof(fix), "lcores = of %s in section [hca]", local);
	for (unsigned int i = 0; i < c->num_cpus; i++) {
		if (list_has(local, (unsigned long)c->cpus[i]))
			continue;
		doctor_warn(n->d, "lcores", fix,
			    "CPU %u is not on node %ld: each frame crosses between the nodes",
			    (unsigned int)c->cpus[i], node);
		return;
	}
	doctor_ok(n->d, "lcores", "CPUs of its node: %s%s", local,
		  c->num_cpus == 0 ? "; none is chosen (lcores)" : "");
}

static void
judge_numa(struct nic *n)
{
	static const char pages[] =
		"/sys/devices/system/node/node%ld/hugepages/hugepages-2048kB/%s";
	long node = doctor_number(doctor_path(n->d, DOCTOR_PCI "/numa_node", n->address));
	long need = ((long)n->d->config.memory_mb + 1) / 2, have;
	char fix[160];

	if (node < 0) {
		doctor_ok(n->d, "numa", "the machine has one node");
		return;
	}
	have = doctor_number(doctor_path(n->d, pages, node, "free_hugepages"));
	snprintf(fix, sizeof(fix),
		 "echo %ld > /sys/devices/system/node/node%ld/hugepages/hugepages-2048kB/"
		 "nr_hugepages",
		 need + doctor_number(doctor_path(n->d, pages, node, "nr_hugepages")) - have, node);
	if (have >= 0 && have < need && n->d->config.hugepages != ENDPOINT_HUGEPAGES_NEVER)
		doctor_warn(n->d, "numa", fix,
			    "node %ld has %ld free hugepages of 2 MiB, the daemon needs %ld", node,
			    have, need);
	else
		doctor_ok(n->d, "numa", "node %ld, with %ld free hugepages of 2 MiB", node, have);
	if (n->d->config.numa_node >= 0 && n->d->config.numa_node != node)
		doctor_warn(n->d, "numa", "numa_node = any in section [memory]",
			    "numa_node = %d, and the device is on node %ld", n->d->config.numa_node,
			    node);
	judge_cpus(n, node);
}

/* ---- links ---- */

static void
judge_link(struct nic *n)
{
	char speed[64] = "", best[64] = "";
	long width = doctor_number(doctor_path(n->d, DOCTOR_PCI "/current_link_width", n->address));
	long most = doctor_number(doctor_path(n->d, DOCTOR_PCI "/max_link_width", n->address));
	long mbps = n->net[0] != '\0'
			    ? doctor_number(doctor_path(n->d, "/sys/class/net/%s/speed", n->net))
			    : -1;

	if (mbps > 0)
		doctor_ok(n->d, "link", "%ld Mb/s", mbps);
	else
		doctor_ok(n->d, "link", "its speed is known when the daemon has started");
	doctor_read(doctor_path(n->d, DOCTOR_PCI "/current_link_speed", n->address), speed,
		    sizeof(speed));
	doctor_read(doctor_path(n->d, DOCTOR_PCI "/max_link_speed", n->address), best,
		    sizeof(best));
	if (speed[0] == '\0' || width <= 0)
		return;
	if (strcmp(speed, best) != 0 || width < most)
		doctor_warn(n->d, "pcie", "another slot, or the settings of the firmware",
			    "%s x%ld; the device can %s x%ld", speed, width, best, most);
	else
		doctor_ok(n->d, "pcie", "%s x%ld", speed, width);
}

void
doctor_nic(struct doctor *d, const char *address)
{
	struct nic n = {.d = d};

	snprintf(n.address, sizeof(n.address), "%s%s", strcspn(address, ":") == 2 ? "0000:" : "",
		 address);
	if (!find_device(&n))
		return;
	judge_driver(&n);
	judge_interface(&n);
	judge_iommu(&n);
	judge_numa(&n);
	judge_link(&n);
	if (!is_shared(&n))
		doctor_limits(d);
}
