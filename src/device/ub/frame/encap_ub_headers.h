/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_FRAME_ENCAP_UB_HEADERS_H
#define UB_FRAME_ENCAP_UB_HEADERS_H

/* The headers of UB's packets, from Ethernet to the payload. Included by encap_ub.c only. */

#include <stddef.h>
#include <string.h>

#include "ub/record.h"
#include "ub/frame/encap_ub.h"
#include "ub/tp/tp_wire.h"

#define MT_EN 0x08u /* in byte 4 of the BTAH */

/* ---- headers ---- */

/* From Ethernet to UDP, with the packet's own source port; returns where the RTPH begins. */
static inline uint8_t *
put_path(const struct hca_udp_template *t, uint32_t udp_len, uint16_t port, uint8_t *frame)
{
	uint8_t *tph = hca_udp_template_put(t, udp_len, frame), *l3 = frame + t->l3;
	uint32_t label;

	hca_put_be16(tph - HCA_UDP_LEN, port);
	if (likely(t->ip_version != 6))
		return tph;
	label = hca_get_be32(l3) & ~UINT32_C(0xfffff);
	hca_put_be32(l3, label | hca_ub_flow_label(port));
	return tph;
}

static inline uint8_t *
put_entities(const struct hca_tp_cfg *cfg, uint8_t *p)
{
	if (likely(!(cfg->flags & HCA_TP_FLAG_EIDH)))
		return p;
	hca_put_be32(p, 0);
	memcpy(p + HCA_UB_UPIH_LEN, cfg->own_eid, 16);
	memcpy(p + HCA_UB_UPIH_LEN + 16, cfg->peer_eid, 16);
	return p + HCA_UB_UPIH_LEN + HCA_UB_EIDH_LEN;
}

/* BTAH or ATAH: both have these members at the same places. mt_en: MT_EN or 0 */
static inline void
put_btah(const struct hca_ta_op *op, uint8_t opcode, uint32_t mt_en, uint8_t *tah)
{
	uint32_t ta4 = (op->ta4 & ~MT_EN) | mt_en;

	hca_put_be64(tah, (uint64_t)opcode << 56 | (uint64_t)op->ta1 << 48 |
				  (uint64_t)op->tassn << 32 | ta4 << 24 | (op->rc & 0xffffff));
}

static inline void
put_first(const struct hca_ta_op *op, uint8_t opcode, bool response, const struct hca_ub_layout *at,
	  uint8_t *tah)
{
	/* only where a queue is addressed: of a write, in its last packet */
	put_btah(op, opcode, response ? op->ta4 & MT_EN : at->mtetah != 0 ? MT_EN : 0, tah);
}

static inline void
put_maetah(const struct hca_ta_op *op, uint32_t displacement, uint8_t *maetah)
{
	hca_ub_maetah_put(maetah, &(struct hca_ub_maetah){.address = op->req.address + displacement,
							  .token_id = op->req.token_id,
							  .length = op->length});
}

/* Headers of requests that name memory or a queue. */
static __rte_always_inline void
put_target(const struct hca_ta_op *op, const struct hca_ub_layout *at, uint32_t displacement,
	   uint8_t *tah)
{
	if (at->maetah != 0)
		put_maetah(op, displacement, tah + at->maetah);
	if (at->mtetah != 0)
		hca_put_be32(tah + at->mtetah, op->req.tc);
	if (at->tvetah != 0)
		hca_put_be32(tah + at->tvetah, op->req.token);
	if (at->udetah != 0)
		hca_put_be32(tah + at->udetah, op->req.user);
}

/* Headers of last packets that carry data of 64 bits. */
static void
put_data(const struct hca_ta_op *op, const struct hca_ub_layout *at, uint8_t *tah)
{
	bool write = at->maetah != 0;

	if (at->immetah != 0)
		hca_ub_immetah_put(
			tah + at->immetah,
			&(struct hca_ub_immetah){.immediate = op->req.data,
						 .token_value = write ? op->req.notify_token : 0,
						 .length = write ? op->req.total : 0});
	if (at->ntfetah != 0)
		hca_ub_ntfetah_put(tah + at->ntfetah,
				   &(struct hca_ub_ntfetah){.address = op->req.notify,
							    .token_id = op->req.notify_token_id,
							    .token_value = op->req.notify_token,
							    .data = op->req.data});
}

/* Headers of Reads, atomics and their responses, and offsets of Sends. */
static __rte_always_inline void
put_place(const struct hca_ta_op *op, const struct hca_ub_layout *at, uint32_t displacement,
	  uint8_t *tah)
{
	if (at->taidetah != 0)
		hca_ub_taidetah_put(tah + at->taidetah,
				    &(struct hca_ub_taidetah){.taid = HCA_UB_TAID_OF(op->tassn)});
	if (at->ofstetah != 0)
		hca_ub_ofstetah_put(tah + at->ofstetah,
				    &(struct hca_ub_ofstetah){.offset = HCA_UB_READ_OFFSET(
								      op->offset, displacement)});
}

/* The byte enables of a Write_with_be stand in its record. */
static uint8_t *
put_enables(const struct hca_pipe *h, const struct hca_ta_op *op, uint8_t *p)
{
	memcpy(p, hca_ub_record_enables(hca_ub_record(h, op->req.record)), op->length / 8);
	return p + op->length / 8;
}

/* Bytes of the byte enables. */
static inline uint32_t
enables_of(const struct hca_ta_op *op, const struct hca_ub_layout *at)
{
	return unlikely(at->headers & HCA_UB_EXT(BEETAH)) ? op->length / 8 : 0;
}

/* Transaction headers of a packet; returns where its payload begins. */
static inline uint8_t *
put_transaction(const struct hca_pipe *h, const struct hca_ta_op *op, uint8_t opcode,
		const struct hca_ub_layout *at, uint32_t displacement, uint8_t *tah)
{
	const uint32_t usual = HCA_UB_EXT(MAETAH) | HCA_UB_EXT(TVETAH);
	bool response = (hca_ub_ta_ops[opcode].is & HCA_UB_OP_RESPONSE) != 0;

	put_first(op, opcode, response, at, tah);
	if (likely((at->headers | usual) == usual && at->maetah != 0)) {
		put_maetah(op, displacement, tah + at->maetah);
		if (likely(at->tvetah != 0))
			hca_put_be32(tah + at->tvetah, op->req.token);
		return tah + at->beetah;
	}
	if (at->headers & (HCA_UB_EXT(TAIDETAH) | HCA_UB_EXT(OFSTETAH)))
		put_place(op, at, displacement, tah);
	if (response)
		return tah + at->beetah;
	put_target(op, at, displacement, tah);
	if (unlikely(at->headers & (HCA_UB_EXT(IMMETAH) | HCA_UB_EXT(NTFETAH))))
		put_data(op, at, tah);
	if (unlikely(at->headers & HCA_UB_EXT(BEETAH)))
		return put_enables(h, op, tah + at->beetah);
	return tah + at->beetah;
}

/* Transport header up to the transaction header, whose place is returned. */
static inline uint8_t *
put_transport(struct hca_encap_ub_packet k, const struct hca_tp_txd *d, uint8_t *tph)
{
	const struct hca_ub_rtph utph = {.last = 1,
					 .opcode = HCA_UB_TP_UTP,
					 .pad = hca_ub_pad(k.len)};

	if (unlikely(d->tp == HCA_TP_UNRELIABLE))
		hca_ub_rtph_put(tph, &utph);
	else
		hca_tp_write_packet(k.tp, k.op, d, k.len, tph);
	return put_entities(&k.tp->cfg, tph + HCA_UB_RTPH_LEN);
}

static inline uint32_t
entities_len(const struct hca_tp *tp)
{
	return unlikely(tp->cfg.flags & HCA_TP_FLAG_EIDH) ? HCA_UB_UPIH_LEN + HCA_UB_EIDH_LEN : 0;
}

/* From the UDP header to the ICRC. */
static inline uint32_t
udp_len_of(struct hca_encap_ub_packet k, const struct hca_ub_layout *at)
{
	return HCA_UDP_LEN + HCA_UB_RTPH_LEN + entities_len(k.tp) + at->beetah +
	       enables_of(k.op, at) + k.len + hca_ub_pad(k.len) + HCA_ICRC_LEN;
}

/* ---- frames like the one before ---- */

/*
 * The last frame of a run whose transaction headers are fixed words and numbers: the next one
 * differs from it in few words, if it is as long, and the rest is copied.
 */
struct like {
	const uint8_t *frame; /* NULL: none */
	/* the fields in which the next one must equal it */
	uint32_t len, op, descriptor;
	uint64_t btah; /* without TASSN and RC */
	const struct hca_ub_layout *at;
	uint8_t tah, payload;	/* where they are */
	uint8_t maetah, tvetah; /* in the transaction headers */
	uint8_t mtetah, ofstetah;
	bool write; /* it has no other headers than the first two */
	bool send;  /* than the last three */
};

#define LIKE_BYTES 96u					      /* longest headers that are copied */
#define BTAH_NUMBERS (HCA_MASK64(47, 32) | HCA_MASK64(23, 0)) /* TASSN and RC */

/* Both opcodes, ta1 and ta4. */
static inline uint32_t
like_op(const struct hca_ta_op *op)
{
	uint32_t w;

	_Static_assert(offsetof(struct hca_ta_op, ta4) == offsetof(struct hca_ta_op, opcode) + 3,
		       "four bytes in a row");
	memcpy(&w, (const uint8_t *)op + offsetof(struct hca_ta_op, opcode), sizeof(w));
	return w;
}

/* Source port and flags without ASK, which may differ. */
static inline uint32_t
like_descriptor(const struct hca_tp_txd *d)
{
	return (uint32_t)d->port << 8 | (d->flags & (uint8_t)~HCA_TP_TXD_ASK);
}

static inline bool
is_like(const struct like *l, struct hca_encap_ub_packet k, const struct hca_tp_txd *d)
{
	return l->frame != NULL && ((l->len ^ k.len) | (l->op ^ like_op(k.op)) |
				    (l->descriptor ^ like_descriptor(d))) == 0;
}

static inline void
note_like(struct like *l, struct hca_encap_ub_packet k, const struct hca_tp_txd *d,
	  const struct hca_ub_layout *at, const uint8_t *frame, const uint8_t *tah,
	  const uint8_t *payload)
{
	const uint32_t write = HCA_UB_EXT(MAETAH) | HCA_UB_EXT(TVETAH);
	const uint32_t send = HCA_UB_EXT(MTETAH) | HCA_UB_EXT(TVETAH) | HCA_UB_EXT(OFSTETAH);
	const uint32_t usual = write | send | HCA_UB_EXT(UDETAH) | HCA_UB_EXT(TAIDETAH);

	l->frame = NULL;
	if ((at->headers | usual) != usual || payload - frame > LIKE_BYTES)
		return;
	*l = (struct like){.frame = frame,
			   .len = k.len,
			   .op = like_op(k.op),
			   .descriptor = like_descriptor(d),
			   .btah = hca_get_be64(tah) & ~BTAH_NUMBERS,
			   .at = at,
			   .tah = (uint8_t)(tah - frame),
			   .payload = (uint8_t)(payload - frame),
			   .maetah = at->maetah,
			   .tvetah = at->tvetah,
			   .mtetah = at->mtetah,
			   .ofstetah = at->ofstetah,
			   .write = (at->headers | write) == write && at->maetah != 0,
			   .send = (at->headers | send) == send && at->mtetah != 0 &&
				   at->ofstetah != 0};
}

static inline void
put_send(const struct like *l, struct hca_encap_ub_packet k, uint8_t *tah)
{
	hca_put_be32(tah + l->mtetah, k.op->req.tc);
	hca_ub_ofstetah_put(tah + l->ofstetah,
			    &(struct hca_ub_ofstetah){
				    .offset = HCA_UB_READ_OFFSET(k.op->offset, k.displacement)});
	if (likely(l->tvetah != 0))
		hca_put_be32(tah + l->tvetah, k.op->req.token);
}

/* Headers of a frame like the last one; returns where the payload begins. */
static inline uint8_t *
put_like(const struct like *l, struct hca_encap_ub_packet k, const struct hca_udp_template *t,
	 const struct hca_tp_txd *d, uint8_t *frame)
{
	uint8_t *tah = frame + l->tah;

	memcpy(frame, l->frame, LIKE_BYTES);
	hca_tp_write_numbers(k.op, d, frame + t->transport);
	hca_put_be64(tah, l->btah | (uint64_t)k.op->tassn << 32 | (k.op->rc & 0xffffff));
	if (l->send) {
		put_send(l, k, tah);
		return frame + l->payload;
	}
	if (unlikely(!l->write)) {
		put_place(k.op, l->at, k.displacement, tah);
		/* of responses only those of requests are absent */
		put_target(k.op, l->at, k.displacement, tah);
		return frame + l->payload;
	}
	put_maetah(k.op, k.displacement, tah + l->maetah);
	if (likely(l->tvetah != 0))
		hca_put_be32(tah + l->tvetah, k.op->req.token);
	return frame + l->payload;
}

#endif
