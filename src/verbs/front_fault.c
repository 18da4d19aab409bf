/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SOFTHCA_VERBS_FAULTS: calls that fail and completions that are errors, so that programs can test
 * their error handling. Without it this file is not on the data path: contexts and CQs get other
 * functions only with it.
 *
 * A completion that becomes an error leaves the queues as a device does: the QP is moved to the
 * error state, which flushes outstanding requests, and requests that had completed on that queue
 * after the error are shown as flushed. The peer sees a failed QP: no answers.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "faults/verbs_faults.h"

#define FAULTS_MAX 64u

static struct {
	struct verbs_fault fault;
	uint32_t seen;
} faults[FAULTS_MAX];
static unsigned int num_faults;
static int wrong; /* errno of a text that could not be read */
static char reason[256];
static struct front_qp *qps;				       /* of this process */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER; /* protects counts and qps */

static void
read_text(void)
{
	const char *text = secure_getenv("SOFTHCA_VERBS_FAULTS");

	while (text != NULL && text[0] != '\0' && wrong == 0) {
		if (num_faults == FAULTS_MAX) {
			snprintf(reason, sizeof(reason), "more than %u faults", FAULTS_MAX);
			wrong = E2BIG;
		} else if (verbs_fault_parse(&text, &faults[num_faults].fault, reason,
					     sizeof(reason)) != 0) {
			wrong = EINVAL;
		} else {
			num_faults++;
		}
	}
}

bool
front_faults_on(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_text);
	return num_faults != 0 || wrong != 0;
}

int
front_faults_judge(const char *call)
{
	if (!front_faults_on() || wrong == 0)
		return 0;
	fprintf(stderr, "softhca: SOFTHCA_VERBS_FAULTS: %s\n", reason);
	return front_refuse(wrong, call, "SOFTHCA_VERBS_FAULTS: %s", reason);
}

/* Counts one more event of a fault; whether it happens to it. The lock is held. */
static bool
fires(unsigned int i)
{
	const struct verbs_fault *f = &faults[i].fault;
	uint32_t n = ++faults[i].seen;

	return n >= f->nth && (f->count == 0 || n - f->nth < f->count);
}

static bool
is_named(const char *call, const char *name)
{
	static const char *const before[] = {"ibv_", "front_"};

	if (strncmp(call, "rdma_", 5) == 0)
		return strcmp(call, name) == 0;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (strncmp(call, before[i], strlen(before[i])) == 0)
			return strcmp(call + strlen(before[i]), name) == 0;
	return false;
}

int
front_fault_slow(const char *call)
{
	int err = 0;

	pthread_mutex_lock(&fault_lock);
	for (unsigned int i = 0; i < num_faults && err == 0; i++) {
		const struct verbs_fault *f = &faults[i].fault;

		if (f->kind != VERBS_FAULT_CALL || !is_named(call, f->call) || !fires(i))
			continue;
		err = f->err;
		fprintf(stderr, "softhca: %s%s: fails on purpose, call %u: %s\n",
			strncmp(f->call, "rdma_", 5) == 0 ? "" : "ibv_", f->call, faults[i].seen,
			f->text);
	}
	pthread_mutex_unlock(&fault_lock);
	if (err != 0)
		errno = err;
	return err;
}

/* ---- completions ---- */

void
front_fault_qp_add(struct front_qp *qp)
{
	if (!front_faults_on())
		return;
	pthread_mutex_lock(&fault_lock);
	qp->fault_next = qps;
	qps = qp;
	pthread_mutex_unlock(&fault_lock);
}

void
front_fault_qp_remove(const struct front_qp *qp)
{
	if (!front_faults_on())
		return;
	pthread_mutex_lock(&fault_lock);
	for (struct front_qp **at = &qps; *at != NULL; at = &(*at)->fault_next) {
		if (*at != qp)
			continue;
		*at = qp->fault_next;
		break;
	}
	pthread_mutex_unlock(&fault_lock);
}

/* Also between ibv_start_poll() and ibv_end_poll(): an error that was shown there is over. */
void
front_fault_qp_reset(struct front_qp *qp)
{
	if (!front_faults_on())
		return;
	pthread_mutex_lock(&fault_lock);
	qp->broken = 0;
	qp->to_error = false;
	pthread_mutex_unlock(&fault_lock);
}

static struct front_qp *
find_qp(const struct ibv_context *context, uint32_t qp_num)
{
	struct front_qp *qp = qps;

	while (qp != NULL &&
	       (qp->pub.qp_base.qp_num != qp_num || qp->pub.qp_base.context != context))
		qp = qp->fault_next;
	return qp;
}

static void
fail_completion(struct front_qp *qp, unsigned int queue, unsigned int i, enum ibv_wc_status *status)
{
	const struct verbs_fault *f = &faults[i].fault;

	*status = (enum ibv_wc_status)f->status;
	fprintf(stderr, "softhca: completion %u of QP 0x%x is an error on purpose (%s): %s\n",
		faults[i].seen, qp->pub.qp_base.qp_num, verbs_fault_status_name(f->status),
		f->text);
	qp->broken |= queue;
	qp->to_error = true;
}

/* The lock is held. */
static void
judge_completion(struct front_qp *qp, bool received, enum ibv_wc_status *status)
{
	enum verbs_fault_queue queue = received ? VERBS_FAULT_RECV : VERBS_FAULT_SEND;
	bool was_broken = (qp->broken & queue) != 0;

	for (unsigned int i = 0; i < num_faults; i++) {
		const struct verbs_fault *f = &faults[i].fault;

		if (f->kind != VERBS_FAULT_COMPLETION ||
		    (f->of != VERBS_FAULT_BOTH && f->of != queue) || !fires(i))
			continue;
		if (*status == IBV_WC_SUCCESS && !was_broken)
			fail_completion(qp, queue, i, status);
	}
	if (was_broken && *status == IBV_WC_SUCCESS)
		*status = IBV_WC_WR_FLUSH_ERR;
}

void
front_fault_completion(const struct ibv_context *context, uint32_t qp_num, bool received,
		       enum ibv_wc_status *status)
{
	struct front_qp *qp;

	pthread_mutex_lock(&fault_lock);
	qp = find_qp(context, qp_num);
	if (qp != NULL)
		judge_completion(qp, received, status);
	pthread_mutex_unlock(&fault_lock);
}

/* The program holds no lock of a CQ: queues that have failed are flushed. */
void
front_fault_settle(void)
{
	const struct softhca_qp_attr error = {.qp_state = SOFTHCA_QPS_ERR};

	pthread_mutex_lock(&fault_lock);
	for (struct front_qp *qp = qps; qp != NULL; qp = qp->fault_next) {
		if (!qp->to_error)
			continue;
		qp->to_error = false;
		(void)softhca_modify_qp(qp->hca, &error, SOFTHCA_QP_STATE);
		qp->pub.qp_base.state = (enum ibv_qp_state)qp->hca->state;
	}
	pthread_mutex_unlock(&fault_lock);
}

/* ---- operations of a context ---- */

static int
poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int got;

	if (front_fault("ibv_poll_cq") != 0)
		return -1;
	got = front_ctx(cq->context)->poll_cq(cq, num_entries, wc);
	for (int i = 0; i < got; i++)
		front_fault_completion(cq->context, wc[i].qp_num, (wc[i].opcode & IBV_WC_RECV) != 0,
				       &wc[i].status);
	if (got > 0)
		front_fault_settle();
	return got;
}

static int
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = front_fault("ibv_post_send");

	if (err == 0)
		return front_post_send(qp, wr, bad_wr);
	*bad_wr = wr;
	return err;
}

static int
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int err = front_fault("ibv_post_recv");

	if (err == 0)
		return front_post_recv(qp, wr, bad_wr);
	*bad_wr = wr;
	return err;
}

static int
post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int err = front_fault("ibv_post_srq_recv");

	if (err == 0)
		return front_post_srq_recv(srq, wr, bad_wr);
	*bad_wr = wr;
	return err;
}

static int
req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int err = front_fault("ibv_req_notify_cq");

	return err == 0 ? front_req_notify_cq(cq, solicited_only) : err;
}

void
front_fault_context(struct front_context *ctx)
{
	struct ibv_context_ops *ops = &ctx->ex.context.ops;

	if (!front_faults_on())
		return;
	ctx->poll_cq = ops->poll_cq;
	ops->poll_cq = poll_cq;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	ops->req_notify_cq = req_notify_cq;
}
