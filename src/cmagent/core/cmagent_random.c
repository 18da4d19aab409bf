/* SPDX-License-Identifier: BSD-3-Clause */

#include "cmagent_random.h"

#include <sys/random.h>

uint64_t
cmagent_random(struct cmagent_random *r)
{
	uint64_t z;

	if (r->seed == 0 && getrandom(&z, sizeof(z), 0) == (ssize_t)sizeof(z))
		return z;
	/* splitmix64 */
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	z = r->seed + r->state;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}
