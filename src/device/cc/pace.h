/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_PACE_H
#define CC_PACE_H

/*
 * Objects that wait for their time to send: a binary heap by time with the place of each object, so
 * that an object costs nothing before its time, and can be taken out. Adding and removing take as
 * many steps as log2 of the number that wait. It belongs to one stage; nothing here allocates after
 * hca_pace_init().
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#define HCA_PACE_NONE UINT32_MAX
/* Alarms are slightly late: so long before the next time a worker polls instead of sleeping, ns. */
#define HCA_PACE_EARLY 50000u

struct hca_pace_slot {
	uint64_t at;  /* of the heap: ns */
	uint32_t obj; /* of the heap */
	uint32_t
		place; /* of the object with this slot's index: its slot + 1; 0: it does not wait */
};

struct hca_pace {
	uint64_t next; /* the earliest time, ns; UINT64_MAX: the heap is empty */
	uint32_t n;
	struct hca_pace_slot *slot; /* as many as there are objects; NULL: not initialized */
};

/**
 * Allocate the heap. The owner's init function.
 *
 * @param count
 *   Objects have indexes from 0 to count - 1.
 * @param socket_id
 *   As of rte_zmalloc_socket().
 * @return
 *   0, or -ENOMEM: next is UINT64_MAX then also.
 */
int hca_pace_init(struct hca_pace *p, uint32_t count, int socket_id);
void hca_pace_fini(struct hca_pace *p);

/**
 * Let an object wait. It does not wait yet.
 *
 * @param at
 *   ns, of poll(); not UINT64_MAX.
 */
void hca_pace_put(struct hca_pace *p, uint32_t obj, uint64_t at);

/** The object need not wait any longer. @return whether it did. */
bool hca_pace_drop(struct hca_pace *p, uint32_t obj);

/** Take one whose time is now or was before; earlier ones first. @return HCA_PACE_NONE: none. */
uint32_t hca_pace_take(struct hca_pace *p, uint64_t now);

/** The time until which a stage without other work may sleep, ns; UINT64_MAX: no limit. */
static inline uint64_t
hca_pace_deadline(const struct hca_pace *p)
{
	return p->next == UINT64_MAX ? UINT64_MAX : p->next - RTE_MIN(p->next, HCA_PACE_EARLY);
}

#endif
