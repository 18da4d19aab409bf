/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "endpoint_log.h"
#include "endpoint_machine.h"
#include "endpoint_port.h"
#include "endpoint_vhost.h"
#include "port/port_ethdev.h"
#include "port/port_memif.h"

#define DEFAULT_MTU 1500u
#define MEMIF_MBUFS 640u    /* beyond the descriptors: for bursts and packets inside the stages */
#define MEMIF_SPEED 100000u /* Mb/s, as DPDK reports for memif */

/* A device bound to the kernel's driver is invisible to DPDK. */
static int
pci_missing(const struct endpoint_device *d)
{
	return endpoint_fail(-ENODEV,
			     "PCI device %s is not there, or not bound to a driver DPDK can use; "
			     "run 'dpdk-devbind.py --status' and 'dpdk-devbind.py -b vfio-pci %s'",
			     d->name, d->name);
}

static int
remove_stale_socket(const struct endpoint_device *d)
{
	int rc = d->path[0] != '\0' ? endpoint_unlink_stale(d->path) : 0;

	if (rc == -EADDRINUSE)
		return endpoint_fail(rc, "device %s: another process listens on %s", d->name,
				     d->path);
	if (rc != 0)
		return endpoint_fail(rc, "device %s: %s: %s", d->name, d->path, strerror(-rc));
	return 0;
}

static int
probe(struct endpoint_port *p)
{
	const struct endpoint_device *d = &p->device;
	int rc;

	if (!(d->traits & ENDPOINT_DEVICE_PCI)) {
		rc = rte_eal_hotplug_add("vdev", d->name, d->args);
		if (rc != 0)
			return endpoint_fail(rc, "device %s%s%s was refused: %s", d->name,
					     d->args[0] ? "," : "", d->args, strerror(-rc));
		p->probed = true;
	}
	if (rte_eth_dev_get_port_by_name(d->name, &p->id) == 0)
		return 0;
	if (d->traits & ENDPOINT_DEVICE_PCI)
		return pci_missing(d);
	return endpoint_fail(-ENODEV, "device %s is no Ethernet port", d->name);
}

/*
 * Use the configured address, or the device's own. For another one than the device's: promiscuous.
 */
static int
take_mac(struct endpoint_port *p, const struct endpoint_config *c)
{
	struct rte_ether_addr own;
	int rc = rte_eth_macaddr_get(p->id, &own);

	if (rc != 0)
		return endpoint_fail(rc, "device %s has no MAC address: %s", p->device.name,
				     strerror(-rc));
	if (rte_is_zero_ether_addr(&own))
		rte_eth_random_addr(own.addr_bytes);
	memcpy(p->mac, c->has_mac ? c->mac : own.addr_bytes, sizeof(p->mac));
	if (memcmp(p->mac, own.addr_bytes, sizeof(p->mac)) == 0)
		return 0;
	endpoint_machine_arp(c, p->device.interface);
	rc = rte_eth_promiscuous_enable(p->id);
	if (rc != 0 && !(p->device.traits & ENDPOINT_DEVICE_MEMORY))
		LOG_WARNING("device %s keeps its own MAC address and cannot be set to receive "
			    "everything (%s): frames to the configured address may be lost",
			    p->device.name, strerror(-rc));
	return 0;
}

static int
take_mtu(struct endpoint_port *p, const struct endpoint_config *c)
{
	uint16_t have = DEFAULT_MTU;

	if (p->device.mtu == 0)
		rte_eth_dev_get_mtu(p->id, &have);
	p->mtu = p->device.mtu != 0 ? p->device.mtu : have;
	p->roce_mtu = c->roce_mtu != 0 ? c->roce_mtu : endpoint_roce_mtu(p->mtu);
	if (p->roce_mtu == 0 || p->roce_mtu + 60 > p->mtu)
		return endpoint_fail(-EINVAL,
				     "roce_mtu = %u does not fit IP packets of %u bytes, which is "
				     "the MTU of %s",
				     c->roce_mtu, p->mtu, p->device.name);
	return 0;
}

void
endpoint_port_take_speed(struct endpoint_port *p)
{
	struct rte_eth_link link = {0};

	if ((p->device.traits & ENDPOINT_DEVICE_MEMIF) != 0)
		return;
	if (rte_eth_link_get_nowait(p->id, &link) == 0 &&
	    link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		p->speed = link.link_speed;
}

static void
take_names(struct endpoint_port *p)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->id, &info) == 0)
		snprintf(p->driver, sizeof(p->driver), "%s", info.driver_name);
	endpoint_port_take_speed(p);
}

static void
log_port(void *arg, bool warning, const char *text)
{
	const struct endpoint_port *p = arg;

	if (warning)
		LOG_WARNING("port %s: %s", p->device.name, text);
	else
		LOG_INFO("port %s: %s", p->device.name, text);
}

static int
start(struct endpoint_port *p, const struct endpoint_config *c)
{
	bool keep = (p->device.traits & ENDPOINT_DEVICE_KEEP_MTU) != 0;
	struct hca_port_ethdev_config pc = {
		.port_id = p->id,
		.rx_desc = (uint16_t)c->rx_descriptors,
		.tx_desc = (uint16_t)c->tx_descriptors,
		.queues = (uint16_t)c->pipelines,
		.log = log_port,
		.log_arg = p,
		.mtu = p->mtu,
		.keep_mtu = keep,
		.rx_mbufs = p->device.buffers != 0 ? p->device.buffers + c->rx_descriptors : 0,
		.data_room = p->device.data,
		.data_room_max = p->device.data_max,
		.watched = true,
		.name = c->name,
		.socket_id = c->numa_node,
	};
	int rc = hca_port_ethdev_open(&pc, &p->wire);

	if (rc != 0)
		return endpoint_fail(rc, "device %s (%s) did not start: %s", p->device.name,
				     p->driver, strerror(-rc));
	p->top = p->wire;
	return 0;
}

/* ---- memif: a port of our own ---- */

/* Tell which users may connect: they are the other end of the wire. */
static void
log_permitted_peers(const struct endpoint_port *p, const struct hca_port_memif_config *mc,
		    const struct endpoint_config *c)
{
	bool all = mc->abstract || (c->wire_mode & 06) != 0;

	if (mc->server && all && mc->secret[0] == '\0')
		LOG_WARNING("device %s: every user of this machine may connect to %s: use a path "
			    "and socket_mode = 0600",
			    p->device.name, mc->socket);
	else if (mc->server && !mc->abstract)
		LOG_INFO("device %s: the process that connects to %s (mode %04o) is the other "
			 "end of the wire",
			 p->device.name, mc->socket, c->wire_mode);
}

static int
open_memif(struct endpoint_port *p, const struct endpoint_config *c)
{
	struct hca_port_memif_config mc;
	int rc = endpoint_device_memif(&p->device, &mc);

	if (rc == 0)
		rc = take_mtu(p, c);
	if (rc != 0)
		return rc;
	if (!mc.has_mac)
		rte_eth_random_addr(mc.mac);
	memcpy(p->mac, c->has_mac ? c->mac : mc.mac, sizeof(p->mac));
	snprintf(p->driver, sizeof(p->driver), HCA_PORT_MEMIF_DEVICE);
	p->speed = MEMIF_SPEED;
	mc.name = c->name;
	mc.rx_mbufs = c->rx_descriptors != 0 ? c->rx_descriptors + MEMIF_MBUFS : 0;
	mc.data_room = p->device.data;
	mc.mtu = p->mtu;
	mc.socket_id = c->numa_node;
	mc.queues = (uint16_t)c->pipelines;
	mc.log = log_port;
	mc.log_arg = p;
	rc = hca_port_memif_open(&mc, &p->wire);
	if (rc != 0)
		return endpoint_fail(rc, "device %s: %s: %s", p->device.name, mc.socket,
				     strerror(-rc));
	p->top = p->wire;
	log_permitted_peers(p, &mc, c);
	return 0;
}

static int
open_device(struct endpoint_port *p, const struct endpoint_config *c)
{
	int rc = remove_stale_socket(&p->device);

	if (rc == 0 && (p->device.traits & ENDPOINT_DEVICE_MEMIF) != 0)
		return open_memif(p, c);
	if (rc == 0)
		rc = probe(p);
	if (rc == 0)
		rc = take_mac(p, c);
	if (rc == 0)
		rc = take_mtu(p, c);
	if (rc == 0) {
		take_names(p);
		rc = start(p, c);
	}
	return rc;
}

int
endpoint_port_open(struct endpoint_port *p, const struct endpoint_config *c)
{
	mode_t mask;
	int rc;

	endpoint_make_folder(&p->device);
	mask = umask(0777 & ~c->wire_mode); /* the socket gets its mode when it is created */
	rc = open_device(p, c);

	umask(mask);
	if (rc != 0) {
		endpoint_port_close(p);
		return rc;
	}
	if ((p->device.traits & ENDPOINT_DEVICE_MEMIF) == 0)
		take_names(p); /* again: names are known after the start */
	return 0;
}

void
endpoint_port_close(struct endpoint_port *p)
{
	struct endpoint_vhost *vhost = p->probed ? endpoint_vhost_end(&p->device) : NULL;

	if (p->top != NULL)
		p->top->ops->close(p->top);
	p->top = p->wire = NULL;
	if (p->probed)
		rte_eal_hotplug_remove("vdev", p->device.name);
	p->probed = false;
	endpoint_vhost_ended(vhost);
	if (p->device.path[0] != '\0')
		unlink(p->device.path);
}
