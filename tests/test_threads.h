/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TEST_THREADS_H
#define TESTS_TEST_THREADS_H

/* The threads of this process apart from the main one, and the signals that they block. */

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline uint64_t
test_blocked(int thread)
{
	char path[64], line[128];
	unsigned long set = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "SigBlk: %lx", &set) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return set;
}

/* Whether a thread may run the handler of a signal that is sent to the process */
static inline int
test_takes_signals(int thread)
{
	static const int sent[] = {SIGHUP, SIGINT,  SIGTERM, SIGALRM, SIGUSR1,
				   SIGIO,  SIGCHLD, SIGPROF, SIGPIPE};
	uint64_t set = test_blocked(thread);

	for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
		if ((set >> (sent[i] - 1) & 1) == 0)
			return 1;
	return 0;
}

/* The number of threads; *take: of those that take signals */
static inline unsigned int
test_other_threads(unsigned int *take)
{
	DIR *folder = opendir("/proc/self/task");
	unsigned int others = 0;
	struct dirent *e;

	*take = 0;
	while (folder != NULL && (e = readdir(folder)) != NULL) {
		int thread = atoi(e->d_name);

		if (thread <= 0 || thread == getpid())
			continue;
		others++;
		*take += (unsigned int)test_takes_signals(thread);
	}
	if (folder != NULL)
		closedir(folder);
	return others;
}

#endif
