/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wires of the device and a view of a frame that is the same for all of them: Ethernet II, at
 * most one VLAN tag, IPv4 without options or IPv6 without extension headers, a UDP port of the
 * wire, its transport header. Decap's general way, impairment rules, capture filters, divert and
 * the tests read frames through it; each wire fills in the part that follows the UDP header.
 *
 * Every function takes frames as they are on the wire (big-endian, any alignment), reads nothing
 * past the length it is given, and keeps no state; any thread may call it. Numbers in structs are
 * in the CPU's order. The IP header checksum is not verified and any UDP checksum is accepted: the
 * ICRC covers the same bytes.
 */
#ifndef DEVICE_WIRE_WIRE_VIEW_H
#define DEVICE_WIRE_WIRE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wires.h"

#define HCA_ETH_LEN 14
#define HCA_VLAN_LEN 4
#define HCA_IPV4_LEN 20
#define HCA_IPV6_LEN 40
#define HCA_UDP_LEN 8

/* Why hca_wire_parse() refuses a frame: X(NAME, counter of decap, meaning). */
#define HCA_WIRE_DROP_LIST(X) \
	X(SHORT, rx_short, "ends inside the Ethernet, IP or UDP header") \
	X(NOT_IP, rx_not_ip, "neither IPv4 nor IPv6") \
	X(BAD_IP_VERSION, rx_bad_ip, "version differs from the ethertype") \
	X(IP_OPTIONS, rx_bad_ip, "IPv4 header length is not 20") \
	X(IP_LEN, rx_bad_length, "IP length longer than the frame or too short for UDP") \
	X(FRAGMENT, rx_fragment, "IP fragment") \
	X(NOT_UDP, rx_not_udp, "IP protocol is not UDP") \
	X(NOT_ROCE, rx_not_roce, "UDP port is of no wire") \
	X(UDP_LEN, rx_bad_length, "UDP length differs from the IP length") \
	X(HEADER_SHORT, rx_bad_length, "ends inside BTH, extension headers or ICRC") \
	X(TRANSPORT, rx_not_roce, "transport header refused by its wire, which says why") \
	X(TVER, rx_bad_bth, "transport version is not 0") \
	X(OPCODE, rx_bad_opcode, "opcode is not defined or not supported") \
	X(PAD, rx_bad_pad, "pad count exceeds the payload, or not whole words") \
	X(PAYLOAD, rx_bad_length, "payload after an opcode that has none")

/* Returned negated. */
enum hca_wire_drop {
	HCA_WIRE_DROP_NONE = 0,
#define X(NAME, counter, text) HCA_WIRE_DROP_##NAME,
	HCA_WIRE_DROP_LIST(X)
#undef X
	HCA_WIRE_DROP_COUNT
};

/* Offsets are bytes from the first byte of the frame. */
struct hca_wire_view {
	uint8_t wire;	    /* enum hca_wire */
	uint8_t opcode;	    /* of BTH or RTPH */
	uint8_t ip_version; /* 4 or 6 */
	uint16_t l3;
	uint16_t transport; /* first byte after the UDP header */
	uint16_t payload;   /* where the headers end */
	uint32_t icrc;	    /* after payload and pad */
	uint32_t psn;
	uint32_t dst; /* number of the receiver's object: a QPN or TPN */
	uint32_t src; /* number the frame itself says it comes from, 0: it does not */
};

/*
 * Judges everything but the ICRC. Returns 0 or -enum hca_wire_drop; *v is meaningful on 0. When
 * the frame is refused, v->wire says whose it would have been, and from -HCA_WIRE_DROP_OPCODE on
 * all but payload is meaningful: a responder that answers an undefined opcode can check
 * ICRC, destination and PSN first. Bytes after the IP length (Ethernet padding) are ignored. The
 * payload is bounded by the frame only: the MTU is a matter of the connection.
 */
int hca_wire_parse(const uint8_t *frame, uint32_t len, struct hca_wire_view *v);

/* Whether the frame is a request or response, which its sender sends again if it is lost. */
bool hca_wire_is_data(const struct hca_wire_view *v);

/* The UDP port of a wire; 0: of HCA_WIRE_NONE. */
uint16_t hca_wire_udp_port(enum hca_wire wire);

/*
 * Of each wire, with its frames: the part of hca_wire_parse() after the UDP header, of which n
 * bytes are in the frame, and hca_wire_is_data().
 */
#define X(NAME, name) \
	int hca_##name##_parse(const uint8_t *frame, uint32_t n, struct hca_wire_view *v); \
	bool hca_##name##_is_data(const struct hca_wire_view *v);
HCA_WIRE_LIST(X)
#undef X

/*
 * The wire that a frame is addressed to by its UDP port, malformed or not, IP options and extension
 * headers included; HCA_WIRE_NONE: it is not the device's, or it ends before the port.
 */
enum hca_wire hca_wire_of(const uint8_t *frame, uint32_t len);

#endif
