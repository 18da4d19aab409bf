/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Event queues and forwarding. EQ 1 is for asynchronous events, all others for completions, one per
 * vector. Events become records in pipes; events that find a pipe full are recorded at their object
 * and written later, so that a client that does not read delays no other client and loses nothing.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "driver_types.h"

#define BUSY_POLLS 16u
#define FEW 8u /* limit of events that a worker forwards itself */
/* Bytes taken from a pipe at most, to remove some of its events: larger backlogs keep all */
#define FORGET_BYTES 65536

static int
create_eq(struct hca_driver *drv, uint32_t eqn)
{
	struct driver_eq *eq = &drv->eq[eqn];
	uint64_t bytes = (uint64_t)HCA_EQE_SIZE << eq->log_size;
	struct hca_eqc *eqc;
	int err;

	for (uint32_t i = 0; i < 1u << eq->log_size; i++)
		eq->ring[i].owner = HCA_OWNER_HW;
	err = driver_icm_need(drv, ICM_EQC, eqn, 1);
	if (err == 0)
		err = driver_mr_queue(drv, NULL, HCA_PD_MAKE(0, DRIVER_DOMAIN), eq->bus, bytes,
				      HCA_ACCESS_LOCAL_WRITE, &eq->mr);
	if (err != 0)
		return err;
	eqc = driver_mailbox(drv);
	eqc->flags = hca_cpu_to_be32(HCA_EQ_OWNER_HW | HCA_EQ_FLAG_TR | HCA_EQ_STATE_ARMED);
	hca_eqc_set_start(eqc, eq->bus);
	eqc->logsize = hca_cpu_to_be32(HCA_EQC_MAKE_LOGSIZE(eq->log_size));
	eqc->intr = hca_cpu_to_be32(eqn);
	eqc->pd = hca_cpu_to_be32(HCA_PD_MAKE(0, DRIVER_DOMAIN));
	eqc->lkey = hca_cpu_to_be32(eq->mr->key);
	err = driver_command_in(drv, HCA_CMD_SW2HW_EQ, eqn);
	eq->live = err == 0;
	return err;
}

int
driver_eq_create_all(struct hca_driver *drv)
{
	int err = 0;

	for (uint32_t eqn = 0; eqn < drv->num_eqs && err == 0; eqn++)
		err = create_eq(drv, eqn);
	if (err != 0)
		return err;
	return driver_command_bare(drv, HCA_CMD_MAP_EQ, 0, EQ_ASYNC,
				   HCA_EVENT_MASK_ALL & ~HCA_EVENT_MASK(HCA_EVENT_COMP));
}

void
driver_eq_destroy_all(struct hca_driver *drv)
{
	for (uint32_t eqn = drv->num_eqs; eqn-- > 0;) {
		struct driver_eq *eq = &drv->eq[eqn];

		if (eq->live)
			driver_command_bare(drv, HCA_CMD_HW2SW_EQ, 0, eqn, 0);
		eq->live = false;
		driver_mr_destroy(drv, eq->mr, true);
		eq->mr = NULL;
	}
}

/* --- forwarding; event_lock held --- */

/*
 * Write n records. False: the pipe is full, and nothing was written. A pipe without a reader drops
 * events.
 */
static bool
write_events(const struct hca_client *client, uint32_t channel, const struct hca_ctl_event *event,
	     uint32_t n)
{
	int fd = channel < client->num_channels ? client->channels[channel].write_fd : -1;
	ssize_t done;

	if (fd < 0)
		return true;
	do {
		done = write(fd, event, n * sizeof(*event));
	} while (done < 0 && errno == EINTR);
	return done >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static bool
send_event(const struct hca_client *client, uint32_t channel, const struct hca_ctl_event *event)
{
	if (write_events(client, channel, event, 1))
		return true;
	client->channels[channel].full_pass = client->drv->pay_pass;
	return false;
}

/* The pipe was found full in the current pass over delayed events: do not try again. */
static bool
is_full(const struct hca_client *client, uint32_t channel)
{
	return channel < client->num_channels &&
	       client->channels[channel].full_pass == client->drv->pay_pass;
}

static void
owe(struct hca_driver *drv, uint32_t *owed, uint32_t type)
{
	if (*owed == 0)
		drv->owed++;
	*owed |= 1u << type;
	if (drv->config.urge != NULL)
		drv->config.urge(drv->config.urge_arg);
}

/*
 * Write all collected events of the first one's channel at once: less than PIPE_BUF, so the write
 * is atomic.
 */
static void
send_channel(struct hca_driver *drv, struct driver_due *first, uint32_t n)
{
	struct hca_client *client = first->client;
	struct hca_ctl_event event[DRIVER_DUE_MAX];
	uint32_t channel = first->channel, count = 0;
	bool sent, full;

	for (uint32_t i = 0; i < n; i++)
		if (first[i].client == client && first[i].channel == channel)
			event[count++] = first[i].event;
	sent = write_events(client, channel, event, count);
	full = count == 1;
	for (uint32_t i = 0; i < n; i++) {
		struct driver_due *d = &first[i];

		if (d->client != client || d->channel != channel)
			continue;
		/* not enough room for all: one by one until it is full */
		full = !sent && (full || !write_events(client, channel, &d->event, 1));
		if (full)
			owe(drv, d->owed, d->event.type);
		d->client = NULL;
	}
}

/* Write all collected events. */
static void
send_due(struct hca_driver *drv)
{
	for (uint32_t i = 0; i < drv->num_due; i++)
		if (drv->due[i].client != NULL)
			send_channel(drv, &drv->due[i], drv->num_due - i);
	drv->num_due = 0;
}

/* Everything in a pipe of a client, which may read it meanwhile; returns the number of records. */
static uint32_t
take_all(int write_fd, struct hca_ctl_event *event, size_t bytes)
{
	char path[32];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", write_fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, event, bytes);
	close(fd);
	return got > 0 ? (uint32_t)((size_t)got / sizeof(*event)) : 0;
}

/* The kept ones fit: no other thread writes, and at least their size was taken out. */
static void
forget_some(const struct hca_client *client, uint32_t channel, uint64_t types, uint32_t object,
	    size_t bytes)
{
	struct hca_ctl_event *event = malloc(bytes);
	uint32_t n, kept = 0;

	if (event == NULL)
		return;
	n = take_all(client->channels[channel].write_fd, event, bytes);
	for (uint32_t i = 0; i < n; i++)
		if (event[i].type >= 64 || (types & HCA_EVENT_MASK(event[i].type)) == 0 ||
		    event[i].object != object)
			event[kept++] = event[i];
	if (kept != 0)
		write_events(client, channel, event, kept);
	free(event);
}

void
driver_eq_forget(const struct hca_client *client, uint32_t channel, uint64_t types, uint32_t object)
{
	int fd = channel < client->num_channels ? client->channels[channel].write_fd : -1;
	int bytes = 0;

	if (fd < 0 || client->closed || ioctl(fd, FIONREAD, &bytes) != 0)
		return;
	if (bytes > 0 && bytes <= FORGET_BYTES)
		forget_some(client, channel, types, object, (size_t)bytes);
}

static void
send_later(struct hca_client *client, uint32_t channel, uint32_t *owed,
	   const struct hca_ctl_event *event)
{
	struct hca_driver *drv = client->drv;

	if (drv->num_due == DRIVER_DUE_MAX)
		send_due(drv);
	drv->due[drv->num_due++] = (struct driver_due){client, owed, channel, *event};
}

/* Events for all clients: about the port, about the device */
static void
send_to_all(struct hca_driver *drv, const struct hca_eqe *eqe)
{
	const struct hca_ctl_event event = {
		.type = eqe->type,
		.object = hca_le32_to_cpu(eqe->object),
		.subtype = eqe->subtype,
	};

	if (eqe->type == HCA_EVENT_LOCAL_CATAS) {
		__atomic_store_n(&drv->dead, true, __ATOMIC_RELAXED);
		drv->told_dead = true;
	}
	if (eqe->type == HCA_EVENT_PORT_CHANGE) {
		drv->port.state = eqe->subtype;
		drv->port_told = true;
	}
	for (struct hca_client *client = drv->clients; client != NULL; client = client->next)
		send_later(client, 0, &client->owed_port, &event);
	send_due(drv);
}

void
driver_port_event(struct hca_driver *drv, uint32_t type)
{
	const struct hca_eqe eqe = {.type = (uint8_t)type, .object = hca_cpu_to_le32(1)};

	pthread_mutex_lock(&drv->event_lock);
	send_to_all(drv, &eqe);
	pthread_mutex_unlock(&drv->event_lock);
}

void
hca_driver_cm_event(struct hca_driver *drv, uint32_t owner, uint32_t channel)
{
	const struct hca_ctl_event event = {.type = HCA_CTL_EVENT_CM, .object = channel};

	pthread_mutex_lock(&drv->event_lock);
	for (const struct hca_client *c = drv->clients; c != NULL; c = c->next)
		if (c->uar == owner && !c->closed)
			(void)write_events(c, channel, &event, 1);
	pthread_mutex_unlock(&drv->event_lock);
}

/* Report a device that no longer answers commands, and so cannot report it itself. */
void
driver_dead_event(struct hca_driver *drv)
{
	const struct hca_eqe eqe = {.type = HCA_EVENT_LOCAL_CATAS, .object = hca_cpu_to_le32(1)};

	pthread_mutex_lock(&drv->event_lock);
	if (!drv->told_dead)
		send_to_all(drv, &eqe);
	pthread_mutex_unlock(&drv->event_lock);
}

/* For the owner of a QP, and for those that have opened it */
static void
send_to_holders(struct driver_qp *qp, const struct hca_ctl_event *event)
{
	send_later(qp->owner, 0, &qp->owed, event);
	for (struct driver_opener *o = qp->openers; o != NULL; o = o->next)
		send_later(o->client, 0, &o->owed, event);
}

static void
forward(struct hca_driver *drv, const struct hca_eqe *eqe)
{
	uint32_t object = hca_le32_to_cpu(eqe->object);
	struct hca_ctl_event event = {.type = eqe->type, .object = object};
	struct driver_srq *srq;
	struct driver_cq *cq;
	struct driver_qp *qp;

	switch (eqe->type) {
	case HCA_EVENT_SRQ_CATAS:
	case HCA_EVENT_SRQ_LIMIT:
		srq = drv->srqs[object & (drv->srq_ids.count - 1)];
		if (srq != NULL && srq->srqn == object)
			send_later(srq->owner, 0, &srq->owed, &event);
		break;
	case HCA_EVENT_COMP:
	case HCA_EVENT_CQ_ERROR:
		cq = object < drv->cq_ids.count ? drv->cqs[object] : NULL;
		if (cq == NULL)
			break;
		event.tag = cq->tag;
		send_later(cq->owner, eqe->type == HCA_EVENT_COMP ? cq->channel : 0, &cq->owed,
			   &event);
		break;
	case HCA_EVENT_TP_ERROR:
		if (drv->agent != NULL)
			drv->agent->event(drv->agent_arg, object);
		break;
	case HCA_EVENT_LOCAL_CATAS:
	case HCA_EVENT_PORT_CHANGE:
		send_to_all(drv, eqe);
		break;
	case HCA_EVENT_CMD:	    /* commands are polled */
	case HCA_EVENT_EQ_OVERFLOW: /* the device delays events that do not fit */
		break;
	default:
		qp = drv->qps[object & (drv->qp_ids.count - 1)];
		if (qp != NULL && qp->qpn == object)
			send_to_holders(qp, &event);
		break;
	}
}

static unsigned int
poll_eq(struct hca_driver *drv, uint32_t eqn)
{
	struct driver_eq *eq = &drv->eq[eqn];
	volatile uint8_t *bar0 = drv->hw.bar0;
	uint32_t mask = (1u << eq->log_size) - 1;
	unsigned int done = 0;

	for (; eq->live && done <= mask; done++) {
		struct hca_eqe *eqe = &eq->ring[eq->consumer & mask];

		if (__atomic_load_n(&eqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
			break;
		forward(drv, eqe);
		__atomic_store_n(&eqe->owner, HCA_OWNER_HW, __ATOMIC_RELEASE);
		eq->consumer++;
	}
	if (done != 0)
		__atomic_store_n((volatile uint32_t *)(bar0 + HCA_BAR0_EQ_CI(eqn)),
				 hca_cpu_to_le32(eq->consumer), __ATOMIC_RELEASE);
	return done;
}

unsigned int
driver_eq_drain(struct hca_driver *drv)
{
	unsigned int done = 0;

	for (uint32_t eqn = 0; eqn < drv->num_eqs; eqn++)
		done += poll_eq(drv, eqn);
	send_due(drv);
	return done;
}

/* Write the delayed events of an object, which differ in their type; true: all are written. */
static bool
pay(const struct hca_client *client, uint32_t *owed, uint32_t comp_channel,
    struct hca_ctl_event event)
{
	for (event.type = 0; event.type < 32; event.type++) {
		uint32_t channel = event.type == HCA_EVENT_COMP ? comp_channel : 0;

		if ((*owed & 1u << event.type) == 0 || is_full(client, channel))
			continue;
		if (send_event(client, channel, &event))
			*owed &= ~(1u << event.type);
	}
	return *owed == 0;
}

#define ABOUT(...) ((struct hca_ctl_event){__VA_ARGS__})

static void
pay_all(struct hca_driver *drv)
{
	drv->pay_pass++;
	for (struct hca_client *client = drv->clients; client != NULL; client = client->next) {
		if (client->owed_port != 0 && pay(client, &client->owed_port, 0,
						  ABOUT(.object = 1, .subtype = drv->port.state)))
			drv->owed--;
		for (struct driver_cq *cq = client->cqs; cq != NULL; cq = cq->next)
			if (cq->owed != 0 && pay(client, &cq->owed, cq->channel,
						 ABOUT(.object = cq->cqn, .tag = cq->tag)))
				drv->owed--;
		for (struct driver_srq *srq = client->srqs; srq != NULL; srq = srq->next)
			if (srq->owed != 0 &&
			    pay(client, &srq->owed, 0, ABOUT(.object = srq->srqn)))
				drv->owed--;
		for (struct driver_qp *qp = client->qps; qp != NULL; qp = qp->next)
			if (qp->owed != 0 && pay(client, &qp->owed, 0, ABOUT(.object = qp->qpn)))
				drv->owed--;
		for (struct driver_opener *o = client->opened; o != NULL; o = o->next_own)
			if (o->owed != 0 && pay(client, &o->owed, 0, ABOUT(.object = o->qp->qpn)))
				drv->owed--;
	}
}

/*
 * Delayed events, up to one per object and type, wait while there are new events, for a limited
 * time.
 */
static unsigned int
poll_all(struct hca_driver *drv)
{
	unsigned int done = driver_eq_drain(drv);

	if (drv->owed != 0 && (done == 0 || ++drv->busy_polls % BUSY_POLLS == 0))
		pay_all(drv);
	return done;
}

unsigned int
hca_driver_poll(struct hca_driver *drv)
{
	unsigned int done;

	if (pthread_mutex_trylock(&drv->event_lock) != 0)
		return 0;
	done = poll_all(drv);
	pthread_mutex_unlock(&drv->event_lock);
	return done;
}

unsigned int
hca_driver_poll_wait(struct hca_driver *drv)
{
	unsigned int done;

	pthread_mutex_lock(&drv->event_lock);
	done = poll_all(drv);
	pthread_mutex_unlock(&drv->event_lock);
	return done;
}

/* Whether the event needs a write per client, or per client that has the QP open. */
static bool
is_for_many(const struct hca_driver *drv, const struct hca_eqe *eqe)
{
	const struct driver_qp *qp;

	switch (eqe->type) {
	case HCA_EVENT_COMP:
	case HCA_EVENT_CQ_ERROR:
	case HCA_EVENT_SRQ_CATAS:
	case HCA_EVENT_SRQ_LIMIT:
	case HCA_EVENT_TP_ERROR:
		return false;
	case HCA_EVENT_LOCAL_CATAS:
	case HCA_EVENT_PORT_CHANGE:
		return true;
	default:
		qp = drv->qps[hca_le32_to_cpu(eqe->object) & (drv->qp_ids.count - 1)];
		return qp != NULL && qp->openers != NULL;
	}
}

/* Number of EQEs to forward; more than FEW: too many, or not for a worker. */
static uint32_t
count_few(const struct hca_driver *drv)
{
	uint32_t n = 0;

	for (uint32_t eqn = 0; eqn < drv->num_eqs; eqn++) {
		const struct driver_eq *eq = &drv->eq[eqn];
		uint32_t mask = (1u << eq->log_size) - 1;

		for (uint32_t i = eq->consumer; eq->live && n <= FEW; i++, n++) {
			const struct hca_eqe *eqe = &eq->ring[i & mask];

			if (__atomic_load_n(&eqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
				break;
			if (is_for_many(drv, eqe))
				return FEW + 1;
		}
	}
	return n;
}

bool
hca_driver_poll_few(struct hca_driver *drv)
{
	bool few;

	if (pthread_mutex_trylock(&drv->event_lock) != 0)
		return false;
	few = count_few(drv) <= FEW;
	if (few)
		driver_eq_drain(drv);
	pthread_mutex_unlock(&drv->event_lock);
	return few;
}

uint32_t
hca_driver_owed(struct hca_driver *drv)
{
	uint32_t owed;

	pthread_mutex_lock(&drv->event_lock);
	owed = drv->owed;
	pthread_mutex_unlock(&drv->event_lock);
	return owed;
}
