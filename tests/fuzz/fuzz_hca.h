/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_FUZZ_HCA_H
#define TESTS_FUZZ_FUZZ_HCA_H

/* The HCA of a world: its time, its driver, and the conditions at the end of an input. */

#include "fuzz_port.h"
#include "hca.h"

struct hca_driver;

#define FUZZ_SETTLE_IDLE 8u /* loops without work after which all is quiet */

/* One loop over all workers, a tick later; returns the work done. */
unsigned int fuzz_poll(struct hca *h, uint64_t *now);
/* Until all is quiet, which it must become. */
void fuzz_settle(struct hca *h, uint64_t *now);

/*
 * A driver whose address is 10.77.0.1 and MAC 02:00:00:00:00:01; those of its n neighbours are
 * the next ones. progress(arg): the device runs once.
 */
struct hca_driver *fuzz_driver(struct hca *h, void (*progress)(void *arg), void *arg, uint8_t n);

/*
 * Memory of the program. It is the same in both worlds, which run one after the other, so that an
 * address of which an input changes some bits is valid in both or in neither.
 */
uint8_t *fuzz_memory(uint32_t bytes);
/* Contents of memory at the start of every input. */
void fuzz_pattern(uint8_t *bytes, uint32_t n);
/* Only objects from the start of the process are in use. */
void fuzz_check_usage(const struct hca *h, const struct hca_usage *base,
		      const struct fuzz_port *port);
/* FUZZ_COUNTERS=1: print at the end how far the inputs came. */
void fuzz_show_counters(const struct hca *h);

#endif
