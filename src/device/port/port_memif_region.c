/* SPDX-License-Identifier: BSD-3-Clause */

/* Shared memory of a connection: created by the client, checked and mapped by the server. */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "port/port_memif_impl.h"

#define MAPPED_MAX (1ull << 40) /* limit of address space for a peer's regions */

struct memif_conn *
memif_conn_new(void)
{
	struct memif_conn *c = calloc(1, sizeof(*c));

	if (c != NULL)
		c->lane[MEMIF_RX].fd = c->lane[MEMIF_TX].fd = -1;
	return c;
}

void
memif_conn_free(struct memif_conn *c)
{
	if (c == NULL)
		return;
	memif_guard_remove(c);
	for (uint32_t i = 0; i < REGIONS_MAX; i++)
		if (c->region[i].base != NULL)
			munmap(c->region[i].base, c->region[i].size);
	for (uint32_t i = 0; i < MEMIF_SIDES; i++)
		if (c->lane[i].fd >= 0)
			close(c->lane[i].fd);
	free(c);
}

/* ---- as client ---- */

static void
build_lane(struct memif_conn *c, enum memif_side side, uint8_t *ring, uint32_t buffers)
{
	struct memif_lane *l = &c->lane[side];

	l->ring = (struct memif_ring *)(void *)ring;
	l->buffers = c->region[0].base + buffers;
	l->ring->cookie = MEMIF_COOKIE;
	for (uint32_t i = 0; i < l->size; i++)
		l->ring->desc[i] = (struct memif_desc){
			.length = c->buffer,
			.offset = buffers + i * c->buffer,
		};
}

static int
map_own(struct memif_conn *c, uint64_t size, int *fd)
{
	void *base;

	*fd = memfd_create("softhca-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, (off_t)size) != 0 ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return -errno;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, *fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	c->region[0] = (struct memif_region){.base = base, .size = size};
	c->num_regions = 1;
	return 0;
}

int
memif_conn_build(struct memif_conn *c, uint8_t log2_ring, uint16_t buffer, int *fd,
		 const char **why)
{
	uint32_t slots = 1u << log2_ring;
	uint32_t ring = RTE_ALIGN_CEIL(sizeof(struct memif_ring) + slots * 16u, 64u);
	uint32_t first = RTE_ALIGN_CEIL(2 * ring, 4096u);
	uint64_t size = first + 2ull * slots * buffer;
	int err = size > UINT32_MAX ? -E2BIG : map_own(c, size, fd);

	*why = "no shared memory for rings and buffers";
	if (err != 0)
		return err;
	c->client = true;
	c->buffer = buffer;
	for (uint32_t i = 0; i < MEMIF_SIDES; i++) {
		c->lane[i].size = slots;
		c->lane[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (c->lane[i].fd < 0)
			return -errno;
	}
	build_lane(c, MEMIF_TX, c->region[0].base, first);
	build_lane(c, MEMIF_RX, c->region[0].base + ring, first + slots * buffer);
	return 0;
}

/* ---- as server ---- */

/*
 * Accepts only memory files (a file system of the peer could block accesses) of at least this size.
 * A sealed file cannot shrink; port_memif_guard.c guards others.
 */
static const char *
judge_memory(int fd, uint64_t size, bool *sealed)
{
	struct statfs fs;
	struct stat st;
	int seals;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) != 0 ||
	    (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return "a region comes as a memfd or a file of hugetlbfs";
	if (size == 0 || size > (uint64_t)st.st_size)
		return "a region is as long as its file at most";
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	seals = fcntl(fd, F_GET_SEALS);
	*sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fs.f_type == TMPFS_MAGIC;
	/* the file may have shrunk before it was sealed */
	if (fstat(fd, &st) != 0 || size > (uint64_t)st.st_size)
		return "a region shrinks";
	return NULL;
}

int
memif_conn_add_region(struct port_memif *p, struct memif_conn *c, uint16_t index, uint64_t size,
		      int fd, const char **why)
{
	bool sealed = false;
	void *base;

	*why = "region index";
	if (index >= REGIONS_MAX || c->region[index].base != NULL)
		return -EINVAL;
	*why = "regions take too much address space";
	if (size > MAPPED_MAX - c->mapped)
		return -ENOMEM;
	*why = judge_memory(fd, size, &sealed);
	if (*why != NULL)
		return -EINVAL;
	*why = "a region cannot be mapped";
	if (!sealed && memif_guard_add(p, c) != 0)
		return -ENOSPC;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	c->mapped += size;
	c->region[index].base = base;
	__atomic_store_n(&c->region[index].size, size, __ATOMIC_RELEASE);
	c->num_regions++;
	return 0;
}

/* All eventfds share one inode; a write to another kind of file could block. */
static bool
is_eventfd(int fd)
{
	char path[32], text[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return strcmp(text, "anon_inode:[eventfd]") == 0;
}

int
memif_conn_add_ring(struct memif_conn *c, const struct memif_add_ring *r, int fd, const char **why)
{
	bool to_server = (r->flags & MEMIF_RING_TO_SERVER) != 0;
	struct memif_lane *l = &c->lane[to_server ? MEMIF_RX : MEMIF_TX];
	uint64_t bytes;

	*why = "ring index: there is one ring each way";
	if (r->index != 0 || l->ring != NULL)
		return -EINVAL;
	*why = "ring size";
	if (r->log2_ring_size > RING_LOG_MAX)
		return -EINVAL;
	*why = "a ring lies in one of the regions, aligned to 8 bytes";
	bytes = sizeof(struct memif_ring) + (16ull << r->log2_ring_size);
	if (r->offset % 8 != 0 || memif_buffer(c, r->region, r->offset, (uint32_t)bytes) == NULL)
		return -EINVAL;
	*why = "the interrupt of a ring is an eventfd";
	if (fd < 0 || !is_eventfd(fd) || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) != 0)
		return -EINVAL;
	l->ring =
		(struct memif_ring *)(void *)memif_buffer(c, r->region, r->offset, (uint32_t)bytes);
	l->size = 1u << r->log2_ring_size;
	l->fd = fd;
	return 0;
}

static bool
are_disjoint(const struct memif_lane *a, const struct memif_lane *b)
{
	uintptr_t from = (uintptr_t)a->ring, to = from + sizeof(*a->ring) + a->size * 16u;
	uintptr_t other = (uintptr_t)b->ring, end = other + sizeof(*b->ring) + b->size * 16u;

	return to <= other || end <= from;
}

int
memif_conn_ready(struct memif_conn *c, const char **why)
{
	const struct memif_lane *rx = &c->lane[MEMIF_RX], *tx = &c->lane[MEMIF_TX];

	*why = "two rings are needed, one each way";
	if (rx->ring == NULL || tx->ring == NULL || !are_disjoint(rx, tx))
		return -EINVAL;
	for (uint32_t i = 0; i < MEMIF_SIDES; i++) {
		struct memif_lane *l = &c->lane[i];

		*why = "a ring begins with the cookie";
		if (l->ring->cookie != MEMIF_COOKIE)
			return -EINVAL;
		__atomic_store_n(&l->ring->head, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&l->ring->tail, 0, __ATOMIC_RELAXED);
		l->next = l->given = 0;
		l->kicked = false;
	}
	c->lane[MEMIF_RX].unmasked = true;
	__atomic_store_n(&rx->ring->flags, 0, __ATOMIC_RELAXED);
	if (c->client) { /* the server may fill all buffers */
		c->lane[MEMIF_RX].given = (uint16_t)rx->size;
		__atomic_store_n(&rx->ring->head, (uint16_t)rx->size, __ATOMIC_RELEASE);
	}
	return 0;
}
