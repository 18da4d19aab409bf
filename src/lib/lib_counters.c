/* SPDX-License-Identifier: BSD-3-Clause */

/* Counters by name: of the device, its port, a QP. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib_types.h"

_Static_assert(sizeof(((struct softhca_counter *)0)->name) ==
		       sizeof(((struct hca_ctl_counter *)0)->name),
	       "names are copied whole");

/* Returns the number of counters, or a negative errno. */
static int
query(struct lib_context *ctx, uint32_t of, uint32_t number, struct softhca_counter *counters,
      unsigned int max)
{
	const struct hca_ctl_count request = {.of = of, .number = number, .max = max};
	struct hca_ctl_counters *got = calloc(1, sizeof(*got));
	int n;

	if (got == NULL)
		return lib_no_memory("counters", sizeof(*got));
	n = LIB_CALL(ctx, QUERY_COUNTERS, &request, got);
	if (n == 0)
		n = (int)got->total;
	for (int i = 0; i < n && (unsigned int)i < max && i < (int)HCA_CTL_COUNTERS_MAX; i++) {
		memcpy(counters[i].name, got->counter[i].name, sizeof(counters[i].name));
		counters[i].value = got->counter[i].value;
	}
	free(got);
	return n;
}

int
softhca_query_counters(struct softhca_context *ctx, struct softhca_counter *counters,
		       unsigned int max)
{
	return query(lib_ctx(ctx), HCA_CTL_COUNTERS_DEVICE, 0, counters, max);
}

int
softhca_query_port_counters(struct softhca_context *ctx, uint8_t port_num,
			    struct softhca_counter *counters, unsigned int max)
{
	return query(lib_ctx(ctx), HCA_CTL_COUNTERS_PORT, port_num, counters, max);
}

int
softhca_query_qp_counters(struct softhca_qp *pub, struct softhca_counter *counters,
			  unsigned int max)
{
	const struct lib_qp *qp = (const struct lib_qp *)pub;

	return query(lib_qp_ctx(qp), HCA_CTL_COUNTERS_QP, pub->qp_num, counters, max);
}
