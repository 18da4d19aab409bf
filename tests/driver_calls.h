/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_DRIVER_CALLS_H
#define TESTS_DRIVER_CALLS_H

/* Operations of a client whose requests are more than a structure at hand (abi_ops.h) */

#include <string.h>

#include "driver.h"

/* The object of a number is given back. */
static inline int
call_drop(struct hca_client *client, enum hca_ctl_op op, uint32_t number)
{
	return hca_client_call(client, op, &number, NULL, NULL);
}

/* mailbox NULL: none */
static inline int
call_modify_qp(struct hca_client *client, uint32_t qpn, uint32_t opcode, const void *mailbox)
{
	struct hca_ctl_modify m = {.qpn = qpn, .opcode = opcode, .has_mailbox = mailbox != NULL};

	if (mailbox != NULL)
		memcpy(&m.mailbox, mailbox, sizeof(m.mailbox));
	return hca_client_call(client, HCA_CTL_MODIFY_QP, &m, NULL, NULL);
}

static inline int
call_mcast(struct hca_client *client, uint32_t qpn, const uint8_t mgid[16], bool attach)
{
	struct hca_ctl_mcast m = {.qpn = qpn, .attach = attach};

	memcpy(m.mgid, mgid, sizeof(m.mgid));
	return hca_client_call(client, HCA_CTL_MCAST, &m, NULL, NULL);
}

static inline int
call_async_fd(struct hca_client *client, int *fd)
{
	struct hca_ctl_extra extra = {.fds = {-1}};
	int err = hca_client_call(client, HCA_CTL_ASYNC_FD, NULL, NULL, &extra);

	*fd = extra.fds[0];
	return err;
}

static inline int
call_create_channel(struct hca_client *client, uint32_t *channel, int *fd)
{
	struct hca_ctl_extra extra = {.fds = {-1}};
	int err = hca_client_call(client, HCA_CTL_CREATE_CHANNEL, NULL, channel, &extra);

	*fd = extra.fds[0];
	return err;
}

#endif
