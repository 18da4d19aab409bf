/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_LIB_FAKE_CTL_H
#define TESTS_UNIT_LIB_FAKE_CTL_H

/*
 * A driver and a device made of arrays: answers every control call, records the last request of
 * each kind, and lets a test act as the device on queues, records and the doorbell page.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "abi_cmd.h"
#include "abi_ctx.h"
#include "lib_types.h"

#define FAKE_UAR_PAGE 5u
#define FAKE_LOG_QPS 6u
#define FAKE_CHANNELS 8u

struct fake_ctl {
	struct hca_uar_page page __attribute__((aligned(4096)));
	uint32_t fifo_head; /* the device's position */
	uint32_t pipes;
	struct hca_ctl_mr mr;
	uint64_t mr_pages[64];
	struct hca_ctl_cq cq;
	struct hca_ctl_resize resize;
	uint32_t resize_at; /* index of the first completion in the new buffer */
	struct hca_ctl_qp qp;
	struct hca_qpc mailbox; /* of the last modify_qp */
	uint32_t opcode;
	struct hca_qpc stored; /* answer to query_qp */
	uint32_t next_qpn;
	uint32_t next_cqn;
	uint32_t objects; /* number of PDs, MRs, MWs, CQs, QPs, SRQs and channels */
	uint8_t dmac[6];  /* answer to resolve */
	int fail_modify;  /* error of the next modify_qp */
	uint64_t speed;	  /* of the port; its state */
	uint32_t port_state;
	uint16_t pkeys[16];
	bool dead;
	bool closed;
	int async_write;
	int channel_write;		   /* of channel 1 */
	int channel_writes[FAKE_CHANNELS]; /* -1: no channel */
	/* operations of connection management, or NULL */
	int (*cm)(struct fake_ctl *fake, enum hca_ctl_op op, const void *request, void *answer);
	unsigned int progressed;
	void (*on_progress)(struct fake_ctl *fake);
};

/* Open a context on a new fake; manual: with a progress hook. */
struct fake_ctl *fake_open(struct softhca_context **ctx, bool manual);
struct fake_ctl *fake_open_pipes(struct softhca_context **ctx, bool manual, uint32_t pipes);
void fake_close(struct fake_ctl *fake, struct softhca_context *ctx);

/* Take the next word from the doorbell FIFO as the device does; 0: none. */
uint64_t fake_take_doorbell(struct fake_ctl *fake);

/* Write CQE number n (free running) as the device does, and publish it. */
void fake_complete(struct softhca_cq *cq, uint32_t n, const struct hca_cqe *cqe);

/* A QP with one CQ, moved to `state` without attributes. */
struct fake_qp {
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
};

struct fake_qp fake_make_qp(struct softhca_context *ctx, const struct softhca_qp_cap *cap,
			    uint32_t state, uint32_t cqe);
void fake_drop_qp(struct fake_qp *q);

#endif
