/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * verbs_memory_rows                     names of all rows
 * verbs_memory_rows [--in-place] NAME   runs one; status 77: it cannot run here
 */

#include <fcntl.h>
#include <unistd.h>

#include "rows.h"

static struct row *const tables[] = {rows_private, rows_kinds, rows_process, rows_threads,
				     rows_pinned};

void
row_skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	exit(SKIPPED);
}

/* ---- contents ---- */

static uint8_t
row_byte(size_t i, uint8_t number)
{
	return (uint8_t)(number * 37 + i / 7 + i * 3 + 1);
}

void
row_fill(uint8_t *at, size_t bytes, uint8_t number)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = row_byte(i, number);
}

static void
row_wrong(const uint8_t *at, size_t wrong, size_t bytes)
{
	if (wrong == 0)
		return;
	fprintf(stderr, "%zu of %zu bytes at %p are wrong\n", wrong, bytes, (const void *)at);
	exit(1);
}

void
row_check(const uint8_t *at, size_t bytes, uint8_t number)
{
	size_t wrong = 0;

	for (size_t i = 0; i < bytes; i++)
		wrong += at[i] != row_byte(i, number);
	row_wrong(at, wrong, bytes);
}

void
row_check_zeros(const uint8_t *at, size_t bytes)
{
	size_t wrong = 0;

	for (size_t i = 0; i < bytes; i++)
		wrong += at[i] != 0;
	row_wrong(at, wrong, bytes);
}

uint8_t *
row_pages(size_t pages, uint8_t number)
{
	uint8_t *at = mmap(NULL, pages * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	row_fill(at, pages * PAGE, number);
	return at;
}

/* ---- regions ---- */

struct ibv_mr *
row_reg(struct row *row, void *at, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(row->all.pd, at, bytes, access);

	CHECK(mr != NULL);
	return mr;
}

void
row_dereg(struct ibv_mr *mr)
{
	CHECK(ibv_dereg_mr(mr) == 0);
}

void
row_refused(struct row *row, void *at, size_t bytes, int access)
{
	fprintf(stderr, "access %#x\n", (unsigned int)access);
	CHECK_NULL(ibv_reg_mr(row->all.pd, at, bytes, access), EFAULT);
}

/* ---- transfers ---- */

static void
row_connect(struct row *row)
{
	for (int i = 0; i < 2; i++)
		row->qp[i] = all_qp(&row->all, IBV_QPT_RC, row->all.cq, NULL, 0);
	all_connect(&row->all, row->qp[0], row->qp[1]);
}

static enum ibv_wc_status
row_wait(struct row *row)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(row->all.cq, 1, &wc)) == 0)
		;
	CHECK(n == 1);
	return wc.status;
}

static void
row_post(struct row *row, enum ibv_wr_opcode opcode, const struct ibv_sge *sge, uint64_t remote,
	 uint32_t rkey)
{
	struct ibv_sge one = *sge;
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &one,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {remote, rkey},
				 };

	CHECK(ibv_post_send(row->qp[0], &wr, &bad) == 0);
}

static struct ibv_sge
row_mirror(const struct row *row, size_t bytes)
{
	return (struct ibv_sge){(uintptr_t)row->mirror, (uint32_t)bytes, row->mirror_mr->lkey};
}

void
row_send(struct row *row, const uint8_t *at, size_t bytes, const struct ibv_mr *mr)
{
	struct ibv_sge from = {(uintptr_t)at, (uint32_t)bytes, mr->lkey};
	struct ibv_sge to = row_mirror(row, bytes);
	struct ibv_recv_wr *bad, wr = {.sg_list = &to, .num_sge = 1};

	memset(row->mirror, 0xee, bytes);
	CHECK(ibv_post_recv(row->qp[1], &wr, &bad) == 0);
	row_post(row, IBV_WR_SEND, &from, 0, 0);
	CHECK(row_wait(row) == IBV_WC_SUCCESS && row_wait(row) == IBV_WC_SUCCESS);
	CHECK(memcmp(row->mirror, at, bytes) == 0);
}

bool
row_read(struct row *row, const uint8_t *at, size_t bytes, const struct ibv_mr *mr)
{
	struct ibv_sge to = row_mirror(row, bytes);

	row_post(row, IBV_WR_RDMA_READ, &to, (uintptr_t)at, mr->rkey);
	if (row_wait(row) == IBV_WC_SUCCESS)
		return true;
	CHECK(ibv_destroy_qp(row->qp[0]) == 0 && ibv_destroy_qp(row->qp[1]) == 0);
	row_connect(row);
	return false;
}

void
row_exchange(struct row *row, uint8_t *at, size_t bytes, const struct ibv_mr *mr, uint8_t number)
{
	struct ibv_sge from = row_mirror(row, bytes);

	row_fill(row->mirror, bytes, number);
	row_post(row, IBV_WR_RDMA_WRITE, &from, (uintptr_t)at, mr->rkey);
	CHECK(row_wait(row) == IBV_WC_SUCCESS);
	row_check(at, bytes, number);
	row_fill(at, bytes, number + 1);
	CHECK(row_read(row, at, bytes, mr));
	row_check(row->mirror, bytes, number + 1);
}

/* ---- the kernel's view ---- */

void
row_perms(const void *at, char perms[5])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	char line[4352], found[5];

	CHECK(maps != NULL);
	strcpy(perms, "----");
	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%llx-%llx %4s", &from, &to, found) == 3 &&
		    from <= (uintptr_t)at && (uintptr_t)at < to)
			memcpy(perms, found, sizeof(found));
	fclose(maps);
}

/* ---- rows ---- */

static struct row *
row_find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (struct row *row = tables[i]; row->name != NULL; row++)
			if (strcmp(row->name, name) == 0)
				return row;
	return NULL;
}

static void
row_open(struct row *row)
{
	all_open(&row->all);
	row_connect(row);
	row->mirror = mmap(NULL, MIRROR, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(row->mirror != MAP_FAILED);
	row->mirror_mr = row_reg(row, row->mirror, MIRROR, ALL_ACCESS);
}

static void
row_close(struct row *row)
{
	CHECK(ibv_destroy_qp(row->qp[0]) == 0 && ibv_destroy_qp(row->qp[1]) == 0);
	row_dereg(row->mirror_mr);
	all_close(&row->all);
}

static int
list(void)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct row *row = tables[i]; row->name != NULL; row++)
			puts(row->name);
	return 0;
}

int
main(int argc, char **argv)
{
	bool in_place = argc > 2 && strcmp(argv[1], "--in-place") == 0;
	struct row *row;

	if (argc < 2)
		return list();
	row = row_find(argv[argc - 1]);
	CHECK(row != NULL);
	row->in_place = in_place;
	row_open(row);
	row->run(row);
	row_close(row);
	return 0;
}
