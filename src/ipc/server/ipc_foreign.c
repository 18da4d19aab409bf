/* SPDX-License-Identifier: BSD-3-Clause */

/* Checks the files of a client, its mappings, and translates its pages to bus addresses. */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "abi_ctx.h"
#include "ipc_foreign_impl.h"
#include "ipc_memory.h"

#define PAGES_MAX 512u /* a region of more pages uses larger pages */
#define RUNS_MAX 1024u /* limit of discontiguous pieces of a page list */
#define PATH_ROOM 128u

/* ---- the files ---- */

/* Path of the folder of a procfs file with this name; -EBADF: it is another file. */
static int
folder_of(int fd, const char *name, int access, char folder[PATH_ROOM])
{
	char link[40], *slash;
	struct statfs fs;
	ssize_t n;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) != access || (flags & O_PATH) != 0 ||
	    fstatfs(fd, &fs) != 0 || fs.f_type != PROC_SUPER_MAGIC)
		return -EBADF;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, folder, PATH_ROOM - 1);
	if (n <= 0)
		return -EBADF;
	folder[n] = '\0';
	slash = strrchr(folder, '/');
	if (slash == NULL || strcmp(slash + 1, name) != 0)
		return -EBADF;
	*slash = '\0';
	return 0;
}

/* The folder's name is a process number: the peer's, if it belongs to our own procfs. */
static bool
folder_fits(int fd, const char *folder, int peer)
{
	const char *slash = strrchr(folder, '/');
	struct stat theirs, ours;
	unsigned long pid;
	char *end;

	if (slash == NULL || slash[1] < '1' || slash[1] > '9')
		return false;
	pid = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || fstat(fd, &theirs) != 0 || stat("/proc/self", &ours) != 0)
		return false;
	return theirs.st_dev != ours.st_dev || pid == (unsigned long)peer;
}

static int
judge_files(int mem, int maps, int peer)
{
	char folder[PATH_ROOM], other[PATH_ROOM];

	if (folder_of(mem, "mem", O_RDWR, folder) != 0 ||
	    folder_of(maps, "maps", O_RDONLY, other) != 0 || strcmp(folder, other) != 0 ||
	    !folder_fits(mem, folder, peer))
		return ipc_fail(-EBADF, "these are not the mem and maps files of the client");
	return 0;
}

static int
keep(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int
ipc_foreign_create(int mem, int maps, int peer, uid_t uid, int stop_fd, struct ipc_foreign **out)
{
	struct ipc_foreign *f;
	int err = judge_files(mem, maps, peer);

	if (err != 0)
		return err;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ipc_no_memory("memory of a client", sizeof(*f));
	f->mem = keep(mem);
	f->maps = keep(maps);
	f->stop_fd = stop_fd;
	err = f->mem < 0 || f->maps < 0 ? -EMFILE : ipc_foreign_start(f, uid);
	if (err == 0) {
		*out = f;
		return 0;
	}
	ipc_foreign_free(f);
	return ipc_fail(err, "no thread or descriptors for a client's memory");
}

void
ipc_foreign_free(struct ipc_foreign *f)
{
	if (f->mem >= 0)
		close(f->mem);
	if (f->maps >= 0)
		close(f->maps);
	free(f);
}

/* ---- mappings ---- */

#define LINES_PER_LOOK 256u /* between looks at stop_fd */

struct range {
	uint64_t va, end;
};

static int
range_order(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

/* Sort ranges, and merge those that meet; returns their number. */
static uint32_t
ranges_tidy(struct range *r, uint32_t n)
{
	uint32_t last = 0;

	qsort(r, n, sizeof(*r), range_order);
	for (uint32_t i = 1; i < n; i++) {
		if (r[i].va > r[last].end)
			r[++last] = r[i];
		else if (r[i].end > r[last].end)
			r[last].end = r[i].end;
	}
	return last + 1;
}

/*
 * A mapping, of which the lines ascend. *r: the first of the ranges up to `end` that is not judged
 * yet; those that the mapping contains are done, one that goes on begins behind it.
 */
static int
judge_line(const char *line, struct range **r, const struct range *end, bool writes)
{
	unsigned long long first, behind;
	char perms[5];

	if (sscanf(line, "%llx-%llx %4s", &first, &behind, perms) != 3)
		return 0;
	while (*r < end && (*r)->va < behind) {
		unsigned long long va = (*r)->va;

		if (first > va)
			return ipc_fail(-EFAULT, "nothing is mapped at %#llx: map the whole region",
					va);
		if (perms[0] != 'r' || (writes && perms[1] != 'w'))
			return ipc_fail(-EFAULT, "memory at %#llx cannot be %s", va,
					perms[0] != 'r' ? "read: map it with PROT_READ"
							: "written: map it with PROT_WRITE");
		(*r)->va = behind;
		if ((*r)->end > behind)
			return 0;
		(*r)++;
	}
	return 0;
}

static bool
is_stopped(const struct ipc_foreign *f)
{
	struct pollfd p = {.fd = f->stop_fd, .events = POLLIN};

	return f->stop_fd >= 0 && poll(&p, 1, 0) > 0;
}

static int
judge_lines(const struct ipc_foreign *f, FILE *maps, struct range *r, const struct range *end,
	    bool writes)
{
	uint32_t lines = 0;
	char *line = NULL;
	size_t room = 0;
	int err = 0;

	while (err == 0 && r < end && getline(&line, &room, maps) > 0) {
		err = judge_line(line, &r, end, writes);
		if (++lines % LINES_PER_LOOK == 0 && is_stopped(f))
			err = ipc_fail(-EINTR, "the daemon is being stopped");
	}
	if (err == 0 && r < end)
		err = ipc_fail(-EFAULT, "nothing is mapped at %#llx: map the whole region",
			       (unsigned long long)r->va);
	free(line);
	return err;
}

/* The list of mappings is read once, whatever the number of ranges. */
static int
judge_ranges(const struct ipc_foreign *f, struct range *r, uint32_t n, bool writes)
{
	int fd = keep(f->maps), err;
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (maps == NULL) {
		if (fd >= 0)
			close(fd);
		return ipc_fail(-ENOMEM, "the mappings of the client cannot be read: %s",
				strerror(errno));
	}
	rewind(maps);
	err = judge_lines(f, maps, r, r + ranges_tidy(r, n), writes);
	fclose(maps);
	return err;
}

int
ipc_foreign_judge(struct ipc_foreign *f, uint64_t va, uint64_t length, bool writes)
{
	struct range r = {va, va + length};

	return judge_ranges(f, &r, 1, writes);
}

/* ---- pages ---- */

static int
check_range(uint64_t va, uint64_t length)
{
	if (length != 0 && va < HCA_BUS_FOREIGN_BYTES && length <= HCA_BUS_FOREIGN_BYTES - va)
		return 0;
	return ipc_fail(-EINVAL, "%llu bytes at %#llx are no memory of a process",
			(unsigned long long)length, (unsigned long long)va);
}

static uint64_t
pages_of(uint64_t va, uint64_t length, uint32_t log)
{
	return ((va + (length - 1)) >> log) - (va >> log) + 1;
}

/* Only addresses: pages may extend beyond the mapping, the device stays within the region. */
static int
pages_of_range(struct hca_ctl_mr *mr, uint64_t **out)
{
	uint32_t log = HCA_MIN_PAGE_LOG;
	uint64_t first, *page;

	while (log < HCA_MAX_PAGE_LOG && pages_of(mr->va, mr->length, log) > PAGES_MAX)
		log++;
	first = mr->va >> log << log;
	mr->page_size = UINT64_C(1) << log;
	mr->npages = pages_of(mr->va, mr->length, log);
	page = malloc(mr->npages * sizeof(*page));
	if (page == NULL)
		return ipc_no_memory("a list of pages", mr->npages * sizeof(*page));
	for (uint64_t i = 0; i < mr->npages; i++)
		page[i] = HCA_BUS_FOREIGN | (first + (i << log));
	*out = page;
	return 0;
}

/* The pieces of a list of pages, at most RUNS_MAX: their number in *n. */
static int
pieces_of_list(const struct hca_ctl_mr *mr, const uint64_t *page, struct range *r, uint32_t *n)
{
	uint64_t size = mr->page_size, bytes;
	int err = 0;

	*n = 0;
	for (uint64_t i = 0; i < mr->npages && err == 0; i += bytes / size) {
		for (bytes = size;
		     i + bytes / size < mr->npages && page[i + bytes / size] == page[i] + bytes;)
			bytes += size;
		err = check_range(page[i], bytes);
		if (err == 0 && *n == RUNS_MAX)
			err = ipc_fail(-ENOMEM,
				       "a region of more than %u pieces of memory that is not "
				       "shared",
				       RUNS_MAX);
		if (err == 0)
			r[(*n)++] = (struct range){page[i], page[i] + bytes};
	}
	return err;
}

static int
pages_of_list(struct ipc_foreign *f, const struct hca_ctl_mr *mr, bool writes, uint64_t *page)
{
	uint64_t size = mr->page_size;
	struct range *r;
	uint32_t n;
	int err;

	if (size < 1u << HCA_MIN_PAGE_LOG || size > 1u << HCA_MAX_PAGE_LOG ||
	    (size & (size - 1)) != 0)
		return ipc_fail(-EINVAL,
				"pages of %llu bytes: must be a power of two, 2^%u to 2^%u",
				(unsigned long long)size, HCA_MIN_PAGE_LOG, HCA_MAX_PAGE_LOG);
	r = malloc(RUNS_MAX * sizeof(*r));
	if (r == NULL)
		return ipc_no_memory("a list of pages", RUNS_MAX * sizeof(*r));
	err = pieces_of_list(mr, page, r, &n);
	if (err == 0)
		err = judge_ranges(f, r, n, writes);
	free(r);
	for (uint64_t i = 0; i < mr->npages && err == 0; i++)
		page[i] |= HCA_BUS_FOREIGN;
	return err;
}

int
ipc_foreign_pages(struct ipc_foreign *f, struct hca_ctl_mr *mr, bool writes, uint64_t *list,
		  uint64_t **out)
{
	int err;

	if (mr->npages != 0) {
		*out = list;
		return pages_of_list(f, mr, writes, list);
	}
	err = check_range(mr->va, mr->length);
	if (err == 0)
		err = ipc_foreign_judge(f, mr->va, mr->length, writes);
	return err != 0 ? err : pages_of_range(mr, out);
}
