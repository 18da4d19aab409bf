/* SPDX-License-Identifier: BSD-3-Clause */

/* Kinds of memory: all can be registered and reached, with the rights that it has. */

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/shm.h>
#include <unistd.h>

#include "rows.h"

#define BYTES_OF_KIND ((size_t)1 << 18)
#define HUGE_PAGE ((size_t)2 << 20)

static _Alignas(4096) uint8_t bss[BYTES_OF_KIND];
static _Alignas(4096) uint8_t data[BYTES_OF_KIND] = {1};

/* ---- files ---- */

static int
file_open(char path[256])
{
	const char *place = getenv("TMPDIR");
	int fd;

	snprintf(path, 256, "%s/rows-XXXXXX", place != NULL ? place : "/tmp");
	fd = mkstemp(path);
	CHECK(fd >= 0 && ftruncate(fd, BYTES_OF_KIND) == 0);
	return fd;
}

static int
posix_open(char path[256])
{
	int fd;

	snprintf(path, 256, "/dev/shm/softhca-rows-%d", getpid());
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, BYTES_OF_KIND) == 0);
	return fd;
}

static int
memfd_open(void)
{
	int fd = memfd_create("rows", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, BYTES_OF_KIND) == 0);
	return fd;
}

/* ---- memory that can be written ---- */

static void *
map_file(int fd, int flags)
{
	void *at = mmap(NULL, BYTES_OF_KIND, READ_WRITE, flags, fd, 0);

	CHECK(at != MAP_FAILED && close(fd) == 0);
	return at;
}

static void *
map_path(int (*open_path)(char *path), int flags)
{
	char path[256];
	void *at = map_file(open_path(path), flags);

	CHECK(unlink(path) == 0);
	return at;
}

static void *
attach_shm(int flags)
{
	int id = shmget(IPC_PRIVATE, HUGE_PAGE, IPC_CREAT | 0600 | flags);
	void *at;

	if (id < 0)
		row_skip("there are no huge pages");
	at = shmat(id, NULL, 0);
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
	if (at == (void *)-1)
		row_skip("there are no huge pages");
	return at;
}

static void *
map_huge(int flags)
{
	void *at = mmap(NULL, HUGE_PAGE, READ_WRITE, MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);

	if (at == MAP_FAILED)
		row_skip("there are no huge pages");
	return at;
}

enum kind {
	SHARED_ANONYMOUS,
	MEMFD,
	SHARED_FILE,
	POSIX,
	SYSV,
	SYSV_HUGE,
	HUGE_SHARED,
	HUGE_PRIVATE,
	PRIVATE_FILE,
	OF_BSS,
	OF_DATA,
};

static void *
memory_of(enum kind kind)
{
	switch (kind) {
	case SHARED_ANONYMOUS:
		return map_file(memfd_open(), MAP_SHARED | MAP_ANONYMOUS);
	case MEMFD:
		return map_file(memfd_open(), MAP_SHARED);
	case SHARED_FILE:
		return map_path(file_open, MAP_SHARED);
	case POSIX:
		return map_path(posix_open, MAP_SHARED);
	case SYSV:
		return attach_shm(0);
	case SYSV_HUGE:
		return attach_shm(SHM_HUGETLB);
	case HUGE_SHARED:
		return map_huge(MAP_SHARED);
	case HUGE_PRIVATE:
		return map_huge(MAP_PRIVATE);
	case PRIVATE_FILE:
		return map_path(file_open, MAP_PRIVATE);
	case OF_BSS:
		return bss;
	default:
		return data;
	}
}

/* The rest of the memory around the region stays, and transferred data stays after it. */
static void
kind_works(struct row *row, uint8_t *at)
{
	size_t bytes = BYTES_OF_KIND - 3000;
	struct ibv_mr *mr;

	row_fill(at, BYTES_OF_KIND, 1);
	mr = row_reg(row, at, BYTES_OF_KIND, ALL_ACCESS);
	row_check(at, BYTES_OF_KIND, 1);
	row_send(row, at, BYTES_OF_KIND, mr);
	row_exchange(row, at + 1000, bytes, mr, 2);
	row_dereg(mr);
	row_check(at + 1000, bytes, 3);
	mr = row_reg(row, at + 1234, 5678, ALL_ACCESS);
	row_exchange(row, at + 1234, 5678, mr, 4);
	row_dereg(mr);
	row_check(at + 1234, 5678, 5);
}

static void
kind(struct row *row)
{
	kind_works(row, memory_of((enum kind)row->way));
}

/* The stack of the thread that registers it */
static void
kind_stack(struct row *row)
{
	volatile uint8_t room[BYTES_OF_KIND];

	room[0] = 0;
	kind_works(row, (uint8_t *)(uintptr_t)room);
}

/* ---- rights ---- */

#define WRITES_OF_PEERS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE)
#define ATOMICS_OF_PEERS (IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE)

/* bytes at `at` can be read: they can be sent and read, and no more. */
static void
read_only_works(struct row *row, uint8_t *at, size_t bytes)
{
	struct ibv_mr *mr = row_reg(row, at, bytes, 0);

	row_send(row, at, bytes, mr);
	row_dereg(mr);
	mr = row_reg(row, at, bytes, IBV_ACCESS_REMOTE_READ);
	row_send(row, at, bytes, mr);
	CHECK(row_read(row, at, bytes, mr) && memcmp(row->mirror, at, bytes) == 0);
	row_dereg(mr);
	row_refused(row, at, bytes, IBV_ACCESS_LOCAL_WRITE);
	row_refused(row, at, bytes, WRITES_OF_PEERS);
	row_refused(row, at, bytes, ATOMICS_OF_PEERS);
	row_refused(row, at, bytes, IBV_ACCESS_MW_BIND);
}

/* The producer writes by another mapping, which the region must follow. */
static void
read_only_shared(struct row *row, int fd, int ro)
{
	uint8_t *writer = mmap(NULL, BYTES_OF_KIND, READ_WRITE, MAP_SHARED, fd, 0);
	uint8_t *at = mmap(NULL, BYTES_OF_KIND, PROT_READ, MAP_SHARED, ro, 0);
	struct ibv_mr *mr;

	CHECK(writer != MAP_FAILED && at != MAP_FAILED);
	row_fill(writer, BYTES_OF_KIND, 1);
	read_only_works(row, at, BYTES_OF_KIND);
	mr = row_reg(row, at, BYTES_OF_KIND, IBV_ACCESS_REMOTE_READ);
	row_fill(writer, BYTES_OF_KIND, 2);
	CHECK(row_read(row, at, BYTES_OF_KIND, mr));
	row_check(row->mirror, BYTES_OF_KIND, 2);
	row_dereg(mr);
	row_check(at, BYTES_OF_KIND, 2);
}

static void
read_only_memfd(struct row *row)
{
	int fd = memfd_open();

	read_only_shared(row, fd, fd);
}

static void
read_only_path(struct row *row)
{
	char path[256];
	int fd = row->way == 0 ? file_open(path) : posix_open(path);
	int ro = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(ro >= 0 && unlink(path) == 0);
	read_only_shared(row, fd, ro);
}

static void
read_only_private(struct row *row)
{
	uint8_t *at = row_pages(16, 1);

	CHECK(mprotect(at, 16 * PAGE, PROT_READ) == 0);
	read_only_works(row, at, 16 * PAGE);
	row_check(at, 16 * PAGE, 1);
	/* only a part of the range */
	CHECK(mprotect(at, 8 * PAGE, READ_WRITE) == 0);
	row_refused(row, at, 16 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	row_check(at, 16 * PAGE, 1);
}

static void
no_access(struct row *row)
{
	uint8_t *at = row_pages(16, 1);

	CHECK(mprotect(at + 4 * PAGE, 4 * PAGE, PROT_NONE) == 0);
	row_refused(row, at + 4 * PAGE, 4 * PAGE, 0);
	row_refused(row, at + 4 * PAGE, PAGE, IBV_ACCESS_REMOTE_READ);
	row_refused(row, at, 16 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mprotect(at + 4 * PAGE, 4 * PAGE, READ_WRITE) == 0);
	row_check(at, 16 * PAGE, 1);
	CHECK(munmap(at + 4 * PAGE, PAGE) == 0);
	row_refused(row, at, 16 * PAGE, 0);
}

/* No process opens the file for writing: it is in use that way neither now nor has it been. */
static void
never_written(struct row *row)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd, ro;
	char path[256], event[4096];
	struct ibv_mr *mr;
	uint8_t *at;

	fd = file_open(path);
	row_fill(row->mirror, BYTES_OF_KIND, 1);
	CHECK(write(fd, row->mirror, BYTES_OF_KIND) == (ssize_t)BYTES_OF_KIND && close(fd) == 0);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, BYTES_OF_KIND, PROT_READ, MAP_SHARED, ro, 0);
	CHECK(ro >= 0 && at != MAP_FAILED);
	CHECK(inotify_add_watch(watch, path, IN_CLOSE_WRITE) >= 0);
	mr = row_reg(row, at, BYTES_OF_KIND, IBV_ACCESS_REMOTE_READ);
	row_send(row, at, BYTES_OF_KIND, mr);
	/* a lease for reading is refused while there is a descriptor for writing */
	CHECK(fcntl(ro, F_SETLEASE, F_RDLCK) == 0 && fcntl(ro, F_SETLEASE, F_UNLCK) == 0);
	row_dereg(mr);
	errno = 0;
	CHECK(read(watch, event, sizeof(event)) < 0 && errno == EAGAIN);
	CHECK(unlink(path) == 0 && close(watch) == 0);
}

struct row rows_kinds[] = {
	{"kind_shared_anonymous", kind, SHARED_ANONYMOUS},
	{"kind_memfd", kind, MEMFD},
	{"kind_shared_file", kind, SHARED_FILE},
	{"kind_posix", kind, POSIX},
	{"kind_sysv", kind, SYSV},
	{"kind_sysv_huge", kind, SYSV_HUGE},
	{"kind_huge_shared", kind, HUGE_SHARED},
	{"kind_huge_private", kind, HUGE_PRIVATE},
	{"kind_private_file", kind, PRIVATE_FILE},
	{"kind_bss", kind, OF_BSS},
	{"kind_data", kind, OF_DATA},
	{"kind_stack", kind_stack, 0},
	{"read_only_memfd", read_only_memfd, 0},
	{"read_only_file", read_only_path, 0},
	{"read_only_posix", read_only_path, 1},
	{"read_only_private", read_only_private, 0},
	{"no_access", no_access, 0},
	{"never_written", never_written, 0},
	{0},
};
