/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_TP_H
#define DRIVER_TP_H

/*
 * Transport channels (TP) of UB, and the agent that makes them. Part of driver.h. TPs and groups
 * belong to the host. The contexts have the form of the mailbox (abi_tp.h), numbers in them are
 * big-endian; the driver fills in the MAC addresses of the path. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ops.h"

struct hca_driver;

struct hca_tpc;

/**
 * Create a TP.
 *
 * @param drv
 *   The driver.
 * @param tpc
 *   Its context. tpc->tpn 0: the driver draws the number and sets it; else a number that the peer
 *   has been told, a tag above an index of log2 of the TPs bits.
 * @return
 *   - 0: created.
 *   - -EINVAL: the device refuses the context, or the number is larger than HCA_TPN_MASK.
 *   - -EBUSY: a TP with the index of that number exists.
 *   - -ENOMEM: all TPs are in use.
 *   - -EOPNOTSUPP: the device does not speak UB.
 *   - -EHOSTUNREACH: config.resolve found no MAC address of the next hop.
 *   - -EIO: the device is dead.
 */
int hca_driver_create_tp(struct hca_driver *drv, struct hca_tpc *tpc);

/**
 * Create a TP whose next hop is known: config.resolve is not called.
 *
 * @param drv
 *   The driver.
 * @param tpc
 *   As in hca_driver_create_tp().
 * @param dmac
 *   MAC address of the next hop.
 * @return
 *   As hca_driver_create_tp().
 */
int hca_driver_create_tp_to(struct hca_driver *drv, struct hca_tpc *tpc, const uint8_t dmac[6]);

/**
 * Change attributes of a TP.
 *
 * @param drv
 *   The driver.
 * @param tpn
 *   Its number.
 * @param tpc
 *   The new values of the attributes in tpc->mask (HCA_TP_ATTR_*).
 * @return
 *   - 0: changed.
 *   - -EINVAL: no such TP, or a value that the device refuses.
 *   - -EBUSY: the TP is not in a state for it.
 *   - -EHOSTUNREACH: as hca_driver_create_tp(), with HCA_TP_ATTR_PATH.
 *   - -EIO: the device is dead.
 */
int hca_driver_modify_tp(struct hca_driver *drv, uint32_t tpn, const struct hca_tpc *tpc);

/**
 * Read the context of a TP from the device.
 *
 * @param drv
 *   The driver.
 * @param tpn
 *   Its number.
 * @param tpc
 *   Set to the context.
 * @return
 *   0, -EINVAL: no such TP, or -EIO: the device is dead.
 */
int hca_driver_query_tp(struct hca_driver *drv, uint32_t tpn, struct hca_tpc *tpc);

/**
 * Destroy a TP. After the call the device accepts and sends no packet of it.
 *
 * @param drv
 *   The driver.
 * @param tpn
 *   Its number.
 * @return
 *   0, -EINVAL: no such TP, or -EIO: the device is dead.
 */
int hca_driver_destroy_tp(struct hca_driver *drv, uint32_t tpn);

/**
 * List TPs, piecewise.
 *
 * @param drv
 *   The driver.
 * @param from
 *   Lowest index (hca_driver_tp_index()).
 * @param tpns
 *   Room for max numbers, ascending by index.
 * @param max
 *   Largest number of TPs.
 * @return
 *   Number of TPs written; less than max: these are the last.
 */
unsigned int hca_driver_list_tps(struct hca_driver *drv, uint32_t from, uint32_t *tpns,
				 unsigned int max);

/**
 * The index by which a TP is listed.
 *
 * @param drv
 *   The driver of a device that speaks UB.
 * @param tpn
 *   Its number.
 * @return
 *   The low bits of the number.
 */
uint32_t hca_driver_tp_index(const struct hca_driver *drv, uint32_t tpn);

/**
 * Make a group of TPs, of which Jettys choose one for each request.
 *
 * @param drv
 *   The driver.
 * @param tpns
 *   Numbers of TPs to one peer, none of which is in another group.
 * @param count
 *   1 to HCA_TPG_MAX_TPS.
 * @param group
 *   Set to the number of the group.
 * @return
 *   - 0: made.
 *   - -EINVAL: count is out of range, or a TP does not exist or is in another group.
 *   - -ENOMEM: all groups are in use.
 *   - -EOPNOTSUPP: the device does not speak UB.
 *   - -EIO: the device is dead.
 */
int hca_driver_create_tpg(struct hca_driver *drv, const uint32_t *tpns, uint32_t count,
			  uint32_t *group);

/**
 * Replace the TPs of a group.
 *
 * @param drv
 *   The driver.
 * @param group
 *   Its number.
 * @param tpns
 *   As in hca_driver_create_tpg().
 * @param count
 *   1 to HCA_TPG_MAX_TPS.
 * @return
 *   As hca_driver_create_tpg(); -EINVAL also: no such group.
 */
int hca_driver_change_tpg(struct hca_driver *drv, uint32_t group, const uint32_t *tpns,
			  uint32_t count);

/**
 * Dissolve a group. Its TPs are not changed.
 *
 * @param drv
 *   The driver.
 * @param group
 *   Its number.
 * @return
 *   0, -EINVAL: no such group, or -EIO: the device is dead.
 */
int hca_driver_destroy_tpg(struct hca_driver *drv, uint32_t group);

/**
 * Set whether Jettys of a client may use a group, until the group is dissolved. Imports of peers
 * set this; the call is for users without an agent.
 *
 * @param drv
 *   The driver.
 * @param uar
 *   UAR page of the client.
 * @param group
 *   Its number.
 * @param may
 *   Whether they may.
 * @return
 *   0, -EINVAL: no such group, or -EIO: the device is dead.
 */
int hca_driver_permit_tpg(struct hca_driver *drv, uint32_t uar, uint32_t group, bool may);

/* A request of a client to import a peer */
struct hca_driver_import {
	uint32_t owner, user;
	uint8_t own[16], peer[16]; /* EIDs */
	struct hca_ctl_ah ah;	   /* the way from one to the other */
};

#define HCA_DRIVER_NO_TPG UINT32_MAX

/*
 * The agent that sets channels up for clients. Its functions are called with locks of the driver
 * held: they must neither block nor call back. owner: the UAR page of a client. Errors are negative
 * errnos.
 */
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

/**
 * Set the agent. When the call returns, no function of the former agent is called any more.
 *
 * @param drv
 *   The driver.
 * @param agent
 *   Its functions, valid until the next call; NULL: no agent.
 * @param arg
 *   Their first argument.
 */
void hca_driver_set_agent(struct hca_driver *drv, const struct hca_driver_agent *agent, void *arg);

/**
 * Counters of the agent by index.
 *
 * @param drv
 *   The driver.
 * @param i
 *   Index, from 0.
 * @param value
 *   Set to the value.
 * @return
 *   The name; NULL: i is beyond the last one, or the driver has no agent.
 */
const char *hca_driver_agent_counter(struct hca_driver *drv, uint32_t i, uint64_t *value);

/**
 * Limits of the device for the agent.
 *
 * @param drv
 *   The driver.
 * @param log_tps
 *   Set to log2 of the number of TPs.
 * @param mtu_code
 *   Set to the code of the largest MTU.
 * @return
 *   0, or -EOPNOTSUPP: the device does not speak UB.
 */
int hca_driver_ub_limits(struct hca_driver *drv, uint32_t *log_tps, uint32_t *mtu_code);

#endif
