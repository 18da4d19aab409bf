/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DRIVER_FAKE_HW_H
#define TESTS_UNIT_DRIVER_FAKE_HW_H

/*
 * A device made of arrays: BARs, HCR commands executed in the progress hook, windows counted. It
 * records every command with its mailbox; a test can make a command fail or remain unanswered.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "abi_bar.h"
#include "abi_cmd.h"
#include "abi_cqe.h"
#include "abi_qp_attr.h"
#include "abi_tp.h"
#include "../../driver_calls.h"

#define FAKE_LOG 512u
#define FAKE_TPS 16u

struct fake_command {
	uint32_t op;
	uint32_t op_modifier;
	uint32_t in_modifier;
	uint64_t in_param;
	bool event;
	_Alignas(8) uint8_t mailbox[HCA_MBOX_SIZE];
};

enum {
	LIVE_MPT,
	LIVE_EQ,
	LIVE_CQ,
	LIVE_QP, /* and Jettys */
	LIVE_TP,
	LIVE_N
};

struct fake_hw {
	struct hca_hw hw;
	uint8_t *bar0;
	uint8_t *bar2;
	struct fake_command log[FAKE_LOG];
	uint32_t count;	      /* number of executed commands */
	uint32_t fail_op;     /* the next command of this opcode fails */
	uint32_t fail_status; /* with this status */
	bool mute;	      /* no command is answered */
	int windows;	      /* attached minus detached */
	uint64_t eq_start[8]; /* as set by SW2HW_EQ */
	uint32_t eq_log[8];
	uint32_t eq_producer[8];
	uint32_t live[LIVE_N];	     /* contexts the device owns */
	bool ub;		     /* it says that it speaks UB, with 16 TPs */
	struct hca_tpc tp[FAKE_TPS]; /* by index, as they were made and changed */
	struct hca_driver *drv;
};

struct fake_hw *fake_hw_create(void);
void fake_hw_destroy(struct fake_hw *fake);

/* Last command of an opcode, or NULL */
const struct fake_command *fake_last(const struct fake_hw *fake, uint32_t op);

/* Publish an event as the device would. */
void fake_event(struct fake_hw *fake, uint32_t eqn, uint8_t type, uint32_t object);
void fake_event_sub(struct fake_hw *fake, uint32_t eqn, uint8_t type, uint32_t object,
		    uint8_t subtype);

#endif
