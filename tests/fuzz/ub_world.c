/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_world_impl.h"

#include <stdlib.h>
#include <string.h>

#include "../short_ways.h"
#include "../sim/ub_sums.h"
#include "fuzz_hca.h"

#include "urma_impl.h"

#define FRAMES 48u /* of the input's that may wait; the honest peer's come in addition */

/* Contents of the memory at the start of every input. */
static uint8_t pattern[UB_WORLD_MEM];
static struct ub_world *worlds[2]; /* by hca_short_ways */

uint8_t *
ub_world_region(struct ub_world *w, enum ub_world_region r, uint32_t *len)
{
	*len = ub_world_regions[r].len;
	return w->mem + ub_world_regions[r].at;
}

uint32_t
ub_world_token_id(const struct ub_world *w, enum ub_world_region r)
{
	return r == UB_WORLD_VERBS ? HCA_KEY_TOKEN_ID(w->mr->rkey) : w->seg[r]->seg.token_id;
}

uint32_t
ub_world_lkey(const struct ub_world *w, enum ub_world_region r)
{
	return r == UB_WORLD_VERBS ? w->mr->lkey : ((struct urma_segment *)w->seg[r])->mr->lkey;
}

uint32_t
ub_world_number(const struct ub_world *w, const urma_jetty_id_t *id)
{
	const void *object = id == &w->jetty->jetty_id	  ? (const void *)w->jetty
			     : id == &w->theirs->jetty_id ? (const void *)w->theirs
							  : (const void *)w->jfs;

	return ((const struct urma_queue *)object)->number;
}

struct hca_qp *
ub_world_store(const struct ub_world *w, const urma_jetty_id_t *id)
{
	return &w->h->core->qp[ub_world_number(w, id) & w->h->core->qp_mask];
}

struct hca_tp *
ub_world_tp(const struct ub_world *w, unsigned int peer)
{
	return &w->h->core->ub->tp[peer + 1];
}

void
ub_world_frame(struct ub_world *w, const uint8_t *frame, uint32_t len)
{
	if (w->port.head - w->port.tail < FRAMES)
		(void)fuzz_port_put(&w->port, frame, len);
}

/* ---- time and completions ---- */

void
ub_world_progress(void *arg)
{
	struct ub_world *w = arg;

	fuzz_poll(w->h, &w->now);
}

void
ub_world_poll(struct ub_world *w, unsigned int n)
{
	while (n-- > 0)
		fuzz_poll(w->h, &w->now);
}

/* Of a completion, without pointers of the program. */
static void
trace_completion(struct ub_world *w, char queue, const urma_cr_t *cr)
{
	const uint64_t seen[] = {cr->status,	     cr->user_ctx, cr->opcode,	 cr->flag.value,
				 cr->completion_len, cr->local_id, cr->imm_data, cr->remote_id.id};

	fuzz_trace_add(&w->trace, queue, w->now, seen, sizeof(seen));
}

/* A send of the attacked Jetty: once, and in order. */
static void
take_sent(struct ub_world *w, const urma_cr_t *cr)
{
	if (cr->status == URMA_CR_WR_FLUSH_ERR_DONE || cr->status == URMA_CR_WR_SUSPEND_DONE)
		return;
	if (cr->flag.bs.jetty == 0) /* of the JFS */
		return;
	fuzz_check(cr->user_ctx == w->sent_done, "completion of request %llu, expected %u",
		   (unsigned long long)cr->user_ctx, w->sent_done);
	w->sent_done++;
}

static void
reap_theirs(struct ub_world *w)
{
	urma_cr_t cr;

	while (urma_poll_jfc(w->their_jfc, 1, &cr) == 1) {
		trace_completion(w, 't', &cr);
		fuzz_check(cr.status == URMA_CR_SUCCESS && cr.user_ctx == w->their_done,
			   "the bystander's request %llu: status %u",
			   (unsigned long long)cr.user_ctx, cr.status);
		w->their_done++;
	}
}

void
ub_world_reap(struct ub_world *w)
{
	urma_cr_t cr;

	/* a queue that was written into may tell anything, one with errors among it */
	for (int n = 0; n < 1000 && urma_poll_jfc(w->send_jfc, 1, &cr) == 1; n++) {
		trace_completion(w, 's', &cr);
		if (!w->lying)
			take_sent(w, &cr);
	}
	for (int n = 0; n < 1000 && urma_poll_jfc(w->recv_jfc, 1, &cr) == 1; n++) {
		trace_completion(w, 'r', &cr);
		w->recv_done += cr.flag.bs.jetty;
	}
	reap_theirs(w);
}

static void
their_request(struct ub_world *w)
{
	unsigned int peer = w->shared ? 0 : 1;
	uint32_t len;
	uintptr_t from = (uintptr_t)ub_world_region(w, UB_WORLD_THEIR, &len);
	urma_sge_t own = {from, len, w->seg[UB_WORLD_THEIR]};
	urma_sge_t to = {0x10000, len, w->their_to_seg[peer]};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE,
			    .flag.bs.complete_enable = 1,
			    .tjetty = w->their_to[peer],
			    .user_ctx = w->their_posted++,
			    .rw = {.src = {&own, 1}, .dst = {&to, 1}}};

	fuzz_check(urma_post_jetty_send_wr(w->theirs, &wr, NULL) == URMA_SUCCESS,
		   "the bystander cannot post: %s", softhca_urma_reason());
}

/* Only the honest peer has written there. */
static void
check_theirs(const struct ub_world *w)
{
	const uint8_t *at = w->mem + ub_world_regions[UB_WORLD_THEIR].at;

	for (uint32_t i = 0; i < ub_world_regions[UB_WORLD_THEIR].len; i++)
		fuzz_check(at[i] == (uint8_t)w->peer[w->shared ? 0 : 1].written,
			   "the bystander's byte %u is %#x", i, at[i]);
}

void
ub_world_time(struct ub_world *w, uint32_t n)
{
	check_theirs(w);
	their_request(w);
	ub_peer_write(w, w->shared ? 0 : 1);
	for (unsigned int i = 0; i < 1000 && w->their_done != w->their_posted; i++) {
		fuzz_poll(w->h, &w->now);
		reap_theirs(w);
	}
	fuzz_check(w->their_done == w->their_posted, "the bystander's request takes 1 ms");
	for (unsigned int i = 0; i < FUZZ_SETTLE_IDLE; i++)
		fuzz_poll(w->h, &w->now);
	w->now += (uint64_t)n * n * 10000;
	ub_world_poll(w, 2);
}

/* ---- posting ---- */

static void
fill(struct ub_world *w, urma_jfs_wr_t *wr, urma_sge_t *own, urma_sge_t *peers)
{
	static const uint8_t enables[16] = {0x5a, 0xff, 0, 1};

	switch (wr->opcode) {
	case URMA_OPC_SEND:
	case URMA_OPC_SEND_IMM:
		wr->send = (urma_send_wr_t){.src = {own, own[1].len != 0 ? 2 : 1}, .imm_data = 5};
		break;
	case URMA_OPC_READ:
		wr->rw = (urma_rw_wr_t){.src = {peers, 1}, .dst = {own, own[1].len != 0 ? 2 : 1}};
		break;
	case URMA_OPC_CAS:
		wr->cas = (urma_cas_wr_t){.dst = peers, .src = own, .cmp_data = 1, .swap_data = 2};
		break;
	case URMA_OPC_FADD:
		wr->faa = (urma_faa_wr_t){.dst = peers, .src = own, .operand = 1};
		break;
	default:
		wr->rw = (urma_rw_wr_t){.src = {own, own[1].len != 0 ? 2 : 1},
					.dst = {peers, 1 + (wr->opcode == URMA_OPC_WRITE_NOTIFY)},
					.notify_data = 7,
					.byte_enables = enables};
	}
}

void
ub_world_send(struct ub_world *w, uint8_t kind, uint32_t len, bool jfs)
{
	static const urma_opcode_t codes[] = {URMA_OPC_WRITE,	    URMA_OPC_WRITE_IMM,
					      URMA_OPC_READ,	    URMA_OPC_SEND,
					      URMA_OPC_SEND_IMM,    URMA_OPC_CAS,
					      URMA_OPC_FADD,	    SOFTHCA_URMA_OPC_WRITE_BE,
					      URMA_OPC_WRITE_NOTIFY};
	urma_jfs_wr_t wr = {
		.opcode = codes[kind % RTE_DIM(codes)],
		.flag.bs = {.complete_enable = 1, .place_order = kind / 16 % 3, .fence = kind >> 7},
		.tjetty = w->to,
		.user_ctx = w->posted};
	bool atomic = wr.opcode == URMA_OPC_CAS || wr.opcode == URMA_OPC_FADD;
	uint8_t *base = ub_world_region(w, UB_WORLD_LOCAL, &(uint32_t){0});
	urma_sge_t own[2], peers[2];
	uint32_t first;

	if (w->posted >= UB_WORLD_WRS)
		return;
	len = atomic ? 8 : wr.opcode == SOFTHCA_URMA_OPC_WRITE_BE ? 128 : len;
	first = len > 64 && !atomic ? len / 3 : len;
	own[0] = (urma_sge_t){(uintptr_t)base + 1, first, w->seg[UB_WORLD_LOCAL]};
	own[1] = (urma_sge_t){(uintptr_t)base + 0x1800, len - first, w->seg[UB_WORLD_LOCAL]};
	peers[0] = (urma_sge_t){0x10000, len, w->to_seg};
	peers[1] = (urma_sge_t){0x18000, 8, w->to_seg};
	fill(w, &wr, own, peers);
	if (jfs)
		(void)urma_post_jfs_wr(w->jfs, &wr, NULL);
	else
		w->posted += urma_post_jetty_send_wr(w->jetty, &wr, NULL) == URMA_SUCCESS;
}

void
ub_world_recv(struct ub_world *w, bool jfr, unsigned int sges, uint32_t len)
{
	uint8_t *base = ub_world_region(w, UB_WORLD_LOCAL, &(uint32_t){0});
	urma_sge_t sge[4];
	urma_jfr_wr_t wr = {.src = {sge, RTE_MIN(sges, 4u)}, .user_ctx = w->received};

	if (w->received >= UB_WORLD_WRS)
		return;
	for (unsigned int i = 0; i < 4; i++)
		sge[i] = (urma_sge_t){(uintptr_t)base + 0x100 + i * 0x700, RTE_MIN(len, 0x6ffu),
				      w->seg[UB_WORLD_LOCAL]};
	if (jfr)
		(void)urma_post_jfr_wr(w->jfr, &wr, NULL);
	else
		w->received += urma_post_jetty_recv_wr(w->jetty, &wr, NULL) == URMA_SUCCESS;
}

/* ---- the other world ---- */

void
ub_world_run(void (*run)(const uint8_t *data, size_t size), const uint8_t *data, size_t size)
{
	for (int ways = 0; ways < 2; ways++) {
		hca_short_ways = ways != 0;
		run(data, size);
	}
	fuzz_trace_compare(&worlds[1]->trace, &worlds[0]->trace);
}

static struct ub_world *
make(void)
{
	struct ub_world *w = calloc(1, sizeof(*w));

	fuzz_check(w != NULL, "no memory");
	fuzz_eal_start();
	fuzz_pattern(pattern, UB_WORLD_MEM);
	ub_world_make(w);
	fuzz_settle(w->h, &w->now);
	hca_usage(w->h, &w->base);
	return w;
}

/* ---- an input's beginning and end ---- */

static void
make_attacked(struct ub_world *w, uint8_t kind, bool honest)
{
	uint32_t tpn = UB_WORLD_TPN(0);
	urma_jfs_cfg_t s = ub_world_sends(w->send_jfc);
	urma_jfr_cfg_t r = ub_world_receives(w->recv_jfc);

	ub_world_open_tp(w, 0, honest ? kind & 0x7f : kind, honest);
	fuzz_check(hca_driver_change_tpg(w->drv, 0, &tpn, 1) == 0, "group: %s",
		   hca_driver_reason());
	ub_world_permit(w, w->lib, 0);
	ub_world_permit(w, w->their_lib, 0);
	w->jetty = ub_world_make_jetty(w->ctx, w->send_jfc, w->recv_jfc, UB_WORLD_KNOWN);
	w->jfs = urma_create_jfs(w->ctx, &s);
	MADE(w->jfs);
	w->jfr = urma_create_jfr(w->ctx, &r);
	MADE(w->jfr);
}

struct ub_world *
ub_world_begin(uint8_t kind, bool honest)
{
	struct ub_world *w = worlds[hca_short_ways];

	if (w == NULL) {
		fuzz_lsan_disable();
		w = worlds[hca_short_ways] = make();
		fuzz_show_counters(w->h);
		fuzz_lsan_enable();
	}
	fuzz_trace_begin(&w->trace);
	memcpy(w->mem, pattern, UB_WORLD_MEM);
	w->posted = w->received = w->sent_done = w->recv_done = 0;
	w->lying = false;
	w->shared = honest;
	fuzz_lsan_disable(); /* of the driver's, which the EAL's memory points to */
	make_attacked(w, kind, honest);
	fuzz_lsan_enable();
	memset(w->mem + ub_world_regions[UB_WORLD_THEIR].at, (int)w->peer[honest ? 0 : 1].written,
	       ub_world_regions[UB_WORLD_THEIR].len);
	ub_world_poll(w, 4);
	return w;
}

/* All memory except writable regions is unchanged; the table is in the order of addresses. */
static void
check_memory(const struct ub_world *w)
{
	uint32_t from = 0;

	for (unsigned int r = 0; r <= UB_WORLD_REGIONS; r++) {
		uint32_t to = r < UB_WORLD_REGIONS ? ub_world_regions[r].at : UB_WORLD_MEM;

		/* the program itself may have any of its own written */
		if (r < UB_WORLD_REGIONS && !ub_world_regions[r].changes && !w->lying)
			continue;
		for (; from < to; from++)
			fuzz_check(w->mem[from] == pattern[from], "byte %#x was overwritten", from);
		from = r < UB_WORLD_REGIONS ? ub_world_regions[r].at + ub_world_regions[r].len : to;
	}
}

static void
check_bystander(struct ub_world *w)
{
	const struct ub_peer *p = &w->peer[w->shared ? 0 : 1];

	fuzz_check(p->answered == p->written, "the bystander answered %u of %u Writes", p->answered,
		   p->written);
	check_theirs(w);
	fuzz_check(hca_tp_state(&w->h->core->ub->tp[p->tpi]) == HCA_TPS_ACTIVE,
		   "the bystander's TP is dead");
}

static void
check_usage(const struct ub_world *w)
{
	fuzz_check_usage(w->h, &w->base, &w->port);
	for (uint32_t l = 0; l < HCA_TP_LANES; l++)
		fuzz_check(w->h->core->ub->pool[l].free_n == w->h->core->ub->pool[l].count,
			   "operations leaked: %u of %u are free", w->h->core->ub->pool[l].free_n,
			   w->h->core->ub->pool[l].count);
}

/* Whatever came, a Jetty that is flushed begins again. */
static void
begin_again(struct ub_world *w)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_RESET};

	FINE(urma_modify_jetty(w->jetty, &attr));
	ub_world_reap(w);
	attr.state = URMA_JETTY_STATE_READY;
	FINE(urma_modify_jetty(w->jetty, &attr));
	fuzz_settle(w->h, &w->now);
}

static void
stop_attacked(struct ub_world *w)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};

	fuzz_check(hca_driver_destroy_tp(w->drv, UB_WORLD_TPN(0)) == 0, "TP: %s",
		   hca_driver_reason());
	fuzz_settle(w->h, &w->now);
	ub_world_reap(w);
	/* it may be in ERROR already */
	(void)urma_modify_jetty(w->jetty, &attr);
	fuzz_settle(w->h, &w->now);
	ub_world_reap(w);
	fuzz_check(w->lying || (w->sent_done == w->posted && w->recv_done == w->received),
		   "%u of %u requests, %u of %u receives completed", w->sent_done, w->posted,
		   w->recv_done, w->received);
	if (!w->lying)
		begin_again(w);
	FINE(urma_delete_jetty(w->jetty));
	FINE(urma_delete_jfs(w->jfs));
	FINE(urma_delete_jfr(w->jfr));
}

void
ub_world_end(struct ub_world *w)
{
	struct ub_sum broken;

	/* requests of a program may be of gigabytes, so all is quiet only when they are gone */
	if (!w->lying)
		fuzz_settle(w->h, &w->now);
	ub_world_time(w, 0);
	if (!w->lying)
		fuzz_settle(w->h, &w->now);
	check_bystander(w);
	stop_attacked(w);
	w->peer[0].honest = false;
	fuzz_settle(w->h, &w->now);
	ub_world_reap(w);
	hca_driver_poll(w->drv);
	check_memory(w);
	check_usage(w);
	broken = ub_sums_broken(w->h);
	fuzz_check(broken.what == NULL, "%s: %llu and %llu", broken.what,
		   (unsigned long long)broken.left, (unsigned long long)broken.right);
	fuzz_trace_state(&w->trace, w->now, w->h, w->mem, UB_WORLD_MEM);
}
