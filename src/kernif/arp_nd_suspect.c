/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Suspects: hosts that answer without a request. A host that poisons its neighbours' tables sends
 * answers all the time, so that one of them is often the first after a request. A suspect's later
 * answers are accepted only if no other host answers.
 */

#include "arp_nd_impl.h"

#define SUSPECT_NS 60000000000ull

static struct suspect *
find(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6])
{
	for (uint32_t i = 0; i < ARP_ND_SUSPECTS; i++) {
		struct suspect *s = &a->suspect[i];

		if (s->until != 0 && s->hop.vlan_id == hop->vlan_id &&
		    memcmp(s->hop.gid, hop->gid, sizeof(hop->gid)) == 0 &&
		    memcmp(s->mac, mac, 6) == 0)
			return s;
	}
	return NULL;
}

static struct suspect *
oldest(struct arp_nd *a)
{
	struct suspect *s = &a->suspect[0];

	for (uint32_t i = 1; i < ARP_ND_SUSPECTS; i++)
		if (a->suspect[i].until < s->until)
			s = &a->suspect[i];
	return s;
}

bool
arp_nd_suspected(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6], uint64_t now)
{
	const struct suspect *s = find(a, hop, mac);

	return s != NULL && now < s->until;
}

void
arp_nd_suspect(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6], uint64_t now)
{
	struct suspect *s = find(a, hop, mac);

	if (s == NULL)
		s = oldest(a);
	*s = (struct suspect){.hop = *hop, .until = now + SUSPECT_NS};
	memcpy(s->mac, mac, 6);
}

void
arp_nd_absolve(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6])
{
	struct suspect *s = find(a, hop, mac);

	if (s != NULL)
		s->until = 0;
}
