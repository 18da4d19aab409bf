/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_SERVER_H
#define IPC_SERVER_H

/*
 * The daemon's end of the control channel: one socket, one driver, any number of client processes.
 * A listener thread accepts; each client has its own thread, which may block in a command without
 * delaying others. A client gets its doorbell page (a memfd mapped at its place in BAR2), and its
 * event pipes; its memory is what it attaches.
 *
 * A client ends when its socket is closed, its process ends (pidfd), it violates the framing, a
 * segment of its memory is lost, or it does not read replies. Then everything it had is destroyed.
 *
 * The composition creates the server after the driver and destroys it before. BAR2 must be ordinary
 * memory in pages of 4 KiB. Any thread may call, except for create and destroy. Errors are a
 * negative errno; ipc_reason() explains them (ipc_memory.h declares it for this room).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi_bar.h"
#include "driver.h"

struct ipc_server;

#define IPC_PRIVILEGED_MAX 16u

/* Sleeping workers of the device, and how clients wake them; provided by the composition. */
struct ipc_sleep {
	int page_fd;	/* the sleep words; clients cannot write to it */
	uint32_t pipes; /* pipelines; 1 to HCA_UAR_PIPES_MAX */
	/* of the words of the workers that check the doorbells of each */
	uint32_t offset[HCA_UAR_PIPES_MAX];
	/*
	 * Let a client's eventfd wake the worker that checks the doorbells of a pipeline (remove:
	 * no longer, of all pipelines). 0 or a negative errno.
	 */
	int (*add)(void *arg, uint32_t uar_page, uint32_t pipe, int fd);
	void (*remove)(void *arg, uint32_t uar_page);
	/*
	 * Number of times that the client's kicks were ignored for 100 ms, because they were
	 * useless.
	 */
	uint64_t (*muted)(void *arg, uint32_t uar_page);
	void *arg;
};

/* 0 selects the default in brackets. */
struct ipc_server_config {
	const char *path; /* of the socket; its folder is created if missing */
	const char *name; /* of the device, at most 31 characters */
	struct hca_driver *driver;
	const struct ipc_sleep *sleep; /* must outlive the server; NULL: workers never sleep */
	uint32_t mode;		       /* of the socket [0660] */
	bool set_group;		       /* change the socket's group to `group` */
	gid_t group;
	/* users in addition to root that may send management datagrams */
	uid_t privileged[IPC_PRIVILEGED_MAX];
	uint32_t num_privileged;
	uint32_t clients_max;	  /* [256] */
	uint32_t clients_per_uid; /* [clients_max] */
	uint64_t memory_max;	  /* bytes per client [16 GiB] */
	uint64_t memory_per_uid;  /* bytes of all clients of a user [4 times memory_max] */
	uint32_t segments_max;	  /* per client [32768] */
	/*
	 * clients of root and of this process's user may attach files that cannot be guarded
	 * (abi_ctl.h, ATTACH)
	 */
	bool trust_own;
	bool slow_memory; /* clients may use memory that is not attached (MEMORY) */
	/*
	 * Once for each client, by its thread: it has registered such memory. Must not wait; NULL:
	 * nothing is called.
	 */
	void (*slow)(pid_t pid, uid_t uid);
	/*
	 * A client's libsofthca is of another release, or sends a request that this one does not
	 * have: once for each version, and for each client. By its thread; must not wait; may be
	 * NULL.
	 */
	void (*differs)(pid_t pid, uid_t uid, const char *words);
	/* a client that sends no greeting for this time is dropped [1000] */
	uint32_t hello_ms;
	uint32_t send_ms; /* as is one that does not read its reply [1000] */
	/*
	 * Longest time in ms between two clients of a user whose clients have taken memory away
	 * (ipc_turns.h); 0: none.
	 */
	uint32_t turn_ms;
};

/**
 * Create a server: make the socket, start the listener.
 *
 * @param config
 *   The configuration, which is copied; what it points to must outlive the server.
 * @param server
 *   Set to the server; not changed on error.
 * @return
 *   - 0: clients can connect.
 *   - -EINVAL, -ENAMETOOLONG: a value of config.
 *   - -EADDRINUSE: a daemon listens on the path.
 *   - -EEXIST: the path is another file than a socket.
 *   - -ENOMEM: no memory.
 *   - another negative errno of a system call, with the reason.
 */
int ipc_server_create(const struct ipc_server_config *config, struct ipc_server **server);

/**
 * End all clients, wait for them, and free the server. The device still runs; no other call is in
 * progress.
 *
 * @param server
 *   The server.
 */
void ipc_server_destroy(struct ipc_server *server);

/**
 * hca_config.foreign: access memory of a client that it has not attached. Called by workers of the
 * device; waits at most a few milliseconds.
 *
 * @param server
 *   The server.
 * @param domain
 *   UAR page of the client.
 * @param write
 *   Whether bytes are written to the client.
 * @param addr
 *   Address in the client.
 * @param bytes
 *   Source or destination here.
 * @param len
 *   Number of bytes.
 * @return
 *   - 0: done.
 *   - -EAGAIN: not in time; the packet counts as lost.
 *   - -EINPROGRESS: the write will still be executed; until then all accesses of this client return
 *     -EAGAIN.
 *   - -EFAULT: the client has no such memory, or has not allowed this use.
 */
int ipc_server_access(struct ipc_server *server, uint32_t domain, bool write, uint64_t addr,
		      void *bytes, uint32_t len);

/**
 * The reason of the last failed call of this thread.
 *
 * @return
 *   Text, valid until the thread's next call; never NULL.
 */
const char *ipc_server_reason(void);

/*
 * Counters by name. Each refusal counts under one name that begins with "refused_", each ended
 * client under one of "ended_", one that waited for its turn (ipc_turns.h) under clients_delayed,
 * and threads that block in close() of a client's descriptors under closes_lost. Accesses to memory
 * that is not attached: succeeded, nothing mapped, or no answer in time.
 */
#define IPC_COUNTERS(X) \
	X(clients_accepted) \
	X(clients_delayed) \
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
	X(refused_operation) \
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

/**
 * Number of counters: those of IPC_COUNTERS, then one for the calls of each operation.
 *
 * @return
 *   Their number.
 */
unsigned int ipc_server_counter_count(void);

/**
 * Name of a counter.
 *
 * @param i
 *   Less than ipc_server_counter_count().
 * @return
 *   The name; "unknown" of others.
 */
const char *ipc_server_counter_name(unsigned int i);

/**
 * Value of a counter. May lag.
 *
 * @param server
 *   The server.
 * @param i
 *   Less than ipc_server_counter_count().
 * @return
 *   The value; 0 of others.
 */
uint64_t ipc_server_counter(const struct ipc_server *server, unsigned int i);

/* A client, as shown to operators */
struct ipc_client_info {
	uint32_t uar_page;
	pid_t pid;
	uid_t uid;
	uint64_t attached; /* bytes of memory */
	uint64_t requests;
	uint64_t muted; /* number of times its kicks were ignored */
};

/**
 * List clients.
 *
 * @param server
 *   The server.
 * @param out
 *   Room for max entries.
 * @param max
 *   Largest number of entries.
 * @return
 *   Number of clients, which may be more than max.
 */
unsigned int ipc_server_clients(struct ipc_server *server, struct ipc_client_info *out,
				unsigned int max);

/* Number of ended clients; longest and total time of their clean-up, ns. */
struct ipc_clean_ups {
	uint64_t count;
	uint64_t longest_ns;
	uint64_t sum_ns;
};

/**
 * Read how long the clean-up of clients took.
 *
 * @param server
 *   The server.
 * @param out
 *   Set to the values.
 */
void ipc_server_clean_ups(struct ipc_server *server, struct ipc_clean_ups *out);

#endif
