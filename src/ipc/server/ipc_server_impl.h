/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_SERVER_IMPL_H
#define IPC_SERVER_IMPL_H

/*
 * Shared by the files of the server: ipc_server.c (listener, list of sessions), ipc_session.c (a
 * client's thread: life cycle, framing), ipc_ops.c (execution of requests), ipc_kick.c (waking
 * workers), ipc_publish.c (the description of the device), ipc_version.c (clients of other
 * releases).
 */

#include <pthread.h>
#include <stdbool.h>

#include "abi_bar.h"
#include "ipc_foreign.h"
#include "ipc_memory.h"
#include "ipc_proto.h"
#include "ipc_server.h"
#include "ipc_turns.h"

enum ipc_counter {
#define X(name) IPC_COUNTER_##name,
	IPC_COUNTERS(X)
#undef X
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) IPC_COUNTER_calls_##name,
	HCA_CTL_OPS(X)
#undef X
		IPC_COUNTER_COUNT,
};

struct ipc_server {
	struct ipc_server_config config;
	char path[108];
	char name[32];
	int listen_fd;
	ino_t inode;   /* of the socket's file */
	int device_fd; /* of the description next to it; locked */
	int stop_fd;   /* eventfd: all threads must end */
	pthread_t listener;
	struct ipc_closer *closer; /* for descriptors that clients send */
	pthread_mutex_t lock;	   /* protects the list; never held during calls that may block */
	pthread_cond_t ended;
	struct ipc_session *sessions;
	uint32_t num_sessions;
	uint64_t counter[IPC_COUNTER_COUNT];
	struct ipc_clean_ups clean_ups;
	struct ipc_maps maps;
	struct ipc_turns turns;
	uint64_t told; /* bit m: config.differs was called for minor version m */
	struct ipc_foreign *foreign[HCA_UAR_PAGES]; /* by doorbell page; read by workers */
};

struct ipc_session {
	struct ipc_session *next;
	struct ipc_server *server;
	pthread_t thread;
	int sock;
	int pid_fd; /* -1: not supported by the kernel */
	int lost_fd;
	pid_t pid;
	uid_t uid;
	uint64_t seq; /* of the next request */
	uint64_t requests;
	bool greeted;
	uint8_t minor;		   /* version of the client */
	struct hca_client *client; /* valid after HELLO, as the following members */
	struct ipc_memory *memory;
	uint32_t uar_page;
	uint32_t pipes; /* of the client */
	/* eventfds with which the client wakes the workers of the pipelines; -1: none */
	int kick_fd[HCA_UAR_PIPES_MAX];
	uint64_t *pages; /* PAGES, for the next REG_MR or REREG_MR */
	uint64_t num_pages;
	/* bytes, including a segment being attached: for its user's sum and the operator's list */
	uint64_t attached;
	struct ipc_foreign *foreign; /* set by MEMORY */
	bool slow;		     /* config.slow was called */
	bool told;		     /* config.differs was called for a request */
};

/* A reply under construction */
struct ipc_answer {
	union {
		uint8_t bytes[IPC_BODY_MAX];
		uint64_t align;
	} body;
	uint32_t len;
	struct hca_ctl_extra extra; /* its descriptors are given away: closed once they are sent */
	unsigned int num_fds;
};

static inline void
ipc_count(struct ipc_server *server, enum ipc_counter counter)
{
	__atomic_fetch_add(&server->counter[counter], 1, __ATOMIC_RELAXED);
}

/* ipc_publish.c: write the description of the device, locked; 0 or a negative errno. Remove it. */
int ipc_publish(struct ipc_server *server);
void ipc_unpublish(struct ipc_server *server);

/* ipc_session.c: the thread of a client. */
void *ipc_session_main(void *session);
/* ipc_server.c: its last call; ns: duration of the clean-up. */
void ipc_session_gone(struct ipc_session *session, uint64_t ns);

/*
 * ipc_server.c: whether the client may attach this number of further bytes, considering all clients
 * of its user. They are counted until its thread sets `attached` to the actual value. 0 or -ENOMEM.
 */
int ipc_session_more(void *session, uint64_t bytes);
/* The same question, and nothing is counted. */
int ipc_session_fits(const struct ipc_session *session, uint64_t bytes);

/*
 * ipc_ops.c: executes a well-formed request; fds are those of its row. 0 or negative errno, reason
 * by ipc_fail(); answer filled in.
 */
int ipc_execute(struct ipc_session *session, enum hca_ctl_op op, const void *request,
		const int *fds, struct ipc_answer *answer);
/* ipc_version.c: sizes and descriptors of a request of minor version 0. */
bool ipc_well_formed(uint32_t op, const void *body, uint32_t len, unsigned int num_fds);

enum ipc_form {
	IPC_FORM_KNOWN,	  /* the body has the size of this release's structure now */
	IPC_FORM_UNKNOWN, /* to be refused with -EOPNOTSUPP and ipc_reason() */
	IPC_FORM_WRONG,	  /* ends the session */
};

/* The form of a request of this client, whose body has room for IPC_BODY_MAX bytes. */
enum ipc_form ipc_form(const struct ipc_session *session, uint32_t op, void *body, uint32_t len,
		       unsigned int num_fds);
/*
 * If this is a greeting of another version, make it one of the version that both ends speak. False
 * with ipc_reason(): no common version.
 */
bool ipc_agree(const struct ipc_session *session, struct ipc_request *head, void *body);
/* config.differs: the client is of another release; ipc_reason() has its request. */
void ipc_tell_version(struct ipc_session *session);
void ipc_tell_unknown(struct ipc_session *session);
/*
 * ipc_kick.c: the sleep words, and the place of one and an eventfd for pipeline 0, for the client
 * whose doorbell page is known: fds[0] and [1], to be given away even on failure where they are not
 * -1. of: those of a pipeline; again: the same eventfd. close: before the page's number is given
 * back, any number of times.
 */
int ipc_kick_open(struct ipc_session *session, uint32_t *offset, int *fds);
int ipc_kick_of(struct ipc_session *session, uint32_t pipe, uint32_t *offset, int *fd);
void ipc_kick_close(struct ipc_session *session);
/*
 * ipc_server.c: waits until the daemon has released the clients that have ended before this call,
 * for at most a second. Returns whether there was one: a resource may have become free.
 */
bool ipc_wait_for_ended(struct ipc_session *self);
/* ipc_ops.c: destroy everything the client has, in the right order. */
void ipc_session_release(struct ipc_session *session);

#endif
