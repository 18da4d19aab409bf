/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "wireops/wireops.h"

static const struct hca_wire_ops *const rows[HCA_WIRES] = {
#define X(NAME, name) [HCA_WIRE_##NAME] = &hca_wire_##name,
	HCA_WIRE_LIST(X)
#undef X
};

/* A service is on the wire whose row offers its capability. */
static void
services_set(struct hca_core *h)
{
	memset(h->service_wire, HCA_WIRE_NONE, sizeof(h->service_wire));
	for (uint32_t s = 0; s < HCA_ST_COUNT; s++)
		HCA_WIRES_IN_USE(h, w)
	if ((w->caps & hca_services[s].cap) != 0)
		h->service_wire[s] = w->wire;
}

int
hca_wires_set(struct hca_core *h)
{
	uint32_t wires = h->cfg.wires;

	if ((wires & HCA_WIRE_BIT(HCA_WIRE_NONE)) != 0 || wires >= HCA_WIRE_BIT(HCA_WIRES))
		return -EINVAL;
	/* every device has RoCE's stages; without its bit the CEU offers none of its services */
	wires |= HCA_WIRE_BIT(HCA_WIRE_ROCE);
	for (unsigned int i = 0; i < HCA_WIRES; i++)
		h->wire[i] = wires & HCA_WIRE_BIT(i) ? rows[i] : NULL;
	h->wire[HCA_WIRE_TEST] = h->cfg.wire_more;
	h->mixed = false;
	HCA_WIRES_IN_USE(h, w)
	h->mixed |= w->wire != HCA_WIRE_ROCE;
	services_set(h);
	return 0;
}

unsigned int
hca_counter_wire(unsigned int i)
{
	const char *name = hca_counter_name(i);

	for (unsigned int w = 0; w < HCA_WIRES && name != NULL; w++)
		if (rows[w] != NULL && rows[w]->counters != NULL &&
		    strncmp(name, rows[w]->counters, strlen(rows[w]->counters)) == 0)
			return w;
	return HCA_WIRE_NONE;
}

/* NULL: its QPs have none. */
static const struct hca_wire_values *
values_of(unsigned int wire)
{
	return wire < HCA_WIRES && rows[wire] != NULL ? rows[wire]->qp_values : NULL;
}

unsigned int
hca_wire_value_count(unsigned int wire)
{
	const struct hca_wire_values *v = values_of(wire);

	return v != NULL ? v->n : 0;
}

const char *
hca_wire_value_name(unsigned int wire, unsigned int i)
{
	return i < hca_wire_value_count(wire) ? values_of(wire)->name[i] : NULL;
}

int
hca_wire_values(const struct hca *dev, unsigned int wire, uint32_t qpn, uint64_t *values)
{
	const struct hca_core *h = hca_core(dev);
	const struct hca_qp *qp = &h->qp[hca_qp_index(h, qpn)];
	const struct hca_wire_values *v = values_of(wire);

	if (v == NULL || qpn == 0 || __atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != qpn ||
	    hca_service_wire(h, __atomic_load_n(&qp->cfg.service, __ATOMIC_RELAXED)) != wire)
		return -ENOENT;
	v->read(qp, values);
	return 0;
}
