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
 *
 * Other parts of this face: driver_addr.h, driver_tp.h, driver_cm.h, driver_inspect.h. Users
 * include this header.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ops.h"
#include "driver_addr.h"
#include "driver_cm.h"
#include "driver_hw.h"
#include "driver_inspect.h"
#include "driver_tp.h"

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

/**
 * Create a driver: bring the device up, read its limits, give it memory for contexts and tables.
 * Blocks until the device has executed the commands.
 *
 * @param hw
 *   The device, which is copied; not used by another driver.
 * @param config
 *   The configuration, which is copied; NULL: all defaults.
 * @param drv
 *   Set to the driver; not changed on error.
 * @return
 *   - 0: created.
 *   - -EINVAL: the device does not have the sizes or features of config.
 *   - -ENOMEM: no memory.
 *   - -EIO: a command timed out, or the device is dead.
 *   - another negative errno of dma_attach() or getrandom().
 */
int hca_driver_create(const struct hca_hw *hw, const struct hca_driver_config *config,
		      struct hca_driver **drv);

/**
 * Close the remaining clients and destroy the driver. No other call is in progress.
 *
 * @param drv
 *   The driver.
 */
void hca_driver_destroy(struct hca_driver *drv);

/**
 * Another algorithm of congestion control for all QPs and TPs, while they work. Blocks until they
 * have it.
 *
 * @param drv
 *   The driver.
 * @param number
 *   Its place in the table of the device, from 1 on.
 * @return
 *   - 0: they have it.
 *   - -EINVAL: the device has no algorithm of this number.
 *   - -EOPNOTSUPP: the device cannot change it.
 *   - -ENOMEM: the device has no memory for its state.
 *   - -EIO: the command timed out, or the device is dead.
 */
int hca_driver_set_congestion(struct hca_driver *drv, uint32_t number);

/**
 * Another value of a parameter of congestion control, for all QPs and TPs, while they work.
 *
 * @param drv
 *   The driver.
 * @param number
 *   The parameter: its place in HCA_CC_PARAMETER_LIST of the device, from 1 on.
 * @param value
 *   Its value.
 * @return
 *   - 0: they have it.
 *   - -EINVAL: the device has no parameter of this number, or it cannot have this value.
 *   - -EOPNOTSUPP: the device cannot change it.
 *   - -EIO: the command timed out, or the device is dead.
 */
int hca_driver_set_congestion_parameter(struct hca_driver *drv, uint32_t number, uint32_t value);

/**
 * The reason of the last failed call of this thread.
 *
 * @return
 *   Text, valid until the thread's next call; never NULL.
 */
const char *hca_driver_reason(void);

/**
 * Empty the event queues and forward: completion events to channels, asynchronous events to
 * clients. Any thread, also from hca_hw.progress().
 *
 * @param drv
 *   The driver.
 * @return
 *   Number of events; 0 at once if another thread is polling.
 */
unsigned int hca_driver_poll(struct hca_driver *drv);

/**
 * hca_driver_poll() for the worker that has written the events, which must not be delayed.
 *
 * @param drv
 *   The driver.
 * @return
 *   True: all were forwarded. False: no event was forwarded, because there are many, or one
 *   concerns all clients, or another thread is polling.
 */
bool hca_driver_poll_few(struct hca_driver *drv);

/**
 * hca_driver_poll() that waits for other pollers and for control calls that change the targets of
 * events, so that no event is left in the queues. For a thread that forwards events when it is told
 * to; while events are delayed (hca_driver_owed()) it should also poll periodically. Not from
 * hca_hw.progress().
 *
 * @param drv
 *   The driver.
 * @return
 *   Number of events.
 */
unsigned int hca_driver_poll_wait(struct hca_driver *drv);

/**
 * Number of objects with events that wait for room in a pipe. Any thread.
 *
 * @param drv
 *   The driver.
 * @return
 *   Their number.
 */
uint32_t hca_driver_owed(struct hca_driver *drv);

/**
 * Whether a command has timed out, or the device has reported a catastrophic error. Any thread.
 *
 * @param drv
 *   The driver.
 * @return
 *   Whether it is dead; calls then return -EIO.
 */
bool hca_driver_dead(const struct hca_driver *drv);

/**
 * Node GUID of the device. Any thread.
 *
 * @param drv
 *   The driver.
 * @return
 *   A number, with the first byte of the EUI-64 on top.
 */
uint64_t hca_driver_node_guid(const struct hca_driver *drv);

/* --- clients -------------------------------------------------------------------------------- */

/*
 * A client has one UAR page and one DMA domain. privileged: may send management datagrams (Q_Keys
 * with the top bit set, QPNs 0 and 1).
 */
struct hca_client_who {
	uint32_t user; /* clients of a user share quotas */
	bool privileged;
	bool host; /* of the composition itself: not in usage and lists, but for UB's Jettys */
	/* it rings in the whole doorbell page: its QPs are in pipeline 0 */
	bool undivided;
};

/**
 * Open a client. Any thread.
 *
 * @param drv
 *   The driver.
 * @param identity
 *   Its user and rights; NULL: user 0 without rights.
 * @param client
 *   Set to the client; not changed on error.
 * @return
 *   - 0: open.
 *   - -ENOMEM: all doorbell pages are in use, or no memory.
 *   - -EMFILE, -ENFILE: no descriptors for its pipe.
 */
int hca_client_open(struct hca_driver *drv, const struct hca_client_who *identity,
		    struct hca_client **client);

/**
 * Destroy a client and everything it owns, in the right order, also under traffic. No call of this
 * client is in progress.
 *
 * @param client
 *   The client.
 */
void hca_client_close(struct hca_client *client);

/**
 * Allow the device to access memory of the client; all pages it registers must lie inside. In
 * embedded use one segment covers the user half of the address space.
 *
 * @param client
 *   The client.
 * @param bus
 *   Bus address, in whole pages.
 * @param len
 *   Bytes, in whole pages.
 * @return
 *   - 0: attached until the client ends.
 *   - -EINVAL: not whole pages, empty, or beyond the end of the address space.
 *   - -ENOMEM: the client has hca_quota.segments segments, or no memory.
 *   - another negative errno of dma_attach().
 */
int hca_client_attach(struct hca_client *client, uint64_t bus, uint64_t len);

/**
 * The client's doorbell page.
 *
 * @param client
 *   The client.
 * @return
 *   4 KiB of BAR2, the client's until it ends.
 */
volatile void *hca_client_uar(struct hca_client *client);

/**
 * Carry out an operation of a client. Called by the control channel, from any thread; may block
 * while the device executes commands and in config.resolve.
 *
 * @param client
 *   The client.
 * @param op
 *   The operation.
 * @param request
 *   Of the type in the row of op (abi_ops.h); NULL for struct hca_ctl_none. Not trusted.
 * @param answer
 *   Of the type in the row of op; NULL for struct hca_ctl_none.
 * @param extra
 *   Needed by rows with descriptors or page lists, otherwise NULL.
 * @return
 *   - 0: done.
 *   - -EINVAL: a value is wrong, or op is an operation of the channel itself.
 *   - -EACCES: op needs a privileged client.
 *   - -ENOMEM: a quota, a limit of the device, or no memory.
 *   - -EIO: the device is dead.
 *   - another negative errno that the operation's row names.
 */
int hca_client_call(struct hca_client *client, enum hca_ctl_op op, const void *request,
		    void *answer, struct hca_ctl_extra *extra);

#endif
