/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdbool.h>

#include <rte_common.h>

#include "ctxmgt/qp.h"
#include "queues/rq.h"

/* Reads each word of a data unit once; false: the list ends here. */
static inline bool
read_unit(const uint8_t *unit, uint32_t *count, struct hca_sge *sge)
{
	const hca_le64 *word = (const void *)unit;
	uint64_t w0 = hca_le64_to_cpu(__atomic_load_n(&word[0], __ATOMIC_RELAXED));
	uint64_t w1 = hca_le64_to_cpu(__atomic_load_n(&word[1], __ATOMIC_RELAXED));

	*count = (uint32_t)w0;
	sge->va = w1;
	sge->lkey = (uint32_t)(w0 >> 32);
	sge->len = *count & HCA_WQE_MAX_BYTE_CNT;
	return (w0 | w1) != 0;
}

int
hca_rq_fetch(const uint8_t *wqe, uint32_t stride, struct hca_sge *sge, uint32_t *room)
{
	uint64_t total = 0;
	uint32_t count;
	int n = 0;

	for (uint32_t at = HCA_WQE_UNIT; at < stride && n < (int)HCA_WQE_MAX_SGE;
	     at += HCA_WQE_UNIT, n++) {
		if (!read_unit(wqe + at, &count, &sge[n]))
			break;
		if (count & HCA_INLINE_FLAG)
			return -EINVAL;
		total += sge[n].len;
	}
	*room = RTE_MIN(total, HCA_MAX_MSG_SIZE);
	return n;
}

int
hca_rq_available(struct hca_qp_ee *ee)
{
	uint32_t producer;

	if (likely(ee->rq_producer != ee->rq_consumed))
		return 1;
	if (ee->rq.bytes == 0)
		return 0;
	producer = hca_rq_posted(&ee->rq, ee->rq_size_log + ee->rq_stride_log);
	if (producer - ee->rq_consumed > 1u << ee->rq_size_log)
		return -1;
	ee->rq_producer = producer;
	return producer != ee->rq_consumed;
}
