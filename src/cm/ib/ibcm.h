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
	"no port of 32768 to 60999 is left in the share of the user ([quota] user_share)"

/* NULL: no memory, or a value of *config out of range. */
struct ibcm *ibcm_create(const struct ibcm_config *config);
/* Tell all peers (best effort) and end everything. */
void ibcm_destroy(struct ibcm *cm, uint64_t now);

/*
 * One of the operations HCA_CTL_CM_* (abi_ops.h says the types of request and answer). The client
 * may name only ids of its own (-ENOENT).
 * @return
 *   0 or a negative errno, with *why in words.
 */
int ibcm_call(struct ibcm *cm, const struct ibcm_client *client, enum hca_ctl_op op,
	      const void *request, void *answer, uint64_t now, const char **why);
/* The client has ended: its ids and listeners go, its peers are told. */
void ibcm_forget(struct ibcm *cm, uint32_t owner, uint64_t now);
/*
 * A channel of the client ends, and its number may be another one's soon: the same for the ids that
 * are in it now. Ids that were moved to another channel stay.
 */
void ibcm_forget_channel(struct ibcm *cm, uint32_t owner, uint32_t channel, uint64_t now);

/*
 * An entry of the GID table (valid 0: empty). Ids bound to an address that goes or moves get
 * ADDR_CHANGE.
 */
void ibcm_set_gid(struct ibcm *cm, uint32_t index, const struct hca_ctl_gid *gid, uint64_t now);

/*
 * The answer to resolve(): err 0: *way; else -ENODEV, -ENETUNREACH, -EHOSTUNREACH, -ETIMEDOUT. A
 * ticket that is not awaited any more: nothing.
 */
void ibcm_resolved(struct ibcm *cm, uint64_t ticket, int err, const struct ibcm_way *way,
		   uint64_t now);

/* A datagram of the GSI. from: own and peer as in its IP header; dmac: its sender's. */
void ibcm_input(struct ibcm *cm, const struct ibcm_way *from, const uint8_t *mad, size_t len,
		uint64_t now);

/* The HCA is dead: DEVICE_REMOVAL for all ids. */
void ibcm_dead(struct ibcm *cm, uint64_t now);

/* Do the work that is due; ibcm_deadline(): the time of the next work, or IBCM_NEVER. */
void ibcm_tick(struct ibcm *cm, uint64_t now);
uint64_t ibcm_deadline(const struct ibcm *cm);

/* Counter i with its name; NULL: i is too large. Gauges of present numbers are among them. */
const char *ibcm_counter(const struct ibcm *cm, uint32_t i, uint64_t *value);

/* For operators: ids and connections with indexes from `from` on, ascending; returns how many. */
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
unsigned int ibcm_list(const struct ibcm *cm, uint32_t from, struct ibcm_entry *out,
		       unsigned int max);

#endif
