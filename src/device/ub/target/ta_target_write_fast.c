/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The usual request: a write of one packet, to memory of this process, that nothing speaks against.
 * It is judged, stored and answered here; every other packet, and every one that is to be refused,
 * is left to the general way, untouched.
 */

#include <rte_prefetch.h>

#include "ub/target/ta_target.h"

/*
 * The BTAH as one big-endian word, and its value in the usual request: opcode Write, version 0,
 * the normal environment, no Poison, no UDETAH, no MTETAH, no E_bit, RC type 0 or 1. TV_EN, TASSN,
 * order, FCE, Retry, Alloc and the RC id are left out.
 */
#define FIXED_MASK UINT64_C(0xfff7000008e00000)
#define FIXED ((uint64_t)HCA_UB_TA_WRITE << 56 | (uint64_t)HCA_UB_EE_NORMAL << 52)
#define RC_MASK UINT64_C(0x3fffff)

static inline bool
tat_is_fast_write(uint64_t btah)
{
	return (btah & FIXED_MASK) == FIXED &&
	       HCA_UB_ODR_EXECUTION(HCA_BITS(btah, 30, 28)) != HCA_UB_CODE_RESERVED;
}

/* Packets of one TP in a row, which have much in common. */
struct run {
	struct hca_tp *tp;
	const struct hca_ub_layout *at; /* of the last packet; NULL: of none */
	uint32_t tpi, generation, mtu;
	uint8_t ta1; /* byte 1 of the BTAH, for which `at` is right */
	bool looks;  /* the ring of open requests may have something */
};

/* False: no packet of the TP may be executed here. */
static inline bool
tat_run_begin(const struct hca_pipe *h, const struct hca_ub_rxd *r, struct run *run)
{
	struct hca_tp *tp = &h->ub->tp[r->tp];

	*run = (struct run){.tp = tp,
			    .tpi = r->tp,
			    .generation = tp->cfg.generation,
			    .mtu = 1u << tp->cfg.mtu_log,
			    .looks = tp->tat.open != 0 || tp->tat.cut};
	return likely(r->tp != HCA_TP_UNRELIABLE && hca_tp_receives(hca_tp_state(tp)) &&
		      !tp->tat.flooded && !(h->cfg.ub_choices & HCA_UB_SWITCH_EDGE));
}

/* Requests that the peer may have more. */
static inline uint32_t
tat_run_room(const struct hca_tp *tp)
{
	uint32_t used = (uint32_t)tp->tat.open + tp->tat.owed;

	return tp->cfg.requests - RTE_MIN(used, tp->cfg.requests);
}

/* Nothing is known of its TPMSN. */
static inline bool
tat_run_is_new(const struct run *run, const struct hca_ub_rxd *r)
{
	const struct tat_open *ring = run->tp->open;

	return likely(!run->looks) || ring[r->tpmsn & (2u * run->tp->cfg.window - 1)].flags == 0;
}

/* Bytes of its payload; 0: none, or not as the length says. */
static inline uint32_t
tat_run_payload_len(const struct run *run, const struct hca_ub_rxd *r, const uint8_t *tah)
{
	const struct hca_ub_layout *at = run->at;
	uint32_t n = (uint32_t)r->end - r->ta, headers = at->beetah, len;

	if (unlikely(n < headers + r->pad))
		return 0;
	len = n - headers - r->pad;
	if (unlikely(len > run->mtu || len != hca_ub_maetah_length(tah + at->maetah)))
		return 0;
	return len;
}

/* Its segment, if all is right. */
static inline const struct hca_mpt_entry *
tat_run_segment(const struct hca_pipe *h, const struct run *run, const uint8_t *tah, uint64_t va,
		uint32_t len)
{
	const struct hca_ub_layout *at = run->at;
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

static inline void
tat_run_store(const struct hca_pipe *h, const struct hca_mpt_entry *e, uint64_t va,
	      const uint8_t *src, uint32_t len)
{
	if (likely(e->base != NULL))
		hca_copy_last_byte_last(h->icrc, e->base + (va - e->start), src, len);
	else
		hca_vtp_scatter(&h->vtp, e, va, src, len, h->icrc);
}

/* The answer of a request, executed after i others. */
static inline void
tat_run_owe(const struct run *run, uint64_t btah, unsigned int i)
{
	*tat_owed_at(run->tp, run->tp->tat.owed + i) =
		(struct tat_owed){.opcode = HCA_UB_TA_TAACK,
				  .rc = (uint32_t)(btah & RC_MASK),
				  .tassn = (uint16_t)(btah >> 32)};
}

/* One packet, after i others. False: it is not the usual one. */
static inline bool
tat_run_write(const struct hca_pipe *h, struct run *run, struct rte_mbuf *m, unsigned int i)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tah = hca_ub_rxd_tph(m) + r->ta;
	const struct hca_mpt_entry *e;
	uint64_t btah, va;
	uint32_t len;

	if (unlikely(r->tp != run->tpi || r->generation != run->generation ||
		     !(r->flags & HCA_UB_RXD_LAST)))
		return false;
	btah = hca_get_be64(tah);
	if (unlikely(!tat_is_fast_write(btah) || !tat_run_is_new(run, r)))
		return false;
	if (unlikely(run->at == NULL || run->ta1 != tah[1])) {
		run->at = hca_ub_layout_of(HCA_UB_TA_WRITE, tah[1], run->tp->cfg.flags);
		run->ta1 = tah[1];
	}
	len = tat_run_payload_len(run, r, tah);
	if (unlikely(len == 0))
		return false;
	va = hca_ub_maetah_address(tah + run->at->maetah);
	e = tat_run_segment(h, run, tah, va, len);
	if (unlikely(e == NULL))
		return false;
	tat_run_store(h, e, va, tah + run->at->beetah, len);
	tat_run_owe(run, btah, i);
	return true;
}

unsigned int
tat_write_fast(struct hca_pipe *h, struct rte_mbuf *const *m, unsigned int n)
{
	const struct hca_ub_rxd *first = hca_ub_rxd(m[0]);
	struct run run;
	unsigned int i;

	if (hca_ub_rxd_tph(m[0])[first->ta] != HCA_UB_TA_WRITE ||
	    unlikely(!tat_run_begin(h, first, &run)))
		return 0;
	n = RTE_MIN(n, tat_run_room(run.tp));
	for (i = 0; i < n; i++) {
		if (i + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], const uint8_t *) + 64);
		if (unlikely(!tat_run_write(h, &run, m[i], i)))
			break;
	}
	if (i != 0)
		tat_owe_done(h, run.tp, i);
	return i;
}
