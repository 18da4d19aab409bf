/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CM_PAIR_H
#define TESTS_CM_PAIR_H

/*
 * Two HCAs in this process, and programs at both that connect by address: one thread, which waits
 * for events of either side. An error fails the test.
 */

#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <softhca/cm.h>
#include <softhca/embed.h>

#define SLOT 256u
#define CM_PORT 7471

/* One end of a connection, with a QP that has one receive and one request */
struct end {
	struct side *side;
	struct softhca_cm_id *id;
	struct softhca_qp *qp;
	uint8_t *mem; /* a slot of receives, then one of sends */
	struct softhca_mr *mr;
};

struct side {
	struct softhca_context *ctx;
	struct softhca_cm_channel *channel; /* does not block */
	struct softhca_pd *pd;
	struct softhca_cq *cq;
};

extern struct softhca_embed *embed;
extern struct side side[2]; /* 0: the client's, 1: the server's */

/* Both sides on HCA 0 and 1, or both on HCA 0. */
void pair_open(enum softhca_executor executor, bool one_hca);
/* Nothing is left in the HCAs. */
void pair_close(void);

/* An address of the side's HCA (GID index) with a port */
struct sockaddr_storage address_of(unsigned int which, uint32_t gid_index, uint16_t port);

/* The next event of a side; it must be of this type. */
void await(unsigned int which, uint32_t type, struct softhca_cm_event *event);
/* No event of either side waits. */
void nothing_waits(void);

struct softhca_cm_id *new_id(unsigned int which, enum softhca_cm_space space);
struct softhca_cm_id *listen_at(uint32_t gid_index, enum softhca_cm_space space);
/* A new id of the client, up to ROUTE_RESOLVED */
struct softhca_cm_id *resolve_to(uint32_t gid_index, enum softhca_cm_space space, uint16_t port);
void end_open(struct end *e, unsigned int which, struct softhca_cm_id *id);
/* The id, then its QP */
void end_close(struct end *e);

/* Begin a connection: the client's end, and the id of the request */
void begin(struct end *client, uint32_t gid_index, const char *words, struct softhca_cm_event *req);
/* All of it: both ends are established. */
void connect_ends(struct end *client, struct end *server, uint32_t gid_index);
/* The text goes from one end to the other. */
void carry(struct end *from, struct end *to, const char *text);

#endif
