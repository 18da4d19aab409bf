/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "core/mbuf.h"
#include "endpoint_device.h"
#include "endpoint_log.h"
#include "port/port_memif.h"

/* bytes of an IP packet with 4096 bytes of payload and all possible headers */
#define MEMORY_MTU 4200u
#define ETHERNET (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN)
#define RING_HEADER 128u /* bytes that the kernel puts before a frame in a packet ring */
#define PACKET_BLOCK 65536u
/* 64: for the spreading over memory channels */
#define XDP_DATA_ROOM (4096u - 64u - 128u - HCA_MBUF_PRIV - 64u)
#define XDP_HEADROOM 256u
#define XDP_FILL_RING 4096u

struct driver {
	const char *prefix; /* of the device name; a prefix of another one comes after it */
	uint32_t traits;
	int (*complete)(const struct endpoint_config *c, struct endpoint_device *d);
};

bool
endpoint_device_option(const char *args, const char *option, char *value, uint32_t size)
{
	size_t len = strlen(option);

	while (*args != '\0') {
		size_t end = strcspn(args, ",");

		if (end > len && args[len] == '=' && strncmp(args, option, len) == 0) {
			snprintf(value, size, "%.*s", (int)(end - len - 1), args + len + 1);
			return true;
		}
		args += end + (args[end] == ',');
	}
	return false;
}

static bool
has(const struct endpoint_device *d, const char *option)
{
	char value[256];

	return endpoint_device_option(d->args, option, value, sizeof(value));
}

/* Append an option, unless the configuration has it. */
static int add(struct endpoint_device *d, const char *option, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int
add(struct endpoint_device *d, const char *option, const char *format, ...)
{
	size_t at = strlen(d->args), room = sizeof(d->args) - at;
	char value[128];
	va_list ap;

	if (has(d, option))
		return 0;
	va_start(ap, format);
	vsnprintf(value, sizeof(value), format, ap);
	va_end(ap);
	if ((size_t)snprintf(d->args + at, room, "%s%s=%s", at ? "," : "", option, value) >= room)
		return endpoint_fail(
			-EINVAL,
			"[port] device %s: options of more than %zu characters; shorten paths "
			"or leave options out",
			d->name, sizeof(d->args) - 1);
	return 0;
}

static uint32_t
frame_bytes(const struct endpoint_device *d)
{
	return d->mtu + ETHERNET;
}

static int
must_have(const struct endpoint_device *d, const char *option, const char *meaning)
{
	if (has(d, option))
		return 0;
	return endpoint_fail(-EINVAL, "device %s needs %s=%s", d->name, option, meaning);
}

static int
add_mac(const struct endpoint_config *c, struct endpoint_device *d)
{
	const uint8_t *m = c->mac;

	if (!c->has_mac)
		return 0;
	return add(d, "mac", "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

/*
 * A queue for each pipeline; the option of the device that says so. Frames of others would be read
 * by no pipeline. Fewer give fewer pipelines (endpoint.c).
 */
static int
add_queues(const struct endpoint_config *c, struct endpoint_device *d, const char *option)
{
	char value[16];
	unsigned long n = 1;

	if (endpoint_device_option(d->args, option, value, sizeof(value)))
		n = strtoul(value, NULL, 10);
	if (n > c->pipelines || (n & (n - 1)) != 0)
		return endpoint_fail(-EINVAL,
				     "device %s: %s=%s, and [hca] pipelines = %u: expected as many "
				     "pipelines as queues (1, 2, 4, 8 or 16), or no %s",
				     d->name, option, value, c->pipelines, option);
	return c->pipelines > 1 ? add(d, option, "%u", c->pipelines) : 0;
}

static uint32_t
power_of_two(uint32_t n)
{
	uint32_t p = 2048;

	while (p < n)
		p *= 2;
	return p;
}

/* The kernel writes frames into a ring; the driver copies each into one buffer. */
static int
complete_af_packet(const struct endpoint_config *c, struct endpoint_device *d)
{
	uint32_t frame = power_of_two(frame_bytes(d) + RING_HEADER);
	char value[16];
	int err = must_have(d, "iface", "INTERFACE");

	if (err == 0)
		err = add(d, "framesz", "%u", frame);
	if (err == 0)
		err = add_queues(c, d, "qpairs");
	if (endpoint_device_option(d->args, "framesz", value, sizeof(value)))
		frame = (uint32_t)strtoul(value, NULL, 10);
	if (frame < frame_bytes(d) + RING_HEADER)
		return endpoint_fail(-EINVAL, "device %s: framesz=%u holds no frame of MTU %u",
				     d->name, frame, d->mtu);
	if (err == 0)
		err = add(d, "blocksz", "%u", RTE_MAX(PACKET_BLOCK, frame));
	if (err == 0)
		err = add(d, "framecnt", "%u", 1024u);
	d->data = frame + RTE_PKTMBUF_HEADROOM;
	return err;
}

/*
 * The kernel accepts chunks of at most a page. A chunk is a whole object of the pool: its header,
 * the mbuf, the device's private area and the buffer, of which XDP programs get 256 bytes.
 */
static int
complete_af_xdp(const struct endpoint_config *c, struct endpoint_device *d)
{
	uint32_t max = XDP_DATA_ROOM - RTE_PKTMBUF_HEADROOM - XDP_HEADROOM - ETHERNET;
	int err = must_have(d, "iface", "INTERFACE");

	(void)c;
	if (err == 0 && d->mtu > max)
		return endpoint_fail(
			-EINVAL,
			"device %s: frames of AF_XDP fit into a page, so the MTU may be "
			"%u at most; run 'ip link set %s mtu %u', or use net_af_packet0",
			d->name, max, d->interface, max);
	d->data_max = XDP_DATA_ROOM;
	d->buffers = XDP_FILL_RING;
	return err;
}

int
endpoint_device_memif(const struct endpoint_device *d, struct hca_port_memif_config *mc)
{
	char why[256];

	if (hca_port_memif_parse(d->args, mc, why, sizeof(why)) == 0)
		return 0;
	return endpoint_fail(-EINVAL, "device %s: %s", d->name, why);
}

static int
judge_memif(struct endpoint_device *d)
{
	struct hca_port_memif_config mc;
	int err = endpoint_device_memif(d, &mc);

	if (err != 0)
		return err;
	if (mc.buffer < frame_bytes(d))
		return endpoint_fail(-EINVAL, "device %s: bsize=%u holds no frame of MTU %u",
				     d->name, mc.buffer, d->mtu);
	if (mc.server && !mc.abstract)
		snprintf(d->path, sizeof(d->path), "%s", mc.socket);
	if (!mc.server)
		d->traits |= ENDPOINT_DEVICE_WAITS;
	d->data = mc.buffer + RTE_PKTMBUF_HEADROOM;
	return 0;
}

/* Peers may be unable to reassemble frames, so buffers must hold the longest one. */
static int
complete_memif(const struct endpoint_config *c, struct endpoint_device *d)
{
	char value[sizeof(d->path)] = "";
	uint32_t size = RTE_ALIGN_CEIL(frame_bytes(d), 64);
	int err = must_have(d, "role", "server or role=client");

	if (err == 0)
		err = must_have(d, "socket", "/PATH");
	endpoint_device_option(d->args, "socket", value, sizeof(value));
	if (err == 0 && value[0] == '/')
		err = add(d, "socket-abstract", "no");
	if (err == 0)
		err = add(d, "bsize", "%u", size);
	if (err == 0)
		err = add_mac(c, d);
	return err == 0 ? judge_memif(d) : err;
}

static int
complete_vhost(const struct endpoint_config *c, struct endpoint_device *d)
{
	char client[8] = "0";
	int err = must_have(d, "iface", "/PATH");

	if (err == 0)
		err = add_queues(c, d, "queues");
	endpoint_device_option(d->args, "client", client, sizeof(client));
	if (strcmp(client, "0") == 0)
		endpoint_device_option(d->args, "iface", d->path, sizeof(d->path));
	return err;
}

static int
complete_virtio_user(const struct endpoint_config *c, struct endpoint_device *d)
{
	char server[8] = "0";
	int err = must_have(d, "path", "/PATH");

	if (err == 0)
		err = add(d, "queue_size", "%u", 1024u);
	if (err == 0)
		err = add_queues(c, d, "queues");
	if (err == 0)
		err = add_mac(c, d);
	endpoint_device_option(d->args, "server", server, sizeof(server));
	if (strcmp(server, "1") == 0)
		endpoint_device_option(d->args, "path", d->path, sizeof(d->path));
	return err;
}

static int
complete_tap(const struct endpoint_config *c, struct endpoint_device *d)
{
	return add_mac(c, d);
}

/* Without packet data of its own it would produce frames without limit. */
static int
complete_null(const struct endpoint_config *c, struct endpoint_device *d)
{
	(void)c;
	return add(d, "no-rx", "1");
}

static int
complete_nothing(const struct endpoint_config *c, struct endpoint_device *d)
{
	(void)c;
	(void)d;
	return 0;
}

static const struct driver drivers[] = {
	{"net_af_packet", ENDPOINT_DEVICE_NETDEV | ENDPOINT_DEVICE_KEEP_MTU, complete_af_packet},
	{"eth_af_packet", ENDPOINT_DEVICE_NETDEV | ENDPOINT_DEVICE_KEEP_MTU, complete_af_packet},
	{"net_af_xdp", ENDPOINT_DEVICE_NETDEV | ENDPOINT_DEVICE_KEEP_MTU, complete_af_xdp},
	{"net_memif", ENDPOINT_DEVICE_MEMORY | ENDPOINT_DEVICE_MEMIF, complete_memif},
	{"net_vhost", ENDPOINT_DEVICE_MEMORY | ENDPOINT_DEVICE_VHOST, complete_vhost},
	{"net_virtio_user", ENDPOINT_DEVICE_MEMORY | ENDPOINT_DEVICE_SHARED, complete_virtio_user},
	{"net_tap", 0, complete_tap},
	{"net_null", ENDPOINT_DEVICE_MEMORY, complete_null},
	{"net_ring", ENDPOINT_DEVICE_MEMORY, complete_nothing},
	{"net_", 0, complete_nothing},
	{"", ENDPOINT_DEVICE_PCI, complete_nothing},
};

static const struct driver *
driver_of(const char *name)
{
	const struct driver *d = drivers;

	while (strncmp(name, d->prefix, strlen(d->prefix)) != 0)
		d++;
	return d;
}

int
endpoint_device_parse(const struct endpoint_config *c,
		      uint32_t (*kernel_mtu)(const char *interface), struct endpoint_device *d)
{
	size_t len = strcspn(c->device, ",");
	const struct driver *driver = driver_of(c->device);

	memset(d, 0, sizeof(*d));
	if (len == 0 || len >= sizeof(d->name))
		return endpoint_fail(-EINVAL, "device \"%s\" has no name", c->device);
	memcpy(d->name, c->device, len);
	if (c->device[len] == ',')
		snprintf(d->args, sizeof(d->args), "%s", c->device + len + 1);
	d->traits = driver->traits;
	d->mtu = c->mtu;
	if (d->traits & ENDPOINT_DEVICE_NETDEV)
		endpoint_device_option(d->args, "iface", d->interface, sizeof(d->interface));
	if (d->interface[0] != '\0') {
		uint32_t have = kernel_mtu(d->interface);

		if (have == 0)
			return endpoint_fail(-EINVAL,
					     "device %s: there is no interface %s ('ip link' "
					     "shows those there are)",
					     d->name, d->interface);
		if (d->mtu > have)
			return endpoint_fail(-EINVAL,
					     "device %s: mtu = %u, but that of %s is %u; run "
					     "'ip link set %s mtu %u'",
					     d->name, d->mtu, d->interface, have, d->interface,
					     d->mtu);
		if (d->mtu == 0)
			d->mtu = have;
	}
	if (d->mtu == 0 && (d->traits & ENDPOINT_DEVICE_MEMORY))
		d->mtu = MEMORY_MTU;
	return driver->complete(c, d);
}

/* ---- interfaces of the kernel ---- */

static int
interface_ioctl(unsigned long request, const char *interface, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	memset(ifr, 0, sizeof(*ifr));
	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", interface);
	rc = ioctl(fd, request, ifr) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

uint32_t
endpoint_netdev_mtu(const char *interface)
{
	struct ifreq ifr;

	return interface_ioctl(SIOCGIFMTU, interface, &ifr) == 0 ? (uint32_t)ifr.ifr_mtu : 0;
}

bool
endpoint_netdev_running(const char *interface)
{
	struct ifreq ifr;

	return interface_ioctl(SIOCGIFFLAGS, interface, &ifr) == 0 &&
	       (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

void
endpoint_make_folder(const struct endpoint_device *d)
{
	static const char *const options[] = {"socket", "iface", "path"};
	char path[256], *slash;

	for (size_t i = 0; i < RTE_DIM(options); i++) {
		if (!endpoint_device_option(d->args, options[i], path, sizeof(path)) ||
		    path[0] != '/')
			continue;
		slash = strrchr(path, '/');
		*slash = '\0';
		if (path[0] != '\0')
			(void)mkdir(path, 0755);
	}
}

/*
 * Whether a process listens. A datagram socket cannot connect to a stream listener, but the error
 * tells whether there is one (EPROTOTYPE) or none. A real connection must be avoided: memif of DPDK
 * 22.11 exits when one is closed at once.
 */
static int
listener_state(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? -EPROTOTYPE : -errno;
	close(fd);
	return rc;
}

int
endpoint_unlink_stale(const char *path)
{
	struct stat st;
	int rc;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	rc = listener_state(path);
	if (rc == -EPROTOTYPE)
		return -EADDRINUSE;
	if (rc != -ECONNREFUSED)
		return rc;
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
