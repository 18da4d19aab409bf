/* SPDX-License-Identifier: BSD-3-Clause */

/* Counters and values of a Jetty, for the row of UB. */

#include "engine/wire_ops.h"
#include "ub/ceu/row.h"

#define READ(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

uint64_t
hca_ub_qp_answers(const struct hca_qp *qp)
{
	return READ(qp->tai_wait.answers);
}

/* X(name, word): requests under way, answers, and their results. */
#define VALUE_LIST(X) \
	X(next_tassn, qp->tai.tassn)	   /* number of the next segment */ \
	X(open_segments, qp->tai.open)	   /* without an answer */ \
	X(open_reads, qp->tai.open_reads)  /* of those, Reads and atomics */ \
	X(answers, qp->tai_wait.answers)   /* received */ \
	X(reissued, qp->tai_wait.reissued) /* segments sent again: the peer was not ready */ \
	X(refused, qp->tai_wait.refused)   /* segments that failed */ \
	X(rx_packets, qp->ee.rx_packets)   /* requests for it, and their bytes */ \
	X(rx_bytes, qp->ee.rx_bytes)

static const char *const names[] = {
#define X(name, word) #name,
	VALUE_LIST(X)
#undef X
};

static void
jetty_read(const struct hca_qp *qp, uint64_t *values)
{
#define X(name, word) *values++ = READ(word);
	VALUE_LIST(X)
#undef X
}

const struct hca_wire_values hca_ub_qp_values = {
	.name = names,
	.n = RTE_DIM(names),
	.read = jetty_read,
};
