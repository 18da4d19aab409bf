/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_INBOUND_H
#define PORT_PORT_INBOUND_H

/*
 * A port that impairs *received* frames: if the other end of the wire is not softhca, faults can
 * only be applied to its frames after they have arrived. Uses the rules and odds of port_impair.h.
 *
 * Owned by the composition. Each queue has its state, as in port_impair.h; transmission is not
 * affected.
 * hca_port.close() also closes the inner port.
 */

#include "port/port.h"
#include "port/port_impair.h"

/*
 * Create the port; 0 or -ENOMEM. On failure the caller keeps inner. cfg->name must differ from
 * those of other ports.
 */
int hca_port_inbound_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
			  struct hca_port **out);

/*
 * Word that another port sets while its link is down (port_stall.h). While it is not 0, received
 * frames and frames held here are dropped; hca_port_inbound_lost() is their number.
 */
uint32_t *hca_port_inbound_deaf(struct hca_port *p);
uint64_t hca_port_inbound_lost(const struct hca_port *p);

/* The impairment, for hca_port_impair_set(), _rule(), _stats() and so on. */
struct hca_port *hca_port_inbound_impair(struct hca_port *p);

#endif
