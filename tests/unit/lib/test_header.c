/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Includes the public headers as a strict C11 program does, with names of its own that must not
 * clash.
 */

#define X 5
#define Y(x) x

#include <softhca/softhca.h>

#include <softhca/cm.h>
#include <softhca/embed.h>

_Static_assert(X == 5 && Y(6) == 6, "macros of the program");
_Static_assert(SOFTHCA_RATE_600_GBPS == 22 && SOFTHCA_RATE_2_5_GBPS == 2, "numbers of verbs");

int
main(void)
{
	return softhca_inc_rkey(0x12ff) == 0x1200 ? 0 : 1;
}
