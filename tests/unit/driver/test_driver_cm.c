/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection management of the host, replaced by the test: calls of the driver and results.
 */

#include <fcntl.h>
#include <unistd.h>

#include "ub_clients.h"

static struct {
	struct hca_driver_cm_caller caller;
	enum hca_ctl_op op;
	uint32_t calls, gids, forgotten, last_index, left_by, left;
	struct hca_ctl_gid gid;
	int answer;
} seen;

static int
cm_call(void *arg, const struct hca_driver_cm_caller *caller, enum hca_ctl_op op,
	const void *request, void *answer, const char **why)
{
	assert_ptr_equal(arg, &seen);
	seen.caller = *caller;
	seen.op = op;
	seen.calls++;
	*why = "it says no";
	if (op == HCA_CTL_CM_CREATE)
		*(uint32_t *)answer = 4711;
	return seen.answer;
}

static void
cm_forget(void *arg, uint32_t owner)
{
	seen.forgotten = owner;
}

static void
cm_channel(void *arg, uint32_t owner, uint32_t channel)
{
	seen.left_by = owner;
	seen.left = channel;
}

static void
cm_gid(void *arg, uint32_t index, const struct hca_ctl_gid *gid)
{
	seen.gids++;
	seen.last_index = index;
	if (gid->valid != 0 || index == 0)
		seen.gid = *gid;
}

static const char *
cm_counter(void *arg, uint32_t i, uint64_t *value)
{
	*value = 7;
	return i == 0 ? "of_the_test" : NULL;
}

static const struct hca_driver_cm cm = {cm_call, cm_forget, cm_channel, cm_gid, cm_counter};

static void
begin(void)
{
	memset(&seen, 0, sizeof(seen));
	hca_driver_set_cm(drv, &cm, &seen);
}

static int
create(uint32_t channel, uint32_t *id)
{
	const struct hca_ctl_cm_create request = {.channel = channel,
						  .space = HCA_CTL_CM_SPACE_TCP};

	return hca_client_call(client[1], HCA_CTL_CM_CREATE, &request, id, NULL);
}

static uint32_t
new_channel(unsigned int i, int *fd)
{
	struct hca_ctl_extra extra = {0};
	uint32_t channel = 0;

	assert_int_equal(hca_client_call(client[i], HCA_CTL_CREATE_CHANNEL, NULL, &channel, &extra),
			 0);
	*fd = extra.fds[0];
	fcntl(*fd, F_SETFL, O_NONBLOCK);
	return channel;
}

static void
absent(void **state)
{
	uint32_t id = 1;
	uint64_t value;

	assert_int_equal(call_drop(client[1], HCA_CTL_CM_DESTROY, id), -EOPNOTSUPP);
	assert_non_null(strstr(hca_driver_reason(), "no connection manager"));
	assert_null(hca_driver_cm_counter(drv, 0, &value));
	begin();
	assert_int_equal(call_drop(client[1], HCA_CTL_CM_DESTROY, id), 0);
	hca_driver_set_cm(drv, NULL, NULL);
	assert_int_equal(call_drop(client[1], HCA_CTL_CM_DESTROY, id), -EOPNOTSUPP);
	assert_int_equal(seen.calls, 1);
}

/* The caller is named; the answer, and the words of a refusal, go back. */
static void
operations(void **state)
{
	uint32_t channel, id = 0;
	uint64_t value = 0;
	int fd;

	begin();
	channel = new_channel(1, &fd);
	assert_int_equal(create(channel, &id), 0);
	assert_int_equal(id, 4711);
	assert_int_equal(seen.op, HCA_CTL_CM_CREATE);
	assert_int_equal(seen.caller.owner, client[1]->uar);
	assert_int_equal(seen.caller.user, 1);
	seen.answer = -EADDRINUSE;
	assert_int_equal(call_drop(client[0], HCA_CTL_CM_DISCONNECT, id), -EADDRINUSE);
	assert_string_equal(hca_driver_reason(), "it says no");
	assert_int_equal(seen.caller.owner, client[0]->uar);
	assert_string_equal(hca_driver_cm_counter(drv, 0, &value), "of_the_test");
	assert_int_equal(value, 7);
	assert_null(hca_driver_cm_counter(drv, 1, &value));
	close(fd);
}

/* Only channels of the client are named: neither the asynchronous one nor one of another. */
static void
channels(void **state)
{
	struct hca_ctl_cm_move move = {.id = 1};
	uint32_t id, strange;
	int fd;

	begin();
	strange = new_channel(0, &fd);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t bad[] = {0, strange, UINT32_MAX};

		move.channel = bad[i];
		assert_int_equal(create(bad[i], &id), -EINVAL);
		assert_int_equal(hca_client_call(client[1], HCA_CTL_CM_MOVE, &move, NULL, NULL),
				 -EINVAL);
	}
	assert_int_equal(seen.calls, 0);
	close(fd);
}

static bool
has_record(int fd, uint32_t channel)
{
	struct hca_ctl_event event;
	ssize_t n = read(fd, &event, sizeof(event));

	if (n < 0)
		return false;
	assert_int_equal(n, sizeof(event));
	assert_int_equal(event.type, HCA_CTL_EVENT_CM);
	assert_int_equal(event.object, channel);
	return true;
}

/* One record in the pipe of that channel of that client; none when it has gone. */
static void
events(void **state)
{
	int fd, other;
	uint32_t channel = new_channel(1, &fd), second = new_channel(1, &other);

	begin();
	hca_driver_cm_event(drv, client[1]->uar, channel);
	assert_true(has_record(fd, channel));
	assert_false(has_record(fd, channel));
	assert_false(has_record(other, second));
	hca_driver_cm_event(drv, client[0]->uar, channel);
	assert_false(has_record(fd, channel));
	/* a number of no channel, then the channel: its ids end with it */
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_CHANNEL, 99), -EINVAL);
	assert_int_equal(seen.left, 0);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_CHANNEL, channel), 0);
	assert_int_equal(seen.left, channel);
	assert_int_equal(seen.left_by, client[1]->uar);
	hca_driver_cm_event(drv, client[1]->uar, channel);
	hca_driver_cm_event(drv, client[1]->uar, UINT32_MAX);
	hca_driver_cm_event(drv, 12345, second);
	assert_false(has_record(other, second));
	close(fd);
	close(other);
}

/* A full pipe does not block the driver; the records in it are enough to wake the reader. */
static void
full_pipe(void **state)
{
	int fd;
	uint32_t channel = new_channel(1, &fd);
	unsigned int n = 0;

	begin();
	for (unsigned int i = 0; i < 100000; i++)
		hca_driver_cm_event(drv, client[1]->uar, channel);
	while (has_record(fd, channel))
		n++;
	assert_in_range(n, 1, 99999);
	hca_driver_cm_event(drv, client[1]->uar, channel);
	assert_true(has_record(fd, channel));
	close(fd);
}

/* The whole table at once, then each change. */
static void
addresses(void **state)
{
	static const uint8_t second[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
	uint32_t all;

	begin();
	all = seen.gids;
	assert_int_equal(all, hca_driver_gid_entries(drv));
	assert_int_equal(seen.gid.gid[15], 1);
	assert_int_equal(hca_driver_set_gid(drv, 3, second, (const uint8_t *)"\2\0\0\0\0\1", 5), 0);
	assert_int_equal(seen.gids, all + 1);
	assert_int_equal(seen.last_index, 3);
	assert_memory_equal(seen.gid.gid, second, sizeof(second));
	assert_int_equal(seen.gid.vlan_id, 5);
	assert_int_equal(hca_driver_clear_gid(drv, 3), 0);
	assert_int_equal(seen.gids, all + 2);
	assert_int_equal(seen.last_index, 3);
}

static void
clients_end(void **state)
{
	uint32_t uar = client[1]->uar;

	begin();
	hca_client_close(client[1]);
	assert_int_equal(seen.forgotten, uar);
	open_client(1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(absent),    T(operations), T(channels),    T(events),
		T(full_pipe), T(addresses),  T(clients_end),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
