/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/port_fabric.h"
#include "port/port_pairs.h"

static const char *
fabric_take_pair(void *out, const char *name, const char *value)
{
	struct hca_fabric *to = out;

	HCA_PORT_PAIR_TAKE(HCA_FABRIC_TEXT_LIST);
}

int
hca_fabric_parse(const char *text, struct hca_fabric *out, char *why, size_t size)
{
	int err;

	*out = (struct hca_fabric){.paths = 1, .loss0 = -1};
	err = hca_port_pairs("fabric", text, fabric_take_pair, out, why, size);
	if (err != 0 || out->rate_mbps != 0)
		return err;
	snprintf(why, size, "fabric \"%.40s\": expected a rate", text);
	return -EINVAL;
}
