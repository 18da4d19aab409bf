/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DRIVER_OWN_OPS_H
#define TESTS_UNIT_DRIVER_OWN_OPS_H

/* Rows for test_driver_ops.c, in place of those of abi_ops.h: each caller, each dispatch. */
#define HCA_CTL_OPS(X) \
	X(OPEN, open, uint32_t, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(OPEN_EXTRA, open_extra, uint32_t, uint32_t, 0, 1, EVERY, EXTRA, 0) \
	X(CLOSED, closed, uint32_t, uint32_t, 0, 0, PRIVILEGED, DRIVER, 0) \
	X(CLOSED_EXTRA, closed_extra, uint32_t, uint32_t, 0, 1, PRIVILEGED, EXTRA, 0) \
	X(SOCKET, socket, uint32_t, uint32_t, 0, 0, EVERY, CHANNEL, 0)

#endif
