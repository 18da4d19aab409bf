/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_RECV_H
#define LIB_RECV_H

/* Receive WQEs of RQs and SRQs. */

#include "lib_types.h"

/* Check a request. */
int lib_recv_judge(const struct lib_wq *wq, const struct softhca_recv_wr *wr);
/* Write the WQE at index. */
void lib_recv_build(struct lib_wq *wq, uint32_t index, const struct softhca_recv_wr *wr);

/*
 * Write the WQE of a request with one SGE that is not empty. next: nda_nop. False: nothing is
 * written; lib_recv_judge() and lib_recv_build() take any request.
 */
static inline bool
lib_recv_put(struct lib_wq *wq, uint32_t index, uint32_t next, const struct softhca_recv_wr *wr)
{
	struct hca_next_unit *wqe =
		(struct hca_next_unit *)(wq->buf + ((size_t)index << wq->log_stride));
	struct hca_data_unit *unit = (struct hca_data_unit *)(wqe + 1);
	const struct softhca_sge *sge = wr->sg_list;

	if (__builtin_expect(wr->num_sge != 1 || wq->max_sge == 0 ||
				     sge->length - 1 >= HCA_WQE_MAX_BYTE_CNT,
			     0))
		return false;
	*wqe = (struct hca_next_unit){.nda_nop = hca_cpu_to_le32(next)};
	unit[0] = (struct hca_data_unit){
		.byte_cnt = hca_cpu_to_le32(sge->length),
		.lkey = hca_cpu_to_le32(sge->lkey),
		.addr = hca_cpu_to_le64(sge->addr),
	};
	unit[1] = (struct hca_data_unit){0}; /* ends the list; each stride has room for it */
	return true;
}

#endif
