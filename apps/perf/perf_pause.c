/* SPDX-License-Identifier: BSD-3-Clause */

/* Helps to observe runs: QPs that are held before their traffic, and the same addresses. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "perf.h"

static volatile sig_atomic_t released;

static void
on_release(int number)
{
	(void)number;
	released = 1;
}

static void
print_qps(const struct perf_session *s, const char *pass)
{
	const char *what = s->ub != NULL ? "Jetty" : "QP";

	printf("paused before the %s pass:\n", pass);
	for (uint32_t f = 0; f < s->num_flows; f++)
		printf("  %s 0x%x <-> %s 0x%x\n", what, s->flows[f].qpn[0], what,
		       s->flows[f].qpn[1]);
	printf("a line, or SIGUSR1 to process %d, goes on%s\n", (int)getpid(),
	       s->embed != NULL ? "; a line of faults, as of --impair, adds them" : "");
	fflush(stdout);
}

/* 1: an empty line; 0: go on waiting; -EBADF: there is no input */
static int
take_line(struct perf_session *s)
{
	char line[512];

	if (fgets(line, sizeof(line), stdin) == NULL)
		return -EBADF;
	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '\0')
		return 1;
	if (s->embed == NULL)
		printf("the faults of a daemon: softhca-ctl impair\n");
	else if (softhca_embed_impair(s->embed, line) != 0)
		printf("%s\n", softhca_embed_last_error());
	else
		printf("added: %s\n", line);
	fflush(stdout);
	return 0;
}

/* Signals are blocked except while it waits, so that no signal is missed. */
static void
wait_for_line(struct perf_session *s, const sigset_t *open)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	int got = 0;

	while (!released && !perf_interrupted() && got != 1) {
		if (ppoll(&fd, got == 0, NULL, open) > 0)
			got = take_line(s);
	}
}

int
perf_pause(struct perf_session *s, const char *pass)
{
	const struct sigaction action = {.sa_handler = on_release};
	sigset_t closed, before;

	if (!s->opt->pause || perf_interrupted())
		return 0;
	sigemptyset(&closed);
	sigaddset(&closed, SIGUSR1);
	sigaddset(&closed, SIGINT);
	sigaddset(&closed, SIGTERM);
	released = 0;
	sigprocmask(SIG_BLOCK, &closed, &before);
	sigaction(SIGUSR1, &action, NULL);
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() must not miss input that stdio has read */
	print_qps(s, pass);
	wait_for_line(s, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return perf_interrupted() ? -EINTR : 0;
}

/* Only the execution of a program gives it new addresses. */
int
perf_fix_addresses(const struct perf_options *opt, char **argv)
{
	int now = personality(0xffffffff);

	if (!opt->fixed_addresses || (now & ADDR_NO_RANDOMIZE) != 0)
		return 0;
	if (now == -1 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1) {
		fprintf(stderr, "softhca-perf: --fixed-addresses: %s\n", strerror(errno));
		return -errno;
	}
	execv("/proc/self/exe", argv);
	fprintf(stderr, "softhca-perf: --fixed-addresses: cannot start again: %s\n",
		strerror(errno));
	return -errno;
}
