/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_CTL_H
#define LIB_CTL_H

/*
 * The control channel of a context connects the library with the driver. In embedded use calls go
 * to the driver of this process (src/embed); for a client of the daemon they are messages
 * (src/ipc/client). Everything else goes through shared memory.
 *
 * Every function gets the `arg` of softhca_context_create() and is thread safe.
 */

#include <stdbool.h>

#include <softhca/softhca.h>

#include "abi_ops.h"

struct softhca_ctl_ops {
	/*
	 * Carry out an operation: request, answer and extra as the row of op in abi_ops.h says;
	 * NULL where it has nothing. Callers in this library use LIB_CALL() (lib_types.h), which
	 * checks the types. 0 or a negative errno; reason() then has the sentence for the calling
	 * thread.
	 */
	int (*call)(void *arg, enum hca_ctl_op op, const void *request, void *answer,
		    struct hca_ctl_extra *extra);
	const char *(*reason)(void *arg);

	/* HCA_CTL_FEATURE_* in force; NULL: all, as both ends are of one release. */
	uint32_t (*features)(void *arg);

	/*
	 * true: the device can access only memory that was attached (ATTACH) or given (MEMORY).
	 * false: it can access all memory of the process (embedded).
	 */
	bool attaches;

	volatile void *(*uar)(void *arg); /* the context's doorbell page, mapped */
	bool (*alive)(void *arg);	  /* asked when the doorbell page is full; a load */

	/*
	 * A descriptor that hangs up when the device is gone, owned by the channel. NULL: use
	 * alive().
	 */
	int (*watch_fd)(void *arg);

	/*
	 * The worker that checks a pipeline's part of the doorbell page may sleep: returns its
	 * sleep word (bit 0: asleep, the rest counts) and an eventfd that wakes it; both are owned
	 * by the channel. NULL, or -ENOENT: it never sleeps; other errors: lib_fail().
	 */
	int (*sleep)(void *arg, uint32_t pipe, const uint32_t **word, int *kick_fd);

	/*
	 * Manual progress: run the engine once and return the amount of work done. NULL: it runs by
	 * itself.
	 */
	unsigned int (*progress)(void *arg);
	/* The same after posts, where the program does not wait for a result. NULL: progress. */
	unsigned int (*posted)(void *arg);

	/*
	 * Destroys everything left; arg is invalid afterwards. 0, or -ETIMEDOUT: there was no
	 * answer, and the device may still access memory that is attached.
	 */
	int (*close)(void *arg);

	/*
	 * Called in the child of fork(), where calls are refused: closes the child's copies of the
	 * channel's descriptors. NULL: the channel has no descriptors.
	 */
	void (*leave)(void *arg);
};

/*
 * Create a context on a control channel; ops must outlive it. On failure the caller keeps the
 * channel; softhca_close() closes it.
 */
SOFTHCA_API int softhca_context_create(const struct softhca_ctl_ops *ops, void *arg,
				       const char *name, struct softhca_context **ctx);

#endif
