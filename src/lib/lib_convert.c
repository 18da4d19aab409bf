/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of the program that is to be registered and is not in the table yet. */

#include <errno.h>

#include "lib_share_impl.h"

struct lib_share *
lib_share_adopt(uint64_t va, uint64_t end)
{
	lib_fail(-EOPNOTSUPP,
		 "memory at %#llx is not shared: take it from softhca_alloc(), or name its file "
		 "with softhca_attach()",
		 (unsigned long long)va);
	return NULL;
}

void
lib_share_release(struct lib_share *share)
{
	lib_pool_tidy(share);
}
