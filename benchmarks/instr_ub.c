/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>

#include <softhca/urma.h>

#include "instr_ub.h"

struct ub_side {
	struct softhca_context *lib;
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg, *to_seg;
	urma_target_jetty_t *to;
	void *memory;
};

struct instr_ub {
	struct softhca_embed *embed;
	struct ub_side side[2];
	uint32_t bytes, batch;
	enum instr_ub_op op;
	urma_jfs_wr_t *list; /* of a batch; NULL: each message is posted by a call */
};

static void
must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "instr_loop: %s: %s\n", what, softhca_urma_reason());
	exit(1);
}

static void
open_side(struct instr_ub *u, struct ub_side *s, unsigned int index)
{
	urma_jfc_cfg_t depth = {.depth = 4 * u->batch};
	urma_jfr_cfg_t receives = {.depth = 2 * u->batch, .trans_mode = URMA_TM_RM};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = 2 * u->batch, .trans_mode = URMA_TM_RM},
				.jfr_cfg = &receives};
	urma_seg_cfg_t seg = {.len = 4096, .flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE};

	must(softhca_embed_open(u->embed, index, &s->lib) == 0, "open");
	s->ctx = softhca_urma_context(s->lib);
	must(s->ctx != NULL, "urma_context");
	s->jfc = urma_create_jfc(s->ctx, &depth);
	must(s->jfc != NULL, "create_jfc");
	receives.jfc = cfg.jfs_cfg.jfc = s->jfc;
	s->jetty = urma_create_jetty(s->ctx, &cfg);
	must(s->jetty != NULL, "create_jetty");
	s->memory = aligned_alloc(4096, 4096);
	seg.va = (uintptr_t)s->memory;
	s->seg = urma_register_seg(s->ctx, &seg);
	must(s->seg != NULL, "register_seg");
}

static void
import_peer(struct ub_side *s, struct ub_side *peer)
{
	urma_rjetty_t what = {.jetty_id = peer->jetty->jetty_id,
			      .trans_mode = URMA_TM_RM,
			      .type = URMA_JETTY};

	s->to = urma_import_jetty(s->ctx, &what, NULL);
	must(s->to != NULL, "import_jetty");
	s->to_seg = urma_import_seg(s->ctx, &peer->seg->seg, NULL, 0, (urma_import_seg_flag_t){0});
	must(s->to_seg != NULL, "import_seg");
}

struct instr_ub *
instr_ub_open(struct softhca_embed *embed, uint32_t bytes, uint32_t batch, enum instr_ub_op op,
	      bool list)
{
	struct instr_ub *u = calloc(1, sizeof(*u));

	must(u != NULL, "memory");
	u->embed = embed;
	u->bytes = bytes;
	u->batch = batch;
	u->op = op;
	if (list) {
		u->list = calloc(batch, sizeof(*u->list));
		must(u->list != NULL, "memory");
	}
	open_side(u, &u->side[0], 0);
	open_side(u, &u->side[1], 1);
	import_peer(&u->side[0], &u->side[1]);
	import_peer(&u->side[1], &u->side[0]);
	return u;
}

static void
close_side(struct ub_side *s)
{
	must(urma_unimport_seg(s->to_seg) == URMA_SUCCESS, "unimport_seg");
	must(urma_unimport_jetty(s->to) == URMA_SUCCESS, "unimport_jetty");
	must(urma_delete_jetty(s->jetty) == URMA_SUCCESS, "delete_jetty");
	must(urma_unregister_seg(s->seg) == URMA_SUCCESS, "unregister_seg");
	must(urma_delete_jfc(s->jfc) == URMA_SUCCESS, "delete_jfc");
	must(urma_delete_context(s->ctx) == URMA_SUCCESS, "delete_context");
	must(softhca_close(s->lib) == 0, "close");
	free(s->memory);
}

void
instr_ub_close(struct instr_ub *u)
{
	close_side(&u->side[0]);
	close_side(&u->side[1]);
	free(u->list);
	free(u);
}

static void
receive(struct instr_ub *u, struct ub_side *s)
{
	urma_sge_t sge = {(uintptr_t)s->memory, u->bytes, s->seg};
	urma_jfr_wr_t wr = {.src = {&sge, 1}};

	for (uint32_t i = 0; i < u->batch; i++)
		must(urma_post_jetty_recv_wr(s->jetty, &wr, NULL) == URMA_SUCCESS, "post_recv");
}

static void
post_list(struct instr_ub *u, struct ub_side *s, const urma_jfs_wr_t *wr)
{
	for (uint32_t i = 0; i < u->batch; i++) {
		u->list[i] = *wr;
		u->list[i].next = i + 1 < u->batch ? &u->list[i + 1] : NULL;
	}
	must(urma_post_jetty_send_wr(s->jetty, u->list, NULL) == URMA_SUCCESS, "post_send");
}

static void
post(struct instr_ub *u, struct ub_side *s, const struct ub_side *peer)
{
	static const urma_opcode_t opcodes[] = {
		[INSTR_UB_WRITE] = URMA_OPC_WRITE,
		[INSTR_UB_READ] = URMA_OPC_READ,
		[INSTR_UB_SEND] = URMA_OPC_SEND,
	};
	urma_sge_t mine = {(uintptr_t)s->memory, u->bytes, s->seg};
	urma_sge_t theirs = {(uintptr_t)peer->memory, u->bytes, s->to_seg};
	urma_jfs_wr_t wr = {.opcode = opcodes[u->op],
			    .flag.bs.complete_enable = 1,
			    .tjetty = s->to};

	if (u->op == INSTR_UB_SEND) {
		wr.send.src = (urma_sg_t){&mine, 1};
	} else {
		wr.rw.src = (urma_sg_t){u->op == INSTR_UB_READ ? &theirs : &mine, 1};
		wr.rw.dst = (urma_sg_t){u->op == INSTR_UB_READ ? &mine : &theirs, 1};
	}
	if (u->list != NULL) {
		post_list(u, s, &wr);
		return;
	}
	for (uint32_t i = 0; i < u->batch; i++)
		must(urma_post_jetty_send_wr(s->jetty, &wr, NULL) == URMA_SUCCESS, "post_send");
}

static void
take(struct instr_ub *u, struct ub_side *s)
{
	urma_cr_t cr[16];

	for (uint32_t got = 0; got < u->batch;) {
		int n = urma_poll_jfc(s->jfc, 16, cr);

		must(n >= 0, "poll_jfc");
		for (int i = 0; i < n; i++)
			must(cr[i].status == URMA_CR_SUCCESS, "a completion with an error");
		got += (uint32_t)n;
	}
}

void
instr_ub_round(struct instr_ub *u)
{
	if (u->op == INSTR_UB_SEND)
		receive(u, &u->side[1]);
	post(u, &u->side[0], &u->side[1]);
	while (softhca_embed_progress(u->embed) != 0)
		;
	take(u, &u->side[0]);
	if (u->op == INSTR_UB_SEND)
		take(u, &u->side[1]);
}
