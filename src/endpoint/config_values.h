/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_VALUES_H
#define CONFIG_VALUES_H

/* Syntax of values: the config_parse_fn of the table in config_keys.c. */

#include "config_keys.h"

#define CONFIG_VALUES(X) \
	X(config_number) /* min..max; "auto" if the default is 0 and less than min */ \
	X(config_power)	 /* as config_number, a power of two */ \
	X(config_choice) /* one word of `expected` */ \
	X(config_yes_no) \
	X(config_text) \
	X(config_name) \
	X(config_lcores) \
	X(config_device) \
	X(config_mac) \
	X(config_address) \
	X(config_gateway) \
	X(config_neighbour) \
	X(config_node) \
	X(config_version) \
	X(config_mode) \
	X(config_ub_choices) \
	X(config_pipelines)  /* or "auto", which is 0 */ \
	X(config_congestion) /* a name of the table of algorithms */

#define X(fn) bool fn(const struct config_key *key, struct endpoint_config *c, const char *value);
CONFIG_VALUES(X)
#undef X

/* Store a number in the width of the key. */
void config_store(const struct config_key *key, struct endpoint_config *c, uint64_t value);

#endif
