/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The host's part of IGMP and MLD: which groups it is in, and when that is reported. A change is
 * reported twice. Queries are answered after a random delay within the time that they allow; a
 * flood of them costs one answer per link or group in ANSWER_GAP. Queriers of older versions get
 * the messages of their version, from each host: reports of others suppress none, because switches
 * that filter by port need all.
 */

#include <errno.h>

#include "arp_nd_impl.h"

#define SECOND 1000000000ull
#define CHANGES 2u	     /* the robustness variable */
#define CHANGE_WITHIN SECOND /* unsolicited report interval, RFC 3376 section 8.11 */
#define ANSWER_GAP (SECOND / 2)
/* how long a querier is taken to be present: 2 query intervals of 125 s, and 10 s */
#define QUERIER_PRESENT (260 * SECOND)
#define NEVER UINT64_MAX

static enum group_protocol
group_protocol_of(const struct arp_nd_hop *group)
{
	return hca_gid_is_mapped(group->gid) ? GROUP_IGMP : GROUP_MLD;
}

static struct group_link *
group_link_of(struct arp_nd *a, uint16_t vlan_id)
{
	for (uint32_t i = 0; i < a->groups.num_links; i++)
		if (a->groups.link[i].vlan_id == vlan_id)
			return &a->groups.link[i];
	return NULL;
}

/* The oldest generation of queriers that are present. */
static unsigned int
group_generation_of(const struct group_querier *q, uint64_t now)
{
	unsigned int i = GROUP_GENERATIONS - 1;

	while (i > 0 && now >= q->until[i])
		i--;
	return i;
}

/* A number below limit, which is not 0 (splitmix64). */
static uint64_t
group_draw(struct group_table *t, uint64_t limit)
{
	uint64_t z = t->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % limit;
}

static void
group_wake_at(struct group_table *t, uint64_t at)
{
	if (at < t->due)
		t->due = at;
}

/* ---- the table ---- */

static uint16_t *
group_chain(struct group_table *t, const struct arp_nd_hop *group)
{
	uint32_t h = group->vlan_id;

	for (unsigned int i = 0; i < 16; i++)
		h = (h ^ group->gid[i]) * 0x01000193u;
	return &t->head[(h ^ (h >> 16)) % GROUP_HASH];
}

static struct group_entry *
group_find(struct group_table *t, const struct arp_nd_hop *group)
{
	for (uint32_t i = *group_chain(t, group); i != 0; i = t->entry[i - 1].next) {
		struct group_entry *e = &t->entry[i - 1];

		if (e->hop.vlan_id == group->vlan_id && memcmp(e->hop.gid, group->gid, 16) == 0)
			return e;
	}
	return NULL;
}

static struct group_entry *
group_add(struct group_table *t, const struct arp_nd_hop *group)
{
	uint16_t *chain = group_chain(t, group), index = t->free;
	struct group_entry *e;

	if (index != 0)
		t->free = t->entry[index - 1].next;
	else if (t->end < ARP_ND_GROUPS)
		index = (uint16_t)++t->end;
	else
		return NULL;
	e = &t->entry[index - 1];
	*e = (struct group_entry){.hop = *group, .next = *chain, .used = true};
	*chain = index;
	return e;
}

static void
group_drop(struct group_table *t, struct group_entry *e)
{
	uint16_t index = (uint16_t)(e - t->entry + 1), *at = group_chain(t, &e->hop);

	while (*at != index)
		at = &t->entry[*at - 1].next;
	*at = e->next;
	*e = (struct group_entry){.next = t->free};
	t->free = index;
}

/* ---- joins ---- */

/* Groups of all hosts and of the host itself are not reported (RFC 3810 section 6). */
static bool
group_is_reported(const uint8_t group[16])
{
	static const uint8_t all4[16] = {[10] = 0xff, 0xff, 224, 0, 0, 1};
	static const uint8_t all6[16] = {0xff, 2, [15] = 1};

	if (hca_gid_is_mapped(group))
		return memcmp(group, all4, 16) != 0;
	return (group[1] & 0xf) >= 2 && memcmp(group, all6, 16) != 0;
}

static void
group_changed(struct group_table *t, struct group_entry *e, uint64_t now)
{
	e->changes = CHANGES;
	e->change_at = now;
	group_wake_at(t, now);
}

int
arp_nd_join(struct arp_nd *a, const struct arp_nd_hop *group, uint64_t now)
{
	struct group_table *t = &a->groups;
	struct group_entry *e;

	if (!hca_gid_is_multicast(group->gid) || group_link_of(a, group->vlan_id) == NULL)
		return -EINVAL;
	if (!group_is_reported(group->gid))
		return 0;
	e = group_find(t, group);
	if (e == NULL)
		e = group_add(t, group);
	if (e == NULL)
		return -ENOSPC;
	if (e->refs++ == 0)
		group_changed(t, e, now);
	return 0;
}

int
arp_nd_leave(struct arp_nd *a, const struct arp_nd_hop *group, uint64_t now)
{
	struct group_entry *e = group_find(&a->groups, group);

	if (!group_is_reported(group->gid))
		return 0;
	if (e == NULL || e->refs == 0)
		return -ENOENT;
	if (--e->refs == 0) {
		e->answer_at = 0;
		group_changed(&a->groups, e, now);
	}
	return 0;
}

void
arp_nd_group_announce(struct arp_nd *a, uint64_t now)
{
	struct group_table *t = &a->groups;

	for (uint32_t i = 0; i < t->end; i++)
		if (t->entry[i].refs != 0)
			group_changed(t, &t->entry[i], now);
}

void
arp_nd_leave_all(struct arp_nd *a, uint64_t now)
{
	struct group_table *t = &a->groups;

	for (uint32_t i = 0; i < t->end; i++) {
		struct group_entry *e = &t->entry[i];

		if (!e->used)
			continue;
		e->refs = 0;
		group_changed(t, e, now);
		e->changes = 1;
	}
	arp_nd_group_tick(a, now);
}

/* Neighbours ask for an IPv6 address in this group (RFC 4861 section 7.2.1). */
static void
group_join_solicited(struct arp_nd *a, const struct arp_nd_address *own)
{
	const uint8_t *ip = own->gid;
	const struct arp_nd_hop group = {
		.gid = {0xff, 2, [11] = 1, 0xff, ip[13], ip[14], ip[15]},
		.vlan_id = own->vlan_id,
	};

	(void)arp_nd_join(a, &group, 0);
}

/* Links are those of the own addresses, so that frames cannot add any. */
void
arp_nd_group_init(struct arp_nd *a)
{
	struct group_table *t = &a->groups;

	t->random = a->cfg.seed;
	t->due = NEVER;
	t->link[t->num_links++].vlan_id = ARP_ND_NO_VLAN;
	for (uint32_t i = 0; i < a->cfg.num_addresses; i++)
		if (group_link_of(a, a->address[i].vlan_id) == NULL)
			t->link[t->num_links++].vlan_id = a->address[i].vlan_id;
	for (uint32_t i = 0; i < a->cfg.num_addresses; i++)
		if (!hca_gid_is_mapped(a->address[i].gid))
			group_join_solicited(a, &a->address[i]);
}

/* ---- queries ---- */

/* When to answer: after a random delay, and not again at once. */
static uint64_t
group_answer_time(struct group_table *t, uint64_t within, uint64_t answered, uint64_t now)
{
	uint64_t at = now + group_draw(t, within + 1);

	return answered != 0 ? RTE_MAX(at, answered + ANSWER_GAP) : at;
}

static void
group_answer_by(struct group_table *t, uint64_t *answer_at, uint64_t at)
{
	if (*answer_at == 0 || at < *answer_at)
		*answer_at = at;
	group_wake_at(t, at);
}

/* The querier uses an older version than before: drop the pending reports. */
static void
group_forget_reports(struct arp_nd *a, const struct group_link *l, enum group_protocol protocol)
{
	struct group_table *t = &a->groups;

	for (uint32_t i = 0; i < t->end; i++) {
		struct group_entry *e = &t->entry[i];

		if (!e->used || e->hop.vlan_id != l->vlan_id ||
		    group_protocol_of(&e->hop) != protocol)
			continue;
		e->answer_at = 0;
		e->changes = 0;
		if (e->refs == 0)
			group_drop(t, e);
	}
}

static void
group_heard_querier(struct arp_nd *a, struct group_link *l, const struct group_query *q,
		    uint64_t now)
{
	struct group_querier *known = &l->querier[q->protocol];
	unsigned int was = group_generation_of(known, now);

	if (q->generation != 0)
		known->until[q->generation] = now + QUERIER_PRESENT;
	if (q->generation > was) {
		known->answer_at = 0;
		group_forget_reports(a, l, q->protocol);
	}
}

/* Older versions have a message for each group, each with a delay of its own. */
static void
group_general_old(struct arp_nd *a, const struct group_link *l, const struct group_query *q,
		  uint64_t now)
{
	struct group_table *t = &a->groups;

	for (uint32_t i = 0; i < t->end; i++) {
		struct group_entry *e = &t->entry[i];

		if (e->refs != 0 && e->hop.vlan_id == l->vlan_id &&
		    group_protocol_of(&e->hop) == q->protocol)
			group_answer_by(t, &e->answer_at,
					group_answer_time(t, q->within, e->answered, now));
	}
}

static void
group_general(struct arp_nd *a, struct group_link *l, const struct group_query *q, uint64_t now)
{
	struct group_querier *known = &l->querier[q->protocol];

	if (group_generation_of(known, now) == 0) {
		group_answer_by(&a->groups, &known->answer_at,
				group_answer_time(&a->groups, q->within, known->answered, now));
		return;
	}
	if (known->asked != 0 && now - known->asked < ANSWER_GAP)
		return;
	known->asked = now;
	group_general_old(a, l, q, now);
}

/* An answer to a general query that comes sooner says the same. */
static void
group_specific(struct arp_nd *a, const struct group_link *l, const struct group_query *q,
	       uint64_t now)
{
	const struct group_querier *known = &l->querier[q->protocol];
	struct arp_nd_hop group = {.vlan_id = l->vlan_id};
	struct group_entry *e;
	uint64_t at;

	memcpy(group.gid, q->group, sizeof(group.gid));
	e = group_find(&a->groups, &group);
	if (e == NULL || e->refs == 0)
		return;
	at = group_answer_time(&a->groups, q->within, e->answered, now);
	if (known->answer_at == 0 || at < known->answer_at)
		group_answer_by(&a->groups, &e->answer_at, at);
}

void
arp_nd_group_asked(struct arp_nd *a, uint16_t vlan_id, const struct group_query *q, uint64_t now)
{
	struct group_link *l = group_link_of(a, vlan_id);

	if (l == NULL) {
		a->stats.not_ours++;
		return;
	}
	a->stats.group_queries++;
	group_heard_querier(a, l, q, now);
	if (q->general)
		group_general(a, l, q, now);
	else
		group_specific(a, l, q, now);
}

/* ---- pending work ---- */

static unsigned int
group_generation_for(struct arp_nd *a, const struct arp_nd_hop *group, uint64_t now)
{
	const struct group_link *l = group_link_of(a, group->vlan_id);

	return group_generation_of(&l->querier[group_protocol_of(group)], now);
}

static void
group_report_one(struct arp_nd *a, struct group_report *r, const struct group_entry *e,
		 enum group_record type, uint64_t now)
{
	unsigned int generation = group_generation_for(a, &e->hop, now);

	if (generation == 0)
		arp_nd_report_add(a, r, &e->hop, type);
	else
		arp_nd_report_old(a, &e->hop, generation, type == GROUP_TO_INCLUDE);
}

static void
group_report_change(struct arp_nd *a, struct group_report *r, struct group_entry *e, uint64_t now)
{
	bool joined = e->refs != 0;

	group_report_one(a, r, e, joined ? GROUP_TO_EXCLUDE : GROUP_TO_INCLUDE, now);
	e->changes--;
	e->change_at = now + 1 + group_draw(&a->groups, CHANGE_WITHIN);
	if (!joined && group_generation_for(a, &e->hop, now) != 0)
		e->changes = 0; /* one message is enough for the querier to ask */
	if (e->changes == 0 && !joined)
		group_drop(&a->groups, e);
}

static void
group_entry_due(struct arp_nd *a, struct group_report *r, struct group_entry *e, uint64_t now)
{
	if (e->answer_at != 0 && now >= e->answer_at) {
		e->answer_at = 0;
		e->answered = now;
		group_report_one(a, r, e, GROUP_IS_EXCLUDE, now);
	}
	if (e->changes != 0 && now >= e->change_at)
		group_report_change(a, r, e, now);
	if (e->answer_at != 0)
		group_wake_at(&a->groups, e->answer_at);
	if (e->changes != 0)
		group_wake_at(&a->groups, e->change_at);
}

/* Answer a general query with all groups of the link. */
static void
group_answer_general(struct arp_nd *a, struct group_report *r, const struct group_link *l,
		     enum group_protocol protocol, uint64_t now)
{
	struct group_table *t = &a->groups;

	for (uint32_t i = 0; i < t->end; i++) {
		struct group_entry *e = &t->entry[i];

		if (e->refs == 0 || e->hop.vlan_id != l->vlan_id ||
		    group_protocol_of(&e->hop) != protocol)
			continue;
		e->answer_at = 0;
		group_report_one(a, r, e, GROUP_IS_EXCLUDE, now);
	}
}

static void
group_link_due(struct arp_nd *a, struct group_report *r, struct group_link *l, uint64_t now)
{
	for (unsigned int i = 0; i < GROUP_PROTOCOLS; i++) {
		struct group_querier *q = &l->querier[i];

		if (q->answer_at != 0 && now >= q->answer_at) {
			q->answer_at = 0;
			q->answered = now;
			group_answer_general(a, r, l, (enum group_protocol)i, now);
		}
		if (q->answer_at != 0)
			group_wake_at(&a->groups, q->answer_at);
	}
}

void
arp_nd_group_tick(struct arp_nd *a, uint64_t now)
{
	struct group_table *t = &a->groups;
	struct group_report r;

	if (now < t->due)
		return;
	r.protocol = GROUP_IGMP;
	r.vlan_id = ARP_ND_NO_VLAN;
	r.count = 0;
	r.len = 0;
	t->due = NEVER;
	for (uint32_t i = 0; i < t->num_links; i++)
		group_link_due(a, &r, &t->link[i], now);
	for (uint32_t i = 0; i < t->end; i++)
		if (t->entry[i].used)
			group_entry_due(a, &r, &t->entry[i], now);
	arp_nd_report_send(a, &r);
}
