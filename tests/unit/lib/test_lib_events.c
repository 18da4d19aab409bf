/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion events, while CQs are destroyed. A thread that waits for ever ends the process. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_ctl.h"

#define SECONDS 60

static struct fake_ctl *fake;
static struct softhca_context *ctx;
static struct softhca_comp_channel *channel;
static struct softhca_cq *cq;

static void
make_cq(void)
{
	struct softhca_cq_init_attr attr = {.cqe = 4, .channel = channel};

	cq = softhca_create_cq(ctx, &attr);
	assert_non_null(cq);
}

static void
open_fake(void)
{
	fake = fake_open(&ctx, false);
	channel = softhca_create_comp_channel(ctx);
	assert_non_null(channel);
	make_cq();
}

static int
setup(void **state)
{
	alarm(SECONDS);
	open_fake();
	return 0;
}

static int
teardown(void **state)
{
	alarm(0);
	assert_int_equal(softhca_destroy_cq(cq), 0);
	assert_int_equal(softhca_destroy_comp_channel(channel), 0);
	fake_close(fake, ctx);
	return 0;
}

/* As the driver does */
static void
raise_event(void)
{
	const struct hca_ctl_event event = {
		.type = HCA_EVENT_COMP,
		.object = cq->handle,
		.tag = ((struct lib_cq *)cq)->tag,
	};

	assert_int_equal(write(fake->channel_write, &event, sizeof(event)), sizeof(event));
}

/* An event that was not read does not become one of the next CQ of the same number. */
static void
freed_cq(void **state)
{
	uint32_t number = cq->handle;
	struct softhca_cq *got;

	raise_event();
	assert_int_equal(softhca_destroy_cq(cq), 0);
	fake->next_cqn = number;
	make_cq();
	assert_int_equal(cq->handle, number);
	assert_int_equal(fake->cq.tag, ((struct lib_cq *)cq)->tag);
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(softhca_get_cq_event(channel, &got, NULL), -EAGAIN);
	raise_event();
	assert_int_equal(softhca_get_cq_event(channel, &got, NULL), 0);
	assert_ptr_equal(got, cq);
	softhca_ack_cq_events(cq, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(freed_cq, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
