/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BAR_BAR_H
#define BAR_BAR_H

/*
 * Register memory: BAR0 (HCR, reset, EQ consumer indexes; driver only) and BAR2 (2048 UAR pages).
 * Plain zeroed memory of the device; software stores to it, the CEU and the doorbell stage look.
 * Called by hca_create() and hca_destroy(); accessors by the CEU. Tables 3-1-1 .. 3-1-6.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_bar.h"

struct hca_core;

/* 0 or -ENOMEM. */
int hca_bar_init(struct hca_core *h);
void hca_bar_fini(struct hca_core *h);

static inline hca_le32 *
hca_bar_word(uint8_t *bar0, uint32_t off)
{
	return (hca_le32 *)(void *)(bar0 + off);
}

/* Register word in host order; acquire: earlier stores of software are visible. */
static inline uint32_t
hca_bar_load(uint8_t *bar0, uint32_t off)
{
	return hca_le32_to_cpu(__atomic_load_n(hca_bar_word(bar0, off), __ATOMIC_ACQUIRE));
}

/* Release: everything the device stored before is visible to a reader of the word. */
static inline void
hca_bar_store(uint8_t *bar0, uint32_t off, uint32_t v)
{
	__atomic_store_n(hca_bar_word(bar0, off), hca_cpu_to_le32(v), __ATOMIC_RELEASE);
}

#endif
