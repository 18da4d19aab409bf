/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two programs, each on a device of its own, whose Jettys have one peer (RC):
 *
 *	urma_bound DEVICE serve PLACE	offers a Jetty by the file PLACE, and binds it to the user's
 *	urma_bound DEVICE use PLACE	binds its own to that, and offers it by PLACE.user
 *
 * Messages sent before the server has bound its Jetty wait; messages of another Jetty are refused
 * and use no receive; messages go both ways.
 */

#include <unistd.h>

#include "urma_program.h"

#define WAIT_MS 50

static void
bind(struct program *p)
{
	must(urma_bind_jetty(p->jetty, p->to) == URMA_SUCCESS, "urma_bind_jetty");
}

static void
send_from(struct program *p, urma_jetty_t *jetty, uint64_t id)
{
	urma_sge_t mine = own(p, (uint32_t)id * 64, PART);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM,
			    .flag.bs.complete_enable = 1,
			    .tjetty = jetty == p->jetty ? NULL : p->to,
			    .user_ctx = id};

	wr.send.src = (urma_sg_t){&mine, 1};
	wr.send.imm_data = id;
	must(urma_post_jetty_send_wr(jetty, &wr, NULL) == URMA_SUCCESS, "send");
}

/* The next completion is of a receive, with this message of the peer. */
static void
received(struct program *p, uint64_t id)
{
	urma_cr_t cr = next(p);

	must(cr.flag.bs.s_r && cr.imm_data == id && cr.completion_len == PART, "message");
	must(cr.remote_id.id == p->to->id.id, "who has sent it");
	same(&cr.remote_id.eid, &p->to->id.eid, sizeof(cr.remote_id.eid), "from where");
	same(p->mem + 2 * PART, p->mem + id * 64, PART, "message");
	memset(p->mem + 2 * PART, 0, PART);
}

static void
sent(struct program *p, uint64_t id, urma_cr_status_t status)
{
	urma_cr_t cr = next_of_any_status(p);

	must(!cr.flag.bs.s_r && cr.user_ctx == id && cr.status == status, "what was sent");
}

static void
nothing_completes(struct program *p)
{
	urma_cr_t cr;

	for (int i = 0; i < WAIT_MS; i++) {
		must(urma_poll_jfc(p->jfc, 1, &cr) == 0, "who is not bound takes nothing");
		usleep(1000);
	}
}

static void
leave(struct program *p)
{
	must(urma_unbind_jetty(p->jetty) == URMA_SUCCESS, "urma_unbind_jetty");
	unimport_peer(p);
}

static void
serve(struct program *p, const char *place)
{
	char of_user[4096];

	beside(of_user, sizeof(of_user), place, "user");
	receive(p, 2 * PART, PART, 1);
	offer(p, place);
	find_peer(p, of_user, URMA_TM_RC);
	bind(p);
	received(p, 1);
	receive(p, 2 * PART, PART, 2);
	received(p, 2); /* not the stranger's */
	send_from(p, p->jetty, 3);
	sent(p, 3, URMA_CR_SUCCESS);
	leave(p);
}

static void
use(struct program *p, const char *place)
{
	urma_jetty_t *stranger = new_jetty(p, URMA_TM_RM);
	char of_user[4096];

	beside(of_user, sizeof(of_user), place, "user");
	find_peer(p, place, URMA_TM_RC);
	bind(p);
	receive(p, 2 * PART, PART, 3);
	send_from(p, p->jetty, 1);
	nothing_completes(p);
	offer(p, of_user);
	sent(p, 1, URMA_CR_SUCCESS);
	send_from(p, stranger, 9);
	sent(p, 9, URMA_CR_REM_ACCESS_ABORT_ERR);
	send_from(p, p->jetty, 2);
	sent(p, 2, URMA_CR_SUCCESS);
	received(p, 3);
	must(urma_delete_jetty(stranger) == URMA_SUCCESS, "urma_delete_jetty");
	leave(p);
}

int
main(int argc, char **argv)
{
	return play(argc, argv, &(struct roles){URMA_TM_RC, serve, use});
}
