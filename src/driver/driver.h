/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_DRIVER_H
#define DRIVER_DRIVER_H

/*
 * The privileged side of an HCA. It owns every resource number, configures the device with HCR
 * commands, checks that a client accesses only its own objects, and forwards events.
 *
 * Callers: the composition (create, destroy, poll, addresses) and, on behalf of one client each,
 * the control channel (hca_client_*). Calls may be made from any thread. Commands are polled (E =
 * 0); waiting means calling hca_hw.progress(). Errors are 0 or a negative errno;
 * hca_driver_reason() explains them to the calling thread.
 *   -EIO the device is dead or a command timed out; -EINVAL, -ENOMEM, -EBUSY, -EPERM, -ENOENT
 * The driver does not include the device: it uses only its BARs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ops.h"
#include "driver_hw.h"

struct hca_driver;
struct hca_client;

/* Limits of one client; 0 = its share, or that of the device if there are no shares */
struct hca_quota {
	uint32_t qps;
	uint32_t cqs;
	uint32_t mrs;
	uint32_t pds;
	uint32_t channels; /* and files of XRC domains: objects that keep a descriptor open */
	uint64_t mtts;
	uint32_t srqs;
	uint32_t xrcds;
	uint32_t segments; /* of attached memory, which share the windows of the device */
	uint32_t groups;   /* multicast groups */
	uint32_t peers;	   /* imports of peers of UB */
	uint32_t links;	   /* peers of UB, each with channels of its own */
	uint32_t known;	   /* well-known numbers of UB */
	/*
	 * Shares in per cent, 0 = no limit: all clients of a user together may have user_share of
	 * the rest that other users leave, and each client, unless it has a number above,
	 * client_share of the rest of its user. Applies to QPs, CQs, SRQs, XRC domains, regions,
	 * translation entries, PDs, multicast groups, links, well-known numbers and device_bytes.
	 */
	uint32_t user_share, client_share;
};

/*
 * Resolves dgid (network order) to a MAC address; 0 or a negative errno (-ENETUNREACH: no route;
 * -EHOSTUNREACH: the next hop does not answer), which is said in the message of the call. Called by
 * the thread whose call needs the address, without locks of the driver: it may block, and may call
 * hca_driver_set_neigh() and hca_driver_move_neigh(). Calls of other threads proceed.
 */
typedef int (*hca_resolve_fn)(void *arg, uint32_t sgid_index, const uint8_t dgid[16],
			      uint8_t dmac[6]);

/*
 * Chooses the GID entry that packets to dgid (network order) have as their source, by the routes of
 * the host. scope: the kernel interface of a link-local dgid, 0: any. 0, -ENETUNREACH: no route by
 * this HCA's port; -EADDRNOTAVAIL: the interface of the route has no address of that IP version.
 * Callers and locks as those of hca_resolve_fn.
 */
typedef int (*hca_source_fn)(void *arg, const uint8_t dgid[16], uint32_t scope,
			     uint32_t *sgid_index);

struct hca_driver_config {
	uint32_t log_num_qps; /* 0 = the device's limit; also for the other four */
	uint32_t log_num_cqs;
	uint32_t log_num_mpts;
	uint32_t log_num_srqs;
	uint32_t log_num_mtts;
	uint32_t log_eq_size; /* entries per EQ; 0 = by the number of CQs and QPs */
	uint32_t timeout_ms;  /* per command; 0 = 10 s */
	/* 0 = getrandom; otherwise the seed of tags of keys and QPNs, for tests */
	uint64_t seed;
	struct hca_quota quota;
	uint64_t device_bytes; /* device memory for clients' queues; 0 = no limit */
	/*
	 * Called when events are waiting for hca_driver_poll_wait(), because a pipe was full. May
	 * be called from any thread with locks held: it must neither block nor call back. NULL: the
	 * composition polls from time to time.
	 */
	void (*urge)(void *arg);
	void *urge_arg;
	/* called for addresses that are not in the neighbour table; may be NULL */
	hca_resolve_fn resolve;
	/* NULL: the addresses alone decide; embedded HCAs have no routes */
	hca_source_fn source;
	void *resolve_arg; /* of both */
};

int hca_driver_create(const struct hca_hw *hw, const struct hca_driver_config *config,
		      struct hca_driver **drv);

/* Close the remaining clients and destroy the driver. */
void hca_driver_destroy(struct hca_driver *drv);

/* The reason of the last failed call of this thread; never NULL. */
const char *hca_driver_reason(void);

/*
 * Empty the event queues and forward: completion events to channels, asynchronous events to
 * clients. Returns the number of events. Any thread, also from hca_hw.progress(); if another thread
 * is polling it returns 0 at once.
 */
unsigned int hca_driver_poll(struct hca_driver *drv);
/*
 * The same for the worker that has written the events, which must not be delayed. True: all were
 * forwarded. False: no event was forwarded, because there are many, or one concerns all clients, or
 * another thread is polling.
 */
bool hca_driver_poll_few(struct hca_driver *drv);
/*
 * The same, but waits for other pollers and for control calls that change the targets of events, so
 * that no event is left in the queues. For a thread that forwards events when it is told to; while
 * events are delayed (hca_driver_owed()) it should also poll periodically. Not from
 * hca_hw.progress().
 */
unsigned int hca_driver_poll_wait(struct hca_driver *drv);
/* Number of objects with events that wait for room in a pipe. */
uint32_t hca_driver_owed(struct hca_driver *drv);

/* True after a command has timed out or the device has reported a catastrophic error. */
bool hca_driver_dead(const struct hca_driver *drv);

/* Objects in use, for leak tests */
struct hca_driver_usage {
	uint32_t clients;
	uint32_t pds;
	uint32_t mrs;
	uint32_t cqs;
	uint32_t qps;
	uint32_t channels;
	uint64_t mtts;
	uint32_t srqs;
	uint32_t xrcds;
	/* memory of the driver per QP, including its context in ICM, without its queues */
	uint32_t qp_bytes;
};

void hca_driver_usage(struct hca_driver *drv, struct hca_driver_usage *usage);

/* As a number, the first byte of the EUI-64 on top */
uint64_t hca_driver_node_guid(const struct hca_driver *drv);

/* --- addresses ---------------------------------------------------------------------------- */

/*
 * gid in network order; mac of the port; vlan_id 0xffff = none; ifindex: the kernel interface that
 * has the address or is behind the port, for clients that ask; 0 = none
 */
int hca_driver_set_gid_of(struct hca_driver *drv, uint32_t index, const uint8_t gid[16],
			  const uint8_t mac[6], uint16_t vlan_id, uint32_t ifindex);
static inline int
hca_driver_set_gid(struct hca_driver *drv, uint32_t index, const uint8_t gid[16],
		   const uint8_t mac[6], uint16_t vlan_id)
{
	return hca_driver_set_gid_of(drv, index, gid, mac, vlan_id, 0);
}
/* Tell all clients that the table has changed, though it has not: a fault that tests inject. */
void hca_driver_gid_event(struct hca_driver *drv);
/* Clear an entry; clearing an empty one is no error. */
int hca_driver_clear_gid(struct hca_driver *drv, uint32_t index);
/*
 * Enter a static neighbour, which answers and claims of others never change: a destination, or the
 * next hop of destinations.
 */
int hca_driver_set_neigh(struct hca_driver *drv, const uint8_t gid[16], const uint8_t mac[6]);
/* The MAC address of a static neighbour; false: there is no such entry. */
bool hca_driver_get_neigh(struct hca_driver *drv, const uint8_t gid[16], uint8_t mac[6]);
/*
 * Set a new MAC address of a neighbour on the VLAN of that GID: connected QPs use it at once.
 * Unlike hca_driver_set_neigh() this does not add it to the table: config.resolve is called again
 * next time. Static neighbours are not changed.
 */
int hca_driver_move_neigh(struct hca_driver *drv, uint32_t sgid_index, const uint8_t gid[16],
			  const uint8_t mac[6]);
/*
 * Set the state of the port; it is replaced when the device reports a change, before or after this
 * call.
 */
int hca_driver_set_port(struct hca_driver *drv, const struct hca_ctl_port *port);

/* --- transport channels of UB ----------------------------------------------------------------- */

/*
 * TPs and groups are the host's: its agent makes them. The contexts have the form of the mailbox
 * (abi_tp.h); MAC addresses of the path are the driver's. Any thread. -EINVAL: the device does not
 * take it, or there is no such TP or group; -EBUSY: not in the state for it; -EOPNOTSUPP: the
 * device does not speak UB; -ENOMEM; create also returns errors of config.resolve.
 */
struct hca_tpc;
/*
 * tpc->tpn: its number, which the peer must get before: a tag above an index of log2 of the TPs
 * bits, not 0; -EBUSY: there is a TP of that index. 0: the driver draws it and sets tpc->tpn.
 */
int hca_driver_create_tp(struct hca_driver *drv, struct hca_tpc *tpc);
/* The same with a known MAC address of the next hop: config.resolve is not called. */
int hca_driver_create_tp_to(struct hca_driver *drv, struct hca_tpc *tpc, const uint8_t dmac[6]);
int hca_driver_modify_tp(struct hca_driver *drv, uint32_t tpn, const struct hca_tpc *tpc);
int hca_driver_query_tp(struct hca_driver *drv, uint32_t tpn, struct hca_tpc *tpc);
/* When it returns, no packet of the TP is accepted or sent any more. */
int hca_driver_destroy_tp(struct hca_driver *drv, uint32_t tpn);
/* Numbers of at most max TPs with indexes from `from` on, ascending; returns how many. */
unsigned int hca_driver_list_tps(struct hca_driver *drv, uint32_t from, uint32_t *tpns,
				 unsigned int max);
/* Its index, by which it is listed. */
uint32_t hca_driver_tp_index(const struct hca_driver *drv, uint32_t tpn);
/* 1 to HCA_TPG_MAX_TPS TPs to one peer, none of which is in another group. */
int hca_driver_create_tpg(struct hca_driver *drv, const uint32_t *tpns, uint32_t count,
			  uint32_t *group);
int hca_driver_change_tpg(struct hca_driver *drv, uint32_t group, const uint32_t *tpns,
			  uint32_t count);
int hca_driver_destroy_tpg(struct hca_driver *drv, uint32_t group);
/*
 * Whether Jettys of the client with that UAR page may use the group, until it is gone. Imports of
 * peers set this; the call is for users without an agent.
 */
int hca_driver_permit_tpg(struct hca_driver *drv, uint32_t uar, uint32_t group, bool may);

/*
 * The agent that sets channels up for clients. Its functions are called with locks of the driver
 * held: they must neither block nor call back. owner: the UAR page of a client. Errors are negative
 * errnos.
 */
struct hca_driver_import {
	uint32_t owner, user;
	uint8_t own[16], peer[16]; /* EIDs */
	struct hca_ctl_ah ah;	   /* the way from one to the other */
};

#define HCA_DRIVER_NO_TPG UINT32_MAX

struct hca_driver_agent {
	/* -EBUSY: the user must give back imports whose channels have ended. */
	int (*import)(void *arg, const struct hca_driver_import *request, uint32_t *number);
	/* 0: *tpg may be used, *first: this has not been said of it before; -EINPROGRESS: later;
	 * another error: *why */
	int (*query)(void *arg, uint32_t owner, uint32_t number, uint32_t *tpg, bool *first,
		     const char **why);
	/* *tpg: the group that query() has returned for it, or HCA_DRIVER_NO_TPG. The number of
	 * the group is not that of another peer's before the caller has released the driver's
	 * lock. *was: the peer that had been imported, without the way to it. */
	int (*unimport)(void *arg, uint32_t owner, uint32_t number, uint32_t *tpg,
			struct hca_driver_import *was);
	/* How many links there can be: one between an address of this host and a peer. */
	uint32_t (*links)(void *arg);
	/* The client ends: all that it has imported. */
	void (*forget)(void *arg, uint32_t owner);
	/* The TP is in ERROR. Also from workers. */
	void (*event)(void *arg, uint32_t tpn);
	/* Its counter i; NULL: there are no more. */
	const char *(*counter)(void *arg, uint32_t i, uint64_t *value);
};

/* NULL: no agent; when it returns, no function of the former one is called any more. */
void hca_driver_set_agent(struct hca_driver *drv, const struct hca_driver_agent *agent, void *arg);
/* Counter i of the agent; NULL: there are no more, or no agent. */
const char *hca_driver_agent_counter(struct hca_driver *drv, uint32_t i, uint64_t *value);
/* log2 of the TPs, and the code of the largest MTU; -EOPNOTSUPP: the device does not speak UB. */
int hca_driver_ub_limits(struct hca_driver *drv, uint32_t *log_tps, uint32_t *mtu_code);

/* --- connection management ------------------------------------------------------------------- */

struct hca_driver_cm_caller {
	uint32_t owner; /* its UAR page: no other client has it at the same time */
	uint32_t user;
};

/*
 * Implements the operations CM_* of clients (abi_ops.h). All are called with the lock of the driver
 * held, by any thread: they must neither block nor call the driver, but for hca_driver_cm_event().
 */
struct hca_driver_cm {
	/* 0 or a negative errno, with *why. Channels that the request names exist. */
	int (*call)(void *arg, const struct hca_driver_cm_caller *caller, enum hca_ctl_op op,
		    const void *request, void *answer, const char **why);
	/* The client ends: all ids of it. */
	void (*forget)(void *arg, uint32_t owner);
	/*
	 * DESTROY_CHANNEL: the ids that are in the channel of the client end, as Linux destroys
	 * those of a file that is closed. The number of the channel may be given out again.
	 */
	void (*channel)(void *arg, uint32_t owner, uint32_t channel);
	/* An entry of the GID table has changed; valid 0: it is empty. */
	void (*gid)(void *arg, uint32_t index, const struct hca_ctl_gid *gid);
	/* Its counter i; NULL: there are no more. */
	const char *(*counter)(void *arg, uint32_t i, uint64_t *value);
};

/*
 * The QP takes the datagrams that are sent to QPN 1, with the Q_Key of management whatever its own
 * is; 0: no QP does any more, and they are dropped. The QP is a privileged client's of service UD,
 * has left RESET, and was created with source HCA_QPN_GSI, so that its own leave from QPN 1.
 * Completions in a CQ of large CQEs tell VLAN and MAC address of their senders. It ends with the
 * QP. Any thread.
 *
 * @return
 *   0; -EINVAL: a QP of another kind; -EBUSY: another QP has this role; -EIO
 */
int hca_driver_set_gsi(struct hca_driver *drv, uint32_t qpn);

/* The GID table is told at once. NULL: operations are refused; no function is called any more. */
void hca_driver_set_cm(struct hca_driver *drv, const struct hca_driver_cm *cm, void *arg);
/*
 * An event waits in the channel of the client: a record HCA_CTL_EVENT_CM is written into its pipe.
 * To be called when the first one begins to wait, and when CM_EVENT has fetched one and others
 * wait. A pipe that is full has been readable before: nothing is lost. Any thread.
 */
void hca_driver_cm_event(struct hca_driver *drv, uint32_t owner, uint32_t channel);
/*
 * Counter i of connection management; NULL: i is too large, or the HCA has no connection
 * management.
 */
const char *hca_driver_cm_counter(struct hca_driver *drv, uint32_t i, uint64_t *value);

/* --- for operators ---------------------------------------------------------------------------- */

/*
 * Objects of all owners. Lists are read piecewise: a call writes at most max entries with indexes
 * from `from` on, ascending, and returns their number; continue after the last index. Objects may
 * be created and destroyed between two calls.
 */
struct hca_driver_client_info {
	uint32_t index; /* its UAR page and DMA domain */
	uint32_t qps, cqs, mrs, pds, srqs, xrcds, channels, segments;
	uint32_t peers, links, known; /* of UB */
	uint64_t mtts;
	char release[32]; /* of its libsofthca; empty: it did not say */
};
unsigned int hca_driver_list_clients(struct hca_driver *drv, uint32_t from,
				     struct hca_driver_client_info *out, unsigned int max);

struct hca_driver_mr_info {
	uint32_t index; /* of its MPT entry */
	uint32_t key;
	uint32_t owner; /* UAR page, 0 = the driver */
	uint32_t pdn;
	uint32_t access;
	uint64_t va, length, page_size;
	bool queue;  /* memory of a queue */
	bool window; /* a memory window: only key and PD are valid */
	bool null;   /* a null region */
};
unsigned int hca_driver_list_mrs(struct hca_driver *drv, uint32_t from,
				 struct hca_driver_mr_info *out, unsigned int max);

struct hca_driver_qp_info {
	uint32_t index; /* index bits of the QPN */
	uint32_t qpn;
	uint32_t owner; /* UAR page */
	uint32_t service;
	uint32_t pdn, send_cqn, recv_cqn, srqn; /* 0: none */
};
unsigned int hca_driver_list_qps(struct hca_driver *drv, uint32_t from,
				 struct hca_driver_qp_info *out, unsigned int max);
/* Whether the QP is the composition's own, so that lists do not have it. */
bool hca_driver_is_host_qp(struct hca_driver *drv, uint32_t qpn);
/* As the operation QUERY_QP, for any QP. */
int hca_driver_query_qp(struct hca_driver *drv, uint32_t qpn, void *mailbox);

/* As the operation RESOLVE; only with `ask` config.resolve is called, and may block. */
int hca_driver_resolve(struct hca_driver *drv, bool ask, struct hca_ctl_ah *ah);
/*
 * Find the GID entry to send to dgid from. An own address is reached from itself. scope: the kernel
 * interface of a link-local dgid, 0: any. May block as config.source does; no lock may be held.
 * Without config.source: the entry of the same IP version with the longest common prefix; a
 * link-local one only to a link-local destination.
 *
 * @return 0; -ENETUNREACH: there is no route; -EADDRNOTAVAIL: no entry can be the source; or
 *   another error of config.source
 */
int hca_driver_source(struct hca_driver *drv, const uint8_t dgid[16], uint32_t scope,
		      uint32_t *sgid_index);
/* out->valid is 0 if the entry is empty; -EINVAL: no such index. */
int hca_driver_query_gid(struct hca_driver *drv, uint32_t index, struct hca_ctl_gid *out);
uint32_t hca_driver_gid_entries(const struct hca_driver *drv);
void hca_driver_query_port(struct hca_driver *drv, struct hca_ctl_port *out);

/* --- clients -------------------------------------------------------------------------------- */

/*
 * A client has one UAR page and one DMA domain. privileged: may send management datagrams (Q_Keys
 * with the top bit set, QPNs 0 and 1).
 */
struct hca_client_who {
	uint32_t user; /* clients of a user share quotas */
	bool privileged;
	bool host; /* of the composition itself: not in usage and lists, but for UB's Jettys */
};

/* Open a client of a user; NULL: of no user. */
int hca_client_open(struct hca_driver *drv, const struct hca_client_who *who,
		    struct hca_client **client);

/* Destroy everything the client owns, in the right order, also under traffic. */
void hca_client_close(struct hca_client *client);

/*
 * Allow the device to access memory of the client; all pages it registers must lie inside. In
 * embedded use one segment covers the user half of the address space.
 */
int hca_client_attach(struct hca_client *client, uint64_t bus, uint64_t len);

/* The client's doorbell page, 4 KiB of BAR2 */
volatile void *hca_client_uar(struct hca_client *client);

/*
 * Carry out an operation of a client. Called by the control channel, from any thread.
 *
 * request, answer: of the types in the row of op (abi_ops.h), NULL for struct hca_ctl_none; extra:
 * needed by rows with descriptors or page lists, otherwise NULL. Returns 0 or a negative errno:
 * -EINVAL also for an operation of the channel itself, -EACCES if op needs a privileged client.
 */
int hca_client_call(struct hca_client *client, enum hca_ctl_op op, const void *request,
		    void *answer, struct hca_ctl_extra *extra);

#endif
