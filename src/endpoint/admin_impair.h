/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_IMPAIR_H
#define ADMIN_IMPAIR_H

/*
 * "drop=0.01,delay_us=50", "rule=drop,psn=100,count=1", "off", "" as an impairment. A list of
 * probabilities replaces the one before; rules add up until "off".
 */

#include "port/port_impair.h"

struct hca;

enum admin_impair_what {
	ADMIN_IMPAIR_NOTHING,
	ADMIN_IMPAIR_OFF,
	ADMIN_IMPAIR_ODDS,
	ADMIN_IMPAIR_RULE,
};

/* What the text says, or -EINVAL. */
int admin_impair_parse(const char *text, struct hca_impair *odds, struct hca_fault_rule *rule);

/* Does it. 0, -EINVAL, -ENOSPC. */
int admin_impair(struct hca_port *p, struct hca *h, const char *text);

#endif
