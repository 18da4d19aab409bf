/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_FRAME_FRAME_RIG_H
#define TESTS_UNIT_DEVICE_FRAME_FRAME_RIG_H

/*
 * encap and decap alone: the fixture, a port that records sent frames and delivers those the test
 * builds, one QP, and memory under two keys.
 */

#include "../engine/fixture.h"

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "engine/pkt.h"
#include "roce_craft.h"

#define FR_QPI 1u
#define FR_PD 5u
#define FR_PSN 0x000100u /* oldest unacknowledged */
#define FR_PEER_QPN 0x123456u
#define FR_MEM 32768u
#define FR_KEY 0x00000155u	 /* all of mem, contiguous */
#define FR_PAGED_KEY 0x00000255u /* the same 4 KiB pages in reverse order */
#define FR_LOCAL_KEY 0x00000355u /* as FR_KEY, without remote rights */
#define FR_VA 0x7000000u	 /* of the first byte, under each of them */
#define FR_FRAMES 512u
#define FR_FRAME_MAX 4400u
#define FR_MBUFS 512u

struct frame_rig {
	struct hca_port port; /* first */
	struct fx *fx;
	struct hca_pipe *h;
	struct hca_qp *qp;
	struct hca_qp_second second; /* of the QP */
	struct hca_qp_block block;
	struct rte_mempool *pool;
	uint8_t *mem;
	uint64_t now;
	/* tx */
	uint8_t frame[FR_FRAMES][FR_FRAME_MAX];
	uint32_t len[FR_FRAMES];
	unsigned int frames; /* number of frames sent */
	unsigned int accept; /* frames that the port accepts before it stalls */
	unsigned int tx_calls;
	bool up;
	/* rx */
	struct rte_mbuf *rx[FR_FRAMES];
	unsigned int rx_head, rx_tail;
	unsigned int asked; /* by the last rx */
};

struct frame_rig *frame_rig_new(void);
/* Free the rig; asserts that no mbuf has leaked. */
void frame_rig_free(struct frame_rig *r);
/* Byte `off` of the region of FR_PAGED_KEY. */
uint8_t *frame_rig_paged(struct frame_rig *r, uint32_t off);

/* A descriptor of our QP with every field that the opcode needs; the test changes some. */
struct rte_mbuf *frame_rig_txd(struct frame_rig *r, uint8_t opcode, uint32_t psn, uint32_t len);
void frame_rig_request(struct frame_rig *r, struct rte_mbuf *m);
void frame_rig_response(struct frame_rig *r, struct rte_mbuf *m);
/*
 * Build the expected frame from a descriptor and payload with roce_build(); returns its length.
 */
uint32_t frame_rig_expect(struct frame_rig *r, const struct hca_txd *d, const void *payload,
			  uint8_t *out);

/* Addresses in the peer's frames to our QP. */
struct hca_roce_path frame_rig_peer(void);
/* Set an entry of the GID table; vlan HCA_NO_VLAN: none. */
void frame_rig_own(struct frame_rig *r, unsigned int index, const uint8_t gid[16], uint16_t vlan);
/* Build a frame with these headers and its ICRC; returns its length. headers NULL: all zero. */
uint32_t frame_rig_from(struct frame_rig *r, const struct hca_roce_path *path, uint8_t opcode,
			const struct roce_headers *headers, uint32_t payload_len, uint8_t *out);
/* Build a valid frame of the peer for our QP; returns its length. */
uint32_t frame_rig_inbound(struct frame_rig *r, uint8_t opcode, uint32_t payload_len, uint8_t *out);
/* Recompute the ICRC after a change. */
void frame_rig_seal(struct frame_rig *r, uint8_t *frame, uint32_t len);
void frame_rig_give(struct frame_rig *r, const uint8_t *frame, uint32_t len);

unsigned int frame_rig_in_use(const struct frame_rig *r);

#endif
