/* SPDX-License-Identifier: BSD-3-Clause */

/* Names of statuses, opcodes, states and events. */

#include <stddef.h>

#include <softhca/softhca.h>

#include "abi_cqe.h"
#include "abi_ctx.h"

#define NAME_OF(table, index) name_of(table, sizeof(table) / sizeof((table)[0]), index)

static const char *
name_of(const char *const *names, size_t count, uint32_t index)
{
	return index < count && names[index] != NULL ? names[index] : "unknown";
}

static const char *const status_names[] = {
	[SOFTHCA_WC_SUCCESS] = "success",
#define X(name, code, text, wc) [SOFTHCA_WC_##wc] = text,
	HCA_SYND_LIST(X)
#undef X
		[SOFTHCA_WC_FATAL_ERR] = "fatal error",
	[SOFTHCA_WC_RESP_TIMEOUT_ERR] = "response timeout",
	[SOFTHCA_WC_GENERAL_ERR] = "general error",
};

static const char *const opcode_names[] = {
	[SOFTHCA_WC_SEND] = "send",
	[SOFTHCA_WC_RDMA_WRITE] = "rdma write",
	[SOFTHCA_WC_RDMA_READ] = "rdma read",
	[SOFTHCA_WC_COMP_SWAP] = "compare and swap",
	[SOFTHCA_WC_FETCH_ADD] = "fetch and add",
	[SOFTHCA_WC_BIND_MW] = "bind memory window",
	[SOFTHCA_WC_LOCAL_INV] = "local invalidate",
	[SOFTHCA_WC_FLUSH] = "flush",
	[SOFTHCA_WC_ATOMIC_WRITE] = "atomic write",
	[SOFTHCA_WC_RECV] = "receive",
	[SOFTHCA_WC_RECV_RDMA_WITH_IMM] = "receive of rdma write with immediate",
};

static const char *const state_names[] = {
#define X(name, number, verbs) [SOFTHCA_QPS_##verbs] = #verbs,
	HCA_QP_STATE_LIST(X)
#undef X
};

static const char *const event_names[] = {
	[SOFTHCA_EVENT_CQ_ERR] = "CQ error",
	[SOFTHCA_EVENT_QP_FATAL] = "QP fatal error",
	[SOFTHCA_EVENT_QP_REQ_ERR] = "QP invalid request",
	[SOFTHCA_EVENT_QP_ACCESS_ERR] = "QP access error",
	[SOFTHCA_EVENT_COMM_EST] = "communication established",
	[SOFTHCA_EVENT_SQ_DRAINED] = "send queue drained",
	[SOFTHCA_EVENT_PATH_MIG] = "path migrated",
	[SOFTHCA_EVENT_PATH_MIG_ERR] = "path migration failed",
	[SOFTHCA_EVENT_DEVICE_FATAL] = "device fatal error",
	[SOFTHCA_EVENT_PORT_ACTIVE] = "port active",
	[SOFTHCA_EVENT_PORT_ERR] = "port down",
	[SOFTHCA_EVENT_LID_CHANGE] = "LID changed",
	[SOFTHCA_EVENT_PKEY_CHANGE] = "P_Key table changed",
	[SOFTHCA_EVENT_SM_CHANGE] = "subnet manager changed",
	[SOFTHCA_EVENT_SRQ_ERR] = "SRQ error",
	[SOFTHCA_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[SOFTHCA_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
	[SOFTHCA_EVENT_CLIENT_REREGISTER] = "client reregister",
	[SOFTHCA_EVENT_GID_CHANGE] = "GID table changed",
};

static const char *const port_names[] = {
	[SOFTHCA_PORT_NOP] = "NOP",	  [SOFTHCA_PORT_DOWN] = "DOWN",
	[SOFTHCA_PORT_INIT] = "INIT",	  [SOFTHCA_PORT_ARMED] = "ARMED",
	[SOFTHCA_PORT_ACTIVE] = "ACTIVE",
};

const char *
softhca_wc_status_str(uint32_t status)
{
	return NAME_OF(status_names, status);
}

const char *
softhca_wc_opcode_str(uint32_t opcode)
{
	return NAME_OF(opcode_names, opcode);
}

const char *
softhca_qp_state_str(uint32_t state)
{
	return NAME_OF(state_names, state);
}

const char *
softhca_event_type_str(uint32_t type)
{
	return NAME_OF(event_names, type);
}

const char *
softhca_port_state_str(uint32_t state)
{
	return NAME_OF(port_names, state);
}
