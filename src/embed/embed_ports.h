/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMBED_PORTS_H
#define EMBED_PORTS_H

#include "embed_impl.h"

/* Connect HCAs 2i and 2i + 1 back to back; side[].port is the port of each HCA. */
int embed_ports_open(struct softhca_embed *e, uint32_t serial);
void embed_ports_close(struct softhca_embed *e);

#endif
