/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_SERVER_H
#define IPC_SERVER_H

/*
 * The daemon's end of the control channel: one socket, one driver, any number of client processes.
 * A listener thread accepts; each client has a thread of its own, which may sleep in a command
 * without stopping the others. A client gets its doorbell page (a memfd mapped at its place in
 * BAR2), its event pipes, and nothing else; its memory is what it attached.
 *
 * A client ends when its socket does, when its process does (pidfd), when it breaks the framing,
 * when a segment of its memory is lost, or when it does not read its replies. Everything it had is
 * then destroyed.
 *
 * The composition creates the server after the driver and destroys it before. BAR2 must be ordinary
 * memory in pages of 4 KiB. All functions are thread safe, but create and destroy. Errors: negative
 * errno, ipc_reason() has the sentence (ipc_memory.h declares it for this room).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver.h"

struct ipc_server;

#define IPC_PRIVILEGED_MAX 16u

/* Workers of the device that sleep, and how clients wake them: the composition's. */
struct ipc_sleep {
	int page_fd;	 /* the sleep words; nobody can write to it */
	uint32_t offset; /* of the word of the worker that looks at doorbells */
	/* A client's eventfd wakes that worker from now on, or no longer. 0 or negative errno. */
	int (*add)(void *arg, uint32_t uar_page, int fd);
	void (*remove)(void *arg, uint32_t uar_page);
	/*
	 * How often its kicks were not listened to for a while, because there was nothing behind
	 * them.
	 */
	uint64_t (*muted)(void *arg, uint32_t uar_page);
	void *arg;
};

/* 0 selects the default in brackets. */
struct ipc_server_config {
	const char *path; /* of the socket; its folder is made where it is missing */
	const char *name; /* of the device, at most 31 characters */
	struct hca_driver *driver;
	const struct ipc_sleep *sleep; /* outlives the server; NULL: workers never sleep */
	uint32_t mode;		       /* of the socket [0660] */
	bool set_group;		       /* give the socket to `group` */
	gid_t group;
	uid_t privileged[IPC_PRIVILEGED_MAX]; /* users beside root: management datagrams */
	uint32_t num_privileged;
	uint32_t clients_max;	  /* [256] */
	uint32_t clients_per_uid; /* [clients_max] */
	uint64_t memory_max;	  /* bytes per client [16 GiB] */
	uint64_t memory_per_uid;  /* bytes of all clients of a user [4 times that] */
	uint32_t segments_max;	  /* per client [4096] */
	bool slow_memory;	  /* clients may give memory that is not attached (MEMORY) */
	uint32_t hello_ms;	  /* a client that says nothing so long is dropped [1000] */
	uint32_t send_ms;	  /* one that does not read its reply so long too [1000] */
};

int ipc_server_create(const struct ipc_server_config *config, struct ipc_server **server);
/* Ends every client and waits for it. */
void ipc_server_destroy(struct ipc_server *server);
/*
 * As hca_config.foreign: memory of the client with this doorbell page that is not attached. Called
 * by workers of the device; waits a few milliseconds at most.
 */
int ipc_server_access(struct ipc_server *server, uint32_t domain, bool write, uint64_t addr,
		      void *bytes, uint32_t len);
/* Why the last call of this thread failed; never NULL. */
const char *ipc_server_reason(void);

/*
 * Counters by name. Each thing that is refused counts under one of the names that begin with
 * "refused_"; each client that ended, under one of "ended_"; threads that did not come back from
 * closing what a client had sent, under closes_lost. Accesses to memory that is not attached:
 * those that went well, found nothing there, or got no answer in time.
 */
#define IPC_COUNTERS(X) \
	X(clients_accepted) \
	X(requests) \
	X(foreign_reads) \
	X(foreign_writes) \
	X(foreign_faults) \
	X(foreign_late) \
	X(refused_clients_max) \
	X(refused_clients_per_uid) \
	X(refused_memory_per_uid) \
	X(refused_resources) \
	X(refused_version) \
	X(refused_address) \
	X(refused_file) \
	X(refused_request) \
	X(ended_closed) \
	X(ended_process) \
	X(ended_protocol) \
	X(ended_silent) \
	X(ended_not_reading) \
	X(ended_segment_lost) \
	X(ended_server) \
	X(closes_lost)

unsigned int ipc_server_counter_count(void);
const char *ipc_server_counter_name(unsigned int i);
uint64_t ipc_server_counter(const struct ipc_server *server, unsigned int i);

/* One client, as it is shown to an operator */
struct ipc_client_info {
	uint32_t uar_page;
	pid_t pid;
	uid_t uid;
	uint64_t attached; /* bytes of memory */
	uint64_t requests;
	uint64_t muted; /* times its kicks were not listened to */
};

/* Fills in at most max; returns how many there are. */
unsigned int ipc_server_clients(struct ipc_server *server, struct ipc_client_info *out,
				unsigned int max);

/* Clients that ended, the longest and the sum of the times from their end to the last trace, ns. */
struct ipc_clean_ups {
	uint64_t count;
	uint64_t longest_ns;
	uint64_t sum_ns;
};
void ipc_server_clean_ups(struct ipc_server *server, struct ipc_clean_ups *out);

#endif
