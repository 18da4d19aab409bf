/* SPDX-License-Identifier: BSD-3-Clause */

/* The port and the kernel's part in its addresses. */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define ROCE_PORT 4791u
#define TEXT_MAX 65536u

/* ---- the device ---- */

static void
vfio(struct doctor *d)
{
	char address[32], driver[256], fix[300];
	const char *name;
	ssize_t n;

	snprintf(address, sizeof(address), "%s%.*s",
		 strcspn(d->config.device, ":") == 2 ? "0000:" : "",
		 (int)strcspn(d->config.device, ", "), d->config.device);
	if (access(doctor_path(d, "/sys/bus/pci/devices/%s", address), F_OK) != 0) {
		doctor_fail(d, "port", "dpdk-devbind.py --status-dev net",
			    "there is no PCI device %s", address);
		return;
	}
	n = readlink(doctor_path(d, "/sys/bus/pci/devices/%s/driver", address), driver,
		     sizeof(driver) - 1);
	driver[n > 0 ? n : 0] = '\0';
	name = strrchr(driver, '/') != NULL ? strrchr(driver, '/') + 1 : driver;
	/* mlx5 shares its device with the kernel */
	if (strcmp(name, "vfio-pci") != 0 && strncmp(name, "mlx5", 4) != 0 &&
	    strcmp(name, "uio_pci_generic") != 0 && strcmp(name, "igb_uio") != 0) {
		snprintf(fix, sizeof(fix), "modprobe vfio-pci; dpdk-devbind.py -b vfio-pci %s",
			 address);
		doctor_fail(d, "port", fix, "%s belongs to %s", address,
			    n > 0 ? name : "no driver");
		return;
	}
	doctor_ok(d, "port", "%s is bound to %s", address, name);
	if (strcmp(name, "vfio-pci") != 0)
		return;
	if (access(doctor_path(d, "/dev/vfio/vfio"), R_OK | W_OK) != 0)
		doctor_fail(d, "vfio", "modprobe vfio-pci; chmod 666 /dev/vfio/vfio",
			    "/dev/vfio/vfio is missing, or may not be opened");
	else
		doctor_ok(d, "vfio", "/dev/vfio/vfio is there");
}

static void
netdev(struct doctor *d, const char *name)
{
	char state[32] = "", fix[128];

	if (access(doctor_path(d, "/sys/class/net/%s", name), F_OK) != 0) {
		doctor_fail(d, "port", "ip link", "there is no interface %s", name);
		return;
	}
	doctor_read(doctor_path(d, "/sys/class/net/%s/operstate", name), state, sizeof(state));
	snprintf(fix, sizeof(fix), "ip link set %s up", name);
	if (strcmp(state, "down") == 0 || strcmp(state, "lowerlayerdown") == 0)
		doctor_fail(d, "port", fix, "interface %s is down", name);
	else
		doctor_ok(d, "port", "interface %s is %s", name, state);
	if (geteuid() != 0)
		doctor_warn(d, "rights", "setcap cap_net_raw,cap_net_admin+ep softhcad",
			    "packets of %s need the capability net_raw", name);
}

/* The process that connects to the socket of a memif server is the other end of the wire. */
static void
memif(struct doctor *d)
{
	char path[128] = "", fix[256], *slash;
	struct stat st;

	doctor_device_arg(d->config.device, "socket", path, sizeof(path));
	if (path[0] != '/') {
		doctor_warn(
			d, "memif", NULL,
			"every user of this machine may connect to socket=%s: choose a path, like "
			"socket=/run/softhca/wire",
			path);
		return;
	}
	if ((d->config.wire_mode & 06) != 0) {
		doctor_warn(d, "memif", NULL,
			    "socket_mode = %04o: every user of this machine may connect to %s: "
			    "choose 0600 or 0660",
			    d->config.wire_mode, path);
		return;
	}
	slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	if (stat(doctor_path(d, "%s", path), &st) == 0 &&
	    (st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
		snprintf(fix, sizeof(fix), "chmod o-w %s", path);
		doctor_warn(d, "memif", fix, "every user of this machine may replace sockets in %s",
			    path);
		return;
	}
	doctor_ok(d, "memif", "the socket is for the daemon's user or group only");
}

static bool
is_memif_server(const char *device)
{
	char role[16] = "client";

	doctor_device_arg(device, "role", role, sizeof(role));
	return strncmp(device, "net_memif", strlen("net_memif")) == 0 &&
	       (strcmp(role, "server") == 0 || strcmp(role, "master") == 0);
}

void
doctor_device(struct doctor *d)
{
	char name[64];

	if (d->config.device[0] == '\0')
		return;
	if (endpoint_is_pci(d->config.device))
		vfio(d);
	else if (doctor_device_arg(d->config.device, "iface", name, sizeof(name)) &&
		 strchr(name, '/') == NULL)
		netdev(d, name);
	else
		doctor_ok(d, "port", "%s needs nothing of the machine", d->config.device);
	if (is_memif_server(d->config.device))
		memif(d);
}

/* ---- MTU ---- */

/* wanted: roce_mtu of the configuration; 0: the largest that fits */
static void
judge_mtu(struct doctor *d, const char *name, unsigned int mtu, unsigned int wanted)
{
	unsigned int largest = endpoint_roce_mtu(mtu);
	char fix[128];

	snprintf(fix, sizeof(fix), "ip link set %s mtu 4200 # here and at the other end", name);
	if (wanted != 0 ? wanted + ENDPOINT_MIN_HEADERS > mtu : largest == 0)
		doctor_fail(d, "mtu", fix,
			    "MTU %u of %s holds RoCE packets of %u bytes, %u are configured", mtu,
			    name, largest, wanted);
	else if (largest < 4096 && wanted == 0)
		doctor_warn(d, "mtu", fix,
			    "MTU %u of %s gives RoCE packets of %u bytes; 4096 need %u", mtu, name,
			    largest, 4096 + ENDPOINT_LARGEST_HEADERS);
	else
		doctor_ok(d, "mtu", "MTU %u of %s, RoCE packets of %u bytes", mtu, name,
			  wanted != 0 ? wanted : largest);
}

void
doctor_mtu(struct doctor *d)
{
	char name[64];
	long mtu;

	if (!doctor_device_arg(d->config.device, "iface", name, sizeof(name)) ||
	    strchr(name, '/') != NULL)
		return;
	mtu = doctor_number(doctor_path(d, "/sys/class/net/%s/mtu", name));
	if (mtu > 0)
		judge_mtu(d, name, (unsigned int)mtu, d->config.roce_mtu);
}

/* ---- the kernel's part ---- */

static void
node(struct doctor *d, const char *path, const char *module)
{
	char fix[64];

	snprintf(fix, sizeof(fix), "modprobe %s", module);
	if (access(doctor_path(d, "%s", path), F_OK) != 0)
		doctor_fail(d, "kernel", fix, "%s is missing", path);
	else if (access(doctor_path(d, "%s", path), R_OK | W_OK) != 0)
		doctor_fail(d, "kernel", "run softhcad as root or with its unit",
			    "no permission to open %s", path);
	else
		doctor_ok(d, "kernel", "%s is there", path);
}

void
doctor_kernel(struct doctor *d)
{
	if (d->config.kernel != ENDPOINT_KERNEL_NONE)
		node(d, "/dev/net/tun", "tun");
}

void
doctor_bridge(struct doctor *d)
{
	if (doctor_number(doctor_path(d, "/proc/sys/net/bridge/bridge-nf-call-iptables")) > 0)
		doctor_warn(
			d, "bridge", "sysctl -w net.bridge.bridge-nf-call-iptables=0",
			"bridges of this machine pass packets to iptables, which may drop RoCE");
}

/* A process has bound UDP port 4791 in this network namespace. */
static bool
port_in_use(struct doctor *d, const char *file)
{
	char *text = malloc(TEXT_MAX), *line, *save = NULL;
	unsigned int port;
	bool used = false;

	if (text == NULL || doctor_read(doctor_path(d, "%s", file), text, TEXT_MAX) != 0) {
		free(text);
		return false;
	}
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x", &port) == 1 && port == ROCE_PORT)
			used = true;
	free(text);
	return used;
}

/* The first software RDMA device of the kernel, and the interface it is on. */
static bool
find_rxe(struct doctor *d, char *name, size_t size, char *parent, size_t parent_size)
{
	DIR *dir = opendir(doctor_path(d, "/sys/class/infiniband"));
	bool found = false;
	struct dirent *e;

	while (dir != NULL && !found && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' ||
		    doctor_read(doctor_path(d, "/sys/class/infiniband/%s/parent", e->d_name),
				parent, parent_size) != 0)
			continue;
		snprintf(name, size, "%s", e->d_name);
		found = true;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

void
doctor_rxe(struct doctor *d)
{
	char name[256], parent[64], iface[64] = "", fix[300];
	bool used = port_in_use(d, "/proc/net/udp") || port_in_use(d, "/proc/net/udp6");

	doctor_device_arg(d->config.device, "iface", iface, sizeof(iface));
	if (find_rxe(d, name, sizeof(name), parent, sizeof(parent))) {
		snprintf(fix, sizeof(fix), "rdma link delete %s", name);
		doctor_report(d, strcmp(parent, iface) == 0 ? DOCTOR_FAIL : DOCTOR_OK, "rxe",
			      strcmp(parent, iface) == 0 ? fix : NULL,
			      "the kernel's %s is on interface %s%s", name, parent,
			      strcmp(parent, iface) == 0 ? " too: both would answer" : "");
		return;
	}
	if (used)
		doctor_warn(d, "rxe", "ss -ulnp 'sport = :4791'",
			    "a process has bound UDP port 4791 in this network namespace");
	else
		doctor_ok(d, "rxe",
			  "UDP port 4791 is free, the kernel has no software RDMA device");
}
