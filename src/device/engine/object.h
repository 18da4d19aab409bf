/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_OBJECT_H
#define ENGINE_OBJECT_H

/*
 * Objects: the things that messages, timer entries and rounds refer to. Each kind has one range of
 * object indexes, in the order of the list, fixed when the HCA is created. QPs come first, so the
 * object index of a QP is its index in the key-QPC store. Indexes have 16 bits. A device without
 * the wire of a kind has none of its objects.
 *
 * Differences between kinds are a row per kind in the file that needs them: timer.c (the stage that
 * gets expiries), round.c (functions that reset, purge and free objects of the kind).
 */

#include <stdint.h>

#include "wire/wire_view.h"

/*
 * X(KIND, log2 of the number of its objects, in struct hca_config; wires that have such objects)
 */
#define HCA_OBJECT_LIST(X) \
	X(QP, log_qps, HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB)) \
	X(TP, log_tps, HCA_WIRE_BIT(HCA_WIRE_UB))

enum hca_object_kind {
#define X(k, log, wires) HCA_OBJECT_##k,
	HCA_OBJECT_LIST(X)
#undef X
	HCA_OBJECT_N,
	HCA_OBJECT_ANY = HCA_OBJECT_N, /* objects of every kind */
};

/* The object indexes of a kind. */
struct hca_object_range {
	uint32_t first, count;
};

#endif
