/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_VERBS_ALL_H
#define TESTS_VERBS_ALL_H

/*
 * A program of plain verbs that uses every function of the header of verbs, on one device with
 * connections to itself. It uses no name of softhca.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, \
				#what, errno); \
			exit(1); \
		} \
	} while (0)

/* The call returns NULL with this errno. */
#define CHECK_NULL(call, err) \
	do { \
		errno = 0; \
		CHECK((call) == NULL); \
		CHECK(errno == (err)); \
	} while (0)

#define PORT 1
#define GID_INDEX 1
#define BYTES 65536
#define ALL_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

struct all {
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *memory; /* of mr, BYTES */
	struct ibv_cq *cq;
	union ibv_gid gid;
};

void all_open(struct all *all);
/* The device with this place in the list; -1: the last */
void all_open_at(struct all *all, int index);
void all_close(struct all *all);

/* A QP of any type but XRC; ops: send_ops_flags, 0: without. UD: in RTS, others in INIT. */
struct ibv_qp *all_qp(struct all *all, enum ibv_qp_type type, struct ibv_cq *cq,
		      struct ibv_srq *srq, uint64_t ops);
void all_to_init(struct ibv_qp *qp);
/* Connect two QPs in INIT, and move them to RTS. */
void all_connect(struct all *all, struct ibv_qp *a, struct ibv_qp *b);
struct ibv_ah *all_ah(struct all *all);

/* The next completion; it must be good. */
struct ibv_wc all_wc(struct ibv_cq *cq);
struct ibv_wc all_any_wc(struct ibv_cq *cq); /* also of a failure */
void all_recv(struct all *all, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t bytes);

/* The subjects */
void all_objects(struct all *all);
void all_absent(struct all *all);
void all_pieces(struct all *all);
void all_requests(struct all *all);
void all_completions(struct all *all);
void all_xrc(struct all *all);
void all_wrong(struct all *all);
void all_errors(struct all *all);
void all_names(void);

#endif
