/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Events that a worker forwards itself, those it leaves to the thread, and how the thread is woken.
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver_types.h"
#include "fake_hw.h"

#define PAGE 4096u
#define CHANNELS 9u /* one more than a worker writes to in a poll */

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static uint8_t *memory;
static uint32_t channel[CHANNELS], cqn[CHANNELS];
static int fd[CHANNELS], async_fd;
static unsigned int urged, writes;
static uint32_t tag; /* of the next CQ */

/* Replaces that of the C library */
ssize_t
write(int file, const void *bytes, size_t n)
{
	writes++;
	return syscall(SYS_write, file, bytes, n);
}

static void
urge(void *arg)
{
	assert_ptr_equal(arg, &urged);
	urged++;
}

static uint32_t
make_cq(uint32_t on)
{
	struct hca_ctl_cq cq = {.addr = (uintptr_t)memory,
				.log_size = 4,
				.channel = on,
				.tag = tag};
	uint32_t number;

	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &number, NULL), 0);
	return number;
}

static int
setup(void **state)
{
	struct hca_driver_config config = {.seed = 1,
					   .timeout_ms = 50,
					   .urge = urge,
					   .urge_arg = &urged};

	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_client_open(drv, 0, &client), 0);
	memory = aligned_alloc(PAGE, PAGE);
	assert_int_equal(hca_client_attach(client, (uintptr_t)memory, PAGE), 0);
	assert_int_equal(call_async_fd(client, &async_fd), 0);
	fcntl(async_fd, F_SETFL, O_NONBLOCK);
	for (unsigned int i = 0; i < CHANNELS; i++) {
		assert_int_equal(call_create_channel(client, &channel[i], &fd[i]), 0);
		fcntl(fd[i], F_SETFL, O_NONBLOCK);
		cqn[i] = make_cq(channel[i]);
	}
	urged = writes = tag = 0;
	return 0;
}

static int
teardown(void **state)
{
	hca_driver_destroy(drv);
	for (unsigned int i = 0; i < CHANNELS; i++)
		close(fd[i]);
	close(async_fd);
	free(memory);
	fake_hw_destroy(fake);
	return 0;
}

static bool
got_event(int file, uint32_t type, uint32_t object)
{
	struct hca_ctl_event event;

	return read(file, &event, sizeof(event)) == (ssize_t)sizeof(event) && event.type == type &&
	       event.object == object;
}

static void
few_are_forwarded(void **state)
{
	for (unsigned int i = 0; i < CHANNELS - 1; i++)
		fake_event(fake, 0, HCA_EVENT_COMP, cqn[i]);
	assert_true(hca_driver_poll_few(drv));
	for (unsigned int i = 0; i < CHANNELS - 1; i++)
		assert_true(got_event(fd[i], HCA_EVENT_COMP, cqn[i]));
	assert_int_equal(hca_driver_poll(drv), 0);
	assert_int_equal(urged, 0);
}

static void
many_are_left(void **state)
{
	for (unsigned int i = 0; i < CHANNELS; i++)
		fake_event(fake, 0, HCA_EVENT_COMP, cqn[i]);
	assert_false(hca_driver_poll_few(drv));
	assert_int_equal(writes, 0);
	assert_int_equal(hca_driver_poll_wait(drv), CHANNELS);
	for (unsigned int i = 0; i < CHANNELS; i++)
		assert_true(got_event(fd[i], HCA_EVENT_COMP, cqn[i]));
}

/* An event for all clients takes a write for each, so the thread does it. */
static void
what_concerns_all_is_left(void **state)
{
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[0]);
	fake_event(fake, 1, HCA_EVENT_PORT_CHANGE, 1);
	assert_false(hca_driver_poll_few(drv));
	assert_int_equal(writes, 0);
	assert_int_equal(hca_driver_poll_wait(drv), 2);
	assert_true(got_event(async_fd, HCA_EVENT_PORT_CHANGE, 1));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, cqn[0]));
}

static uint32_t
port_state(void)
{
	struct hca_ctl_port port;

	hca_driver_query_port(drv, &port);
	return port.state;
}

static void
tell_port(uint32_t subtype)
{
	fake_event_sub(fake, 0, HCA_EVENT_PORT_CHANGE, 1, (uint8_t)subtype);
	assert_int_equal(hca_driver_poll_wait(drv), 1);
}

/* The port's state may have been queried before its link came up. */
static void
the_device_says_the_state(void **state)
{
	const struct hca_ctl_port seen_down = {.state = HCA_PORT_DOWN, .active_mtu = 5};

	assert_int_equal(hca_driver_set_port(drv, &seen_down), 0);
	assert_int_equal(port_state(), HCA_PORT_DOWN);
	tell_port(HCA_PORT_ACTIVE);
	assert_int_equal(port_state(), HCA_PORT_ACTIVE);
	assert_int_equal(hca_driver_set_port(drv, &seen_down), 0);
	assert_int_equal(port_state(), HCA_PORT_ACTIVE);
	tell_port(HCA_PORT_DOWN);
	assert_int_equal(port_state(), HCA_PORT_DOWN);
}

static void *
few_elsewhere(void *arg)
{
	*(bool *)arg = hca_driver_poll_few(drv);
	return NULL;
}

/* A worker does not wait for the lock. */
static void
lock_is_held(void **state)
{
	pthread_t thread;
	bool done = true;

	fake_event(fake, 0, HCA_EVENT_COMP, cqn[0]);
	pthread_mutex_lock(&drv->event_lock);
	assert_int_equal(pthread_create(&thread, NULL, few_elsewhere, &done), 0);
	pthread_join(thread, NULL);
	pthread_mutex_unlock(&drv->event_lock);
	assert_false(done);
	assert_true(hca_driver_poll_few(drv));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, cqn[0]));
}

/* One write per channel, in the order of the events. */
static void
one_write_for_a_channel(void **state)
{
	uint32_t other[3];

	for (unsigned int i = 0; i < 3; i++)
		other[i] = make_cq(channel[0]);
	writes = 0;
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[0]);
	fake_event(fake, 0, HCA_EVENT_COMP, other[2]);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[1]);
	fake_event(fake, 0, HCA_EVENT_COMP, other[0]);
	fake_event(fake, 0, HCA_EVENT_COMP, other[1]);
	assert_true(hca_driver_poll_few(drv));
	assert_int_equal(writes, 2);
	assert_true(got_event(fd[0], HCA_EVENT_COMP, cqn[0]));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, other[2]));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, other[0]));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, other[1]));
	assert_true(got_event(fd[1], HCA_EVENT_COMP, cqn[1]));
}

/* Room for two of three events: two are written, one is delayed, and the thread is woken. */
static void
part_finds_room(void **state)
{
	uint32_t room = PAGE / sizeof(struct hca_ctl_event), other = make_cq(channel[0]),
		 third = make_cq(channel[0]);

	fcntl(fd[0], F_SETPIPE_SZ, PAGE);
	for (uint32_t i = 0; i < room - 2; i++) {
		fake_event(fake, 0, HCA_EVENT_COMP, cqn[0]);
		assert_true(hca_driver_poll_few(drv));
	}
	fake_event(fake, 0, HCA_EVENT_COMP, other);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[0]);
	fake_event(fake, 0, HCA_EVENT_COMP, third);
	assert_true(hca_driver_poll_few(drv));
	assert_int_equal(hca_driver_owed(drv), 1);
	assert_true(urged > 0);
	for (uint32_t i = 0; i < room - 2; i++)
		assert_true(got_event(fd[0], HCA_EVENT_COMP, cqn[0]));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, other));
	assert_true(got_event(fd[0], HCA_EVENT_COMP, cqn[0]));
	assert_false(got_event(fd[0], HCA_EVENT_COMP, third));
	hca_driver_poll_wait(drv);
	assert_true(got_event(fd[0], HCA_EVENT_COMP, third));
	assert_int_equal(hca_driver_owed(drv), 0);
}

/* The events of a CQ have its tag, also the one that found no room at first. */
static void
tagged(void **state)
{
	struct hca_ctl_event event;
	uint32_t other;

	tag = 0x12345678;
	other = make_cq(channel[0]);
	fcntl(fd[0], F_SETPIPE_SZ, PAGE);
	for (uint32_t i = 0; i <= PAGE / sizeof(event); i++) {
		fake_event(fake, 0, HCA_EVENT_COMP, other);
		assert_int_equal(hca_driver_poll_wait(drv), 1);
	}
	for (uint32_t i = 0; i < PAGE / sizeof(event); i++)
		assert_int_equal(read(fd[0], &event, sizeof(event)), sizeof(event));
	hca_driver_poll_wait(drv);
	assert_int_equal(read(fd[0], &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.object, other);
	assert_int_equal(event.tag, tag);
	fake_event(fake, 1, HCA_EVENT_CQ_ERROR, other);
	hca_driver_poll_wait(drv);
	assert_int_equal(read(async_fd, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.tag, tag);
}

/* The events of a freed CQ are removed from the pipes; the others stay, also in a full pipe. */
static void
freed_cq(void **state)
{
	uint32_t room = PAGE / sizeof(struct hca_ctl_event), other = make_cq(channel[0]);
	struct pollfd ready = {.fd = fd[1], .events = POLLIN};

	fcntl(fd[0], F_SETPIPE_SZ, PAGE);
	for (uint32_t i = 0; i < room; i++) {
		fake_event(fake, 0, HCA_EVENT_COMP, i % 2 == 0 ? cqn[0] : other);
		assert_int_equal(hca_driver_poll_wait(drv), 1);
	}
	fake_event(fake, 1, HCA_EVENT_CQ_ERROR, cqn[0]);
	fake_event(fake, 1, HCA_EVENT_CQ_ERROR, other);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[1]);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CQ, cqn[0]), 0);
	for (uint32_t i = 0; i < room / 2; i++)
		assert_true(got_event(fd[0], HCA_EVENT_COMP, other));
	assert_false(got_event(fd[0], HCA_EVENT_COMP, cqn[0]));
	assert_true(got_event(async_fd, HCA_EVENT_CQ_ERROR, other));
	assert_false(got_event(async_fd, HCA_EVENT_CQ_ERROR, cqn[0]));
	assert_int_equal(poll(&ready, 1, 0), 1);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CQ, cqn[1]), 0);
	assert_int_equal(poll(&ready, 1, 0), 0);
}

static uint32_t
make_qp(uint32_t pdn)
{
	struct hca_ctl_qp qp = {
		.sq_addr = (uintptr_t)memory,
		.rq_addr = (uintptr_t)memory,
		.pdn = pdn,
		.send_cqn = cqn[0],
		.recv_cqn = cqn[0],
		.log_sq = 4,
		.log_sq_stride = 6,
		.log_rq = 3,
		.log_rq_stride = 7,
	};
	uint32_t qpn;

	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_QP, &qp, &qpn, NULL), 0);
	return qpn;
}

/* So are those of freed QPs and SRQs. */
static void
freed_qp(void **state)
{
	struct hca_ctl_srq srq = {.addr = (uintptr_t)memory,
				  .log_size = 4,
				  .log_stride = 6,
				  .max_sge = 1};
	uint32_t qpn[2], srqn;

	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &srq.pdn, NULL), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_SRQ, &srq, &srqn, NULL), 0);
	qpn[0] = make_qp(srq.pdn);
	qpn[1] = make_qp(srq.pdn);
	fake_event(fake, 1, HCA_EVENT_WQ_CATAS, qpn[0]);
	fake_event(fake, 1, HCA_EVENT_SRQ_LIMIT, srqn);
	fake_event(fake, 1, HCA_EVENT_COMM_EST, qpn[1]);
	fake_event(fake, 1, HCA_EVENT_CQ_ERROR, cqn[0]);
	fake_event(fake, 1, HCA_EVENT_COMM_EST, qpn[0]);
	assert_int_equal(hca_driver_poll_wait(drv), 5);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn[0]), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_SRQ, srqn), 0);
	assert_true(got_event(async_fd, HCA_EVENT_COMM_EST, qpn[1]));
	assert_true(got_event(async_fd, HCA_EVENT_CQ_ERROR, cqn[0]));
	assert_false(got_event(async_fd, HCA_EVENT_COMM_EST, qpn[0]));
}

/* More events in one poll than are collected at a time. */
static void
storm(void **state)
{
	for (unsigned int round = 0; round < 200; round++)
		fake_event(fake, 0, HCA_EVENT_COMP, cqn[round % CHANNELS]);
	assert_int_equal(hca_driver_poll_wait(drv), 200);
	for (unsigned int round = 0; round < 200; round++)
		assert_true(got_event(fd[round % CHANNELS], HCA_EVENT_COMP, cqn[round % CHANNELS]));
}

/* A device that stops answering: the call that finds out notifies the clients, without a poll. */
static void
death_is_told(void **state)
{
	uint32_t number;
	struct hca_ctl_cq cq = {.addr = (uintptr_t)memory, .log_size = 4, .channel = channel[0]};

	fake->mute = true;
	assert_int_not_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &number, NULL), 0);
	assert_true(hca_driver_dead(drv));
	assert_true(got_event(async_fd, HCA_EVENT_LOCAL_CATAS, 1));
	hca_driver_poll_wait(drv);
	assert_false(got_event(async_fd, HCA_EVENT_LOCAL_CATAS, 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_are_forwarded, setup, teardown),
		cmocka_unit_test_setup_teardown(many_are_left, setup, teardown),
		cmocka_unit_test_setup_teardown(what_concerns_all_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(the_device_says_the_state, setup, teardown),
		cmocka_unit_test_setup_teardown(lock_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(one_write_for_a_channel, setup, teardown),
		cmocka_unit_test_setup_teardown(part_finds_room, setup, teardown),
		cmocka_unit_test_setup_teardown(tagged, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_cq, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_qp, setup, teardown),
		cmocka_unit_test_setup_teardown(storm, setup, teardown),
		cmocka_unit_test_setup_teardown(death_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
