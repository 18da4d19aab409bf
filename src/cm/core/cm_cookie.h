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
 * Make the cookie of a transaction. Any thread.
 *
 * @param key
 *   Random numbers, secret, the same as long as a cookie may be repeated.
 * @param own
 *   Address of this end, network order.
 * @param peer
 *   Address of the peer, network order.
 * @param transaction
 *   Its number, in the byte order of the host.
 * @param now
 *   Time in ns, monotonic.
 * @return
 *   The cookie.
 */
uint64_t cm_cookie(const uint64_t key[2], const uint8_t own[16], const uint8_t peer[16],
		   uint64_t transaction, uint64_t now);

/**
 * Judge a cookie that a peer has repeated. Any thread.
 *
 * @param key
 *   As in cm_cookie().
 * @param own
 *   Address of this end, network order.
 * @param peer
 *   Address that the message came from, network order.
 * @param transaction
 *   Number of the transaction.
 * @param cookie
 *   The cookie of the message.
 * @param now
 *   Time in ns, of the clock of cm_cookie().
 * @return
 *   Whether it is the cookie of this or the previous period.
 */
bool cm_cookie_is_good(const uint64_t key[2], const uint8_t own[16], const uint8_t peer[16],
		       uint64_t transaction, uint64_t cookie, uint64_t now);

/**
 * SipHash-2-4. Any thread.
 *
 * @param key
 *   Its 128 bits, each number as its bytes in little-endian order.
 * @param words
 *   The message, each word as its bytes in little-endian order.
 * @param n
 *   Number of words.
 * @return
 *   The hash.
 */
uint64_t cm_siphash(const uint64_t key[2], const uint64_t *words, uint32_t n);

#endif
