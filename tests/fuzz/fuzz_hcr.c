/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command register with any driver, however wrong. The input is a list of steps on a device
 * that has been reset and, if the first byte of the input is odd, initialized, with 2 also with
 * objects of UB: a byte that names the step (its low three bits), then its parameters:
 *
 *  0  u8 command (index in HCA_CMD_LIST), u8 op_modifier, u8 in_modifier, u8 how:
 *     1: completion by event; 2: QPN with its tag; 4, 8: input, output mailbox elsewhere;
 *     20h: the input is a QPN
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

#include "bar/bar.h"
#include "fuzz_hcr.h"

#define HCR(f) (HCA_BAR0_HCR + offsetof(struct hca_hcr, f))
#define POLLS 3000u
#define STEPS_MAX 64u

static uint16_t
port_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return 0;
}

static uint16_t
port_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
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
		if ((hca_bar_load(w->h->core->bar0, off) & bits) == 0)
			return;
		w->now += 1000;
		hca_poll(w->h, 0, w->now);
	}
	fuzz_fail("%s does not end", what);
}

static void
post(struct hcr_world *w, uint32_t ctrl, uint32_t in_mod, uint64_t in, uint64_t out)
{
	uint8_t *b = w->h->core->bar0;

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
	return HCA_HCR_STATUS(hca_bar_load(w->h->core->bar0, HCR(ctrl)));
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

	if (commands[i].flags & HCA_CMDF_IN_IMM && how & 0x20)
		src = QPN(how >> 6);
	else if (commands[i].flags & HCA_CMDF_IN_IMM)
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
		hca_bar_store(w->h->core->bar0, HCA_BAR0_HCR + i, v);
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
		hca_bar_store(w->h->core->bar0, HCA_BAR0_EQ_CI(off), v);
	else
		hca_bar_store(w->h->core->bar0, HCA_BAR0_RESET, v & 1);
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
		hcr_image(w, fuzz_u8(in));
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

	hcr_image(w, what);
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

/* Two TPs, a group of one of them, a Jetty with a well-known number, a segment. */
static void
initialize_ub(struct hcr_world *w)
{
	uint32_t status;

	good(w, IMAGE(7, 1 + 4 * 1), HCA_CMD_SW2HW_TP, 0, QPN(1));
	good(w, IMAGE(7, 1 + 4 * 2), HCA_CMD_SW2HW_TP, 0, QPN(2));
	good(w, IMAGE(7, 3 + 4 * 1), HCA_CMD_SET_TPG, 0, 3);
	good(w, IMAGE(7, 2 + 4 * 3), HCA_CMD_RST2RTS_QPEE, 0, QPN(3));
	good(w, IMAGE(7, 3 + 4 * 1), HCA_CMD_SET_TOKEN, 0, 8);
	post(w, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_SET_JETTY_ID), 40, QPN(3), 0);
	poll_until_clear(w, HCR(ctrl), HCA_HCR_GO, "command");
	status = HCA_HCR_STATUS(hca_bar_load(w->h->core->bar0, HCR(ctrl)));
	fuzz_check(status == HCA_STAT_OK, "well-known number: status %u", status);
}

static void
reset(struct hcr_world *w)
{
	hca_bar_store(w->h->core->bar0, HCR(ctrl), 0);
	hca_bar_store(w->h->core->bar0, HCA_BAR0_RESET, HCA_RESET_START);
	poll_until_clear(w, HCA_BAR0_RESET, UINT32_MAX, "reset");
	for (uint32_t i = 0; i < HCA_BAR0_EQ_CI_MAX; i++)
		hca_bar_store(w->h->core->bar0, HCA_BAR0_EQ_CI(i), 0);
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
	hcr_check_no_ub(w);
	/* each byte equals the one before */
	fuzz_check(w->foreign[0] == 0xa5 && memcmp(w->foreign, w->foreign + 1, BLOCK - 1) == 0,
		   "memory outside all windows was written");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	static struct hcr_world *w;
	uint8_t objects;

	if (w == NULL) {
		fuzz_lsan_disable();
		w = make();
		fuzz_lsan_enable();
	}
	reset(w);
	memset(w->driver, 0, D_EQ + 8192);
	memset(w->user, 0, 65536);
	objects = fuzz_u8(&in);
	if (objects & 1)
		initialize(w);
	if ((objects & 3) == 3)
		initialize_ub(w);
	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		step(w, &in);
	reset(w);
	check_empty(w);
	return 0;
}
