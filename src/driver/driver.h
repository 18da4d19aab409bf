/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_DRIVER_H
#define DRIVER_DRIVER_H

/*
 * The privileged side of an HCA: owns every resource number, talks to the device through HCR
 * commands, checks that a client touches only what is its own, forwards events.
 *
 * Callers: the composition (create, destroy, poll, addresses) and, on behalf of one client each,
 * the control channel (hca_client_*). Every call is thread safe. Commands are polled (E = 0) and
 * wait by calling hca_hw.progress(); none sleeps on anything else. Errors: 0 or negative errno,
 * and a sentence in hca_driver_reason() for the calling thread.
 *   -EIO command timed out or the device is dead; -EINVAL, -ENOMEM, -EBUSY, -EPERM, -ENOENT
 * Nothing here includes the device: it is known by BAR memory only.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ops.h"
#include "driver_hw.h"

struct hca_driver;
struct hca_client;

/* Per client; 0 = its share, or whatever the device has where there are no shares */
struct hca_quota {
	uint32_t qps;
	uint32_t cqs;
	uint32_t mrs;
	uint32_t pds;
	uint32_t channels;
	uint64_t mtts;
	uint32_t srqs;
	uint32_t xrcds;
	uint32_t segments; /* of memory, which share the windows of the device */
	uint32_t groups;   /* multicast */
	/*
	 * Per cent, 0 = no limit: of what nobody else has all clients of a user may have so much,
	 * and of what is left to its user each client, where it has no number above. Of QPs, CQs,
	 * SRQs, XRC domains, regions, translation entries, PDs, multicast groups, device_bytes.
	 */
	uint32_t user_share, client_share;
};

/*
 * dgid in network order -> destination MAC; 0 or negative errno (-EHOSTUNREACH). Called by the
 * thread whose call needs the address, without any lock of the driver: it may take its time, and
 * may call hca_driver_set_neigh() and hca_driver_move_neigh(). Others go on meanwhile.
 */
typedef int (*hca_resolve_fn)(void *arg, uint32_t sgid_index, const uint8_t dgid[16],
			      uint8_t dmac[6]);

struct hca_driver_config {
	uint32_t log_num_qps; /* 0 = the device's limit; so the other four */
	uint32_t log_num_cqs;
	uint32_t log_num_mpts;
	uint32_t log_num_srqs;
	uint32_t log_num_mtts;
	uint32_t log_eq_size; /* entries per EQ; 0 = by the number of CQs and QPs */
	uint32_t timeout_ms;  /* per command; 0 = 10 s */
	uint64_t seed;	      /* 0 = getrandom; else key and QPN tags follow it (tests) */
	struct hca_quota quota;
	uint64_t device_bytes; /* memory of the device for queues of clients; 0 = no limit */
	/*
	 * Something waits for hca_driver_poll_wait(): events that found a pipe full. From any
	 * thread, with locks held: it must not block nor call back. NULL: somebody polls by now and
	 * then.
	 */
	void (*urge)(void *arg);
	void *urge_arg;
	hca_resolve_fn resolve; /* asked when the neighbour table has no answer; or NULL */
	void *resolve_arg;
};

int hca_driver_create(const struct hca_hw *hw, const struct hca_driver_config *config,
		      struct hca_driver **drv);

/* Clients that are left are closed. */
void hca_driver_destroy(struct hca_driver *drv);

/* Why the last failed call of this thread failed; never NULL. */
const char *hca_driver_reason(void);

/*
 * Empty the event queues and forward: completion events to channels, asynchronous ones to their
 * client. Returns the number of events. Callable at any time from any thread, also from
 * hca_hw.progress(); a second caller at the same time returns 0 at once.
 */
unsigned int hca_driver_poll(struct hca_driver *drv);
/*
 * The same, for the worker that has written the events, which has better to do: true, all
 * forwarded; false, nothing, as there are many, or some that concern everybody, or another caller
 * is at it.
 */
bool hca_driver_poll_few(struct hca_driver *drv);
/*
 * The same, but waits for the other caller and for control calls that touch what events are
 * forwarded to: nothing that is in the queues is left there. For a thread that forwards events and
 * is told when there are some; while something is owed it should come without being told too. Not
 * from hca_hw.progress().
 */
unsigned int hca_driver_poll_wait(struct hca_driver *drv);
/* Objects with events that wait for room in a pipe. */
uint32_t hca_driver_owed(struct hca_driver *drv);

/* True once a command has timed out or the device has reported a catastrophe. */
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
	uint32_t qp_bytes; /* of the driver per QP, its context in ICM too, without its queues */
};

void hca_driver_usage(struct hca_driver *drv, struct hca_driver_usage *usage);

/* --- addresses ---------------------------------------------------------------------------- */

/* gid in network order; mac of the port; vlan_id 0xffff = none */
int hca_driver_set_gid(struct hca_driver *drv, uint32_t index, const uint8_t gid[16],
		       const uint8_t mac[6], uint16_t vlan_id);
/* Empties an entry; that it was empty already is no error. */
int hca_driver_clear_gid(struct hca_driver *drv, uint32_t index);
int hca_driver_set_neigh(struct hca_driver *drv, const uint8_t gid[16], const uint8_t mac[6]);
/*
 * A neighbour on the VLAN of that GID has another MAC address: connected QPs follow at once. Unlike
 * hca_driver_set_neigh() this does not make it known: config.resolve is asked the next time too.
 * Neighbours that were set stay as they were set.
 */
int hca_driver_move_neigh(struct hca_driver *drv, uint32_t sgid_index, const uint8_t gid[16],
			  const uint8_t mac[6]);
/* The state counts until the device tells of a change, before this call or after it. */
int hca_driver_set_port(struct hca_driver *drv, const struct hca_ctl_port *port);

/* --- for operators ---------------------------------------------------------------------------- */

/*
 * What there is, whoever owns it. Lists are read piecewise: at most max entries whose index is at
 * least `from`, ascending; the next piece begins behind the last index. Between two pieces objects
 * come and go. Return the number of entries written.
 */
struct hca_driver_client_info {
	uint32_t index; /* its UAR page, = DMA domain */
	uint32_t qps, cqs, mrs, pds, srqs, xrcds, channels, segments;
	uint64_t mtts;
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
	bool window; /* a memory window: key and PD only */
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
/* As the operation QUERY_QP, for any QP. */
int hca_driver_query_qp(struct hca_driver *drv, uint32_t qpn, void *mailbox);

/* -EINVAL: no such index. out->valid 0: the entry is empty. */
int hca_driver_query_gid(struct hca_driver *drv, uint32_t index, struct hca_ctl_gid *out);
uint32_t hca_driver_gid_entries(const struct hca_driver *drv);
void hca_driver_query_port(struct hca_driver *drv, struct hca_ctl_port *out);

/* --- clients -------------------------------------------------------------------------------- */

/*
 * One client = one UAR page = one DMA domain. privileged: may send management datagrams (Q_Keys
 * with the top bit, QPNs 0 and 1).
 */
struct hca_client_who {
	uint32_t user; /* whose clients share quotas */
	bool privileged;
};

/* who NULL: nobody in particular */
int hca_client_open(struct hca_driver *drv, const struct hca_client_who *who,
		    struct hca_client **client);

/* Destroys everything the client owns, in the right order, under traffic. */
void hca_client_close(struct hca_client *client);

/*
 * Memory the client may let the device touch, until the client is closed; every page it registers
 * must lie inside. In embedded use one segment covers the user half of the address space.
 */
int hca_client_attach(struct hca_client *client, uint64_t bus, uint64_t len);

/* Its doorbell page, 4 KiB inside BAR2 */
volatile void *hca_client_uar(struct hca_client *client);

/*
 * Carry out an operation of a client: op, request, answer and extra as the row of op in abi_ops.h
 * says; NULL where it has nothing. Callers: the control channel, on behalf of the client. Rows
 * answered by the channel itself are -EINVAL. -EACCES: op is for privileged clients.
 */
int hca_client_call(struct hca_client *client, enum hca_ctl_op op, const void *request,
		    void *answer, struct hca_ctl_extra *extra);

#endif
