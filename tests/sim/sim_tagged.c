/* SPDX-License-Identifier: BSD-3-Clause */

/* Posting and checking of tagged messages; sim_tagged_qp.c creates the QPs. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim_tagged_impl.h"

#define MAGIC 0x7a6d5c4bu
#define GRH 40u
#define REAP_BATCH 32

/* The first bytes of a message. */
struct tag {
	uint32_t magic;
	uint16_t flow, side;
	uint32_t serial, len;
};

_Static_assert(sizeof(struct tag) == 16, "smallest message");

/* Guarantees of a service even on a bad link. */
static const struct promise {
	bool reliable, ordered;
} promise[SIM_SERVICES] = {
	[SIM_RC] = {true, true},
	[SIM_UC] = {false, false}, /* resynchronizes at any FIRST or ONLY */
	[SIM_UD] = {false, false},
	[SIM_XRC] = {true, true},
};

const char *const sim_service_names[SIM_SERVICES] = {
	[SIM_RC] = "RC",
	[SIM_UC] = "UC",
	[SIM_UD] = "UD",
	[SIM_XRC] = "XRC",
};

static uint8_t
pattern(const struct tag *t, uint32_t i)
{
	return (uint8_t)(t->serial * 31 + t->flow * 7 + t->side * 5 + i * 13 + (i >> 8));
}

static void
write_message(uint8_t *p, const struct tag *t)
{
	memcpy(p, t, sizeof(*t));
	for (uint32_t i = sizeof(*t); i < t->len; i++)
		p[i] = pattern(t, i);
}

static uint8_t *
send_slot(struct sim_tagged *t, unsigned int side, uint32_t slot)
{
	return t->end[side].mem + (size_t)slot * SIM_TAGGED_SLOT;
}

static uint8_t *
recv_slot(struct sim_tagged *t, unsigned int side, uint32_t slot)
{
	return send_slot(t, side, SIM_TAGGED_SLOTS + slot);
}

/* wr_id: kind[63] flow[47:32] slot[31:0] */
#define WR_ID(recv, flow, slot) ((uint64_t)(recv) << 63 | (uint64_t)(flow) << 32 | (slot))
#define WR_RECV(id) ((id) >> 63 != 0)
#define WR_FLOW(id) ((uint32_t)((id) >> 32) & 0xffff)
#define WR_SLOT(id) ((uint32_t)(id))

static void
post_recv(struct sim_tagged *t, unsigned int side, uint32_t flow)
{
	struct sim_tagged_end *e = &t->end[side];
	uint32_t slot = e->free_recv[--e->free_recvs];
	struct softhca_sge sge[2] = {
		{.addr = (uintptr_t)recv_slot(t, side, slot), .length = 50, .lkey = e->mr->lkey},
		{.addr = (uintptr_t)recv_slot(t, side, slot) + 50,
		 .length = SIM_TAGGED_SLOT - 50,
		 .lkey = e->mr->lkey},
	};
	struct softhca_recv_wr wr = {.wr_id = WR_ID(1, flow, slot), .sg_list = sge, .num_sge = 2};
	struct softhca_recv_wr *bad;
	int rc;

	memset(recv_slot(t, side, slot), 0xee, SIM_TAGGED_SLOT);
	if (sim_tagged_has_srq(t))
		rc = softhca_post_srq_recv(e->srq, &wr, &bad);
	else
		rc = softhca_post_recv(e->qp[flow], &wr, &bad);
	sim_check(t->s, rc == 0, "post_recv: %d: %s", rc, softhca_last_error(NULL));
	e->posted[flow]++;
}

void
sim_tagged_fill(struct sim_tagged *t)
{
	uint32_t flows = sim_tagged_has_srq(t) ? 1 : t->attr.flows;

	for (unsigned int side = 0; side < 2; side++)
		for (uint32_t f = 0; f < flows; f++)
			while (t->end[side].free_recvs != 0 &&
			       t->end[side].posted[f] < SIM_TAGGED_SLOTS / flows)
				post_recv(t, side, f);
}

static uint32_t
random_len(struct sim_tagged *t)
{
	struct sim_rng *r = &sim_model(t->s)->rng;
	uint32_t max = t->attr.max_len, len = sizeof(struct tag);

	if (sim_below(r, 8) == 0)
		return max;
	return len + sim_below(r, sim_below(r, 2) ? max - len + 1 : 200);
}

bool
sim_tagged_send(struct sim_tagged *t, unsigned int side, uint32_t flow)
{
	struct sim_tagged_end *e = &t->end[side];
	struct sim_tagged_dir *d = &t->dir[flow][side];
	struct softhca_send_wr wr = {.num_sge = 1}, *bad;
	struct softhca_sge sge = {.lkey = e->mr->lkey};
	struct tag tag = {.magic = MAGIC, .flow = (uint16_t)flow, .side = (uint16_t)side};
	bool imm = sim_below(&sim_model(t->s)->rng, 3) == 0;
	uint32_t slot;
	int rc;

	if (e->free_sends == 0 || d->sent - d->completed >= SIM_TAGGED_DEPTH)
		return false;
	slot = e->free_send[e->free_sends - 1];
	tag.serial = d->sent;
	tag.len = random_len(t);
	write_message(send_slot(t, side, slot), &tag);
	sge.addr = (uintptr_t)send_slot(t, side, slot);
	sge.length = tag.len;
	wr.wr_id = WR_ID(0, flow, slot);
	wr.sg_list = &sge;
	wr.opcode = imm ? SOFTHCA_WR_SEND_WITH_IMM : SOFTHCA_WR_SEND;
	wr.imm_data = tag.serial;
	wr.send_flags = SOFTHCA_SEND_SIGNALED;
	sim_tagged_address(t, side, flow, &wr);
	rc = softhca_post_send(e->qp[flow], &wr, &bad);
	sim_check(t->s, rc == 0, "post_send: %d: %s", rc, softhca_last_error(NULL));
	e->free_sends--;
	d->sent++;
	return true;
}

/* Check the 40 bytes before a datagram against its source. */
static void
check_grh(struct sim_tagged *t, unsigned int side, const uint8_t *grh)
{
	uint8_t from[16], to[16];

	sim_gid(t->attr.loop ? 0 : 1 - side, t->attr.gid, from);
	sim_gid(t->attr.loop ? 0 : side, t->attr.gid, to);
	if (from[10] == 0xff) {
		/* the ICRC does not cover the traffic class: a bad link may have changed it */
		sim_check(t->s,
			  grh[20] == 0x45 &&
				  (!t->lossless || grh[21] >> 2 == t->attr.traffic_class >> 2),
			  "no IPv4 header in front: %02x %02x", grh[20], grh[21]);
		sim_check(t->s, memcmp(grh + 32, from + 12, 4) == 0, "source address");
		sim_check(t->s, memcmp(grh + 36, to + 12, 4) == 0, "destination address");
		for (unsigned int i = 0; i < 20; i++)
			sim_check(t->s, grh[i] == 0, "byte %u before the IPv4 header", i);
	} else {
		sim_check(t->s, grh[0] >> 4 == 6, "no IPv6 header in front: %02x", grh[0]);
		sim_check(t->s, memcmp(grh + 8, from, 16) == 0, "source address");
		sim_check(t->s, memcmp(grh + 24, to, 16) == 0, "destination address");
	}
}

static void
check_message(struct sim_tagged *t, unsigned int side, const uint8_t *p, uint32_t len,
	      const struct softhca_wc *wc, struct tag *tag)
{
	sim_check(t->s, len >= sizeof(*tag), "a message of %u bytes", len);
	memcpy(tag, p, sizeof(*tag));
	sim_check(t->s,
		  tag->magic == MAGIC && tag->side == 1 - side && tag->flow < t->attr.flows &&
			  tag->len == len,
		  "tag %08x of flow %u, side %u, %u bytes in a message of %u", tag->magic,
		  tag->flow, tag->side, tag->len, len);
	for (uint32_t i = sizeof(*tag); i < len; i++)
		sim_check(t->s, p[i] == pattern(tag, i), "flow %u message %u: byte %u of %u wrong",
			  tag->flow, tag->serial, i, len);
	/* an abandoned message may have been longer */
	for (uint32_t i = len;
	     i < len + 8 && !t->cut && (promise[t->attr.service].reliable || t->lossless); i++)
		sim_check(t->s, p[i] == 0xee, "a byte behind the message was written");
	sim_check(t->s, !(wc->wc_flags & SOFTHCA_WC_WITH_IMM) || wc->imm_data == tag->serial,
		  "immediate %u of message %u", wc->imm_data, tag->serial);
	sim_check(t->s, wc->qp_num == t->end[side].tgt[tag->flow]->qp_num,
		  "a message of flow %u by QP %#x", tag->flow, wc->qp_num);
}

static void
check_order(struct sim_tagged *t, const struct tag *tag)
{
	struct sim_tagged_dir *d = &t->dir[tag->flow][tag->side];
	const struct promise *p = &promise[t->attr.service];
	bool in_order = tag->serial >= d->next;

	sim_check(t->s, tag->serial < d->sent, "message %u of %u sent", tag->serial, d->sent);
	sim_check(t->s, in_order || !(p->ordered || t->lossless), "%s flow %u: message %u after %u",
		  sim_service_names[t->attr.service], tag->flow, tag->serial, d->next);
	sim_check(t->s, tag->serial == d->next || !(p->reliable || t->lossless),
		  "%s flow %u: message %u where %u was due", sim_service_names[t->attr.service],
		  tag->flow, tag->serial, d->next);
	if (in_order)
		d->next = tag->serial + 1;
	else
		d->late++;
	d->received++;
}

/* Only datagrams tell the VLAN tag that they came with. */
static void
check_vlan(const struct sim_tagged *t, uint16_t vlan)
{
	uint16_t id = sim_gid_vlan[t->attr.gid];
	bool tagged = t->attr.service == SIM_UD && id != 0xffff;

	sim_check(t->s, vlan == (tagged ? t->attr.sl << 13 | id : 0), "%s over %s: VLAN tag %#x",
		  sim_service_names[t->attr.service], sim_gid_names[t->attr.gid], vlan);
}

static void
judge_recv(struct sim_tagged *t, unsigned int side, const struct softhca_wc *wc)
{
	struct sim_tagged_end *e = &t->end[side];
	uint32_t slot = WR_SLOT(wc->wr_id), skip = t->attr.service == SIM_UD ? GRH : 0;
	const uint8_t *p = recv_slot(t, side, slot);
	struct tag tag;

	sim_check(t->s, wc->status == SOFTHCA_WC_SUCCESS, "receive: %s",
		  softhca_wc_status_str(wc->status));
	sim_check(t->s, wc->byte_len >= skip, "%u bytes received", wc->byte_len);
	if (skip != 0) {
		sim_check(t->s, (wc->wc_flags & SOFTHCA_WC_GRH) != 0, "no GRH");
		check_grh(t, side, p);
	}
	check_message(t, side, p + skip, wc->byte_len - skip, wc, &tag);
	if (skip != 0)
		sim_check(t->s, wc->src_qp == t->end[1 - side].qp[tag.flow]->qp_num,
			  "source QP %#x", wc->src_qp);
	check_order(t, &tag);
	e->free_recv[e->free_recvs++] = slot;
	e->posted[WR_FLOW(wc->wr_id)]--;
}

static void
judge_send(struct sim_tagged *t, unsigned int side, const struct softhca_wc *wc)
{
	struct sim_tagged_end *e = &t->end[side];
	uint32_t flow = WR_FLOW(wc->wr_id);

	sim_check(t->s, wc->status == SOFTHCA_WC_SUCCESS, "%s send: %s",
		  sim_service_names[t->attr.service], softhca_wc_status_str(wc->status));
	sim_check(t->s, wc->qp_num == e->qp[flow]->qp_num, "a send of QP %#x", wc->qp_num);
	t->dir[flow][side].completed++;
	e->free_send[e->free_sends++] = WR_SLOT(wc->wr_id);
}

static int
take(struct sim_tagged *t, unsigned int side, struct softhca_wc *wc)
{
	struct softhca_cq *cq = t->end[side].cq;
	uint16_t vlan[REAP_BATCH];
	int n;

	if (!t->attr.read)
		return softhca_poll_cq(cq, REAP_BATCH, wc);
	n = sim_read_cq(t->s, cq, REAP_BATCH, wc, vlan);
	for (int i = 0; i < n && t->lossless; i++)
		if (WR_RECV(wc[i].wr_id))
			check_vlan(t, vlan[i]);
	return n;
}

unsigned int
sim_tagged_reap(struct sim_tagged *t)
{
	struct softhca_wc wc[REAP_BATCH];
	unsigned int done = 0;

	for (unsigned int side = 0; side < 2; side++) {
		int n = take(t, side, wc);

		sim_check(t->s, n >= 0, "poll_cq: %d", n);
		for (int i = 0; i < n; i++) {
			if (WR_RECV(wc[i].wr_id))
				judge_recv(t, side, &wc[i]);
			else
				judge_send(t, side, &wc[i]);
		}
		done += (unsigned int)n;
	}
	return done;
}

static bool
all_sent(struct sim *s, void *arg)
{
	struct sim_tagged *t = arg;

	(void)s;
	sim_tagged_reap(t);
	sim_tagged_fill(t);
	for (uint32_t f = 0; f < t->attr.flows; f++)
		for (unsigned int side = 0; side < 2; side++)
			if (t->dir[f][side].completed != t->dir[f][side].sent)
				return false;
	return true;
}

void
sim_tagged_finish(struct sim_tagged *t)
{
	bool all = promise[t->attr.service].reliable || t->lossless;

	sim_check(t->s, sim_run_until(t->s, all_sent, t, 60 * SIM_S), "sends do not complete");
	do {
		sim_settle(t->s);
		sim_tagged_fill(t);
	} while (sim_tagged_reap(t) != 0);
	for (uint32_t f = 0; f < t->attr.flows; f++) {
		for (unsigned int side = 0; side < 2; side++) {
			struct sim_tagged_dir *d = &t->dir[f][side];

			sim_check(t->s, !all || d->received == d->sent,
				  "%s flow %u from side %u: %u of %u received",
				  sim_service_names[t->attr.service], f, side, d->received,
				  d->sent);
			sim_check(t->s, t->duplicates || d->received <= d->sent,
				  "flow %u: %u received of %u", f, d->received, d->sent);
		}
	}
}
