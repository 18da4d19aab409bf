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
	struct memif_conn *c = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*c));

	if (c == NULL)
		return NULL;
	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < MEMIF_SIDES; i++)
		for (uint32_t k = 0; k < RINGS_MAX; k++)
			c->lane[i][k].fd = -1;
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
		for (uint32_t k = 0; k < RINGS_MAX; k++)
			if (c->lane[i][k].fd >= 0)
				close(c->lane[i][k].fd);
	free(c);
}

/* ---- as client ---- */

static void
build_lane(struct memif_conn *c, struct memif_lane *l, uint8_t *ring, uint32_t buffers)
{
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
	uint32_t slots = 1u << log2_ring, rings = c->rings[MEMIF_TX] + c->rings[MEMIF_RX], n = 0;
	uint32_t ring = RTE_ALIGN_CEIL(sizeof(struct memif_ring) + slots * 16u, 64u);
	uint32_t first = RTE_ALIGN_CEIL(rings * ring, 4096u);
	uint64_t size = first + (uint64_t)rings * slots * buffer;
	int err = size > UINT32_MAX ? -E2BIG : map_own(c, size, fd);

	*why = "no shared memory for rings and buffers";
	if (err != 0)
		return err;
	c->client = true;
	c->buffer = buffer;
	for (uint32_t side = MEMIF_SIDES; side-- != 0;) /* the client's sending rings first */
		for (uint32_t i = 0; i < c->rings[side]; i++, n++) {
			struct memif_lane *l = &c->lane[side][i];

			l->size = slots;
			l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
			if (l->fd < 0)
				return -errno;
			build_lane(c, l, c->region[0].base + n * ring, first + n * slots * buffer);
		}
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
memif_conn_add_ring(struct memif_conn *c, uint16_t queues, const struct memif_add_ring *r, int fd,
		    const char **why)
{
	bool to_server = (r->flags & MEMIF_RING_TO_SERVER) != 0;
	enum memif_side side = to_server ? MEMIF_RX : MEMIF_TX;
	struct memif_lane *l = &c->lane[side][r->index % RINGS_MAX];
	uint64_t bytes;

	*why = "ring index: there is no ring of this number, or it has come already";
	if (r->index >= memif_rings_max(queues) || l->ring != NULL)
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
	c->rings[side] = RTE_MAX(c->rings[side], (uint16_t)(r->index + 1));
	return 0;
}

static bool
are_disjoint(const struct memif_lane *a, const struct memif_lane *b)
{
	uintptr_t from = (uintptr_t)a->ring, to = from + sizeof(*a->ring) + a->size * 16u;
	uintptr_t other = (uintptr_t)b->ring, end = other + sizeof(*b->ring) + b->size * 16u;

	return to <= other || end <= from;
}

/* All rings of both ways exist and have their own memory. */
static bool
are_complete(const struct memif_conn *c)
{
	for (uint32_t i = 0; i < MEMIF_SIDES * RINGS_MAX; i++) {
		const struct memif_lane *a = &c->lane[i / RINGS_MAX][i % RINGS_MAX];

		if (i % RINGS_MAX >= c->rings[i / RINGS_MAX])
			continue;
		if (a->ring == NULL)
			return false;
		for (uint32_t k = 0; k < i; k++) {
			const struct memif_lane *b = &c->lane[k / RINGS_MAX][k % RINGS_MAX];

			if (b->ring != NULL && !are_disjoint(a, b))
				return false;
		}
	}
	return c->rings[MEMIF_RX] != 0 && c->rings[MEMIF_TX] != 0;
}

/* Gives the rings to the queues. */
static void
assign(struct memif_conn *c, uint16_t queues, uint16_t peer)
{
	uint16_t rx = c->rings[MEMIF_RX];

	c->steered = peer != 0 && rx == queues * peer && c->rings[MEMIF_TX] == rx;
	c->peer_mask = c->steered ? peer - 1 : 0;
	c->shared = !c->steered && c->rings[MEMIF_TX] < queues;
	for (uint16_t q = 0; q < queues; q++) {
		uint16_t n = rx > q ? (rx - q + queues - 1) / queues : 0;

		c->from[q] = c->steered ? (struct memif_rings){q * peer, 1, peer}
					: (struct memif_rings){q, queues, n};
	}
}

static int
ready_lane(struct memif_conn *c, struct memif_lane *l)
{
	if (l->ring->cookie != MEMIF_COOKIE)
		return -EINVAL;
	__atomic_store_n(&l->ring->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->ring->tail, 0, __ATOMIC_RELAXED);
	l->next = l->given = 0;
	l->kicked = false;
	return 0;
}

static void
ready_to_receive(struct memif_conn *c, struct memif_lane *l)
{
	l->unmasked = true;
	__atomic_store_n(&l->ring->flags, 0, __ATOMIC_RELAXED);
	if (c->client) { /* the server may fill all buffers */
		l->given = (uint16_t)l->size;
		__atomic_store_n(&l->ring->head, (uint16_t)l->size, __ATOMIC_RELEASE);
	}
}

int
memif_conn_ready(struct memif_conn *c, uint16_t queues, uint16_t peer, const char **why)
{
	*why = "rings are needed both ways, without gaps and in separate memory";
	if (!are_complete(c))
		return -EINVAL;
	*why = "a ring begins with the cookie";
	for (uint32_t side = 0; side < MEMIF_SIDES; side++)
		for (uint32_t i = 0; i < c->rings[side]; i++)
			if (ready_lane(c, &c->lane[side][i]) != 0)
				return -EINVAL;
	for (uint32_t i = 0; i < c->rings[MEMIF_RX]; i++)
		ready_to_receive(c, &c->lane[MEMIF_RX][i]);
	assign(c, queues, peer);
	return 0;
}
