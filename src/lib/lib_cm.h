/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_CM_H
#define LIB_CM_H

/*
 * Connection management in the library: the channels and ids of a context. The ids themselves, with
 * ports and connections, are in the daemon; an event names an id by its number.
 *
 * The lock is held while an event is fetched and its id is looked up: the id of a CONNECT_REQUEST
 * is in the table before another thread can fetch its next event. Order: this lock, then the lock
 * of the context.
 */

#include <softhca/cm.h>

#include "lib_types.h"

struct lib_cm_id {
	struct softhca_cm_id pub;
	uint32_t number;
	struct lib_cm_id *next;		  /* of its bucket */
	struct lib_cm_id *before, *after; /* in its channel */
	bool told;			  /* DEVICE_REMOVAL was delivered */
};

struct lib_cm_channel {
	struct softhca_cm_channel pub;
	uint32_t handle;
	uint32_t readers; /* threads that wait; under the context's lock */
	struct lib_cm_id *ids;
	bool leaving; /* being destroyed: requests of peers are refused */
};

struct lib_cm {
	pthread_mutex_t lock; /* all members, and those of channels and ids */
	struct lib_cm_id **buckets;
	uint32_t log_buckets, count;
	bool dead; /* a DEVICE_REMOVAL was delivered */
};

static inline struct lib_cm_id *
lib_cm_id(const struct softhca_cm_id *pub)
{
	return (struct lib_cm_id *)(uintptr_t)pub;
}

static inline struct lib_context *
lib_cm_ctx(const struct softhca_cm_id *pub)
{
	return lib_ctx(pub->channel->context);
}

/* lib_cm.c; the lock is held. NULL: the program has destroyed it. */
struct lib_cm_id *lib_cm_find(const struct lib_cm *cm, uint32_t number);
/* The object of an id of that number. NULL with the reason set: no memory. */
struct lib_cm_id *lib_cm_enter(struct lib_context *ctx, struct lib_cm_channel *channel,
			       const struct softhca_cm_id *pub);
void lib_cm_link(struct lib_cm_channel *channel, struct lib_cm_id *id);
void lib_cm_unlink(struct lib_cm_id *id);

/* lib_cm_addr.c: 0 or -EAFNOSUPPORT, -EOPNOTSUPP; NULL: no address. service: of family IB */
int lib_cm_from_sockaddr(const struct lib_context *ctx, const struct sockaddr *from,
			 struct hca_ctl_cm_addr *to, struct hca_ctl_cm_service *service);
void lib_cm_to_sockaddr(const struct hca_ctl_cm_addr *from,
			const struct hca_ctl_cm_service *service, struct sockaddr_storage *to);

/* Before the control channel is closed: no thread fetches an event any more. */
void lib_cm_close(struct lib_context *ctx);
/* Called in the child of fork(), and when the context is freed. */
void lib_cm_reset_lock(struct lib_context *ctx);
void lib_cm_free(struct lib_context *ctx);

#endif
