/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TEST_PATH_H
#define TESTS_TEST_PATH_H

/*
 * Files and folders of tests are below TMPDIR, where nothing is left of a test that is killed
 * (tidy.c).
 */

#include <stdio.h>
#include <stdlib.h>

#define TEST_PATH_MAX 80 /* a socket in this folder has room in its address */

/* "TMPDIR/softhca-WHAT-XXXXXX" in room of TEST_PATH_MAX, for mkstemp() and mkdtemp(). */
static inline char *
test_path(char *room, const char *what)
{
	const char *base = getenv("TMPDIR");

	if (base == NULL || *base == '\0')
		base = "/tmp";
	if (snprintf(room, TEST_PATH_MAX, "%s/softhca-%s-XXXXXX", base, what) >= TEST_PATH_MAX) {
		fprintf(stderr, "TMPDIR is too long a path: %s\n", base);
		abort();
	}
	return room;
}

#endif
