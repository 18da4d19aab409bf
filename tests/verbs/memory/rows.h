/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_VERBS_MEMORY_ROWS_H
#define TESTS_VERBS_MEMORY_ROWS_H

/*
 * Single cases of programs' memory: each is a row with a name, and runs in a process of its own.
 */

#include <sys/mman.h>

#include "../all.h"

#define PAGE ((size_t)4096)
#define READ_WRITE (PROT_READ | PROT_WRITE)
#define SKIPPED 77 /* exit status */

struct row {
	const char *name;
	void (*run)(struct row *row);
	int way; /* of rows that share a function */

	struct all all;
	struct ibv_qp *qp[2];
	uint8_t *mirror; /* shared memory in a region: MIRROR bytes */
	struct ibv_mr *mirror_mr;
	bool in_place; /* the device reaches memory at its addresses */
};

#define MIRROR ((size_t)1 << 20)

/* the last of each has no name */
extern struct row rows_private[], rows_kinds[], rows_process[], rows_threads[], rows_pinned[];

/* A row that cannot run here ends the process. */
_Noreturn void row_skip(const char *reason);

/* Private pages that hold a byte each, other ones for each number */
uint8_t *row_pages(size_t pages, uint8_t number);
void row_fill(uint8_t *at, size_t bytes, uint8_t number);
void row_check(const uint8_t *at, size_t bytes, uint8_t number);
void row_check_zeros(const uint8_t *at, size_t bytes);

struct ibv_mr *row_reg(struct row *row, void *at, size_t bytes, int access);
void row_dereg(struct ibv_mr *mr);
/* A registration with this access fails with EFAULT. */
void row_refused(struct row *row, void *at, size_t bytes, int access);

/*
 * SEND of the bytes at `at` to the mirror, which must then hold the same bytes as the program
 * reads.
 */
void row_send(struct row *row, const uint8_t *at, size_t bytes, const struct ibv_mr *mr);
/* WRITE of new bytes from the mirror, and READ of them; the region has remote rights. */
void row_exchange(struct row *row, uint8_t *at, size_t bytes, const struct ibv_mr *mr,
		  uint8_t number);
/* READ to the mirror: whether it succeeded. After an error the QPs are new. */
bool row_read(struct row *row, const uint8_t *at, size_t bytes, const struct ibv_mr *mr);

/* Reads the kernel's entry of the mapping of a page: "rw-p". */
void row_perms(const void *at, char perms[5]);

#endif
