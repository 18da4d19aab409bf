/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "cc/cc_names.h"

static const char *const cc_names[] = {
#define X(name) #name,
	HCA_CC_LIST(X)
#undef X
};

#define X(name) _Static_assert(sizeof(#name) <= HCA_CC_NAME_MAX, #name);
HCA_CC_LIST(X)
#undef X

unsigned int
hca_cc_number(const char *name)
{
	for (unsigned int i = 0; i < sizeof(cc_names) / sizeof(cc_names[0]); i++)
		if (strcmp(cc_names[i], name) == 0)
			return i + 1;
	return 0;
}

bool
hca_cc_is_name(const char *name)
{
	return hca_cc_number(name) != 0;
}
