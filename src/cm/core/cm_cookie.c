/* SPDX-License-Identifier: BSD-3-Clause */

#include "abi_bits.h"
#include "cm_cookie.h"

#define WORDS 6u

struct sip {
	uint64_t v[4];
};

static uint64_t
sip_rotate(uint64_t x, uint32_t n)
{
	return x << n | x >> (64 - n);
}

static void
sip_half(uint64_t *a, uint64_t *b, uint32_t n)
{
	*a += *b;
	*b = sip_rotate(*b, n) ^ *a;
}

static void
sip_rounds(struct sip *s, uint32_t n)
{
	uint64_t *v = s->v;

	for (; n > 0; n--) {
		sip_half(&v[0], &v[1], 13);
		v[0] = sip_rotate(v[0], 32);
		sip_half(&v[2], &v[3], 16);
		sip_half(&v[0], &v[3], 21);
		sip_half(&v[2], &v[1], 17);
		v[2] = sip_rotate(v[2], 32);
	}
}

static void
sip_word(struct sip *s, uint64_t word)
{
	s->v[3] ^= word;
	sip_rounds(s, 2);
	s->v[0] ^= word;
}

uint64_t
cm_siphash(const uint64_t key[2], const uint64_t *words, uint32_t n)
{
	struct sip s = {
		{key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
		 key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)}};

	for (uint32_t i = 0; i < n; i++)
		sip_word(&s, words[i]);
	sip_word(&s, (uint64_t)n * sizeof(*words) << 56);
	s.v[2] ^= 0xff;
	sip_rounds(&s, 4);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

static uint64_t
cookie_of(const uint64_t key[2], const uint8_t *own, const uint8_t *peer, uint64_t transaction,
	  uint64_t period)
{
	const uint64_t words[WORDS] = {hca_get_be64(own),  hca_get_be64(own + 8),
				       hca_get_be64(peer), hca_get_be64(peer + 8),
				       transaction,	   period};

	return cm_siphash(key, words, WORDS);
}

uint64_t
cm_cookie(const uint64_t key[2], const uint8_t own[16], const uint8_t peer[16],
	  uint64_t transaction, uint64_t now)
{
	return cookie_of(key, own, peer, transaction, now / CM_COOKIE_PERIOD_NS);
}

bool
cm_cookie_is_good(const uint64_t key[2], const uint8_t own[16], const uint8_t peer[16],
		  uint64_t transaction, uint64_t cookie, uint64_t now)
{
	uint64_t period = now / CM_COOKIE_PERIOD_NS;

	return cookie == cookie_of(key, own, peer, transaction, period) ||
	       (period != 0 && cookie == cookie_of(key, own, peer, transaction, period - 1));
}
