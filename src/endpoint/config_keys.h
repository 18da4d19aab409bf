/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

/* The keys of the configuration: one table that determines reading, defaults and messages. */

#include <stdbool.h>
#include <stddef.h>

#include "endpoint_config.h"

struct config_key;

/* Stores the value; false: it is not a value of the key. */
typedef bool (*config_parse_fn)(const struct config_key *key, struct endpoint_config *c,
				const char *value);

struct config_key {
	const char *section, *name;
	config_parse_fn parse;
	size_t at; /* offset in struct endpoint_config */
	size_t size;
	uint64_t min, max, def;
	const char *text;     /* default of a string */
	const char *expected; /* for messages; choices: "a, b or c", in the order of the enum */
	bool repeats;
};

extern const struct config_key config_keys[];
extern const unsigned int config_keys_count;

/* The key of a section and name, or NULL. */
const struct config_key *config_key_find(const char *section, const char *name);
/* The section as the table spells it, or NULL. */
const char *config_section_find(const char *section);

/* The known name nearest to an unknown one, as a suggestion; or NULL. */
const char *config_section_nearest(const char *section);
const char *config_key_nearest(const char *section, const char *name);

#endif
