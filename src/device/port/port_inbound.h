/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_INBOUND_H
#define PORT_PORT_INBOUND_H

/*
 * A port whose *received* frames meet with faults: where the other end of the wire is not ours, its
 * frames can only be lost, doubled or damaged after they have arrived. What port_impair.h does to
 * frames on their way out happens here to those on their way in, from the same rules and odds.
 *
 * Owner: the composition. rx is called by decap's lcore only, as always; transmission passes
 * through untouched. hca_port.close() closes what is wrapped too.
 */

#include "port/port.h"
#include "port/port_impair.h"

/*
 * 0, -ENOMEM. On failure inner is left to the caller. cfg->name must differ from the other ports'.
 */
int hca_port_inbound_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
			  struct hca_port **out);

/* The port that decides the fates: for hca_port_impair_set(), _rule(), _stats() and so on. */
struct hca_port *hca_port_inbound_impair(struct hca_port *p);

#endif
