/* SPDX-License-Identifier: BSD-3-Clause */

/* DPDK telemetry of embedded HCAs. */

#include <dpdk_compat.h>

#include "embed_telemetry.h"

#define VALUES_MAX 256u

/* Objects, records and mbufs in use. */
static int
usage(void *arg, struct rte_tel_data *d)
{
	struct embed_hca *s = arg;
	struct softhca_value v[VALUES_MAX];
	int n = softhca_embed_resources(s->owner, (unsigned int)(s - s->owner->side), v,
					VALUES_MAX);
	int rc = 0;

	for (int i = 0; i < n && i < (int)VALUES_MAX && rc == 0; i++)
		rc = rte_tel_data_add_dict_uint(d, v[i].name, v[i].value);
	return rc;
}

void
embed_telemetry_add(struct softhca_embed *e)
{
	static const char *const layouts[] = {
		[SOFTHCA_LAYOUT_RTC] = "rtc",
		[SOFTHCA_LAYOUT_TXRX] = "txrx",
		[SOFTHCA_LAYOUT_FULL] = "full",
	};

	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		struct embed_hca *s = &e->side[i];

		s->telemetry = (struct hca_telemetry){
			.name = s->name,
			.hca = s->hca,
			.drv = s->drv,
			.cm = s->cm,
			.layout = layouts[e->cfg.layout],
			.device = e->cfg.ports != NULL ? e->cfg.ports[i] : "link in memory",
			.usage = usage,
			.arg = s,
		};
		hca_telemetry_add(&s->telemetry);
	}
}

void
embed_telemetry_remove(struct softhca_embed *e)
{
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		hca_telemetry_remove(&e->side[i].telemetry);
}
