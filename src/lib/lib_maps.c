/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib_error.h"
#include "lib_maps.h"
#include "lib_sys.h"

#define MAPS "/proc/self/maps"
#define TEXT_STEP (UINT64_C(1) << 20)
#define LINE_MIN 40u /* bytes of the shortest line of MAPS, and less */

/* The query of Linux 6.11, which older headers do not have */
struct maps_query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start, end;
	uint64_t vma_flags;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};

#define MAPS_QUERY _IOWR('f', 17, struct maps_query)
#define MAPS_READABLE 0x01u
#define MAPS_WRITABLE 0x02u
#define MAPS_EXECUTABLE 0x04u
#define MAPS_SHARED 0x08u
#define MAPS_COVERING_OR_NEXT 0x10u

/* The kernel has put the name of the program on the first thread's stack. */
static bool
maps_on_stack(const struct lib_mapping *m)
{
	uint64_t name = getauxval(AT_EXECFN);

	return name >= m->start && name < m->end;
}

static int
maps_ask(int fd, uint64_t va, struct lib_mapping *m)
{
	struct maps_query q = {.size = sizeof(q), .flags = MAPS_COVERING_OR_NEXT, .addr = va};

	if (lib_sys_ioctl(fd, MAPS_QUERY, &q) != 0)
		return -errno;
	*m = (struct lib_mapping){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.dev = makedev(q.dev_major, q.dev_minor),
		.inode = q.inode,
		.read = q.vma_flags & MAPS_READABLE,
		.write = q.vma_flags & MAPS_WRITABLE,
		.exec = q.vma_flags & MAPS_EXECUTABLE,
		.shared = q.vma_flags & MAPS_SHARED,
	};
	m->stack = maps_on_stack(m);
	return 0;
}

/* ---- all mappings, from the text ---- */

/* Parse a number and the character behind it, if the number is good so far. */
static bool
maps_number(const char **at, int base, char end, uint64_t *value)
{
	char *behind;

	*value = strtoull(*at, &behind, base);
	if (behind == *at || *behind != end)
		return false;
	*at = behind + 1;
	return true;
}

/* A line as "7f00-7f10 rw-p 00000000 00:01 42   name" */
static bool
maps_parse(const char *line, struct lib_mapping *m)
{
	const char *at = line, *perms;
	uint64_t dev_major, dev_minor;

	*m = (struct lib_mapping){0};
	if (!maps_number(&at, 16, '-', &m->start) || !maps_number(&at, 16, ' ', &m->end))
		return false;
	perms = at;
	if (strnlen(perms, 5) < 5 || perms[4] != ' ')
		return false;
	at += 5;
	if (!maps_number(&at, 16, ' ', &m->offset) || !maps_number(&at, 16, ':', &dev_major) ||
	    !maps_number(&at, 16, ' ', &dev_minor))
		return false;
	m->inode = strtoull(at, NULL, 10);
	m->dev = makedev((unsigned int)dev_major, (unsigned int)dev_minor);
	m->read = perms[0] == 'r';
	m->write = perms[1] == 'w';
	m->exec = perms[2] == 'x';
	m->shared = perms[3] == 's';
	m->stack = maps_on_stack(m);
	return true;
}

static void *
maps_room(size_t bytes)
{
	void *at = lib_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	return at != MAP_FAILED ? at : NULL;
}

static int
maps_no_room(void)
{
	return lib_fail(-ENOMEM,
			"no room for a list of mappings: out of memory, or the process has as "
			"many mappings as vm.max_map_count permits");
}

/* Read the whole text into *text, a mapping of *room bytes that ends with a zero byte. */
static int
maps_text(int fd, char **text, size_t *room)
{
	size_t have = 0;
	ssize_t n;

	*room = TEXT_STEP;
	*text = maps_room(*room);
	while (*text != NULL && (n = pread(fd, *text + have, *room - 1 - have, (off_t)have)) > 0) {
		char *grown;

		have += (size_t)n;
		if (*room - have > TEXT_STEP / 2)
			continue;
		grown = maps_room(*room * 2);
		if (grown != NULL)
			memcpy(grown, *text, have);
		lib_sys_munmap(*text, *room);
		*text = grown;
		*room *= 2;
	}
	return *text != NULL ? 0 : maps_no_room();
}

/*
 * One descriptor for the process, so that a registration needs no other, and fork() can find the
 * memory to copy when all are in use. Its numbers tell whether the program has closed it meanwhile.
 */
static struct {
	pthread_mutex_t lock;
	int fd;
	dev_t dev;
	ino_t inode;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static bool
maps_is_kept(void)
{
	struct stat st;

	return kept.fd >= 0 && fstat(kept.fd, &st) == 0 && st.st_dev == kept.dev &&
	       st.st_ino == kept.inode;
}

static int
maps_open_kept(void)
{
	struct stat st;

	if (maps_is_kept())
		return kept.fd;
	kept.fd = open(MAPS, O_RDONLY | O_CLOEXEC);
	if (kept.fd < 0)
		return lib_fail(-errno, MAPS ": %s", strerror(errno));
	if (fstat(kept.fd, &st) == 0) {
		kept.dev = st.st_dev;
		kept.inode = st.st_ino;
	}
	return kept.fd;
}

static int
maps_open(void)
{
	int fd;

	pthread_mutex_lock(&kept.lock);
	fd = maps_open_kept();
	pthread_mutex_unlock(&kept.lock);
	return fd;
}

/* It shows the mappings of the parent. */
void
lib_maps_forget(void)
{
	pthread_mutex_init(&kept.lock, NULL);
	if (maps_is_kept())
		close(kept.fd);
	kept.fd = -1;
}

int
lib_maps_list(struct lib_mapping **mappings, uint32_t *count, size_t *bytes)
{
	int fd = maps_open(), err;
	size_t room;
	char *text;

	if (fd < 0)
		return fd;
	err = maps_text(fd, &text, &room);
	if (err != 0)
		return err;
	*bytes = (strlen(text) / LINE_MIN + 1) * sizeof(**mappings);
	*mappings = maps_room(*bytes);
	*count = 0;
	for (char *line = text; *mappings != NULL && *line != '\0';) {
		char *end = strchr(line, '\n');

		if (end != NULL)
			*end = '\0';
		*count += maps_parse(line, &(*mappings)[*count]);
		line = end != NULL ? end + 1 : line + strlen(line);
	}
	lib_sys_munmap(text, room);
	return *mappings != NULL ? 0 : maps_no_room();
}

void
lib_maps_list_free(struct lib_mapping *mappings, size_t bytes)
{
	lib_sys_munmap(mappings, bytes);
}

/* ---- views ---- */

int
lib_maps_begin(struct lib_maps *maps)
{
	struct lib_mapping m;
	int fd = maps_open(), err;

	*maps = (struct lib_maps){.fd = fd};
	if (fd < 0)
		return fd;
	err = maps_ask(fd, 0, &m);
	if (err == 0 || err == -ENOENT)
		return 0;
	maps->fd = -1;
	return lib_maps_list(&maps->list, &maps->count, &maps->bytes);
}

void
lib_maps_end(struct lib_maps *maps)
{
	if (maps->list != NULL)
		lib_maps_list_free(maps->list, maps->bytes);
	*maps = (struct lib_maps){.fd = -1};
}

static int
maps_search(const struct lib_maps *maps, uint64_t va, struct lib_mapping *m)
{
	uint32_t low = 0, high = maps->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (maps->list[mid].end <= va)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == maps->count)
		return -ENOENT;
	*m = maps->list[low];
	return 0;
}

int
lib_maps_from(const struct lib_maps *maps, uint64_t va, struct lib_mapping *mapping)
{
	return maps->fd >= 0 ? maps_ask(maps->fd, va, mapping) : maps_search(maps, va, mapping);
}

int
lib_maps_next(uint64_t va, struct lib_mapping *mapping)
{
	struct lib_maps maps;
	int err = lib_maps_begin(&maps);

	if (err != 0)
		return err;
	err = lib_maps_from(&maps, va, mapping);
	lib_maps_end(&maps);
	return err;
}

int
lib_maps_find(uint64_t va, struct lib_mapping *mapping)
{
	int err = lib_maps_next(va, mapping);

	if (err == 0 && va >= mapping->start)
		return 0;
	return err != 0 && err != -ENOENT
		       ? err
		       : lib_fail(-EFAULT, LIB_NOT_MAPPED, (unsigned long long)va);
}

int
lib_maps_protection(const struct lib_mapping *mapping)
{
	return (mapping->read ? PROT_READ : 0) | (mapping->write ? PROT_WRITE : 0) |
	       (mapping->exec ? PROT_EXEC : 0);
}

/* ---- protection keys ---- */

/* The first key that the kernel gives away is 1: the process, or execute-only memory, has none. */
static bool
maps_may_have_keys(void)
{
#ifdef __x86_64__
	unsigned int a, b, c = 0, d;
	long key;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (c & bit_OSPKE) == 0)
		return false;
	key = syscall(SYS_pkey_alloc, 0, 0);
	if (key > 0)
		syscall(SYS_pkey_free, key);
	return key != 1;
#else
	return true;
#endif
}

/* The kernel shows keys in the long form of its list alone. */
static bool
maps_search_key(FILE *smaps, uint64_t va)
{
	bool inside = false;
	char *line = NULL;
	size_t room = 0;
	int key = 0;

	while (key == 0 && getline(&line, &room, smaps) > 0) {
		struct lib_mapping m;

		if (maps_parse(line, &m))
			inside = va >= m.start && va < m.end;
		else if (inside && sscanf(line, "ProtectionKey: %d", &key) == 1)
			break;
	}
	free(line);
	return key != 0;
}

bool
lib_maps_has_key(uint64_t va)
{
	FILE *smaps;
	bool has;

	if (!maps_may_have_keys())
		return false;
	smaps = fopen("/proc/self/smaps", "re");
	if (smaps == NULL)
		return true;
	has = maps_search_key(smaps, va);
	fclose(smaps);
	return has;
}

/* ---- files ---- */

static bool
maps_is_file(int fd, const struct lib_mapping *mapping, int mode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == mapping->dev && st.st_ino == mapping->inode &&
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == mode;
}

static int
maps_open_file(const struct lib_mapping *mapping, int mode)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd = -1;

	while (dir != NULL && fd < 0 && (entry = readdir(dir)) != NULL) {
		int n = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || !maps_is_file(n, mapping, mode))
			continue;
		fd = fcntl(n, F_DUPFD_CLOEXEC, 0);
		/* another thread may have closed it, and another file may have its number */
		if (fd >= 0 && !maps_is_file(fd, mapping, mode)) {
			close(fd);
			fd = -1;
		}
	}
	if (dir != NULL)
		closedir(dir);
	return fd;
}

int
lib_maps_file(const struct lib_mapping *mapping, bool write)
{
	char path[80];
	int fd = maps_open_file(mapping, O_RDWR);

	/* for reading alone one that can write is better: a daemon of another user also takes it */
	if (fd < 0 && !write)
		fd = maps_open_file(mapping, O_RDONLY);
	if (fd >= 0)
		return fd;
	/* the kernel's own link to the file requires privileges, and the rights of the mapping */
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return lib_fail(-EOPNOTSUPP,
			"the shared mapping at %#llx has no file that is open here: name it with "
			"softhca_attach()",
			(unsigned long long)mapping->start);
}
