/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_EQ_H
#define QUEUES_EQ_H

/*
 * Event queues. Any stage may raise an event at any time, and no event is lost. Only the CEU writes
 * EQEs: a stage sets the bit of the type in the object's pending word and puts the object on its
 * own list, which the CEU takes. If an EQ has no room, the event stays pending (a bit per object
 * and type), and the CEU tries again. A CQ has at most one COMP event that software has not
 * consumed; asynchronous events coalesce per object and type. A full EQ raises an EQ_OVERFLOW event
 * with its own number, once until it has been empty.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "core/stage.h"

struct hca_core;

/* Raises a completion event of CQ index cqi on its comp_eqn. */
void hca_eq_raise_comp(struct hca_core *h, enum hca_stage_id from, uint32_t cqi);

/*
 * For hca_eq_raise_cq() only, never written to an EQ: asks the CEU to call hca_cq_fire_late() at
 * the end of the moderation period.
 */
#define HCA_EQ_LATER 30u

/* Raises an asynchronous event (HCA_EVENT_*) of the object at that index of its table. */
void hca_eq_raise_qp(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t qpi);
void hca_eq_raise_cq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t cqi);
void hca_eq_raise_srq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t srqi);

/* Raises TP_ERROR of the TP at that index; only one stage may do so. subtype: HCA_TP_ERR_* */
void hca_eq_raise_tp(struct hca_core *h, enum hca_stage_id from, uint32_t tpi, uint32_t tpn,
		     uint8_t subtype);

/*
 * Raises PORT_CHANGE; subtype HCA_PORT_ACTIVE or HCA_PORT_DOWN. While the port is down, mapping the
 * event type to an EQ raises it again.
 */
void hca_eq_raise_port(struct hca_core *h, enum hca_stage_id from, uint8_t subtype);

/* ---- CEU and hca_create() only ---- */

int hca_eqs_init(struct hca_core *h);
void hca_eqs_fini(struct hca_core *h);

/* Bytes that the event queues allocate for each QP the HCA can have. */
size_t hca_eqs_bytes_per_qp(const struct hca_core *h);

/* hca_stage_deadline_fn of moderation periods and of events that wait for room in an EQ. */
uint64_t hca_eqs_deadline(const struct hca_core *h, uint64_t now);

/* Has hca_eqs_poll() anything to do? */
bool hca_eqs_due(const struct hca_core *h, uint64_t now);
/* Writes raised events to the EQs that have room; returns the number of EQEs written. */
unsigned int hca_eqs_poll(struct hca_core *h, uint64_t now);
/* Calls the hca_notify_fn if any EQ was written since the last call. */
void hca_eqs_notify(struct hca_core *h);

/* Writes the completion of a command; false: the EQ is full, try again. No EQ mapped: true. */
bool hca_eq_write_cmd(struct hca_core *h, uint16_t token, uint8_t status, uint64_t out_param);

/* Next CQ that overran since the last call (for the CEU to fail its QPs); false: none. */
bool hca_eq_take_failed_cq(struct hca_core *h, uint32_t *cqi);

bool hca_eq_is_live(const struct hca_core *h, uint32_t eqn);
/* Commands; all return enum hca_stat. */
int hca_eq_create(struct hca_core *h, uint32_t eqn, const struct hca_eqc *c);
int hca_eq_destroy(struct hca_core *h, uint32_t eqn);
int hca_eq_map(struct hca_core *h, uint32_t eqn, uint64_t mask, bool unmap);
void hca_eq_destroy_all(struct hca_core *h);
/* Destroying an object: drops its events that are not in an EQ yet. */
void hca_eq_forget_cq(struct hca_core *h, uint32_t cqi);
/* Ends the moderation period of the CQ, if one runs, without an event. */
void hca_eq_forget_later(struct hca_core *h, uint32_t cqi);
void hca_eq_forget_qp(struct hca_core *h, uint32_t qpi);
void hca_eq_forget_srq(struct hca_core *h, uint32_t srqi);
void hca_eq_forget_tp(struct hca_core *h, uint32_t tpi);

#endif
