/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CORE_CM_SHARE_H
#define CM_CORE_CM_SHARE_H

/*
 * Shares of peers in a stock that local users also need: an account for each address (at each user
 * where a user has a stock) and for all of them. It counts units of any kind. Peers take units as
 * halves, which become open ones when the handshake is complete. The caller serializes.
 *
 *	all = reserve (local users alone) + share of peers; of the latter at most `half` are
 *	halves, and one address has at most `address`
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, text): gauges in units */
#define CM_SHARE_LIST(X) \
	X(half, "halves of channels that peers have begun") \
	X(open, "channels that peers have opened")

enum cm_share_kind {
#define CM_SHARE_ENUM(name, text) CM_SHARE_##name,
	CM_SHARE_LIST(CM_SHARE_ENUM)
#undef CM_SHARE_ENUM
	CM_SHARE_KINDS
};

struct cm_share_limits {
	uint32_t peers;	  /* halves and open ones of all addresses */
	uint32_t half;	  /* halves of all addresses */
	uint32_t address; /* halves and open ones of one address */
};

/* The limit that is met first. */
enum cm_share_full {
	CM_SHARE_FULL_ADDRESS,
	CM_SHARE_FULL_HALF,
	CM_SHARE_FULL_PEERS,
};

/* An account. Numbers of rows are their indexes + 1; 0: none. */
struct cm_share_row {
	uint8_t address[16];
	uint32_t user;
	uint32_t used[CM_SHARE_KINDS];
	uint32_t next;		/* of its bucket, or of the free rows */
	uint32_t before, after; /* among those with as many halves */
};

struct cm_share_rank {
	uint32_t first, last;
};

struct cm_share {
	struct cm_share_limits limits;
	uint32_t used[CM_SHARE_KINDS];
	uint64_t key[2];
	uint32_t mask;		    /* buckets - 1 */
	uint32_t rows, begun, free; /* in use; ever used; list */
	uint32_t most;		    /* halves of an account */
	struct cm_share_row *row;
	struct cm_share_rank *rank; /* by the number of halves, the longest at it first */
	uint32_t *bucket;
};

/**
 * The limits of a stock: a quarter is the reserve of local users, a quarter may be halves, a
 * quarter may belong to one address. A half may be a whole link, and an address may have two, if
 * the share of peers is large enough.
 *
 * @param all
 *   Units of the stock.
 * @param link
 *   Largest number of units of a link.
 * @return
 *   The limits.
 */
struct cm_share_limits cm_share_limits(uint32_t all, uint32_t link);

/**
 * Size of the memory of a table with limits->peers rows.
 *
 * @param limits
 *   Its limits.
 * @return
 *   Bytes.
 */
size_t cm_share_bytes(const struct cm_share_limits *limits);

/**
 * Begin without accounts.
 *
 * @param s
 *   The table.
 * @param limits
 *   Its limits, which are copied.
 * @param key
 *   Random numbers, unknown to peers.
 * @param mem
 *   cm_share_bytes() zeroed bytes, aligned to 4, which the table uses until its end.
 */
void cm_share_init(struct cm_share *s, const struct cm_share_limits *limits, const uint64_t key[2],
		   void *mem);

/**
 * Rest of an account in halves.
 *
 * @param s
 *   The table.
 * @param address
 *   The peer's address, network order.
 * @param user
 *   Of this host, at which the address has the units; 0 where all users share them.
 * @param full
 *   Set to the limit that allows no more than that.
 * @return
 *   Number of units that the account may take as halves.
 */
uint32_t cm_share_left(const struct cm_share *s, const uint8_t address[16], uint32_t user,
		       enum cm_share_full *full);

/**
 * Give units to an account.
 *
 * @param s
 *   The table.
 * @param address
 *   The peer's address, network order.
 * @param user
 *   As in cm_share_left().
 * @param kind
 *   Halves or open ones.
 * @param n
 *   Number of units, at most the result of cm_share_left().
 * @return
 *   The row of the account, which stays in its place as long as the account has units; NULL: the
 *   account has no units, and n is 0.
 */
struct cm_share_row *cm_share_take(struct cm_share *s, const uint8_t address[16], uint32_t user,
				   enum cm_share_kind kind, uint32_t n);

/**
 * Take units back from an account; no effect on an account without units.
 *
 * @param s
 *   The table.
 * @param address
 *   The peer's address, network order.
 * @param user
 *   As in cm_share_left().
 * @param kind
 *   Halves or open ones.
 * @param n
 *   Number of units, at most those of this kind that the account has.
 */
void cm_share_give(struct cm_share *s, const uint8_t address[16], uint32_t user,
		   enum cm_share_kind kind, uint32_t n);

/**
 * Find an account.
 *
 * @param s
 *   The table.
 * @param address
 *   The peer's address, network order.
 * @param user
 *   As in cm_share_left().
 * @return
 *   Its row, or NULL: the account has no units.
 */
struct cm_share_row *cm_share_find(const struct cm_share *s, const uint8_t address[16],
				   uint32_t user);

/**
 * The account with the most halves.
 *
 * @param s
 *   The table.
 * @return
 *   Its row, of equal ones the oldest; NULL: no account has halves.
 */
struct cm_share_row *cm_share_most(const struct cm_share *s);

#endif
