/* SPDX-License-Identifier: BSD-3-Clause */

/* GID tables of both ends: pairs that can reach each other, and the best one. */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "remote.h"

#define NO_VLAN 0xffffu

enum gid_class {
	CLASS_LINK_LOCAL6,
	CLASS_LINK_LOCAL4,
	CLASS_GLOBAL6,
	CLASS_GLOBAL4,
};

static enum gid_class
class_of(const union softhca_gid *g)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(g->raw, mapped, sizeof(mapped)) == 0)
		return g->raw[12] == 169 && g->raw[13] == 254 ? CLASS_LINK_LOCAL4 : CLASS_GLOBAL4;
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80 ? CLASS_LINK_LOCAL6 : CLASS_GLOBAL6;
}

static bool
is_ip4(const union softhca_gid *g)
{
	return class_of(g) == CLASS_GLOBAL4 || class_of(g) == CLASS_LINK_LOCAL4;
}

static bool
is_link_local(const union softhca_gid *g)
{
	return class_of(g) == CLASS_LINK_LOCAL6 || class_of(g) == CLASS_LINK_LOCAL4;
}

int
remote_gids_read(struct softhca_context *ctx, struct remote_gids *gids)
{
	struct softhca_gid_entry entry;
	struct softhca_port_attr port;

	gids->count = 0;
	if (softhca_query_port(ctx, 1, &port) != 0)
		return -EIO;
	for (uint32_t i = 0; i < port.gid_tbl_len && gids->count < REMOTE_GIDS_MAX; i++) {
		int err = softhca_query_gid_ex(ctx, 1, i, &entry, 0);

		if (err == -ENODATA)
			continue;
		if (err != 0)
			return err;
		gids->entry[gids->count] = (struct remote_gid){
			.gid = entry.gid,
			.index = i,
			.vlan = entry.vlan_id == NO_VLAN ? 0 : entry.vlan_id,
		};
		memcpy(gids->entry[gids->count++].mac, entry.mac, 6);
	}
	return 0;
}

static void
address_text(const union softhca_gid *g, char text[INET6_ADDRSTRLEN])
{
	if (is_ip4(g))
		inet_ntop(AF_INET, g->raw + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, g->raw, text, INET6_ADDRSTRLEN);
}

void
remote_gid_text(const struct remote_gid *g, char text[80])
{
	char address[INET6_ADDRSTRLEN];

	address_text(&g->gid, address);
	if (g->vlan != 0)
		snprintf(text, 80, "%s (GID %u, VLAN %u)", address, g->index, g->vlan);
	else
		snprintf(text, 80, "%s (GID %u)", address, g->index);
}

void
remote_gids_print(const struct remote_gids *gids)
{
	static const char *const reach[] = {
		[CLASS_LINK_LOCAL6] = "link-local",
		[CLASS_LINK_LOCAL4] = "link-local",
		[CLASS_GLOBAL6] = "IPv6",
		[CLASS_GLOBAL4] = "IPv4",
	};

	printf("#index address                                 type     VLAN  reach       MAC\n");
	for (unsigned int i = 0; i < gids->count; i++) {
		const struct remote_gid *g = &gids->entry[i];
		char address[INET6_ADDRSTRLEN], vlan[12] = "-";

		address_text(&g->gid, address);
		if (g->vlan != 0)
			snprintf(vlan, sizeof(vlan), "%u", g->vlan);
		printf(" %-5u %-39s RoCEv2   %-5s %-11s %02x:%02x:%02x:%02x:%02x:%02x\n", g->index,
		       address, vlan, reach[class_of(&g->gid)], g->mac[0], g->mac[1], g->mac[2],
		       g->mac[3], g->mac[4], g->mac[5]);
	}
}

void
remote_gids_filter(struct remote_gids *gids, const struct perf_options *opt)
{
	bool ip = perf_option_given(opt, "ip"), vlan = perf_option_given(opt, "vlan");
	unsigned int kept = 0;

	for (unsigned int i = 0; i < gids->count; i++) {
		const struct remote_gid *g = &gids->entry[i];

		if ((opt->remote.gid_index >= 0 && g->index != (uint32_t)opt->remote.gid_index) ||
		    (ip && is_ip4(&g->gid) != (opt->ip == 4)) ||
		    (vlan && g->vlan != opt->embed.vlan))
			continue;
		gids->entry[kept++] = *g;
	}
	gids->count = kept;
}

void
remote_gids_only(struct remote_gids *gids, const union softhca_gid *gid)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < gids->count; i++)
		if (memcmp(gids->entry[i].gid.raw, gid->raw, sizeof(gid->raw)) == 0)
			gids->entry[kept++] = gids->entry[i];
	gids->count = kept;
}

const char *
remote_gid_unroutable(const struct remote_gid *a, const struct remote_gid *b)
{
	if (is_ip4(&a->gid) != is_ip4(&b->gid))
		return "one is IPv4, the other IPv6";
	if (is_link_local(&a->gid) != is_link_local(&b->gid))
		return "one of them is link-local and reaches nothing beyond its link";
	if (a->vlan != b->vlan)
		return "they are on different VLANs";
	return NULL;
}

static unsigned int
common_bits(const union softhca_gid *a, const union softhca_gid *b)
{
	unsigned int n = 0;

	while (n < 128 && ((a->raw[n / 8] ^ b->raw[n / 8]) & (0x80 >> n % 8)) == 0)
		n++;
	return n;
}

bool
remote_gid_adjacent(const struct remote_gid *a, const struct remote_gid *b)
{
	unsigned int prefix = class_of(&a->gid) == CLASS_LINK_LOCAL4 ? 96 + 16
			      : is_ip4(&a->gid)			     ? 96 + 24
								     : 64;

	return common_bits(&a->gid, &b->gid) >= prefix;
}

/* One network before several, IPv4 before IPv6, no VLAN before one, then the nearest. */
static unsigned int
score(const struct remote_gid *a, const struct remote_gid *b)
{
	return (remote_gid_adjacent(a, b) ? 10000 : 0) + 1000 * (unsigned int)class_of(&a->gid) +
	       (a->vlan == 0 ? 500 : 0) + common_bits(&a->gid, &b->gid);
}

static void
say_why(const struct remote_gids *own, const struct remote_gids *peer, char why[256])
{
	char a[80], b[80];

	if (own->count == 0 || peer->count == 0) {
		snprintf(why, 256, "the %s has no GID%s", own->count == 0 ? "client" : "server",
			 " as --gid-index, --ip and --vlan ask for; see --gids");
		return;
	}
	remote_gid_text(&own->entry[0], a);
	remote_gid_text(&peer->entry[0], b);
	snprintf(why, 256, "no pair of GIDs can work: %.70s here, %.70s there: %.60s", a, b,
		 remote_gid_unroutable(&own->entry[0], &peer->entry[0]));
}

int
remote_gids_choose(const struct remote_gids *own, const struct remote_gids *peer,
		   struct remote_gid *mine, struct remote_gid *other, char why[256])
{
	unsigned int best = 0;

	for (unsigned int i = 0; i < own->count; i++) {
		for (unsigned int k = 0; k < peer->count; k++) {
			const struct remote_gid *a = &own->entry[i], *b = &peer->entry[k];
			unsigned int points = score(a, b) + 1;

			if (remote_gid_unroutable(a, b) != NULL || points <= best)
				continue;
			best = points;
			*mine = *a;
			*other = *b;
		}
	}
	if (best != 0)
		return 0;
	say_why(own, peer, why);
	return -ENETUNREACH;
}
