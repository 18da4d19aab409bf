/* SPDX-License-Identifier: BSD-3-Clause */

/* Counters by name: of the device, its port, a QP. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib_types.h"

#define COUNTERS_MAX 4096u /* more than any device has */

_Static_assert(sizeof(((struct softhca_counter *)0)->name) ==
		       sizeof(((struct hca_ctl_counter *)0)->name),
	       "names are copied whole");

/* Returns the number of counters, or a negative errno. */
static int
query(struct lib_context *ctx, uint32_t of, uint32_t number, struct softhca_counter *counters,
      unsigned int max)
{
	struct hca_ctl_counter *raw;
	uint32_t total = 0;
	int err;

	if (max > COUNTERS_MAX)
		max = COUNTERS_MAX;
	raw = calloc(max + 1, sizeof(*raw));
	if (raw == NULL)
		return lib_fail(-ENOMEM, "no memory for %u counters", max);
	err = ctx->ops->query_counters(ctx->ctl, of, number, raw, max, &total);
	for (uint32_t i = 0; err == 0 && i < max && i < total; i++) {
		memcpy(counters[i].name, raw[i].name, sizeof(counters[i].name));
		counters[i].value = raw[i].value;
	}
	free(raw);
	return err == 0 ? (int)total : lib_ctl_fail(ctx, err);
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
