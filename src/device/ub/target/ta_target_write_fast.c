/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The usual requests: a Write or Send of one packet, or a Read, of memory of this process, that
 * passes all checks. They are judged, executed and answered here; every other packet, and every one
 * that is to be refused, is left to the general way, untouched.
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

/* The same for a Read. */
#define FIXED_READ ((uint64_t)HCA_UB_TA_READ << 56 | (uint64_t)HCA_UB_EE_NORMAL << 52)

static inline bool
tat_is_fast_read(uint64_t btah)
{
	return (btah & FIXED_MASK) == FIXED_READ &&
	       HCA_UB_ODR_EXECUTION(HCA_BITS(btah, 30, 28)) != HCA_UB_CODE_RESERVED;
}

/* The same for a Send, which has an MTETAH; it must not complete in order. */
#define FIXED_SEND ((uint64_t)HCA_UB_TA_SEND << 56 | (uint64_t)HCA_UB_EE_NORMAL << 52 | HCA_BIT(27))

static inline bool
tat_is_fast_send(uint64_t btah)
{
	uint32_t odr = HCA_BITS(btah, 30, 28);

	return (btah & FIXED_MASK) == FIXED_SEND &&
	       HCA_UB_ODR_EXECUTION(odr) != HCA_UB_CODE_RESERVED && !(odr & HCA_UB_ODR_COMPLETION);
}

/* Packets of one TP in a row, which have much in common. */
struct run {
	struct hca_tp *tp;
	const struct hca_ub_layout *at; /* of the last packet; NULL: of none */
	uint32_t tpi, generation, mtu;
	uint8_t ta1; /* byte 1 of the BTAH, for which `at` is right */
	bool looks;  /* the ring of open requests may have something */
	struct tat_send_run *sends;
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

/* Bytes of its payload; 0: none, or more than a packet has. */
static inline uint32_t
tat_run_bytes(const struct run *run, const struct hca_ub_rxd *r)
{
	uint32_t n = (uint32_t)r->end - r->ta, headers = run->at->beetah;

	if (unlikely(n < headers + r->pad || n - headers - r->pad > run->mtu))
		return 0;
	return n - headers - r->pad;
}

/* The same of a Write; 0: also not as the length says. */
static inline uint32_t
tat_run_payload_len(const struct run *run, const struct hca_ub_rxd *r, const uint8_t *tah)
{
	uint32_t len = tat_run_bytes(run, r);

	return likely(len == hca_ub_maetah_length(tah + run->at->maetah)) ? len : 0;
}

/* Its segment, if all is right. */
static inline const struct hca_mpt_entry *
tat_run_segment(const struct hca_pipe *h, const struct run *run, const uint8_t *tah, uint64_t va,
		uint32_t len, uint32_t right)
{
	const struct hca_ub_layout *at = run->at;
	const struct hca_token_access a = {
		.va = va,
		.len = len,
		.token_id = hca_ub_maetah_token_id(tah + at->maetah),
		.value = at->tvetah != 0 ? hca_ub_tvetah_token_value(tah + at->tvetah) : 0,
		.right = right,
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

/* Execute a packet of the run that is a whole request. */
static inline bool
tat_run_has(const struct run *run, const struct hca_ub_rxd *r)
{
	return likely(r->tp == run->tpi && r->generation == run->generation &&
		      r->flags & HCA_UB_RXD_LAST);
}

static inline void
tat_run_layout(struct run *run, uint8_t opcode, const uint8_t *tah)
{
	if (likely(run->at != NULL && run->ta1 == tah[1]))
		return;
	run->at = hca_ub_layout_of(opcode, tah[1], run->tp->cfg.flags);
	run->ta1 = tah[1];
}

/* One packet, after i others. False: it is not the usual one. */
static inline bool
tat_run_write(struct hca_pipe *h, struct run *run, struct rte_mbuf *m, unsigned int i)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tah = hca_ub_rxd_tph(m) + r->ta;
	const struct hca_mpt_entry *e;
	uint64_t btah, va;
	uint32_t len;

	if (unlikely(!tat_run_has(run, r)))
		return false;
	btah = hca_get_be64(tah);
	if (unlikely(!tat_is_fast_write(btah) || !tat_run_is_new(run, r)))
		return false;
	tat_run_layout(run, HCA_UB_TA_WRITE, tah);
	len = tat_run_payload_len(run, r, tah);
	if (unlikely(len == 0))
		return false;
	va = hca_ub_maetah_address(tah + run->at->maetah);
	e = tat_run_segment(h, run, tah, va, len, HCA_ACCESS_REMOTE_WRITE);
	if (unlikely(e == NULL))
		return false;
	tat_run_store(h, e, va, tah + run->at->beetah, len);
	tat_run_owe(run, btah, i);
	return true;
}

/* The same for a Send. */
static inline bool
tat_run_send(struct hca_pipe *h, struct run *run, struct rte_mbuf *m, unsigned int i)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tah = hca_ub_rxd_tph(m) + r->ta;
	struct tat_usual_send s;
	uint64_t btah;

	if (unlikely(!tat_run_has(run, r)))
		return false;
	btah = hca_get_be64(tah);
	if (unlikely(!tat_is_fast_send(btah) || !tat_run_is_new(run, r)))
		return false;
	tat_run_layout(run, HCA_UB_TA_SEND, tah);
	s.len = tat_run_bytes(run, r);
	s.mtetah = hca_get_be32(tah + run->at->mtetah);
	if (unlikely(s.len == 0 || HCA_BITS(s.mtetah, 21, 20) >= HCA_UB_TC_GROUP ||
		     hca_ub_ofstetah_offset(tah + run->at->ofstetah) != 0))
		return false;
	s.src = tah + run->at->beetah;
	s.has_value = run->at->tvetah != 0;
	s.value = s.has_value ? hca_ub_tvetah_token_value(tah + run->at->tvetah) : 0;
	s.rc = hca_ub_btah_rc_id(tah);
	s.tpn = run->tp->cfg.own_tpn;
	s.solicited = hca_ub_btah_fce(tah);
	if (unlikely(!tat_recv_fast(h, run->sends, &s)))
		return false;
	tat_run_owe(run, btah, i);
	return true;
}

/* The same for a Read, whose memory is judged again when the response is sent. */
static inline bool
tat_run_read(struct hca_pipe *h, struct run *run, struct rte_mbuf *m, unsigned int i)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tah = hca_ub_rxd_tph(m) + r->ta;
	const struct hca_ub_layout *at;
	struct tat_owed *e;
	uint64_t btah, va;
	uint32_t len;

	if (unlikely(!tat_run_has(run, r)))
		return false;
	btah = hca_get_be64(tah);
	if (unlikely(!tat_is_fast_read(btah) || !tat_run_is_new(run, r)))
		return false;
	tat_run_layout(run, HCA_UB_TA_READ, tah);
	at = run->at;
	va = hca_ub_maetah_address(tah + at->maetah);
	len = hca_ub_maetah_length(tah + at->maetah);
	if (unlikely((uint32_t)r->end - r->ta != at->beetah || r->pad != 0 ||
		     len - 1 >= HCA_MAX_MSG_SIZE ||
		     tat_run_segment(h, run, tah, va, len, HCA_ACCESS_REMOTE_READ) == NULL))
		return false;
	e = tat_owed_at(run->tp, run->tp->tat.owed + i);
	*e = (struct tat_owed){
		.va = va,
		.token_id = hca_ub_maetah_token_id(tah + at->maetah),
		.opcode = HCA_UB_TA_READ_RESPONSE,
		.token = at->tvetah != 0 ? hca_ub_tvetah_token_value(tah + at->tvetah) : 0,
		.length = len,
		.offset = at->ofstetah != 0 ? hca_ub_ofstetah_offset(tah + at->ofstetah) : 0,
		.rc = (uint32_t)(btah & RC_MASK),
		.tassn = (uint16_t)(btah >> 32),
	};
	return true;
}

/* Packets from m[0] on, as long as they are usual; returns how many. one: of their opcode. */
static __rte_always_inline unsigned int
tat_run(struct hca_pipe *h, struct run *run, struct rte_mbuf *const *m, unsigned int n,
	bool (*one)(struct hca_pipe *h, struct run *run, struct rte_mbuf *m, unsigned int i))
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (i + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], const uint8_t *) + 64);
		if (unlikely(!one(h, run, m[i], i)))
			break;
	}
	return i;
}

static __rte_noinline unsigned int
tat_send_fast(struct hca_pipe *h, struct run *run, struct rte_mbuf *const *m, unsigned int n)
{
	struct tat_send_run sends;

	tat_recv_begin(&sends);
	run->sends = &sends;
	n = tat_run(h, run, m, n, tat_run_send);
	tat_recv_end(h, &sends);
	return n;
}

static __rte_noinline unsigned int
tat_read_fast(struct hca_pipe *h, struct run *run, struct rte_mbuf *const *m, unsigned int n)
{
	return tat_run(h, run, m, n, tat_run_read);
}

unsigned int
tat_write_fast(struct hca_pipe *h, struct rte_mbuf *const *m, unsigned int n)
{
	const struct hca_ub_rxd *first = hca_ub_rxd(m[0]);
	uint8_t opcode = hca_ub_rxd_tph(m[0])[first->ta];
	struct run run;

	if (!HCA_SHORT_WAYS ||
	    (opcode != HCA_UB_TA_WRITE && opcode != HCA_UB_TA_SEND && opcode != HCA_UB_TA_READ) ||
	    unlikely(!tat_run_begin(h, first, &run)))
		return 0;
	n = RTE_MIN(n, tat_run_room(run.tp));
	if (likely(opcode == HCA_UB_TA_WRITE))
		n = tat_run(h, &run, m, n, tat_run_write);
	else if (opcode == HCA_UB_TA_SEND)
		n = tat_send_fast(h, &run, m, n);
	else
		n = tat_read_fast(h, &run, m, n);
	if (n != 0)
		tat_owe_done(h, run.tp, n);
	return n;
}
