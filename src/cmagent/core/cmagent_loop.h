/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_CORE_LOOP_H
#define CMAGENT_CORE_LOOP_H

/*
 * When an agent works. With a thread of its own it sleeps until a datagram comes, a caller wakes it
 * (cmagent_loop_wake()) or the next deadline; without one the composition calls
 * cmagent_loop_poll(), outside of the driver and of the engine. One thread at a time has the right
 * to run.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmagent_mail.h"

#define CMAGENT_NEVER UINT64_MAX

struct cmagent_loop_config {
	bool thread;
	struct cmagent_mail *mail;
	/* ns of a clock that does not jump; argument: now_arg */
	uint64_t (*now)(void *arg);
	void *now_arg;
	/*
	 * Do all that is due, completions of the mail among it; *deadline is the present one, and
	 * becomes the next. Returns how much was done.
	 */
	unsigned int (*work)(void *owner, uint64_t now, uint64_t *deadline);
	void *owner;
};

struct cmagent_loop {
	struct cmagent_loop_config cfg;
	uint64_t deadline; /* CMAGENT_NEVER: none */
	uint64_t mail_at;  /* work() leaves the mail alone until then, and has a deadline there */
	pthread_t thread;
	bool runs;
	int wake_fd; /* eventfd; -1: no thread */
	int stop;
	int busy;
	uint32_t asked; /* cmagent_loop_wake() was called */
};

/* 0 or a negative errno; no thread runs yet. The first turn is due at once. */
int cmagent_loop_open(struct cmagent_loop *loop, const struct cmagent_loop_config *config);
/* Start the thread of an open loop, if it has one; 0 or a negative errno. */
int cmagent_loop_start(struct cmagent_loop *loop);
/* The thread ends after its turn. */
void cmagent_loop_stop(struct cmagent_loop *loop);
/* Accepts a loop that is not open, with wake_fd -1. */
void cmagent_loop_close(struct cmagent_loop *loop);

/* The agent looks. Any thread, also under the locks of the driver: never blocks. */
void cmagent_loop_wake(struct cmagent_loop *loop);
/* Do the work that is due; returns its amount. Returns at once if another thread is running. */
unsigned int cmagent_loop_poll(struct cmagent_loop *loop);

#endif
