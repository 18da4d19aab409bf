/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ATOMICs: executed once, with the CPU's atomic instructions, so that they are atomic with respect
 * to all CPUs of the host. The job keeps the previous value for repeated requests. ATOMIC WRITE
 * stores its 8 bytes at once, after the data of all earlier requests.
 */

#include <string.h>

#include "responder/ee.h"

static uint64_t
execute_at(uint64_t *p, uint8_t kind, uint64_t swap_add, uint64_t compare)
{
	if (kind == HCA_PKT_FETCH_ADD)
		return __atomic_fetch_add(p, swap_add, __ATOMIC_SEQ_CST);
	/* on failure the builtin stores the value found in compare; on success they are equal */
	__atomic_compare_exchange_n(p, &compare, swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return compare;
}

uint64_t
ee_atomic_execute_at(void *p, uint8_t kind, const void *header)
{
	const struct hca_atomiceth *a = header;

	return execute_at(p, kind, hca_be64_to_cpu(a->swap_add), hca_be64_to_cpu(a->cmp));
}

uint64_t
ee_atomic_execute(struct ee_request *q)
{
	uint32_t run;

	return ee_atomic_execute_at(hca_vtp_ptr(&q->h->vtp, q->piece[0].mpt, q->va, 8, &run),
				    q->op->kind, q->ext);
}

/* The bytes are stored as they came: they are no number to this device. */
void
ee_atomic_write(struct ee_request *q)
{
	uint64_t value;
	uint32_t run;
	uint8_t *p = hca_vtp_ptr(&q->h->vtp, q->piece[0].mpt, q->va, 8, &run);

	memcpy(&value, q->payload, sizeof(value));
	__atomic_store_n((uint64_t *)p, value, __ATOMIC_RELEASE);
}
