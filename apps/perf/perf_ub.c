/* SPDX-License-Identifier: BSD-3-Clause */

/* --wire ub: contexts, segments, Jettys, and the imports of each side. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "perf_ub.h"

static int
failed(const char *what)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what, softhca_urma_reason());
	return -EIO;
}

int
perf_ub_session_open(struct perf_session *s)
{
	s->ub = calloc(1, sizeof(*s->ub));
	if (s->ub == NULL ||
	    getrandom(s->ub->token, sizeof(s->ub->token), 0) != (ssize_t)sizeof(s->ub->token))
		return -ENOMEM;
	for (unsigned int i = 0; i < 2; i++) {
		if (!s->local[i])
			continue;
		s->ub->ctx[i] = softhca_urma_context_at(s->ctx[i], s->sgid_index[i]);
		if (s->ub->ctx[i] == NULL)
			return failed("urma_context");
	}
	return 0;
}

void
perf_ub_session_close(struct perf_session *s)
{
	for (unsigned int i = 0; s->ub != NULL && i < 2; i++)
		if (s->ub->ctx[i] != NULL)
			urma_delete_context(s->ub->ctx[i]);
	free(s->ub);
	s->ub = NULL;
}

int
perf_ub_area_open(struct perf_session *s, unsigned int side, enum perf_area_kind kind)
{
	struct perf_area *a = &s->area[side][kind];
	urma_seg_cfg_t cfg = {
		.va = (uintptr_t)a->base,
		.len = a->length,
		.token_value = s->ub->token[side],
		.flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
			    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC},
	};
	urma_target_seg_t *seg = urma_register_seg(s->ub->ctx[side], &cfg);

	if (seg == NULL && errno == EOPNOTSUPP && s->peer != NULL)
		fprintf(stderr, "softhca-perf: a daemon speaks UB if its configuration has "
				"\"[ub] enable = yes\"\n");
	if (seg == NULL)
		return failed("register_seg");
	s->ub->seg[side][kind] = seg;
	a->addr = (uintptr_t)a->base;
	a->rkey = seg->seg.token_id;
	return 0;
}

static int
open_jfc(struct perf_session *s, unsigned int side, urma_jfc_t **jfc)
{
	urma_jfc_cfg_t cfg = {
		.depth = s->num_flows * (s->local[1] ? 2 * s->opt->depth : perf_recv_depth(s)) + 64,
		.jfce = s->ub->jfce[side],
		.flag.bs.lock_free = 1,
	};

	*jfc = urma_create_jfc(s->ub->ctx[side], &cfg);
	return *jfc != NULL ? 0 : failed("create_jfc");
}

/* One JFR for all Jettys, with as many receives as they would have, or as a queue holds. */
static int
open_jfr(struct perf_session *s, unsigned int side)
{
	uint64_t wanted = (uint64_t)s->num_flows * perf_recv_depth(s);
	urma_jfr_cfg_t cfg = {
		.depth = wanted < s->device.max_srq_wr ? (uint32_t)wanted : s->device.max_srq_wr,
		.flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .lock_free = 1},
		.trans_mode = URMA_TM_RM,
		.max_sge = 1,
		.jfc = s->ub->recv_jfc[side],
		.token_value = s->ub->token[side],
	};

	if (s->opt->op == PERF_OP_SEND && (uint64_t)s->num_flows * s->opt->depth > cfg.depth) {
		fprintf(stderr, "softhca-perf: %u Jettys with %u receives each, a JFR holds %u\n",
			s->num_flows, s->opt->depth, cfg.depth);
		return -EINVAL;
	}
	s->ub->jfr[side] = urma_create_jfr(s->ub->ctx[side], &cfg);
	return s->ub->jfr[side] != NULL ? 0 : failed("create_jfr");
}

int
perf_ub_queues_open(struct perf_session *s, unsigned int side)
{
	int err = 0;

	if (s->ub->flow == NULL)
		s->ub->flow = calloc(s->num_flows, sizeof(*s->ub->flow));
	if (s->ub->flow == NULL)
		return -ENOMEM;
	if (s->opt->events) {
		s->ub->jfce[side] = urma_create_jfce(s->ub->ctx[side]);
		if (s->ub->jfce[side] == NULL)
			return failed("create_jfce");
	}
	err = open_jfc(s, side, &s->ub->send_jfc[side]);
	if (err == 0)
		err = open_jfc(s, side, &s->ub->recv_jfc[side]);
	return err == 0 && s->opt->srq ? open_jfr(s, side) : err;
}

int
perf_ub_flow_open(struct perf_session *s, uint32_t f, unsigned int side)
{
	urma_jfr_cfg_t receives = {
		.depth = perf_recv_depth(s),
		.flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .lock_free = 1},
		.trans_mode = URMA_TM_RM,
		.max_sge = 1,
		.jfc = s->ub->recv_jfc[side],
		.token_value = s->ub->token[side],
	};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = s->opt->depth < 64 ? 64 : s->opt->depth,
			    .flag.bs.lock_free = 1,
			    .trans_mode = URMA_TM_RM,
			    .max_sge = 1,
			    .max_inline_data = s->opt->inline_max,
			    .rnr_retry = 7,
			    .err_timeout = (uint8_t)s->opt->ack_timeout,
			    .jfc = s->ub->send_jfc[side]},
		.jfr_cfg = &receives,
	};
	urma_jetty_t *jetty;

	if (s->ub->jfr[side] != NULL) {
		cfg.flag.bs.share_jfr = 1;
		cfg.shared.jfr = s->ub->jfr[side];
		cfg.shared.jfc = NULL;
	}
	jetty = urma_create_jetty(s->ub->ctx[side], &cfg);
	if (jetty == NULL)
		return failed("create_jetty");
	s->ub->flow[f].jetty[side] = jetty;
	s->flows[f].qpn[side] = s->flows[f].executes[side] = jetty->jetty_id.id;
	return 0;
}

/* Where this side's requests find or leave their data at the other one */
static int
import_area(struct perf_session *s, unsigned int side)
{
	const struct perf_area *a = &s->area[!side][perf_remote_kind(s->opt->op)];
	urma_seg_t seg = {
		.ubva.va = a->addr,
		.len = a->length != 0 ? a->length : s->stride * s->slots * s->num_flows,
		.token_id = a->rkey,
		.attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
	};

	memcpy(seg.ubva.eid.raw, s->gid[!side].raw, sizeof(seg.ubva.eid.raw));
	s->ub->to_seg[side] = urma_import_seg(s->ub->ctx[side], &seg, &s->ub->token[!side], 0,
					      (urma_import_seg_flag_t){0});
	return s->ub->to_seg[side] != NULL ? 0 : failed("import_seg");
}

static int
import_jetty(struct perf_session *s, uint32_t f, unsigned int side)
{
	urma_rjetty_t peer = {
		.jetty_id.id = s->flows[f].executes[!side],
		.trans_mode = URMA_TM_RM,
		.type = URMA_JETTY,
		.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
	};
	urma_target_jetty_t **to = &s->ub->flow[f].to[side];

	memcpy(peer.jetty_id.eid.raw, s->gid[!side].raw, sizeof(peer.jetty_id.eid.raw));
	*to = urma_import_jetty(s->ub->ctx[side], &peer, &s->ub->token[!side]);
	return *to != NULL ? 0 : failed("import_jetty");
}

int
perf_ub_connect(struct perf_session *s)
{
	int err = 0;

	for (unsigned int side = 0; side < 2 && err == 0; side++) {
		if (!s->local[side])
			continue;
		err = import_area(s, side);
		for (uint32_t f = 0; f < s->num_flows && err == 0; f++)
			err = import_jetty(s, f, side);
	}
	return err;
}

static void
close_flow(struct perf_ub_flow *f, unsigned int side)
{
	if (f->jetty[side] != NULL)
		urma_delete_jetty(f->jetty[side]);
	if (f->to[side] != NULL)
		urma_unimport_jetty(f->to[side]);
}

static void
close_side(struct perf_ub *ub, unsigned int side)
{
	if (ub->jfr[side] != NULL)
		urma_delete_jfr(ub->jfr[side]);
	ub->jfr[side] = NULL;
	if (ub->send_jfc[side] != NULL)
		urma_delete_jfc(ub->send_jfc[side]);
	if (ub->recv_jfc[side] != NULL)
		urma_delete_jfc(ub->recv_jfc[side]);
	ub->send_jfc[side] = ub->recv_jfc[side] = NULL;
	if (ub->jfce[side] != NULL)
		urma_delete_jfce(ub->jfce[side]);
	ub->jfce[side] = NULL;
	if (ub->to_seg[side] != NULL)
		urma_unimport_seg(ub->to_seg[side]);
	ub->to_seg[side] = NULL;
	for (unsigned int k = 0; k < PERF_AREA_KINDS; k++) {
		if (ub->seg[side][k] != NULL)
			urma_unregister_seg(ub->seg[side][k]);
		ub->seg[side][k] = NULL;
	}
}

void
perf_ub_row_close(struct perf_session *s)
{
	struct perf_ub *ub = s->ub;

	if (ub == NULL)
		return;
	for (uint32_t i = 0; ub->flow != NULL && i < s->num_flows; i++) {
		close_flow(&ub->flow[i], 0);
		close_flow(&ub->flow[i], 1);
	}
	free(ub->flow);
	ub->flow = NULL;
	close_side(ub, 0);
	close_side(ub, 1);
}

/* ---- events ---- */

int
perf_ub_arm(struct perf_session *s, unsigned int side, bool send)
{
	urma_status_t status = URMA_SUCCESS;

	if (send)
		status = urma_rearm_jfc(s->ub->send_jfc[side], false);
	if (status == URMA_SUCCESS)
		status = urma_rearm_jfc(s->ub->recv_jfc[side], false);
	return status == URMA_SUCCESS ? 0 : failed("rearm_jfc");
}

int
perf_ub_take_events(struct perf_session *s, unsigned int side)
{
	urma_jfc_t *of[2];
	uint32_t one[2] = {1, 1};
	int n = urma_wait_jfc(s->ub->jfce[side], 2, 0, of);

	if (n < 0)
		return failed("wait_jfc");
	urma_ack_jfc(of, one, (uint32_t)n);
	return 0;
}

const char *
perf_ub_status(uint32_t status)
{
	static const char *const names[] = {
		[URMA_CR_UNSUPPORTED_OPCODE_ERR] = "unsupported operation",
		[URMA_CR_LOC_LEN_ERR] = "local length error",
		[URMA_CR_LOC_ACCESS_ERR] = "local access error",
		[URMA_CR_REM_RESP_LEN_ERR] = "response of another length",
		[URMA_CR_REM_UNSUPPORTED_REQ_ERR] = "unsupported by the peer",
		[URMA_CR_REM_ACCESS_ABORT_ERR] = "refused by the peer",
		[URMA_CR_ACK_TIMEOUT_ERR] = "no answer",
		[URMA_CR_RNR_RETRY_CNT_EXC_ERR] = "not ready for too long",
		[URMA_CR_WR_FLUSH_ERR] = "flushed",
		[URMA_CR_LOC_DATA_POISON] = "local data cannot be read",
		[URMA_CR_REM_DATA_POISON] = "data of the peer cannot be read",
	};

	return status < sizeof(names) / sizeof(names[0]) && names[status] != NULL ? names[status]
										  : "failed";
}
