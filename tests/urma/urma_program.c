/* SPDX-License-Identifier: BSD-3-Clause */

#include <unistd.h>

#include "urma_program.h"

int events_seen;

void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, softhca_urma_reason(), strerror(errno));
	exit(1);
}

urma_jetty_t *
new_jetty(struct program *p, urma_transport_mode_t mode)
{
	/* a receive without a channel has one more, for the address in front */
	uint8_t sges = mode == URMA_TM_UM ? 1 : SGES;
	urma_jfs_cfg_t sends = {.depth = DEPTH,
				.trans_mode = mode,
				.max_sge = sges,
				.rnr_retry = 7,
				.err_timeout = 20,
				.jfc = p->jfc};
	urma_jfr_cfg_t receives = {.depth = DEPTH,
				   .trans_mode = mode,
				   .max_sge = sges,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = TOKEN,
				   .jfc = p->jfc};
	urma_jetty_cfg_t cfg = {.jfs_cfg = sends, .jfr_cfg = &receives};
	urma_jetty_t *jetty = urma_create_jetty(p->ctx, &cfg);

	must(jetty != NULL, "urma_create_jetty");
	return jetty;
}

static urma_context_t *
open_device(char *device)
{
	urma_context_t *ctx;
	urma_device_t *dev;
	urma_eid_info_t *eids;
	uint32_t n;

	must(urma_init(NULL) == URMA_SUCCESS, "urma_init");
	dev = urma_get_device_by_name(device);
	must(dev != NULL, "urma_get_device_by_name");
	eids = urma_get_eid_list(dev, &n);
	must(eids != NULL && n != 0, "urma_get_eid_list");
	ctx = urma_create_context(dev, eids[n - 1].eid_index);
	must(ctx != NULL, "urma_create_context");
	urma_free_eid_list(eids);
	return ctx;
}

void
open_program(struct program *p, char *device, urma_transport_mode_t mode, int events)
{
	urma_jfc_cfg_t depth = {.depth = 4 * DEPTH};
	urma_seg_cfg_t seg = {.len = BYTES,
			      .token_value.token = TOKEN,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						    URMA_ACCESS_ATOMIC}};

	p->ctx = open_device(device);
	if (events)
		p->jfce = urma_create_jfce(p->ctx);
	must(!events || p->jfce != NULL, "urma_create_jfce");
	depth.jfce = p->jfce;
	p->jfc = urma_create_jfc(p->ctx, &depth);
	must(p->jfc != NULL, "urma_create_jfc");
	p->jetty = new_jetty(p, mode);
	p->mem = aligned_alloc(4096, BYTES);
	must(p->mem != NULL, "memory");
	for (uint32_t i = 0; i < BYTES; i++)
		p->mem[i] = (uint8_t)(i * 13 + (i >> 8));
	seg.va = (uintptr_t)p->mem;
	p->seg = urma_register_seg(p->ctx, &seg);
	must(p->seg != NULL, "urma_register_seg");
}

void
close_program(struct program *p)
{
	must(urma_unregister_seg(p->seg) == URMA_SUCCESS, "urma_unregister_seg");
	must(urma_delete_jetty(p->jetty) == URMA_SUCCESS, "urma_delete_jetty");
	must(urma_delete_jfc(p->jfc) == URMA_SUCCESS, "urma_delete_jfc");
	if (p->jfce != NULL)
		must(urma_delete_jfce(p->jfce) == URMA_SUCCESS, "urma_delete_jfce");
	must(urma_delete_context(p->ctx) == URMA_SUCCESS, "urma_delete_context");
	must(urma_uninit() == URMA_SUCCESS, "urma_uninit");
	free(p->mem);
}

int
play(int argc, char **argv, const struct roles *roles)
{
	struct program p = {0};

	if (argc != 4 || (strcmp(argv[2], "serve") != 0 && strcmp(argv[2], "use") != 0)) {
		fprintf(stderr, "usage: %s DEVICE serve|use PLACE\n", argv[0]);
		return 2;
	}
	open_program(&p, argv[1], roles->mode, 0);
	if (strcmp(argv[2], "serve") == 0)
		roles->serve(&p, argv[3]);
	else
		roles->use(&p, argv[3]);
	close_program(&p);
	printf("verified\n");
	return 0;
}

void
beside(char *name, size_t bytes, const char *place, const char *what)
{
	snprintf(name, bytes, "%s.%s", place, what);
}

/* Sleeps for an event; completions from before the JFC was armed are polled after 100 ms. */
static void
await(struct program *p)
{
	urma_jfc_t *of = NULL;
	uint32_t acks = 1;
	int n;

	must(urma_rearm_jfc(p->jfc, false) == URMA_SUCCESS, "urma_rearm_jfc");
	n = urma_wait_jfc(p->jfce, 1, 100, &of);
	must(n == 0 || (n == 1 && of == p->jfc), "urma_wait_jfc");
	events_seen += n;
	if (n == 1)
		urma_ack_jfc(&of, &acks, 1);
}

urma_cr_t
next_of_any_status(struct program *p)
{
	urma_cr_t cr;
	int n;

	while ((n = urma_poll_jfc(p->jfc, 1, &cr)) == 0)
		if (p->jfce != NULL)
			await(p);
	must(n == 1, "urma_poll_jfc");
	return cr;
}

urma_cr_t
next(struct program *p)
{
	urma_cr_t cr = next_of_any_status(p);

	if (cr.status != URMA_CR_SUCCESS) {
		fprintf(stderr, "completion %lu with status %d\n", (unsigned long)cr.user_ctx,
			(int)cr.status);
		exit(1);
	}
	return cr;
}

void
same(const void *a, const void *b, size_t n, const char *what)
{
	if (memcmp(a, b, n) == 0)
		return;
	fprintf(stderr, "%s: other bytes\n", what);
	exit(1);
}

void
offer(const struct program *p, const char *place)
{
	char part[4096];
	FILE *f;

	snprintf(part, sizeof(part), "%s.part", place);
	f = fopen(part, "wb");
	must(f != NULL, part);
	must(fwrite(&p->jetty->jetty_id, sizeof(p->jetty->jetty_id), 1, f) == 1 &&
		     fwrite(&p->seg->seg, sizeof(p->seg->seg), 1, f) == 1 && fclose(f) == 0 &&
		     rename(part, place) == 0,
	     "offer");
}

void
find_peer(struct program *p, const char *place, urma_transport_mode_t mode)
{
	urma_jetty_id_t jetty;
	urma_seg_t seg;
	FILE *f;

	while ((f = fopen(place, "rb")) == NULL)
		usleep(1000);
	must(fread(&jetty, sizeof(jetty), 1, f) == 1 && fread(&seg, sizeof(seg), 1, f) == 1, place);
	fclose(f);
	import_peer(p, &jetty, &seg, mode);
}

void
import_peer(struct program *p, const urma_jetty_id_t *jetty, const urma_seg_t *seg,
	    urma_transport_mode_t mode)
{
	urma_rjetty_t what = {.jetty_id = *jetty,
			      .trans_mode = mode,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {TOKEN};
	urma_seg_t copy = *seg;

	p->to = urma_import_jetty(p->ctx, &what, &token);
	must(p->to != NULL, "urma_import_jetty");
	p->to_seg = urma_import_seg(p->ctx, &copy, &token, 0, (urma_import_seg_flag_t){0});
	must(p->to_seg != NULL, "urma_import_seg");
}

void
unimport_peer(struct program *p)
{
	must(urma_unimport_seg(p->to_seg) == URMA_SUCCESS, "urma_unimport_seg");
	must(urma_unimport_jetty(p->to) == URMA_SUCCESS, "urma_unimport_jetty");
}

urma_sge_t
own(const struct program *p, uint32_t at, uint32_t len)
{
	return (urma_sge_t){(uintptr_t)p->mem + at, len, p->seg};
}

void
receive(struct program *p, uint32_t at, uint32_t len, uint64_t id)
{
	urma_sge_t sge = own(p, at, len);
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = id};

	must(urma_post_jetty_recv_wr(p->jetty, &wr, NULL) == URMA_SUCCESS, "receive");
}

void
post(struct program *p, urma_jfs_wr_t *wr)
{
	wr->flag.bs.complete_enable = 1;
	wr->tjetty = p->to;
	must(urma_post_jetty_send_wr(p->jetty, wr, NULL) == URMA_SUCCESS, "post");
}

void
transfer(struct program *p, urma_opcode_t opcode, uint32_t near, uint32_t far, uint32_t len)
{
	urma_sge_t mine = own(p, near, len);
	urma_sge_t theirs = {p->to_seg->seg.ubva.va + far, len, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = opcode};

	wr.rw.src = (urma_sg_t){opcode == URMA_OPC_READ ? &theirs : &mine, 1};
	wr.rw.dst = (urma_sg_t){opcode == URMA_OPC_READ ? &mine : &theirs, 1};
	post(p, &wr);
	next(p);
}
