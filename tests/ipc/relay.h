/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_IPC_RELAY_H
#define TESTS_IPC_RELAY_H

/*
 * Stands between a library and a daemon, and presents each to the other as one of another release.
 * It is a process; the library connects to its socket instead of the daemon's.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

enum relay_as {
	/* version 7.0, with the frozen sizes of old_ops.h: a missing operation ends the session */
	RELAY_OLD,
	/* a later minor version: answers have more members, and one has fewer */
	RELAY_LATER,
};

/* Shared with the process of the relay */
struct relay_seen {
	unsigned int requests, answers;
	char wrong[160]; /* the first message that the other release would not have taken */
};

struct relay {
	struct sockaddr_un addr;
	pid_t pid;
	struct relay_seen *seen;
};

/* to: path of the daemon's socket. Asserts. */
void relay_start(struct relay *relay, const char *to, enum relay_as as);
void relay_stop(struct relay *relay);

#endif
