/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dpdk_compat.h>
#include <rte_ethdev.h>
#include <rte_telemetry.h>

#include "endpoint_kernel.h"
#include "endpoint_log.h"
#include "kernif.h"
#include "port/port_divert.h"

/* A device that cannot change its address, or shares it, is set to receive all frames. */
static void
on_mac(void *arg, const uint8_t mac[6])
{
	struct endpoint_kernif *k = arg;

	LOG_INFO("interface %s: MAC address %02x:%02x:%02x:%02x:%02x:%02x",
		 kernif_interface(k->kernif), mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	memcpy(k->port->mac, mac, sizeof(k->port->mac));
	if ((k->port->device.traits & ENDPOINT_DEVICE_MEMIF) == 0 &&
	    rte_eth_promiscuous_enable(k->port->id) != 0)
		LOG_WARNING("port %s cannot be set to receive frames to that address",
			    k->port->device.name);
}

static void
on_link(void *arg, bool up)
{
	struct endpoint_kernif *k = arg;

	LOG_INFO("interface %s is %s", kernif_interface(k->kernif), up ? "up" : "down");
}

static void
on_log(void *arg, const char *text)
{
	(void)arg;
	LOG_WARNING("%s", text);
}

/* Log the kind that "auto" chose, so that its speed is no surprise. */
static void
log_chosen_kind(const struct endpoint_config *c)
{
	if (c->kernel == ENDPOINT_KERNEL_AUTO)
		LOG_INFO("[kernel] interface = auto: a TAP interface (%s)",
			 access("/dev/vhost-net", F_OK) != 0
				 ? "there is no /dev/vhost-net"
				 : "virtio-user over vhost-net is not built");
}

static int
create(struct endpoint_kernif *k, const struct endpoint_config *c)
{
	struct arp_nd_address address[ENDPOINT_ADDRESSES_MAX];
	struct arp_nd_hop gateway[ENDPOINT_ADDRESSES_MAX];
	struct kernif_config kc = {
		.kind = c->kernel == ENDPOINT_KERNEL_NONE ? KERNIF_BUILTIN : KERNIF_TAP,
		.adopt = c->kernel_adopt,
		.link_local = c->link_local,
		.mtu = k->port->mtu,
		.addresses = address,
		.num_addresses = c->num_addresses,
		.gateways = gateway,
		.num_gateways = c->num_gateways,
		.mac_changed = on_mac,
		.link_changed = on_link,
		.log = on_log,
		.arg = k,
	};
	int err;

	snprintf(kc.name, sizeof(kc.name), "%s", c->kernel_interface);
	memcpy(kc.mac, k->port->mac, sizeof(kc.mac));
	if (k->port->device.interface[0] != '\0')
		kc.ifindex = if_nametoindex(k->port->device.interface);
	for (uint32_t i = 0; i < c->num_addresses; i++) {
		memcpy(address[i].gid, c->address[i].gid, sizeof(address[i].gid));
		address[i].prefix = c->address[i].prefix;
		address[i].vlan_id = c->address[i].vlan_id;
	}
	for (uint32_t i = 0; i < c->num_gateways; i++) {
		memcpy(gateway[i].gid, c->gateway[i].gid, sizeof(gateway[i].gid));
		gateway[i].vlan_id = c->gateway[i].vlan_id;
	}
	log_chosen_kind(c);
	err = kernif_create(&kc, &k->kernif);
	return err == 0 ? 0 : endpoint_fail(err, "[kernel]: %s", kernif_reason());
}

int
endpoint_kernel_open(struct endpoint_kernif *k, const struct endpoint_config *c,
		     struct endpoint_port *port)
{
	struct hca_port_divert_config dc = {
		.name = c->name,
		.socket_id = c->numa_node,
		.wires = endpoint_wires(c),
		.kick = kernif_kick,
	};
	int err;

	k->port = port;
	k->carrier = true;
	err = create(k, c);
	if (err != 0)
		return err;
	dc.kick_arg = k->kernif;
	memcpy(dc.mac, port->mac, sizeof(dc.mac));
	err = hca_port_divert_open(&dc, port->top, &k->divert);
	if (err != 0)
		return endpoint_fail(err,
				     "no memory for frames of the kernel interface: raise [memory] "
				     "size_mb = %u",
				     c->memory_mb);
	port->top = k->divert;
	return 0;
}

/* ---- telemetry: the command cannot be unregistered, so it looks up its endpoint ---- */

static pthread_mutex_t shown_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernif *shown;

static void
add_counter(void *arg, const char *name, uint64_t value)
{
	(void)rte_tel_data_add_dict_uint(arg, name, value);
}

static int
show(const char *command, const char *params, struct rte_tel_data *d)
{
	int rc = -ENOENT;

	(void)command;
	(void)params;
	pthread_mutex_lock(&shown_lock);
	if (shown != NULL) {
		rc = rte_tel_data_start_dict(d);
		kernif_counters(shown, add_counter, d);
	}
	pthread_mutex_unlock(&shown_lock);
	return rc;
}

static void
set_shown(struct kernif *k)
{
	pthread_mutex_lock(&shown_lock);
	shown = k;
	pthread_mutex_unlock(&shown_lock);
	if (k != NULL)
		(void)rte_telemetry_register_cmd(
			"/softhca/kernel", show,
			"Counters of what is not RoCE: the shared port, the kernel interface, the "
			"responder. No parameters");
}

int
endpoint_kernel_start(struct endpoint_kernif *k, struct hca_driver *drv)
{
	int err = kernif_start(k->kernif, k->divert, drv);

	if (err != 0)
		return endpoint_fail(err, "[kernel]: %s", kernif_reason());
	set_shown(k->kernif);
	return 0;
}

void
endpoint_kernel_link(struct endpoint_kernif *k, bool up)
{
	if (k->carrier != up)
		kernif_link(k->kernif, up);
	k->carrier = up;
}

void
endpoint_kernel_hurry(struct endpoint_kernif *k)
{
	if (k->kernif != NULL)
		kernif_hurry(k->kernif);
}

void
endpoint_kernel_stop(struct endpoint_kernif *k)
{
	set_shown(NULL);
	if (k->kernif != NULL)
		kernif_stop(k->kernif);
}

void
endpoint_kernel_close(struct endpoint_kernif *k)
{
	kernif_destroy(k->kernif);
	k->kernif = NULL;
}

int
endpoint_kernel_resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	return kernif_resolve(((struct endpoint_kernif *)arg)->kernif, sgid_index, dgid, dmac);
}

int
endpoint_kernel_source(void *arg, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index)
{
	return kernif_source(((struct endpoint_kernif *)arg)->kernif, dgid, scope, sgid_index);
}

int
endpoint_kernel_group(struct endpoint_kernif *k, uint32_t gid_index, const uint8_t mgid[16],
		      bool joined)
{
	return kernif_group(k->kernif, gid_index, mgid, joined);
}
