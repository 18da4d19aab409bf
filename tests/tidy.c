/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * tidy COMMAND...: runs a test so that it leaves no process or file, even if the test or this
 * program is killed.
 *
 * The test is the child of a keeper in its own session, which outlives both and becomes the parent
 * of all processes that the test leaves (PR_SET_CHILD_SUBREAPER). After the test or this program
 * has ended, the keeper kills the remaining processes and removes the folder of the test's files:
 *
 *  TMPDIR, XDG_RUNTIME_DIR  a new folder in the caller's TMPDIR, with a short path for sockets
 *  /run/dpdk, /run/netns    files of DPDK and names of network namespaces: file systems private to
 *                           the test, if the caller may mount them
 *  RTE_EAL_PMD_PATH         DPDK loads all drivers in it: the 140 of a distribution take a third of
 *                           the start of a daemon. The test sees those that tests use, or all if
 *                           $TIDY_DRIVERS is "all"
 *
 * The exit status is the test's, or 128 and the signal that ended it. If $TIDY_SECONDS is set, a
 * test that runs longer is killed after its threads were listed, and the exit status is 124.
 *
 * If $TIDY_TIMES is set, a line "SECONDS <tab> COMMAND" is appended to the file of that name: the
 * CPU time, user and system, of the test and of all processes that it started.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_MAX 64	/* less than the 108 bytes of a socket's path */
#define LATE (124 << 8) /* status of a test that ran too long */

static char folder[FOLDER_MAX];

static void
make_folder(void)
{
	const char *base = getenv("TMPDIR");

	if (base == NULL || *base == '\0' || strlen(base) > FOLDER_MAX - 16)
		base = "/tmp";
	snprintf(folder, sizeof(folder), "%s/softhca-XXXXXX", base);
	if (mkdtemp(folder) == NULL) {
		perror(folder);
		exit(125);
	}
	chmod(folder, 01777); /* daemons of other users create files in it */
	setenv("TMPDIR", folder, 1);
	setenv("XDG_RUNTIME_DIR", folder, 1);
}

/* Mount a file system that disappears with the last process that sees it. */
static void
hide(const char *path)
{
	if (mkdir(path, 0755) == 0 || errno == EEXIST)
		mount("test", path, "tmpfs", 0, "mode=755");
}

static bool
is_used_driver(const char *name)
{
	static const char *const used[] = {"bus_pci.",	     "bus_vdev.",   "mempool_ring.",
					   "net_af_packet.", "net_af_xdp.", "net_memif.",
					   "net_null.",	     "net_ring.",   "net_tap.",
					   "net_vhost.",     "net_virtio."};
	const char prefix[] = "librte_";

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	name += sizeof(prefix) - 1;
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		if (strncmp(name, used[i], strlen(used[i])) == 0)
			return true;
	return false;
}

/* A file of the folder `all`, under the same name in the folder `few`. */
static void
show_driver(int all, int few, const char *name)
{
	char target[PATH_MAX], from[64], to[64];
	ssize_t n = readlinkat(all, name, target, sizeof(target) - 1);
	int file, place;

	if (n >= 0) {
		target[n] = '\0';
		if (symlinkat(target, few, name) != 0)
			perror(name);
		return;
	}
	file = openat(all, name, O_PATH | O_CLOEXEC);
	place = openat(few, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", file);
	snprintf(to, sizeof(to), "/proc/self/fd/%d", place);
	if (file < 0 || place < 0 || mount(from, to, NULL, MS_BIND, NULL) != 0)
		perror(name);
	if (file >= 0)
		close(file);
	if (place >= 0)
		close(place);
}

static void
few_drivers(const char *path)
{
	const char *all = getenv("TIDY_DRIVERS");
	struct dirent *entry;
	DIR *drivers;
	int few;

	if (all != NULL && strcmp(all, "all") == 0)
		return;
	drivers = opendir(path);
	if (drivers == NULL)
		return;
	if (mount("test", path, "tmpfs", 0, "mode=755") == 0) {
		few = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		while (few >= 0 && (entry = readdir(drivers)) != NULL)
			if (is_used_driver(entry->d_name))
				show_driver(dirfd(drivers), few, entry->d_name);
		if (few >= 0)
			close(few);
	}
	closedir(drivers);
}

static void
own_mounts(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return;
	hide("/run/dpdk");
	hide("/run/netns");
#ifdef DRIVERS
	few_drivers(DRIVERS);
#endif
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	if (remove(path) != 0)
		fprintf(stderr, "tidy: %s stays: %s\n", path, strerror(errno));
	return 0;
}

/* ---- the keeper ---- */

static volatile sig_atomic_t child_ended;

static void
on_child(int number)
{
	(void)number;
	child_ended = 1;
}

/*
 * Kill every process whose parent is the keeper: the test, or its leftovers. Returns their number.
 */
static unsigned int
kill_children(bool tell)
{
	char path[64], name[32];
	unsigned int n = 0;
	int pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	while (fscanf(f, "%d", &pid) == 1) {
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = tell ? fopen(path, "re") : NULL;
		if (comm != NULL && fgets(name, sizeof(name), comm) != NULL)
			fprintf(stderr, "tidy: left behind: %d %s", pid, name);
		if (comm != NULL)
			fclose(comm);
		kill(pid, SIGKILL);
		n++;
	}
	fclose(f);
	return n;
}

/* The first line of a file of a thread, or its words if NULs separate them. */
static void
tell_file(const char *process, const char *thread, const char *name)
{
	char path[128], text[160];
	ssize_t n, i;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", process, thread, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text));
	close(fd);
	for (i = 0; i < n && text[i] != '\n'; i++)
		fputc(text[i] == '\0' ? ' ' : text[i], stderr);
	fputs("; ", stderr);
}

/* What the threads of a process wait for, and of the processes that it started. */
static void
tell_threads(const char *process)
{
	char path[300], child[32];
	struct dirent *entry;
	DIR *threads;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	threads = opendir(path);
	if (threads == NULL)
		return;
	while ((entry = readdir(threads)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		fprintf(stderr, "tidy: %s/%s ", process, entry->d_name);
		tell_file(process, entry->d_name, "comm");
		tell_file(process, entry->d_name, "wchan");
		tell_file(process, entry->d_name, "syscall");
		tell_file(process, entry->d_name, "cmdline");
		fputc('\n', stderr);
		snprintf(path, sizeof(path), "/proc/%s/task/%s/children", process, entry->d_name);
		f = fopen(path, "re");
		while (f != NULL && fscanf(f, "%31s", child) == 1)
			tell_threads(child);
		if (f != NULL)
			fclose(f);
	}
	closedir(threads);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * Wait until the test ends, the starting program is gone, or the test has run for too long. Returns
 * the test's status, -1, or LATE.
 */
static int
wait_for(pid_t test, int lifeline)
{
	const char *limit = getenv("TIDY_SECONDS");
	double end = limit != NULL ? seconds() + atof(limit) : 0;
	struct pollfd p = {.fd = lifeline};
	sigset_t none;
	char self[32];
	int status;
	pid_t pid;

	sigemptyset(&none);
	for (;;) {
		double left = end - seconds();
		struct timespec t = {.tv_sec = left > 0 ? (time_t)left + 1 : 0};

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == test)
				return status;
		if (limit != NULL && left <= 0) {
			fprintf(stderr, "tidy: the test is killed: it ran for more than %s s\n",
				limit);
			snprintf(self, sizeof(self), "%d", (int)getpid());
			tell_threads(self);
			return LATE;
		}
		if (pid < 0 || ppoll(&p, 1, limit != NULL ? &t : NULL, &none) > 0)
			return -1;
	}
}

/* The children of killed processes become ours in turn. */
static void
sweep(bool tell)
{
	while (kill_children(tell) != 0)
		while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
			;
}

/*
 * Append the CPU time of all processes that have ended to the file, with one write(), as other
 * tests append to it at the same time.
 */
static void
add_time(const char *path, char **command)
{
	struct rusage used;
	char *line = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&line, &length);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

	getrusage(RUSAGE_CHILDREN, &used);
	if (f != NULL) {
		fprintf(f, "%.3f\t%s",
			(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
				(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6,
			command[0]);
		for (unsigned int i = 1; command[i] != NULL; i++)
			fprintf(f, " %s", command[i]);
		fclose(f);
	}
	for (size_t i = 0; line != NULL && i < length; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	if (line != NULL)
		line[length++] = '\n'; /* in place of the NUL */
	if (fd < 0 || line == NULL || write(fd, line, length) != (ssize_t)length)
		fprintf(stderr, "tidy: %s: %s\n", path, strerror(errno));
	free(line);
	if (fd >= 0)
		close(fd);
}

static void
keep(char **command, int lifeline, int report, sigset_t *mask)
{
	struct sigaction sa = {.sa_handler = on_child};
	const char *times = getenv("TIDY_TIMES");
	int status;
	pid_t test;

	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGCHLD, &sa, NULL);
	make_folder();
	own_mounts();
	test = fork();
	if (test == 0) {
		close(lifeline);
		close(report);
		unsetenv("TIDY_TIMES"); /* a test of tidy sets its own */
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(command[0], command);
		perror(command[0]);
		_exit(127);
	}
	status = test > 0 ? wait_for(test, lifeline) : -1;
	sweep(status >= 0 && status != LATE);
	if (times != NULL && *times != '\0')
		add_time(times, command);
	nftw(folder, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (status >= 0 && write(report, &status, sizeof(status)) < 0)
		_exit(1);
	_exit(0);
}

int
main(int argc, char **argv)
{
	int life[2], report[2], status;
	sigset_t mask, block;

	if (argc < 2) {
		fprintf(stderr, "usage: tidy COMMAND...\n");
		return 125;
	}
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &mask); /* the keeper takes it only in ppoll() */
	if (pipe2(life, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)
		return 125;
	switch (fork()) {
	case -1:
		return 125;
	case 0:
		close(life[1]);
		close(report[0]);
		keep(argv + 1, life[0], report[1], &mask);
	}
	close(life[0]);
	close(report[1]);
	if (read(report[0], &status, sizeof(status)) != sizeof(status))
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
