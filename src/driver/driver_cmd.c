/* SPDX-License-Identifier: BSD-3-Clause */

/* HCR client, tables 3-1-3 .. 3-1-5: polled commands, one at a time. */

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "driver_types.h"

#define DEFAULT_TIMEOUT_MS 10000u
#define ROUNDS_PER_CLOCK 64u

static int
errno_of(uint32_t status)
{
	switch (status) {
	case HCA_STAT_OK:
		return 0;
	case HCA_STAT_BAD_OP:
		return -EOPNOTSUPP;
	case HCA_STAT_RESOURCE_BUSY:
		return -EBUSY;
	case HCA_STAT_EXCEED_LIM:
		return -ENOMEM;
	case HCA_STAT_BAD_SYS_STATE:
	case HCA_STAT_BAD_NVMEM:
		return -EIO;
	default:
		return -EINVAL;
	}
}

static const char *
status_text(uint32_t status)
{
	switch (status) {
#define STATUS_CASE(name, code, text) \
	case code: \
		return text;
		HCA_STAT_LIST(STATUS_CASE)
#undef STATUS_CASE
	default:
		return "unknown status";
	}
}

static const char *
command_name(uint32_t op)
{
	switch (op) {
#define COMMAND_CASE(name, opcode, in_len, out_len, flags, caps) \
	case opcode: \
		return #name;
		HCA_CMD_LIST(COMMAND_CASE)
#undef COMMAND_CASE
	default:
		return "unknown command";
	}
}

static volatile uint32_t *
bar0_word(const struct hca_driver *drv, uint32_t offset)
{
	return (volatile uint32_t *)((volatile uint8_t *)drv->hw.bar0 + offset);
}

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Let the device run until (*word & mask) == 0, or the command times out. */
static int
wait_clear(struct hca_driver *drv, volatile uint32_t *word, uint32_t mask)
{
	uint32_t timeout = drv->config.timeout_ms ? drv->config.timeout_ms : DEFAULT_TIMEOUT_MS;
	uint64_t start = now_ms();

	for (uint32_t round = 1;; round++) {
		if ((hca_le32_to_cpu(__atomic_load_n(word, __ATOMIC_ACQUIRE)) & mask) == 0)
			return 0;
		if (drv->hw.progress != NULL)
			drv->hw.progress(drv->hw.progress_arg);
		else
			sched_yield();
		if (round % ROUNDS_PER_CLOCK == 0 && now_ms() - start > timeout)
			return -EIO;
	}
}

int
driver_reset(struct hca_driver *drv)
{
	volatile uint32_t *reset = bar0_word(drv, HCA_BAR0_RESET);

	__atomic_store_n(reset, hca_cpu_to_le32(HCA_RESET_START), __ATOMIC_RELEASE);
	if (wait_clear(drv, reset, HCA_RESET_START) == 0)
		return 0;
	driver_dead_event(drv);
	return driver_fail(-EIO, "the device does not come out of reset");
}

int
driver_command(struct hca_driver *drv, struct driver_cmd *cmd)
{
	volatile uint32_t *hcr = bar0_word(drv, HCA_BAR0_HCR);
	volatile uint32_t *ctrl = hcr + offsetof(struct hca_hcr, ctrl) / sizeof(*hcr);
	const uint32_t words[] = {
		(uint32_t)(cmd->in_param >> 32),
		(uint32_t)cmd->in_param,
		cmd->in_modifier,
		(uint32_t)(cmd->out_param >> 32),
		(uint32_t)cmd->out_param,
		HCA_HCR_MAKE_TOKEN(HCA_CMD_POLL_TOKEN),
	};
	uint32_t status;

	if (drv->dead)
		return driver_fail(-EIO, "%s: the device is dead", command_name(cmd->op));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hcr[i] = hca_cpu_to_le32(words[i]);
	__atomic_store_n(ctrl, hca_cpu_to_le32(HCA_HCR_MAKE_CTRL(0, cmd->op_modifier, cmd->op)),
			 __ATOMIC_RELEASE);
	if (wait_clear(drv, ctrl, HCA_HCR_GO) != 0) {
		driver_dead_event(drv);
		return driver_fail(-EIO, "%s: no answer from the device", command_name(cmd->op));
	}
	status = HCA_HCR_STATUS(hca_le32_to_cpu(*ctrl));
	if (status != HCA_STAT_OK)
		return driver_fail(errno_of(status), "%s: %s", command_name(cmd->op),
				   status_text(status));
	cmd->out_param = (uint64_t)hca_le32_to_cpu(hcr[3]) << 32 | hca_le32_to_cpu(hcr[4]);
	return 0;
}

void *
driver_mailbox(struct hca_driver *drv)
{
	memset(drv->mailbox_in, 0, HCA_MBOX_SIZE);
	return drv->mailbox_in;
}

int
driver_command_in(struct hca_driver *drv, uint32_t op, uint32_t in_modifier)
{
	struct driver_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
		.in_param = drv->mailbox_in_bus,
	};

	return driver_command(drv, &cmd);
}

int
driver_command_out(struct hca_driver *drv, uint32_t op, uint32_t in_modifier)
{
	struct driver_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
		.out_param = drv->mailbox_out_bus,
	};

	memset(drv->mailbox_out, 0, HCA_MBOX_SIZE);
	return driver_command(drv, &cmd);
}

int
driver_command_bare(struct hca_driver *drv, uint32_t op, uint32_t op_modifier, uint32_t in_modifier,
		    uint64_t in_param)
{
	struct driver_cmd cmd = {
		.op = op,
		.op_modifier = op_modifier,
		.in_modifier = in_modifier,
		.in_param = in_param,
	};

	return driver_command(drv, &cmd);
}

int
driver_take_back(struct hca_driver *drv, const struct hca_client *owner, uint32_t op,
		 uint32_t op_modifier, uint32_t in_modifier)
{
	if (owner != NULL && owner->closed)
		return 0;
	return driver_command_bare(drv, op, op_modifier, in_modifier, 0);
}
