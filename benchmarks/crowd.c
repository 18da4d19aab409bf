/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs that compete with those that benchmarks/shared-cpus measures.
 *
 *  crowd poll DEVICE    polls an empty CQ in a tight loop
 *  crowd sleep DEVICE   sleeps on a completion channel whose CQ is armed
 *  crowd burn           computes
 *  crowd punch DEVICE   attacks: punches holes into memory that its own requests read and write
 *  crowd traffic DEVICE the same requests, clients and regions, without holes
 *
 * Prints a line when it is ready, and runs until it is killed.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <softhca/softhca.h>

static void
ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int
fail(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, softhca_last_error(NULL));
	return 1;
}

static int
attached(const char *device, bool polls)
{
	struct softhca_cq_init_attr attr = {.cqe = 64};
	struct softhca_context *ctx;
	struct softhca_wc wc;
	struct softhca_cq *cq;

	if (softhca_open(device, &ctx) != 0)
		return fail(device);
	attr.channel = polls ? NULL : softhca_create_comp_channel(ctx);
	cq = softhca_create_cq(ctx, &attr);
	if (cq == NULL || (!polls && softhca_req_notify_cq(cq, 0) != 0))
		return fail("CQ");
	ready();
	while (polls)
		if (softhca_poll_cq(cq, 1, &wc) < 0)
			return fail("poll_cq");
	softhca_get_cq_event(attr.channel, &cq, NULL);
	return fail("the channel has ended");
}

/* ---- holes ---- */

#define SMALL \
	(UINT64_C(1) << 20) /* holes are possible in it, but an access to one ends the client */
#define LARGE (UINT64_C(64) << 20) /* the daemon prevents holes in it after it is attached */
#define DEPTH 32u
#define REMOTE (SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE)

struct target {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	uint64_t bytes;
	uint8_t *buf;
	int fd;
};

static bool
full_memory(struct target *t)
{
	t->fd = memfd_create("crowd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->fd < 0 || ftruncate(t->fd, (off_t)t->bytes) != 0 ||
	    fcntl(t->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		return false;
	t->buf = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, t->fd, 0);
	if (t->buf == MAP_FAILED)
		return false;
	memset(t->buf, 1, t->bytes);
	return true;
}

/* A QP that is its own peer. */
static bool
connect_to_itself(struct softhca_context *ctx, struct softhca_qp *qp)
{
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = REMOTE,
		.path_mtu = SOFTHCA_MTU_4096,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .hop_limit = 64},
	};

	if (softhca_query_gid(ctx, 1, 0, &a.ah_attr.dgid) != 0 ||
	    softhca_modify_qp(qp, &a,
			      SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
				      SOFTHCA_QP_ACCESS_FLAGS) != 0)
		return false;
	a.qp_state = SOFTHCA_QPS_RTR;
	if (softhca_modify_qp(qp, &a,
			      SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
				      SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
				      SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER) !=
	    0)
		return false;
	a.qp_state = SOFTHCA_QPS_RTS;
	return softhca_modify_qp(qp, &a,
				 SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT |
					 SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
					 SOFTHCA_QP_MAX_QP_RD_ATOMIC) == 0;
}

static bool
open_target(struct target *t, const char *device)
{
	struct softhca_cq_init_attr ca = {.cqe = 2 * DEPTH};
	struct softhca_qp_init_attr qa = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1},
	};

	if (!full_memory(t) || softhca_open(device, &t->ctx) != 0)
		return false;
	t->pd = softhca_alloc_pd(t->ctx);
	if (t->pd == NULL)
		return false;
	t->cq = softhca_create_cq(t->ctx, &ca);
	qa.send_cq = qa.recv_cq = t->cq;
	t->qp = t->cq != NULL ? softhca_create_qp(t->pd, &qa) : NULL;
	t->mr = softhca_reg_mr(t->pd, t->buf, t->bytes, REMOTE);
	return t->qp != NULL && t->mr != NULL && connect_to_itself(t->ctx, t->qp);
}

static void
close_target(struct target *t)
{
	if (t->ctx != NULL)
		softhca_close(t->ctx);
	munmap(t->buf, t->bytes);
	close(t->fd);
}

/* Requests that make the device read and write all over the memory. */
static bool
keep_it_busy(struct target *t, uint64_t *at)
{
	struct softhca_sge sge = {(uintptr_t)t->buf, 4096, t->mr->lkey};
	struct softhca_send_wr *bad, wr = {
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = SOFTHCA_WR_RDMA_WRITE,
					     .send_flags = SOFTHCA_SEND_SIGNALED,
				     };
	struct softhca_wc wc[DEPTH];

	for (;;) {
		*at = (*at + 65536 + 4096) % t->bytes & ~UINT64_C(4095);
		sge.addr = (uintptr_t)t->buf + *at;
		wr.wr.rdma.remote_addr = (uintptr_t)t->buf + t->bytes - 4096 - *at;
		wr.wr.rdma.rkey = t->mr->rkey;
		if (softhca_post_send(t->qp, &wr, &bad) != 0)
			break;
	}
	return softhca_poll_cq(t->cq, DEPTH, wc) >= 0;
}

/* Restarts whenever the daemon has ended this client. */
static int
restart_under_traffic(const char *device, bool holes)
{
	struct target t = {.bytes = SMALL};
	bool said = false;

	for (unsigned int turn = 0;; turn++) {
		uint64_t at = 0;

		t = (struct target){.bytes = turn % 16 == 15 ? LARGE : SMALL};
		if (!open_target(&t, device) && !said)
			return fail(device);
		if (!said)
			ready();
		said = true;
		for (unsigned int i = 0; t.mr != NULL && i < 4096 && keep_it_busy(&t, &at); i++)
			if (holes)
				fallocate(t.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					  (off_t)(i % 2 * 4096), (off_t)(t.bytes - 8192));
		close_target(&t);
	}
}

static void
burn(void)
{
	ready();
	for (volatile unsigned int i = 0;; i = i + 1)
		;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 3 && (strcmp(what, "poll") == 0 || strcmp(what, "sleep") == 0))
		return attached(argv[2], strcmp(what, "poll") == 0);
	if (argc == 2 && strcmp(what, "burn") == 0)
		burn();
	if (argc == 3 && (strcmp(what, "punch") == 0 || strcmp(what, "traffic") == 0))
		return restart_under_traffic(argv[2], strcmp(what, "punch") == 0);
	fprintf(stderr,
		"usage: crowd poll DEVICE | sleep DEVICE | burn | punch DEVICE | traffic DEVICE\n");
	return 2;
}
