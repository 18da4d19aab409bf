/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SHORT_WAYS_H
#define TESTS_SHORT_WAYS_H

#include <stdbool.h>

/* HCA_SHORT_WAYS of the stages in hca_either (src/device/meson.build). */
extern bool hca_short_ways;

#endif
