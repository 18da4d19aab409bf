/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

/* What the parts of the engine's own house offer each other; not for stages. */

struct hca;

/* Seeds hca->rng from cfg.seed, or from the kernel's CSPRNG when that is 0. */
int hca_random_seed(struct hca *h);

#endif
