/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * urma_unreliable DEVICE: messages without a channel, to itself. Those that come are whole and say
 * who has sent them; where there is no receive they are lost, which stops nobody.
 */

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
received(const struct program *p, const urma_cr_t *cr, uint32_t len, uint64_t id)
{
	must(cr->completion_len == len && cr->imm_data == id, "message");
	must(cr->remote_id.id == p->jetty->jetty_id.id && cr->tpn == 0, "who has sent it");
	same(&cr->remote_id.eid, &p->jetty->jetty_id.eid, sizeof(cr->remote_id.eid), "from where");
	same(p->mem + PART, p->mem + id * 8, len, "message");
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

int
main(int argc, char **argv)
{
	struct program p = {0};

	must(argc == 2, "usage: urma_unreliable DEVICE");
	open_program(&p, argv[1], URMA_TM_UM, 0);
	import_peer(&p, &p.jetty->jetty_id, &p.seg->seg, URMA_TM_UM);
	send(&p, 8, 0);
	must(next(&p).user_ctx == 0, "what is lost is sent, too");
	for (uint32_t i = 1; i < MESSAGES; i++) {
		uint32_t len = i * 13 % ROOM;
		int sent = 0, came = 0;

		memset(p.mem + PART, 0, ROOM);
		receive(&p, PART, ROOM, 1000 + i);
		send(&p, len, i);
		while (!sent || !came) {
			urma_cr_t cr = next(&p);

			if (cr.flag.bs.s_r && i == 1 && cr.imm_data == 0) {
				/* the first one was on its way until there was a receive */
				received(&p, &cr, 8, 0);
				receive(&p, PART, ROOM, 1000 + i);
			} else if (cr.flag.bs.s_r) {
				received(&p, &cr, len, i);
				came = 1;
			} else {
				must(cr.user_ctx == i, "what was sent");
				sent = 1;
			}
		}
	}
	too_long(&p);
	unimport_peer(&p);
	close_program(&p);
	printf("verified\n");
	return 0;
}
