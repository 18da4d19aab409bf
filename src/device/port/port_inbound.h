/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_INBOUND_H
#define PORT_PORT_INBOUND_H

/*
 * A port that impairs *received* frames: if the other end of the wire is not ours, its frames can
 * only be lost, duplicated or damaged after they have arrived. Applies the rules and odds of
 * port_impair.h to them.
 *
 * Owned by the composition. Only decap's lcore calls rx; transmission is not affected.
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
 * While the word is not 0, what is received is lost, and what is held or has not been fetched yet:
 * a link that is down. Another port writes it (port_stall.h). The number of frames that were lost
 * so.
 */
uint32_t *hca_port_inbound_deaf(struct hca_port *p);
uint64_t hca_port_inbound_lost(const struct hca_port *p);

/* The impairment, for hca_port_impair_set(), _rule(), _stats() and so on. */
struct hca_port *hca_port_inbound_impair(struct hca_port *p);

#endif
