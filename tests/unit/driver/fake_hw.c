/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_hw.h"

static uint32_t
word(const struct fake_hw *fake, uint32_t offset)
{
	return hca_le32_to_cpu(
		__atomic_load_n((uint32_t *)(void *)(fake->bar0 + offset), __ATOMIC_ACQUIRE));
}

static void
set_word(struct fake_hw *fake, uint32_t offset, uint32_t value)
{
	__atomic_store_n((uint32_t *)(void *)(fake->bar0 + offset), hca_cpu_to_le32(value),
			 __ATOMIC_RELEASE);
}

static void
answer_dev_lim(struct hca_mbox_dev_lim *lim)
{
	memset(lim, 0, sizeof(*lim));
	lim->max_sz = hca_cpu_to_be32(HCA_LIM_MAKE_SZ(15, 16));
	lim->max_log = hca_cpu_to_be32(HCA_LIM_MAKE_MAX(10, 9, 5, 12));
	lim->port = hca_cpu_to_be32(HCA_LIM_MAKE_PORT(0, 5, 1, 1, 1));
	lim->sq_sg = hca_cpu_to_be32(HCA_LIM_MAKE_SG(16, 512));
	lim->rq_sg = hca_cpu_to_be32(HCA_LIM_MAKE_SG(16, 512));
	lim->rd_atomic = hca_cpu_to_be32(HCA_LIM_MAKE_RD_ATOMIC(16, 16, 6, 15));
	lim->caps = hca_cpu_to_be32(HCA_CAP_RC | HCA_CAP_UC | HCA_CAP_UD | HCA_CAP_XRC |
				    HCA_CAP_SRQ | HCA_CAP_ATOMIC | HCA_CAP_MW);
	lim->inline_mw = hca_cpu_to_be32(HCA_LIM_MAKE_INLINE_MW(400, 0, 0));
	lim->gid_table_len = hca_cpu_to_be32(16);
	lim->pkey_table_len = hca_cpu_to_be32(16);
	lim->mr = hca_cpu_to_be32(HCA_LIM_MAKE_MR(30, 14));
	lim->mcast = hca_cpu_to_be32(HCA_LIM_MAKE_MCAST(6, 8));
	lim->num_uars = hca_cpu_to_be32(8);
}

static void
add_ub(struct hca_mbox_dev_lim *lim)
{
	lim->caps |= hca_cpu_to_be32(HCA_CAP_UB);
	lim->ub = hca_cpu_to_be32(HCA_LIM_MAKE_UB(4, 16, 1));
}

static bool
has_inbox(uint32_t op, uint32_t op_modifier)
{
	switch (op) {
#define INBOX_CASE(name, opcode, in_len, out_len, flags, caps) \
	case opcode: \
		return (in_len) != 0 && !(((flags)&HCA_CMDF_IN_OPT) != 0 && op_modifier == 3);
		HCA_CMD_LIST(INBOX_CASE)
#undef INBOX_CASE
	default:
		return false;
	}
}

static void
note_eq(struct fake_hw *fake, const struct fake_command *cmd)
{
	const struct hca_eqc *eqc = (const void *)cmd->mailbox;

	fake->eq_start[cmd->in_modifier] = hca_eqc_start(eqc);
	fake->eq_log[cmd->in_modifier] = HCA_EQC_LOGSIZE(hca_be32_to_cpu(eqc->logsize));
	fake->eq_producer[cmd->in_modifier] = 0;
}

static void
modify_tp(struct fake_hw *fake, const struct fake_command *cmd)
{
	struct hca_tpc *tp = &fake->tp[cmd->in_modifier % FAKE_TPS];
	const struct hca_tpc *in = (const void *)cmd->mailbox;

	if ((hca_be32_to_cpu(in->mask) & HCA_TP_ATTR_STATE) != 0)
		hca_tpc_set(tp, HCA_TPC_STATE, hca_tpc_get(in, HCA_TPC_STATE));
}

static void
execute(struct fake_hw *fake, const struct fake_command *cmd, uint64_t out_param)
{
	void *out = (void *)(uintptr_t)out_param;

	switch (cmd->op) {
	case HCA_CMD_QUERY_DEV_LIM:
		answer_dev_lim(out);
		if (fake->ub)
			add_ub(out);
		break;
	case HCA_CMD_QUERY_ADAPTER:
		*(struct hca_mbox_adapter *)out = (struct hca_mbox_adapter){
			.vendor_id = hca_cpu_to_be32(0x123456),
			.vendor_part_id = hca_cpu_to_be32(0x789),
			.hw_ver = hca_cpu_to_be32(7),
			.fw_ver = hca_cpu_to_be64(HCA_FW_VER(1, 2, 3)),
			.board_id = hca_cpu_to_be64(0x42),
		};
		break;
	case HCA_CMD_QUERY_QP:
		((struct hca_qpc *)out)->flags = hca_cpu_to_be32(HCA_QPS_RTS << 28);
		break;
	case HCA_CMD_SW2HW_MPT:
		fake->live[LIVE_MPT]++;
		break;
	case HCA_CMD_HW2SW_MPT:
		fake->live[LIVE_MPT]--;
		break;
	case HCA_CMD_SW2HW_EQ:
		note_eq(fake, cmd);
		fake->live[LIVE_EQ]++;
		break;
	case HCA_CMD_HW2SW_EQ:
		fake->live[LIVE_EQ]--;
		break;
	case HCA_CMD_SW2HW_CQ:
		fake->live[LIVE_CQ]++;
		break;
	case HCA_CMD_HW2SW_CQ:
		fake->live[LIVE_CQ]--;
		break;
	case HCA_CMD_RST2INIT_QPEE:
	case HCA_CMD_RST2RTS_QPEE:
		fake->live[LIVE_QP]++;
		break;
	case HCA_CMD_SW2HW_TP:
		memcpy(&fake->tp[cmd->in_modifier % FAKE_TPS], cmd->mailbox, sizeof(fake->tp[0]));
		fake->live[LIVE_TP]++;
		break;
	case HCA_CMD_MODIFY_TP:
		modify_tp(fake, cmd);
		break;
	case HCA_CMD_QUERY_TP:
		memcpy(out, &fake->tp[cmd->in_modifier % FAKE_TPS], sizeof(fake->tp[0]));
		break;
	case HCA_CMD_HW2SW_TP:
		fake->live[LIVE_TP]--;
		break;
	case HCA_CMD_ERR2RST_QPEE:
		fake->live[LIVE_QP]--;
		break;
	default:
		break;
	}
}

static void
progress(void *arg)
{
	struct fake_hw *fake = arg;
	struct fake_command *cmd = &fake->log[fake->count % FAKE_LOG];
	uint32_t ctrl = word(fake, HCA_BAR0_HCR + 0x18);
	uint32_t status = HCA_STAT_OK;

	if (fake->mute)
		return;
	if (word(fake, HCA_BAR0_RESET) != 0)
		set_word(fake, HCA_BAR0_RESET, 0);
	if ((ctrl & HCA_HCR_GO) == 0)
		return;
	memset(cmd, 0, sizeof(*cmd));
	cmd->op = HCA_HCR_OP(ctrl);
	cmd->op_modifier = HCA_HCR_OP_MODIFIER(ctrl);
	cmd->event = (ctrl & HCA_HCR_E) != 0;
	cmd->in_param = (uint64_t)word(fake, HCA_BAR0_HCR) << 32 | word(fake, HCA_BAR0_HCR + 4);
	cmd->in_modifier = word(fake, HCA_BAR0_HCR + 8);
	if (has_inbox(cmd->op, cmd->op_modifier))
		memcpy(cmd->mailbox, (void *)(uintptr_t)cmd->in_param, HCA_MBOX_SIZE);
	fake->count++;
	if (fake->fail_status != 0 && fake->fail_op == cmd->op) {
		status = fake->fail_status;
		fake->fail_status = 0;
	} else {
		execute(fake, cmd,
			(uint64_t)word(fake, HCA_BAR0_HCR + 0xc) << 32 |
				word(fake, HCA_BAR0_HCR + 0x10));
	}
	set_word(fake, HCA_BAR0_HCR + 0x18, HCA_HCR_MAKE_DONE(ctrl, status));
}

static int
attach(void *arg, uint32_t domain, uint64_t bus, uint64_t len)
{
	((struct fake_hw *)arg)->windows++;
	return 0;
}

static int
detach(void *arg, uint32_t domain, uint64_t bus, uint64_t len)
{
	((struct fake_hw *)arg)->windows--;
	return 0;
}

struct fake_hw *
fake_hw_create(void)
{
	struct fake_hw *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->bar0 = calloc(1, HCA_BAR0_SIZE);
	fake->bar2 = calloc(1, HCA_BAR2_SIZE);
	assert_true(fake->bar0 != NULL && fake->bar2 != NULL);
	fake->hw = (struct hca_hw){
		.bar0 = fake->bar0,
		.bar2 = fake->bar2,
		.progress = progress,
		.progress_arg = fake,
		.dma_attach = attach,
		.dma_detach = detach,
		.dma_arg = fake,
	};
	return fake;
}

void
fake_hw_destroy(struct fake_hw *fake)
{
	free(fake->bar2);
	free(fake->bar0);
	free(fake);
}

const struct fake_command *
fake_last(const struct fake_hw *fake, uint32_t op)
{
	for (uint32_t i = 0; i < fake->count && i < FAKE_LOG; i++) {
		const struct fake_command *cmd = &fake->log[(fake->count - 1 - i) % FAKE_LOG];

		if (cmd->op == op)
			return cmd;
	}
	return NULL;
}

void
fake_event_sub(struct fake_hw *fake, uint32_t eqn, uint8_t type, uint32_t object, uint8_t subtype)
{
	uint32_t slot = fake->eq_producer[eqn]++ & ((1u << fake->eq_log[eqn]) - 1);
	struct hca_eqe *eqe = (struct hca_eqe *)(uintptr_t)fake->eq_start[eqn] + slot;

	assert_int_equal(eqe->owner, HCA_OWNER_HW);
	eqe->type = type;
	eqe->subtype = subtype;
	eqe->object = hca_cpu_to_le32(object);
	__atomic_store_n(&eqe->owner, HCA_OWNER_SW, __ATOMIC_RELEASE);
}

void
fake_event(struct fake_hw *fake, uint32_t eqn, uint8_t type, uint32_t object)
{
	fake_event_sub(fake, eqn, type, object, 0);
}
