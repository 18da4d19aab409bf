/* SPDX-License-Identifier: BSD-3-Clause */

/* Thread domains: the pipeline of QPs that one thread uses. */

#include "lib_types.h"

struct softhca_td *
softhca_alloc_td(struct softhca_context *pub)
{
	struct lib_td *td = lib_object_new(lib_ctx(pub), sizeof(*td), "a thread domain");

	if (td == NULL)
		return NULL;
	td->pub.context = pub;
	return &td->pub;
}

int
softhca_dealloc_td(struct softhca_td *pub)
{
	struct lib_context *ctx = lib_ctx(pub->context);

	lib_object_free(ctx, pub);
	return 0;
}
