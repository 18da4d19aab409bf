/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_QP_LIST_H
#define ENGINE_QP_LIST_H

/*
 * Lists of QPs by index, linked through a word of their contexts: appended at the tail, taken from
 * the head. Only the stage that owns the list uses it, and keeps a flag for each QP on it. link:
 * offset of the word in struct hca_qp.
 */

#include "engine/impl.h"

#define HCA_QP_NONE UINT32_MAX

struct hca_qp_list {
	uint32_t head; /* HCA_QP_NONE: empty */
	uint32_t tail; /* valid unless empty */
};

static inline uint32_t *
hca_qp_link(struct hca_pipe *h, size_t link, uint32_t qpi)
{
	return (uint32_t *)(void *)((uint8_t *)&h->qp[qpi] + link);
}

static inline void
hca_qp_list_append(struct hca_pipe *h, struct hca_qp_list *l, size_t link, uint32_t qpi)
{
	*hca_qp_link(h, link, qpi) = HCA_QP_NONE;
	if (l->head == HCA_QP_NONE)
		l->head = qpi;
	else
		*hca_qp_link(h, link, l->tail) = qpi;
	l->tail = qpi;
}

/* The list must not be empty. */
static inline uint32_t
hca_qp_list_pop(struct hca_pipe *h, struct hca_qp_list *l, size_t link)
{
	uint32_t qpi = l->head;

	l->head = *hca_qp_link(h, link, qpi);
	return qpi;
}

/* Append all QPs of another list, which is not used any more. */
static inline void
hca_qp_list_join(struct hca_pipe *h, struct hca_qp_list *l, size_t link,
		 const struct hca_qp_list *more)
{
	if (more->head == HCA_QP_NONE)
		return;
	if (l->head == HCA_QP_NONE)
		l->head = more->head;
	else
		*hca_qp_link(h, link, l->tail) = more->head;
	l->tail = more->tail;
}

/* The QP must be on the list. O(n): for purges. */
static inline void
hca_qp_list_remove(struct hca_pipe *h, struct hca_qp_list *l, size_t link, uint32_t qpi)
{
	uint32_t *at = &l->head, before = HCA_QP_NONE;

	while (*at != qpi) {
		before = *at;
		at = hca_qp_link(h, link, before);
	}
	*at = *hca_qp_link(h, link, qpi);
	if (l->tail == qpi)
		l->tail = before;
}

#endif
