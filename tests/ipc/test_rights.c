/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Rights of users: management datagrams are refused to ordinary users and allowed to privileged
 * ones; each row of the table of operations is for the clients that it names. And the errors of a
 * process without free descriptors, in the daemon or in itself.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

#define NOBODY 65534
#define GSI_QKEY 0x80010000u

static struct rig rig;

/* The user that the client runs as: the current one, unless that is root. */
static uid_t
user(void)
{
	return getuid() != 0 ? getuid() : NOBODY;
}

static void
start_rig(int privileged)
{
	char uid[16];
	const char *extra[] = {"0", "0", "0", uid, NULL};

	snprintf(uid, sizeof(uid), "%d", privileged);
	rig_start(&rig, extra);
}

static int
differs(const char *what, int got, int want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s: %d instead of %d (%s)\n", what, got, want, softhca_last_error(NULL));
	return 1;
}

static int
to_state(struct softhca_qp *qp, uint32_t state, uint32_t mask, uint32_t qkey)
{
	struct softhca_qp_attr a = {.qp_state = state, .port_num = 1, .qkey = qkey, .sq_psn = 1};

	return softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | mask);
}

/* A QP whose datagrams say that they are from QPN 1: 0, or a negative errno. */
static int
as_gsi(const struct peer *p)
{
	struct softhca_qp_init_attr_ex a = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = SOFTHCA_QPT_UD,
		.flags = SOFTHCA_SOURCE_QPN,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = p->pd,
		.source_qpn = 1,
	};
	struct softhca_qp *qp = softhca_create_qp_ex(p->ctx, &a);

	return qp == NULL ? -errno : softhca_destroy_qp(qp);
}

#define TO_INIT (SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY)

/* A datagram to the other end; the status of its completion, or a negative errno. */
static int
send_to(struct peer *p, uint32_t qpn, uint32_t qkey)
{
	struct softhca_sge sge = {(uintptr_t)p->buf, 256, p->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.ud = {.ah = p->ah, .remote_qpn = qpn, .remote_qkey = qkey},
	};
	struct softhca_send_wr *bad;
	struct softhca_wc wc;
	int err = softhca_post_send(p->qp, &wr, &bad);

	return err == 0 ? peer_wait(p, &wc, RIG_TIMEOUT_S) : err;
}

static int
become_user(struct peer *p)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_UD};
	struct softhca_ah_attr a = {
		.is_global = 1,
		.port_num = 1,
		.hop_limit = 64,
	};

	if (getuid() == 0 && setuid(NOBODY) != 0)
		return differs("setuid", -errno, 0);
	if (peer_open(p, rig.path[0], &cfg) != 0)
		return 1;
	a.dgid = p->me.gid; /* its own address: datagrams come back, and no QP takes them */
	p->ah = softhca_create_ah(p->pd, &a);
	return p->ah == NULL;
}

static int
ordinary(int sock, void *arg)
{
	struct peer p;
	int bad = become_user(&p);

	if (bad != 0)
		return bad;
	bad += differs("source QPN 1", as_gsi(&p), -EACCES);
	bad += strstr(softhca_last_error(NULL), "privileged_users") == NULL;
	bad += differs("INIT with the GSI's Q_Key",
		       to_state(p.qp, SOFTHCA_QPS_INIT, TO_INIT, GSI_QKEY), -EACCES);
	bad += strstr(softhca_last_error(NULL), "privileged_users") == NULL;
	bad += differs("INIT", to_state(p.qp, SOFTHCA_QPS_INIT, TO_INIT, 0x7fffffff), 0);
	bad += differs("RTR", to_state(p.qp, SOFTHCA_QPS_RTR, 0, 0), 0);
	bad += differs("RTS", to_state(p.qp, SOFTHCA_QPS_RTS, SOFTHCA_QP_SQ_PSN, 0), 0);
	bad += differs("RTS with the top bit",
		       to_state(p.qp, SOFTHCA_QPS_RTS, SOFTHCA_QP_QKEY, 0xffffffff), -EACCES);
	bad += differs("the QP's own Q_Key", send_to(&p, p.qp->qp_num, GSI_QKEY), 0);
	bad += differs("to QPN 1", send_to(&p, 1, GSI_QKEY), SOFTHCA_WC_LOC_QP_OP_ERR);
	peer_close(&p);
	return bad;
}

static void
ordinary_user(void **state)
{
	int sock;

	start_rig(-1);
	rig_join(rig_fork(ordinary, NULL, &sock));
	close(sock);
	assert_int_equal(rig_ask(&rig, "device", 0, "qp_qkey_refused"), 2);
	assert_int_equal(rig_ask(&rig, "device", 0, "sq_management_refused"), 1);
	/* The datagram came back. */
	assert_int_equal(rig_ask(&rig, "device", 0, "rx_bad_qkey"), 0);
	rig_stop(&rig);
}

static int
privileged(int sock, void *arg)
{
	struct peer p;
	int bad = become_user(&p);

	if (bad != 0)
		return bad;
	bad += differs("source QPN 1", as_gsi(&p), 0);
	bad += differs("INIT", to_state(p.qp, SOFTHCA_QPS_INIT, TO_INIT, GSI_QKEY), 0);
	bad += differs("RTR", to_state(p.qp, SOFTHCA_QPS_RTR, 0, 0), 0);
	bad += differs("RTS", to_state(p.qp, SOFTHCA_QPS_RTS, SOFTHCA_QP_SQ_PSN, 0), 0);
	bad += differs("to QPN 1", send_to(&p, 1, GSI_QKEY), 0);
	peer_close(&p);
	return bad;
}

static void
privileged_user(void **state)
{
	int sock;

	start_rig((int)user());
	rig_join(rig_fork(privileged, NULL, &sock));
	close(sock);
	assert_int_equal(rig_ask(&rig, "device", 0, "qp_qkey_refused"), 0);
	assert_int_equal(rig_ask(&rig, "device", 0, "sq_management_refused"), 0);
	rig_stop(&rig);
}

/* ---- the table of operations ---- */

/* A client of that user sends zeros as the request of a row; returns the error in the reply. */
static int
zeros(uint16_t op, uid_t uid)
{
	static const struct {
		struct ipc_request head;
		uint8_t body[IPC_BODY_MAX];
	} nothing;
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);
	/* of PAGES its head only */
	uint32_t len = op == HCA_CTL_PAGES ? offsetof(struct hca_ctl_pages, page) : shape->request;
	uid_t before = geteuid();
	int file = open("/dev/null", O_RDWR | O_CLOEXEC), fds[] = {file, file, file, file}, err;
	struct raw r;

	assert_int_equal(seteuid(uid), 0);
	raw_open_today(&r, rig.path[0]);
	assert_int_equal(seteuid(before), 0);
	err = raw_call_fds(&r, op, nothing.body, len, fds, shape->fds_in);
	for (unsigned int i = 0; i < HCA_CTL_FDS_MAX; i++)
		if (err == 0 && r.fds[i] >= 0)
			close(r.fds[i]);
	raw_close(&r);
	close(file);
	return err;
}

/* Each row is for the clients that it names; others are refused, and counted. */
static void
callers_of_rows(void **state)
{
	unsigned int reserved = 0;

	for (int privileged = 0; privileged < 2; privileged++) {
		start_rig(privileged ? (int)user() : -1);
		for (uint16_t op = HCA_CTL_HELLO + 1; op < HCA_CTL_OP_COUNT; op++) {
			const struct hca_ctl_shape *shape = hca_ctl_shape(op);
			bool may = shape->caller == HCA_CTL_CALLER_EVERY || privileged;
			int64_t refused = rig_ask(&rig, "counters", 0, "refused_request");
			int err = zeros(op, user());

			if ((err == -EACCES) == may || err == -EPIPE || err == -ETIMEDOUT)
				fail_msg("%s: %d", shape->name, err);
			if (may)
				continue;
			reserved++;
			assert_int_equal(rig_ask(&rig, "counters", 0, "refused_request") - refused,
					 1);
		}
		rig_stop(&rig);
	}
	printf("%u of %u rows are for privileged clients\n", reserved, HCA_CTL_OP_COUNT);
}

/* Every call that needs a descriptor reports that none is left, and the context stays usable. */
static int
poor(int sock, void *arg)
{
	struct softhca_context *ctx, *more;
	struct rlimit low;
	int err = softhca_open(rig.path[0], &ctx), next = dup(sock);

	(void)arg;
	if (err != 0 || next < 0 || getrlimit(RLIMIT_NOFILE, &low) != 0)
		return 1;
	close(next);
	for (int left = 0; left < 4; left++) {
		low.rlim_cur = (rlim_t)(next + left);
		if (setrlimit(RLIMIT_NOFILE, &low) != 0)
			return 2;
		err = softhca_open(rig.path[0], &more);
		if (err != -EMFILE) {
			fprintf(stderr, "%d left: %d: %s\n", left, err, softhca_last_error(NULL));
			return 3;
		}
		if (left == 0 && (softhca_create_comp_channel(ctx) != NULL || errno != EMFILE))
			return 4;
		if (softhca_alloc_pd(ctx) == NULL)
			return 5;
	}
	return softhca_close(ctx);
}

static void
no_descriptors(void **state)
{
	int sock;

	start_rig(-1);
	rig_join(rig_fork(poor, NULL, &sock));
	close(sock);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	rig_stop(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_user),
		cmocka_unit_test(privileged_user),
		cmocka_unit_test(callers_of_rows),
		cmocka_unit_test(no_descriptors),
	};

	return cmocka_run_group_tests_name("ipc-rights", tests, NULL, NULL);
}
