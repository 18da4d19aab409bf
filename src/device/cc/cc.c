/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of algorithms; the calls of the stages; round trips of QPs. */

#include <errno.h>
#include <string.h>

#include "cc/cc.h"
#include "cc/cc_list.h"
#include "core/table.h"
#include "engine/impl.h"

#define X(name) extern const struct hca_cc_ops hca_cc_##name;
HCA_CC_LIST(X)
#undef X

static const struct hca_cc_ops *const cc_table[] = {
#define X(name) &hca_cc_##name,
	HCA_CC_LIST(X)
#undef X
		NULL};

static const struct hca_cc_ops *
cc_among(const struct hca_cc_ops *const *list, const char *name)
{
	for (; list != NULL && *list != NULL; list++)
		if (strcmp((*list)->name, name) == 0)
			return *list;
	return NULL;
}

int
hca_cc_find(const char *name, const struct hca_cc_ops *const *more, const struct hca_cc_ops **cc)
{
	const struct hca_cc_ops *found = cc_among(more, name != NULL ? name : "none");

	if (found == NULL)
		found = cc_among(cc_table, name != NULL ? name : "none");
	if (found == NULL)
		return -EINVAL;
	*cc = found->may_send != NULL ? found : NULL;
	return 0;
}

/* Bytes of an object: its round trips, then the state of the algorithm. */
static size_t
flow_bytes(const struct hca_pipe *h)
{
	return sizeof(struct hca_cc_flow) + RTE_ALIGN_CEIL(h->cc->state_bytes, RTE_CACHE_LINE_SIZE);
}

static struct hca_cc_flow *
flow_of(const struct hca_pipe *h, uint32_t obj)
{
	return RTE_PTR_ADD(h->flow, obj * flow_bytes(h));
}

void *
hca_cc_state(const struct hca_pipe *h, uint32_t obj)
{
	return flow_of(h, obj) + 1;
}

uint32_t
hca_cc_responses(const struct hca_pipe *h, uint32_t qpi)
{
	return h->object[HCA_OBJECT_ANY].count + qpi;
}

int
hca_cc_init(struct hca_pipe *h)
{
	if (h->cc == NULL)
		return 0;
	h->flow = hca_table_alloc(h->object[HCA_OBJECT_ANY].count + h->object[HCA_OBJECT_QP].count,
				  flow_bytes(h), h->cfg.socket_id);
	return h->flow != NULL ? 0 : -ENOMEM;
}

void
hca_cc_fini(struct hca_pipe *h)
{
	hca_table_free(h->flow);
	h->flow = NULL;
}

void
hca_cc_begin(struct hca_pipe *h, uint32_t obj)
{
	struct hca_cc_flow *f = flow_of(h, obj);

	f->repeated = f->ended = f->begun;
	h->cc->begin(h, obj);
	if (obj < h->object[HCA_OBJECT_QP].count)
		h->cc->begin(h, hca_cc_responses(h, obj));
}

void
hca_cc_sent(struct hca_pipe *h, uint32_t obj, uint32_t last, bool repeated, uint32_t frames,
	    uint32_t psns, uint64_t bytes, uint64_t now)
{
	struct hca_cc_flow *f = flow_of(h, obj);

	if (repeated) {
		__atomic_store_n(&f->repeated, f->begun, __ATOMIC_RELEASE);
	} else if (__atomic_load_n(&f->ended, __ATOMIC_ACQUIRE) == f->begun) {
		f->sent_at = now;
		f->psn = last;
		__atomic_store_n(&f->begun, f->begun + 1, __ATOMIC_RELEASE);
	}
	/* one that is repeated for its ACK has no PSN more */
	h->cc->sent(h, obj, frames, RTE_MAX(psns, frames), bytes, now);
}

void
hca_cc_acked(struct hca_pipe *h, uint32_t obj, uint32_t una, uint32_t n, uint64_t now)
{
	const struct hca_cc_ops *ops = h->cc;
	struct hca_cc_flow *f = flow_of(h, obj);
	uint32_t begun = __atomic_load_n(&f->begun, __ATOMIC_ACQUIRE);

	if (begun != f->ended && ((una - 1 - f->psn) & HCA_PSN_MASK) < HCA_PSN_HALF) {
		if (__atomic_load_n(&f->repeated, __ATOMIC_ACQUIRE) != begun)
			ops->round_trip(h, obj, RTE_MAX(now, f->sent_at) - f->sent_at, now);
		__atomic_store_n(&f->ended, begun, __ATOMIC_RELEASE);
	}
	ops->acked(h, obj, n, now);
}
