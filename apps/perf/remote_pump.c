/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A stream of bytes over an RC connection. The rest of the program reads and writes one end of a
 * pair of sockets, as if it were TCP; a thread moves the data by SENDs of at most a slot.
 *
 * The order of the end: all SENDs are complete before the connection ends, so the data is in the
 * peer's completion queue before its DISCONNECTED.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote.h"

#define SLOTS 16u /* of either direction */
#define SLOT_BYTES 2048u
#define LAST_NS 2000000000ull /* for the rest of the data when this end closes */
#define SLICE_MS 200

struct remote_pump {
	struct softhca_context *ctx;
	struct softhca_cm_channel *events;
	struct softhca_cm_id *id;
	struct softhca_pd *pd;
	struct softhca_comp_channel *completions;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	uint8_t *memory; /* slots of receives, then of sends */
	int fd;		 /* the end of the pair that the thread has */
	uint32_t free[SLOTS], num_free;
	bool ended;  /* the connection is, or failed */
	bool closed; /* the other end of the pair is */
	bool running;
	pthread_t thread;
};

static int
failed(const char *what)
{
	fprintf(stderr, "softhca-perf: --cm: %s: %s\n", what, softhca_last_error(NULL));
	return -EIO;
}

struct softhca_cm_channel *
remote_pump_channel(const struct remote_pump *p)
{
	return p->events;
}

struct softhca_qp *
remote_pump_qp(const struct remote_pump *p)
{
	return p->qp;
}

/* ---- requests ---- */

static struct softhca_sge
slot_of(const struct remote_pump *p, uint32_t slot, uint32_t bytes)
{
	return (struct softhca_sge){(uintptr_t)p->memory + slot * SLOT_BYTES, bytes, p->mr->lkey};
}

static int
post_receive(struct remote_pump *p, uint32_t slot)
{
	struct softhca_sge sge = slot_of(p, slot, SLOT_BYTES);
	struct softhca_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	return softhca_post_recv(p->qp, &wr, &bad);
}

static int
post_send(struct remote_pump *p, uint32_t slot, uint32_t bytes)
{
	struct softhca_sge sge = slot_of(p, SLOTS + slot, bytes);
	struct softhca_send_wr *bad, wr = {.wr_id = slot,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = SOFTHCA_WR_SEND,
					   .send_flags = SOFTHCA_SEND_SIGNALED};

	return softhca_post_send(p->qp, &wr, &bad);
}

int
remote_pump_fill(struct remote_pump *p)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (post_receive(p, i) != 0)
			return failed("post_recv");
	return 0;
}

/* ---- the thread ---- */

static bool
write_all(int fd, const uint8_t *data, uint32_t bytes)
{
	while (bytes != 0) {
		ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		bytes -= (uint32_t)n;
	}
	return true;
}

static void
take_completion(struct remote_pump *p, const struct softhca_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;

	if (wc->status != SOFTHCA_WC_SUCCESS) {
		p->ended = true;
	} else if (wc->opcode == SOFTHCA_WC_RECV) {
		if (!write_all(p->fd, p->memory + slot * SLOT_BYTES, wc->byte_len))
			p->closed = true;
		if (post_receive(p, slot) != 0)
			p->ended = true;
	} else {
		p->free[p->num_free++] = slot;
	}
}

static void
take_completions(struct remote_pump *p)
{
	struct softhca_wc wc;
	int n;

	while ((n = softhca_poll_cq(p->cq, 1, &wc)) == 1)
		take_completion(p, &wc);
	if (n < 0)
		p->ended = true;
}

static void
take_notice(struct remote_pump *p)
{
	struct softhca_cq *cq;

	if (softhca_get_cq_event(p->completions, &cq, NULL) == 0)
		softhca_ack_cq_events(cq, 1);
}

static void
take_event(struct remote_pump *p)
{
	struct softhca_cm_event event;
	int err = softhca_cm_get_event(p->events, &event);

	if (err == -EAGAIN || err == -EINTR)
		return;
	if (err != 0 || event.type == SOFTHCA_CM_DISCONNECTED ||
	    event.type == SOFTHCA_CM_DEVICE_REMOVAL)
		p->ended = true;
}

static void
take_data(struct remote_pump *p)
{
	uint32_t slot = p->free[p->num_free - 1];
	ssize_t n = recv(p->fd, p->memory + (SLOTS + slot) * SLOT_BYTES, SLOT_BYTES, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		p->closed = true;
		return;
	}
	p->num_free--;
	if (post_send(p, slot, (uint32_t)n) != 0)
		p->ended = true;
}

/* Sleep until there is something to do; the CQ is armed before the last look at it. */
static void
pump_once(struct remote_pump *p)
{
	struct pollfd fds[] = {
		{.fd = p->completions->fd, .events = POLLIN},
		{.fd = p->events->fd, .events = POLLIN},
		{.fd = p->num_free != 0 && !p->closed ? p->fd : -1, .events = POLLIN},
	};

	if (softhca_req_notify_cq(p->cq, 0) != 0)
		p->ended = true;
	take_completions(p);
	if (p->ended || poll(fds, 3, SLICE_MS) <= 0)
		return;
	if (fds[0].revents != 0)
		take_notice(p);
	if (fds[1].revents != 0)
		take_event(p);
	if (fds[2].revents != 0)
		take_data(p);
}

/* A connection that has ended has delivered the data of its peer. */
static void *
pump_main(void *arg)
{
	struct remote_pump *p = arg;
	uint64_t deadline = 0;

	while (!p->ended) {
		pump_once(p);
		if (!p->closed)
			continue;
		if (deadline == 0)
			deadline = perf_now_ns() + LAST_NS;
		if (p->num_free == SLOTS || perf_now_ns() > deadline)
			break;
	}
	take_completions(p);
	shutdown(p->fd, SHUT_RDWR);
	return NULL;
}

/* Signals are the main thread's. */
static int
start_thread(struct remote_pump *p)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread, NULL, pump_main, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	p->running = err == 0;
	return -err;
}

int
remote_pump_start(struct remote_pump *p, struct softhca_cm_id *id, int *fd)
{
	int pair[2], err;

	p->id = id;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	p->fd = pair[1];
	*fd = pair[0];
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	err = start_thread(p);
	if (err == 0)
		return 0;
	close(pair[0]);
	return err;
}

/* ---- life ---- */

static bool
open_objects(struct remote_pump *p)
{
	struct softhca_cq_init_attr ca = {.cqe = 2 * SLOTS};
	struct softhca_qp_init_attr qa = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = SLOTS, .max_recv_wr = SLOTS, 1, 1, 0},
	};

	p->events = softhca_cm_create_channel(p->ctx);
	if (p->events == NULL)
		return false;
	fcntl(p->events->fd, F_SETFL, O_NONBLOCK);
	p->completions = softhca_create_comp_channel(p->ctx);
	if (p->completions == NULL)
		return false;
	fcntl(p->completions->fd, F_SETFL, O_NONBLOCK);
	ca.channel = p->completions;
	p->pd = softhca_alloc_pd(p->ctx);
	p->cq = softhca_create_cq(p->ctx, &ca);
	p->memory = softhca_alloc(2 * SLOTS * SLOT_BYTES);
	if (p->pd == NULL || p->cq == NULL || p->memory == NULL)
		return false;
	p->mr = softhca_reg_mr(p->pd, p->memory, 2 * SLOTS * SLOT_BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE);
	qa.send_cq = qa.recv_cq = p->cq;
	p->qp = softhca_create_qp(p->pd, &qa);
	return p->mr != NULL && p->qp != NULL;
}

struct remote_pump *
remote_pump_open(struct softhca_context *ctx)
{
	struct remote_pump *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->ctx = ctx;
	p->fd = -1;
	for (uint32_t i = 0; i < SLOTS; i++)
		p->free[p->num_free++] = i;
	if (open_objects(p))
		return p;
	failed("no connection");
	remote_pump_close(p);
	return NULL;
}

/* The id goes before its QP: the peer is told of the end. */
void
remote_pump_close(struct remote_pump *p)
{
	if (p == NULL)
		return;
	if (p->running)
		pthread_join(p->thread, NULL);
	if (p->fd >= 0)
		close(p->fd);
	if (p->id != NULL)
		softhca_cm_destroy_id(p->id);
	if (p->qp != NULL)
		softhca_destroy_qp(p->qp);
	if (p->mr != NULL)
		softhca_dereg_mr(p->mr);
	if (p->cq != NULL)
		softhca_destroy_cq(p->cq);
	if (p->completions != NULL)
		softhca_destroy_comp_channel(p->completions);
	if (p->pd != NULL)
		softhca_dealloc_pd(p->pd);
	if (p->memory != NULL)
		softhca_free(p->memory);
	if (p->events != NULL)
		softhca_cm_destroy_channel(p->events);
	free(p);
}
