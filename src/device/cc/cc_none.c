/* SPDX-License-Identifier: BSD-3-Clause */

/* No congestion control: a row without functions, so that no stage asks or tells anything. */

#include "cc/cc.h"

const struct hca_cc_ops hca_cc_none = {.name = "none"};
