/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_HOST_SETTING_H
#define HOST_HOST_SETTING_H

/*
 * Settings of an HCA that change while it works, as text: "congestion=NAME", or "KEY=N" with a key
 * of HCA_CC_PARAMETER_LIST, or several with commas between them. The same for softhca-ctl set and
 * embedded HCAs.
 */

#include <stddef.h>

#include "cc/cc_names.h"
#include "driver.h"

/* For messages */
#define HOST_SETTING_KEY(name) ", " #name "=N"
#define HOST_SETTINGS "congestion=NAME" HCA_CC_PARAMETER_LIST(HOST_SETTING_KEY)

/*
 * Blocks until all QPs and TPs have an algorithm, but those with one by an attribute; parameters
 * count from the next CNP or acknowledgement on. All settings are judged before the first one
 * changes. 0, or a negative errno with the reason in why: -EINVAL: the text is wrong, or has a
 * name twice; else as hca_driver_set_congestion(), and only after -EIO some of the settings may
 * have changed. Any thread that may give commands.
 */
int host_setting_change(struct hca_driver *drv, const char *text, char *why, size_t size);

#endif
