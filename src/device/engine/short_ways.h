/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SHORT_WAYS_H
#define ENGINE_SHORT_WAYS_H

/*
 * Usual packets and requests have short ways through the stages, which change nothing but the time.
 * Built with 0, the stages take the general way. Tests compare the two: tests/sim has a program of
 * each, and in tests/fuzz the value is a variable.
 */
#ifndef HCA_SHORT_WAYS
#define HCA_SHORT_WAYS 1
#endif

#endif
