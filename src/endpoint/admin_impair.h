/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_IMPAIR_H
#define ADMIN_IMPAIR_H

/*
 * Parameters of the impairment command: "[dir=in|out|both,]drop=0.01,delay=50,qp=0x123" (or tp=),
 * "[dir=...,]drop,opcode=ack,nth=3", "[dir=...,]off", "", and other words of port_impair.h. A list
 * of probabilities replaces the previous one; rules are added until "off". Without dir they apply
 * to sent frames, but "off" to both directions.
 */

#include <stdbool.h>

#include "port/port_impair.h"

enum admin_impair_what {
	ADMIN_IMPAIR_NOTHING,
	ADMIN_IMPAIR_OFF,
	ADMIN_IMPAIR_ODDS,
	ADMIN_IMPAIR_RULE,
	ADMIN_IMPAIR_PORT,
	ADMIN_IMPAIR_GID,
};

struct admin_impair {
	enum admin_impair_what what;
	bool sent, received;	     /* which frames */
	struct hca_impair_text said; /* qpn, tpn: of this HCA */
	const char *words;	     /* in the text, after dir */
};

/* A direction's port and its settings. */
struct admin_faults {
	struct hca_port *port;		/* NULL: it has none */
	char setting[128];		/* for operators, truncated to the limit of telemetry */
	char rule[HCA_FAULT_RULES][80]; /* text of each rule, in the port's order */
};

/* Parse the parameters; 0, or -EINVAL with a reason in why. */
int admin_impair_parse(const char *text, struct admin_impair *out, char *why, size_t size);

/*
 * Change one direction. qpn and sqpn: see struct hca_fault_rule. After "off" the caller must call
 * hca_wait_workers() before it does anything else. 0 or -ENOSPC.
 */
int admin_impair_set(struct admin_faults *f, const struct admin_impair *a, uint32_t qpn,
		     uint32_t sqpn);

#endif
