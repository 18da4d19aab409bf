/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CORE_CM_COOKIE_H
#define CM_CORE_CM_COOKIE_H

/*
 * Cookies: a peer must repeat one before this end keeps any state for it. A cookie is a keyed hash
 * of both addresses, the transaction and the time, so this end stores none and only the receiver at
 * that address has it. It is good for one to two periods of CM_COOKIE_PERIOD_NS.
 */

#include <stdbool.h>
#include <stdint.h>

#define CM_COOKIE_PERIOD_NS UINT64_C(10000000000)

/**
 * @param key
 *   Random numbers, the same as long as a cookie may be repeated.
 * @param now
 *   In ns.
 */
uint64_t cm_cookie(const uint64_t key[2], const uint8_t own[16], const uint8_t peer[16],
		   uint64_t transaction, uint64_t now);
bool cm_cookie_is_good(const uint64_t key[2], const uint8_t own[16], const uint8_t peer[16],
		       uint64_t transaction, uint64_t cookie, uint64_t now);

/* SipHash-2-4 of n words, each as its bytes in little-endian order */
uint64_t cm_siphash(const uint64_t key[2], const uint64_t *words, uint32_t n);

#endif
