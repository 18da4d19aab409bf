/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory that the kernel has pinned for others: fixed buffers of io_uring */

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rows.h"

struct ring {
	int fd;
	struct io_uring_params params;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqe;
};

static void *
ring_map(const struct ring *r, size_t bytes, uint64_t offset)
{
	void *at = mmap(NULL, bytes, READ_WRITE, MAP_SHARED, r->fd, (off_t)offset);

	CHECK(at != MAP_FAILED);
	return at;
}

static void
ring_open(struct ring *r)
{
	const struct io_uring_params *p = &r->params;

	*r = (struct ring){.fd = -1};
	r->fd = (int)syscall(SYS_io_uring_setup, 4, &r->params);
	if (r->fd < 0)
		row_skip("io_uring is not offered here");
	r->sq = ring_map(r, p->sq_off.array + p->sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
	r->cq = ring_map(r, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe),
			 IORING_OFF_CQ_RING);
	r->sqe = ring_map(r, p->sq_entries * sizeof(*r->sqe), IORING_OFF_SQES);
}

static uint32_t *
ring_word(uint8_t *ring, uint32_t offset)
{
	return (uint32_t *)(void *)(ring + offset);
}

/* Submits the first entry, and returns the result of its completion. */
static int
ring_run(struct ring *r)
{
	const struct io_uring_params *p = &r->params;
	uint32_t *tail = ring_word(r->sq, p->sq_off.tail), *head = ring_word(r->cq, p->cq_off.head);
	uint32_t mask = *ring_word(r->cq, p->cq_off.ring_mask);
	const struct io_uring_cqe *cqe = (const void *)(r->cq + p->cq_off.cqes);
	int result;

	ring_word(r->sq, p->sq_off.array)[*tail & *ring_word(r->sq, p->sq_off.ring_mask)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	result = cqe[*head & mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static void
ring_pin(struct ring *r, uint8_t *at)
{
	struct iovec one = {at, BYTES};
	long err = syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, &one, 1);

	if (err != 0 && (errno == ENOMEM || errno == EPERM))
		row_skip("memory may not be pinned here");
	CHECK(err == 0);
}

static void
ring_unpin(struct ring *r)
{
	CHECK(syscall(SYS_io_uring_register, r->fd, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0);
}

/* The kernel reads the file into the buffer that it has pinned. */
static void
ring_read(struct ring *r, int file, uint8_t *at)
{
	r->sqe[0] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ_FIXED,
		.fd = file,
		.addr = (uintptr_t)at,
		.len = BYTES,
	};
	CHECK(ring_run(r) == BYTES);
}

static int
file_of(uint8_t number)
{
	int fd = memfd_create("rows", MFD_CLOEXEC);
	uint8_t *at;

	CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
	at = mmap(NULL, BYTES, READ_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	row_fill(at, BYTES, number);
	CHECK(munmap(at, BYTES) == 0);
	return fd;
}

/* As in storage programs: the kernel fills the buffer, and the device sends it. */
static void
fixed_buffers(struct row *row)
{
	uint8_t *at = row_pages(BYTES / PAGE, 1);
	struct ibv_mr *mr = row_reg(row, at, BYTES, ALL_ACCESS);
	int file = file_of(2);
	struct ring ring;

	ring_open(&ring);
	ring_pin(&ring, at);
	ring_read(&ring, file, at);
	row_check(at, BYTES, 2);
	row_send(row, at, BYTES, mr);
	row_exchange(row, at, BYTES, mr, 3);
	ring_read(&ring, file, at);
	row_check(at, BYTES, 2);
	ring_unpin(&ring);
	row_dereg(mr);
	row_check(at, BYTES, 2);
	CHECK(close(ring.fd) == 0 && close(file) == 0);
}

struct row rows_pinned[] = {
	{"fixed_buffers", fixed_buffers, 0},
	{0},
};
