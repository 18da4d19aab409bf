/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages without a channel. Those that arrive are whole and name their sender; without a receive
 * they are lost, which stops no other.
 *
 *	urma_unreliable DEVICE		to itself
 *	urma_unreliable DEVICE serve F	offers a Jetty by the file F, and takes all messages
 *	urma_unreliable DEVICE use F	sends them until there is the file F.done
 */

#include <unistd.h>

#include "urma_program.h"

#define MESSAGES 64u
#define ROOM 1024u

static void
send(struct program *p, uint32_t len, uint64_t id)
{
	urma_sge_t mine = own(p, (uint32_t)id * 8, len);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM, .user_ctx = id};

	wr.send.src = (urma_sg_t){&mine, 1};
	wr.send.imm_data = id;
	post(p, &wr);
}

static void
received(const struct program *p, const urma_cr_t *cr, uint32_t at, uint32_t len, uint64_t id)
{
	must(cr->completion_len == len && cr->imm_data == id, "message");
	must(cr->remote_id.id == p->to->id.id && cr->tpn == 0, "who has sent it");
	same(&cr->remote_id.eid, &p->to->id.eid, sizeof(cr->remote_id.eid), "from where");
	same(p->mem + at, p->mem + id * 8, len, "message");
}

static uint32_t
length_of(uint64_t id)
{
	return (uint32_t)id * 13 % ROOM;
}

/* Longer than a packet: refused here. */
static void
too_long(struct program *p)
{
	urma_sge_t mine = own(p, 0, PART);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND};
	urma_cr_t cr;

	wr.send.src = (urma_sg_t){&mine, 1};
	post(p, &wr);
	while (urma_poll_jfc(p->jfc, 1, &cr) == 0)
		;
	must(cr.status == URMA_CR_LOC_LEN_ERR, "a message of several packets");
}

/* A receive of the slot that it names. */
static void
receive_slot(struct program *p, uint64_t slot)
{
	uint32_t at = PART + (uint32_t)slot * ROOM;

	memset(p->mem + at, 0, ROOM);
	receive(p, at, ROOM, slot);
}

/* Until the sent ones have come; the first one, which had no receive, may be on its way still. */
static void
await(struct program *p, uint64_t id)
{
	for (int sent = 0, came = 0; !sent || !came;) {
		urma_cr_t cr = next(p);

		if (!cr.flag.bs.s_r) {
			must(cr.user_ctx == id, "what was sent");
			sent = 1;
			continue;
		}
		came |= cr.imm_data == id;
		must(came || (id == 1 && cr.imm_data == 0), "what came");
		received(p, &cr, PART + (uint32_t)cr.user_ctx * ROOM,
			 cr.imm_data == 0 ? 8 : length_of(id), cr.imm_data);
		receive_slot(p, cr.user_ctx);
	}
}

static void
alone(struct program *p)
{
	import_peer(p, &p->jetty->jetty_id, &p->seg->seg, URMA_TM_UM);
	send(p, 8, 0);
	must(next(p).user_ctx == 0, "what is lost is sent, too");
	/* one for the first message, should it be late */
	receive_slot(p, 0);
	receive_slot(p, 1);
	for (uint32_t i = 1; i < MESSAGES; i++) {
		send(p, length_of(i), i);
		await(p, i);
	}
	too_long(p);
}

/* ---- two programs ---- */

/* All messages at least once; the file tells the user that it may end. */
static void
serve(struct program *p, const char *place)
{
	char of_user[4096], done[4096];
	int seen[MESSAGES] = {0};
	uint32_t missing = MESSAGES - 1;

	beside(of_user, sizeof(of_user), place, "user");
	beside(done, sizeof(done), place, "done");
	offer(p, place);
	find_peer(p, of_user, URMA_TM_UM); /* it has sent some already, to no receive */
	for (uint32_t i = 0; i < DEPTH / 2; i++)
		receive_slot(p, i);
	while (missing != 0) {
		urma_cr_t cr = next(p);
		uint32_t at = PART + (uint32_t)cr.user_ctx * ROOM;

		must(cr.flag.bs.s_r && cr.imm_data < MESSAGES, "a receive");
		received(p, &cr, at, length_of(cr.imm_data), cr.imm_data);
		missing -= cr.imm_data != 0 && !seen[cr.imm_data];
		seen[cr.imm_data] = 1;
		receive_slot(p, cr.user_ctx);
	}
	offer(p, done);
	unimport_peer(p);
}

static void
send_all(struct program *p)
{
	for (uint32_t i = 1; i < MESSAGES; i++) {
		send(p, length_of(i), i);
		must(next(p).user_ctx == i, "what was sent");
	}
}

static void
use(struct program *p, const char *place)
{
	char of_user[4096], done[4096];

	beside(of_user, sizeof(of_user), place, "user");
	beside(done, sizeof(done), place, "done");
	find_peer(p, place, URMA_TM_UM);
	send_all(p);
	offer(p, of_user);
	do
		send_all(p);
	while (access(done, F_OK) != 0);
	unimport_peer(p);
}

int
main(int argc, char **argv)
{
	struct program p = {0};

	if (argc != 2)
		return play(argc, argv, &(struct roles){URMA_TM_UM, serve, use});
	open_program(&p, argv[1], URMA_TM_UM, 0);
	alone(&p);
	unimport_peer(&p);
	close_program(&p);
	printf("verified\n");
	return 0;
}
