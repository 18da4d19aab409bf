/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_WIRES_H
#define CORE_WIRES_H

/* The wires of a device by name and number. Their rows: engine/wire_ops.h. */

/*
 * X(NAME, name): name is that of the source wire_<name>.c in src/device/wireops and of the row
 * hca_wire_<name> in it.
 */
#define HCA_WIRE_LIST(X) \
	X(ROCE, roce) \
	X(UB, ub)

enum hca_wire {
	HCA_WIRE_NONE, /* not a frame of ours */
#define X(NAME, name) HCA_WIRE_##NAME,
	HCA_WIRE_LIST(X)
#undef X
	HCA_WIRES,
	HCA_WIRE_TEST = HCA_WIRES, /* the row of a test: hca_config.wire_more */
	HCA_WIRE_ROWS
};

/* Sets of wires. */
#define HCA_WIRE_BIT(wire) (1u << (wire))
#define HCA_WIRES_ALL (~0u)

#endif
