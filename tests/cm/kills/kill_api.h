/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CM_KILLS_KILL_API_H
#define TESTS_CM_KILLS_KILL_API_H

/*
 * The library under kill_play.c, which connects by address: kill_rdmacm.c is on librdmacm and
 * libibverbs, kill_softhca.c on softhca/cm.h. Calls return 0 or a negative errno.
 */

#include <stdbool.h>
#include <stdint.h>

#include <sys/socket.h>

#define KILL_BYTES 64u
#define KILL_RECEIVES 4u
#define KILL_ACK_TIMEOUT 16u /* 268 ms: of QPs, and of TIMEWAIT */
#define KILL_RETRIES 5u
#define KILL_TIMEOUT_MS 20000
#define KILL_CQES 4096u

/* Numbers of enum rdma_cm_event_type and enum softhca_cm_event_type */
enum kill_event_type {
	KILL_ADDR_RESOLVED = 0,
	KILL_ROUTE_RESOLVED = 2,
	KILL_CONNECT_REQUEST = 4,
	KILL_CONNECT_RESPONSE = 5,
	KILL_ESTABLISHED = 9,
	KILL_DISCONNECTED = 10,
	KILL_DEVICE_REMOVAL = 11,
	KILL_ADDR_CHANGE = 14,
	KILL_TIMEWAIT_EXIT = 15,
};

enum kill_state {
	KILL_OVER,
	KILL_CONNECTING,
	KILL_UP,
	KILL_ENDING, /* disconnect was called */
};

struct kill_link {
	void *id, *qp;
	enum kill_state state;
	bool sending, blamed;
	uint64_t until_ms;   /* its data flow so long */
	uint32_t sent, want; /* messages; it disconnects after want */
};

struct kill_event {
	uint32_t type;
	int32_t status;
	const char *name;
	void *id;		/* a new one of CONNECT_REQUEST */
	struct kill_link *link; /* NULL: of the listener, or of a new id */
};

/* Descriptor that is readable when events wait */
int kill_open(const char *device, int *fd);
int kill_listen(const struct sockaddr *address, uint16_t *port);
int kill_resolve(struct kill_link *l, const struct sockaddr *address);
int kill_route(struct kill_link *l);
/* With a QP, and its receives posted */
int kill_connect(struct kill_link *l);
int kill_accept(struct kill_link *l);
/* After CONNECT_RESPONSE, which librdmacm keeps for itself */
int kill_establish(struct kill_link *l);
int kill_disconnect(struct kill_link *l);
/* With the QP */
void kill_destroy(struct kill_link *l);
/* -EAGAIN: none waits */
int kill_next(struct kill_event *event);
int kill_send(struct kill_link *l);
/* Next completion, receives are posted again; false: none. *status: NULL: success. */
bool kill_done(struct kill_link **l, const char **status);

#endif
