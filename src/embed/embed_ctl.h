/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMBED_CTL_H
#define EMBED_CTL_H

/*
 * The control channel inside one process: lib's operations answered by the driver directly. Knows
 * driver and lib, nothing of the device.
 */

#include <stdint.h>

#include <softhca/softhca.h>

#include "driver.h"

/*
 * How often this process has become another one by fork() since the first call: it has no use of
 * what its parent had.
 */
uint32_t embed_forks(void);

#define EMBED_FOREIGN "the HCAs belong to the process this one was forked from"

/* What a context is opened with; copied. */
struct embed_ctl_config {
	const char *name; /* of the context */
	/* Manual progress: runs the engine, returns the work done. NULL: it runs by itself. */
	unsigned int (*progress)(void *arg);
	/*
	 * The sleep word of the worker that looks at doorbells, and what wakes it. NULL: never
	 * sleeps.
	 */
	const uint32_t *sleep_word;
	int kick_fd;
	void (*closed)(void *arg); /* after the client is gone; may be NULL */
	void *arg;
};

/*
 * Open a client of the driver and a context over it. All memory of the process is the client's: one
 * segment over the user half of the address space. Reason in softhca_last_error().
 */
int embed_ctl_open(struct hca_driver *drv, const struct embed_ctl_config *config,
		   struct softhca_context **ctx);

#endif
