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
#include "port/port_ethdev.h"

#define DEFAULT_MTU 1500u

/* A device of the kernel's driver is seen by nobody else. */
static int
pci_missing(const struct endpoint_device *d)
{
	return endpoint_fail(-ENODEV,
			     "PCI device %s is not there, or not bound to a driver DPDK can use; "
			     "run 'dpdk-devbind.py --status' and 'dpdk-devbind.py -b vfio-pci %s'",
			     d->name, d->name);
}

static int
probe(struct endpoint_port *p)
{
	const struct endpoint_device *d = &p->device;
	int rc;

	if (d->path[0] != '\0') {
		rc = endpoint_unlink_stale(d->path);
		if (rc == -EADDRINUSE)
			return endpoint_fail(rc, "device %s: another process listens on %s",
					     d->name, d->path);
		if (rc != 0)
			return endpoint_fail(rc, "device %s: %s: %s", d->name, d->path,
					     strerror(-rc));
	}
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

/* The configured address, or the device's own. Frames to another one than the device's: all in. */
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

static void
take_names(struct endpoint_port *p)
{
	struct rte_eth_dev_info info;
	struct rte_eth_link link = {0};

	if (rte_eth_dev_info_get(p->id, &info) == 0)
		snprintf(p->driver, sizeof(p->driver), "%s", info.driver_name);
	if (rte_eth_link_get_nowait(p->id, &link) == 0 &&
	    link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		p->speed = link.link_speed;
}

static int
start(struct endpoint_port *p, const struct endpoint_config *c)
{
	bool keep = (p->device.traits & ENDPOINT_DEVICE_KEEP_MTU) != 0;
	struct hca_port_ethdev_config pc = {
		.port_id = p->id,
		.rx_desc = (uint16_t)c->rx_descriptors,
		.tx_desc = (uint16_t)c->tx_descriptors,
		.mtu = p->mtu,
		.keep_mtu = keep,
		.data_room = p->device.data,
		.may_wait = (p->device.traits & ENDPOINT_DEVICE_WAITS) != 0,
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

/* memif's driver ends the process when a peer connects and leaves before it was greeted. */
static void
tell_who_may_connect(const struct endpoint_port *p, const struct endpoint_config *c)
{
	char socket[sizeof(p->device.path)] = "";
	bool all = p->device.path[0] == '\0' || (c->wire_mode & 06) != 0;

	if (!endpoint_device_is_memif_server(&p->device))
		return;
	endpoint_device_option(p->device.args, "socket", socket, sizeof(socket));
	if (all)
		LOG_WARNING("device %s: every user of this machine may connect to %s, and can end "
			    "this daemon (memif of DPDK 22.11): use a path and socket_mode = 0600",
			    p->device.name, socket);
	else
		LOG_INFO("device %s: who may connect to %s (mode %04o) can end this daemon (memif "
			 "of DPDK 22.11)",
			 p->device.name, socket, c->wire_mode);
}

static int
open_device(struct endpoint_port *p, const struct endpoint_config *c)
{
	int rc = probe(p);

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
	mask = umask(0777 & ~c->wire_mode); /* of the socket from its first moment on */
	rc = open_device(p, c);

	umask(mask);
	if (rc != 0) {
		endpoint_port_close(p);
		return rc;
	}
	take_names(p);
	tell_who_may_connect(p, c);
	return 0;
}

void
endpoint_port_close(struct endpoint_port *p)
{
	if (p->top != NULL)
		p->top->ops->close(p->top);
	p->top = p->wire = NULL;
	if (p->probed)
		rte_eal_hotplug_remove("vdev", p->device.name);
	p->probed = false;
	if (p->device.path[0] != '\0')
		unlink(p->device.path);
}
