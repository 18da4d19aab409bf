/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_RIG_H
#define TESTS_SIM_UB_RIG_H

/*
 * The transport of UB between the two HCAs of a simulation: TPs, and a rig in the places of TAI and
 * TAT. It puts made-up operations into lanes, and sees each packet that TPR passes on. The stages
 * TAI and TAT themselves are not polled, so their code does not matter.
 *
 * Every frame that leaves is judged by the rules of the wire: headers, ICRC, PSNs, TPMSNs, lengths,
 * windows. Writes are stored at the address they name; ub_rig_check() compares them.
 */

#include "sim_test.h"

#include "engine/impl.h"
#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

#define CHECK_EQ(r, left, right) \
	do { \
		uint64_t left_ = (left), right_ = (right); \
		sim_check((r)->s, left_ == right_, "%s is %#lx, not %s, %#lx", #left, \
			  (unsigned long)left_, #right, (unsigned long)right_); \
	} while (0)

#define UB_RIG_TPS 4u	      /* per side, indexes 1 .. */
#define UB_RIG_MEM (4u << 20) /* bytes of each side's memory: half to send, half to receive */
#define UB_RIG_QPI 9u	      /* a made-up Jetty, whose PD the memory is of */
#define UB_RIG_WINDOW_MAX 2048u
#define UB_RIG_OPS 1024u /* of each pool */

/* Of all TPs; 0 selects the default in brackets. */
struct ub_rig_config {
	struct sim_config sim;
	unsigned int tps;	      /* [1] */
	enum sim_gid gid[UB_RIG_TPS]; /* [IPv4]: addresses and VLAN of each */
	uint8_t mode, rule;	      /* enum hca_tp_mode, hca_tp_rule */
	uint16_t window;	      /* [128] */
	uint8_t mtu_log;	      /* [12] */
	uint8_t flags;		      /* in addition to TAID and OFST */
	uint32_t psn;		      /* first PSN of both ways [0xfffff0] */
	uint32_t rto_base;	      /* us [0] */
	uint8_t retries;	      /* [7] */
	uint8_t ports_log;	      /* with SPRAY */
	uint32_t reorder;	      /* ns */
};

/* Record of a sent PSN of a TP. */
struct ub_rig_sent {
	uint32_t tpmsn, len;
	bool last, valid;
};

struct ub_rig_tp {
	struct ub_rig_sent sent[UB_RIG_WINDOW_MAX];
	uint32_t next; /* PSN that is due next */
	uint32_t taken[HCA_TP_LANES];
	uint64_t ops_put, ops_back;
};

struct ub_rig_side {
	struct hca_pipe *h;
	struct hca_port *port; /* the one below the judge */
	uint8_t *mem;
	struct softhca_mr *mr;
	struct ub_rig_tp tp[UB_RIG_TPS + 1];
	uint32_t at;		      /* next byte to send */
	uint64_t requests, responses; /* packets that TPR has passed on */
	uint64_t poisoned;	      /* of these */
	uint64_t dead;		      /* TPs of which TPS said so */
	uint64_t frames;	      /* sent */
	uint64_t bursts;	      /* given to the port; of the last one: */
	uint16_t first_answers;	      /* acknowledgements in front */
	uint16_t behind;	      /* other frames */
};

struct ub_rig {
	struct sim *s;
	struct ub_rig_config cfg;
	struct ub_rig_side side[2];
	struct sim_rng rng;
	uint64_t now, hash;
	unsigned int idle;
	uint16_t tassn;
	uint32_t written[2]; /* bytes of Writes, by sender */
};

void ub_rig_open(struct ub_rig *r, const struct ub_rig_config *cfg);
/* Wait until all is quiet, check sums and objects in use, free everything. */
void ub_rig_close(struct ub_rig *r);

/* By commands: a TP in a new life, or its round while all others go on. */
void ub_rig_open_tp(struct ub_rig *r, unsigned int side, uint32_t tpi);
void ub_rig_close_tp(struct ub_rig *r, unsigned int side, uint32_t tpi);

unsigned int ub_rig_poll(struct ub_rig *r);
/* All stages of a side once, in their order; the time stands still. */
unsigned int ub_rig_poll_side(struct ub_rig *r, unsigned int side);
/* Until no operation is in a lane and nothing is in flight; fails after max_ns. */
void ub_rig_settle(struct ub_rig *r, uint64_t max_ns);
void ub_rig_run(struct ub_rig *r, uint64_t ns);

/* An operation, not filled in; UINT32_MAX: no operation is left, or its lane is full. */
uint32_t ub_rig_take(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t lane);
struct hca_ta_op *ub_rig_op(struct ub_rig *r, unsigned int side, uint32_t lane, uint32_t index);
void ub_rig_put(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t lane, uint32_t index);
/* A Write of the next len bytes of the sender's memory; false: there is no room. */
bool ub_rig_write(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t len);
/* A TAACK in the lane of responses. */
bool ub_rig_taack(struct ub_rig *r, unsigned int side, uint32_t tpi);
/* All written data has arrived, and no other. */
void ub_rig_check(struct ub_rig *r);
uint64_t ub_rig_counter(const struct ub_rig *r, unsigned int side, enum hca_counter c);
struct hca_tp *ub_rig_tp(struct ub_rig *r, unsigned int side, uint32_t tpi);

#endif
