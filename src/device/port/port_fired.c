/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "port/port_fired.h"
#include "wire/opcode_set.h"

void
hca_fired_init(struct hca_fired_list *l)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
}

void
hca_fired_fini(struct hca_fired_list *l)
{
	pthread_mutex_destroy(&l->lock);
}

void
hca_fired_describe(struct hca_fired *d, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct hca_wire_view v;

	if (hca_wire_parse(frame, m->data_len, &v) != 0)
		return;
	d->wire = v.wire;
	d->psn = v.psn;
	d->dst = v.dst;
	hca_opcode_name(frame, &v, d->opcode, sizeof(d->opcode));
}

void
hca_fired_enter(struct hca_fired_list *l, struct hca_fired *d)
{
	pthread_mutex_lock(&l->lock);
	d->number = l->n + 1;
	l->last[l->n++ % HCA_FIRED_MAX] = *d;
	pthread_mutex_unlock(&l->lock);
}

unsigned int
hca_fired_read(struct hca_fired_list *l, struct hca_fired out[HCA_FIRED_MAX])
{
	unsigned int n;

	pthread_mutex_lock(&l->lock);
	n = (unsigned int)RTE_MIN(l->n, HCA_FIRED_MAX);
	for (unsigned int i = 0; i < n; i++)
		out[i] = l->last[(l->n - n + i) % HCA_FIRED_MAX];
	pthread_mutex_unlock(&l->lock);
	return n;
}

void
hca_fired_text(const struct hca_fired *d, char *text, size_t size)
{
	if (d->rule != 0)
		snprintf(text, size, "%s by rule %u", hca_fault_name(d->fault), d->rule);
	else
		snprintf(text, size, "%s by chance", hca_fault_name(d->fault));
}
