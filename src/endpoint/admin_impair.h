/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_IMPAIR_H
#define ADMIN_IMPAIR_H

/*
 * "[dir=in|out|both,]drop=0.01,delay=50,qp=0x123", "[dir=...,]rule=drop,psn=100,count=1",
 * "[dir=...,]off", "" as an impairment. A list of probabilities replaces the one before; rules add
 * up until "off". Without dir: frames that are sent; but "off" ends everything.
 */

#include <stdbool.h>

#include "port/port_impair.h"

enum admin_impair_what {
	ADMIN_IMPAIR_NOTHING,
	ADMIN_IMPAIR_OFF,
	ADMIN_IMPAIR_ODDS,
	ADMIN_IMPAIR_RULE,
};

struct admin_impair {
	enum admin_impair_what what;
	bool sent, received;	     /* which frames */
	struct hca_impair_text said; /* qpn: of a QP of this HCA */
	const char *words;	     /* in the text, behind dir */
};

/* A direction's port and what is set there. */
struct admin_faults {
	struct hca_port *port;		/* NULL: there is none */
	char setting[128];		/* for operators, cut at what telemetry can say */
	char rule[HCA_FAULT_RULES][80]; /* each rule as it was given, in the port's order */
};

/* 0, or -EINVAL and the reason in why. */
int admin_impair_parse(const char *text, struct admin_impair *out, char *why, size_t size);

/*
 * Changes one direction. qpn and sqpn: see struct hca_fault_rule. After "off" the caller waits for
 * the workers (hca_wait_workers) before anything else. 0, -ENOSPC.
 */
int admin_impair_set(struct admin_faults *f, const struct admin_impair *a, uint32_t qpn,
		     uint32_t sqpn);

#endif
