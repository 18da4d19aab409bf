/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_IB_IBCM_H
#define CM_IB_IBCM_H

/*
 * The connection manager of an HCA: ids, ports and connections of all its clients, after the IBTA
 * specification volume 1, chapter 12 (communication management), chapter 13 (MADs) and annex A11
 * (RDMA IP CM service), as Linux speaks it over RoCE.
 *
 * State machines without I/O: MADs, operations of clients and the time go in, MADs and events come
 * out through functions of the owner (the agent). One struct ibcm for each HCA. The caller
 * serializes all calls; the functions of struct ibcm_ops must not call back. Times are ns of a
 * clock that does not jump.
 *
 * Ids belong to clients; connections outlive their ids until TIMEWAIT is over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_ops.h"

#define IBCM_MAD_BYTES 256u
#define IBCM_NEVER UINT64_MAX

/* Between an address of this HCA and one of a peer. */
struct ibcm_way {
	uint8_t own[16], peer[16]; /* GIDs */
	uint32_t gid_index;
	uint8_t dmac[6]; /* of the next hop; 0: not known: the owner finds it */
	uint8_t hop_limit, traffic_class;
	bool doubted; /* messages had no answer: the peer may have another next hop by now */
};

struct ibcm_client {
	uint32_t owner; /* no other client has it at the same time */
	uint32_t user;	/* clients of a user share limits */
};

/* A request of a client by CM_RESOLVE. */
struct ibcm_wish {
	uint32_t owner;
	bool fixed;		  /* own is the source; else the owner of the CM chooses it */
	uint8_t own[16], dst[16]; /* GIDs; dst may be a group: the address to send to it from */
	uint32_t gid_index;	  /* of own */
	uint32_t scope;		  /* kernel interface of a link-local dst, 0: any */
};

struct ibcm_ops {
	/* Send a MAD on QP 1; it may be lost. */
	void (*send)(void *arg, const struct ibcm_way *way, const uint8_t mad[IBCM_MAD_BYTES]);
	/* hca_driver_cm_event(): the channel of the client has an event. */
	void (*event)(void *arg, uint32_t owner, uint32_t channel);
	/* Find the way; ibcm_resolved() follows with the ticket. */
	void (*resolve)(void *arg, uint64_t ticket, const struct ibcm_wish *wish);
	/* The first member of a group has come, or the last one has gone: IGMP, MLD. */
	void (*group)(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined);
	uint64_t (*random)(void *arg); /* of a CSPRNG */
};

/* How many there may be: X(name, def, text) */
#define IBCM_LIMIT_LIST(X) \
	X(ids, 65536, "ids of all clients") \
	X(ids_user, 32768, "ids of a user") \
	X(ids_client, 16384, "ids of a client") \
	X(backlog, 1024, "requests that wait at one listener") \
	X(pending, 8192, "requests of peers that no program has answered, of all listeners") \
	X(pending_address, 2048, "of these from one address to one user") \
	X(groups, 4096, "memberships of multicast groups")

struct ibcm_limits {
#define IBCM_LIMIT_MEMBER(name, def, text) uint32_t name; /* 0: the default */
	IBCM_LIMIT_LIST(IBCM_LIMIT_MEMBER)
#undef IBCM_LIMIT_MEMBER
};

struct ibcm_config {
	const struct ibcm_ops *ops;
	void *arg;
	uint64_t node_guid;    /* as a number, the first byte on top */
	uint16_t pkey;	       /* of index 0 */
	uint32_t mtu;	       /* of the port: 1..5 */
	uint8_t ack_delay;     /* of the HCA: 4.096 us * 2^n */
	uint8_t max_rd_atomic; /* of a QP */
	struct ibcm_limits limits;
	/* Ports and memberships of a user: per cent of those that others leave; 0: all */
	uint32_t user_share;
};

struct ibcm;

/* Why a port was refused (-EADDRNOTAVAIL), where the address is one of the HCA. */
#define IBCM_WHY_PORTS \
	"no port of 32768 to 60999 is left in the share of the user: destroy ids, bind to " \
	"another " \
	"port, or raise [quota] user_share"

/**
 * Create a connection manager. Allocates memory.
 *
 * @param config
 *   Its configuration, which is copied.
 * @return
 *   The connection manager, without ids; NULL: no memory, or config->mtu is not 1..5.
 */
struct ibcm *ibcm_create(const struct ibcm_config *config);

/**
 * Destroy a connection manager: send a DREQ or REJ for each connection, without a wait for the
 * answers, and free all memory.
 *
 * @param cm
 *   The connection manager.
 * @param now
 *   Time in ns.
 */
void ibcm_destroy(struct ibcm *cm, uint64_t now);

/**
 * Execute an operation of a client.
 *
 * @param cm
 *   The connection manager.
 * @param client
 *   The client, which may name only the ids that it made.
 * @param op
 *   One of HCA_CTL_CM_* (abi_ops.h).
 * @param request
 *   Of the type in the row of op; not trusted.
 * @param answer
 *   Of the type in the row of op; written if 0 is returned.
 * @param now
 *   Time in ns.
 * @param why
 *   Set to the reason of an error in words, which stays until the next call of the thread; ""
 *   without one.
 * @return
 *   - 0: done.
 *   - -ENOENT: the client has no id of this number.
 *   - -EINVAL: a value is wrong, or the id is not in a state for the operation.
 *   - -EADDRINUSE, -EADDRNOTAVAIL: the port, or the address, cannot be bound.
 *   - -ENOMEM: a limit of ids, or no memory.
 *   - -ENODEV: ibcm_dead() was called.
 *   - -EOPNOTSUPP: op is no operation of connection management.
 *   - another negative errno that the operation's row names.
 */
int ibcm_call(struct ibcm *cm, const struct ibcm_client *client, enum hca_ctl_op op,
	      const void *request, void *answer, uint64_t now, const char **why);

/**
 * End a client: destroy its ids and listeners, and send a DREQ or REJ to its peers.
 *
 * @param cm
 *   The connection manager.
 * @param owner
 *   The client; one without ids is no error.
 * @param now
 *   Time in ns.
 */
void ibcm_forget(struct ibcm *cm, uint32_t owner, uint64_t now);

/**
 * End a channel of a client, whose number may be used again: destroy the ids that are in it now,
 * as ibcm_forget(). Ids that were moved to another channel stay.
 *
 * @param cm
 *   The connection manager.
 * @param owner
 *   The client.
 * @param channel
 *   Number of the channel; one without ids is no error.
 * @param now
 *   Time in ns.
 */
void ibcm_forget_channel(struct ibcm *cm, uint32_t owner, uint32_t channel, uint64_t now);

/**
 * Set an entry of the GID table. Ids bound to an address that goes or moves get the event
 * ADDR_CHANGE.
 *
 * @param cm
 *   The connection manager.
 * @param index
 *   Index of the entry.
 * @param gid
 *   The entry, which is copied; valid 0: it is empty.
 * @param now
 *   Time in ns.
 */
void ibcm_set_gid(struct ibcm *cm, uint32_t index, const struct hca_ctl_gid *gid, uint64_t now);

/**
 * The answer to resolve() of struct ibcm_ops.
 *
 * @param cm
 *   The connection manager.
 * @param ticket
 *   The ticket of the call; one that no id waits for has no effect.
 * @param err
 *   0, or -ENODEV, -ENETUNREACH, -EHOSTUNREACH, -ETIMEDOUT.
 * @param way
 *   The way, if err is 0.
 * @param now
 *   Time in ns.
 */
void ibcm_resolved(struct ibcm *cm, uint64_t ticket, int err, const struct ibcm_way *way,
		   uint64_t now);

/**
 * Handle a datagram of QP 1. Malformed and unknown ones are dropped and counted.
 *
 * @param cm
 *   The connection manager.
 * @param from
 *   own and peer as in its IP header, dmac of its sender.
 * @param mad
 *   The datagram; not trusted.
 * @param len
 *   Its bytes.
 * @param now
 *   Time in ns.
 */
void ibcm_input(struct ibcm *cm, const struct ibcm_way *from, const uint8_t *mad, size_t len,
		uint64_t now);

/**
 * Report the death of the HCA: all ids get the event DEVICE_REMOVAL, no message is sent any more.
 *
 * @param cm
 *   The connection manager.
 * @param now
 *   Time in ns.
 */
void ibcm_dead(struct ibcm *cm, uint64_t now);

/**
 * Do the work that is due: repetitions, timeouts, ends of TIMEWAIT.
 *
 * @param cm
 *   The connection manager.
 * @param now
 *   Time in ns.
 */
void ibcm_tick(struct ibcm *cm, uint64_t now);

/**
 * When ibcm_tick() has work.
 *
 * @param cm
 *   The connection manager.
 * @return
 *   Time in ns, or IBCM_NEVER.
 */
uint64_t ibcm_deadline(const struct ibcm *cm);

/**
 * Counters, and gauges of present numbers, by index.
 *
 * @param cm
 *   The connection manager.
 * @param i
 *   Index, from 0.
 * @param value
 *   Set to the value.
 * @return
 *   The name, or NULL: i is beyond the last one.
 */
const char *ibcm_counter(const struct ibcm *cm, uint32_t i, uint64_t *value);

/* An id or connection, as shown to operators */
struct ibcm_entry {
	uint32_t index;
	uint32_t id;	/* 0: its id has gone; state is DISCONNECTING or ENDED */
	uint32_t owner; /* 0: as id */
	uint32_t space, state;
	const char *phase; /* of the protocol: "REQ sent", "timewait", ... */
	struct hca_ctl_cm_addr src, dst;
	uint64_t service_id;
	uint64_t since; /* of the state */
	uint32_t local_comm, remote_comm;
	uint32_t local_qpn, remote_qpn;
	uint32_t waiting; /* LISTENING: requests that wait for the program */
	uint32_t backlog;
	uint32_t events; /* that wait in its channel */
	uint32_t repeats;
};

/**
 * List ids and connections, piecewise: continue with the last index + 1.
 *
 * @param cm
 *   The connection manager.
 * @param from
 *   Lowest index of an entry.
 * @param out
 *   Room for max entries, ascending by index.
 * @param max
 *   Largest number of entries.
 * @return
 *   Number of entries written; less than max: these are the last.
 */
unsigned int ibcm_list(const struct ibcm *cm, uint32_t from, struct ibcm_entry *out,
		       unsigned int max);

#endif
