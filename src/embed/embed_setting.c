/* SPDX-License-Identifier: BSD-3-Clause */

/* Settings of embedded HCAs that change while they work. */

#include <errno.h>

#include "embed_impl.h"
#include "host_setting.h"

int
softhca_embed_set(struct softhca_embed *e, unsigned int index, const char *text)
{
	char why[192];
	int err = embed_own_hca(e, index);

	if (err != 0)
		return err;
	if (text == NULL)
		return embed_fail(-EINVAL, "no setting: expected " HOST_SETTINGS);
	err = host_setting_change(e->side[index].drv, text, why, sizeof(why));
	return err == 0 ? 0 : embed_fail(err, "%s", why);
}
