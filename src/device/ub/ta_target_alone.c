/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The usual request: a write of one packet, to memory of this process, that nothing speaks against.
 * It is judged, stored and answered here; every other packet, and every one that is to be refused,
 * is left to the general way, untouched.
 */

#include "ub/ta_target.h"

/*
 * The BTAH as one big-endian word, and what it is in the usual request: opcode Write, version 0,
 * the normal environment, no Poison, no UDETAH, no MTETAH, no E_bit, RC type 0 or 1. TV_EN, TASSN,
 * order, FCE, Retry, Alloc and the RC id are left out.
 */
#define FIXED_MASK UINT64_C(0xfff7000008e00000)
#define FIXED ((uint64_t)HCA_UB_TA_WRITE << 56 | (uint64_t)HCA_UB_EE_NORMAL << 52)
#define RC_MASK UINT64_C(0x3fffff)

static inline bool
is_usual(uint64_t btah)
{
	return (btah & FIXED_MASK) == FIXED &&
	       HCA_UB_ODR_EXECUTION(HCA_BITS(btah, 30, 28)) != HCA_UB_CODE_RESERVED;
}

/* Nothing is known of its TPMSN, and the peer may have one more request. */
static inline bool
is_new(const struct hca_tp *tp, const struct hca_ub_rxd *r)
{
	const struct tat_open *ring = tp->open;

	if (unlikely((uint32_t)tp->tat.open + tp->tat.owed >= tp->cfg.requests))
		return false;
	/* the ring is not looked at where nothing can be in it */
	return likely(tp->tat.open == 0 && !tp->tat.cut) ||
	       ring[r->tpmsn & (2u * tp->cfg.window - 1)].flags == 0;
}

/* Bytes of its payload; 0: none, or not as the length says. */
static inline uint32_t
payload_len(const struct hca_tp *tp, const struct hca_ub_rxd *r, const struct hca_ub_layout *at,
	    const uint8_t *tah)
{
	uint32_t n = (uint32_t)r->end - r->ta, headers = at->beetah, len;

	if (unlikely(n < headers + r->pad))
		return 0;
	len = n - headers - r->pad;
	if (unlikely(len > 1u << tp->cfg.mtu_log || len != hca_ub_maetah_length(tah + at->maetah)))
		return 0;
	return len;
}

/* Its segment, if all is right. */
static inline const struct hca_mpt_entry *
segment(const struct hca *h, const struct hca_ub_layout *at, const uint8_t *tah, uint64_t va,
	uint32_t len)
{
	const struct hca_token_access a = {
		.va = va,
		.len = len,
		.token_id = hca_ub_maetah_token_id(tah + at->maetah),
		.value = at->tvetah != 0 ? hca_ub_tvetah_token_value(tah + at->tvetah) : 0,
		.right = HCA_ACCESS_REMOTE_WRITE,
		.has_value = at->tvetah != 0,
	};
	const struct hca_mpt_entry *e;

	if (unlikely(hca_token_judge(&h->core, &a, true, &e) != HCA_TOKEN_OK || e->foreign))
		return NULL;
	return e;
}

bool
tat_write_alone(struct hca *h, struct rte_mbuf *m)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tah = hca_ub_rxd_tph(m) + r->ta;
	struct hca_tp *tp = &h->ub->tp[r->tp];
	const struct hca_ub_layout *at;
	const struct hca_mpt_entry *e;
	uint64_t btah, va;
	uint32_t len;

	if (unlikely(r->tp == HCA_TP_UNRELIABLE || !(r->flags & HCA_UB_RXD_LAST)))
		return false;
	btah = hca_get_be64(tah);
	if (!is_usual(btah) || unlikely(r->generation != tp->cfg.generation ||
					!hca_tp_receives(hca_tp_state(tp)) || !is_new(tp, r)))
		return false;
	at = hca_ub_layout_of(HCA_UB_TA_WRITE, tah[1], tp->cfg.flags);
	len = payload_len(tp, r, at, tah);
	if (unlikely(len == 0))
		return false;
	va = hca_ub_maetah_address(tah + at->maetah);
	e = segment(h, at, tah, va, len);
	if (unlikely(e == NULL))
		return false;
	hca_vtp_scatter(&h->vtp, e, va, tah + at->beetah, len, h->icrc);
	__atomic_store_n(&tp->tat.requests, tp->tat.requests + 1, __ATOMIC_RELAXED);
	tat_owe_done(h, tp, (uint32_t)(btah & RC_MASK), (uint16_t)(btah >> 32));
	return true;
}
