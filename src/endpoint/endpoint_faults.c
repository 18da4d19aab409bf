/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <dpdk_compat.h>
#include <rte_telemetry.h>

#include "endpoint_faults.h"
#include "endpoint_impl.h"
#include "graph/executor.h"
#include "graph/sleep.h"
#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_stall.h"
#include "wire/wire_view.h"

#define NS_PER_MS UINT64_C(1000000)

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool
has_room(const struct endpoint *e, const struct admin_impair *a)
{
	const struct admin_faults *f = e->faults;

	if (a->what != ADMIN_IMPAIR_RULE)
		return true;
	return (!a->sent || hca_port_impair_rules(f[ENDPOINT_SENT].port) < HCA_FAULT_RULES) &&
	       (!a->received || hca_port_impair_rules(f[ENDPOINT_RECEIVED].port) < HCA_FAULT_RULES);
}

static int
set_frames(struct endpoint *e, const struct admin_impair *a, uint32_t peer)
{
	uint32_t number = a->said.qpn | a->said.tpn;
	int rc = 0;

	if (a->sent)
		rc = admin_impair_set(&e->faults[ENDPOINT_SENT], a, peer, number);
	if (rc == 0 && a->received)
		rc = admin_impair_set(&e->faults[ENDPOINT_RECEIVED], a, number, 0);
	if (rc == 0 && a->what == ADMIN_IMPAIR_OFF)
		hca_wait_workers(e->hca);
	return rc;
}

static void
set_port(struct endpoint *e, const struct hca_impair_text *t)
{
	const struct hca_port_stall_rules rules = {
		.down_after = t->after_ms * NS_PER_MS,
		.down_for = t->for_ms * NS_PER_MS,
		.at_once = t->after_ms == 0,
		.both_ways = true,
	};

	hca_port_stall_set(e->stall, &rules);
	hca_kick_all(e->hca);
}

static void
set_gid(struct endpoint *e, const struct hca_impair_text *t)
{
	if (t->after_ms == 0)
		hca_driver_gid_event(e->drv);
	else
		__atomic_store_n(&e->gid_event_at, monotonic_ns() + t->after_ms * NS_PER_MS,
				 __ATOMIC_RELAXED);
}

int
endpoint_faults_set(struct endpoint *e, const struct admin_impair *a, uint32_t peer)
{
	static const struct hca_impair_text none;

	if (!has_room(e, a))
		return -ENOSPC;
	switch (a->what) {
	case ADMIN_IMPAIR_PORT:
		set_port(e, &a->said);
		return 0;
	case ADMIN_IMPAIR_GID:
		set_gid(e, &a->said);
		return 0;
	case ADMIN_IMPAIR_OFF:
		set_port(e, &none);
		__atomic_store_n(&e->gid_event_at, 0, __ATOMIC_RELAXED);
		return set_frames(e, a, peer);
	default:
		return set_frames(e, a, peer);
	}
}

void
endpoint_faults_watch(struct endpoint *e, uint64_t now)
{
	uint64_t at = __atomic_load_n(&e->gid_event_at, __ATOMIC_RELAXED);

	if (at == 0 || now < at)
		return;
	if (__atomic_compare_exchange_n(&e->gid_event_at, &at, 0, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		hca_driver_gid_event(e->drv);
}

/* Report each rule and the number of frames it changed: prefix, "rule_" and its number, from 1. */
static int
tell_rules(const struct admin_faults *f, const char *prefix, struct rte_tel_data *d)
{
	char name[24], text[128];
	int rc = 0;

	for (unsigned int i = 0; i < hca_port_impair_rules(f->port); i++) {
		snprintf(name, sizeof(name), "%srule_%u", prefix, i + 1);
		snprintf(text, sizeof(text), "%s: fired %" PRIu64 " times, matched %" PRIu64,
			 f->rule[i], hca_port_impair_hits(f->port, i),
			 hca_port_impair_seen(f->port, i));
		rc |= rte_tel_data_add_dict_string(d, name, text);
	}
	return rc;
}

/* "3: drop by rule 1: rc-ack, PSN 17, to QP 0x405, frame 9, 1.5 s ago"; "frame 9 of queue 1" */
static void
fired_text(const struct hca_fired *f, uint64_t now, char *text, size_t size)
{
	char what[40], whose[80] = "no frame of RoCE or UB", queue[20] = "";

	hca_fired_text(f, what, sizeof(what));
	if (f->wire != HCA_WIRE_NONE)
		snprintf(whose, sizeof(whose), "%s, PSN %u, to %s 0x%x", f->opcode, f->psn,
			 f->wire == HCA_WIRE_UB ? "TP" : "QP", f->dst);
	if (f->queue != 0)
		snprintf(queue, sizeof(queue), " of queue %u", f->queue);
	snprintf(text, size, "%" PRIu64 ": %s: %s, frame %" PRIu64 "%s, %.3f s ago", f->number,
		 what, whose, f->frame, queue, (double)(now - f->at) * 1e-9);
}

/* The last faults, oldest first: prefix, "fired_" and its number in this list, from 1. */
static int
tell_fired(const struct admin_faults *f, const char *prefix, struct rte_tel_data *d)
{
	uint64_t now = hca_clock_ns();
	struct hca_fired fired[HCA_FIRED_MAX];
	unsigned int n = hca_port_impair_fired(f->port, fired);
	char name[24], text[128];
	int rc = 0;

	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%sfired_%u", prefix, i + 1);
		fired_text(&fired[i], now, text, sizeof(text));
		rc |= rte_tel_data_add_dict_string(d, name, text);
	}
	return rc;
}

/* Counters of received frames have the names of those of sent frames with the prefix "in_". */
int
endpoint_faults_tell(struct endpoint *e, struct rte_tel_data *d)
{
	struct hca_port_impair_stats out, in;
	struct hca_port_stall_stats stall;
	int rc = rte_tel_data_start_dict(d);

	hca_port_impair_stats(e->faults[ENDPOINT_SENT].port, &out);
	hca_port_impair_stats(e->faults[ENDPOINT_RECEIVED].port, &in);
#define X(n) rc |= rte_tel_data_add_dict_uint(d, #n, out.n);
	HCA_PORT_IMPAIR_STATS(X)
#undef X
	rc |= rte_tel_data_add_dict_string(d, "setting", e->faults[ENDPOINT_SENT].setting);
#define X(n) rc |= rte_tel_data_add_dict_uint(d, "in_" #n, in.n);
	HCA_PORT_IMPAIR_STATS(X)
#undef X
	rc |= rte_tel_data_add_dict_string(d, "in_setting", e->faults[ENDPOINT_RECEIVED].setting);
	hca_port_stall_stats(e->stall, &stall);
	rc |= rte_tel_data_add_dict_uint(d, "link_downs", stall.link_downs);
	rc |= rte_tel_data_add_dict_uint(d, "down_rx_lost", hca_port_inbound_lost(e->inbound));
	rc |= tell_rules(&e->faults[ENDPOINT_SENT], "", d);
	rc |= tell_rules(&e->faults[ENDPOINT_RECEIVED], "in_", d);
	rc |= tell_fired(&e->faults[ENDPOINT_SENT], "", d);
	rc |= tell_fired(&e->faults[ENDPOINT_RECEIVED], "in_", d);
	return rc == 0 ? 0 : -ENOMEM;
}
