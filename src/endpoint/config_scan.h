/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_SCAN_H
#define CONFIG_SCAN_H

/*
 * Where things stand in an INI file. rte_cfgfile gives values without lines and skips what it does
 * not understand: this pass says on which line its n-th section and n-th entry are, and complains
 * about lines that would be skipped or end the reading.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct config_scan {
	uint32_t *section; /* line of each section heading, in the order of the file */
	uint32_t *entry;   /* line of each "key = value" */
	uint32_t sections, entries;
	uint32_t errors;
	bool unreadable; /* rte_cfgfile would give up at one of them */
};

/* 0, -ENOMEM or what opening gave. Errors of syntax are counted and written to `errors`. */
int config_scan(struct config_scan *s, const char *path, FILE *errors);
void config_scan_free(struct config_scan *s);

#endif
