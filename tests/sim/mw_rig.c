/* SPDX-License-Identifier: BSD-3-Clause */

#include "mw_rig.h"

uint8_t *
memory(struct rig *r, size_t n)
{
	uint8_t *p = aligned_alloc(4096, n);

	sim_check(r->s, p != NULL, "no memory");
	memset(p, 0, n);
	return p;
}

struct softhca_mr *
region(struct rig *r, unsigned int side, uint8_t *mem, uint32_t access)
{
	struct softhca_mr *mr = softhca_reg_mr(r->s->side[side].pd, mem, BYTES, access);

	sim_check(r->s, mr != NULL, "reg_mr: %s", softhca_last_error(NULL));
	return mr;
}

void
rig_open(struct rig *r, const struct sim_config *cfg, const struct sim_pair_attr *attr)
{
	*r = (struct rig){.s = sim_open(cfg)};
	r->p = sim_pair_open(r->s, attr);
	r->mem = memory(r, BYTES);
	r->local = memory(r, BYTES);
	r->mr = region(r, 1, r->mem, LW | BIND);
	r->local_mr = region(r, 0, r->local, LW);
}

void
rig_close(struct rig *r)
{
	sim_check(r->s, softhca_dereg_mr(r->mr) == 0, "dereg_mr: %s", softhca_last_error(NULL));
	sim_check(r->s, softhca_dereg_mr(r->local_mr) == 0, "dereg_mr");
	sim_pair_close(r->p);
	sim_close(r->s);
	free(r->mem);
	free(r->local);
}

bool
done(struct sim *s, void *arg)
{
	struct rig *r = arg;
	int n = softhca_poll_cq(r->p->cq[r->side], 1, &r->wc);

	sim_check(s, n >= 0, "poll_cq: %d", n);
	return n == 1;
}

uint32_t
wait_for(struct rig *r, unsigned int side)
{
	r->side = side;
	sim_check(r->s, sim_run_until(r->s, done, r, 20 * SIM_S), "nothing completes on side %u",
		  side);
	return r->wc.status;
}

void
post_on(struct rig *r, struct softhca_qp *qp, struct softhca_send_wr *wr)
{
	struct softhca_send_wr *bad;
	int rc;

	wr->send_flags |= SIGNAL;
	rc = softhca_post_send(qp, wr, &bad);
	sim_check(r->s, rc == 0, "post_send: %d: %s", rc, softhca_last_error(NULL));
}

uint32_t
perform(struct rig *r, unsigned int side, struct softhca_send_wr wr)
{
	post_on(r, r->p->qp[side], &wr);
	return wait_for(r, side);
}

uint32_t
rdma(struct rig *r, uint32_t opcode, uint64_t va, uint32_t rkey, uint32_t len)
{
	struct softhca_sge sge = {(uintptr_t)r->local, len, r->local_mr->lkey};
	struct softhca_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};

	if (opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD || opcode == SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = rkey;
	}
	return perform(r, 0, wr);
}

uint32_t
put(struct rig *r, uint64_t va, uint32_t rkey, uint32_t len, uint8_t value)
{
	memset(r->local, value, len);
	return rdma(r, SOFTHCA_WR_RDMA_WRITE, va, rkey, len);
}

bool
holds(const uint8_t *p, uint32_t n, uint8_t value)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != value)
			return false;
	return true;
}

uint64_t
va_of(const struct rig *r, uint32_t off)
{
	return (uintptr_t)r->mem + off;
}

void
expect(struct rig *r, uint32_t got, uint32_t status, const char *what)
{
	sim_check(r->s, got == status, "%s: %s instead of %s", what, softhca_wc_status_str(got),
		  softhca_wc_status_str(status));
}

struct softhca_mw *
window(struct rig *r, uint32_t type)
{
	struct softhca_mw *mw = softhca_alloc_mw(r->s->side[1].pd, type);

	sim_check(r->s, mw != NULL, "alloc_mw: %s", softhca_last_error(NULL));
	return mw;
}

uint32_t
bind1(struct rig *r, struct softhca_mw *mw, uint32_t off, uint32_t len, uint32_t access)
{
	struct softhca_mw_bind b = {
		.send_flags = SIGNAL,
		.bind_info = {len != 0 ? r->mr : NULL, va_of(r, off), len, access},
	};
	int rc = softhca_bind_mw(r->p->qp[1], mw, &b);

	sim_check(r->s, rc == 0, "bind_mw: %d: %s", rc, softhca_last_error(NULL));
	return wait_for(r, 1);
}

struct softhca_send_wr
bind_wr(struct rig *r, struct softhca_mw *mw, uint32_t off, uint32_t len, uint32_t access)
{
	mw->rkey = softhca_inc_rkey(mw->rkey);
	return (struct softhca_send_wr){
		.opcode = SOFTHCA_WR_BIND_MW,
		.bind_mw = {mw, mw->rkey, {r->mr, va_of(r, off), len, access}},
	};
}

uint32_t
bind2(struct rig *r, struct softhca_mw *mw, uint32_t off, uint32_t len, uint32_t access)
{
	return perform(r, 1, bind_wr(r, mw, off, len, access));
}

uint32_t
invalidate(struct rig *r, uint32_t key)
{
	return perform(r, 1,
		       (struct softhca_send_wr){.opcode = SOFTHCA_WR_LOCAL_INV,
						.invalidate_rkey = key});
}

void
reset(struct rig *r)
{
	sim_pair_reset(r->p);
}
