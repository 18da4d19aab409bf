/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/port_pairs.h"
#include "port/port_switch.h"

static const char *
switch_take_pair(void *out, const char *name, const char *value)
{
	struct hca_switch *to = out;

	HCA_PORT_PAIR_TAKE(HCA_SWITCH_TEXT_LIST);
}

/* The settings that do not fit together, or NULL. */
static const char *
switch_conflict(const struct hca_switch *s)
{
	if (s->rate_mbps == 0)
		return "expected a rate";
	if (s->kmin > s->kmax)
		return "kmin is above kmax";
	if (s->kmin == 0 && s->kmax != 0)
		return "kmax needs kmin";
	return s->xon > s->xoff ? "xon is above xoff" : NULL;
}

int
hca_switch_parse(const char *text, struct hca_switch *out, char *why, size_t size)
{
	const char *conflict;
	int err;

	*out = (struct hca_switch){.pmax = 1};
	err = hca_port_pairs("switch", text, switch_take_pair, out, why, size);
	if (err != 0)
		return err;
	if (out->kmax == 0)
		out->kmax = out->kmin;
	conflict = switch_conflict(out);
	if (conflict == NULL)
		return 0;
	snprintf(why, size, "switch \"%.60s\": %s", text, conflict);
	return -EINVAL;
}
