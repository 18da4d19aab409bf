/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two programs, each on a device of its own, with the installed header only:
 *
 *	urma_peers DEVICE serve PLACE	offers memory and a Jetty, whose names it writes to PLACE
 *	urma_peers DEVICE use PLACE	writes, reads, adds and sends to them
 *
 * The server ends after the message has come, and both say "verified".
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <softhca/urma.h>

#define BYTES (1u << 20)
#define PART (256u << 10)
#define TOKEN 0x1234567u
#define DEPTH 16u

struct offer {
	urma_jetty_id_t jetty;
	urma_seg_t seg;
};

struct program {
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg;
	uint8_t *mem;
	urma_target_jetty_t *to;
	urma_target_seg_t *to_seg;
	struct offer peer;
};

static void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, softhca_urma_reason(), strerror(errno));
	exit(1);
}

static void
open_program(struct program *p, char *device)
{
	urma_jfc_cfg_t depth = {.depth = 4 * DEPTH};
	urma_jfs_cfg_t sends = {.depth = DEPTH,
				.trans_mode = URMA_TM_RM,
				.max_sge = 1,
				.rnr_retry = 7,
				.err_timeout = 20};
	urma_jfr_cfg_t receives = {.depth = DEPTH,
				   .trans_mode = URMA_TM_RM,
				   .max_sge = 1,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = TOKEN};
	urma_seg_cfg_t seg = {.len = BYTES,
			      .token_value.token = TOKEN,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						    URMA_ACCESS_ATOMIC}};
	urma_jetty_cfg_t cfg;
	urma_device_t *dev;
	urma_eid_info_t *eids;
	uint32_t n;

	must(urma_init(NULL) == URMA_SUCCESS, "urma_init");
	dev = urma_get_device_by_name(device);
	must(dev != NULL, "urma_get_device_by_name");
	eids = urma_get_eid_list(dev, &n);
	must(eids != NULL && n != 0, "urma_get_eid_list");
	p->ctx = urma_create_context(dev, eids[n - 1].eid_index);
	must(p->ctx != NULL, "urma_create_context");
	urma_free_eid_list(eids);
	p->jfc = urma_create_jfc(p->ctx, &depth);
	must(p->jfc != NULL, "urma_create_jfc");
	sends.jfc = receives.jfc = p->jfc;
	cfg = (urma_jetty_cfg_t){.jfs_cfg = sends, .jfr_cfg = &receives};
	p->jetty = urma_create_jetty(p->ctx, &cfg);
	must(p->jetty != NULL, "urma_create_jetty");
	p->mem = aligned_alloc(4096, BYTES);
	must(p->mem != NULL, "memory");
	for (uint32_t i = 0; i < BYTES; i++)
		p->mem[i] = (uint8_t)(i * 13 + (i >> 8));
	seg.va = (uintptr_t)p->mem;
	p->seg = urma_register_seg(p->ctx, &seg);
	must(p->seg != NULL, "urma_register_seg");
}

static void
close_program(struct program *p)
{
	must(urma_unregister_seg(p->seg) == URMA_SUCCESS, "urma_unregister_seg");
	must(urma_delete_jetty(p->jetty) == URMA_SUCCESS, "urma_delete_jetty");
	must(urma_delete_jfc(p->jfc) == URMA_SUCCESS, "urma_delete_jfc");
	must(urma_delete_context(p->ctx) == URMA_SUCCESS, "urma_delete_context");
	must(urma_uninit() == URMA_SUCCESS, "urma_uninit");
	free(p->mem);
}

static urma_cr_t
next(struct program *p)
{
	urma_cr_t cr;
	int n;

	while ((n = urma_poll_jfc(p->jfc, 1, &cr)) == 0)
		;
	must(n == 1, "urma_poll_jfc");
	if (cr.status != URMA_CR_SUCCESS) {
		fprintf(stderr, "completion %lu with status %d\n", (unsigned long)cr.user_ctx,
			(int)cr.status);
		exit(1);
	}
	return cr;
}

static void
same(const void *a, const void *b, size_t n, const char *what)
{
	if (memcmp(a, b, n) == 0)
		return;
	fprintf(stderr, "%s: other bytes\n", what);
	exit(1);
}

/* ---- the server ---- */

static void
serve(struct program *p, const char *place)
{
	urma_sge_t sge = {(uintptr_t)p->mem + 3 * PART, PART, p->seg};
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = 1};
	char part[4096];
	urma_cr_t cr;
	FILE *f;

	must(urma_post_jetty_recv_wr(p->jetty, &wr, NULL) == URMA_SUCCESS, "receive");
	snprintf(part, sizeof(part), "%s.part", place);
	f = fopen(part, "wb");
	must(f != NULL, part);
	must(fwrite(&p->jetty->jetty_id, sizeof(p->jetty->jetty_id), 1, f) == 1 &&
		     fwrite(&p->seg->seg, sizeof(p->seg->seg), 1, f) == 1 && fclose(f) == 0 &&
		     rename(part, place) == 0,
	     "offer");
	cr = next(p);
	must(cr.completion_len == PART && cr.imm_data == 42, "message");
	same(p->mem + 3 * PART, p->mem + 2 * PART, PART, "message and what was written before");
}

/* ---- the user ---- */

static void
find_peer(struct program *p, const char *place)
{
	urma_rjetty_t jetty = {.trans_mode = URMA_TM_RM,
			       .type = URMA_JETTY,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {TOKEN};
	FILE *f = fopen(place, "rb");

	must(f != NULL && fread(&p->peer.jetty, sizeof(p->peer.jetty), 1, f) == 1 &&
		     fread(&p->peer.seg, sizeof(p->peer.seg), 1, f) == 1,
	     place);
	fclose(f);
	jetty.jetty_id = p->peer.jetty;
	p->to = urma_import_jetty(p->ctx, &jetty, &token);
	must(p->to != NULL, "urma_import_jetty");
	p->to_seg = urma_import_seg(p->ctx, &p->peer.seg, &token, 0, (urma_import_seg_flag_t){0});
	must(p->to_seg != NULL, "urma_import_seg");
}

static void
transfer(struct program *p, urma_opcode_t opcode, uint32_t mine, uint32_t theirs)
{
	urma_sge_t own = {(uintptr_t)p->mem + mine, PART, p->seg};
	urma_sge_t far = {p->peer.seg.ubva.va + theirs, PART, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = opcode, .flag.bs.complete_enable = 1, .tjetty = p->to};

	wr.rw.src = (urma_sg_t){opcode == URMA_OPC_READ ? &far : &own, 1};
	wr.rw.dst = (urma_sg_t){opcode == URMA_OPC_READ ? &own : &far, 1};
	must(urma_post_jetty_send_wr(p->jetty, &wr, NULL) == URMA_SUCCESS, "post");
	next(p);
}

/* What the server has there does not change. */
static void
add_nothing(struct program *p)
{
	urma_sge_t own = {(uintptr_t)p->mem + PART, 8, p->seg};
	urma_sge_t far = {p->peer.seg.ubva.va + 2 * PART, 8, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .flag.bs.complete_enable = 1, .tjetty = p->to};

	wr.faa.src = &own;
	wr.faa.dst = &far;
	must(urma_post_jetty_send_wr(p->jetty, &wr, NULL) == URMA_SUCCESS, "post");
	next(p);
	same(p->mem + PART, p->mem, 8, "old value");
}

static void
message(struct program *p)
{
	urma_sge_t own = {(uintptr_t)p->mem, PART, p->seg};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM,
			    .flag.bs.complete_enable = 1,
			    .tjetty = p->to};

	wr.send.src = (urma_sg_t){&own, 1};
	wr.send.imm_data = 42;
	must(urma_post_jetty_send_wr(p->jetty, &wr, NULL) == URMA_SUCCESS, "post");
	next(p);
}

static void
use(struct program *p, const char *place)
{
	find_peer(p, place);
	transfer(p, URMA_OPC_WRITE, 0, 2 * PART);
	transfer(p, URMA_OPC_READ, PART, 2 * PART);
	same(p->mem + PART, p->mem, PART, "what was written and read back");
	add_nothing(p);
	message(p);
	must(urma_unimport_seg(p->to_seg) == URMA_SUCCESS, "urma_unimport_seg");
	must(urma_unimport_jetty(p->to) == URMA_SUCCESS, "urma_unimport_jetty");
}

int
main(int argc, char **argv)
{
	struct program p = {0};

	if (argc != 4 || (strcmp(argv[2], "serve") != 0 && strcmp(argv[2], "use") != 0)) {
		fprintf(stderr, "usage: %s DEVICE serve|use PLACE\n", argv[0]);
		return 2;
	}
	open_program(&p, argv[1]);
	if (strcmp(argv[2], "serve") == 0)
		serve(&p, argv[3]);
	else
		use(&p, argv[3]);
	close_program(&p);
	printf("verified\n");
	return 0;
}
