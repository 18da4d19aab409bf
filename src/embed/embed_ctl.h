/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMBED_CTL_H
#define EMBED_CTL_H

/*
 * The control channel inside one process: the library's operations, executed by the driver
 * directly. Uses driver and lib, not the device.
 */

#include <stdint.h>

#include <softhca/softhca.h>

#include "abi_bar.h"
#include "driver.h"

/*
 * Number of times that this process, since the first call, became another one by fork(), which
 * cannot use its parent's objects.
 */
uint32_t embed_forks(void);

#define EMBED_FOREIGN "the HCAs belong to the process this one was forked from"

/* Configuration of a context; copied. */
struct embed_ctl_config {
	const char *name; /* of the context */
	/*
	 * Manual progress: runs the engine, returns the amount of work done. NULL: it runs by
	 * itself.
	 */
	unsigned int (*progress)(void *arg);
	unsigned int (*posted)(void *arg); /* the same after posts; NULL: progress */
	/*
	 * By pipeline: the sleep word of the worker that checks its doorbells, and the descriptor
	 * that wakes it. word NULL: it never sleeps.
	 */
	struct {
		const uint32_t *word;
		int kick_fd;
	} sleep[HCA_UAR_PIPES_MAX];
	void (*closed)(void *arg); /* called after the client was closed; may be NULL */
	void *arg;
};

/*
 * Open a client of the driver and a context on it. All memory of the process belongs to the client,
 * as one segment of the user half of the address space. 0 or a negative errno with a reason in
 * softhca_last_error().
 */
int embed_ctl_open(struct hca_driver *drv, const struct embed_ctl_config *config,
		   struct softhca_context **ctx);

#endif
