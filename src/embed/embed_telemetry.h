/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMBED_TELEMETRY_H
#define EMBED_TELEMETRY_H

#include "embed_impl.h"

/*
 * HCAs that are complete can be asked about until they are removed, before anything of them goes.
 */
void embed_telemetry_add(struct softhca_embed *e);
/* Not added: nothing happens. */
void embed_telemetry_remove(struct softhca_embed *e);

#endif
