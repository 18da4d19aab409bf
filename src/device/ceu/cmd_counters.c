/* SPDX-License-Identifier: BSD-3-Clause */

/* QUERY_COUNTERS: of the device, a QP or the port. */

#include <errno.h>
#include <stdio.h>

#include "ceu/ceu.h"
#include "engine/wire_ops.h"
#include "port/port.h"

static const char *const qp_names[] = {
#define X(n) #n,
	HCA_QP_COUNTER_LIST(X)
#undef X
};

static const char *const port_names[] = {
#define X(n) #n,
	HCA_PORT_COUNTER_LIST(X)
#undef X
};

unsigned int
hca_qp_counter_count(void)
{
	return RTE_DIM(qp_names);
}

const char *
hca_qp_counter_name(unsigned int i)
{
	return i < RTE_DIM(qp_names) ? qp_names[i] : NULL;
}

unsigned int
hca_port_counter_count(void)
{
	return RTE_DIM(port_names);
}

const char *
hca_port_counter_name(unsigned int i)
{
	return i < RTE_DIM(port_names) ? port_names[i] : NULL;
}

#define READ(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

int
hca_qp_counters(const struct hca *h, uint32_t qpn, uint64_t *values)
{
	const struct hca_qp *qp = &hca_core(h)->qp[hca_qp_index(hca_core(h), qpn)];
	const struct hca_wire_ops *wire = hca_wire_of_service(hca_core(h), READ(qp->cfg.service));
	const struct hca_qp_stats *s = &qp->stats;
	const uint64_t tx_packets = READ(qp->encap.tx_packets), tx_bytes = READ(qp->encap.tx_bytes);
	const uint64_t answers = wire != NULL ? wire->qp_answers(qp) : 0;
	const uint64_t rx_packets = READ(qp->ee.rx_packets) + answers;
	const uint64_t rx_bytes = READ(qp->ee.rx_bytes) + READ(s->rx_read_bytes);
	const uint64_t retransmissions = READ(s->retransmissions);
	const uint64_t local_ack_timeout_err = READ(s->local_ack_timeout_err);
	const uint64_t packet_seq_err = READ(s->packet_seq_err);
	const uint64_t rnr_nak_received = READ(s->rnr_nak_received);
	const uint64_t implied_nak_seq_err = READ(s->implied_nak_seq_err);
	const uint64_t rx_dropped = READ(s->rx_dropped) + READ(qp->ee.rx_dropped);
	const uint64_t req_cqe_error = READ(s->req_cqe_error);
	const uint64_t duplicate_request = READ(qp->ee.duplicate_request);
	const uint64_t out_of_sequence = READ(qp->ee.out_of_sequence);
	const uint64_t rnr_nak_sent = READ(qp->ee.rnr_nak_sent);
	const uint64_t seq_nak_sent = READ(qp->ee.seq_nak_sent);
	const uint64_t rx_missing = (uint64_t)READ(qp->ee.rx_missing) + READ(s->rx_missing);
	const uint64_t rx_late = (uint64_t)READ(qp->ee.rx_late) + READ(s->rx_late);
	const uint64_t rx_doubled = (uint64_t)READ(qp->ee.rx_doubled) + READ(s->rx_doubled);
	const uint64_t rp_cnp_handled = READ(s->rp_cnp_handled);
	const uint64_t resp_cqe_error = READ(qp->ee.resp_cqe_error);

	if (qpn == 0 || __atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != qpn)
		return -ENOENT;
#define X(n) *values++ = n;
	HCA_QP_COUNTER_LIST(X)
#undef X
	return 0;
}

unsigned int
hca_qp_list(const struct hca *dev, uint32_t *qpns, unsigned int max)
{
	const struct hca_core *h = hca_core(dev);
	uint32_t mask = __atomic_load_n(&h->qp_mask, __ATOMIC_RELAXED);
	unsigned int n = 0;

	for (uint32_t i = 0; i <= mask; i++) {
		uint32_t qpn = __atomic_load_n(&h->qp[i].cfg.local_qpn, __ATOMIC_ACQUIRE);

		if (qpn == 0)
			continue;
		if (n < max)
			qpns[n] = qpn;
		n++;
	}
	return n;
}

static uint64_t
sum_of(const struct hca *h, const uint16_t *counters, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += hca_counter_value(h, counters[i]);
	return sum;
}

void
hca_port_counters(const struct hca *h, uint64_t *values)
{
#define X(n) HCA_CTR_##n,
	static const uint16_t rx_drops[] = { HCA_RX_DROP_LIST(X) };
	static const uint16_t tx_drops[] = { HCA_TX_DROP_LIST(X) };
#undef X
	const uint64_t port_xmit_packets = hca_counter_value(h, HCA_CTR_sent_pkts);
	const uint64_t port_xmit_data = hca_counter_value(h, HCA_CTR_port_xmit_data);
	const uint64_t port_xmit_discards = sum_of(h, tx_drops, RTE_DIM(tx_drops));
	const uint64_t port_rcv_packets = hca_counter_value(h, HCA_CTR_rcvd_pkts);
	const uint64_t port_rcv_data = hca_counter_value(h, HCA_CTR_port_rcv_data);
	const uint64_t port_rcv_errors = sum_of(h, rx_drops, RTE_DIM(rx_drops));
	const uint64_t port_rcv_missed = hca_port_missed(hca_core(h)->port);

#define X(n) *values++ = n;
	HCA_PORT_COUNTER_LIST(X)
#undef X
}

static const struct counter_set {
	unsigned int (*count)(void);
	const char *(*name)(unsigned int i);
} sets[] = {
	[HCA_COUNTERS_OF(HCA_COUNTERS_VALUES)] = {hca_counter_count, hca_counter_name},
	[HCA_COUNTERS_OF(HCA_COUNTERS_QP)] = {hca_qp_counter_count, hca_qp_counter_name},
	[HCA_COUNTERS_OF(HCA_COUNTERS_PORT)] = {hca_port_counter_count, hca_port_counter_name},
};

_Static_assert(RTE_DIM(qp_names) <= HCA_COUNTER_NAMES_MAX, "one mailbox");
_Static_assert(RTE_DIM(port_names) <= HCA_COUNTER_NAMES_MAX, "one mailbox");

static void
put_values(struct hca_mbox_counters *m, const uint64_t *values, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		m->value[i] = hca_cpu_to_be64(values[i]);
}

/* Values of n counters; those of the device from `first` on. */
static int
read_values(struct hca *h, const struct hca_cmd *c, uint32_t first, uint32_t n)
{
	uint64_t values[HCA_COUNTERS_MAX] = {0};

	switch (c->op_modifier) {
	case HCA_COUNTERS_QP:
		if (hca_qp_counters(h, c->in_modifier, values) != 0)
			return HCA_STAT_BAD_INDEX;
		break;
	case HCA_COUNTERS_PORT:
		if (c->in_modifier != 1)
			return HCA_STAT_BAD_INDEX;
		hca_port_counters(h, values);
		break;
	default:
		for (uint32_t i = 0; i < n; i++)
			values[i] = hca_counter_value(h, first + i);
		break;
	}
	put_values((void *)(uintptr_t)c->out, values, n);
	return HCA_STAT_OK;
}

int
hca_cmd_query_counters(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_mbox_counters *m = (void *)c->out;
	bool names = (c->op_modifier & HCA_COUNTERS_NAMES) != 0;
	uint32_t of = HCA_COUNTERS_OF(c->op_modifier), first, total, n;

	if (of >= RTE_DIM(sets))
		return HCA_STAT_BAD_PARAM;
	first = of == 0 ? c->in_modifier : 0;
	total = sets[of].count();
	if (first >= total)
		return HCA_STAT_BAD_INDEX;
	n = RTE_MIN(total - first, names ? HCA_COUNTER_NAMES_MAX : HCA_COUNTERS_MAX);
	m->count = hca_cpu_to_be32(n);
	m->total = hca_cpu_to_be32(total);
	if (!names)
		return read_values(h->hca, c, first, n);
	for (uint32_t i = 0; i < n; i++)
		snprintf(m->name[i], sizeof(m->name[i]), "%s", sets[of].name(first + i));
	return HCA_STAT_OK;
}
