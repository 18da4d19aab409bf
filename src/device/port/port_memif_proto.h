/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_MEMIF_PROTO_H
#define PORT_PORT_MEMIF_PROTO_H

/*
 * The memif protocol, version 2.0, as VPP, libmemif and DPDK implement it. Control messages have
 * 128 bytes and are sent over a SOCK_SEQPACKET socket, some with a descriptor (SCM_RIGHTS). The
 * client owns and describes the memory; the server acknowledges each message:
 *
 *  server                         client
 *  HELLO                 ->
 *                        <-       INIT
 *  ACK                   ->
 *                        <-       ADD_REGION (memfd), once per region
 *  ACK                   ->
 *                        <-       ADD_RING (eventfd), client to server, then the other one
 *  ACK                   ->
 *                        <-       CONNECT
 *  CONNECTED             ->
 *  DISCONNECT            <->      at any time, with a reason; closing the socket means the same
 *
 * A ring is a header and 2^n descriptors. Client to server: the client fills descriptors and
 * advances head, the server returns them by advancing tail. Server to client: the client offers
 * buffers by advancing head, the server fills them and advances tail. Both indexes are
 * free-running, modulo 2^16, in the machine's byte order.
 */

#include <stdint.h>

#define MEMIF_COOKIE 0x3E31F20u
#define MEMIF_VERSION 0x200u
#define MEMIF_NAME_SIZE 32u
#define MEMIF_SECRET_SIZE 24u
#define MEMIF_REASON_SIZE 96u
#define MEMIF_MODE_ETHERNET 0u

enum memif_type {
	MEMIF_ACK = 1,
	MEMIF_HELLO,
	MEMIF_INIT,
	MEMIF_ADD_REGION,
	MEMIF_ADD_RING,
	MEMIF_CONNECT,
	MEMIF_CONNECTED,
	MEMIF_DISCONNECT,
};

struct memif_hello {
	char name[MEMIF_NAME_SIZE];
	uint16_t min_version, max_version;
	uint16_t max_region; /* this and the next two: highest index */
	uint16_t max_m2s_ring, max_s2m_ring;
	uint8_t max_log2_ring_size;
} __attribute__((packed));

struct memif_init {
	uint16_t version;
	uint32_t id;
	uint8_t mode;
	char secret[MEMIF_SECRET_SIZE];
	char name[MEMIF_NAME_SIZE];
} __attribute__((packed));

struct memif_add_region {
	uint16_t index;
	uint64_t size;
} __attribute__((packed));

#define MEMIF_RING_TO_SERVER 1u /* memif_add_ring.flags: client to server (S2M) */

struct memif_add_ring {
	uint16_t flags;
	uint16_t index;
	uint16_t region;
	uint32_t offset;
	uint8_t log2_ring_size;
	uint16_t private_header_size;
} __attribute__((packed));

struct memif_connect { /* also the layout of CONNECTED */
	char interface[MEMIF_NAME_SIZE];
} __attribute__((packed));

struct memif_disconnect {
	uint32_t code;
	char reason[MEMIF_REASON_SIZE];
} __attribute__((packed));

struct memif_message {
	uint16_t type; /* enum memif_type */
	union {
		struct memif_hello hello;
		struct memif_init init;
		struct memif_add_region add_region;
		struct memif_add_ring add_ring;
		struct memif_connect connect;
		struct memif_disconnect disconnect;
		uint8_t bytes[126];
	};
} __attribute__((packed));

_Static_assert(sizeof(struct memif_message) == 128, "as on the socket");

#define MEMIF_DESC_NEXT 1u /* the frame continues in the next descriptor */

struct memif_desc {
	uint16_t flags;
	uint16_t region;
	uint32_t length;
	uint32_t offset;
	uint32_t metadata;
};

#define MEMIF_MASK_INT 1u /* memif_ring.flags: the receiver polls and needs no interrupts */

struct memif_ring {
	uint32_t cookie;
	uint16_t flags;
	uint16_t head;
	uint8_t pad0[56];
	uint16_t tail;
	uint8_t pad1[62];
	struct memif_desc desc[];
};

_Static_assert(sizeof(struct memif_desc) == 16, "as in memory");
_Static_assert(sizeof(struct memif_ring) == 128, "as in memory");

#endif
