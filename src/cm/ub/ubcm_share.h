/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_UB_UBCM_SHARE_H
#define CM_UB_UBCM_SHARE_H

/*
 * What peers may take of a stock that local users need, too: an account for each address and for
 * all of them. It counts units (here: TPNs) and knows nothing of what they are used for. Peers take
 * units as halves, which become open ones when the handshake is complete. The caller serializes.
 *
 *	all = reserve (local users alone) + what peers may have; of the latter at most `half` are
 *	halves, and one address has at most `address`
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, text): gauges in units */
#define UBCM_SHARE_LIST(X) \
	X(half, "halves of channels that peers have begun") \
	X(open, "channels that peers have opened")

enum ubcm_share_kind {
#define UBCM_SHARE_ENUM(name, text) UBCM_SHARE_##name,
	UBCM_SHARE_LIST(UBCM_SHARE_ENUM)
#undef UBCM_SHARE_ENUM
	UBCM_SHARE_KINDS
};

struct ubcm_share_limits {
	uint32_t peers;	  /* halves and open ones of all addresses */
	uint32_t half;	  /* halves of all addresses */
	uint32_t address; /* halves and open ones of one address */
};

/* The limit that is met first. */
enum ubcm_share_full {
	UBCM_SHARE_FULL_ADDRESS,
	UBCM_SHARE_FULL_HALF,
	UBCM_SHARE_FULL_PEERS,
};

struct ubcm_share_row {
	uint8_t address[16];
	uint32_t used[UBCM_SHARE_KINDS];
};

struct ubcm_share {
	struct ubcm_share_limits limits;
	uint32_t used[UBCM_SHARE_KINDS];
	uint32_t rows; /* in use */
	struct ubcm_share_row *row;
};

/*
 * The limits of a stock of `all` units, of which a link takes up to `link`: a quarter is the
 * reserve of local users, a quarter may be halves, a quarter one address's. A half may be a whole
 * link, and an address may have two, if what peers may have is enough for that.
 */
struct ubcm_share_limits ubcm_share_limits(uint32_t all, uint32_t link);

/* Begin with rows for so many addresses as limits.peers. */
void ubcm_share_init(struct ubcm_share *s, const struct ubcm_share_limits *limits,
		     struct ubcm_share_row *row);

/*
 * How many more units the address may take as halves.
 * @param full
 *   The limit that allows no more than that.
 */
uint32_t ubcm_share_left(const struct ubcm_share *s, const uint8_t address[16],
			 enum ubcm_share_full *full);

/* The address has n more, at most as many as ubcm_share_left() says. */
void ubcm_share_take(struct ubcm_share *s, const uint8_t address[16], enum ubcm_share_kind kind,
		     uint32_t n);
/* n fewer, of those it has. */
void ubcm_share_give(struct ubcm_share *s, const uint8_t address[16], enum ubcm_share_kind kind,
		     uint32_t n);

#endif
