/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two programs, each on a device of its own, with the installed header only:
 *
 *	urma_peers DEVICE serve PLACE	offers memory and a Jetty, whose names it writes to PLACE
 *	urma_peers DEVICE use PLACE	writes, reads, adds and sends to them
 *
 * The server ends after the message has come, and both say "verified".
 */

#include "urma_program.h"

/* ---- the server ---- */

static void
serve(struct program *p, const char *place)
{
	urma_cr_t cr;

	receive(p, 3 * PART, PART, 1);
	offer(p, place);
	cr = next(p);
	must(cr.completion_len == PART && cr.imm_data == 42, "message");
	same(p->mem + 3 * PART, p->mem + 2 * PART, PART, "message and what was written before");
}

/* ---- the user ---- */

/* The server's memory there does not change. */
static void
add_nothing(struct program *p)
{
	urma_sge_t near = own(p, PART, 8);
	urma_sge_t far = {p->to_seg->seg.ubva.va + 2 * PART, 8, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD};

	wr.faa.src = &near;
	wr.faa.dst = &far;
	post(p, &wr);
	next(p);
	same(p->mem + PART, p->mem, 8, "old value");
}

static void
message(struct program *p)
{
	urma_sge_t near = own(p, 0, PART);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM};

	wr.send.src = (urma_sg_t){&near, 1};
	wr.send.imm_data = 42;
	post(p, &wr);
	next(p);
}

static void
use(struct program *p, const char *place)
{
	find_peer(p, place, URMA_TM_RM);
	transfer(p, URMA_OPC_WRITE, 0, 2 * PART, PART);
	transfer(p, URMA_OPC_READ, PART, 2 * PART, PART);
	same(p->mem + PART, p->mem, PART, "what was written and read back");
	add_nothing(p);
	message(p);
	unimport_peer(p);
}

int
main(int argc, char **argv)
{
	return play(argc, argv, &(struct roles){URMA_TM_RM, serve, use});
}
