/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/if_addr.h>
#include <linux/if_tun.h>

#include "abi_addr.h"
#include "kernif_impl.h"
#include "tap.h"

#define TUN_DEVICE "/dev/net/tun"

int
tap_open(struct tap *t, const char *name, bool exclusive)
{
	struct ifreq r = {0};
	int err;

	t->fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0)
		return kernif_fail(-errno, TUN_DEVICE ": %s", strerror(errno));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	r.ifr_flags = IFF_TAP | IFF_NO_PI | (exclusive ? IFF_TUN_EXCL : 0);
	if (ioctl(t->fd, TUNSETIFF, &r) != 0) {
		err = -errno;
		if (err == -EBUSY)
			kernif_fail(err,
				    exclusive ? "interface %s exists already"
					      : "interface %s is in use",
				    name);
		else
			kernif_fail(err, "TAP interface %s: %s", name, strerror(-err));
		tap_close(t);
		return err;
	}
	(void)ioctl(t->fd, TUNSETOFFLOAD, 0ul); /* no offload: whole frames with checksums */
	snprintf(t->name, sizeof(t->name), "%s", r.ifr_name);
	t->ifindex = if_nametoindex(t->name);
	if (t->ifindex != 0)
		return 0;
	tap_close(t);
	return kernif_fail(-ENODEV, "interface %s was removed", r.ifr_name);
}

void
tap_close(struct tap *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

void
tap_carrier(const struct tap *t, bool on)
{
	int carrier = on;

	(void)ioctl(t->fd, TUNSETCARRIER, &carrier);
}

int
tap_set_link(struct nl *s, uint32_t ifindex, const uint8_t mac[6], uint32_t mtu)
{
	const struct ifinfomsg m = {.ifi_index = (int)ifindex};
	struct nl_request r;

	nl_begin(&r, RTM_NEWLINK, 0, &m, sizeof(m));
	nl_put(&r, IFLA_ADDRESS, mac, 6);
	nl_put(&r, IFLA_MTU, &mtu, sizeof(mtu));
	return nl_talk(s, &r, NULL, NULL);
}

int
tap_set_up(struct nl *s, uint32_t ifindex)
{
	const struct ifinfomsg m = {.ifi_index = (int)ifindex,
				    .ifi_flags = IFF_UP,
				    .ifi_change = IFF_UP};
	struct nl_request r;

	nl_begin(&r, RTM_NEWLINK, 0, &m, sizeof(m));
	return nl_talk(s, &r, NULL, NULL);
}

/* Create the interface NAME.ID and set it up. Returns its index or a negative errno. */
static int
vlan_interface(struct nl *s, const struct tap *t, uint16_t vlan_id)
{
	const struct ifinfomsg m = {0};
	struct nl_request r;
	size_t info, data;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "%s.%u", t->name, vlan_id);
	if (strlen(name) >= IFNAMSIZ)
		return -ENAMETOOLONG;
	nl_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
	nl_put(&r, IFLA_LINK, &t->ifindex, sizeof(t->ifindex));
	nl_put(&r, IFLA_IFNAME, name, strlen(name) + 1);
	info = nl_nest(&r, IFLA_LINKINFO);
	nl_put(&r, IFLA_INFO_KIND, "vlan", 4);
	data = nl_nest(&r, IFLA_INFO_DATA);
	nl_put(&r, IFLA_VLAN_ID, &vlan_id, sizeof(vlan_id));
	nl_nest_end(&r, data);
	nl_nest_end(&r, info);
	err = nl_talk(s, &r, NULL, NULL);
	if (err != 0 && err != -EEXIST)
		return err;
	err = (int)if_nametoindex(name);
	return err == 0 ? -ENODEV : err;
}

/* No duplicate address detection: it would keep an IPv6 address unusable for a second. */
static int
add(struct nl *s, uint32_t ifindex, const struct arp_nd_address *a)
{
	bool is_v4 = hca_gid_is_mapped(a->gid);
	const struct ifaddrmsg m = {
		.ifa_family = is_v4 ? AF_INET : AF_INET6,
		.ifa_prefixlen = a->prefix,
		.ifa_flags = is_v4 ? 0 : IFA_F_NODAD,
		.ifa_index = ifindex,
	};
	const uint8_t *ip = is_v4 ? a->gid + 12 : a->gid;
	size_t len = is_v4 ? 4 : 16;
	struct nl_request r;

	nl_begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &m, sizeof(m));
	nl_put(&r, IFA_LOCAL, ip, len);
	nl_put(&r, IFA_ADDRESS, ip, len);
	return nl_talk(s, &r, NULL, NULL);
}

int
tap_add_address(struct nl *s, const struct tap *t, const struct arp_nd_address *a)
{
	int ifindex = (int)t->ifindex, err;

	if (a->vlan_id != ARP_ND_NO_VLAN) {
		ifindex = vlan_interface(s, t, a->vlan_id);
		if (ifindex < 0)
			return kernif_fail(ifindex, "VLAN %u on %s: %s", a->vlan_id, t->name,
					   strerror(-ifindex));
		err = tap_set_up(s, (uint32_t)ifindex);
		if (err != 0)
			return kernif_fail(err, "VLAN %u on %s: %s", a->vlan_id, t->name,
					   strerror(-err));
	}
	err = add(s, (uint32_t)ifindex, a);
	return err == 0 ? 0 : kernif_fail(err, "an address of %s: %s", t->name, strerror(-err));
}
