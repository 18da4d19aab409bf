/* SPDX-License-Identifier: BSD-3-Clause */

/* Settings of embedded HCAs that change while they work. */

#include <errno.h>

#include "embed_impl.h"
#include "host_setting.h"

int
softhca_embed_set(struct softhca_embed *e, unsigned int index, const char *text)
{
	char why[192];
	int err;

	if (index >= e->cfg.num_hcas)
		return embed_fail(-EINVAL, "HCA number %u: expected 0 to %u", index,
				  e->cfg.num_hcas - 1);
	err = host_setting_change(e->side[index].drv, text, why, sizeof(why));
	return err == 0 ? 0 : embed_fail(err, "%s", why);
}
