/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two programs, each on a device of its own, whose Jettys begin again and again:
 *
 *	urma_again DEVICE serve PLACE	offers a Jetty, resets it after each message
 *	urma_again DEVICE use PLACE	imports it once, sends to it, resets its own in the middle
 *
 * Everything that was posted completes once; the number and the import stay good.
 */

#include "urma_program.h"

#define LIVES 8u
#define WRITES DEPTH
#define RECEIVES 3u
#define LIFE (3 * PART) /* where the server says which life has its receives: 1 .. */

static urma_status_t
modify(struct program *p, urma_jetty_state_t state)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = state};

	return urma_modify_jetty(p->jetty, &attr);
}

/* Answers of a Jetty in ERROR or RESET, or without a receive: the server's, between two lives */
static bool
is_between_lives(urma_cr_status_t status)
{
	return status == URMA_CR_REM_ACCESS_ABORT_ERR || status == URMA_CR_REM_UNSUPPORTED_REQ_ERR;
}

/*
 * To RESET, n requests and receives with the ids 0 .. n - 1 and 100 .. complete, each once and in
 * order, and to READY.
 */
static void
again(struct program *p, uint32_t requests, uint32_t receives)
{
	uint32_t sent = 0, received = 0, number = p->jetty->jetty_id.id;
	urma_cr_t cr;

	must(modify(p, URMA_JETTY_STATE_RESET) == URMA_SUCCESS, "RESET");
	must(modify(p, URMA_JETTY_STATE_READY) == URMA_EAGAIN, "READY with completions");
	for (;;) {
		must(urma_poll_jfc(p->jfc, 1, &cr) == 1, "all is complete when the call returns");
		if (cr.status == URMA_CR_WR_FLUSH_ERR_DONE)
			break;
		must(cr.user_ctx == (cr.flag.bs.s_r ? 100 + received : sent), "order");
		if (cr.flag.bs.s_r) {
			received++;
			must(cr.status == URMA_CR_WR_FLUSH_ERR, "receive");
		} else {
			sent++;
			must(cr.status == URMA_CR_WR_FLUSH_ERR || cr.status == URMA_CR_SUCCESS ||
				     is_between_lives(cr.status),
			     "request");
		}
	}
	while (urma_poll_jfc(p->jfc, 1, &cr) == 1) {
		must(cr.flag.bs.s_r && cr.user_ctx == 100 + received, "a receive");
		received++;
	}
	must(sent == requests && received == receives, "each once");
	must(modify(p, URMA_JETTY_STATE_READY) == URMA_SUCCESS, "READY");
	must(p->jetty->jetty_id.id == number, "number");
}

static void
take_message(struct program *p, uint64_t life)
{
	urma_cr_t cr = next(p);

	must(cr.user_ctx == 1000 + life && cr.imm_data == life, "message");
	same(p->mem + 2 * PART, p->mem, PART, "message");
	memset(p->mem + 2 * PART, 0, PART);
}

/* One of the receives takes the message; the others are flushed. */
static void
serve(struct program *p, const char *place)
{
	for (uint64_t life = 0;; life++) {
		receive(p, 2 * PART, PART, 1000 + life);
		for (uint32_t i = 0; i < RECEIVES; i++)
			receive(p, 2 * PART, PART, 100 + i);
		__atomic_store_n(p->mem + LIFE, (uint8_t)(life + 1), __ATOMIC_RELEASE);
		if (life == 0)
			offer(p, place);
		take_message(p, life);
		if (life == LIVES)
			break;
		again(p, 0, RECEIVES);
	}
}

static void
write_some(struct program *p)
{
	urma_sge_t near = own(p, 0, PART);
	urma_sge_t far = {p->to_seg->seg.ubva.va + PART, PART, p->to_seg};

	for (uint32_t i = 0; i < WRITES; i++) {
		urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .user_ctx = i};

		wr.rw = (urma_rw_wr_t){.src = {&near, 1}, .dst = {&far, 1}};
		post(p, &wr);
	}
}

static void
post_until_taken(struct program *p, const urma_jfs_wr_t *wr)
{
	urma_cr_t cr;

	do {
		urma_jfs_wr_t copy = *wr;

		post(p, &copy);
		cr = next_of_any_status(p);
	} while (is_between_lives(cr.status));
	must(cr.status == URMA_CR_SUCCESS, "message or write");
}

static void
send_until_taken(struct program *p, uint64_t life)
{
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM};
	urma_sge_t near = own(p, 0, PART);

	wr.send = (urma_send_wr_t){.src = {&near, 1}, .imm_data = life};
	post_until_taken(p, &wr);
}

/* A message of this life must not come before the server has left the one before. */
static void
await_life(struct program *p, uint64_t life)
{
	urma_sge_t near = own(p, LIFE, 1);
	urma_sge_t far = {p->to_seg->seg.ubva.va + LIFE, 1, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_READ};

	wr.rw = (urma_rw_wr_t){.src = {&far, 1}, .dst = {&near, 1}};
	do
		post_until_taken(p, &wr);
	while (p->mem[LIFE] != life + 1);
}

static void
use(struct program *p, const char *place)
{
	find_peer(p, place, URMA_TM_RM);
	for (uint64_t life = 0; life < LIVES; life++) {
		write_some(p);
		again(p, WRITES, 0);
		await_life(p, life);
		send_until_taken(p, life);
	}
	await_life(p, LIVES);
	transfer(p, URMA_OPC_WRITE, 0, PART, PART);
	send_until_taken(p, LIVES);
	unimport_peer(p);
}

int
main(int argc, char **argv)
{
	return play(argc, argv, &(struct roles){URMA_TM_RM, serve, use});
}
