/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection management of the library without memory: each allocation fails once. The call says
 * so, the daemon keeps no object of the call, and the ids that exist get their events.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake_cm.h"

#define IDS 80u /* more than the buckets that a context begins with */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static struct fake_ctl *fake;
static struct softhca_context *ctx;
static uint32_t to_fail; /* allocations until one fails; 0: all succeed */
static bool failed;

void *
__wrap_calloc(size_t n, size_t size)
{
	if (to_fail == 0 || --to_fail != 0)
		return __real_calloc(n, size);
	failed = true;
	return NULL;
}

/* A call without its result: it was refused for want of memory. */
static void
assert_refused(void)
{
	assert_true(failed);
	assert_int_equal(errno, ENOMEM);
	assert_non_null(strstr(softhca_last_error(ctx), "no memory"));
	failed = false;
}

static struct softhca_cm_channel *
make_channel(void)
{
	struct softhca_cm_channel *channel = softhca_cm_create_channel(ctx);

	if (channel == NULL) {
		assert_refused();
		assert_int_equal(fake->objects, 0);
		channel = softhca_cm_create_channel(ctx);
	}
	assert_non_null(channel);
	assert_return_code(fcntl(channel->fd, F_SETFL, O_NONBLOCK), errno);
	return channel;
}

static struct softhca_cm_id *
make_id(struct softhca_cm_channel *channel)
{
	uint32_t ids = fake_cm.ids;
	struct softhca_cm_id *id =
		softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);

	if (id == NULL) {
		assert_refused();
		assert_int_equal(fake_cm.ids, ids);
		id = softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);
	}
	assert_non_null(id);
	return id;
}

/* An event of the id comes. */
static void
assert_reached(struct softhca_cm_channel *channel, const struct softhca_cm_id *id)
{
	const struct hca_ctl_cm_event raised = {.type = HCA_CTL_CM_EV_ESTABLISHED,
						.id = id->number};
	struct softhca_cm_event event;

	fake_cm_raise(fake, 1, &raised);
	assert_int_equal(softhca_cm_get_event(channel, &event), 0);
	assert_int_equal(event.type, SOFTHCA_CM_ESTABLISHED);
	assert_ptr_equal(event.id, id);
}

/* A request, whose id may have no memory: it is destroyed. */
static void
take_request(struct softhca_cm_channel *channel, const struct softhca_cm_id *listener)
{
	const struct hca_ctl_cm_event raised = {.type = HCA_CTL_CM_EV_CONNECT_REQUEST,
						.id = fake_cm_new_id(),
						.listener = listener->number};
	struct softhca_cm_event event;
	uint32_t ids = fake_cm.ids;
	int err;

	fake_cm_raise(fake, 1, &raised);
	err = softhca_cm_get_event(channel, &event);
	if (err == 0) {
		assert_ptr_equal(event.listener, listener);
		assert_reached(channel, event.id);
		return;
	}
	assert_int_equal(err, -ENOMEM);
	assert_refused();
	assert_int_equal(fake_cm.ids, ids - 1);
	assert_int_equal(softhca_cm_get_event(channel, &event), -EAGAIN);
}

/* True: an allocation has failed. */
static bool
scenario(uint32_t n)
{
	struct softhca_cm_channel *channel;
	struct softhca_cm_id *id[IDS];
	bool reached;

	fake = fake_open(&ctx, false);
	fake_cm_begin(fake);
	failed = false;
	to_fail = n;
	channel = make_channel();
	for (uint32_t i = 0; i < IDS; i++)
		id[i] = make_id(channel);
	for (uint32_t i = 0; i < IDS; i++)
		take_request(channel, id[i]);
	reached = to_fail == 0;
	to_fail = 0;
	for (uint32_t i = 0; i < IDS; i++)
		assert_reached(channel, id[i]);
	assert_int_equal(softhca_cm_destroy_channel(channel), 0);
	assert_int_equal(fake_cm.ids, 0);
	fake_close(fake, ctx);
	return reached;
}

static void
test_scenario(void **state)
{
	uint32_t n = 1;

	while (scenario(n))
		n++;
	/* of the context, its buckets, the channel; ids and requests; more buckets twice */
	assert_in_range(n - 1, 3 + 2 * IDS + 1, 3 + 2 * IDS + 4);
	print_message("%u allocations failed\n", n - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenario),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
