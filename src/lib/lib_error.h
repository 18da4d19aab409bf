/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_ERROR_H
#define LIB_ERROR_H

#include <stddef.h>

/* Record the reason for this thread (softhca_last_error()), set errno and return err (negative). */
int lib_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *lib_reason(void);
/* An allocation for this object has failed in this process. As lib_fail(); returns -ENOMEM. */
int lib_no_memory(const char *object, size_t bytes);
/* Reasons that several files have */
#define LIB_CLOSING "the context is being closed: another thread called softhca_close()"
#define LIB_NOT_MAPPED "nothing is mapped at %#llx: register memory that the process has mapped"

/* The reason and errno that this thread has recorded: saved across a cleanup that may also fail. */
struct lib_error {
	int number;
	char reason[256];
};
void lib_error_keep(struct lib_error *error);
void lib_error_restore(const struct lib_error *error);

#endif
