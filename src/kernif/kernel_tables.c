/* SPDX-License-Identifier: BSD-3-Clause */

#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/neighbour.h>

#include "abi_addr.h"
#include "kernel_tables.h"

void
kernel_tables_init(struct kernel_tables *t, uint32_t ifindex, const struct kernel_tables_ops *ops)
{
	memset(t, 0, sizeof(*t));
	t->ifindex = ifindex;
	t->ops = *ops;
}

static struct kernel_link *
find_link(struct kernel_tables *t, uint32_t ifindex)
{
	for (uint32_t i = 0; i < t->num_links; i++)
		if (t->link[i].ifindex == ifindex)
			return &t->link[i];
	return NULL;
}

const struct kernel_link *
kernel_tables_link(const struct kernel_tables *t, uint32_t ifindex)
{
	return find_link((struct kernel_tables *)(uintptr_t)t, ifindex);
}

const struct kernel_link *
kernel_tables_vlan(const struct kernel_tables *t, uint16_t vlan_id)
{
	for (uint32_t i = 0; i < t->num_links; i++)
		if (t->link[i].vlan_id == vlan_id)
			return &t->link[i];
	return NULL;
}

static uint32_t
u32_of(const struct rtattr *a, uint32_t otherwise)
{
	uint32_t value = otherwise;

	if (nl_len(a) >= sizeof(value))
		memcpy(&value, nl_data(a), sizeof(value));
	return value;
}

static uint16_t
u16_of(const struct rtattr *a, uint16_t otherwise)
{
	uint16_t value = otherwise;

	if (nl_len(a) >= sizeof(value))
		memcpy(&value, nl_data(a), sizeof(value));
	return value;
}

/* ---- links ---- */

/* Is it an 802.1Q interface on top of ours? */
static bool
vlan_of(const struct kernel_tables *t, const struct rtattr *table[], uint16_t *vlan_id)
{
	const struct rtattr *info[IFLA_INFO_MAX + 1], *data[IFLA_VLAN_MAX + 1];
	const struct rtattr *outer = table[IFLA_LINKINFO];

	if (outer == NULL || u32_of(table[IFLA_LINK], 0) != t->ifindex)
		return false;
	nl_parse(nl_data(outer), nl_len(outer), info, IFLA_INFO_MAX);
	if (nl_len(info[IFLA_INFO_KIND]) < 4 ||
	    memcmp(nl_data(info[IFLA_INFO_KIND]), "vlan", 4) != 0 || info[IFLA_INFO_DATA] == NULL)
		return false;
	nl_parse(nl_data(info[IFLA_INFO_DATA]), nl_len(info[IFLA_INFO_DATA]), data, IFLA_VLAN_MAX);
	if (nl_len(data[IFLA_VLAN_ID]) == 0 ||
	    u16_of(data[IFLA_VLAN_PROTOCOL], __builtin_bswap16(ETH_P_8021Q)) !=
		    __builtin_bswap16(ETH_P_8021Q))
		return false;
	*vlan_id = u16_of(data[IFLA_VLAN_ID], 0);
	return *vlan_id != 0 && *vlan_id < 0xfff;
}

static void
link_gone(struct kernel_tables *t, struct kernel_link *l)
{
	struct kernel_link was = *l;

	*l = t->link[--t->num_links];
	t->ops.link(t->ops.arg, &was, true);
}

static void
link_event(struct kernel_tables *t, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	const struct rtattr *table[IFLA_MAX + 1];
	uint16_t vlan_id = ARP_ND_NO_VLAN;
	struct kernel_link *l;

	if (!nl_parse_message(h, sizeof(*m), table, IFLA_MAX) || m->ifi_family != AF_UNSPEC)
		return;
	l = find_link(t, (uint32_t)m->ifi_index);
	if (h->nlmsg_type == RTM_DELLINK) {
		if (l != NULL)
			link_gone(t, l);
		return;
	}
	if ((uint32_t)m->ifi_index != t->ifindex && !vlan_of(t, table, &vlan_id))
		return;
	if (l == NULL) {
		if (t->num_links == KERNEL_LINKS_MAX)
			return;
		l = &t->link[t->num_links++];
		memset(l, 0, sizeof(*l));
	}
	l->ifindex = (uint32_t)m->ifi_index;
	l->vlan_id = vlan_id;
	l->up = (m->ifi_flags & IFF_UP) != 0;
	if (nl_len(table[IFLA_ADDRESS]) == sizeof(l->mac))
		memcpy(l->mac, nl_data(table[IFLA_ADDRESS]), sizeof(l->mac));
	t->ops.link(t->ops.arg, l, false);
}

/* ---- addresses ---- */

/* An address in GID form; false: of another family or length. */
static bool
gid_of(uint8_t family, const struct rtattr *a, uint8_t gid[16])
{
	if (family == AF_INET && nl_len(a) == 4) {
		memset(gid, 0, 10);
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, nl_data(a), 4);
		return true;
	}
	if (family == AF_INET6 && nl_len(a) == 16) {
		memcpy(gid, nl_data(a), 16);
		return true;
	}
	return false;
}

/* A unicast address that can be a GID. */
static bool
is_host(uint8_t family, const uint8_t gid[16])
{
	static const uint8_t loopback[16] = {[15] = 1};

	if (family == AF_INET)
		return gid[12] != 0 && gid[12] != 127 && gid[12] < 224;
	return gid[0] != 0xff && memcmp(gid, loopback, 16) != 0 && memcmp(gid, loopback, 15) != 0 &&
	       !hca_gid_is_mapped(gid);
}

/* IPv6 addresses are reported during duplicate address detection and again after it. */
static void
address_event(struct kernel_tables *t, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	const struct rtattr *table[IFA_MAX + 1];
	const struct kernel_link *l;
	uint8_t gid[16];
	bool gone = h->nlmsg_type == RTM_DELADDR;
	uint32_t flags;

	if (!nl_parse_message(h, sizeof(*m), table, IFA_MAX))
		return;
	l = find_link(t, m->ifa_index);
	if (l == NULL ||
	    !gid_of(m->ifa_family, table[IFA_LOCAL] != NULL ? table[IFA_LOCAL] : table[IFA_ADDRESS],
		    gid) ||
	    !is_host(m->ifa_family, gid))
		return;
	flags = u32_of(table[IFA_FLAGS], m->ifa_flags);
	if (flags & IFA_F_DADFAILED)
		gone = true;
	else if (!gone && (flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC))
		return;
	t->ops.address(t->ops.arg, l, gid, gone);
}

/* ---- neighbours ---- */

static void
neighbour_event(struct kernel_tables *t, const struct nlmsghdr *h)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const struct rtattr *table[NDA_MAX + 1];
	const struct kernel_link *l;
	struct arp_nd_hop hop;
	const uint8_t *mac = NULL;

	if (!nl_parse_message(h, sizeof(*m), table, NDA_MAX))
		return;
	l = find_link(t, (uint32_t)m->ndm_ifindex);
	if (l == NULL || !gid_of(m->ndm_family, table[NDA_DST], hop.gid))
		return;
	hop.vlan_id = l->vlan_id;
	if (h->nlmsg_type == RTM_NEWNEIGH && (m->ndm_state & (NUD_FAILED | NUD_INCOMPLETE)) == 0 &&
	    nl_len(table[NDA_LLADDR]) == 6)
		mac = nl_data(table[NDA_LLADDR]);
	else if (h->nlmsg_type == RTM_NEWNEIGH && (m->ndm_state & NUD_FAILED) == 0)
		return; /* being resolved */
	t->ops.neighbour(t->ops.arg, &hop, mac);
}

void
kernel_tables_event(struct kernel_tables *t, const struct nlmsghdr *h)
{
	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		link_event(t, h);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		address_event(t, h);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		neighbour_event(t, h);
		break;
	default:
		break;
	}
}
