/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_HOSTS_H
#define TESTS_SIM_UB_HOSTS_H

/*
 * One HCA and many small ones, each with a driver and a client of its own, around a switch that
 * forwards by IP address; simulated time. Host 0 has a channel to each of the others, which are
 * the hosts 1 .. n. Channels are made by calls of the drivers.
 */

#include "sim_test.h"

#include "urma_impl.h"

#include "ub/ub_stage.h"

#define UB_HOSTS_MAX 65u

struct ub_hosts;

struct ub_host {
	struct hca_port port; /* first */
	struct ub_hosts *all;
	uint32_t index;
	struct rte_ring *rx;
	struct hca *h;
	struct hca_driver *drv;
	struct softhca_context *client;
	urma_context_t *ctx;
};

struct ub_hosts {
	enum hca_layout layout;
	bool v6;
	uint32_t n; /* with host 0 */
	uint64_t now;
	uint64_t loops;
	unsigned int idle;     /* loops without work */
	uint32_t lose_every;   /* frame; 0: no loss */
	uint64_t frames, full; /* sent; lost because a queue was full */
	struct ub_host host[UB_HOSTS_MAX];
};

#define UB_HOSTS_CHECK(condition, ...) sim_check(NULL, condition, __VA_ARGS__)

/* With `peers` hosts in addition to host 0, over IPv4 or IPv6. */
void ub_hosts_open(struct ub_hosts *x, const struct sim_config *cfg, bool v6, uint32_t peers);
/* Nothing may be in use any more; sums of counters are checked. */
void ub_hosts_close(struct ub_hosts *x);
/* One loop over all workers of all HCAs. */
void ub_hosts_poll(struct ub_hosts *x);
void ub_hosts_run_for(struct ub_hosts *x, uint64_t ns);
/* Ends of the channel between host 0 and a peer, one TP each. */
void ub_hosts_close_channel(struct ub_hosts *x, uint32_t peer);
/* The end of host 0. */
struct hca_tp *ub_hosts_tp(struct ub_hosts *x, uint32_t peer);
uint64_t ub_hosts_again(const struct ub_hosts *x, uint32_t host);

#endif
