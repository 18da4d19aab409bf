/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_CLIENT_H
#define TESTS_SIM_UB_CLIENT_H

/*
 * Another program on one side of a pair, with a Jetty, a CQ for both directions and a segment over
 * the same memory, that imports Jetty and segment of the other side. Its requests are posted while
 * ub_client.own stands in the place of the pair's side.
 */

#include "ub_pair.h"

struct ub_client {
	struct softhca_context *lib;
	struct ub_pair_side own; /* without JFS and JFR */
};

/* The zero value is usual. */
struct ub_client_config {
	unsigned int side;
	struct softhca_context *lib; /* NULL: a new one */
	enum sim_gid gid;
	const struct urma_ctl *ctl; /* NULL: that of the pair */
	uint32_t id;		    /* well-known, of its Jetty; 0: none */
	uint32_t token;		    /* of its Jetty; 0: UB_PAIR_SEND_TOKEN */
	bool one_peer;		    /* its Jetty is of mode RC */
};

void ub_client_open(struct ub_pair *p, struct ub_client *c, const struct ub_client_config *cfg);
void ub_client_close(struct ub_pair *p, struct ub_client *c);
/* All at once, as when its process dies: its own memory is leaked. */
void ub_client_kill(struct ub_pair *p, struct ub_client *c);

#endif
