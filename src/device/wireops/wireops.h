/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIREOPS_WIREOPS_H
#define WIREOPS_WIREOPS_H

/*
 * The table of wires: a row of struct hca_wire_ops (engine/wire_ops.h) for each name of
 * HCA_WIRE_LIST, in a source wire_<name>.c of this folder.
 */

#include "engine/wire_ops.h"

#define X(NAME, name) extern const struct hca_wire_ops hca_wire_##name;
HCA_WIRE_LIST(X)
#undef X

/**
 * Puts the rows of a configuration into a device's core, before its parts are made.
 *
 * @param h
 *   The core; cfg.wires and cfg.wire_more are set.
 * @return
 *   0; -EINVAL: a bit of cfg.wires stands for no wire.
 */
int hca_wires_set(struct hca_core *h);

#endif
