/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WIRE_DECODE_UB_H
#define TESTS_WIRE_DECODE_UB_H

#include <stdbool.h>
#include <stdint.h>

#include "ub_craft.h"

/* Whether a frame goes to UB's port, as far as its headers tell. */
bool decode_is_ub(const uint8_t *frame, uint32_t len);
/* Judges a frame; 0, or why not, as ub_parse(); features that are not offered are accepted. */
int decode_ub_parse(const uint8_t *frame, uint32_t len, struct ub_view *v);
/* All fields of a frame that was taken: " ub.rtph.psn=7", named as config/uboe.lua does. */
void decode_ub_print(const uint8_t *frame, const struct ub_view *v);

#endif
