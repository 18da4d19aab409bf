/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_EQ_H
#define QUEUES_EQ_H

/*
 * Event queues. Any stage may raise an event at any time; none is lost. Only the CEU writes EQEs: a
 * stage sets the bit of the type in the object's pending word and puts the object on its own list,
 * which the CEU takes. If an EQ has no room the event stays pending (a bit per object and type) and
 * is retried. At most one unconsumed COMP event per CQ; asynchronous events coalesce per object and
 * type. An EQ found full raises EQ_OVERFLOW about itself, once until it has been empty again.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "core/stage.h"

struct hca_core;

/* A completion event of CQ index cqi is due on its comp_eqn. */
void hca_eq_raise_comp(struct hca_core *h, enum hca_stage_id from, uint32_t cqi);

/*
 * For hca_eq_raise_cq() only, never written: raise the event at the end of the moderation period.
 */
#define HCA_EQ_LATER 30u

/* An asynchronous event (HCA_EVENT_*) about the object at that index of its table. */
void hca_eq_raise_qp(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t qpi);
void hca_eq_raise_cq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t cqi);
void hca_eq_raise_srq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t srqi);

/* TP_ERROR about the TP at that index; by one stage alone. subtype: HCA_TP_ERR_* */
void hca_eq_raise_tp(struct hca_core *h, enum hca_stage_id from, uint32_t tpi, uint32_t tpn,
		     uint8_t subtype);

/* PORT_CHANGE; subtype HCA_PORT_ACTIVE or HCA_PORT_DOWN. Raised again for later subscribers. */
void hca_eq_raise_port(struct hca_core *h, enum hca_stage_id from, uint8_t subtype);

/* ---- CEU and hca_create() only ---- */

int hca_eqs_init(struct hca_core *h);
void hca_eqs_fini(struct hca_core *h);

/* Memory here that grows with the number of QPs the HCA can have, for each. */
size_t hca_eqs_bytes_per_qp(const struct hca_core *h);

/* As hca_stage_deadline_fn: moderation periods, events that wait for room in a queue. */
uint64_t hca_eqs_deadline(const struct hca_core *h, uint64_t now);

/* Has hca_eqs_poll() anything to do? */
bool hca_eqs_due(const struct hca_core *h, uint64_t now);
/* Move raised events into EQs as far as there is room; returns how many EQEs were written. */
unsigned int hca_eqs_poll(struct hca_core *h, uint64_t now);
/* Tell the embedder what was written since the last call. */
void hca_eqs_notify(struct hca_core *h);

/* Completion of a command; false: the EQ is full, try again. Not asked for: true. */
bool hca_eq_write_cmd(struct hca_core *h, uint16_t token, uint8_t status, uint64_t out_param);

/* Next CQ that overran since the last call (for the CEU to fail its QPs); false: none. */
bool hca_eq_take_failed_cq(struct hca_core *h, uint32_t *cqi);

bool hca_eq_is_live(const struct hca_core *h, uint32_t eqn);
/* Commands; all return enum hca_stat. */
int hca_eq_create(struct hca_core *h, uint32_t eqn, const struct hca_eqc *c);
int hca_eq_destroy(struct hca_core *h, uint32_t eqn);
int hca_eq_map(struct hca_core *h, uint32_t eqn, uint64_t mask, bool unmap);
void hca_eq_destroy_all(struct hca_core *h);
/* The object is gone: what it still owes software is dropped. */
void hca_eq_forget_cq(struct hca_core *h, uint32_t cqi);
/* A moderation period of the CQ that runs is over; nothing fires. */
void hca_eq_forget_later(struct hca_core *h, uint32_t cqi);
void hca_eq_forget_qp(struct hca_core *h, uint32_t qpi);
void hca_eq_forget_srq(struct hca_core *h, uint32_t srqi);
void hca_eq_forget_tp(struct hca_core *h, uint32_t tpi);

#endif
