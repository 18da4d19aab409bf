/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ipc_rig.h"

uint64_t
rig_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- the daemon ---- */

static unsigned int rigs;

static void
name_socket(char *path, size_t room, unsigned int number, int side)
{
	const char *base = getenv("TMPDIR");
	int n = snprintf(path, room, "%s/softhca-ipc-%d-%u/%c.sock", base != NULL ? base : "/tmp",
			 (int)getpid(), number, 'a' + side);

	assert_true(n < (int)room); /* or TMPDIR is too long for the address of a socket */
}

static void
remove_folder(unsigned int number)
{
	char path[RIG_PATH_MAX + sizeof(".device")];

	for (int i = 0; i < 2; i++) {
		name_socket(path, RIG_PATH_MAX, number, i);
		unlink(path);
		strcat(path, ".device");
		unlink(path);
	}
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

/* Includes the folders of tests that failed before they stopped their daemon. */
static void
remove_folders(void)
{
	while (rigs > 0)
		remove_folder(--rigs);
}

/* One line, without its end. */
static void
read_line(struct rig *rig, char *line, size_t room)
{
	struct pollfd p = {.fd = rig->from, .events = POLLIN};
	size_t n = 0;

	for (;;) {
		assert_int_equal(poll(&p, 1, RIG_TIMEOUT_MS), 1);
		assert_int_equal(read(rig->from, &line[n], 1), 1);
		if (line[n] == '\n')
			break;
		assert_true(++n < room);
	}
	line[n] = '\0';
}

static void
run_daemon(const struct rig *rig, const int in[2], const int out[2], const char *const *extra)
{
	const char *argv[16] = {getenv("IPCD"), rig->path[0], rig->path[1]};

	for (int i = 0; extra != NULL && extra[i] != NULL; i++)
		argv[3 + i] = extra[i];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(in[0], 0);
	dup2(out[1], 1);
	close(in[1]);
	close(out[0]);
	if (argv[0] != NULL)
		execv(argv[0], (char *const *)(uintptr_t)argv);
	perror("IPCD names no program");
	_exit(127);
}

void
rig_start(struct rig *rig, const char *const *extra)
{
	int in[2], out[2];
	char line[64];

	if (rigs == 0)
		atexit(remove_folders);
	rig->number = rigs++;
	for (int i = 0; i < 2; i++)
		name_socket(rig->path[i], sizeof(rig->path[i]), rig->number, i);
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	rig->pid = fork();
	assert_true(rig->pid >= 0);
	if (rig->pid == 0)
		run_daemon(rig, in, out, extra);
	close(in[0]);
	close(out[1]);
	rig->to = in[1];
	rig->from = out[0];
	read_line(rig, line, sizeof(line));
	assert_string_equal(line, "ready");
}

void
rig_forget(struct rig *rig)
{
	close(rig->to);
	close(rig->from);
	remove_folder(rig->number);
}

void
rig_stop(struct rig *rig)
{
	int status;

	assert_int_equal(write(rig->to, "quit\n", 5), 5);
	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	rig_forget(rig);
}

void
rig_kill(struct rig *rig)
{
	assert_int_equal(kill(rig->pid, SIGKILL), 0);
	assert_int_equal(waitpid(rig->pid, NULL, 0), rig->pid);
	rig_forget(rig);
}

void
rig_suspend(struct rig *rig)
{
	siginfo_t info;

	assert_int_equal(kill(rig->pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)rig->pid, &info, WSTOPPED), 0);
}

static void
question(struct rig *rig, const char *what, unsigned int side, char *answer, size_t room)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %c\n", what, 'A' + (int)side);

	assert_int_equal(write(rig->to, line, (size_t)n), n);
	read_line(rig, answer, room);
}

int64_t
rig_ask(struct rig *rig, const char *what, unsigned int side, const char *name)
{
	char answer[16384], key[64], *at;

	question(rig, what, side, answer, sizeof(answer));
	snprintf(key, sizeof(key), "%s=", name);
	for (at = strstr(answer, key); at != NULL; at = strstr(at + 1, key))
		if (at == answer || at[-1] == ' ')
			return strtoll(at + strlen(key), NULL, 10);
	fail_msg("%s has no %s: %s", what, name, answer);
	return -1;
}

/* Every number of the answer is 0. */
static bool
all_zero(const char *answer)
{
	for (const char *at = strchr(answer, '='); at != NULL; at = strchr(at + 1, '='))
		if (strtoll(at + 1, NULL, 10) != 0)
			return false;
	return true;
}

int64_t
rig_wait_empty(struct rig *rig, unsigned int side)
{
	uint64_t start = rig_now_ns();
	char answer[1024];

	for (;;) {
		uint64_t took;

		question(rig, "usage", side, answer, sizeof(answer));
		took = rig_now_ns() - start;
		if (all_zero(answer))
			return (int64_t)took;
		if (took > RIG_TIMEOUT_S * UINT64_C(1000000000))
			break;
		poll(NULL, 0, 1);
	}
	fprintf(stderr, "left on side %u: %s\n", side, answer);
	return -1;
}

/* ---- processes ---- */

#define CHILDREN 64

static pid_t children[CHILDREN]; /* not yet waited for */

static bool
is_child(pid_t pid)
{
	siginfo_t info;

	return pid != 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void
remember(pid_t pid)
{
	for (unsigned int i = 0; i < CHILDREN; i++)
		if (!is_child(children[i])) {
			children[i] = pid;
			return;
		}
	fail_msg("more than %d children", CHILDREN);
}

void
rig_keep(pid_t pid)
{
	for (unsigned int i = 0; i < CHILDREN; i++)
		if (children[i] == pid)
			children[i] = 0;
}

pid_t
rig_fork(rig_child_fn fn, void *arg, int *sock)
{
	int pair[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* the child ends with the test, however that ends */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		status = fn(pair[1], arg) == 0 ? 0 : 1;
		fflush(stdout);
		_exit(status);
	}
	close(pair[1]);
	remember(pid);
	*sock = pair[0];
	return pid;
}

int
rig_wait(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	rig_keep(pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void
rig_join(pid_t pid)
{
	assert_int_equal(rig_wait(pid), 0);
}

/*
 * Close the connection: the client's objects in this process remain, but the daemon considers it
 * gone.
 */
static void
hang_up(int fd)
{
	struct sockaddr_un peer = {0};
	socklen_t len = sizeof(peer);

	if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sun_family == AF_UNIX &&
	    strstr(peer.sun_path, "/softhca-ipc-") != NULL)
		shutdown(fd, SHUT_RDWR);
}

int
rig_tidy(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CHILDREN; i++) {
		if (is_child(children[i])) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
		children[i] = 0;
	}
	for (int fd = 0; fd < 1024; fd++)
		hang_up(fd);
	return 0;
}

int
rig_open_files(pid_t pid)
{
	char folder[40];
	int n = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	dir = opendir(folder);
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}
