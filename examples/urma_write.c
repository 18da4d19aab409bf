/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * URMA, the API of UB over Ethernet: a Write with an immediate value from one Jetty to memory that
 * another one offers. Both are of one device here; with two programs the owner of the memory sends
 * its jetty_id, its seg and the token to the other by any means, TCP for instance.
 *
 *   cc urma_write.c -o urma_write $(pkg-config --cflags --libs softhca-urma)
 *   ./urma_write [DEVICE]        a device whose daemon has [ub] enable = yes
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softhca/urma.h>

#define BYTES 4096
#define TOKEN 0x5eed /* a program that has it may use the memory, and the Jetty */

static void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, softhca_urma_reason());
	exit(1);
}

/* The named device, or the first there is, with the first of its addresses. */
static urma_context_t *
open_device(char *name)
{
	int n = 0;
	urma_device_t **list = urma_get_device_list(&n);
	urma_context_t *ctx;

	must(name != NULL || n > 0, "no device");
	ctx = urma_create_context(name != NULL ? urma_get_device_by_name(name) : list[0], 0);
	must(ctx != NULL, "urma_create_context");
	urma_free_device_list(list);
	return ctx;
}

/* A Jetty is a queue of requests and one of receives; it is not connected to a peer. */
static urma_jetty_t *
create_jetty(urma_context_t *ctx, urma_jfc_t *jfc)
{
	urma_jfr_cfg_t receives = {.depth = 15,
				   .trans_mode = URMA_TM_RM,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = TOKEN,
				   .jfc = jfc};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .rnr_retry = 7, .jfc = jfc},
		.jfr_cfg = &receives};
	urma_jetty_t *jetty = urma_create_jetty(ctx, &cfg);

	must(jetty != NULL, "urma_create_jetty");
	return jetty;
}

/* Memory that the device may use, and peers as access says. */
static urma_target_seg_t *
register_memory(urma_context_t *ctx, void *memory, uint32_t access)
{
	urma_seg_cfg_t cfg = {
		.va = (uintptr_t)memory,
		.len = BYTES,
		.token_value.token = TOKEN,
		.flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .access = access},
	};
	urma_target_seg_t *seg = urma_register_seg(ctx, &cfg);

	must(seg != NULL, "urma_register_seg");
	return seg;
}

/* Makes channels to the host of the peer, unless there are some: all programs share them. */
static urma_target_jetty_t *
import_jetty(urma_context_t *ctx, const urma_jetty_id_t *id)
{
	urma_rjetty_t what = {.jetty_id = *id,
			      .trans_mode = URMA_TM_RM,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {TOKEN};
	urma_target_jetty_t *jetty = urma_import_jetty(ctx, &what, &token);

	must(jetty != NULL, "urma_import_jetty");
	return jetty;
}

static urma_target_seg_t *
import_memory(urma_context_t *ctx, urma_seg_t *seg)
{
	urma_token_t token = {TOKEN};
	urma_target_seg_t *there =
		urma_import_seg(ctx, seg, &token, 0, (urma_import_seg_flag_t){0});

	must(there != NULL, "urma_import_seg");
	return there;
}

/* The next completion: of the request, or of a receive. */
static urma_cr_t
next_completion(urma_jfc_t *jfc)
{
	urma_cr_t cr;
	int n;

	do
		n = urma_poll_jfc(jfc, 1, &cr);
	while (n == 0);
	must(n == 1, "urma_poll_jfc");
	if (cr.status != URMA_CR_SUCCESS) {
		fprintf(stderr, "a completion with status %d\n", (int)cr.status);
		exit(1);
	}
	return cr;
}

static void
write_text(urma_jetty_t *from, urma_target_jetty_t *to, urma_sge_t mine, urma_sge_t theirs)
{
	urma_jfs_wr_t wr = {
		.opcode = URMA_OPC_WRITE_IMM,
		.flag.bs.complete_enable = 1,
		.tjetty = to,
		.rw = {.src = {&mine, 1}, .dst = {&theirs, 1}, .notify_data = 42},
	};

	must(urma_post_jetty_send_wr(from, &wr, NULL) == URMA_SUCCESS, "urma_post_jetty_send_wr");
}

int
main(int argc, char **argv)
{
	static const char text[] = "written over UB";
	urma_context_t *ctx = open_device(argc > 1 ? argv[1] : NULL);
	urma_jfc_cfg_t depth = {.depth = 64};
	urma_jfc_t *jfc = urma_create_jfc(ctx, &depth);
	char *memory = aligned_alloc(BYTES, 2 * BYTES), *other = memory + BYTES;
	urma_target_seg_t *seg, *other_seg, *there;
	urma_jfr_wr_t receive = {.user_ctx = 1}; /* without memory: the data has its place */
	urma_jetty_t *from, *to;
	urma_target_jetty_t *peer;

	/* both sides */
	must(jfc != NULL && memory != NULL, "urma_create_jfc, memory");
	memcpy(memory, text, sizeof(text));
	seg = register_memory(ctx, memory, URMA_ACCESS_LOCAL_ONLY);
	other_seg = register_memory(ctx, other, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
	from = create_jetty(ctx, jfc);
	to = create_jetty(ctx, jfc);
	must(urma_post_jetty_recv_wr(to, &receive, NULL) == URMA_SUCCESS, "a receive");

	/* exchanged between both: to->jetty_id, other_seg->seg and the token */
	peer = import_jetty(ctx, &to->jetty_id);
	there = import_memory(ctx, &other_seg->seg);
	write_text(from, peer, (urma_sge_t){(uintptr_t)memory, sizeof(text), seg},
		   (urma_sge_t){there->seg.ubva.va, sizeof(text), there});

	/* one completion for the writer, one for the owner of the memory, in any order */
	for (int i = 0; i < 2; i++) {
		urma_cr_t cr = next_completion(jfc);

		if (cr.flag.bs.s_r) /* the data is there now */
			printf("%s, %u bytes, immediate value %lu\n", other, cr.completion_len,
			       (unsigned long)cr.imm_data);
	}

	urma_unimport_seg(there);
	urma_unimport_jetty(peer);
	urma_delete_jetty(from);
	urma_delete_jetty(to);
	urma_unregister_seg(seg);
	urma_unregister_seg(other_seg);
	urma_delete_jfc(jfc);
	must(urma_delete_context(ctx) == URMA_SUCCESS, "urma_delete_context");
	free(memory);
	return 0;
}
