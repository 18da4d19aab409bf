/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_LAYOUT_H
#define GRAPH_LAYOUT_H

/*
 * The table of layouts: which worker polls which stage, how many workers that makes, and which of
 * them share a CPU if there are fewer CPUs. graph.c places the stages by it; everything else asks
 * hca_layout_workers() (hca.h). No DPDK, so that softhca-ctl links it.
 */

#include <stdint.h>

#include "core/stage.h"
#include "hca.h"

#define HCA_LAYOUTS (HCA_LAYOUT_FULL + 1)

/*
 * The worker of a stage. A stage that none of the wires needs is on worker 0 if no other stage
 * would be on its worker; its polls return at once.
 *
 * @param layout
 *   Less than HCA_LAYOUTS.
 * @param wires
 *   A set of HCA_WIRE_BIT()s, not empty.
 */
unsigned int hca_layout_worker(enum hca_layout layout, uint32_t wires, enum hca_stage_id stage);

/*
 * The CPU of a worker if there are fewer CPUs than workers. Pipelines have CPUs apart as long as
 * there is one for each.
 *
 * @param cpus
 *   How many, at least 1.
 * @param worker
 *   Less than hca_layout_workers().
 * @return
 *   Less than cpus; with a CPU for each worker, or more, the number of the worker.
 */
unsigned int hca_layout_cpu(enum hca_layout layout, unsigned int pipelines, uint32_t wires,
			    unsigned int cpus, unsigned int worker);

/*
 * The stages of a pipe, a bit each. The CEU and the stages of other wires than RoCE are in pipe 0
 * alone.
 */
uint32_t hca_stages_of_pipe(uint32_t wires, unsigned int pipe);

#endif
