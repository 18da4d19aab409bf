/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_SPECIAL_H
#define TESTS_INTEROP_HOST_SPECIAL_H

/* Tests beside the matrix: limits, late receivers, errors on purpose, faults of the wire. */

#include "host.h"

extern const unsigned int host_num_specials;

const char *host_special_name(unsigned int i);
/* false: this one does not exist in that direction. */
bool host_special(unsigned int i, bool ours, struct host_case *c);

/*
 * Test i of those drawn from a seed: any combination that makes sense, on a wire that may be bad.
 */
void host_random_case(unsigned int i, uint64_t seed, struct host_case *c, char *name, size_t room);

/* What every test needs and none wants to say. */
void host_finish_case(struct host_case *c, uint64_t seed, const char *name);

#endif
