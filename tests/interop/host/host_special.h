/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_SPECIAL_H
#define TESTS_INTEROP_HOST_SPECIAL_H

/* Tests that are not in the matrix: limits, late receivers, intended errors, faults of the wire. */

#include "host.h"

extern const unsigned int host_num_specials;

const char *host_special_name(unsigned int i);
/* false: this test does not exist in that direction. */
bool host_special(unsigned int i, bool ours, struct host_case *c);

/* Random test i: any meaningful combination, with or without faults of the wire. */
void host_random_case(unsigned int i, uint64_t seed, struct host_case *c, char *name, size_t room);

/* Complete a case with the values that every test needs. */
void host_finish_case(struct host_case *c, uint64_t seed, const char *name);

#endif
