/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Events of connection management: which id they name, threads that wait for them while ids and
 * channels go, and the end of the device. A thread that does not wake up ends the process.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cm.h"
#include "lib_rig.h"

#define IDS 1000u
#define THREADS 4u

const struct rig_wanted rig_wanted = {0}; /* no QP */

static struct softhca_cm_channel *channel;

static int
setup_channel(void)
{
	fake_cm_begin(fake);
	channel = softhca_cm_create_channel(ctx);
	assert_non_null(channel);
	return 0;
}

static int
setup(void **state)
{
	return rig_setup(state) == 0 ? setup_channel() : -1;
}

static int
setup_manual(void **state)
{
	return rig_setup_manual(state) == 0 ? setup_channel() : -1;
}

static int
teardown(void **state)
{
	if (channel != NULL)
		assert_int_equal(softhca_cm_destroy_channel(channel), 0);
	return rig_teardown(state);
}

static struct softhca_cm_id *
new_id(void *user)
{
	struct softhca_cm_id *id =
		softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, user);

	assert_non_null(id);
	return id;
}

static void
raise_event(uint32_t number, uint32_t type)
{
	const struct hca_ctl_cm_event event = {.id = number, .type = type};

	fake_cm_raise(fake, 1, &event);
}

static void
nonblocking(struct softhca_cm_channel *c)
{
	assert_int_equal(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
}

static bool
is_readable(const struct softhca_cm_channel *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void
contents(void **state)
{
	struct softhca_cm_id *id = new_id(NULL);
	struct hca_ctl_cm_event from = {
		.type = SOFTHCA_CM_ESTABLISHED,
		.status = -5,
		.id = id->number,
		.group = 6,
		.param =
			{
				.qpn = 7,
				.qkey = 8,
				.sidr_status = 9,
				.ece_vendor = 10,
				.ece_options = 11,
				.srq = 1,
				.responder_resources = 12,
				.initiator_depth = 13,
				.flow_control = 1,
				.retry_count = 5,
				.rnr_retry_count = 6,
				.private_len = 4,
				.private = "data",
			},
		.dgid = {14},
		.gid_index = 15,
		.flow_label = 16,
		.hop_limit = 17,
		.traffic_class = 18,
		.sl = 2,
	};
	struct softhca_cm_event e;

	assert_false(is_readable(channel));
	fake_cm_raise(fake, 1, &from);
	assert_true(is_readable(channel));
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_false(is_readable(channel));
	assert_int_equal(e.type, SOFTHCA_CM_ESTABLISHED);
	assert_int_equal(e.status, -5);
	assert_ptr_equal(e.id, id);
	assert_null(e.listener);
	assert_int_equal(e.group, 6);
	assert_int_equal(e.param.qp_num, 7);
	assert_int_equal(e.param.qkey, 8);
	assert_int_equal(e.param.sidr_status, 9);
	assert_int_equal(e.param.ece_vendor, 10);
	assert_int_equal(e.param.ece_options, 11);
	assert_int_equal(e.param.srq, 1);
	assert_int_equal(e.param.responder_resources, 12);
	assert_int_equal(e.param.initiator_depth, 13);
	assert_int_equal(e.param.flow_control, 1);
	assert_int_equal(e.param.retry_count, 5);
	assert_int_equal(e.param.rnr_retry_count, 6);
	assert_int_equal(e.param.private_data_len, 4);
	assert_ptr_equal(e.param.private_data, e.data);
	assert_memory_equal(e.data, "data\0", 5);
	assert_int_equal(e.ah_attr.dgid.raw[0], 14);
	assert_int_equal(e.ah_attr.sgid_index, 15);
	assert_int_equal(e.ah_attr.flow_label, 16);
	assert_int_equal(e.ah_attr.hop_limit, 17);
	assert_int_equal(e.ah_attr.traffic_class, 18);
	assert_int_equal(e.ah_attr.sl, 2);
	assert_int_equal(e.ah_attr.port_num, 1);
	assert_int_equal(e.ah_attr.is_global, 1);
}

/* Numbers that are far apart, so that some share a bucket, and a table that grows */
static void
many_ids(void **state)
{
	static struct softhca_cm_id *ids[IDS];
	struct softhca_cm_event e;

	fake_cm.stride = 0x10001;
	for (uintptr_t i = 0; i < IDS; i++)
		ids[i] = new_id((void *)i);
	assert_int_equal(fake_cm.ids, IDS);
	for (uint32_t i = IDS; i-- > 0;) {
		raise_event(ids[i]->number, SOFTHCA_CM_ADDR_RESOLVED);
		assert_int_equal(softhca_cm_get_event(channel, &e), 0);
		assert_ptr_equal(e.id, ids[i]);
		assert_ptr_equal(e.id->user, (void *)(uintptr_t)i);
		assert_null(e.param.private_data);
	}
	for (uint32_t i = 0; i < IDS; i += 2)
		assert_int_equal(softhca_cm_destroy_id(ids[i]), 0);
	for (uint32_t i = 1; i < IDS; i += 2) {
		raise_event(ids[i]->number, SOFTHCA_CM_ROUTE_RESOLVED);
		assert_int_equal(softhca_cm_get_event(channel, &e), 0);
		assert_ptr_equal(e.id, ids[i]);
	}
	assert_int_equal(softhca_cm_destroy_channel(channel), 0);
	assert_int_equal(fake_cm.ids, 0);
	channel = NULL;
}

/* An event of an id that has gone meanwhile is skipped; the next one is found. */
static void
skipped(void **state)
{
	struct softhca_cm_id *id = new_id(NULL);
	struct softhca_cm_event e;

	nonblocking(channel);
	assert_int_equal(softhca_cm_get_event(channel, &e), -EAGAIN);
	raise_event(id->number + 500, SOFTHCA_CM_DISCONNECTED);
	raise_event(id->number, SOFTHCA_CM_ESTABLISHED);
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_ptr_equal(e.id, id);
	assert_int_equal(e.type, SOFTHCA_CM_ESTABLISHED);
	/* destroyed with its event: the record of the pipe is left alone */
	raise_event(id->number, SOFTHCA_CM_DISCONNECTED);
	assert_int_equal(softhca_cm_destroy_id(id), 0);
	assert_int_equal(softhca_cm_get_event(channel, &e), -EAGAIN);
	assert_false(is_readable(channel));
}

static uint32_t
raise_request(const struct softhca_cm_id *listener)
{
	const struct hca_ctl_cm_event event = {
		.type = SOFTHCA_CM_CONNECT_REQUEST,
		.id = fake_cm_new_id(),
		.listener = listener->number,
		.param = {.private_len = 56, .private = "who"},
	};

	fake_cm_raise(fake, 1, &event);
	return event.id;
}

static void
requests(void **state)
{
	struct softhca_cm_id *listener = new_id(&fake), *id;
	struct softhca_cm_event e;
	uint32_t number = raise_request(listener);

	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_int_equal(e.type, SOFTHCA_CM_CONNECT_REQUEST);
	assert_ptr_equal(e.listener, listener);
	id = e.id;
	assert_ptr_not_equal(id, listener);
	assert_int_equal(id->number, number);
	assert_ptr_equal(id->user, &fake);
	assert_ptr_equal(id->channel, channel);
	assert_int_equal(id->space, SOFTHCA_CM_TCP);
	assert_int_equal(e.param.private_data_len, 56);
	assert_string_equal(e.param.private_data, "who");
	raise_event(number, SOFTHCA_CM_ESTABLISHED);
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_ptr_equal(e.id, id);
	assert_null(e.listener);
	/* the listener goes before its request is fetched: the peer is refused */
	raise_request(listener);
	assert_int_equal(fake_cm.ids, 3);
	assert_int_equal(softhca_cm_destroy_id(listener), 0);
	nonblocking(channel);
	assert_int_equal(softhca_cm_get_event(channel, &e), -EAGAIN);
	assert_int_equal(fake_cm.ids, 1);
	assert_int_equal(softhca_cm_destroy_id(id), 0);
	assert_int_equal(fake_cm.ids, 0);
}

static void
migrated(void **state)
{
	struct softhca_cm_channel *second = softhca_cm_create_channel(ctx);
	struct softhca_cm_id *id = new_id(NULL), *other = new_id(NULL);
	struct softhca_cm_event e;

	nonblocking(channel);
	nonblocking(second);
	raise_event(other->number, SOFTHCA_CM_ADDR_RESOLVED);
	raise_event(id->number, SOFTHCA_CM_ADDR_RESOLVED);
	assert_int_equal(softhca_cm_migrate(id, second), 0);
	assert_ptr_equal(id->channel, second);
	assert_int_equal(softhca_cm_get_event(second, &e), 0);
	assert_ptr_equal(e.id, id);
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_ptr_equal(e.id, other);
	assert_int_equal(softhca_cm_get_event(channel, &e), -EAGAIN);
	/* each channel takes its own ids with it */
	assert_int_equal(softhca_cm_destroy_channel(second), 0);
	assert_int_equal(fake_cm.ids, 1);
}

static void
migrated_to_other_context(void **state)
{
	struct softhca_context *ctx2;
	struct fake_ctl *fake2 = fake_open(&ctx2, false);
	struct softhca_cm_id *id = new_id(NULL);
	struct softhca_cm_channel *there;

	fake2->cm = fake->cm;
	there = softhca_cm_create_channel(ctx2);
	assert_non_null(there);
	assert_int_equal(softhca_cm_migrate(id, there), -EINVAL);
	assert_ptr_equal(id->channel, channel);
	assert_int_equal(softhca_cm_destroy_channel(there), 0);
	fake_close(fake2, ctx2);
}

/* ---- threads ---- */

struct waiter {
	pthread_t thread;
	struct softhca_cm_event event;
	uint32_t got;
	int result;
};

static void *
wait_main(void *arg)
{
	struct waiter *w = arg;

	for (;;) {
		w->result = softhca_cm_get_event(channel, &w->event);
		if (w->result != 0)
			return NULL;
		w->got++;
		__atomic_fetch_add((uint32_t *)w->event.id->user, 1, __ATOMIC_SEQ_CST);
	}
}

static void
start(struct waiter *w)
{
	*w = (struct waiter){0};
	assert_int_equal(pthread_create(&w->thread, NULL, wait_main, w), 0);
}

static uint32_t
readers(void)
{
	struct lib_context *c = lib_ctx(ctx);
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->readers;
	pthread_mutex_unlock(&c->lock);
	return n;
}

static void
wait_for(const uint32_t *count, uint32_t n)
{
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < n)
		usleep(100);
}

/* Each event goes to one thread; the channel is destroyed while they wait. */
static void
several_threads(void **state)
{
	struct waiter w[THREADS];
	uint32_t seen = 0, sum = 0;
	struct softhca_cm_id *id = new_id(&seen);

	for (uint32_t i = 0; i < THREADS; i++)
		start(&w[i]);
	for (uint32_t i = 0; i < IDS; i++)
		raise_event(id->number, SOFTHCA_CM_ADDR_RESOLVED);
	wait_for(&seen, IDS);
	while (readers() != THREADS)
		usleep(100);
	assert_int_equal(softhca_cm_destroy_channel(channel), 0);
	channel = NULL;
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].result, -EIO);
		sum += w[i].got;
	}
	assert_int_equal(sum, IDS);
	assert_int_equal(seen, IDS);
	assert_int_equal(fake_cm.ids, 0);
}

static void
on_signal(int number)
{
	(void)number;
}

static void
signals(void **state)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct waiter w;

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	start(&w);
	while (readers() == 0)
		usleep(100);
	while (pthread_kill(w.thread, SIGUSR1) == 0 && readers() != 0)
		usleep(1000);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -EINTR);
}

static int
never_called(struct fake_ctl *f, enum hca_ctl_op op, const void *request, void *answer)
{
	fail_msg("operation %u after the control channel was closed", op);
	return 0;
}

/*
 * The context is closed while a thread waits, and there is a record in its pipe: no call goes to
 * the control channel any more.
 */
static void
context_is_closed(void **state)
{
	struct waiter w;

	start(&w);
	while (readers() == 0)
		usleep(100);
	assert_int_equal(softhca_close(ctx), 0);
	ctx = NULL;
	fake->cm = never_called;
	raise_event(1, SOFTHCA_CM_ESTABLISHED);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -EIO);
	channel = NULL;
	close(fake->async_write);
	close(fake->channel_write);
	free(fake);
}

/* ---- manual progress ---- */

static struct softhca_cm_id *awaited;
static uint32_t rounds;

static void
raise_later(struct fake_ctl *f)
{
	if (__atomic_add_fetch(&rounds, 1, __ATOMIC_SEQ_CST) == 10)
		raise_event(awaited->number, SOFTHCA_CM_ROUTE_RESOLVED);
}

static void
manual(void **state)
{
	struct softhca_cm_event e;

	awaited = new_id(NULL);
	rounds = 0;
	fake->on_progress = raise_later;
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_ptr_equal(e.id, awaited);
	assert_true(rounds >= 10);
	nonblocking(channel);
	assert_int_equal(softhca_cm_get_event(channel, &e), -EAGAIN);
}

/* ---- the end of the device ---- */

static unsigned int
count_removals(struct softhca_cm_channel *c, int expected)
{
	struct softhca_cm_id *told[8];
	struct softhca_cm_event e;
	unsigned int n = 0;
	int err;

	while ((err = softhca_cm_get_event(c, &e)) == 0) {
		assert_int_equal(e.type, SOFTHCA_CM_DEVICE_REMOVAL);
		for (unsigned int i = 0; i < n; i++)
			assert_ptr_not_equal(told[i], e.id);
		assert_true(n < 8);
		told[n++] = e.id;
	}
	assert_int_equal(err, expected);
	assert_int_equal(softhca_cm_get_event(c, &e), expected);
	return n;
}

/* The daemon lives and tells of some ids: each is told once, and events before it come before. */
static void
device_dies(void **state)
{
	struct softhca_cm_channel *second = softhca_cm_create_channel(ctx);
	struct softhca_cm_id *id[4];
	struct softhca_cm_event e;

	for (unsigned int i = 0; i < 4; i++)
		id[i] = new_id(NULL);
	assert_int_equal(softhca_cm_migrate(id[3], second), 0);
	raise_event(id[0]->number, SOFTHCA_CM_DEVICE_REMOVAL);
	raise_event(id[1]->number, SOFTHCA_CM_DISCONNECTED);
	raise_event(id[1]->number, SOFTHCA_CM_DEVICE_REMOVAL);
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_int_equal(e.type, SOFTHCA_CM_DEVICE_REMOVAL);
	assert_ptr_equal(e.id, id[0]);
	assert_int_equal(softhca_cm_get_event(channel, &e), 0);
	assert_int_equal(e.type, SOFTHCA_CM_DISCONNECTED);
	assert_ptr_equal(e.id, id[1]);
	assert_int_equal(count_removals(channel, -EIO), 2);
	assert_non_null(strstr(softhca_last_error(ctx), "the device is dead"));
	assert_int_equal(count_removals(second, -EIO), 1);
	/* one that the daemon tells late is told already */
	raise_event(id[2]->number, SOFTHCA_CM_DEVICE_REMOVAL);
	assert_int_equal(count_removals(channel, -EIO), 0);
	assert_int_equal(softhca_cm_destroy_channel(second), 0);
}

/* The daemon is gone: it answers nothing, and its end of the pipe is closed. */
static void
daemon_dies(void **state)
{
	struct softhca_cm_id *id = new_id(NULL);

	new_id(NULL);
	raise_event(id->number, SOFTHCA_CM_ESTABLISHED);
	close(fake->channel_writes[1]);
	fake_cm.fail = -EIO;
	assert_int_equal(count_removals(channel, -EIO), 2);
	/* the id is destroyed without an answer of the daemon */
	assert_int_equal(softhca_cm_destroy_id(id), 0);
	fake->channel_writes[1] = dup(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contents, setup, teardown),
		cmocka_unit_test_setup_teardown(many_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(requests, setup, teardown),
		cmocka_unit_test_setup_teardown(migrated, setup, teardown),
		cmocka_unit_test_setup_teardown(migrated_to_other_context, setup, teardown),
		cmocka_unit_test_setup_teardown(several_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(signals, setup, teardown),
		cmocka_unit_test_setup_teardown(context_is_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(manual, setup_manual, teardown),
		cmocka_unit_test_setup_teardown(device_dies, setup, teardown),
		cmocka_unit_test_setup_teardown(daemon_dies, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
