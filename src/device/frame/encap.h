/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAME_ENCAP_H
#define FRAME_ENCAP_H

/*
 * Internal to encap: a burst of frames being built, and the functions of encap.c for the file of
 * each wire. The wire's file writes the headers of a packet descriptor and names the PD and the
 * rights with which its payload is read; the rest of the frame and its transmission are common.
 */

#include <string.h>

#include <rte_prefetch.h>

#include "engine/impl.h"
#include "engine/pkt.h"
#include "core/tsan.h"
#include "wire/icrc.h"
#include "wire/udp_template.h"

#define HCA_ENCAP_BACKLOG 128u /* frames for which there is room, at least 2 bursts */
/* Places: those, and frames that waited in the open burst; a power of two. */
#define HCA_ENCAP_RING 256u
#define HCA_ENCAP_FRAMES (HCA_BURST + HCA_BURST / 2) /* of a burst; the half: of the open one */

_Static_assert(HCA_ENCAP_RING >= HCA_ENCAP_BACKLOG + HCA_ENCAP_FRAMES, "none is refused");

#define HCA_ENCAP_FUSED_MIN \
	257u /* payload bytes from which copying and CRC in one pass is faster */

/* RoCE: headers of the last datagram; the next one often has the same destination. */
struct hca_encap_ud {
	struct hca_udp_template tmpl;
	struct hca_ud_av av;
	uint32_t qpi, generation;
	uint16_t pkey; /* the QP's at that time; SQD may change it */
	uint64_t gids; /* state of the GID table they were made from */
};

/* A long payload that is copied after the headers of its burst, with its part of the ICRC. */
struct hca_encap_copy {
	uint8_t *dst;
	const uint8_t *src;
	uint32_t len;
	uint32_t repeat; /* not 0: a repetition; the owner may already store other data there */
	bool part;	 /* of a message of several packets, which is probably not in the cache */
};

/* A burst being built; its counts begin as 0. */
struct hca_encap_burst {
	struct rte_mbuf *frame[HCA_ENCAP_FRAMES];
	struct hca_icrc_span span[HCA_ENCAP_FRAMES];
	uint8_t *icrc_at[HCA_ENCAP_FRAMES];
	unsigned int frames, spans, copies;
	uint64_t bytes, payload;
	struct hca_icrc_span head[HCA_ENCAP_FRAMES]; /* of the frame of each copy: its headers */
	struct hca_encap_copy copy[HCA_ENCAP_FRAMES];
};

struct hca_encap {
	struct rte_mbuf *backlog[HCA_ENCAP_RING];
	uint64_t kept_at[HCA_ENCAP_RING]; /* arrival of each, ns */
	struct hca_encap_ud ud;
	/* frames that wait for those of the same poll; encap sends them at its end */
	struct hca_encap_burst open;
	struct hca_edge *in[HCA_EDGE_N]; /* rings that it drains, in this order */
	unsigned int n_in;
	uint32_t head, tail;	/* free running */
	uint32_t share;		/* log2 of the incoming edges, rounded up */
	uint32_t room;		/* of the backlog, for each of them */
	uint64_t stalled_since; /* 0: the port accepted frames last time */
	uint64_t link_at;	/* time of the next query of the link */
	bool discarding, link_down;
	bool late; /* the last failed gather was because foreign memory did not answer in time */
};

static inline void
hca_encap_begin(struct hca_encap_burst *b)
{
	b->frames = b->spans = b->copies = 0;
	b->bytes = b->payload = 0;
}

void hca_encap_copy_long(struct hca_pipe *h, struct hca_encap_burst *b);

/* After it the memory of payloads in the burst is not read again. */
static inline void
hca_encap_copy_all(struct hca_pipe *h, struct hca_encap_burst *b)
{
	if (b->copies != 0)
		hca_encap_copy_long(h, b);
}

/* Computes the ICRC of the short frames and gives all to loopback, the port or the backlog. */
void hca_encap_transmit(struct hca_pipe *h, struct hca_encap_burst *b, uint64_t now);
/* The same of the open burst, which is empty then. */
void hca_encap_transmit_open(struct hca_pipe *h, uint64_t now);

/*
 * Gather the descriptor's payload to dst; its key is checked for pd and access. crc: continued over
 * the bytes, NULL: without CRC. false: not allowed, or foreign memory did not answer in time.
 */
bool hca_encap_gather(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d,
		      uint32_t pd, uint32_t access, uint8_t *dst, uint32_t *crc);

/* The same with the PD and the rights of a wire. */
typedef bool (*hca_encap_gather_fn)(struct hca_pipe *h, const struct hca_qp *qp,
				    const struct hca_txd *d, uint8_t *dst, uint32_t *crc);

/* The memory may answer next time: the frame counts as lost on the wire. */
static inline bool
hca_encap_is_late(struct hca_pipe *h)
{
	struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	bool late = e->late;

	e->late = false;
	return late;
}

/* Copy n bytes from src; crc NULL: without CRC. */
static inline void
hca_encap_put(struct hca_pipe *h, uint8_t *dst, const uint8_t *src, uint32_t n, uint32_t *crc)
{
	if (crc == NULL)
		hca_copy(h->icrc, dst, src, n);
	else
		*crc = h->icrc->copy_crc(*crc, dst, src, n);
}

static inline const struct hca_mpt_entry *
hca_encap_find_entry(struct hca_pipe *h, const struct hca_qp *qp, uint32_t pd, uint32_t key,
		     uint32_t access, uint64_t va, uint32_t n)
{
	const struct hca_mpt_entry *e = hca_vtp_check(&h->vtp, key, pd, access, va, n);

	if (unlikely(e == NULL && access == HCA_ACCESS_REMOTE_READ))
		e = hca_vtp_check_bound(&h->vtp, key, &qp->cfg, access, va, n);
	return e;
}

/* Address of a payload in an entry that grants it, which is prefetched; NULL: not contiguous. */
static inline const uint8_t *
hca_encap_place(struct hca_pipe *h, const struct hca_mpt_entry *e, const struct hca_txd *d)
{
	const uint8_t *src;
	uint32_t run;

	src = hca_vtp_ptr(&h->vtp, e, d->va, d->len, &run);
	if (unlikely(run != d->len))
		return NULL;
	rte_prefetch0(src);
	return src;
}

/* Address of a payload in one contiguous run, which is prefetched, else NULL. */
static inline const uint8_t *
hca_encap_find_payload(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d,
		       uint32_t pd, uint32_t access)
{
	const struct hca_mpt_entry *e;

	if (d->nsge != 1 || d->len == 0)
		return NULL;
	e = hca_encap_find_entry(h, qp, pd, d->key, access, d->va, d->len);
	return likely(e != NULL) ? hca_encap_place(h, e, d) : NULL;
}

/* Where the frame of an mbuf begins. */
static inline uint8_t *
hca_encap_frame(struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM;
}

/* Copy or gather a payload, whose ICRC so far is *crc; NULL: it is computed later. */
static __rte_always_inline bool
hca_encap_read(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d,
	       const uint8_t *src, hca_encap_gather_fn gather, uint8_t *payload, uint32_t *crc)
{
	bool there = true;

	hca_tsan_repeat_begin(d->flags & HCA_TXD_REPEAT);
	if (likely(src != NULL))
		hca_encap_put(h, payload, src, d->len, crc);
	else if (d->len != 0)
		there = gather(h, qp, d, payload, crc);
	hca_tsan_repeat_end(d->flags & HCA_TXD_REPEAT);
	return there;
}

/* A long payload whose headers are head: in one run at src it is copied with those of the burst. */
static __rte_noinline bool
hca_encap_finish_long(struct hca_pipe *h, struct hca_encap_burst *b, const struct hca_qp *qp,
		      const struct hca_txd *d, const struct hca_icrc_span *head, uint8_t *payload,
		      const uint8_t *src, hca_encap_gather_fn gather)
{
	uint8_t *end = payload + d->len;
	uint32_t pad = -(uint32_t)d->len & 3, crc;

	if (likely(src != NULL)) {
		b->head[b->copies] = *head;
		b->copy[b->copies++] =
			(struct hca_encap_copy){payload, src, d->len, d->flags & HCA_TXD_REPEAT,
						(d->flags & HCA_TXD_PART) != 0};
		return true;
	}
	h->icrc->crc_burst(head, &crc, 1);
	if (!hca_encap_read(h, qp, d, NULL, gather, payload, &crc))
		return false;
	memset(end, 0, 4);
	hca_icrc_store(end + pad, pad != 0 ? h->icrc->crc(crc, end, pad) : crc);
	return true;
}

/*
 * Add the frame to the burst, with payload and pad after the headers, which end at payload. src: as
 * hca_encap_find_payload() returned it. false: the payload could not be gathered. Inline in the
 * bursts of a wire, because a call costs 5 % of a 64 B WRITE.
 */
static __rte_always_inline bool
hca_encap_finish(struct hca_pipe *h, struct hca_encap_burst *b, const struct hca_qp *qp,
		 enum hca_wire wire, const struct hca_udp_template *t, struct rte_mbuf *m,
		 uint8_t *payload, const uint8_t *src, hca_encap_gather_fn gather)
{
	const struct hca_txd *d = hca_txd(m);
	uint8_t *frame = hca_encap_frame(m), *l3 = frame + t->l3, *end = payload + d->len;

	m->data_off = RTE_PKTMBUF_HEADROOM;
	if (d->len >= HCA_ENCAP_FUSED_MIN) {
		struct hca_icrc_span span =
			hca_icrc_span_of(wire, t->ip_version, l3, (uint32_t)(payload - l3));

		if (unlikely(!hca_encap_finish_long(h, b, qp, d, &span, payload, src, gather)))
			return false;
		end += -(uint32_t)d->len & 3;
	} else {
		if (unlikely(!hca_encap_read(h, qp, d, src, gather, payload, NULL)))
			return false;
		memset(end, 0, 4);
		end += -(uint32_t)d->len & 3;
		b->span[b->spans] = hca_icrc_span_of(wire, t->ip_version, l3, (uint32_t)(end - l3));
		b->icrc_at[b->spans++] = end;
	}
	end += HCA_ICRC_LEN;
	m->ol_flags = 0;
	m->data_len = (uint16_t)(end - frame);
	m->pkt_len = m->data_len;
	b->bytes += m->data_len;
	b->payload += d->len;
	b->frame[b->frames++] = m;
	return true;
}

#endif
