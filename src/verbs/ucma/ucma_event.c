/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * GET_EVENT: the channels of libsofthca are asked in turns. Events that the program must not see
 * (an HCA that cannot reach a destination while others are left to ask, those of requests that are
 * not accepted yet) are taken here; they make the descriptor readable all the same.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ucma.h"

/* Members that older callers lack are at the end. */
#define RESP_LEAST offsetof(struct rdma_ucm_event_resp, reserved)

/* ---- the answer ---- */

static void
event_conn(const struct softhca_cm_param *from, struct rdma_ucm_conn_param *to)
{
	if (from->private_data_len != 0)
		memcpy(to->private_data, from->private_data, from->private_data_len);
	to->private_data_len = from->private_data_len;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
}

static void
event_ud(const struct softhca_cm_event *from, struct rdma_ucm_ud_param *to)
{
	const struct softhca_cm_param *param = &from->param;

	if (param->private_data_len != 0)
		memcpy(to->private_data, param->private_data, param->private_data_len);
	to->private_data_len = param->private_data_len;
	to->qp_num = param->qp_num;
	to->qkey = param->qkey;
	ucma_ah_to_kern(&from->ah_attr, &to->ah_attr);
}

static void
event_show(const struct ucma_id *id, const struct softhca_cm_event *from,
	   struct rdma_ucm_event_resp *resp)
{
	resp->uid = id->uid;
	resp->id = id->number;
	resp->event = from->type;
	resp->status = (uint32_t)from->status;
	if (id->qp_type == SOFTHCA_QPT_UD)
		event_ud(from, &resp->param.ud);
	else
		event_conn(&from->param, &resp->param.conn);
	resp->ece.vendor_id = from->param.ece_vendor;
	resp->ece.attr_mod = from->param.ece_options;
}

/* ---- events by their kind: 1: shown, 0: not, or a negative errno ---- */

/* The listener gets an id, which the program owns from now on. */
static int
event_request(const struct ucma_call *call, struct ucma_source *source,
	      struct softhca_cm_event *event, struct rdma_ucm_event_resp *resp)
{
	struct ucma_id *listener = event->listener->user, *id;
	struct ucma_end *end = malloc(sizeof(*end));

	id = end != NULL ? ucma_id_new(call->file, 0, listener->space, listener->qp_type) : NULL;
	if (id == NULL) {
		free(end);
		softhca_cm_destroy_id(event->id);
		return -ENOMEM;
	}
	*end = (struct ucma_end){source, event->id};
	id->ends = end;
	id->num_ends = 1;
	id->progress = UCMA_RESOLVED;
	id->bound = id->routed = true;
	event->id->user = id;
	event_show(id, event, resp);
	resp->uid = listener->uid;
	listener->events++;
	return 1;
}

static struct ucma_group *
event_group(const struct ucma_id *id, uint32_t membership)
{
	struct ucma_group *group = id->groups;

	while (group != NULL && group->membership != membership)
		group = group->next;
	return group;
}

static int
event_multicast(struct ucma_id *id, const struct softhca_cm_event *event,
		struct rdma_ucm_event_resp *resp)
{
	struct ucma_group *group = event_group(id, event->group);

	if (group == NULL)
		return 0; /* left before */
	event_show(id, event, resp);
	resp->uid = group->uid;
	resp->id = group->number;
	group->events++;
	id->events++;
	return 1;
}

/* A listener at several HCAs has lost one of them. */
static bool
event_lost_one(struct ucma_id *id, const struct softhca_cm_id *end)
{
	if (id->num_ends < 2)
		return false;
	for (uint32_t i = 0; i < id->num_ends; i++)
		if (id->ends[i].id == end) {
			ucma_end_drop(id, i);
			break;
		}
	return true;
}

/* Effect of the event on the id; false: it is not for the program. */
static bool
event_apply(const struct ucma_call *call, struct ucma_id *id, const struct softhca_cm_event *event)
{
	id->informed = false;
	switch (event->type) {
	case SOFTHCA_CM_ADDR_RESOLVED:
		ucma_resolve_done(id);
		break;
	case SOFTHCA_CM_ADDR_ERROR:
		if (ucma_resolve_next(call, id, event->status))
			return false;
		break;
	case SOFTHCA_CM_ROUTE_RESOLVED:
		id->routed = true;
		break;
	case SOFTHCA_CM_DEVICE_REMOVAL:
		if (event_lost_one(id, event->id))
			return false;
		id->gone = true;
		break;
	default:
		break;
	}
	return id->uid != 0;
}

static int
event_shown(const struct ucma_call *call, struct ucma_source *source,
	    struct softhca_cm_event *event, struct rdma_ucm_event_resp *resp)
{
	struct ucma_id *id = event->id->user;

	memset(resp, 0, sizeof(*resp));
	if (event->type == SOFTHCA_CM_CONNECT_REQUEST)
		return event_request(call, source, event, resp);
	if (event->type == SOFTHCA_CM_MULTICAST_JOIN || event->type == SOFTHCA_CM_MULTICAST_ERROR)
		return event_multicast(id, event, resp);
	if (!event_apply(call, id, event))
		return 0;
	event_show(id, event, resp);
	id->events++;
	return 1;
}

/* ---- asking ---- */

/* 1: an event is shown, 0: this channel has none, or a negative errno */
static int
source_ask(const struct ucma_call *call, struct ucma_source *source,
	   struct rdma_ucm_event_resp *resp)
{
	struct softhca_cm_event event;
	int err, shown = 0;

	while (shown == 0 && !source->dead) {
		err = softhca_cm_get_event(source->channel, &event);
		if (err == -EAGAIN)
			return 0;
		if (err == 0)
			shown = event_shown(call, source, &event, resp);
		else if (err != -EINTR)
			ucma_source_died(call, source);
	}
	return shown;
}

/* The file is locked. The channel that comes first is another one each time. */
static int
file_ask(const struct ucma_call *call, struct rdma_ucm_event_resp *resp)
{
	struct ucma_file *file = call->file;
	struct ucma_source *source = file->turn != NULL ? file->turn : file->sources;
	int shown = 0;

	for (const struct ucma_source *each = file->sources; each != NULL && shown == 0;
	     each = each->next) {
		shown = source_ask(call, source, resp);
		source = source->next != NULL ? source->next : file->sources;
	}
	file->turn = source;
	return shown;
}

/* A fault of the thread's own does not come while it waits. */
static bool
signal_is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
	       number == SIGTRAP || number == SIGSYS;
}

/* Whether read(2) would begin again: whether all signals that have handlers say so */
static bool
signals_restart(void)
{
	struct sigaction action;

	for (int i = 1; i < NSIG; i++)
		if (!signal_is_fault(i) && sigaction(i, NULL, &action) == 0 &&
		    action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    (action.sa_flags & SA_RESTART) == 0)
			return false;
	return true;
}

/* 0: look again; -EAGAIN, -EINTR, -EBADF. The descriptor may be closed while this waits. */
static int
file_wait(int fd)
{
	struct pollfd wait = {.events = POLLIN};
	int flags = fcntl(fd, F_GETFL), keep, n, err;

	if (flags < 0)
		return -EBADF;
	if ((flags & O_NONBLOCK) != 0)
		return -EAGAIN;
	keep = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	wait.fd = keep >= 0 ? keep : fd;
	do {
		n = poll(&wait, 1, -1);
		err = n < 0 ? -errno : 0;
	} while (err == -EINTR && signals_restart());
	if (keep >= 0)
		close(keep);
	return err;
}

int
ucma_get_event(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_get_event *cmd = data;
	struct rdma_ucm_event_resp resp;
	int shown, err = 0;

	if (call->out < RESP_LEAST)
		return -ENOSPC;
	if (cmd->response == 0)
		return -EFAULT;
	for (;;) {
		pthread_mutex_lock(&call->file->lock);
		shown = file_ask(call, &resp);
		pthread_mutex_unlock(&call->file->lock);
		if (shown == 0)
			err = file_wait(call->fd);
		if (shown != 0 || err != 0)
			break;
	}
	if (shown > 0)
		return ucma_answer(call, cmd->response, &resp, sizeof(resp));
	return shown < 0 ? shown : err;
}
