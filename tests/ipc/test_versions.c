/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Libraries and daemons of different releases: transfers between an old one and this one, both
 * ways, features that the older of two lacks, and messages that a later one may send.
 *
 * "test_ipc_versions old": IPCD is that of an earlier state (tests/old-library).
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <softhca/cm.h>

#include "abi_release.h"
#include "ipc_rig.h"
#include "raw.h"
#include "relay.h"

#define ROUNDS 5u

RIG_OF_ALL(rig)

/* ---- transfers ---- */

static const char *paths[2];

static int
talk_on_b(int sock, void *arg)
{
	return peer_visit(paths[1], sock, arg, ROUNDS);
}

static void
transfer(const char *a, const char *b)
{
	struct peer_config kinds[] = {
		{.type = SOFTHCA_QPT_RC, .events = true},
		{.type = SOFTHCA_QPT_RC, .srq = true},
		{.type = SOFTHCA_QPT_UD, .events = true},
	};

	paths[0] = a;
	paths[1] = b;
	for (unsigned int i = 0; i < 3; i++) {
		int sock;
		pid_t pid = rig_fork(talk_on_b, &kinds[i], &sock);

		assert_int_equal(peer_visit(paths[0], sock, &kinds[i], ROUNDS), 0);
		rig_join(pid);
		close(sock);
	}
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	assert_true(rig_wait_empty(&rig, 1) >= 0);
}

static void
nothing_wrong(const struct relay *relay)
{
	assert_string_equal(relay->seen->wrong, "");
	assert_true(relay->seen->requests > 20 && relay->seen->answers > 20);
}

/*
 * For the library the daemon is of version 7.0, and for the daemon the library is: each of their
 * messages is one that 7.0 takes.
 */
static void
old_on_one_end(void **state)
{
	struct relay relay;

	relay_start(&relay, rig.path[0], RELAY_OLD);
	transfer(relay.addr.sun_path, rig.path[1]);
	nothing_wrong(&relay);
	relay_stop(&relay);
}

static void
lacks_it(const char *path)
{
	struct softhca_context *ctx;
	char release[32];

	assert_int_equal(softhca_open(path, &ctx), 0);
	assert_int_equal(softhca_query_release(ctx, release, sizeof(release)), -EOPNOTSUPP);
	assert_non_null(strstr(softhca_last_error(ctx), "version 7.0"));
	assert_non_null(strstr(softhca_last_error(ctx), "identify"));
	assert_non_null(strstr(softhca_last_error(ctx), "upgrade the daemon"));
	printf("%s\n", softhca_last_error(ctx));
	errno = 0;
	assert_null(softhca_cm_create_channel(ctx));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_non_null(strstr(softhca_last_error(ctx), "upgrade the daemon"));
	assert_int_equal(softhca_close(ctx), 0);
}

static void
old_lacks(void **state)
{
	struct relay relay;

	relay_start(&relay, rig.path[0], RELAY_OLD);
	lacks_it(relay.addr.sun_path);
	assert_string_equal(relay.seen->wrong, "");
	relay_stop(&relay);
}

/* Answers with more members, an answer with fewer, and unknown features. */
static void
later_daemon(void **state)
{
	struct softhca_port_attr port;
	struct softhca_context *ctx;
	struct relay relay;
	char release[32], cut[4];

	relay_start(&relay, rig.path[0], RELAY_LATER);
	transfer(relay.addr.sun_path, rig.path[1]);
	assert_int_equal(softhca_open(relay.addr.sun_path, &ctx), 0);
	assert_int_equal(softhca_query_port(ctx, 1, &port), 0);
	assert_true(port.link_speed == 100000);
	assert_int_equal(softhca_query_release(ctx, release, sizeof(release)), 0);
	assert_string_equal(release, HCA_RELEASE);
	assert_int_equal(softhca_query_release(ctx, cut, sizeof(cut)), 0);
	assert_memory_equal(cut, HCA_RELEASE, sizeof(cut) - 1);
	assert_int_equal(cut[3], '\0');
	assert_int_equal(softhca_close(ctx), 0);
	nothing_wrong(&relay);
	relay_stop(&relay);
}

/* ---- a client that builds its own messages ---- */

static int
greet(struct raw *r, uint16_t version, struct hca_ctl_offer offer)
{
	raw_connect(r, rig.path[0]);
	return raw_greet_as(r, version, offer);
}

/* A later version that supports this one is answered in this one. */
static void
ranges(void **state)
{
	int64_t told = rig_ask(&rig, "differs", 0, "told");
	struct raw r;

	assert_int_equal(greet(&r, HCA_CTL_VERSION + 2, (struct hca_ctl_offer){2, 40, 0xffff}), 0);
	assert_int_equal(r.head.version, HCA_CTL_VERSION);
	assert_int_equal(r.welcome.offer.minor, HCA_CTL_MINOR);
	assert_int_equal(r.welcome.offer.older, HCA_CTL_OLDER);
	assert_int_equal(r.welcome.offer.features, HCA_CTL_FEATURES);
	assert_int_equal(raw_call(&r, HCA_CTL_IDENTIFY, "9.9", 4, -1), 0);
	/* 40 was of its own version; of this one it has these fields */
	assert_int_equal(rig_ask(&rig, "differs", 0, "told"), told);
	raw_close(&r);

	assert_int_equal(greet(&r, HCA_CTL_VERSION + 2, (struct hca_ctl_offer){1, 0, 0}),
			 -EPROTONOSUPPORT);
	assert_int_equal(r.head.version, HCA_CTL_VERSION + 2);
	assert_int_equal(r.head.speaks, HCA_CTL_VERSION);
	raw_close(&r);
}

/* Requests that have more, or fewer, members than here, and operations that are not here. */
static void
later_library(void **state)
{
	uint32_t index[2] = {0};
	int64_t refused = rig_ask(&rig, "counters", 0, "refused_operation");
	int64_t told = rig_ask(&rig, "differs", 0, "told");
	int memfd = memfd_create("versions", 0);
	struct raw r;

	assert_int_equal(greet(&r, HCA_CTL_VERSION, (struct hca_ctl_offer){0, 9, 0}), 0);
	assert_int_equal(raw_call(&r, HCA_CTL_OP_COUNT, index, sizeof(index), memfd), -EOPNOTSUPP);
	assert_non_null(strstr(r.head.reason, "has no operation"));
	assert_non_null(strstr(r.head.reason, HCA_RELEASE));
	assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, index, sizeof(index), -1), 0);
	/* index 0, although the message before had something else there */
	assert_int_equal(raw_call(&r, 0xffff, "\1\1\1\1", 4, -1), -EOPNOTSUPP);
	assert_int_equal(raw_call(&r, HCA_CTL_QUERY_GID, NULL, 0, -1), 0);
	assert_int_equal(raw_call(&r, HCA_CTL_QUERY_GID, index, sizeof(index), -1), 0);
	index[1] = 1;
	assert_int_equal(raw_call(&r, HCA_CTL_QUERY_GID, index, sizeof(index), -1), -EOPNOTSUPP);
	assert_non_null(strstr(r.head.reason, "knows less of query_gid"));
	index[1] = 0;
	assert_int_equal(raw_call(&r, HCA_CTL_QUERY_GID, index, sizeof(index), -1), 0);
	raw_close(&r);
	close(memfd);
	assert_int_equal(rig_ask(&rig, "counters", 0, "refused_operation") - refused, 3);
	/* its version, and the first of its requests */
	assert_int_equal(rig_ask(&rig, "differs", 0, "told") - told, 2);
}

/*
 * For version 7.0 the checks are as strict as before: a message that it would not send ends the
 * session.
 */
static void
old_is_strict(void **state)
{
	const struct hca_ctl_identity me = {HCA_RELEASE};
	const uint32_t index[2] = {0};
	struct raw r;

	raw_open(&r, rig.path[0]);
	assert_int_equal(raw_call(&r, HCA_CTL_IDENTIFY, &me, sizeof(me), -1), -EPIPE);
	raw_close(&r);
	raw_open(&r, rig.path[0]);
	assert_int_equal(raw_call(&r, HCA_CTL_QUERY_GID, index, sizeof(index), -1), -EPIPE);
	raw_close(&r);
}

/* The daemon really is an old one. */
static void
old_daemon(void **state)
{
	transfer(rig.path[0], rig.path[1]);
	lacks_it(rig.path[0]);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest old[] = {cmocka_unit_test_teardown(old_daemon, rig_tidy)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(old_on_one_end, rig_tidy),
		cmocka_unit_test_teardown(old_lacks, rig_tidy),
		cmocka_unit_test_teardown(later_daemon, rig_tidy),
		cmocka_unit_test(ranges),
		cmocka_unit_test(later_library),
		cmocka_unit_test(old_is_strict),
	};

	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && strcmp(argv[1], "old") == 0)
		return cmocka_run_group_tests(old, start, shut_down);
	return cmocka_run_group_tests(tests, start, shut_down);
}
