/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * urma_events DEVICE: sends messages to itself, and sleeps until the JFC has an event. The sender
 * is told when the receiver was not ready at first.
 */

#include "urma_program.h"

#define MESSAGES 64u

static void
send(struct program *p, uint32_t len, uint64_t id)
{
	urma_sge_t mine = own(p, 0, len);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM, .user_ctx = id};

	wr.send.src = (urma_sg_t){&mine, 1};
	wr.send.imm_data = ~id;
	post(p, &wr);
}

/* Both completions of a message, in either order */
static void
exchanged(struct program *p, uint32_t len, uint64_t id)
{
	int sent = 0, received = 0;

	while (!sent || !received) {
		urma_cr_t cr = next(p);

		must(cr.user_ctx == id, "a completion of another message");
		if (!cr.flag.bs.s_r) {
			must(!sent++, "sent twice");
			continue;
		}
		must(!received++ && cr.completion_len == len && cr.imm_data == ~id, "message");
		must(cr.remote_id.id == p->jetty->jetty_id.id, "who has sent it");
		same(p->mem + PART, p->mem, len, "message");
	}
}

int
main(int argc, char **argv)
{
	struct program p = {0};

	must(argc == 2, "usage: urma_events DEVICE");
	open_program(&p, argv[1], URMA_TM_RM, 1);
	import_peer(&p, &p.jetty->jetty_id, &p.seg->seg, URMA_TM_RM);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t len = i * 997 % PART;

		memset(p.mem + PART, 0, PART);
		if (i % 4 != 0)
			receive(&p, PART, PART, i);
		send(&p, len, i);
		if (i % 4 == 0)
			receive(&p, PART, PART, i);
		exchanged(&p, len, i);
	}
	must(events_seen > 0, "no event came");
	unimport_peer(&p);
	close_program(&p);
	printf("verified\n");
	return 0;
}
