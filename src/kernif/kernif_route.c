/* SPDX-License-Identifier: BSD-3-Clause */

/* Resolution of a destination, and its source, by the kernel's routes and neighbours. */

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/neighbour.h>

#include "arp_nd_impl.h"
#include "kernif_impl.h"

#define DISCARD_PORT 9u
#define USABLE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)
#define PROBE_NS 200000000ull /* interval of requests for an unknown neighbour */

/* A GID as netlink needs it: 4 or 16 bytes. */
struct nl_ip {
	uint8_t family;
	uint8_t len;
	uint8_t bytes[16];
};

static struct nl_ip
ip_of(const uint8_t gid[16])
{
	struct nl_ip ip = {.family = AF_INET6, .len = 16};

	memcpy(ip.bytes, gid, 16);
	if (hca_gid_is_mapped(gid)) {
		ip = (struct nl_ip){.family = AF_INET, .len = 4};
		memcpy(ip.bytes, gid + 12, 4);
	}
	return ip;
}

/* ---- routes ---- */

struct route {
	bool found;
	uint8_t type;
	uint32_t oif;
	uint8_t hop[16];
	bool has_source;
	uint8_t source[16]; /* the preferred one */
};

static bool
set_gid(uint8_t gid[16], uint16_t family, const void *ip, size_t len)
{
	if (family == AF_INET && len == 4)
		hca_gid_from_ip4(gid, ip);
	else if (family == AF_INET6 && len == 16)
		memcpy(gid, ip, 16);
	else
		return false;
	return true;
}

static void
on_route(void *arg, const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	const struct rtattr *table[RTA_MAX + 1];
	struct route *r = arg;

	if (h->nlmsg_type != RTM_NEWROUTE || !nl_parse_message(h, sizeof(*m), table, RTA_MAX))
		return;
	r->found = true;
	r->type = m->rtm_type;
	if (nl_len(table[RTA_OIF]) == sizeof(r->oif))
		memcpy(&r->oif, nl_data(table[RTA_OIF]), sizeof(r->oif));
	if (table[RTA_GATEWAY] != NULL)
		(void)set_gid(r->hop, m->rtm_family, nl_data(table[RTA_GATEWAY]),
			      nl_len(table[RTA_GATEWAY]));
	if (table[RTA_PREFSRC] != NULL)
		r->has_source = set_gid(r->source, m->rtm_family, nl_data(table[RTA_PREFSRC]),
					nl_len(table[RTA_PREFSRC]));
	if (nl_len(table[RTA_VIA]) > sizeof(uint16_t)) {
		const uint8_t *via = nl_data(table[RTA_VIA]);
		uint16_t family;

		memcpy(&family, via, sizeof(family));
		(void)set_gid(r->hop, family, via + sizeof(family),
			      nl_len(table[RTA_VIA]) - sizeof(family));
	}
}

/* Next hop from src to dst via the interface. */
static int
find_route(struct nl *s, uint32_t ifindex, const uint8_t src[16], const uint8_t dst[16],
	   struct route *out)
{
	struct nl_ip from = ip_of(src), to = ip_of(dst);
	const struct rtmsg m = {
		.rtm_family = to.family,
		.rtm_dst_len = (uint8_t)(to.len * 8),
		.rtm_src_len = (uint8_t)(from.len * 8),
	};
	struct nl_request r;
	int err;

	memset(out, 0, sizeof(*out));
	memcpy(out->hop, dst, 16);
	if (gid_is_link_local(dst)) {
		*out = (struct route){.found = true, .type = RTN_UNICAST, .oif = ifindex};
		memcpy(out->hop, dst, 16);
		return 0;
	}
	nl_begin(&r, RTM_GETROUTE, 0, &m, sizeof(m));
	nl_put(&r, RTA_DST, to.bytes, to.len);
	nl_put(&r, RTA_SRC, from.bytes, from.len);
	nl_put(&r, RTA_OIF, &ifindex, sizeof(ifindex));
	err = nl_talk(s, &r, on_route, out);
	if (err != 0 || !out->found || out->type != RTN_UNICAST || out->oif != ifindex)
		return -ENETUNREACH;
	return 0;
}

/* The route to dst from any address, by the interface if it is not 0. */
static int
find_source_route(const uint8_t dst[16], uint32_t ifindex, struct route *out)
{
	struct nl_ip to = ip_of(dst);
	const struct rtmsg m = {.rtm_family = to.family, .rtm_dst_len = (uint8_t)(to.len * 8)};
	struct nl_request r;
	struct nl s;
	int err = nl_open(&s, 0);

	if (err != 0)
		return err;
	memset(out, 0, sizeof(*out));
	nl_begin(&r, RTM_GETROUTE, 0, &m, sizeof(m));
	nl_put(&r, RTA_DST, to.bytes, to.len);
	if (ifindex != 0)
		nl_put(&r, RTA_OIF, &ifindex, sizeof(ifindex));
	err = nl_talk(&s, &r, on_route, out);
	nl_close(&s);
	if (err != 0 || !out->found || (out->type != RTN_UNICAST && out->type != RTN_MULTICAST))
		return -ENETUNREACH;
	return 0;
}

int
kernif_kernel_source(struct kernif *k, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index)
{
	bool link_local = !hca_gid_is_mapped(dgid) && hca_gid_is_link_local(dgid);
	uint32_t ifindex = link_local && scope == 0 ? k->tap.ifindex : scope;
	struct route route = {.oif = ifindex};
	const struct kernel_link *l;
	int at = -1;

	if (!link_local && find_source_route(dgid, scope, &route) != 0)
		return -ENETUNREACH;
	l = kernel_tables_link(&k->tables, route.oif);
	if (l == NULL)
		return -ENETUNREACH;
	if (route.has_source)
		at = gid_table_find(&k->gids, route.source, l->vlan_id);
	if (at < 0)
		at = gid_table_source(&k->gids, l->vlan_id, dgid);
	if (at < 0)
		return -EADDRNOTAVAIL;
	*sgid_index = (uint32_t)at;
	return 0;
}

/* ---- neighbours ---- */

struct neighbour {
	bool found;
	uint16_t state;
	uint8_t mac[6];
};

static void
on_neighbour(void *arg, const struct nlmsghdr *h)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const struct rtattr *table[NDA_MAX + 1];
	struct neighbour *n = arg;

	if (h->nlmsg_type != RTM_NEWNEIGH || !nl_parse_message(h, sizeof(*m), table, NDA_MAX))
		return;
	n->found = true;
	n->state = m->ndm_state;
	if (nl_len(table[NDA_LLADDR]) == sizeof(n->mac))
		memcpy(n->mac, nl_data(table[NDA_LLADDR]), sizeof(n->mac));
	else
		n->state &= (uint16_t)~USABLE;
}

static struct neighbour
find_neighbour(struct nl *s, uint32_t ifindex, const uint8_t gid[16])
{
	struct nl_ip ip = ip_of(gid);
	const struct ndmsg m = {.ndm_family = ip.family, .ndm_ifindex = (int)ifindex};
	struct neighbour n = {0};
	struct nl_request r;

	nl_begin(&r, RTM_GETNEIGH, 0, &m, sizeof(m));
	nl_put(&r, NDA_DST, ip.bytes, ip.len);
	(void)nl_talk(s, &r, on_neighbour, &n);
	return n;
}

/*
 * A packet also triggers resolution: used without permission to change the table, and by
 * ask_kernel().
 */
static int
send_packet(uint32_t ifindex, const struct nl_ip *ip)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
				    .sin6_port = htons(DISCARD_PORT),
				    .sin6_scope_id = ifindex};
	int fd = socket(ip->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* if it is refused, only the routes choose the interface */
	(void)setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &ifindex, sizeof(ifindex));
	memcpy(&sin.sin_addr, ip->bytes, 4);
	memcpy(&sin6.sin6_addr, ip->bytes, 16);
	n = ip->family == AF_INET
		    ? sendto(fd, "", 0, 0, (const struct sockaddr *)&sin, sizeof(sin))
		    : sendto(fd, "", 0, 0, (const struct sockaddr *)&sin6, sizeof(sin6));
	close(fd);
	return n < 0 ? -EHOSTUNREACH : 0;
}

int
kernif_probe(struct nl *s, uint32_t ifindex, const uint8_t gid[16])
{
	struct nl_ip ip = ip_of(gid);
	const struct ndmsg m = {
		.ndm_family = ip.family,
		.ndm_ifindex = (int)ifindex,
		.ndm_state = NUD_NONE,
		.ndm_flags = NTF_USE,
	};
	struct nl_request r;
	int err;

	nl_begin(&r, RTM_NEWNEIGH, NLM_F_CREATE, &m, sizeof(m));
	nl_put(&r, NDA_DST, ip.bytes, ip.len);
	err = nl_talk(s, &r, NULL, NULL);
	return err == -EPERM ? send_packet(ifindex, &ip) : err;
}

/*
 * Make the kernel resolve the neighbour. A request by netlink has no packet to send, and without
 * one the kernel uses only its IPv6 link-local address as source; it does not ask at all while
 * duplicate address detection for that runs, in the first seconds of an interface. So from the
 * second request on a packet is also sent.
 */
static int
ask_kernel(struct nl *s, uint32_t ifindex, const uint8_t gid[16], bool again)
{
	struct nl_ip ip = ip_of(gid);
	int err = kernif_probe(s, ifindex, gid);

	if (err == 0 && again && ip.family == AF_INET6)
		(void)send_packet(ifindex, &ip);
	return err == 0 ? 0 : -EHOSTUNREACH;
}

/*
 * Releases the lock while waiting. The kernel gives up after three requests, or at once while an
 * interface comes up, so repeat requests until kernif_config.timeout_ms. That counts the time spent
 * waiting: a request may block for seconds while the kernel removes other interfaces.
 */
static int
wait_for_neighbour(struct kernif *k, struct nl *s, uint32_t ifindex, const uint8_t gid[16],
		   uint8_t mac[6])
{
	uint64_t probe = 0, waited = 0;
	int err;

	for (;;) {
		struct neighbour n = find_neighbour(s, ifindex, gid);
		uint64_t now = kernif_now();

		if (now >= probe) {
			if (ask_kernel(s, ifindex, gid, probe != 0) != 0)
				return -EHOSTUNREACH;
			probe = now + PROBE_NS;
		}
		if (n.found && (n.state & USABLE)) {
			memcpy(mac, n.mac, 6);
			return 0;
		}
		err = kernif_waited(k, waited);
		if (err != 0)
			return err;
		waited += kernif_wait(k);
	}
}

int
kernif_kernel_resolve(struct kernif *k, uint32_t sgid_index, const uint8_t dgid[16], uint8_t mac[6])
{
	const struct gid_slot *g = gid_table_get(&k->gids, sgid_index);
	const struct kernel_link *l = g != NULL ? kernel_tables_vlan(&k->tables, g->vlan_id) : NULL;
	struct arp_nd_hop hop = {0};
	struct route route;
	bool fixed = false;
	uint32_t ifindex;
	struct nl s;
	int err;

	if (l == NULL)
		return -EINVAL;
	ifindex = l->ifindex;
	hop.vlan_id = g->vlan_id;
	err = nl_open(&s, 0);
	if (err != 0)
		return err;
	err = find_route(&s, ifindex, g->gid, dgid, &route);
	if (err == 0) {
		memcpy(hop.gid, route.hop, 16);
		fixed = hca_driver_get_neigh(k->drv, hop.gid, mac);
		if (!fixed)
			err = wait_for_neighbour(k, &s, ifindex, hop.gid, mac);
	}
	nl_close(&s);
	if (err == 0 && !fixed)
		dest_table_note(&k->dests, sgid_index, dgid, &hop, mac);
	return err;
}
