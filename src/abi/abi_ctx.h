/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CTX_H
#define HCA_ABI_CTX_H

/*
 * ICM contexts: QPC, CQC, EQC, SRQC, MPT, MTT. Tables 3-2-17, 3-2-19, 3-2-27 .. 3-2-34, 3-2-40 ..
 * 3-2-42, A1-3. The same bytes serve as mailbox (RST2INIT, QUERY_QP, SW2HW_CQ ...) and as entry
 * in ICM. Big-endian words; the field macros take words in the processor's order.
 */

#include "abi_bits.h"
#include "abi_qp_attr.h"

/* ---- path MTU, table 3-2-4 ---- */

enum hca_mtu {
	HCA_MTU_256 = 1,
	HCA_MTU_512 = 2,
	HCA_MTU_1024 = 3,
	HCA_MTU_2048 = 4,
	HCA_MTU_4096 = 5,
};
/* Bytes of a valid code (1..5). */
#define HCA_MTU_BYTES(mtu) (128u << (mtu))
#define HCA_MTU_MAX HCA_MTU_4096
#define HCA_MTU_VALID(mtu) ((mtu) >= HCA_MTU_256 && (mtu) <= HCA_MTU_4096)

/* ---- queue pair: its context is in abi_qp_attr.h ---- */

/* X(name, number, its name in the public interface, after SOFTHCA_QPS_) */
#define HCA_QP_STATE_LIST(X) \
	X(RST, 0, RESET) \
	X(INIT, 1, INIT) \
	X(RTR, 2, RTR) \
	X(RTS, 3, RTS) \
	X(SQE, 4, SQE) \
	X(SQD, 5, SQD) \
	X(ERR, 6, ERR)

enum hca_qp_state {
#define HCA_QP_STATE_ENUM(name, number, verbs) HCA_QPS_##name = number,
	HCA_QP_STATE_LIST(HCA_QP_STATE_ENUM)
#undef HCA_QP_STATE_ENUM
	HCA_QPS_COUNT
};

/* Services by number; their properties: abi_service.h. */
enum hca_service {
	HCA_ST_RC = 0,
	HCA_ST_UC = 1,
	HCA_ST_RD = 2, /* not offered */
	HCA_ST_UD = 3,
	HCA_ST_JETTY = 4,
	HCA_ST_JFS = 5, /* a Jetty without receive queue */
	HCA_ST_XRC_INI = 6,
	HCA_ST_XRC_TGT = 7,
	HCA_ST_COUNT
};

enum hca_mig_state {
	HCA_MIG_ARMED = 0,
	HCA_MIG_REARM = 1,
	HCA_MIG_MIGRATED = 3,
};

/* ---- completion queue, tables 3-2-32 .. 3-2-34 ---- */

#define HCA_CQC_SIZE 64u

/* CQ context. 1Ch..28h and 38h are written by QUERY_CQ and ignored by SW2HW_CQ. */
struct hca_cqc {
	hca_be32 flags;		    /* 00h HCA_CQ_* */
	hca_be32 start_hi;	    /* 04h start[63:32] virtual address of the first CQE */
	hca_be32 start_lo;	    /* 08h start[31:0] */
	hca_be32 logsize_usrpage;   /* 0Ch logsize[31:24] usrpage[23:0] */
	hca_be32 comp_eqn;	    /* 10h */
	hca_be32 pd;		    /* 14h */
	hca_be32 lkey;		    /* 18h */
	hca_be32 last_notified_seq; /* 1Ch sequence of the arm word that fired last */
	hca_be32 reserved20;	    /* 20h */
	hca_be32 consumer_index;    /* 24h free running */
	hca_be32 producer_index;    /* 28h free running */
	hca_be32 cqn;		    /* 2Ch */
	hca_be32 ci_db;		    /* 30h offset of the consumer index from start, bytes */
	hca_be32 state_db;	    /* 34h offset of the arm word from start, bytes */
	hca_be32 moderation;	    /* 38h count[31:16] period[15:0], microseconds */
	hca_be32 reserved3c;	    /* 3Ch */
};
HCA_STATIC_ASSERT_SIZE(struct hca_cqc, HCA_CQC_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, flags, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, start_hi, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, start_lo, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, logsize_usrpage, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, comp_eqn, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, pd, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, lkey, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, last_notified_seq, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, consumer_index, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, producer_index, 0x28);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, cqn, 0x2c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, ci_db, 0x30);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, state_db, 0x34);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqc, moderation, 0x38);

/* 00h flags, table 3-2-34; [31:28] status: 0 good, 9 overrun, 10 write failure (QUERY_CQ only) */
#define HCA_CQ_STATUS(flags) HCA_BITS(flags, 31, 28)
#define HCA_CQ_STATUS_OK 0u
#define HCA_CQ_STATUS_OVERRUN 9u
#define HCA_CQ_STATUS_WRITE_FAIL 10u
#define HCA_CQ_FLAG_TR HCA_BIT(18)    /* start is a virtual address, translated by lkey */
#define HCA_CQ_FLAG_OI HCA_BIT(17)    /* overrun ignored: CQEs without room are dropped, no error */
#define HCA_CQ_FLAG_LARGE HCA_BIT(16) /* CQEs of HCA_CQE_LARGE_SIZE */
#define HCA_CQ_FLAG_WALL HCA_BIT(15)  /* with the wall clock in them; only with LARGE */
#define HCA_CQ_FLAGS (HCA_CQ_FLAG_OI | HCA_CQ_FLAG_LARGE | HCA_CQ_FLAG_WALL) /* chosen freely */
/* log2 of the bytes of a CQE */
#define HCA_CQ_CQE_LOG(flags) (((flags)&HCA_CQ_FLAG_LARGE) != 0 ? 6u : 5u)
#define HCA_CQ_STATE_DISARMED 0u
#define HCA_CQ_STATE_ARMED HCA_BIT(8)
/* 0Ch */
#define HCA_CQC_LOGSIZE(w) HCA_BITS(w, 31, 24)
#define HCA_CQC_USRPAGE(w) HCA_BITS(w, 23, 0)
#define HCA_CQC_MAKE_LOGSIZE(logsize, usrpage) \
	(HCA_FIELD(31, 24, logsize) | HCA_FIELD(23, 0, usrpage))
/* 38h */
#define HCA_CQ_MOD_COUNT(w) HCA_BITS(w, 31, 16)
#define HCA_CQ_MOD_PERIOD(w) HCA_BITS(w, 15, 0)
#define HCA_CQ_MOD_MAKE(count, period) (HCA_FIELD(31, 16, count) | HCA_FIELD(15, 0, period))

static inline uint64_t
hca_cqc_start(const struct hca_cqc *c)
{
	return (uint64_t)hca_be32_to_cpu(c->start_hi) << 32 | hca_be32_to_cpu(c->start_lo);
}

static inline void
hca_cqc_set_start(struct hca_cqc *c, uint64_t start)
{
	c->start_hi = hca_cpu_to_be32((uint32_t)(start >> 32));
	c->start_lo = hca_cpu_to_be32((uint32_t)start);
}

/* ---- event queue, tables 3-2-27 .. 3-2-29 ---- */

#define HCA_EQC_SIZE 64u

struct hca_eqc {
	hca_be32 flags;		 /* 00h HCA_EQ_* */
	hca_be32 start_hi;	 /* 04h start[63:32] virtual address of the first EQE */
	hca_be32 start_lo;	 /* 08h start[31:0] */
	hca_be32 logsize;	 /* 0Ch logsize[31:24] */
	hca_be32 reserved10;	 /* 10h */
	hca_be32 intr;		 /* 14h vector[7:0] */
	hca_be32 pd;		 /* 18h */
	hca_be32 lkey;		 /* 1Ch */
	hca_be32 reserved20[2];	 /* 20h */
	hca_be32 consumer_index; /* 28h free running */
	hca_be32 producer_index; /* 2Ch free running */
	hca_be32 reserved30[4];	 /* 30h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_eqc, HCA_EQC_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, flags, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, start_hi, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, start_lo, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, logsize, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, intr, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, pd, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, lkey, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, consumer_index, 0x28);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqc, producer_index, 0x2c);

/* 00h flags, table 3-2-29; status in [31:28], 0 = good */
#define HCA_EQ_STATUS(flags) HCA_BITS(flags, 31, 28)
#define HCA_EQ_STATUS_OK 0u
#define HCA_EQ_OWNER_HW HCA_BIT(24)
#define HCA_EQ_FLAG_TR HCA_BIT(18)
#define HCA_EQ_STATE_ARMED HCA_BIT(8)
#define HCA_EQC_LOGSIZE(w) HCA_BITS(w, 31, 24)
#define HCA_EQC_MAKE_LOGSIZE(logsize) HCA_FIELD(31, 24, logsize)
#define HCA_EQC_INTR(w) HCA_BITS(w, 7, 0)

static inline uint64_t
hca_eqc_start(const struct hca_eqc *c)
{
	return (uint64_t)hca_be32_to_cpu(c->start_hi) << 32 | hca_be32_to_cpu(c->start_lo);
}

static inline void
hca_eqc_set_start(struct hca_eqc *c, uint64_t start)
{
	c->start_hi = hca_cpu_to_be32((uint32_t)(start >> 32));
	c->start_lo = hca_cpu_to_be32((uint32_t)start);
}

/* ---- shared receive queue: no table ---- */

#define HCA_SRQC_SIZE 64u

/* SRQ context: SW2HW_SRQ in, QUERY_SRQ out. */
struct hca_srqc {
	hca_be32 flags;	   /* 00h state[31:28]: 0 good, 15 error; limit armed[8], HCA_SRQC_* */
	hca_be32 start_hi; /* 04h start[63:32] virtual address of the first WQE */
	hca_be32 start_lo; /* 08h start[31:0] */
	hca_be32 logsize_usrpage; /* 0Ch logsize[31:24] usrpage[23:0] */
	hca_be32 stride;	  /* 10h log2 of the WQE stride in [31:24], max SGE [7:0] */
	hca_be32 pd;		  /* 14h */
	hca_be32 lkey;		  /* 18h */
	hca_be32 limit;		  /* 1Ch [15:0] */
	hca_be32 srqn;		  /* 20h */
	hca_be32 xrcd;		  /* 24h valid[31] XRC domain[23:0] */
	hca_be32 xrc_cqn;	  /* 28h CQ of an XRC SRQ or a JFR */
	hca_be32 producer;	  /* 2Ch free running, QUERY_SRQ */
	hca_be32 consumer;	  /* 30h free running, QUERY_SRQ */
	hca_be32 token;		  /* 34h TokenValue of a JFR */
	hca_be32 rnr;		  /* 38h min RNR timer[31:24] of a JFR */
	hca_be32 reserved3c;	  /* 3Ch */
};
HCA_STATIC_ASSERT_SIZE(struct hca_srqc, HCA_SRQC_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, token, 0x34);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, rnr, 0x38);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, start_hi, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, logsize_usrpage, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, stride, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, pd, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, lkey, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, limit, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, srqn, 0x20);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, xrcd, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, xrc_cqn, 0x28);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, producer, 0x2c);
HCA_STATIC_ASSERT_OFFSET(struct hca_srqc, consumer, 0x30);

#define HCA_SRQC_STATE(flags) HCA_BITS(flags, 31, 28)
#define HCA_SRQC_STATE_OK 0u
#define HCA_SRQC_STATE_ERR 15u
#define HCA_SRQC_LIMIT_ARMED HCA_BIT(8)
#define HCA_SRQC_JFR HCA_BIT(9)	   /* UB: for Jettys, and a target of requests itself */
#define HCA_SRQC_TOKEN HCA_BIT(10) /* JFR: requests to it must have the TokenValue */
#define HCA_SRQC_RNR_TIMER(w) HCA_BITS(w, 31, 24)
#define HCA_SRQC_LOGSIZE(w) HCA_BITS(w, 31, 24)
#define HCA_SRQC_USRPAGE(w) HCA_BITS(w, 23, 0)
#define HCA_SRQC_STRIDE_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_SRQC_MAX_SGE(w) HCA_BITS(w, 7, 0)
#define HCA_SRQC_XRCD_VALID HCA_BIT(31)

static inline uint64_t
hca_srqc_start(const struct hca_srqc *c)
{
	return (uint64_t)hca_be32_to_cpu(c->start_hi) << 32 | hca_be32_to_cpu(c->start_lo);
}

static inline void
hca_srqc_set_start(struct hca_srqc *c, uint64_t start)
{
	c->start_hi = hca_cpu_to_be32((uint32_t)(start >> 32));
	c->start_lo = hca_cpu_to_be32((uint32_t)start);
}

/* ---- memory protection and translation, tables 3-2-17 .. 3-2-19 ---- */

#define HCA_MPT_SIZE 64u
#define HCA_MTT_SIZE 8u /* hca_be64 bus address of a page */
/*
 * Set in a bus address: the bits below it are an address in another process, whose memory is not
 * mapped here. Either all pages of a region have it or none, and no DMA window crosses it.
 */
#define HCA_BUS_FOREIGN (UINT64_C(1) << 63)
#define HCA_BUS_FOREIGN_BYTES (UINT64_C(1) << 62) /* addresses of a process are below it */
#define HCA_MIN_PAGE_LOG 12u
#define HCA_MAX_PAGE_LOG 30u

struct hca_mpt {
	hca_be32 flags;		    /* 00h HCA_MPT_FLAG_* and HCA_ACCESS_* */
	hca_be32 page_size;	    /* 04h bytes, 2^n, 4 KiB .. 1 GiB */
	hca_be32 key;		    /* 08h see HCA_KEY_* */
	hca_be32 pd;		    /* 0Ch */
	hca_be64 start;		    /* 10h first virtual address */
	hca_be64 length;	    /* 18h bytes; 0 needs no MTT entries */
	hca_be32 lkey;		    /* 20h window: key of the region it is bound to; given as 0 */
	hca_be32 window_count;	    /* 24h windows bound to the region */
	hca_be32 domain;	    /* 28h HCA_MPT_DOMAIN_*; 0: HCA_PD_DOMAIN(pd) */
	hca_be32 mtt_seg_hi;	    /* 2Ch mtt_seg[63:32] index of the first MTT entry */
	hca_be32 mtt_seg_lo;	    /* 30h mtt_seg[31:0] */
	hca_be32 mtt_sz;	    /* 34h number of MTT entries, 0 = as many as length needs */
	hca_be32 first_byte_offset; /* 38h of start in the first page */
	hca_be32 qpn;		    /* 3Ch QP of a type 2 window */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mpt, HCA_MPT_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, flags, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, page_size, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, key, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, pd, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, start, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, length, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, lkey, 0x20);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, window_count, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, domain, 0x28);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, mtt_seg_hi, 0x2c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, mtt_seg_lo, 0x30);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, mtt_sz, 0x34);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, first_byte_offset, 0x38);
HCA_STATIC_ASSERT_OFFSET(struct hca_mpt, qpn, 0x3c);

/* 00h flags, table 3-2-19 */
#define HCA_MPT_FLAG_SW_OWNS HCA_MASK(31, 28)
#define HCA_MPT_FLAG_MIO HCA_BIT(17)
#define HCA_MPT_FLAG_BIND_ENABLE HCA_BIT(15) /* as HCA_ACCESS_MW_BIND: both or neither */
/* Not in the table: HCA_ACCESS_FLUSH_GLOBAL, whose bit is that of REGION here. */
#define HCA_MPT_FLAG_FLUSH_GLOBAL HCA_BIT(12)
/*
 * Not in the table: a null region, of which local reads give zeros and where local writes vanish.
 * Its flags are REGION, LOCAL_WRITE and this; it has no MTT entries, and start and length are 0: it
 * accepts every address.
 */
#define HCA_MPT_FLAG_NULL HCA_BIT(11)
#define HCA_MPT_FLAG_WINDOW2 HCA_BIT(10) /* not in the table: the window is of type 2 */
#define HCA_MPT_FLAG_PHYSICAL HCA_BIT(9) /* refused */
/*
 * Set: a region. Clear: a memory window, of type 1 unless WINDOW2 is set; SW2HW_MPT creates it
 * unbound, with 0 in everything but flags, key, pd and domain. The data path binds it (BIND_MW);
 * the binding is not written back to ICM.
 */
#define HCA_MPT_FLAG_REGION HCA_BIT(8)
#define HCA_ACCESS_LOCAL_WRITE HCA_BIT(0)
#define HCA_ACCESS_REMOTE_WRITE HCA_BIT(1)
#define HCA_ACCESS_REMOTE_READ HCA_BIT(2)
#define HCA_ACCESS_REMOTE_ATOMIC HCA_BIT(3)
#define HCA_ACCESS_MW_BIND HCA_BIT(4)
#define HCA_ACCESS_ZERO_BASED HCA_BIT(5)
#define HCA_ACCESS_ON_DEMAND HCA_BIT(6)
#define HCA_ACCESS_MASK HCA_MASK(6, 0)
/*
 * Rights of FLUSH, by its placement type: not in MPT flags, see HCA_MPT_FLAGS_OF(). No region has
 * PERSISTENT.
 */
#define HCA_ACCESS_FLUSH_GLOBAL HCA_BIT(8)
#define HCA_ACCESS_FLUSH_PERSISTENT HCA_BIT(9)
#define HCA_ACCESS_FLUSH (HCA_ACCESS_FLUSH_GLOBAL | HCA_ACCESS_FLUSH_PERSISTENT)
/* those that a QP grants its peer */
#define HCA_ACCESS_REMOTE \
	(HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC | \
	 HCA_ACCESS_FLUSH)
/* the same of a device with these HCA_CAP_* */
#define HCA_ACCESS_REMOTE_OF(caps) \
	((caps)&HCA_CAP_FLUSH ? HCA_ACCESS_REMOTE : HCA_ACCESS_REMOTE & ~HCA_ACCESS_FLUSH)
/* Rights as flags of an MPT entry */
#define HCA_MPT_FLAGS_OF(access) (((access) & ~HCA_ACCESS_FLUSH) | ((access)&HCA_ACCESS_FLUSH) << 4)

/*
 * Protection domain numbers: domain[10:0] is the UAR page and DMA domain of the client that has
 * made the PD, 0 the driver; [31:11] is its own numbering. A CQ's usr_page must equal
 * HCA_PD_DOMAIN(pd).
 *
 * Several clients may have a PD. A region or window belongs to one of them, whose domain is in the
 * MPT: SW2HW_MPT checks every MTT entry against the windows of that domain, and CLOSE_DOMAIN of it
 * takes the entry away. The queues of a QP or SRQ are regions of its usr_page's domain. A QP binds
 * windows of its own domain to regions of the same, whatever else the PD has.
 */
#define HCA_MPT_DOMAIN_VALID HCA_BIT(31)
#define HCA_MPT_DOMAIN(word) HCA_BITS(word, 10, 0)
#define HCA_MPT_DOMAIN_MAKE(domain) (HCA_MPT_DOMAIN_VALID | HCA_FIELD(10, 0, domain))
#define HCA_PD_DOMAIN(pd) HCA_BITS(pd, 10, 0)
#define HCA_PD_NUMBER(pd) HCA_BITS(pd, 31, 11)
#define HCA_PD_MAKE(number, domain) (HCA_FIELD(31, 11, number) | HCA_FIELD(10, 0, domain))

static inline uint64_t
hca_mpt_mtt_seg(const struct hca_mpt *m)
{
	return (uint64_t)hca_be32_to_cpu(m->mtt_seg_hi) << 32 | hca_be32_to_cpu(m->mtt_seg_lo);
}

static inline void
hca_mpt_set_mtt_seg(struct hca_mpt *m, uint64_t mtt_seg)
{
	m->mtt_seg_hi = hca_cpu_to_be32((uint32_t)(mtt_seg >> 32));
	m->mtt_seg_lo = hca_cpu_to_be32((uint32_t)mtt_seg);
}

/*
 * Memory keys: tag[7:0] belongs to the consumer, index[24:8] names the MPT (0 is reserved),
 * random[31:25] changes at each reuse. All 32 bits are compared.
 */
#define HCA_KEY_INDEX_BITS 17u
#define HCA_KEY_TAG(key) HCA_BITS(key, 7, 0)
#define HCA_KEY_INDEX(key) HCA_BITS(key, 24, 8)
#define HCA_KEY_RANDOM(key) HCA_BITS(key, 31, 25)
#define HCA_KEY_MAKE(random, index, tag) \
	(HCA_FIELD(31, 25, random) | HCA_FIELD(24, 8, index) | HCA_FIELD(7, 0, tag))
#define HCA_KEY_INVALID 0u

/*
 * QP numbers: 24 bits, a random tag above log_num_qps bits of index. 0, 1 and FFFFFFh are never
 * allocated.
 */
#define HCA_QPN_MASK 0xffffffu
#define HCA_QPN_MULTICAST 0xffffffu
#define HCA_QPN_GSI 1u
#define HCA_QKEY_CONTROLLED HCA_BIT(31) /* Q_Keys of management, for the privileged */
#define HCA_QKEY_GSI 0x80010000u	/* of every packet to QPN 1 */
#define HCA_QPN_INDEX(qpn, log_num_qps) ((uint32_t)(qpn) & ((1u << (log_num_qps)) - 1u))
#define HCA_QPN_MAKE(tag, index, log_num_qps) \
	((((uint32_t)(tag) << (log_num_qps)) | (uint32_t)(index)) & HCA_QPN_MASK)

#endif
