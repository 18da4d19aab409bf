/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMBED_TELEMETRY_H
#define EMBED_TELEMETRY_H

#include "embed_impl.h"

/*
 * Register HCAs that are completely set up; they must be removed before any part of them is
 * destroyed.
 */
void embed_telemetry_add(struct softhca_embed *e);
/* Does nothing if they are not registered. */
void embed_telemetry_remove(struct softhca_embed *e);

#endif
