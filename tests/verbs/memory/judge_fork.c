/* SPDX-License-Identifier: BSD-3-Clause */

/* A child has all memory as it was, and neither sees the other's writes to private memory. */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "judge.h"

static bool
vpage_is_the_childs(const struct vpage *v)
{
	return vpage_is_writable(v) && v->sort != SHARED && !v->dontfork;
}

/* Bytes that the other process does not write */
static void
store_private(uint32_t times)
{
	for (uint32_t i = 0; i < times; i++) {
		struct window *w = &judge.window[random_below(judge.windows)];
		struct chunk *c = &judge.chunk[random_below(MAX_CHUNKS)];
		uint32_t first, n;

		if (!w->rare && run_pick(w, vpage_is_the_childs, 3, &first, &n))
			window_store(w, first, 0, w->owned < PAGE ? w->owned : n * PAGE);
		if (c->p == NULL)
			continue;
		random_fill(c->shadow, c->size);
		memcpy(c->p, c->shadow, c->size);
	}
}

/* "a": the child has looked; "b": the parent has written */
static _Noreturn void
child(int to_parent, int from_parent)
{
	char word = 'a';

	judge.child = true;
	check_all(false);
	store_private(6);
	check_all(false);
	if (write(to_parent, &word, 1) != 1 || read(from_parent, &word, 1) != 1)
		_exit(2);
	judge.shared_changes = true;
	check_all(false);
	_exit(0);
}

static void
wait_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	fprintf(stderr, "the child ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	errno = ECHILD;
	failed("fork", NULL, 0);
}

void
step_fork(void)
{
	int there[2], back[2];
	char word;
	pid_t pid;

	CHECK(pipe(there) == 0 && pipe(back) == 0);
	note(NULL, 0, "fork");
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(back[1], there[0]);
	CHECK(close(back[1]) == 0);
	if (read(back[0], &word, 1) == 1) {
		check_all(false);
		step_transfer();
		store_private(6);
		check_all(false);
		CHECK(write(there[1], &word, 1) == 1);
	}
	wait_child(pid);
	CHECK(close(there[0]) == 0 && close(there[1]) == 0 && close(back[0]) == 0);
	judge.count.forks++;
}
