/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "wireops/wireops.h"

static const struct hca_wire_ops *const rows[HCA_WIRES] = {
#define X(NAME, name) [HCA_WIRE_##NAME] = &hca_wire_##name,
	HCA_WIRE_LIST(X)
#undef X
};

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
	return 0;
}
