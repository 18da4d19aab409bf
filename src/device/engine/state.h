/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

/* Changes of QP states by stages and the CEU. */

#include <stdbool.h>
#include <stdint.h>

#include "core/stage.h"

struct hca_pipe;
struct hca_qp;

/* The stages that keep state of the QP, including the timer: a bit each. */
uint32_t hca_qp_stages(const struct hca_pipe *h, const struct hca_qp *qp);

/* Tells every other stage that the state of the QP has changed (STATE). */
void hca_tell_state(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi);

/*
 * QP to ERR from a stage: CAS along the legal transitions; on success tells every other stage with
 * STATE (the caller handles its own part). false: already ERR or RST.
 */
bool hca_qp_to_error(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi);

/*
 * Send queue error of a UC or UD QP: RTS or SQD to SQE; tells all other stages. The QP goes on
 * receiving; announced send requests flush. false: the QP was in another state.
 */
bool hca_qp_to_sq_error(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi);

#endif
