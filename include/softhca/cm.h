/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_CM_H
#define SOFTHCA_CM_H

/*
 * Connection management: connect queue pairs by IP address and port, after librdmacm. The daemon
 * (embedded: the process) speaks the InfiniBand CM (IBTA volume 1, chapter 12, and the RDMA IP CM
 * service of annex A11) on QP 1 of the HCA, so peers may be HCAs of any vendor. It owns the ids,
 * ports and connections. When the program ends it destroys them and sends their peers a DREQ or
 * REJ.
 *
 * An id is one end of a connection, a listener, or one end of datagrams. A call begins an
 * operation, which ends with an event, and returns at once; the event waits in the channel of the
 * id. As in librdmacm:
 *
 *	client: create_id, resolve_addr -> ADDR_RESOLVED, resolve_route -> ROUTE_RESOLVED, QP made,
 *	        connect -> CONNECT_RESPONSE, QP to RTR and RTS by init_qp_attr, establish
 *	server: create_id, bind, listen -> CONNECT_REQUEST with a new id, QP made and brought to
 *	        RTR and RTS by init_qp_attr, accept -> ESTABLISHED
 *	both:   disconnect -> DISCONNECTED
 *
 * The program owns its QPs and changes their states itself; softhca_cm_modify_qp() does it in one
 * call. Calls may be made from any thread; they return 0 or a negative errno, with
 * softhca_last_error(). Addresses are struct sockaddr_in, sockaddr_in6 and softhca_sockaddr_ib.
 */

#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include <softhca/softhca.h>

#ifdef __cplusplus
extern "C" {
#endif

enum softhca_cm_space {
	SOFTHCA_CM_IPOIB = 0x0002,
	SOFTHCA_CM_TCP = 0x0106, /* connections */
	SOFTHCA_CM_UDP = 0x0111, /* datagrams: SIDR, and multicast */
	SOFTHCA_CM_IB = 0x013f,
};

/*
 * An address of family AF_IB (27): a GID, which an HCA has for each of its IP addresses, and a
 * service ID in the place of the port. The layout is that of rdma-core's struct sockaddr_ib, and
 * numbers are in network byte order. The messages of such ids have no IP header, so the private
 * data of a connect may be longer by 36 bytes, and only a listener of this family takes them. GID
 * :: is the wildcard, and ::1 is as a loopback address.
 *
 * Of an own address the service ID is a port space in bits 16 to 31 (0x0106, 0x0111, 0x013f) and a
 * port in bits 0 to 15; sid_mask has the bits that are given, and the others are chosen. That of a
 * destination may be any.
 */
struct softhca_sockaddr_ib {
	uint16_t sib_family;   /* AF_IB */
	uint16_t sib_pkey;     /* of a destination: one of the HCA, 0xffff */
	uint32_t sib_flowinfo; /* ignored */
	uint8_t sib_addr[16];
	uint64_t sib_sid;
	uint64_t sib_sid_mask;
	uint64_t sib_scope_id; /* as sin6_scope_id, in host byte order */
};

/* Numbers of enum rdma_cm_event_type. */
enum softhca_cm_event_type {
	SOFTHCA_CM_ADDR_RESOLVED,
	SOFTHCA_CM_ADDR_ERROR,
	SOFTHCA_CM_ROUTE_RESOLVED,
	SOFTHCA_CM_ROUTE_ERROR,
	SOFTHCA_CM_CONNECT_REQUEST,
	SOFTHCA_CM_CONNECT_RESPONSE,
	SOFTHCA_CM_CONNECT_ERROR,
	SOFTHCA_CM_UNREACHABLE,
	SOFTHCA_CM_REJECTED,
	SOFTHCA_CM_ESTABLISHED,
	SOFTHCA_CM_DISCONNECTED,
	SOFTHCA_CM_DEVICE_REMOVAL,
	SOFTHCA_CM_MULTICAST_JOIN,
	SOFTHCA_CM_MULTICAST_ERROR,
	SOFTHCA_CM_ADDR_CHANGE,
	SOFTHCA_CM_TIMEWAIT_EXIT,
};

struct softhca_cm_channel {
	struct softhca_context *context;
	int fd; /* readable when an event waits; poll and epoll; O_NONBLOCK may be set */
};

struct softhca_cm_id {
	struct softhca_cm_channel *channel;
	void *user;	 /* the program's; a new id has that of its listener */
	uint32_t number; /* names the id in the daemon and in softhca-ctl cm */
	uint32_t space;	 /* enum softhca_cm_space */
};

/* Longest private data of each call, in bytes (UD: connect 180, accept 136; AF_IB: see above). */
#define SOFTHCA_CM_CONNECT_PRIVATE 56
#define SOFTHCA_CM_ACCEPT_PRIVATE 196
#define SOFTHCA_CM_REJECT_PRIVATE 148
#define SOFTHCA_CM_PRIVATE_MAX 224 /* of an event */

struct softhca_cm_param {
	const void *private_data;
	uint8_t private_data_len;    /* of an event: length in the message, zero padded */
	uint8_t responder_resources; /* READs and atomics of the peer served at once, 0..255 */
	uint8_t initiator_depth;     /* those of this end */
	uint8_t flow_control;
	uint8_t retry_count;	 /* 0..7; accept: ignored */
	uint8_t rnr_retry_count; /* 0..7 */
	uint8_t srq;
	uint8_t reserved;
	uint32_t qp_num;
	uint32_t qkey;	      /* space UDP; 0: 0x01234567 */
	uint32_t sidr_status; /* accept in space UDP: 0; a refusal: IBTA table 12.11.2 */
	uint32_t ece_vendor, ece_options;
};

struct softhca_cm_event {
	uint32_t type; /* enum softhca_cm_event_type */
	/* a negative errno (ADDR_ERROR, ROUTE_ERROR, CONNECT_ERROR, UNREACHABLE, MULTICAST_ERROR);
	 * REJECTED: the reason of the REJ, or the status of the SIDR answer */
	int32_t status;
	struct softhca_cm_id *id;
	struct softhca_cm_id *listener; /* CONNECT_REQUEST; else NULL */
	uint32_t group;			/* MULTICAST_JOIN, _ERROR: the membership */
	struct softhca_cm_param param;	/* private_data points into data[] */
	/* space UDP (ESTABLISHED, CONNECT_REQUEST) and MULTICAST_JOIN: where param.qp_num is */
	struct softhca_ah_attr ah_attr;
	uint8_t data[SOFTHCA_CM_PRIVATE_MAX];
};

struct softhca_cm_info {
	struct sockaddr_storage src, dst; /* family 0: not known yet */
	uint64_t service_id;
	uint32_t state;	    /* enum hca_ctl_cm_state of the channel; softhca_cm_state_str() */
	int32_t sgid_index; /* -1: none, or all */
	uint32_t path_mtu;  /* enum softhca_mtu */
	uint16_t vlan_id;   /* 0xffff: none */
	uint16_t pkey;
	uint8_t smac[6], dmac[6];
	union softhca_gid sgid, dgid;
	uint8_t port_num;
	uint8_t reserved[7];
};

/**
 * Create a channel of events.
 *
 * @param context  open context
 * @return  the channel; NULL with errno EOPNOTSUPP: the daemon is older than 0.3.0; ENOMEM
 */
SOFTHCA_API struct softhca_cm_channel *softhca_cm_create_channel(struct softhca_context *context);

/**
 * Destroy a channel, all ids in it as softhca_cm_destroy_id() does, and their events.
 *
 * @param channel  channel of events
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_destroy_channel(struct softhca_cm_channel *channel);

/**
 * Create an id.
 *
 * @param channel  channel of events
 * @param space  SOFTHCA_CM_TCP for connections, SOFTHCA_CM_UDP for datagrams
 * @param qp_type  type of its QP: SOFTHCA_QPT_RC, UD (space UDP), UC, XRC_SEND, XRC_RECV
 * @param user  the program's pointer, kept in id->user
 * @return  the id; NULL with errno EINVAL; ENOMEM: the quota of the client or of its user is used
 *   up
 */
SOFTHCA_API struct softhca_cm_id *softhca_cm_create_id(struct softhca_cm_channel *channel,
						       enum softhca_cm_space space,
						       enum softhca_qp_type qp_type, void *user);

/**
 * Destroy an id and its events. The peer of an established connection gets a DREQ, the peer of one
 * that is not established yet a REJ. A request that was not accepted is rejected.
 *
 * @param id  id
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_destroy_id(struct softhca_cm_id *id);

#define SOFTHCA_CM_REUSEADDR 1u /* ids with this flag may share a port */
#define SOFTHCA_CM_AFONLY 2u	/* :: does not include 0.0.0.0 */

/**
 * Give an id an address of the HCA, or all addresses (the wildcards), and a port.
 *
 * @param id  id
 * @param addr  address and port; port 0: the daemon chooses one
 * @param flags  SOFTHCA_CM_REUSEADDR, SOFTHCA_CM_AFONLY
 * @return  0; -EADDRNOTAVAIL: the HCA does not have this address; -EADDRINUSE: another id has the
 *   port; -EAFNOSUPPORT: another address family; -EINVAL: the id has an address; AF_IB:
 *   -EPROTONOSUPPORT: the service ID is of no port space of the id; -EOPNOTSUPP: the daemon is of
 *   an older release
 */
SOFTHCA_API int softhca_cm_bind(struct softhca_cm_id *id, const struct sockaddr *addr,
				unsigned int flags);

/**
 * Find the HCA's source address and the next hop to a destination. ADDR_RESOLVED follows, or
 * ADDR_ERROR with -ENODEV or -ENETUNREACH (no address of this HCA can reach the destination),
 * -EHOSTUNREACH (its next hop does not answer) or -ETIMEDOUT.
 *
 * @param id  id
 * @param src  source address; NULL: the bound one, or the one that the route selects
 * @param dst  destination
 * @param timeout_ms  milliseconds until ADDR_ERROR
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_resolve_addr(struct softhca_cm_id *id, const struct sockaddr *src,
					const struct sockaddr *dst, int timeout_ms);

/**
 * Finish the resolution. ROUTE_RESOLVED follows at once: RoCE has no subnet administration.
 *
 * @param id  id
 * @param timeout_ms  ignored
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_resolve_route(struct softhca_cm_id *id, int timeout_ms);

/**
 * Accept requests for the id's address and port.
 *
 * @param id  id
 * @param backlog  limit of requests that wait for accept or reject; 0: the daemon's limit
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_listen(struct softhca_cm_id *id, int backlog);

/**
 * Send a REQ (space UDP: a SIDR request). CONNECT_RESPONSE (UDP: ESTABLISHED), REJECTED or
 * UNREACHABLE follows.
 *
 * @param id  id
 * @param param  parameters of this end; copied
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_connect(struct softhca_cm_id *id, const struct softhca_cm_param *param);

/**
 * Answer a request. ESTABLISHED follows when the peer's confirmation arrives; space UDP: no event
 * follows.
 *
 * @param id  id
 * @param param  parameters of this end; copied
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_accept(struct softhca_cm_id *id, const struct softhca_cm_param *param);

/**
 * Confirm the connection to the peer (RTU), after CONNECT_RESPONSE and with the QP in RTS.
 *
 * @param id  id
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_establish(struct softhca_cm_id *id);

/**
 * Refuse a request, or an answer (CONNECT_RESPONSE).
 *
 * @param id  id
 * @param reason  reason of the REJ, IBTA table 12.6.7.2
 * @param data  private data, or NULL
 * @param len  bytes of data, at most SOFTHCA_CM_REJECT_PRIVATE
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_reject(struct softhca_cm_id *id, uint8_t reason, const void *data,
				  uint8_t len);

/**
 * End a connection, or answer the peer's DREQ. DISCONNECTED follows at both ends.
 *
 * @param id  id
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_disconnect(struct softhca_cm_id *id);

/**
 * Report SOFTHCA_EVENT_COMM_EST of the QP: data arrived before the peer's confirmation.
 *
 * @param id  id
 * @param event  SOFTHCA_EVENT_COMM_EST
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_notify(struct softhca_cm_id *id, uint32_t event);

/**
 * Get the attributes with which the QP moves to a state.
 *
 * @param id  id
 * @param qp_state  enum softhca_qp_state: INIT, RTR or RTS
 * @param attr  attributes for softhca_modify_qp()
 * @param attr_mask  their mask
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_init_qp_attr(struct softhca_cm_id *id, uint32_t qp_state,
					struct softhca_qp_attr *attr, uint32_t *attr_mask);

/**
 * Move a QP to a state with the attributes of softhca_cm_init_qp_attr(): from RESET to INIT, from
 * INIT to RTR and RTS.
 *
 * @param id  id
 * @param qp  queue pair
 * @param qp_state  enum softhca_qp_state
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_modify_qp(struct softhca_cm_id *id, struct softhca_qp *qp,
				     uint32_t qp_state);

/* Options of an id: see softhca_cm_set_option(). */
enum softhca_cm_option {
	SOFTHCA_CM_OPTION_TOS,
	SOFTHCA_CM_OPTION_REUSEADDR,
	SOFTHCA_CM_OPTION_AFONLY,
	SOFTHCA_CM_OPTION_ACK_TIMEOUT,
};

/**
 * Set an option of an id before it connects.
 *
 * @param id  id
 * @param option  option
 * @param value  type of service; 0 or 1; or an ack timeout of 4.096 us * 2^value
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_set_option(struct softhca_cm_id *id, enum softhca_cm_option option,
				      uint32_t value);

/**
 * Read the addresses, the state and the path of an id.
 *
 * @param id  id
 * @param info  result
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_query(struct softhca_cm_id *id, struct softhca_cm_info *info);

/**
 * Move an id with its waiting events to another channel of the same context.
 *
 * @param id  id
 * @param channel  the new channel
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_migrate(struct softhca_cm_id *id, struct softhca_cm_channel *channel);

/* flags of softhca_cm_join(): the program sends to the group and does not receive */
#define SOFTHCA_CM_SEND_ONLY 1u

/**
 * Join the group of an IP multicast address. The daemon announces the membership on the port by
 * IGMP or MLD. MULTICAST_JOIN follows with the address for softhca_attach_mcast() (ah_attr.dgid)
 * and for sending. A second join of a group is a second membership.
 *
 * @param id  id
 * @param addr  multicast address
 * @param flags  SOFTHCA_CM_SEND_ONLY, or 0
 * @param group  number of the membership
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_join(struct softhca_cm_id *id, const struct sockaddr *addr,
				unsigned int flags, uint32_t *group);

/**
 * End a membership.
 *
 * @param id  id
 * @param group  number from softhca_cm_join()
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_cm_leave(struct softhca_cm_id *id, uint32_t group);

/**
 * Fetch the next event. Blocks unless channel->fd is O_NONBLOCK. The program owns the new id of a
 * CONNECT_REQUEST and destroys it. Events need no acknowledgement. If another thread destroys an
 * id, its waiting events may be lost.
 *
 * @param channel  channel of events
 * @param event  event
 * @return  0; -EAGAIN: no event waits (O_NONBLOCK); -EINTR: a signal handler has run; -EIO: the
 *   device is dead, after one DEVICE_REMOVAL for each id; -ENOMEM: a CONNECT_REQUEST was refused,
 *   as there is no memory for its id
 */
SOFTHCA_API int softhca_cm_get_event(struct softhca_cm_channel *channel,
				     struct softhca_cm_event *event);

/**
 * Name of an event type.
 *
 * @param type  enum softhca_cm_event_type
 * @return  a constant string, never NULL
 */
SOFTHCA_API const char *softhca_cm_event_str(uint32_t type);

/**
 * Name of a state of an id.
 *
 * @param state  state from softhca_cm_query()
 * @return  a constant string, never NULL
 */
SOFTHCA_API const char *softhca_cm_state_str(uint32_t state);

#ifdef __cplusplus
}
#endif

#endif
