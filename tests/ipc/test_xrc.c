/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * XRC domains of files among processes: one creates the target QP, another one receives messages
 * through it, also after the first has gone.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"

#define NOBODY 65534
#define MESSAGES 16u
#define BYTES 9000u /* three packets */

RIG_OF_ALL(rig)

static char path[128];

static int
make_file(void **state)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/softhca-xrc-XXXXXX", dir != NULL ? dir : "/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int
drop_file(void **state)
{
	unlink(path);
	return rig_tidy(state);
}

/* NULL with errno */
static struct softhca_xrcd *
open_domain(struct softhca_context *ctx, int mode, int oflags)
{
	struct softhca_xrcd_init_attr attr = {.fd = open(path, mode), .oflags = oflags};
	struct softhca_xrcd *xrcd = softhca_open_xrcd(ctx, &attr);
	int err = errno;

	close(attr.fd);
	errno = err;
	return xrcd;
}

static int
complain(const char *what)
{
	fprintf(stderr, "%s: %s (%s)\n", what, strerror(errno), softhca_last_error(NULL));
	return 1;
}

/* Messages between the processes */
struct card {
	union softhca_gid gid;
	uint32_t qpn, srqn;
};

static int
tell(int sock, const struct card *card)
{
	return send(sock, card, sizeof(*card), MSG_NOSIGNAL) == sizeof(*card) ? 0
									      : complain("send");
}

static int
hear(int sock, struct card *card)
{
	return recv(sock, card, sizeof(*card), MSG_WAITALL) == sizeof(*card) ? 0 : complain("recv");
}

/* ---- the creator of the target ---- */

enum ending {
	DESTROYS, /* the QP, then closes its context */
	ENDS,	  /* without closing anything */
	IS_KILLED,
};

static int
create_target(struct peer *p, int sock, struct softhca_qp **qp, struct softhca_xrcd **xrcd)
{
	struct softhca_qp_init_attr_ex attr = {.qp_type = SOFTHCA_QPT_XRC_RECV,
					       .comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD};
	struct card sender, me = {0};

	*xrcd = attr.xrcd = open_domain(p->ctx, O_RDWR, O_CREAT);
	*qp = attr.xrcd != NULL ? softhca_create_qp_ex(p->ctx, &attr) : NULL;
	if (*qp == NULL)
		return complain("target");
	if (hear(sock, &sender) != 0)
		return 1;
	p->other.gid = sender.gid;
	if (peer_connect_qp(p, *qp, sender.qpn, sender.qpn, 1) != 0)
		return complain("connect");
	me.qpn = (*qp)->qp_num;
	me.gid = p->me.gid;
	return tell(sock, &me);
}

static int
creator(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	enum ending ending = *(const enum ending *)arg;
	struct softhca_xrcd *xrcd;
	struct softhca_qp *qp;
	struct card go;
	struct peer p;

	if (peer_open(&p, rig.path[0], &cfg) != 0 || create_target(&p, sock, &qp, &xrcd) != 0 ||
	    hear(sock, &go) != 0)
		return 1;
	if (ending == ENDS)
		return 0;
	if (ending == IS_KILLED)
		raise(SIGKILL);
	if (softhca_close_xrcd(xrcd) != -EBUSY || softhca_destroy_qp(qp) != 0 ||
	    softhca_close_xrcd(xrcd) != 0)
		return complain("the end");
	peer_close(&p);
	return 0;
}

/* ---- the receiver, which opens the target ---- */

static struct softhca_srq *
make_srq(struct peer *p, struct softhca_xrcd *xrcd)
{
	struct softhca_srq_init_attr_ex attr = {
		.attr = {.max_wr = MESSAGES, .max_sge = 1},
		.srq_type = SOFTHCA_SRQT_XRC,
		.pd = p->pd,
		.xrcd = xrcd,
		.cq = p->cq,
	};

	return softhca_create_srq_ex(p->ctx, &attr);
}

static int
receive_all(struct peer *p, struct softhca_srq *srq, const struct softhca_qp *qp)
{
	uint32_t srqn;

	softhca_get_srq_num(srq, &srqn);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct softhca_wc wc;
		int err = peer_wait(p, &wc, RIG_TIMEOUT_S);

		if (err != 0 || wc.opcode != SOFTHCA_WC_RECV || wc.byte_len != BYTES ||
		    wc.wr_id != i || wc.qp_num != qp->qp_num ||
		    !peer_verify(p->buf + (size_t)i * BYTES, BYTES, i)) {
			fprintf(stderr, "message %u: %d, %u bytes\n", i, err, wc.byte_len);
			return 1;
		}
	}
	return 0;
}

/* The opened QP can be asked and modified as by its creator. */
static int
use_target(struct softhca_qp *qp)
{
	struct softhca_qp_attr a = {.min_rnr_timer = 7};
	struct softhca_qp_init_attr init;

	if (qp->state != SOFTHCA_QPS_RTS)
		return complain("its state");
	if (softhca_modify_qp(qp, &a, SOFTHCA_QP_MIN_RNR_TIMER) != 0)
		return complain("modify");
	memset(&a, 0, sizeof(a));
	if (softhca_query_qp(qp, &a, 0, &init) != 0 || a.min_rnr_timer != 7 ||
	    a.qp_state != SOFTHCA_QPS_RTS)
		return complain("query");
	return 0;
}

static int
receive(struct peer *p, int sock, struct softhca_xrcd *xrcd)
{
	struct softhca_srq *srq = make_srq(p, xrcd);
	struct softhca_qp_open_attr open = {.xrcd = xrcd, .qp_type = SOFTHCA_QPT_XRC_RECV};
	struct softhca_qp *qp, *again;
	struct card card;

	if (srq == NULL)
		return complain("SRQ");
	p->srq = srq;
	for (uint32_t i = 0; i < MESSAGES; i++)
		if (peer_post_recv(p, i, (uint64_t)i * BYTES, BYTES) != 0)
			return complain("post_srq_recv");
	if (hear(sock, &card) != 0)
		return 1;
	open.qp_num = card.qpn;
	qp = softhca_open_qp(p->ctx, &open);
	if (qp == NULL)
		return complain("open_qp");
	again = softhca_open_qp(p->ctx, &open);
	if (again == NULL || again == qp || again->qp_num != qp->qp_num)
		return complain("opened twice");
	if (use_target(again) != 0 || softhca_destroy_qp(qp) != 0)
		return 1;
	qp = again;
	if (use_target(qp) != 0)
		return 1;
	softhca_get_srq_num(srq, &card.srqn);
	if (tell(sock, &card) != 0 || receive_all(p, srq, qp) != 0 || tell(sock, &card) != 0)
		return 1;
	if (softhca_destroy_qp(qp) != 0 || softhca_destroy_srq(srq) != 0)
		return complain("destroy");
	p->srq = NULL;
	return softhca_close_xrcd(xrcd) != 0 ? complain("close_xrcd") : 0;
}

static int
receiver(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_xrcd *xrcd;
	struct peer p;
	int err;

	if (peer_open(&p, rig.path[0], &cfg) != 0)
		return 1;
	xrcd = open_domain(p.ctx, O_RDWR, O_CREAT);
	err = xrcd != NULL ? receive(&p, sock, xrcd) : complain("open_xrcd");
	peer_close(&p);
	return err;
}

/* ---- the sender, on the other HCA ---- */

static struct softhca_qp *
make_initiator(struct peer *p)
{
	struct softhca_qp_init_attr attr = {
		.send_cq = p->cq,
		.cap = {.max_send_wr = MESSAGES, .max_send_sge = 1},
		.qp_type = SOFTHCA_QPT_XRC_SEND,
	};

	return softhca_create_qp(p->pd, &attr);
}

static void
send_all(struct peer *p, struct softhca_qp *qp, uint32_t srqn)
{
	struct softhca_wc wc;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint8_t *from = p->buf + (size_t)i * BYTES;
		struct softhca_sge sge = {(uintptr_t)from, BYTES, p->mr->lkey};
		struct softhca_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = SOFTHCA_WR_SEND,
			.send_flags = SOFTHCA_SEND_SIGNALED,
			.qp_type.xrc.remote_srqn = srqn,
		};
		struct softhca_send_wr *bad;

		peer_fill(from, BYTES, i);
		assert_int_equal(softhca_post_send(qp, &wr, &bad), 0);
	}
	for (uint32_t i = 0; i < MESSAGES; i++)
		assert_int_equal(peer_wait(p, &wc, RIG_TIMEOUT_S), 0);
}

static void
join(pid_t pid, bool killed)
{
	int status;

	if (!killed) {
		rig_join(pid);
		return;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
creator_goes(enum ending ending)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct card me = {0}, target, card;
	int to_creator, to_receiver;
	pid_t creates = rig_fork(creator, &ending, &to_creator);
	pid_t receives = rig_fork(receiver, NULL, &to_receiver);
	struct softhca_qp *qp;
	struct peer p;

	assert_int_equal(peer_open(&p, rig.path[1], &cfg), 0);
	qp = make_initiator(&p);
	assert_non_null(qp);
	me.gid = p.me.gid;
	me.qpn = qp->qp_num;
	assert_int_equal(tell(to_creator, &me), 0);
	assert_int_equal(hear(to_creator, &target), 0);
	assert_int_equal(tell(to_receiver, &target), 0);
	assert_int_equal(hear(to_receiver, &card), 0);
	/* the receiver has opened it: now its creator goes */
	assert_int_equal(tell(to_creator, &me), 0);
	join(creates, ending == IS_KILLED);
	close(to_creator);
	p.other.gid = target.gid;
	assert_int_equal(peer_connect_qp(&p, qp, target.qpn, 1, me.qpn), 0);
	send_all(&p, qp, card.srqn);
	assert_int_equal(hear(to_receiver, &card), 0);
	rig_join(receives);
	close(to_receiver);
	assert_int_equal(softhca_destroy_qp(qp), 0);
	peer_close(&p);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
}

static void
creator_destroys_it(void **state)
{
	creator_goes(DESTROYS);
}

static void
creator_ends(void **state)
{
	creator_goes(ENDS);
}

static void
creator_is_killed(void **state)
{
	creator_goes(IS_KILLED);
}

/* ---- refusals ---- */

static void
refused(struct softhca_context *ctx, int fd, int oflags, int why)
{
	const struct softhca_xrcd_init_attr attr = {.fd = fd, .oflags = oflags};

	errno = 0;
	assert_null(softhca_open_xrcd(ctx, &attr));
	assert_int_equal(errno, why);
}

/* The error of a descriptor is reported, and the context goes on. */
static void
bad_input(void **state)
{
	int file = open(path, O_RDWR), bare = open(path, O_PATH), zero = open("/dev/zero", O_RDWR);
	struct softhca_xrcd_init_attr attr = {.fd = file, .oflags = O_CREAT | O_EXCL};
	struct softhca_qp_open_attr qp = {.qp_type = SOFTHCA_QPT_XRC_RECV};
	struct softhca_context *ctx, *other;
	struct softhca_xrcd *xrcd;

	assert_int_equal(softhca_open(rig.path[0], &ctx), 0);
	assert_int_equal(softhca_open(rig.path[0], &other), 0);
	refused(ctx, 9999, O_CREAT, EBADF);
	refused(ctx, -2, O_CREAT, EBADF);
	refused(ctx, bare, O_CREAT, EBADF);
	refused(ctx, zero, O_CREAT, EINVAL);
	refused(ctx, file, O_CREAT | O_APPEND, EINVAL);
	refused(ctx, file, 0, ENOENT);
	xrcd = softhca_open_xrcd(ctx, &attr);
	assert_non_null(xrcd);
	refused(other, file, O_CREAT | O_EXCL, EEXIST);
	assert_null(softhca_open_qp(ctx, &qp));
	assert_int_equal(errno, EINVAL);
	qp.xrcd = xrcd;
	assert_null(softhca_open_qp(other, &qp)); /* not its domain */
	assert_int_equal(errno, EINVAL);
	qp.qp_num = 0x123456;
	assert_null(softhca_open_qp(ctx, &qp));
	assert_int_equal(errno, EINVAL);
	qp.qp_type = SOFTHCA_QPT_RC;
	assert_null(softhca_open_qp(ctx, &qp));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(softhca_close_xrcd(xrcd), 0);
	assert_int_equal(softhca_close(ctx), 0);
	refused(other, file, 0, ENOENT); /* the last one has closed it */
	assert_int_equal(softhca_close(other), 0);
	close(zero);
	close(bare);
	close(file);
}

/*
 * A reader of another user's file gets no domain; a process that can write to it, or owns it, does.
 */
static int
reader(int sock, void *arg)
{
	bool owner = *(const bool *)arg;
	struct softhca_context *ctx;
	struct softhca_xrcd *xrcd;

	if (setuid(NOBODY) != 0 || softhca_open(rig.path[0], &ctx) != 0)
		return complain("open");
	errno = 0;
	xrcd = open_domain(ctx, O_RDONLY, O_CREAT);
	if (owner ? xrcd == NULL : xrcd != NULL || errno != EACCES)
		return complain("open_xrcd");
	if (!owner && open_domain(ctx, O_RDWR, O_CREAT) == NULL)
		return complain("open_xrcd for writing");
	return softhca_close(ctx);
}

static void
other_user(void **state)
{
	int sock;

	if (getuid() != 0)
		skip();
	for (unsigned int i = 0; i < 2; i++) {
		bool owner = i == 1;

		assert_int_equal(chmod(path, 0666), 0);
		assert_int_equal(chown(path, owner ? NOBODY : 0, (gid_t)-1), 0);
		rig_join(rig_fork(reader, &owner, &sock));
		close(sock);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, make_file, drop_file)
		T(creator_destroys_it), T(creator_ends), T(creator_is_killed),
		T(bad_input),		T(other_user),
#undef T
	};

	return cmocka_run_group_tests_name("ipc-xrc", tests, start, shut_down);
}
