/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * post_recv rings no doorbell. The producer count is released after the WQEs are written; the
 * device rereads it when the queue seems empty. After the device has set `notify` (QP in ERR), a
 * kick doorbell makes it flush the receives posted since.
 */

#include <string.h>

#include "lib_doorbell.h"
#include "lib_recv.h"
#include "lib_wait.h"

int
lib_recv_judge(const struct lib_wq *wq, const struct softhca_recv_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge)
		return lib_fail(-EINVAL, "%d SGEs: the receive queue takes 0 to %u", wr->num_sge,
				wq->max_sge);
	for (int i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length > HCA_WQE_MAX_BYTE_CNT)
			return lib_fail(-EINVAL, "SGE %d is longer than 2^31 - 1 bytes", i);
	return 0;
}

/* An all-zero unit ends the list, so empty SGEs are left out. */
void
lib_recv_build(struct lib_wq *rq, uint32_t index, const struct softhca_recv_wr *wr)
{
	uint8_t *wqe = rq->buf + ((size_t)index << rq->log_stride);
	struct hca_data_unit *unit = (struct hca_data_unit *)(wqe + sizeof(struct hca_next_unit));
	uint32_t used = 0;

	memset(wqe, 0, sizeof(struct hca_next_unit));
	for (int i = 0; i < wr->num_sge; i++) {
		const struct softhca_sge *sge = &wr->sg_list[i];

		if (sge->length == 0)
			continue;
		unit[used].byte_cnt = hca_cpu_to_le32(sge->length);
		unit[used].lkey = hca_cpu_to_le32(sge->lkey);
		unit[used].addr = hca_cpu_to_le64(sge->addr);
		used++;
	}
	if (used < ((1u << rq->log_stride) - sizeof(struct hca_next_unit)) / HCA_WQE_UNIT)
		memset(&unit[used], 0, sizeof(*unit));
}

static int
post_all(struct lib_qp *qp, struct softhca_recv_wr **wr)
{
	struct lib_wq *rq = &qp->rq;
	uint32_t room =
		rq->mask + 1 - (rq->head - __atomic_load_n(&qp->rq_polled.tail, __ATOMIC_ACQUIRE));
	uint32_t head = rq->head;
	int err = 0;

	for (; *wr != NULL; *wr = (*wr)->next, head++, room--) {
		uint32_t index = head & rq->mask;

		if (room == 0) {
			err = lib_fail(-ENOMEM, "the receive queue is full (%u): poll its CQ first",
				       rq->mask + 1);
			break;
		}
		if (__builtin_expect(!lib_recv_put(rq, index, 0, *wr), 0)) {
			err = lib_recv_judge(rq, *wr);
			if (err != 0)
				break;
			lib_recv_build(rq, index, *wr);
		}
		rq->wr_id[index] = (*wr)->wr_id;
	}
	rq->head = head;
	__atomic_store_n(&qp->rq_record->producer, hca_cpu_to_le32(head), __ATOMIC_RELEASE);
	return err;
}

/*
 * The device sets notify, executes a fence, and flushes up to the producer count it then reads;
 * here the producer count is stored first. So at least one side sees the other's store.
 */
static void
kick_if_asked(struct lib_qp *qp)
{
	struct lib_context *ctx = lib_qp_ctx(qp);
	uint32_t number = 0;
	int full;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&qp->rq_record->notify, __ATOMIC_RELAXED) == 0, 1))
		return;
	full = lib_doorbell_take(ctx, qp->uar, &number);
	if (full == LIB_DOORBELL_FULL)
		lib_doorbell_mark(qp->uar, qp->pub.qp_num);
	else if (full == 0)
		lib_doorbell_fill(qp->uar, number,
				  HCA_DB_MAKE(0, 0, HCA_DB_OPCODE_KICK, qp->pub.qp_num, 0));
}

int
softhca_post_recv(struct softhca_qp *pub, struct softhca_recv_wr *wr,
		  struct softhca_recv_wr **bad_wr)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	int err;

	if (wr == NULL)
		return 0;
	if (qp->rq.locked)
		lib_lock_take(&qp->rq.lock);
	if (qp->rq_record == NULL) {
		err = lib_fail(-EINVAL,
			       "QP %#x has no receive queue: post to its SRQ, if it has one",
			       pub->qp_num);
	} else if (qp->pub.state == SOFTHCA_QPS_RESET) {
		err = lib_fail(
			-EINVAL,
			"QP %#x is in state RESET: modify it to INIT before receives are posted",
			pub->qp_num);
	} else if (lib_qp_ctx(qp)->dead) {
		err = lib_dead(lib_qp_ctx(qp));
	} else {
		err = post_all(qp, &wr);
		kick_if_asked(qp);
	}
	if (qp->rq.locked)
		lib_lock_drop(&qp->rq.lock);
	if (err != 0 && bad_wr != NULL)
		*bad_wr = wr;
	lib_wait_posted(qp->uar);
	return err;
}
