/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command register with any driver, however wrong. The input is a list of steps on a device
 * that has been reset and, if the first byte of the input is odd, initialized: a byte that names
 * the step (its low three bits), then its parameters:
 *
 *  0  u8 command (index in HCA_CMD_LIST), u8 op_modifier, u8 in_modifier, u8 how:
 *     1: completion by event; 2: QPN with its tag; 4, 8: input, output mailbox elsewhere
 *  1  u8 object: a valid mailbox (image() below)
 *  2  u16 offset, u8 n, n bytes: into the input mailbox
 *  3  u16 offset, u8 n: that many bytes FFh into the input mailbox
 *  4  28 bytes: the whole register
 *  5  u8 offset, u32: any word of the EQ consumer indexes, or a reset
 *  6  u16 offset, u8 n, n bytes: into the user's queues
 *  7  the device runs once
 *
 * Each command ends in bounded time, memory outside the windows does not change, and a reset
 * restores everything.
 */

#include <stdlib.h>
#include <string.h>

#include "abi_bar.h"
#include "abi_cmd.h"
#include "abi_ctx.h"
#include "abi_tp.h"
#include "bar/bar.h"
#include "engine/impl.h"
#include "fuzz.h"

#define HCR(f) (HCA_BAR0_HCR + offsetof(struct hca_hcr, f))
#define LOG_QPS 4u
#define LOG_CQS 3u
#define LOG_EQS 2u
#define LOG_MPTS 6u
#define LOG_MTTS 8u
#define PAGE 1u /* UAR page of the user */
#define BLOCK (256u << 10)
#define KEY(i) HCA_KEY_MAKE(0x2a, i, 0x33)
#define QPN(i) HCA_QPN_MAKE(0x155, i, LOG_QPS)
#define POLLS 3000u
#define STEPS_MAX 64u
/* Offsets in the driver's block; the user's block holds queues, 8 KiB each. */
#define D_IN (128u << 10)
#define D_OUT (D_IN + HCA_MBOX_SIZE)
#define D_EQ (D_IN + 2 * HCA_MBOX_SIZE)
#define U_QUEUE(i) ((i)*8192u)
/* ICM addresses of the tables. */
#define V_QPC 0x100000u
#define V_CQC 0x110000u
#define V_EQC 0x120000u
#define V_MPT 0x200000u
#define V_MTT 0x210000u

struct hcr_world {
	struct hca_port port;
	struct hca *h;
	uint8_t *driver, *user, *foreign; /* BLOCK bytes; foreign is in no window */
	uint8_t *in;
	uint64_t now;
};

static uint16_t
port_rx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return 0;
}

static uint16_t
port_tx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static bool
port_up(struct hca_port *p)
{
	return true;
}

static const struct hca_port_ops port_ops = {.rx = port_rx, .tx = port_tx, .link_up = port_up};

/* ---- the register ---- */

static void
poll_until_clear(struct hcr_world *w, uint32_t off, uint32_t bits, const char *what)
{
	for (unsigned int i = 0; i < POLLS; i++) {
		if ((hca_bar_load(w->h->bar0, off) & bits) == 0)
			return;
		w->now += 1000;
		hca_poll(w->h, 0, w->now);
	}
	fuzz_fail("%s does not end", what);
}

static void
post(struct hcr_world *w, uint32_t ctrl, uint32_t in_mod, uint64_t in, uint64_t out)
{
	uint8_t *b = w->h->bar0;

	hca_bar_store(b, HCR(in_param_hi), (uint32_t)(in >> 32));
	hca_bar_store(b, HCR(in_param_lo), (uint32_t)in);
	hca_bar_store(b, HCR(out_param_hi), (uint32_t)(out >> 32));
	hca_bar_store(b, HCR(out_param_lo), (uint32_t)out);
	hca_bar_store(b, HCR(in_modifier), in_mod);
	hca_bar_store(b, HCR(token), HCA_HCR_MAKE_TOKEN(7));
	hca_bar_store(b, HCR(ctrl), ctrl);
}

/*
 * A command that completes by event may wait for room in an EQ that is not read; go is cleared
 * before.
 */
static uint32_t
command(struct hcr_world *w, uint16_t op, uint8_t mod, uint32_t in_mod)
{
	post(w, HCA_HCR_MAKE_CTRL(0, mod, op), in_mod, (uintptr_t)w->in,
	     (uintptr_t)w->driver + D_OUT);
	poll_until_clear(w, HCR(ctrl), HCA_HCR_GO, "command");
	return HCA_HCR_STATUS(hca_bar_load(w->h->bar0, HCR(ctrl)));
}

/* ---- mailboxes ---- */

static void
image_icm(struct hcr_world *w, const uint64_t *virt, uint32_t n, uint32_t first_page)
{
	struct hca_mbox_map_icm *m = (void *)w->in;

	for (uint32_t i = 0; i < n; i++) {
		struct hca_icm_entry *e = hca_map_icm_entry(m, i);
		uint64_t bus = (uintptr_t)w->driver + (first_page + 2 * i) * 4096u;

		e->virt = hca_cpu_to_be64(virt[i]);
		e->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE(bus, 2));
	}
}

static void
image_init_hca(struct hcr_world *w)
{
	struct hca_mbox_init_hca *m = (void *)w->in;

	m->qpc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_QPC, LOG_QPS));
	m->cqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_CQC, LOG_CQS));
	m->eqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_EQC, LOG_EQS));
	m->mpt_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_MPT, LOG_MPTS));
	m->mtt_base = hca_cpu_to_be64(V_MTT);
}

/* MPT and MTT indexes follow the offsets: 1 is the EQ, from 2 on the user's queues. */
static void
image_mpt(struct hcr_world *w, uint32_t i)
{
	struct hca_mpt *m = (void *)w->in;
	uint8_t *p = i <= 1 ? w->driver + D_EQ : w->user + U_QUEUE(i - 2);

	m->flags = hca_cpu_to_be32(HCA_MPT_FLAG_SW_OWNS | HCA_MPT_FLAG_REGION |
				   HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE);
	m->page_size = hca_cpu_to_be32(4096);
	m->key = hca_cpu_to_be32(KEY(i));
	m->pd = hca_cpu_to_be32(i <= 1 ? HCA_PD_MAKE(1, 0) : HCA_PD_MAKE(5, PAGE));
	m->start = hca_cpu_to_be64((uintptr_t)p);
	m->length = hca_cpu_to_be64(8192);
	hca_mpt_set_mtt_seg(m, 2 * i);
}

static void
image_mtt(struct hcr_world *w, uint32_t i)
{
	struct hca_mbox_write_mtt *m = (void *)w->in;
	uint8_t *p = i <= 1 ? w->driver + D_EQ : w->user + U_QUEUE(i - 2);

	m->start_index = hca_cpu_to_be64(2 * i);
	*hca_write_mtt_entry(m, 0) = hca_cpu_to_be64((uintptr_t)p);
	*hca_write_mtt_entry(m, 1) = hca_cpu_to_be64((uintptr_t)p + 4096);
}

static void
image_eqc(struct hcr_world *w)
{
	struct hca_eqc *c = (void *)w->in;

	hca_eqc_set_start(c, (uintptr_t)w->driver + D_EQ);
	c->logsize = hca_cpu_to_be32(HCA_EQC_MAKE_LOGSIZE(6));
	c->pd = hca_cpu_to_be32(HCA_PD_MAKE(1, 0));
	c->lkey = hca_cpu_to_be32(KEY(1));
}

static void
image_cqc(struct hcr_world *w, uint32_t cqn)
{
	struct hca_cqc *c = (void *)w->in;

	hca_cqc_set_start(c, (uintptr_t)w->user + U_QUEUE(cqn));
	c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(4, PAGE));
	c->pd = hca_cpu_to_be32(HCA_PD_MAKE(5, PAGE));
	c->lkey = hca_cpu_to_be32(KEY(2 + cqn));
	c->cqn = hca_cpu_to_be32(cqn);
	c->ci_db = hca_cpu_to_be32(512);
	c->state_db = hca_cpu_to_be32(512 + 64);
}

static void
image_qpc(struct hcr_world *w, uint32_t i)
{
	struct hca_qpc *q = (void *)w->in;

	q->opt_param_mask = hca_cpu_to_be32(UINT32_MAX);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RC, HCA_MIG_MIGRATED, 0));
	q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(HCA_MTU_1024, 31, 6, 6));
	q->usr_page = hca_cpu_to_be32(PAGE);
	q->local_qpn = hca_cpu_to_be32(QPN(i));
	q->remote_qpn = hca_cpu_to_be32(0x123456);
	q->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	q->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_RETRY(7, 1));
	q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(14, 0, 0, 64));
	memcpy(&q->path.rgid[10], "\xff\xff\x0a\0\0\x02", 6);
	q->path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(UINT64_C(0x020000000002), 0));
	q->path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(UINT64_C(0x020000000002)));
	q->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(4, 8, 7));
	q->pd = hca_cpu_to_be32(HCA_PD_MAKE(5, PAGE));
	q->cqn_snd = hca_cpu_to_be32(2);
	q->cqn_rcv = hca_cpu_to_be32(3);
	q->snd_wqe_base_l = hca_cpu_to_be32(KEY(6));
	q->snd_wqe_len = hca_cpu_to_be32(1024);
	q->rcv_wqe_base_l = hca_cpu_to_be32(KEY(7));
	q->rcv_wqe_len = hca_cpu_to_be32(512);
}

static void
image_gid(struct hcr_world *w)
{
	struct hca_mbox_set_gid *m = (void *)w->in;

	m->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 0, 0));
	memcpy(m->gid + 10, "\xff\xff\x0a\0\0\x01", 6);
	m->mac[0] = 2;
}

/* The attributes that a transition requires; the image of the QPC has the rest. */
static void
image_modify(struct hcr_world *w, uint32_t i)
{
	static const uint32_t masks[] = {
		HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS,
		HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN |
			HCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HCA_QP_ATTR_MIN_RNR_TIMER,
		HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
			HCA_QP_ATTR_SQ_PSN | HCA_QP_ATTR_MAX_QP_RD_ATOMIC,
		0,
	};

	image_qpc(w, i / 4);
	((struct hca_qpc *)(void *)w->in)->opt_param_mask = hca_cpu_to_be32(masks[i % 4]);
}

/* A TP whose number is as that of a QP. */
static void
image_tpc(struct hcr_world *w, uint32_t i)
{
	struct hca_tpc *c = (void *)w->in;

	hca_tpc_set(c, HCA_TPC_STATE, HCA_TPS_ACTIVE);
	hca_tpc_set(c, HCA_TPC_MODE, HCA_TP_MODE_SACK);
	hca_tpc_set(c, HCA_TPC_RULE, HCA_TP_RULE_TIME);
	hca_tpc_set(c, HCA_TPC_TPN, QPN(i));
	hca_tpc_set(c, HCA_TPC_PEER, 0x77);
	hca_tpc_set(c, HCA_TPC_REQUESTS, 16);
	hca_tpc_set(c, HCA_TPC_ACK_EVERY, 16);
	hca_tpc_set(c, HCA_TPC_OOO_EVERY, 1);
	hca_tpc_set(c, HCA_TPC_SPORT, 0xc000);
	c->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	memcpy(&c->path.rgid[10], "\xff\xff\x0a\0\0\x02", 6);
	c->path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(UINT64_C(0x020000000002), 0));
	c->path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(UINT64_C(0x020000000002)));
}

static void
image_jetty(struct hcr_world *w, uint32_t i)
{
	struct hca_qpc *q = (void *)w->in;

	image_qpc(w, i);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_JETTY, 0, 0));
	q->opt_param_mask = hca_cpu_to_be32(HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY |
					    HCA_QP_ATTR_MIN_RNR_TIMER);
}

/* For SET_TPG: one TP or none; for SET_TOKEN: flags. */
static void
image_group(struct hcr_world *w, uint32_t i)
{
	struct hca_mbox_set_tpg *m = (void *)w->in;

	m->count = hca_cpu_to_be32(i);
	m->tpn[0] = hca_cpu_to_be32(QPN(i));
}

static void
image_others(struct hcr_world *w, uint32_t i)
{
	static void (*const ub[])(struct hcr_world * w, uint32_t i) = {image_tpc, image_jetty,
								       image_group};

	if (i % 4 == 0)
		image_gid(w);
	else
		ub[i % 4 - 1](w, i / 4);
}

static void
image(struct hcr_world *w, uint8_t what)
{
	static const uint64_t ctx[] = {V_QPC, V_CQC, V_EQC}, tpt[] = {V_MPT, V_MTT};
	uint32_t i = what / 8;

	memset(w->in, 0, HCA_MBOX_SIZE);
	switch (what % 8) {
	case 0:
		image_init_hca(w);
		break;
	case 1:
		image_icm(w, i & 1 ? tpt : ctx, i & 1 ? 2 : 3, i & 1 ? 6 : 0);
		break;
	case 2:
		image_mpt(w, i);
		break;
	case 3:
		image_mtt(w, i);
		break;
	case 4:
		image_eqc(w);
		break;
	case 5:
		image_cqc(w, i % 8);
		break;
	case 6:
		image_modify(w, i);
		break;
	default:
		image_others(w, i);
	}
}

#define IMAGE(kind, i) ((uint8_t)((kind) + 8 * (i)))

/* ---- steps ---- */

static const struct {
	uint16_t op, flags;
} commands[] = {
#define X(name, op, in, out, flags, caps) {op, flags},
	HCA_CMD_LIST(X)
#undef X
};

static void
run_command(struct hcr_world *w, struct fuzz_input *in)
{
	uint8_t which = fuzz_u8(in), mod = fuzz_u8(in), in_mod = fuzz_u8(in), how = fuzz_u8(in);
	uint64_t src = (uintptr_t)w->in, dst = (uintptr_t)w->driver + D_OUT;
	uint32_t i = which % RTE_DIM(commands);

	if (commands[i].flags & HCA_CMDF_IN_IMM)
		src = how & 4 ? UINT64_MAX : in_mod * 4096u + V_QPC;
	else if (how & 4)
		src = (uintptr_t)w->driver + BLOCK - (how & 0x10 ? 0 : 128);
	if (how & 8)
		dst = (uintptr_t)w->foreign + (how & 0x10 ? BLOCK / 2 : (uint32_t)-16);
	post(w, HCA_HCR_MAKE_CTRL(how & 1, mod, commands[i].op),
	     how & 2	      ? QPN(in_mod % (1u << LOG_QPS))
	     : in_mod == 0xff ? UINT32_MAX
			      : in_mod,
	     src, dst);
	/* a command whose event finds no room delays the next one: reset */
	if (how & 1)
		hca_poll(w->h, 0, w->now += 1000);
	else
		poll_until_clear(w, HCR(ctrl), HCA_HCR_GO, "command");
}

static void
poke(struct fuzz_input *in, uint8_t *base, uint32_t size, bool ones)
{
	uint32_t off = fuzz_u16(in) % size;
	uint8_t n = fuzz_u8(in);
	size_t got = RTE_MIN((uint32_t)n, size - off);
	const uint8_t *p;

	if (ones) {
		memset(base + off, 0xff, got);
		return;
	}
	p = fuzz_bytes(in, got, &got);
	memcpy(base + off, p, got);
}

static void
any_register(struct hcr_world *w, struct fuzz_input *in)
{
	for (uint32_t i = 0; i < sizeof(struct hca_hcr); i += 4) {
		uint32_t v = fuzz_u16(in);

		v |= (uint32_t)fuzz_u16(in) << 16;
		hca_bar_store(w->h->bar0, HCA_BAR0_HCR + i, v);
	}
	for (unsigned int i = 0; i < 20; i++)
		hca_poll(w->h, 0, w->now += 1000);
}

static void
other_register(struct hcr_world *w, struct fuzz_input *in)
{
	uint8_t off = fuzz_u8(in);
	uint32_t v = fuzz_u16(in);

	if (off < HCA_BAR0_EQ_CI_MAX)
		hca_bar_store(w->h->bar0, HCA_BAR0_EQ_CI(off), v);
	else
		hca_bar_store(w->h->bar0, HCA_BAR0_RESET, v & 1);
	hca_poll(w->h, 0, w->now += 1000);
}

static void
step(struct hcr_world *w, struct fuzz_input *in)
{
	switch (fuzz_u8(in) & 7) {
	case 0:
		run_command(w, in);
		break;
	case 1:
		image(w, fuzz_u8(in));
		break;
	case 2:
		poke(in, w->in, HCA_MBOX_SIZE, false);
		break;
	case 3:
		poke(in, w->in, HCA_MBOX_SIZE, true);
		break;
	case 4:
		any_register(w, in);
		break;
	case 5:
		other_register(w, in);
		break;
	case 6:
		poke(in, w->user, 65535, false);
		break;
	default:
		hca_poll(w->h, 0, w->now += 1000);
	}
}

/* ---- beginning and end ---- */

static void *
block(void)
{
	void *p = aligned_alloc(4096, BLOCK);

	fuzz_check(p != NULL, "no memory");
	memset(p, 0xa5, BLOCK);
	return p;
}

static struct hcr_world *
make(void)
{
	static struct hcr_world w;
	struct hca_config cfg = {
		.name = "hcr",
		.port = &w.port,
		.socket_id = -1,
		.log_qps = LOG_QPS,
		.log_cqs = LOG_CQS,
		.log_eqs = LOG_EQS,
		.log_mpts = LOG_MPTS,
		.log_mtts = LOG_MTTS,
		.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB),
		.log_tps = LOG_QPS,
		.ub_ops = 16,
		.records = 64,
		.full_records = 64,
		.records_per_qp = 8,
		.mbufs = 64,
	};

	w.port = (struct hca_port){.ops = &port_ops, .max_frame = 9000, .queue_size = 32};
	fuzz_eal_start();
	fuzz_check(hca_create(&cfg, &w.h) == 0, "hca_create");
	w.driver = block();
	w.user = block();
	w.foreign = block();
	w.in = w.driver + D_IN;
	fuzz_check(hca_dma_attach(w.h, 0, (uintptr_t)w.driver, BLOCK) == 0 &&
			   hca_dma_attach(w.h, PAGE, (uintptr_t)w.user, BLOCK) == 0,
		   "windows");
	return &w;
}

static void
good(struct hcr_world *w, uint8_t what, uint16_t op, uint8_t mod, uint32_t in_mod)
{
	uint32_t status;

	image(w, what);
	status = command(w, op, mod, in_mod);
	fuzz_check(status == HCA_STAT_OK, "command %#x on a fresh device: status %u", op, status);
}

/* Create memory, an EQ, two CQs and a QP in INIT, so that most commands have an object. */
static void
initialize(struct hcr_world *w)
{
	good(w, IMAGE(0, 0), HCA_CMD_INIT_HCA, 0, 0);
	good(w, IMAGE(1, 0), HCA_CMD_MAP_ICM, HCA_ICM_CTX, 3);
	good(w, IMAGE(1, 1), HCA_CMD_MAP_ICM, HCA_ICM_TPT, 2);
	for (uint32_t i = 1; i < 10; i++) {
		good(w, IMAGE(3, i), HCA_CMD_WRITE_MTT, 0, 2);
		good(w, IMAGE(2, i), HCA_CMD_SW2HW_MPT, 0, i);
	}
	good(w, IMAGE(4, 0), HCA_CMD_SW2HW_EQ, 0, 0);
	good(w, IMAGE(5, 2), HCA_CMD_SW2HW_CQ, 0, 2);
	good(w, IMAGE(5, 3), HCA_CMD_SW2HW_CQ, 0, 3);
	good(w, IMAGE(7, 0), HCA_CMD_SET_GID, 0, 0);
	good(w, IMAGE(6, 4), HCA_CMD_RST2INIT_QPEE, 0, QPN(1));
}

static void
reset(struct hcr_world *w)
{
	hca_bar_store(w->h->bar0, HCR(ctrl), 0);
	hca_bar_store(w->h->bar0, HCA_BAR0_RESET, HCA_RESET_START);
	poll_until_clear(w, HCA_BAR0_RESET, UINT32_MAX, "reset");
	for (uint32_t i = 0; i < HCA_BAR0_EQ_CI_MAX; i++)
		hca_bar_store(w->h->bar0, HCA_BAR0_EQ_CI(i), 0);
}

static void
check_empty(struct hcr_world *w)
{
	struct hca_usage u;

	hca_usage(w->h, &u);
	fuzz_check(u.qps == 0 && u.cqs == 0 && u.eqs == 0 && u.mpts == 0,
		   "a reset leaves %u QPs, %u CQs, %u EQs, %u MPTs", u.qps, u.cqs, u.eqs, u.mpts);
	fuzz_check(u.records == 0 && u.full_records == 0 && u.tx_mbufs == 0 && u.resp_mbufs == 0,
		   "a reset leaves records or mbufs");
	/* each byte equals the one before */
	fuzz_check(w->foreign[0] == 0xa5 && memcmp(w->foreign, w->foreign + 1, BLOCK - 1) == 0,
		   "memory outside all windows was written");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	static struct hcr_world *w;

	if (w == NULL) {
		fuzz_lsan_disable();
		w = make();
		fuzz_lsan_enable();
	}
	reset(w);
	memset(w->driver, 0, D_EQ + 8192);
	memset(w->user, 0, 65536);
	if (fuzz_u8(&in) & 1)
		initialize(w);
	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		step(w, &in);
	reset(w);
	check_empty(w);
	return 0;
}
