/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "cc/pace.h"
#include "core/table.h"

int
hca_pace_init(struct hca_pace *p, uint32_t count, int socket_id)
{
	p->next = UINT64_MAX;
	p->n = 0;
	p->slot = hca_table_alloc(count, sizeof(*p->slot), socket_id);
	return p->slot != NULL ? 0 : -ENOMEM;
}

void
hca_pace_fini(struct hca_pace *p)
{
	hca_table_free(p->slot);
	p->slot = NULL;
}

static void
pace_set(struct hca_pace *p, uint32_t i, uint64_t at, uint32_t obj)
{
	p->slot[i].at = at;
	p->slot[i].obj = obj;
	p->slot[obj].place = i + 1;
}

/* Puts an object at slot i or above it. */
static void
pace_up(struct hca_pace *p, uint32_t i, uint64_t at, uint32_t obj)
{
	while (i != 0 && p->slot[(i - 1) / 2].at > at) {
		const struct hca_pace_slot *parent = &p->slot[(i - 1) / 2];

		pace_set(p, i, parent->at, parent->obj);
		i = (i - 1) / 2;
	}
	pace_set(p, i, at, obj);
}

/* Puts an object at slot i or below it. */
static void
pace_down(struct hca_pace *p, uint32_t i, uint64_t at, uint32_t obj)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < p->n && p->slot[child + 1].at < p->slot[child].at)
			child++;
		if (child >= p->n || p->slot[child].at >= at)
			break;
		pace_set(p, i, p->slot[child].at, p->slot[child].obj);
		i = child;
	}
	pace_set(p, i, at, obj);
}

static void
pace_remove(struct hca_pace *p, uint32_t i)
{
	uint32_t last = --p->n;

	p->slot[p->slot[i].obj].place = 0;
	if (i != last) {
		uint64_t at = p->slot[last].at;

		if (i != 0 && at < p->slot[(i - 1) / 2].at)
			pace_up(p, i, at, p->slot[last].obj);
		else
			pace_down(p, i, at, p->slot[last].obj);
	}
	p->next = p->n != 0 ? p->slot[0].at : UINT64_MAX;
}

void
hca_pace_put(struct hca_pace *p, uint32_t obj, uint64_t at)
{
	pace_up(p, p->n++, at, obj);
	p->next = p->slot[0].at;
}

bool
hca_pace_drop(struct hca_pace *p, uint32_t obj)
{
	if (p->slot[obj].place == 0)
		return false;
	pace_remove(p, p->slot[obj].place - 1);
	return true;
}

uint32_t
hca_pace_take(struct hca_pace *p, uint64_t now)
{
	uint32_t obj;

	if (now < p->next || p->n == 0)
		return HCA_PACE_NONE;
	obj = p->slot[0].obj;
	pace_remove(p, 0);
	return obj;
}
