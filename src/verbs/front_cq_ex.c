/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Polling of extended CQs: one completion at a time is taken out of the CQ, so that whatever is not
 * read stays in it. Between start_poll and end_poll no other thread does the same.
 */

#include <errno.h>
#include <pthread.h>

#include "front.h"

static struct front_cq *
cq_of(struct ibv_cq_ex *pub)
{
	return (struct front_cq *)pub;
}

/* 0, ENOENT: the CQ is empty, or the errno of a device that is gone */
static int
take(struct front_cq *cq)
{
	int n = softhca_poll_cq(cq->hca, 1, &cq->wc);

	if (n == 0)
		return ENOENT;
	if (__builtin_expect(n < 0, 0))
		return front_result(n, "ibv_start_poll");
	cq->pub.status = (enum ibv_wc_status)cq->wc.status;
	cq->pub.wr_id = cq->wc.wr_id;
	return 0;
}

static int
start_poll(struct ibv_cq_ex *pub, struct ibv_poll_cq_attr *attr)
{
	struct front_cq *cq = cq_of(pub);
	int err;

	if (attr != NULL && attr->comp_mask != 0)
		return front_refuse(EINVAL, "ibv_start_poll", "comp_mask %#x", attr->comp_mask);
	if (__builtin_expect(cq->forks != front_forks, 0))
		return front_refuse(EPERM, "ibv_start_poll",
				    "the CQ belongs to the process this one was forked from");
	if (cq->locked)
		pthread_mutex_lock(&pub->mutex);
	err = take(cq);
	if (err != 0 && cq->locked)
		pthread_mutex_unlock(&pub->mutex);
	return err;
}

static int
next_poll(struct ibv_cq_ex *pub)
{
	return take(cq_of(pub));
}

static void
end_poll(struct ibv_cq_ex *pub)
{
	if (cq_of(pub)->locked)
		pthread_mutex_unlock(&pub->mutex);
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *pub)
{
	return (enum ibv_wc_opcode)cq_of(pub)->wc.opcode;
}

/* The functions that read one member. READ(type, function, member) */
#define READ_LIST(READ) \
	READ(uint32_t, read_vendor_err, vendor_err) \
	READ(uint32_t, read_byte_len, byte_len) \
	READ(__be32, read_imm_data, imm_data) \
	READ(uint32_t, read_qp_num, qp_num) \
	READ(uint32_t, read_src_qp, src_qp) \
	READ(unsigned int, read_wc_flags, wc_flags) \
	READ(uint32_t, read_slid, slid) \
	READ(uint8_t, read_sl, sl) \
	READ(uint8_t, read_dlid_path_bits, dlid_path_bits)

#define READ(type, function, member) \
	static type function(struct ibv_cq_ex *pub) \
	{ \
		return cq_of(pub)->wc.member; \
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
	pub->read_opcode = read_opcode;
#define READ(type, function, member) pub->function = function;
	READ_LIST(READ)
#undef READ
}
