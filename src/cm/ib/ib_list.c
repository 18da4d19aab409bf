/* SPDX-License-Identifier: BSD-3-Clause */

/* Lists for operators: ids, connections, counters. */

#include <string.h>

#include "ib_impl.h"

static const char *const phase_names[IB_PHASES] = {
#define X(NAME, text) text,
	IB_PHASE_LIST(X)
#undef X
};

/* An orphan has the state of its connection. */
static uint32_t
list_state(const struct ib_id *id)
{
	if (id->number != 0)
		return id->state;
	return id->phase == IB_PHASE_DREQ_SENT ? HCA_CTL_CM_DISCONNECTING : HCA_CTL_CM_ENDED;
}

static void
list_fill(const struct ib_id *id, struct ibcm_entry *out)
{
	*out = (struct ibcm_entry){
		.index = id->index,
		.id = id->number,
		.owner = id->number == 0 ? 0 : id->account->client.owner,
		.space = id->space,
		.state = list_state(id),
		.phase = phase_names[id->phase],
		.src = id->src,
		.dst = id->dst,
		.service_id = id->c.service_id,
		.since = id->since,
		.local_comm = id->c.local_comm,
		.remote_comm = id->c.remote_comm,
		.local_qpn = id->c.local_qpn,
		.remote_qpn = id->c.remote_qpn,
		.waiting = id->waiting,
		.backlog = id->backlog,
		.events = id->nevents,
		.repeats = id->c.repeats,
	};
}

unsigned int
ibcm_list(const struct ibcm *cm, uint32_t from, struct ibcm_entry *out, unsigned int max)
{
	unsigned int n = 0;

	for (uint32_t i = from; i < cm->slots && n < max; i++)
		if (cm->slot[i].id != NULL)
			list_fill(cm->slot[i].id, &out[n++]);
	return n;
}

/* ---- counters: X(name, value); the names are the same for as long as the library is ---- */

#define COUNT_HANDLED(NAME, name, attribute) \
	{"cm_received_" #name, \
	 offsetof(struct ib_counters, handled) + IB_MAD_##NAME * sizeof(uint64_t)},
#define COUNT_SENT(NAME, name, attribute) \
	{"cm_sent_" #name, offsetof(struct ib_counters, sent) + IB_MAD_##NAME * sizeof(uint64_t)},
#define COUNT_REPEATED(NAME, name, attribute) \
	{"cm_repeated_" #name, \
	 offsetof(struct ib_counters, repeated) + IB_MAD_##NAME * sizeof(uint64_t)},
#define COUNT_FAULT(name, text) \
	{"cm_drop_" #name, \
	 offsetof(struct ib_counters, fault) + IB_MAD_FAULT_##name * sizeof(uint64_t)},
#define COUNT_DROP(name, text) \
	{"cm_drop_" #name, offsetof(struct ib_counters, drop) + IB_DROP_##name * sizeof(uint64_t)},
#define COUNT_OTHER(name, text) {"cm_" #name, offsetof(struct ib_counters, name)},

static const struct {
	const char *name;
	size_t at;
} list_counters[] = {{"cm_received", offsetof(struct ib_counters, received)},
		     IB_MAD_LIST(COUNT_HANDLED) IB_MAD_FAULT_LIST(COUNT_FAULT)
			     IB_DROP_LIST(COUNT_DROP) IB_MAD_LIST(COUNT_SENT)
				     IB_MAD_LIST(COUNT_REPEATED) IB_COUNT_LIST(COUNT_OTHER)};

#define LIST_COUNTERS (sizeof(list_counters) / sizeof(list_counters[0]))

/* REJ that were sent, by reason */
static const char *const rejected_names[IB_MAD_REASONS] = {
	[0] = "cm_rejected_other", [1] = "cm_rejected_1",   [2] = "cm_rejected_2",
	[3] = "cm_rejected_3",	   [4] = "cm_rejected_4",   [5] = "cm_rejected_5",
	[6] = "cm_rejected_6",	   [7] = "cm_rejected_7",   [8] = "cm_rejected_8",
	[9] = "cm_rejected_9",	   [10] = "cm_rejected_10", [11] = "cm_rejected_11",
	[12] = "cm_rejected_12",   [13] = "cm_rejected_13", [14] = "cm_rejected_14",
	[15] = "cm_rejected_15",   [16] = "cm_rejected_16", [17] = "cm_rejected_17",
	[18] = "cm_rejected_18",   [19] = "cm_rejected_19", [20] = "cm_rejected_20",
	[21] = "cm_rejected_21",   [22] = "cm_rejected_22", [23] = "cm_rejected_23",
	[24] = "cm_rejected_24",   [25] = "cm_rejected_25", [26] = "cm_rejected_26",
	[27] = "cm_rejected_27",   [28] = "cm_rejected_28", [29] = "cm_rejected_29",
	[30] = "cm_rejected_30",   [31] = "cm_rejected_31", [32] = "cm_rejected_32",
	[33] = "cm_rejected_33",
};

/* Present numbers: X(name, value) */
#define LIST_GAUGES(X) \
	X(ids, cm->ids - cm->orphans) \
	X(orphans, cm->orphans) \
	X(halves, cm->share.used[CM_SHARE_half]) \
	X(ports, cm->ports.used) \
	X(connections, cm->comms.used) \
	X(memberships, cm->memberships)

static const char *
list_gauge(const struct ibcm *cm, uint32_t i, uint64_t *value)
{
	const struct {
		const char *name;
		uint64_t value;
	} gauge[] = {
#define X(name, value) {"cm_now_" #name, value},
		LIST_GAUGES(X)
#undef X
	};

	if (i >= sizeof(gauge) / sizeof(gauge[0]))
		return NULL;
	*value = gauge[i].value;
	return gauge[i].name;
}

const char *
ibcm_counter(const struct ibcm *cm, uint32_t i, uint64_t *value)
{
	if (i < LIST_COUNTERS) {
		memcpy(value, (const char *)&cm->counters + list_counters[i].at, sizeof(*value));
		return list_counters[i].name;
	}
	i -= LIST_COUNTERS;
	if (i < IB_MAD_REASONS) {
		*value = cm->counters.rejected[i];
		return rejected_names[i];
	}
	return list_gauge(cm, i - IB_MAD_REASONS, value);
}
