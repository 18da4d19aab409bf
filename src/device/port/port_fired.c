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

/* Copies the list, oldest first; returns the number of entries, and of faults ever entered. */
static unsigned int
copy_list(struct hca_fired_list *l, struct hca_fired out[HCA_FIRED_MAX], uint64_t *ever)
{
	unsigned int n;

	pthread_mutex_lock(&l->lock);
	n = (unsigned int)RTE_MIN(l->n, HCA_FIRED_MAX);
	for (unsigned int i = 0; i < n; i++)
		out[i] = l->last[(l->n - n + i) % HCA_FIRED_MAX];
	*ever = l->n;
	pthread_mutex_unlock(&l->lock);
	return n;
}

unsigned int
hca_fired_read(struct hca_fired_list *l, struct hca_fired out[HCA_FIRED_MAX], unsigned int n)
{
	struct hca_fired other[HCA_FIRED_MAX], more[HCA_FIRED_MAX];
	uint64_t ever, number = n != 0 ? out[n - 1].number : 0;
	unsigned int left = copy_list(l, more, &ever), to = RTE_MIN(n + left, HCA_FIRED_MAX);

	memcpy(other, out, n * sizeof(other[0]));
	number += ever;
	/* from the newest to the oldest that has room */
	for (unsigned int i = to; i-- != 0; number--) {
		if (left == 0 || (n != 0 && other[n - 1].at > more[left - 1].at))
			out[i] = other[--n];
		else
			out[i] = more[--left];
		out[i].number = number;
	}
	return to;
}

void
hca_fired_text(const struct hca_fired *d, char *text, size_t size)
{
	if (d->rule != 0)
		snprintf(text, size, "%s by rule %u", hca_fault_name(d->fault), d->rule);
	else
		snprintf(text, size, "%s by chance", hca_fault_name(d->fault));
}
