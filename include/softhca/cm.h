/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_CM_H
#define SOFTHCA_CM_H

/*
 * Connection management: connect queue pairs by IP address and port, after librdmacm. The daemon
 * (embedded: the process) speaks the InfiniBand CM (IBTA volume 1, chapter 12, and the RDMA IP CM
 * service of annex A11) on QP 1 of the HCA, so peers may be of any make. It has the ids, ports and
 * connections; they end with the program, and its peers are told.
 *
 * An id is one end of a connection, a listener, or one end of datagrams. Its calls begin what ends
 * with an event, and return at once; each event waits in the channel of its id. As in librdmacm:
 *
 *	client: create_id, resolve_addr -> ADDR_RESOLVED, resolve_route -> ROUTE_RESOLVED, QP made,
 *	        connect -> CONNECT_RESPONSE, QP to RTR and RTS by init_qp_attr, establish
 *	server: create_id, bind, listen -> CONNECT_REQUEST with a new id, QP made and brought to
 *	        RTR and RTS by init_qp_attr, accept -> ESTABLISHED
 *	both:   disconnect -> DISCONNECTED
 *
 * The program owns its QPs and changes their states itself; softhca_cm_modify_qp() does it in one
 * call. Calls may be made from any thread; they return 0 or a negative errno, with
 * softhca_last_error(). Addresses are struct sockaddr_in and sockaddr_in6.
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

/* Longest private data of each call, in bytes (space TCP; UDP: connect 180 - 36, accept 136). */
#define SOFTHCA_CM_CONNECT_PRIVATE 56
#define SOFTHCA_CM_ACCEPT_PRIVATE 196
#define SOFTHCA_CM_REJECT_PRIVATE 148
#define SOFTHCA_CM_PRIVATE_MAX 224 /* of an event */

struct softhca_cm_param {
	const void *private_data;
	uint8_t private_data_len;    /* of an event: as the message has it, with zeros behind */
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

/** Make a channel of events. NULL with errno: EOPNOTSUPP of a daemon older than 0.3.0; ENOMEM. */
SOFTHCA_API struct softhca_cm_channel *softhca_cm_create_channel(struct softhca_context *context);

/** Destroy a channel, all ids in it (as softhca_cm_destroy_id()) and their events. */
SOFTHCA_API int softhca_cm_destroy_channel(struct softhca_cm_channel *channel);

/**
 * Make an id.
 *
 * @param qp_type  of its QP: SOFTHCA_QPT_RC, UD (space UDP), UC, XRC_SEND, XRC_RECV
 * @return  the id; NULL with errno EINVAL, ENOMEM: the client or its user has all it may have
 */
SOFTHCA_API struct softhca_cm_id *softhca_cm_create_id(struct softhca_cm_channel *channel,
						       enum softhca_cm_space space,
						       enum softhca_qp_type qp_type, void *user);

/**
 * Destroy an id and its events. A connection ends: the peer gets a DREQ, or a REJ where it is not
 * established yet; a request that was not accepted is rejected.
 */
SOFTHCA_API int softhca_cm_destroy_id(struct softhca_cm_id *id);

#define SOFTHCA_CM_REUSEADDR 1u /* another id that has this flag, too, may have the port */
#define SOFTHCA_CM_AFONLY 2u	/* :: is not 0.0.0.0, too */

/**
 * Give an id an address of the HCA, or all (the wildcards), and a port; 0: one is chosen.
 *
 * @return  0; -EADDRNOTAVAIL: not an address of this HCA; -EADDRINUSE; -EAFNOSUPPORT; -EINVAL: it
 *   has an address
 */
SOFTHCA_API int softhca_cm_bind(struct softhca_cm_id *id, const struct sockaddr *addr,
				unsigned int flags);

/**
 * Find the HCA's address and the way to a destination: ADDR_RESOLVED, or ADDR_ERROR with -ENODEV or
 * -ENETUNREACH (no address of this HCA can reach it), -EHOSTUNREACH (its next hop does not answer),
 * -ETIMEDOUT.
 *
 * @param src  NULL: as it is bound, or by the route
 */
SOFTHCA_API int softhca_cm_resolve_addr(struct softhca_cm_id *id, const struct sockaddr *src,
					const struct sockaddr *dst, int timeout_ms);

/** ROUTE_RESOLVED follows: RoCE has no subnet administration to ask. */
SOFTHCA_API int softhca_cm_resolve_route(struct softhca_cm_id *id, int timeout_ms);

/** Take requests for the id's address and port; at most backlog wait, 0: as many as allowed. */
SOFTHCA_API int softhca_cm_listen(struct softhca_cm_id *id, int backlog);

/**
 * Send a REQ (space UDP: a SIDR request). CONNECT_RESPONSE (UDP: ESTABLISHED), REJECTED or
 * UNREACHABLE follows.
 */
SOFTHCA_API int softhca_cm_connect(struct softhca_cm_id *id, const struct softhca_cm_param *param);

/** Answer a request. ESTABLISHED follows when the peer has confirmed; UDP: nothing does. */
SOFTHCA_API int softhca_cm_accept(struct softhca_cm_id *id, const struct softhca_cm_param *param);

/** After CONNECT_RESPONSE, with the QP in RTS: tell the peer (RTU). The id is established. */
SOFTHCA_API int softhca_cm_establish(struct softhca_cm_id *id);

/** Refuse a request, or an answer (CONNECT_RESPONSE). */
SOFTHCA_API int softhca_cm_reject(struct softhca_cm_id *id, uint8_t reason, const void *data,
				  uint8_t len);

/** End a connection, or answer the peer's end of it; DISCONNECTED follows at both ends. */
SOFTHCA_API int softhca_cm_disconnect(struct softhca_cm_id *id);

/** Tell of SOFTHCA_EVENT_COMM_EST of the QP: data came before the peer's confirmation. */
SOFTHCA_API int softhca_cm_notify(struct softhca_cm_id *id, uint32_t event);

/** Attributes of the QP on its way to qp_state, with their mask, for softhca_modify_qp(). */
SOFTHCA_API int softhca_cm_init_qp_attr(struct softhca_cm_id *id, uint32_t qp_state,
					struct softhca_qp_attr *attr, uint32_t *attr_mask);

/** Bring a QP in RESET to INIT, in INIT to RTR and RTS, with these attributes. */
SOFTHCA_API int softhca_cm_modify_qp(struct softhca_cm_id *id, struct softhca_qp *qp,
				     uint32_t qp_state);

/** Options of an id before it connects: type of service; ack timeout as 4.096 us * 2^value. */
enum softhca_cm_option {
	SOFTHCA_CM_OPTION_TOS,
	SOFTHCA_CM_OPTION_REUSEADDR,
	SOFTHCA_CM_OPTION_AFONLY,
	SOFTHCA_CM_OPTION_ACK_TIMEOUT,
};
SOFTHCA_API int softhca_cm_set_option(struct softhca_cm_id *id, enum softhca_cm_option option,
				      uint32_t value);

/** Addresses, state and path of an id. */
SOFTHCA_API int softhca_cm_query(struct softhca_cm_id *id, struct softhca_cm_info *info);

/** Move an id with its waiting events to another channel of the same context. */
SOFTHCA_API int softhca_cm_migrate(struct softhca_cm_id *id, struct softhca_cm_channel *channel);

/**
 * Join the group of an IP multicast address, announced on the port by IGMP or MLD. MULTICAST_JOIN
 * follows with the address for softhca_attach_mcast() (ah_attr.dgid) and for sending. A second join
 * is another membership.
 *
 * @param flags  SOFTHCA_CM_SEND_ONLY
 * @param group  number of the membership
 */
#define SOFTHCA_CM_SEND_ONLY 1u
SOFTHCA_API int softhca_cm_join(struct softhca_cm_id *id, const struct sockaddr *addr,
				unsigned int flags, uint32_t *group);
SOFTHCA_API int softhca_cm_leave(struct softhca_cm_id *id, uint32_t group);

/**
 * Fetch the next event. Waits for one unless the channel's fd is O_NONBLOCK (-EAGAIN). The id of a
 * CONNECT_REQUEST is the program's, which destroys it. Events need no acknowledgement; one of an id
 * that another thread destroys may be lost.
 *
 * @return  0; -EAGAIN; -EINTR; -EIO: the device is dead, after DEVICE_REMOVAL for each id
 */
SOFTHCA_API int softhca_cm_get_event(struct softhca_cm_channel *channel,
				     struct softhca_cm_event *event);

/** Names for people; never NULL. */
SOFTHCA_API const char *softhca_cm_event_str(uint32_t type);
SOFTHCA_API const char *softhca_cm_state_str(uint32_t state);

#ifdef __cplusplus
}
#endif

#endif
