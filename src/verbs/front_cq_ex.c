/* SPDX-License-Identifier: BSD-3-Clause */

/* Polling of extended CQs: the library shows one completion after another where they lie. */

#include <errno.h>

#include "front.h"

static struct softhca_cq *
hca_of(struct ibv_cq_ex *pub)
{
	return ((struct front_cq *)pub)->hca;
}

/* 0: a completion is shown; ENOENT: no completion; or another errno, which is explained */
static inline int
show(struct ibv_cq_ex *pub, int result, const char *call)
{
	const struct softhca_cq *hca = hca_of(pub);

	if (result == -ENOENT)
		return ENOENT;
	if (__builtin_expect(result != 0, 0))
		return front_result(result, call);
	pub->status = (enum ibv_wc_status)hca->status;
	pub->wr_id = hca->wr_id;
	return 0;
}

static int
start_poll(struct ibv_cq_ex *pub, struct ibv_poll_cq_attr *attr)
{
	if (attr != NULL && attr->comp_mask != 0)
		return front_refuse(EINVAL, "ibv_start_poll", "comp_mask %#x: expected 0",
				    attr->comp_mask);
	return show(pub, softhca_start_poll(hca_of(pub)), "ibv_start_poll");
}

static int
next_poll(struct ibv_cq_ex *pub)
{
	return show(pub, softhca_next_poll(hca_of(pub)), "ibv_next_poll");
}

static void
end_poll(struct ibv_cq_ex *pub)
{
	softhca_end_poll(hca_of(pub));
}

/* ---- the same with faults ---- */

static int
judged(struct ibv_cq_ex *pub, int result)
{
	const struct softhca_cq *hca = hca_of(pub);

	if (result == 0)
		front_fault_completion(pub->context, softhca_wc_read_qp_num(hca),
				       (softhca_wc_read_opcode(hca) & SOFTHCA_WC_RECV) != 0,
				       &pub->status);
	return result;
}

static int
start_poll_judged(struct ibv_cq_ex *pub, struct ibv_poll_cq_attr *attr)
{
	int err = front_fault("ibv_poll_cq");

	return err == 0 ? judged(pub, start_poll(pub, attr)) : err;
}

static int
next_poll_judged(struct ibv_cq_ex *pub)
{
	return judged(pub, next_poll(pub));
}

static void
end_poll_settled(struct ibv_cq_ex *pub)
{
	end_poll(pub);
	front_fault_settle();
}

/* The functions that read one field. READ(type, field) */
#define READ_LIST(READ) \
	READ(enum ibv_wc_opcode, opcode) \
	READ(uint32_t, vendor_err) \
	READ(uint32_t, byte_len) \
	READ(__be32, imm_data) \
	READ(uint32_t, qp_num) \
	READ(uint32_t, src_qp) \
	READ(unsigned int, wc_flags) \
	READ(uint32_t, slid) \
	READ(uint8_t, sl) \
	READ(uint8_t, dlid_path_bits) \
	READ(uint64_t, completion_ts) \
	READ(uint64_t, completion_wallclock_ns) \
	READ(uint16_t, cvlan)

#define READ(type, field) \
	static type read_##field(struct ibv_cq_ex *pub) \
	{ \
		return (type)softhca_wc_read_##field(hca_of(pub)); \
	}
READ_LIST(READ)
#undef READ

/* All of them are there whatever was asked for: they cost nothing. */
void
front_cq_ex_init(struct front_cq *cq)
{
	struct ibv_cq_ex *pub = &cq->pub;

	pub->start_poll = start_poll;
	pub->next_poll = next_poll;
	pub->end_poll = end_poll;
	if (front_faults_on()) {
		pub->start_poll = start_poll_judged;
		pub->next_poll = next_poll_judged;
		pub->end_poll = end_poll_settled;
	}
#define READ(type, field) pub->read_##field = read_##field;
	READ_LIST(READ)
#undef READ
	if (front_ctx(pub->context)->like_mlx5)
		pub->read_sl = front_like_read_sl;
}
