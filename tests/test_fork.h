/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TEST_FORK_H
#define TESTS_TEST_FORK_H

/* fork() of a process whose other threads belong to a library */

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Whether all other threads of this process sleep */
static inline bool
test_others_sleep(void)
{
	DIR *folder = opendir("/proc/self/task");
	bool sleep = folder != NULL;
	struct dirent *e;

	while (sleep && (e = readdir(folder)) != NULL) {
		char path[64], state = 'S';
		FILE *file;

		if (atoi(e->d_name) <= 0 || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atoi(e->d_name));
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		sleep = fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'S';
		fclose(file);
	}
	if (folder != NULL)
		closedir(folder);
	return sleep;
}

/*
 * ASan's allocator has locks that fork() does not take, unlike those of the C library. A child that
 * was forked while another thread held one waits for ever, so the threads come to rest before: a
 * thread that begins allocates. Gives up after some seconds, with a thread that never rests.
 */
static inline pid_t
test_fork(void)
{
#ifdef __SANITIZE_ADDRESS__
	const struct timespec moment = {.tv_nsec = 1000000};

	for (unsigned int ms = 0, asleep = 0; ms < 5000 && asleep < 3; ms++) {
		asleep = test_others_sleep() ? asleep + 1 : 0;
		nanosleep(&moment, NULL);
	}
#endif
	return fork();
}

#endif
