/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_BAR_H
#define HCA_ABI_BAR_H

/*
 * Register space: BAR0 (driver only) and BAR2 (one UAR page per user context).
 * Tables 3-1-1 .. 3-1-7. Everything here is little-endian.
 */

#include "abi_bits.h"

/* ---- BAR0, table 3-1-2 ---- */

#define HCA_BAR0_SIZE 0x100000u
#define HCA_BAR0_HCR 0x80000u
#define HCA_BAR0_RESET 0xf0010u /* le32: 1 starts a reset, reads 0 when it is done */
/* le32 consumer index of EQ eqn, free running, written by the driver. */
#define HCA_BAR0_EQ_CI(eqn) (0xf0100u + 4u * (uint32_t)(eqn))
#define HCA_BAR0_EQ_CI_MAX 32u

#define HCA_RESET_START 1u

/*
 * HCR, tables 3-1-3 and 3-1-4: 28 bytes of little-endian words. A 64-bit parameter has its high
 * word at the lower offset. The driver writes 00h..14h, then ctrl with go = 1 (release); the
 * device clears go.
 */
struct hca_hcr {
	hca_le32 in_param_hi;  /* 00h in_param[63:32] */
	hca_le32 in_param_lo;  /* 04h in_param[31:0] */
	hca_le32 in_modifier;  /* 08h */
	hca_le32 out_param_hi; /* 0Ch out_param[63:32] */
	hca_le32 out_param_lo; /* 10h out_param[31:0] */
	hca_le32 token;	       /* 14h token in [31:16] */
	hca_le32 ctrl;	       /* 18h status, go, E, op_modifier, op */
};
HCA_STATIC_ASSERT_SIZE(struct hca_hcr, 28);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, in_param_hi, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, in_param_lo, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, in_modifier, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, out_param_hi, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, out_param_lo, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, token, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_hcr, ctrl, 0x18);

/* Fields of hca_hcr.token and hca_hcr.ctrl, after conversion from little-endian. */
#define HCA_HCR_TOKEN(w) HCA_BITS(w, 31, 16)
#define HCA_HCR_MAKE_TOKEN(t) HCA_FIELD(31, 16, t)
#define HCA_HCR_GO HCA_BIT(23)
#define HCA_HCR_E HCA_BIT(22)
#define HCA_HCR_STATUS(w) HCA_BITS(w, 31, 24)
#define HCA_HCR_OP_MODIFIER(w) HCA_BITS(w, 19, 12)
#define HCA_HCR_OP(w) HCA_BITS(w, 11, 0)
#define HCA_HCR_OP_MAX 0xfffu

/* ctrl word that starts a command; event = 1 asks for completion by EQE. */
#define HCA_HCR_MAKE_CTRL(event, op_modifier, op) \
	(HCA_HCR_GO | HCA_FIELD(22, 22, event) | HCA_FIELD(19, 12, op_modifier) | \
	 HCA_FIELD(11, 0, op))
/* ctrl word w after acceptance or completion: go clear, status set. */
#define HCA_HCR_MAKE_DONE(w, status) (HCA_SET_BITS(w, 31, 24, status) & ~HCA_HCR_GO)

/* Token of commands that are polled rather than completed by an event. */
#define HCA_CMD_POLL_TOKEN 0xffffu

/* ---- BAR2, tables 3-1-1, 3-1-6, 3-1-7 ---- */

#define HCA_BAR2_SIZE 0x800000u
#define HCA_UAR_PAGE_SIZE 4096u
#define HCA_UAR_PAGES 2048u
_Static_assert(HCA_UAR_PAGE_SIZE *HCA_UAR_PAGES == HCA_BAR2_SIZE, "BAR2 is full of UAR pages");

#define HCA_UAR_SQ_DOORBELL 0x000u /* the register's place, le64 */
#define HCA_UAR_MARKED 0x008u
#define HCA_UAR_MARKS 0x100u
#define HCA_UAR_MARK_WORDS 64u
#define HCA_UAR_MARK_COUNT (64u * HCA_UAR_MARK_WORDS)
#define HCA_UAR_FIFO 0x800u
#define HCA_UAR_FIFO_SLOTS 256u
/*
 * First slot used on page p. 2048 pages that all start at the same offset would share one set of
 * the level 1 cache, which makes a scan over open pages nine times slower.
 */
#define HCA_UAR_FIFO_FIRST(page) ((8u * (uint32_t)(page)) % HCA_UAR_FIFO_SLOTS)

/*
 * A device with several pipelines (1, 2, 4, 8 or 16) divides the FIFO and the marks of a page among
 * them, in their order and in equal parts; a QP uses the part of pipeline QPN mod pipes. Doorbells
 * of a part are numbered, beginning with HCA_UAR_FIFO_FIRST(page). A page may also be undivided: it
 * is as with one pipeline (pipes = 1 below), and its owner has QPs of pipeline 0 only.
 */
#define HCA_UAR_PIPES_MAX 16u
#define HCA_UAR_FIFO_PART(pipes) (HCA_UAR_FIFO_SLOTS / (pipes))
#define HCA_UAR_FIFO_SLOT(pipes, pipe, number) \
	((pipe)*HCA_UAR_FIFO_PART(pipes) + (number) % HCA_UAR_FIFO_PART(pipes))

/* Number of a QP's mark, shared with other QPs of the same part. */
#define HCA_UAR_MARK_PART(pipes) (HCA_UAR_MARK_COUNT / (pipes))
#define HCA_UAR_MARK(pipes, qpn) \
	((uint32_t)(qpn) % (pipes)*HCA_UAR_MARK_PART(pipes) + \
	 (uint32_t)(qpn) / (pipes) % HCA_UAR_MARK_PART(pipes))

/*
 * One UAR page. The doorbell FIFO, which loses nothing, has many producers (threads of the owner)
 * and one consumer (the device). A slot is empty when it is 0; a producer fills it with one release
 * store, the device clears it. Each side keeps its own position.
 *
 * If the FIFO is full a producer writes the doorbell into the first WQE (HCA_WQE_ANNOUNCED in
 * abi_wqe.h) and then sets the mark of the QP: bit m % 64 of marks[m / 64], then bit m / 64 of
 * marked, both by atomic OR. The device clears marked before marks, checks the queue of each of the
 * owner's QPs that share the mark, and handles receives that wait for a kick. A mark only means
 * "check": it stands for any number of doorbells, and a superfluous one is harmless.
 */
struct hca_uar_page {
	hca_le64 sq_doorbell; /* 000h table 3-1-6 */
	hca_le64 marked;      /* 008h bit w: check marks[w] */
	uint8_t reserved010[HCA_UAR_MARKS - HCA_UAR_MARKED - 8];
	hca_le64 marks[HCA_UAR_MARK_WORDS]; /* 100h a bit for each QP, see HCA_UAR_MARK() */
	uint8_t reserved300[HCA_UAR_FIFO - HCA_UAR_MARKS - 8 * HCA_UAR_MARK_WORDS];
	hca_le64 fifo[HCA_UAR_FIFO_SLOTS]; /* 800h doorbell words, 0 = empty */
};
HCA_STATIC_ASSERT_SIZE(struct hca_uar_page, HCA_UAR_PAGE_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_uar_page, sq_doorbell, HCA_UAR_SQ_DOORBELL);
HCA_STATIC_ASSERT_OFFSET(struct hca_uar_page, marked, HCA_UAR_MARKED);
HCA_STATIC_ASSERT_OFFSET(struct hca_uar_page, marks, HCA_UAR_MARKS);
HCA_STATIC_ASSERT_OFFSET(struct hca_uar_page, fifo, HCA_UAR_FIFO);

/*
 * Doorbell word, tables 3-1-6 and 3-1-7: the low 32 bits are the word at 00h (sq_head[23:8],
 * F[5], opcode[4:0]), the high 32 bits the word at 04h (qpn[31:8], size0[7:0] in 16-byte units).
 * sq_head is the index of the first new WQE, already reduced to the queue. QPN 0 never exists,
 * so no valid word is 0.
 */
#define HCA_DB_MAKE(sq_head, f, opcode, qpn, size0) \
	(HCA_FIELD64(23, 8, sq_head) | HCA_FIELD64(5, 5, f) | HCA_FIELD64(4, 0, opcode) | \
	 HCA_FIELD64(63, 40, qpn) | HCA_FIELD64(39, 32, size0))
#define HCA_DB_SQ_HEAD(w) HCA_BITS(w, 23, 8)
#define HCA_DB_F(w) HCA_BITS(w, 5, 5)
#define HCA_DB_OPCODE(w) HCA_BITS(w, 4, 0)
#define HCA_DB_QPN(w) HCA_BITS(w, 63, 40)
#define HCA_DB_SIZE0(w) HCA_BITS(w, 39, 32)
#define HCA_DB_EMPTY UINT64_C(0)

/*
 * Opcode of a doorbell that announces no WQE: receives were posted after the producer record's
 * notify word was seen set (QP in ERR) and are to be flushed. The other opcodes: abi_wqe.h.
 */
#define HCA_DB_OPCODE_KICK 0x1fu

#endif
