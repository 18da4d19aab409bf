/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_INSPECT_H
#define DRIVER_INSPECT_H

/*
 * Objects of all owners, for operators and tests. Part of driver.h. Any thread. Objects of the
 * composition itself (hca_client_who.host) are not listed.
 */

#include <stdbool.h>
#include <stdint.h>

struct hca_driver;

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

/**
 * Count the objects of all clients.
 *
 * @param drv
 *   The driver.
 * @param usage
 *   Set to the numbers.
 */
void hca_driver_usage(struct hca_driver *drv, struct hca_driver_usage *usage);

/* A client */
struct hca_driver_client_info {
	uint32_t index; /* its UAR page and DMA domain */
	uint32_t qps, cqs, mrs, pds, srqs, xrcds, channels, segments;
	uint32_t peers, links, known; /* of UB */
	uint64_t mtts;
	char release[32]; /* of its libsofthca; empty: it did not say */
};

/**
 * List clients, piecewise: continue with the last index + 1. Objects may
 * be created and destroyed between two calls.
 *
 * @param drv
 *   The driver.
 * @param from
 *   Lowest index of an entry.
 * @param out
 *   Room for max entries, ascending by index.
 * @param max
 *   Largest number of entries.
 * @return
 *   Number of entries written; less than max: these are the last.
 */
unsigned int hca_driver_list_clients(struct hca_driver *drv, uint32_t from,
				     struct hca_driver_client_info *out, unsigned int max);

/* A memory region or window */
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

/**
 * List regions and windows of all clients, piecewise: continue with the last index + 1. Objects may
 * be created and destroyed between two calls.
 *
 * @param drv
 *   The driver.
 * @param from
 *   Lowest index of an entry.
 * @param out
 *   Room for max entries, ascending by index.
 * @param max
 *   Largest number of entries.
 * @return
 *   Number of entries written; less than max: these are the last.
 */
unsigned int hca_driver_list_mrs(struct hca_driver *drv, uint32_t from,
				 struct hca_driver_mr_info *out, unsigned int max);

/* A QP */
struct hca_driver_qp_info {
	uint32_t index; /* index bits of the QPN */
	uint32_t qpn;
	uint32_t owner; /* UAR page */
	uint32_t service;
	uint32_t pdn, send_cqn, recv_cqn, srqn; /* 0: none */
};

/**
 * List QPs of all clients, piecewise: continue with the last index + 1. Objects may
 * be created and destroyed between two calls.
 *
 * @param drv
 *   The driver.
 * @param from
 *   Lowest index of an entry.
 * @param out
 *   Room for max entries, ascending by index.
 * @param max
 *   Largest number of entries.
 * @return
 *   Number of entries written; less than max: these are the last.
 */
unsigned int hca_driver_list_qps(struct hca_driver *drv, uint32_t from,
				 struct hca_driver_qp_info *out, unsigned int max);

/**
 * Whether a QP is the composition's own, so that lists do not have it.
 *
 * @param drv
 *   The driver.
 * @param qpn
 *   Its number; one without a QP gives false.
 * @return
 *   Whether it is.
 */
bool hca_driver_is_host_qp(struct hca_driver *drv, uint32_t qpn);

/**
 * Read the context of a QP, as the operation QUERY_QP, for any QP.
 *
 * @param drv
 *   The driver.
 * @param qpn
 *   Its number.
 * @param mailbox
 *   Set to struct hca_qpc (abi_ctx.h), big-endian.
 * @return
 *   0, -EINVAL: no such QP, or -EIO: the device is dead.
 */
int hca_driver_query_qp(struct hca_driver *drv, uint32_t qpn, void *mailbox);

#endif
