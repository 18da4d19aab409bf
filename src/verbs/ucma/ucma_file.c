/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Files: their descriptors, and when they end. As with the kernel's device a file lives as long as
 * a descriptor of it, and as a call that uses it. Only the first descriptor passes through open();
 * duplicates are found by the entry of an epoll descriptor in /proc, and those left after close()
 * by another epoll descriptor (watch) that contains the file: it leaves that with its last
 * reference.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ucma.h"

struct ucma_state ucma = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.hca_lock = PTHREAD_MUTEX_INITIALIZER,
	.mark = -1,
};

/* Tells a token from other data of epoll descriptors */
#define TOKEN_BASE (UINT64_C(0x75636d61) << 32)

static void
state_lock(void)
{
	pthread_mutex_lock(&ucma.hca_lock);
	pthread_mutex_lock(&ucma.lock);
}

static void
state_unlock(void)
{
	pthread_mutex_unlock(&ucma.lock);
	pthread_mutex_unlock(&ucma.hca_lock);
}

/*
 * The parent's files stay the parent's (their number of forks is another), as do its ids and HCAs:
 * the child's numbers begin where those of the parent were.
 */
static void
state_forked(void)
{
	ucma.forks++;
	ucma.hcas = NULL;
	ucma.kept = 0;
	state_unlock();
}

static void
state_watch_fork(void)
{
	pthread_atfork(state_lock, state_unlock, state_forked);
}

/* ---- the mark ---- */

static bool
file_has_mark(int fd, uint64_t token)
{
	struct epoll_event event = {.data.u64 = token};

	return epoll_ctl(fd, EPOLL_CTL_MOD, ucma.mark, &event) == 0;
}

/* One for all: 0 or a negative errno; ucma.lock is held. */
static int
mark_make(void)
{
	if (ucma.mark >= 0)
		return 0;
	ucma.mark = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return ucma.mark >= 0 ? 0 : -errno;
}

/* The text of /proc/self/fdinfo/FD; an empty one if it does not exist */
static void
fdinfo_read(int fd, char *text, size_t bytes)
{
	char path[64];
	ssize_t n;
	int info;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return;
	n = read(info, text, bytes - 1);
	text[n > 0 ? n : 0] = '\0';
	close(info);
}

/* The token of an epoll descriptor with our mark, 0: it has none */
static uint64_t
fdinfo_token(int fd)
{
	unsigned long long data;
	char text[4096];
	int tfd;

	fdinfo_read(fd, text, sizeof(text));
	for (const char *line = strstr(text, "tfd:"); line != NULL; line = strstr(line + 1, "tfd:"))
		if (sscanf(line, "tfd: %d events: %*x data: %llx", &tfd, &data) == 2 &&
		    tfd == ucma.mark && (data & TOKEN_BASE) == TOKEN_BASE)
			return data;
	return 0;
}

/* ---- descriptors ---- */

static void
file_link(struct ucma_file *file)
{
	file->next = ucma.all;
	file->link = &ucma.all;
	if (file->next != NULL)
		file->next->link = &file->next;
	ucma.all = file;
}

static void
file_unlink(struct ucma_file *file)
{
	*file->link = file->next;
	if (file->next != NULL)
		file->next->link = file->link;
}

/* Closed, but for descriptors that are not known: watch tells when they are gone. */
static void
file_keep(struct ucma_file *file, int watch)
{
	file->watch = watch;
	ucma.kept++;
}

static void
file_unkeep(struct ucma_file *file)
{
	close(file->watch);
	file->watch = -1;
	ucma.kept--;
}

static void
file_destroy(struct ucma_file *file)
{
	while (file->ids != NULL)
		ucma_id_free(file->ids);
	ucma_sources_free(file);
	pthread_mutex_destroy(&file->lock);
	free(file);
}

void
ucma_file_put(struct ucma_file *file)
{
	bool last;

	pthread_mutex_lock(&ucma.lock);
	last = --file->refs == 0 && file->forks == ucma.forks; /* the parent's is left alone */
	if (last)
		file_unlink(file);
	pthread_mutex_unlock(&ucma.lock);
	if (last)
		file_destroy(file);
}

/* A descriptor is the file's, which gets a reference. ucma.lock is held. */
static int
file_enter(int fd, struct ucma_file *file)
{
	int err = ucma_table_set(&ucma.files, (uint32_t)fd, file);

	if (err == 0)
		file->refs++;
	return err;
}

/* The descriptor has become another file's, unseen; the reference is the caller's. */
static struct ucma_file *
file_leave(int fd)
{
	struct ucma_file *file = ucma_table_get(&ucma.files, (uint32_t)fd);

	if (file != NULL)
		ucma_table_set(&ucma.files, (uint32_t)fd, NULL);
	return file;
}

/* A duplicate that is used for the first time. ucma.lock is held. */
static struct ucma_file *
file_adopt(int fd)
{
	uint64_t token = fdinfo_token(fd);
	struct ucma_file *file = ucma.all;

	while (token != 0 && file != NULL && file->token != token)
		file = file->next;
	if (token == 0 || file == NULL || file_enter(fd, file) != 0)
		return NULL;
	if (file->watch >= 0) {
		file_unkeep(file);
		file->refs--; /* that it had for its unknown descriptors */
	}
	return file;
}

struct ucma_file *
ucma_file_get(int fd)
{
	struct ucma_file *file, *old = NULL;

	pthread_mutex_lock(&ucma.lock);
	file = fd >= 0 && ucma.mark >= 0 ? ucma_table_get(&ucma.files, (uint32_t)fd) : NULL;
	if (file != NULL && !file_has_mark(fd, file->token)) {
		old = file_leave(fd);
		file = NULL;
	}
	if (file == NULL && fd >= 0 && ucma.mark >= 0)
		file = file_adopt(fd);
	if (file != NULL)
		file->refs++;
	pthread_mutex_unlock(&ucma.lock);
	if (old != NULL)
		ucma_file_put(old);
	return file;
}

bool
ucma_is_file(int fd)
{
	struct ucma_file *file = ucma_file_get(fd);

	if (file != NULL)
		ucma_file_put(file);
	return file != NULL;
}

/* ---- open ---- */

static struct ucma_file *
file_new(void)
{
	struct ucma_file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	pthread_mutex_init(&file->lock, NULL);
	file->watch = -1;
	return file;
}

/* The file has its first descriptor and is found by it. ucma.lock is held. */
static int
file_begin(struct ucma_file *file, int fd)
{
	struct epoll_event event = {0};
	int err = mark_make();

	if (err != 0)
		return err;
	file->forks = ucma.forks;
	file->token = TOKEN_BASE | ++ucma.tokens;
	event.data.u64 = file->token;
	if (epoll_ctl(fd, EPOLL_CTL_ADD, ucma.mark, &event) != 0)
		return -errno;
	err = file_enter(fd, file);
	if (err != 0)
		return err;
	file_link(file);
	return 0;
}

static int
file_open(struct ucma_file *file, int fd, int flags)
{
	struct ucma_file *old;
	int err;

	pthread_mutex_lock(&ucma.lock);
	old = file_leave(fd);
	err = file_begin(file, fd);
	pthread_mutex_unlock(&ucma.lock);
	if (old != NULL)
		ucma_file_put(old);
	if (err == 0 && (flags & O_NONBLOCK) != 0)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	return err;
}

int
ucma_open(int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd = epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0), err = -ENOMEM;
	struct ucma_file *file;

	if (fd < 0)
		return -1;
	pthread_once(&once, state_watch_fork);
	ucma_file_sweep();
	file = file_new();
	if (file != NULL)
		err = file_open(file, fd, flags);
	if (err == 0)
		return fd;
	free(file);
	close(fd);
	errno = -err;
	return -1;
}

/* ---- close ---- */

/* An epoll descriptor with the file's in it; -1: none */
static int
watch_make(int fd)
{
	struct epoll_event event = {0};
	int watch = epoll_create1(EPOLL_CLOEXEC);

	if (watch < 0)
		return -1;
	if (epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event) == 0)
		return watch;
	close(watch);
	return -1;
}

static bool
watch_is_empty(int watch)
{
	char text[512];

	fdinfo_read(watch, text, sizeof(text));
	return strstr(text, "tfd:") == NULL;
}

/* Other descriptors may be left: of calls that wait, duplicates, and a forked child's. */
static void
file_closed(struct ucma_file *file, int watch)
{
	bool kept;

	pthread_mutex_lock(&ucma.lock);
	kept = watch >= 0 && file->watch < 0 && !watch_is_empty(watch);
	if (kept)
		file_keep(file, watch);
	pthread_mutex_unlock(&ucma.lock);
	if (kept)
		return; /* with the descriptor's reference */
	if (watch >= 0)
		close(watch);
	ucma_file_put(file);
}

int
ucma_close(int fd, int (*close_fd)(int fd))
{
	struct ucma_file *file = ucma_file_get(fd);
	int watch, result, err;

	if (file == NULL)
		return close_fd(fd);
	ucma_file_put(file);
	pthread_mutex_lock(&ucma.lock);
	file = file_leave(fd);
	pthread_mutex_unlock(&ucma.lock);
	if (file == NULL || file->forks != ucma.forks)
		return close_fd(fd); /* the parent's goes on */
	watch = watch_make(fd);
	result = close_fd(fd);
	err = errno;
	file_closed(file, watch);
	ucma_file_sweep();
	errno = err;
	return result;
}

/* One file that has ended; NULL: no more. */
static struct ucma_file *
sweep_take(void)
{
	struct ucma_file *file;

	pthread_mutex_lock(&ucma.lock);
	file = ucma.all;
	while (file != NULL &&
	       (file->watch < 0 || file->forks != ucma.forks || !watch_is_empty(file->watch)))
		file = file->next;
	if (file != NULL)
		file_unkeep(file);
	pthread_mutex_unlock(&ucma.lock);
	return file;
}

void
ucma_file_sweep(void)
{
	struct ucma_file *file;

	while (__atomic_load_n(&ucma.kept, __ATOMIC_RELAXED) != 0 && (file = sweep_take()) != NULL)
		ucma_file_put(file);
}
