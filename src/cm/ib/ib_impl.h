/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_IB_IB_IMPL_H
#define CM_IB_IB_IMPL_H

/*
 * Inside of ibcm: only its sources include this.
 *
 * An id is the client's object, and its connection. When the client destroys it the connection
 * lives on as an orphan, without number, port and events, until the peer has been told and TIMEWAIT
 * is over.
 */

#include "cm_repeat.h"
#include "cm_share.h"
#include "ib_ip.h"
#include "ib_mad.h"
#include "ib_node.h"
#include "ibcm.h"

/* State of the protocol of an id: X(NAME, text) */
#define IB_PHASE_LIST(X) \
	X(NONE, "none") \
	X(REQ_SENT, "REQ sent") \
	X(REQ_RCVD, "REQ received") \
	X(REP_SENT, "REP sent") \
	X(REP_RCVD, "REP received") \
	X(ESTABLISHED, "established") \
	X(DREQ_SENT, "DREQ sent") \
	X(TIMEWAIT, "timewait") \
	X(REFUSED, "REJ sent") \
	X(SIDR_SENT, "SIDR_REQ sent") \
	X(SIDR_RCVD, "SIDR_REQ received") \
	X(SIDR_DONE, "SIDR_REP sent")

enum ib_phase {
#define X(NAME, text) IB_PHASE_##NAME,
	IB_PHASE_LIST(X)
#undef X
	IB_PHASES
};

/*
 * Why a well-formed message is dropped: X(name, text). IB_MAD_FAULT_LIST has the faults of
 * malformed ones.
 */
#define IB_DROP_LIST(X) \
	X(unknown, "of no connection of this HCA") \
	X(address, "of a connection with another address") \
	X(qpn, "of another QP than the connection's") \
	X(state, "that does not fit the state of the connection") \
	X(backlog, "requests beyond the backlog of the listener") \
	X(memory, "requests without memory for them") \
	X(service, "for this message this HCA has no use")

enum ib_drop {
	IB_DROP_NONE = -1, /* it is handled */
#define X(name, text) IB_DROP_##name,
	IB_DROP_LIST(X)
#undef X
	IB_DROPS
};

/* Events of the protocol that are counted: X(name, text) */
#define IB_COUNT_LIST(X) \
	X(duplicates, "messages that had been answered before") \
	X(stale, "connections that the peer has begun again") \
	X(opened, "connections that were established") \
	X(timeouts, "exchanges that the peer did not answer in time") \
	X(evicted, "requests of peers that were evicted for others") \
	X(refused_limit, "requests of peers beyond a limit of the client") \
	X(refused_ports, "ports beyond the share of a user") \
	X(events, "events for clients")

struct ib_counters {
	uint64_t received;
	uint64_t fault[IB_MAD_FAULTS];
	uint64_t drop[IB_DROPS];
	uint64_t handled[IB_MAD_TYPES];
	uint64_t sent[IB_MAD_TYPES]; /* with repeated ones */
	uint64_t repeated[IB_MAD_TYPES];
	uint64_t rejected[IB_MAD_REASONS]; /* REJ that were sent, 0: of another reason */
#define X(name, text) uint64_t name;
	IB_COUNT_LIST(X)
#undef X
};

/* Port spaces: X(NAME), as in HCA_CTL_CM_SPACE_NAME */
#define IB_SPACE_LIST(X) \
	X(TCP) \
	X(UDP) \
	X(IB) \
	X(IPOIB)

enum ib_space {
#define X(NAME) IB_SPACE_##NAME,
	IB_SPACE_LIST(X)
#undef X
	IB_SPACES
};

/* A user, as long as it has clients. */
struct ib_user {
	struct ib_link link;	/* by number */
	struct ib_node orphans; /* the oldest one first, as in all lists of orphans */
	uint32_t accounts;
	uint32_t ids; /* with orphans */
	uint32_t memberships;
	uint32_t ports[IB_SPACES]; /* ids with a port of the range that ports are chosen from */
};

/* A client. It stays until its last orphan is gone. */
struct ib_account {
	struct ib_link link; /* by owner, unless the client has ended */
	struct ib_node orphans;
	struct ib_node channels;
	struct ibcm_client client;
	struct ib_user *user;
	uint32_t ids; /* with orphans */
};

/* A channel of a client, as long as it has ids. */
struct ib_channel {
	struct ib_link link; /* by owner and number */
	struct ib_node in_account;
	struct ib_node members; /* ids */
	struct ib_node events;
	struct ib_account *account;
	uint32_t number;
	uint32_t ids;
	uint32_t waiting;
};

struct ib_event {
	struct ib_node in_channel, in_id;
	struct ib_id *id;
	struct hca_ctl_cm_event event;
};

/* A port number of a space, with the ids that have it. */
struct ib_port {
	struct ib_link link;
	struct ib_node ids; /* those that listen come first: a request looks at no others */
	uint32_t space;
	uint16_t number;
};

/* The halves of an account: requests of an address to a user that are not established. */
struct ib_peer {
	struct ib_node halves; /* the oldest one first */
	struct ib_node held;   /* answered ones */
};

/* The requests of an address that wait at a listener. */
struct ib_wait {
	struct ib_link link;
	struct ib_timer rank;	 /* in the listener's heap */
	struct ib_node requests; /* the oldest one first */
	struct ib_id *listener;
	uint32_t count;
	uint8_t gid[16];
};

/* A membership of an id. */
struct ib_member {
	struct ib_node in_id;
	struct ib_link link; /* by number */
	struct ib_id *id;
	struct ib_group *group;
	uint32_t number;
	uint32_t flags;
};

struct ib_group {
	struct ib_link link;
	uint8_t mgid[16];
	uint32_t gid_index;
	uint32_t receivers; /* members that are not only senders */
	uint32_t members;
};

/* Values exchanged by both ends. */
struct ib_connection {
	bool passive;
	bool leaving;  /* the peer is told by DREQ, or its request is refused */
	bool mra_sent; /* for the message that waits for the program */
	uint32_t local_comm, remote_comm;
	uint64_t remote_guid;
	uint64_t transaction; /* of REQ, REP, RTU */
	uint64_t service_id;
	uint32_t local_qpn, remote_qpn;
	uint32_t local_psn, remote_psn; /* the first that comes, the first that is sent */
	uint8_t transport;		/* HCA_ST_* of this end's QP */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t mtu;
	uint8_t ack_timeout;  /* of the QP */
	uint8_t own_timeout;  /* so long the peer waits for us: exponent */
	uint8_t peer_timeout; /* so long we wait for the peer */
	uint8_t max_retries;
	uint8_t mras;
	uint32_t repeats;	     /* since it began, for operators */
	struct cm_repeat repeat;     /* of the message that waits for an answer */
	uint64_t mra_until;	     /* the peer has asked to wait until then */
	uint8_t mad[IBCM_MAD_BYTES]; /* that is repeated */
};

struct ib_id {
	/* the client's side */
	uint32_t index, number; /* number 0: an orphan */
	struct ib_account *account;
	struct ib_node in_account, in_user, in_all; /* orphans */
	struct ib_channel *channel;
	struct ib_node in_channel;
	uint32_t space;
	uint8_t service; /* HCA_ST_* */
	uint32_t state;	 /* enum hca_ctl_cm_state */
	uint64_t since;
	struct hca_ctl_cm_addr src, dst;
	uint32_t port_space;  /* of its port: a bound id of space IB may have one of another */
	uint64_t dst_service; /* family IB: the service ID that it connects to */
	bool has_way;
	struct ibcm_way way;
	uint32_t gid_index; /* HCA_CTL_CM_NO_GID */
	bool reuse, af_only, has_ack_timeout;
	uint8_t ack_timeout, tos;
	uint32_t qkey;
	uint32_t ticket; /* of the resolution that is awaited */
	struct ib_node events;
	uint32_t nevents;
	struct ib_node members;
	struct ib_port *port;
	struct ib_node in_port;
	/* LISTENING */
	uint32_t backlog, waiting;
	struct ib_node requests; /* ids whose CONNECT_REQUEST waits */
	struct ib_heap most;	 /* struct ib_wait by their number of requests */
	/* of a request */
	struct ib_id *listener; /* while its event waits */
	struct ib_node in_listener, in_wait;
	struct ib_wait *wait;
	uint64_t arrival;
	/* the protocol */
	enum ib_phase phase;
	struct ib_connection c;
	struct ib_timer timer;
	struct ib_link by_comm, by_remote, by_qpn;
	struct ib_peer *half; /* the address that has it as a half */
	struct ib_node in_half;
};

struct ib_slot {
	struct ib_id *id;
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
};

struct ibcm {
	struct ibcm_config cfg;
	struct ib_counters counters;
	uint64_t seed;
	bool dead;
	struct ib_slot *slot;
	uint32_t slots, free_first, free_last, ids, orphans;
	struct ib_hash users, accounts, channels, ports, comms, remotes, qpns, waits, groups,
		members;
	struct ib_node all_orphans;
	uint32_t ports_used[IB_SPACES]; /* ports of the range that ports are chosen from */
	struct ib_heap timers;
	struct cm_share share; /* of halves */
	void *shares;	       /* its memory */
	struct ib_peer *peer;  /* by the rows of share */
	uint64_t arrivals;     /* of requests */
	uint32_t memberships, next_member;
	struct hca_ctl_gid *gid;
	uint32_t gids;
};

/* An operation of a client. */
struct ib_op {
	struct ibcm *cm;
	const struct ibcm_client *client;
	uint64_t now;
	const char *why;
};

/* ib_why.c: set the reason in *op, until the thread's next one, and return an error. */
int ib_op_fail(struct ib_op *op, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* -EINVAL: the state of the id is wrong for the operation. rule: the state that is right. */
int ib_op_state(struct ib_op *op, const struct ib_id *id, const char *rule);
/* 0, or -EINVAL: more private data than the message holds. */
int ib_op_private(struct ib_op *op, uint32_t bytes, uint32_t max);
/* -EAFNOSUPPORT */
int ib_op_family(struct ib_op *op, const struct hca_ctl_cm_addr *addr);
/* err, with the address in front of the rule */
int ib_op_address(struct ib_op *op, int err, const struct hca_ctl_cm_addr *addr, const char *rule);
#define IB_DEAD "the HCA is dead: the log of its process has the reason; restart that process"
/* The reason for an allocation that has failed: a literal. */
#define IB_NO_MEMORY(object) \
	"no memory for " object \
	": raise the limit of the device's process (ulimit -v, cgroup), or " \
	"free memory of the host"

/* ib_id.c: ids, their clients and numbers */
struct ib_id *ib_id_new(struct ibcm *cm, struct ib_account *account, struct ib_channel *channel,
			uint64_t now);
struct ib_id *ib_id_by_number(const struct ibcm *cm, uint32_t number);
/* Of the client; NULL: with the reason in *op. */
struct ib_id *ib_id_get(struct ib_op *op, uint32_t number);
/* Without an owner and a channel; free at once if no connection is left. */
void ib_id_orphan(struct ibcm *cm, struct ib_id *id);
void ib_id_free(struct ibcm *cm, struct ib_id *id);
void ib_id_state(struct ib_id *id, uint32_t state, uint64_t now);
struct ib_account *ib_account_get(struct ibcm *cm, const struct ibcm_client *client);
struct ib_account *ib_account_find(const struct ibcm *cm, uint32_t owner);
/* Is one more id allowed? Evicts orphans at a limit. */
bool ib_account_may(struct ibcm *cm, struct ib_account *account);
void ib_account_drop(struct ibcm *cm, struct ib_account *account);

/* ib_user.c: one more client of the user; NULL: no memory */
struct ib_user *ib_user_get(struct ibcm *cm, uint32_t number);
/* A user with `has` units of a stock may have one more of the units left. */
bool ib_user_may(const struct ibcm *cm, uint32_t has, uint32_t left);
void ib_user_drop(struct ibcm *cm, struct ib_user *user);

/* ib_event.c */
struct ib_channel *ib_channel_get(struct ibcm *cm, struct ib_account *account, uint32_t number);
/* NULL: the client has no ids in a channel of this number. */
struct ib_channel *ib_channel_find(const struct ibcm *cm, uint32_t owner, uint32_t number);
void ib_channel_drop(struct ibcm *cm, struct ib_channel *channel);
/* With the parts that every event has; NULL: no memory, or the id is an orphan. */
struct ib_event *ib_event_new(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status);
/* It waits in the channel of the id. */
void ib_event_post(struct ibcm *cm, struct ib_event *event);
void ib_event_simple(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status);
bool ib_event_waits(const struct ib_id *id, uint32_t type);
void ib_event_clear(struct ib_id *id);
/* Remove the waiting events of a membership that ends. */
void ib_event_clear_group(struct ib_id *id, uint32_t group);
int ib_event_fetch(struct ib_op *op, uint32_t channel, struct hca_ctl_cm_event *out);
void ib_event_move(struct ibcm *cm, struct ib_id *id, struct ib_channel *to);

/* ib_bind.c */
/*
 * service: of an address of family IB. flags: HCA_CTL_CM_REUSE, HCA_CTL_CM_AF_ONLY. After an error
 * the id is as it was.
 */
int ib_bind(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_addr *addr,
	    const struct hca_ctl_cm_service *service, uint32_t flags);
void ib_unbind(struct ibcm *cm, struct ib_id *id);
/* The operation that has bound it fails. */
void ib_bind_undo(struct ib_op *op, struct ib_id *id);
/* It begins to listen: no other id may have the port, even if both may be reused. */
int ib_bind_listens(struct ib_op *op, struct ib_id *id);
/* The listener of a space and port that takes requests for the address: one of its family. */
struct ib_id *ib_bind_listener(const struct ibcm *cm, uint32_t space,
			       const struct hca_ctl_cm_addr *addr);
/* The service ID of its own port */
uint64_t ib_bind_service(const struct ib_id *id);

/* ib_gid.c */
uint32_t ib_gid_find(const struct ibcm *cm, const struct hca_ctl_cm_addr *addr);
/* An address of the family (IB: of either), HCA_CTL_CM_NO_GID: the HCA has none. */
uint32_t ib_gid_any(const struct ibcm *cm, uint16_t family);

/* ib_resolve.c */
int ib_resolve(struct ib_op *op, const struct hca_ctl_cm_resolve *request);
int ib_route(struct ib_op *op, const struct hca_ctl_cm_route *request);
/* The service ID of its destination; 0: it has none */
uint64_t ib_resolve_service(const struct ib_id *id);
void ib_resolve_expired(struct ibcm *cm, struct ib_id *id, uint64_t now);

/* ib_conn.c: connections */
uint64_t ib_time(uint32_t exponent);
/* A number that no connection has; it is in the table by it. */
void ib_conn_number(struct ibcm *cm, struct ib_id *id);
struct ib_id *ib_conn_find(const struct ibcm *cm, uint32_t local_comm);
/* An id of a peer, by its GUID and communication ID, or its GUID and QPN. */
struct ib_id *ib_conn_of_remote(const struct ibcm *cm, const uint8_t gid[16], uint64_t guid,
				uint32_t comm);
struct ib_id *ib_conn_of_qpn(const struct ibcm *cm, const uint8_t gid[16], uint64_t guid,
			     uint32_t qpn);
void ib_conn_know_remote(struct ibcm *cm, struct ib_id *id);
void ib_conn_phase(struct ibcm *cm, struct ib_id *id, enum ib_phase phase);
/* Send, and again until an answer comes. */
void ib_conn_ask(struct ibcm *cm, struct ib_id *id, const struct ib_mad *mad, uint64_t now);
void ib_conn_repeat(struct ibcm *cm, struct ib_id *id);
/* A message of the connection has come: answers go where it came from. */
void ib_conn_follow(struct ib_id *id, const struct ibcm_way *from);
/* The peer needs more time. */
void ib_conn_extend(struct ibcm *cm, struct ib_id *id, uint32_t service_timeout, uint64_t now);
/* The program has to answer a REQ or REP: an MRA goes when the time for that is nearly over. */
void ib_conn_await_program(struct ibcm *cm, struct ib_id *id, uint64_t now);
void ib_conn_dreq(struct ibcm *cm, struct ib_id *id, uint64_t now);
void ib_conn_timewait(struct ibcm *cm, struct ib_id *id, uint64_t now);
/* The connection has ended; an orphan is freed. */
void ib_conn_end(struct ibcm *cm, struct ib_id *id);
/* The peer uses its QP again: if this end was ending the connection it is over. */
bool ib_conn_forgotten(struct ibcm *cm, struct ib_id *id, uint64_t now);
/* The end is DREQ, REJ or an answer, as the phase has it. */
void ib_conn_leave(struct ibcm *cm, struct ib_id *id, uint64_t now);
/* A request is refused: the REJ is kept for its repetitions. */
void ib_conn_refuse(struct ibcm *cm, struct ib_id *id, uint16_t reason, const void *private,
		    uint32_t len, uint64_t now);
/* It is over for the program, which gets the event. */
void ib_conn_over(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status, uint64_t now);
void ib_conn_expired(struct ibcm *cm, struct ib_id *id, uint64_t now);

/* ib_send.c: messages of connections */
void ib_send(struct ibcm *cm, const struct ibcm_way *way, const struct ib_mad *mad);
void ib_send_bytes(struct ibcm *cm, const struct ibcm_way *way, enum ib_mad_type type,
		   const uint8_t mad[IBCM_MAD_BYTES]);
void ib_send_rtu(struct ibcm *cm, const struct ib_id *id);
void ib_send_mra(struct ibcm *cm, struct ib_id *id);
/* The last message of the peer is rejected; it may be repeated from c.mad. */
void ib_send_rej(struct ibcm *cm, struct ib_id *id, uint16_t reason, const void *private,
		 uint32_t len);
/* The REJ that tells a peer that this end does not wait any more. */
void ib_send_rej_timeout(struct ibcm *cm, const struct ib_id *id);
void ib_send_drep(struct ibcm *cm, const struct ibcm_way *way, uint64_t transaction,
		  uint32_t local_comm, uint32_t remote_comm);
/* For a message of no connection. */
void ib_send_rej_of(struct ibcm *cm, const struct ibcm_way *way, uint64_t transaction,
		    uint32_t local_comm, uint32_t remote_comm, enum ib_mad_message message,
		    uint16_t reason, const void *info, uint32_t info_len);

/* ib_connect.c: operations on connections */
int ib_connect(struct ib_op *op, const struct hca_ctl_cm_param *param);
int ib_accept(struct ib_op *op, const struct hca_ctl_cm_param *param);
int ib_reject(struct ib_op *op, const struct hca_ctl_cm_reject *request);
int ib_disconnect(struct ib_op *op, uint32_t number);
int ib_notify(struct ib_op *op, const struct hca_ctl_cm_notify *request);
void ib_established(struct ibcm *cm, struct ib_id *id, bool tell, uint64_t now);

/* ib_sidr.c */
int ib_sidr_connect(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_param *param);
int ib_sidr_answer(struct ib_op *op, struct ib_id *id, uint8_t status,
		   const struct hca_ctl_cm_param *param);

/* A message that has come. */
struct ib_in {
	struct ibcm *cm;
	const struct ibcm_way *from;
	const struct ib_mad *mad;
	uint64_t now;
};

enum ib_drop ib_recv_req(const struct ib_in *in);
enum ib_drop ib_recv_mra(const struct ib_in *in);
enum ib_drop ib_recv_rej(const struct ib_in *in);
enum ib_drop ib_recv_rep(const struct ib_in *in);
enum ib_drop ib_recv_rtu(const struct ib_in *in);
enum ib_drop ib_recv_dreq(const struct ib_in *in);
enum ib_drop ib_recv_drep(const struct ib_in *in);
enum ib_drop ib_recv_sidr_req(const struct ib_in *in);
enum ib_drop ib_recv_sidr_rep(const struct ib_in *in);
enum ib_drop ib_recv_lap(const struct ib_in *in);
enum ib_drop ib_recv_apr(const struct ib_in *in);
/* The connection with this communication ID, if both addresses are right. */
enum ib_drop ib_recv_find(const struct ib_in *in, uint32_t local_comm, struct ib_id **id);

/* ib_request.c: requests of peers at listeners */
/* The partition is the one of this HCA. */
bool ib_request_pkey_is_good(const struct ibcm *cm, uint16_t pkey);
/*
 * The listener that takes the request, with the addresses in its view. One of IP needs a header in
 * the private data that tells the address of the datagram; without such a listener, and without a
 * header, one of family IB has the service ID.
 */
struct ib_id *ib_request_listener(const struct ib_in *in, uint64_t service_id,
				  const uint8_t *private, struct ib_ip *ip);
/*
 * A new id of the listener's client for the request: in the phase, as a half. begin() fills the
 * connection and its CONNECT_REQUEST, which waits then.
 */
enum ib_drop ib_request_take(const struct ib_in *in, struct ib_id *listener, const struct ib_ip *ip,
			     enum ib_phase phase,
			     void (*begin)(const struct ib_in *in, struct ib_id *id,
					   struct ib_event *e));
/* The request is over before the program has answered it. */
void ib_request_gone(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status,
		     uint64_t now);

/* ib_wait.c */
/* The request of the address waits at the listener; false: no memory. */
bool ib_wait_add(struct ibcm *cm, struct ib_id *listener, struct ib_id *request,
		 const uint8_t gid[16]);
/* It waits no longer, or has not waited. */
void ib_wait_drop(struct ibcm *cm, struct ib_id *request);
/* The request to evict for a new one of the address; NULL: the address has most requests. */
struct ib_id *ib_wait_victim(const struct ibcm *cm, const struct ib_id *listener,
			     const uint8_t gid[16]);

/* ib_half.c */
/* False: no memory; ib_half_free() frees the rest. */
bool ib_half_init(struct ibcm *cm);
void ib_half_free(struct ibcm *cm);
/* ib_half_room() makes room. */
bool ib_half_may(const struct ibcm *cm, const uint8_t gid[16], uint32_t user);
/*
 * Room for one more of the address at listeners of the user. Without room the oldest half of this
 * address is evicted, if it is answered or the address has as many as it may; else the oldest one
 * of the address with the most. If that is this one: false.
 */
bool ib_half_room(struct ibcm *cm, const uint8_t gid[16], uint32_t user, uint64_t now);
/* There is room. */
void ib_half_add(struct ibcm *cm, struct ib_id *id, const uint8_t gid[16]);
/* An answered half is kept only for repetitions of the request: it is evicted first. */
void ib_half_hold(struct ib_id *id);
/* It is none any more. */
void ib_half_drop(struct ibcm *cm, struct ib_id *id);

/* ib_attr.c */
int ib_qp_attr(struct ib_op *op, const struct hca_ctl_cm_ask *ask, struct hca_ctl_cm_attr *out);
/* The ack timeout of a QP: a path's lifetime and the time of the other end. */
uint8_t ib_ack_timeout(uint8_t ack_delay, uint8_t lifetime);

/* ib_group.c */
int ib_join(struct ib_op *op, const struct hca_ctl_cm_join *request, uint32_t *number);
int ib_leave(struct ib_op *op, uint32_t number);
void ib_group_forget(struct ibcm *cm, struct ib_id *id);

#endif
