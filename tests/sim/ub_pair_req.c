/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests of a pair, their completions, and the bytes that they have moved. */

#include "ub_pair.h"

#define CHECK(p, condition, ...) sim_check((p)->s, condition, __VA_ARGS__)

/* ---- requests ---- */

urma_sge_t
ub_pair_local(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t len)
{
	return (urma_sge_t){(uintptr_t)p->side[side].mem + at, len, p->side[side].seg};
}

urma_sge_t
ub_pair_remote(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t len)
{
	return (urma_sge_t){(uintptr_t)p->side[1 - side].mem + at, len, p->side[side].to_seg};
}

void
ub_pair_post(struct ub_pair *p, unsigned int side, urma_jfs_wr_t *wr)
{
	urma_status_t status = urma_post_jetty_send_wr(p->side[side].jetty, wr, NULL);

	CHECK(p, status == URMA_SUCCESS, "post: %s", softhca_urma_reason());
}

urma_jfs_wr_t
ub_pair_request(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint64_t id)
{
	return (urma_jfs_wr_t){.opcode = opcode,
			       .flag.bs.complete_enable = 1,
			       .tjetty = p->side[side].to_jetty,
			       .user_ctx = id};
}

void
ub_pair_ordered(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint32_t local,
		uint32_t remote, uint32_t len, uint32_t order, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, side, local, len);
	urma_sge_t peers = ub_pair_remote(p, side, remote, len);
	urma_jfs_wr_t wr = ub_pair_request(p, side, opcode, id);
	bool read = opcode == URMA_OPC_READ;

	wr.flag.bs.place_order = order;
	wr.rw.src = (urma_sg_t){read ? &peers : &own, 1};
	wr.rw.dst = (urma_sg_t){read ? &own : &peers, 1};
	wr.rw.notify_data = id;
	ub_pair_post(p, side, &wr);
}

void
ub_pair_rw(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint32_t local,
	   uint32_t remote, uint32_t len, uint64_t id)
{
	ub_pair_ordered(p, side, opcode, local, remote, len, HCA_UB_ODR_NONE, id);
}

void
ub_pair_send(struct ub_pair *p, unsigned int side, urma_target_jetty_t *to, uint32_t from,
	     uint32_t len, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, side, from, len);
	urma_jfs_wr_t wr = ub_pair_request(p, side, URMA_OPC_SEND_IMM, id);

	wr.tjetty = to;
	wr.send.src = (urma_sg_t){&own, 1};
	wr.send.imm_data = id;
	ub_pair_post(p, side, &wr);
}

void
ub_pair_atomic(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint32_t local,
	       uint32_t remote, uint32_t len, uint64_t operand, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, side, local, len);
	urma_sge_t peers = ub_pair_remote(p, side, remote, len);
	urma_jfs_wr_t wr = ub_pair_request(p, side, opcode, id);

	wr.faa = (urma_faa_wr_t){.dst = &peers, .src = &own, .operand = operand};
	ub_pair_post(p, side, &wr);
}

void
ub_pair_recv(struct ub_pair *p, unsigned int side, bool jfr, uint32_t at, uint32_t len, uint64_t id)
{
	struct ub_pair_side *sd = &p->side[side];
	urma_sge_t sge = ub_pair_local(p, side, at, len);
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = id};
	urma_status_t status = jfr ? urma_post_jfr_wr(sd->jfr, &wr, NULL)
				   : urma_post_jetty_recv_wr(sd->jetty, &wr, NULL);

	CHECK(p, status == URMA_SUCCESS, "receive: %s", softhca_urma_reason());
}

/* ---- completions ---- */

urma_cr_t
ub_pair_next(struct ub_pair *p, urma_jfc_t *jfc, uint64_t max_ns)
{
	uint64_t end = p->s->now + max_ns;
	urma_cr_t cr;
	int n;

	while ((n = urma_poll_jfc(jfc, 1, &cr)) == 0) {
		CHECK(p, p->s->now < end, "no completion in %lu ns", (unsigned long)max_ns);
		sim_poll(p->s);
	}
	CHECK(p, n == 1, "poll_jfc: %s", softhca_urma_reason());
	return cr;
}

void
ub_pair_done(struct ub_pair *p, unsigned int side, uint64_t id, urma_cr_status_t status)
{
	urma_cr_t cr = ub_pair_next(p, p->side[side].send_jfc, 5000 * UB_PAIR_MS);

	CHECK(p, cr.user_ctx == id && cr.status == status,
	      "completion of %lu with status %u, not of %lu with %u", (unsigned long)cr.user_ctx,
	      cr.status, (unsigned long)id, status);
	UB_PAIR_EQ(p, cr.flag.bs.s_r, 0);
}

urma_cr_t
ub_pair_received(struct ub_pair *p, unsigned int side, uint64_t id, uint32_t len)
{
	urma_cr_t cr = ub_pair_next(p, p->side[side].recv_jfc, 5000 * UB_PAIR_MS);

	CHECK(p, cr.user_ctx == id && cr.status == URMA_CR_SUCCESS,
	      "receive of %lu with status %u, not of %lu", (unsigned long)cr.user_ctx, cr.status,
	      (unsigned long)id);
	UB_PAIR_EQ(p, cr.completion_len, len);
	UB_PAIR_EQ(p, cr.flag.bs.s_r, 1);
	return cr;
}

void
ub_pair_nothing(struct ub_pair *p, uint64_t ns)
{
	urma_cr_t cr;

	sim_run_for(p->s, ns);
	for (unsigned int i = 0; i < 2; i++) {
		CHECK(p, urma_poll_jfc(p->side[i].send_jfc, 1, &cr) == 0,
		      "side %u: completion of %lu, status %u", i, (unsigned long)cr.user_ctx,
		      cr.status);
		CHECK(p, urma_poll_jfc(p->side[i].recv_jfc, 1, &cr) == 0,
		      "side %u: receive of %lu, status %u", i, (unsigned long)cr.user_ctx,
		      cr.status);
	}
}

void
ub_pair_same_bytes(struct ub_pair *p, const uint8_t *have, const uint8_t *want, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		CHECK(p, have[i] == want[i], "byte %u of %u is %#x, not %#x", i, len, have[i],
		      want[i]);
}

void
ub_pair_same(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t from, uint32_t len)
{
	ub_pair_same_bytes(p, p->side[side].mem + at, p->side[1 - side].mem + from, len);
}

void
ub_pair_good_write(struct ub_pair *p, unsigned int side, uint64_t id)
{
	const uint32_t from = UB_PAIR_FROM + 5, to = UB_PAIR_TO + 5;

	ub_pair_rw(p, side, URMA_OPC_WRITE, from, to, UB_PAIR_LONG, id);
	ub_pair_done(p, side, id, URMA_CR_SUCCESS);
	ub_pair_same(p, 1 - side, to, from, UB_PAIR_LONG);
	memset(p->side[1 - side].mem + UB_PAIR_TO, 0, UB_PAIR_PART);
}
