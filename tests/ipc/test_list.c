/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The list of devices: those of daemons that live, with GUID and index, without a connection. Files
 * that daemons have left, or that others have put there, are not in it and do not delay it.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"

#define SOON_NS 500000000ull
#define TRIES 20u

static struct rig rig;
static char folder[RIG_PATH_MAX];

static void
begin(void)
{
	rig_start(&rig, NULL);
	strcpy(folder, rig.path[0]);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(setenv("SOFTHCA_DIRECTORY", folder, 1), 0);
}

static int
end(void **state)
{
	unsetenv("SOFTHCA_DIRECTORY");
	return rig_tidy(state);
}

/* The list, which must have n devices and come soon, at least once: this process may lack a CPU. */
static struct softhca_device **
list_of(int n)
{
	for (unsigned int tries = 0; tries < TRIES; tries++) {
		uint64_t before = rig_now_ns();
		struct softhca_device **list;
		int found = -1;

		list = softhca_get_device_list(&found);
		assert_non_null(list);
		assert_int_equal(found, n);
		assert_null(list[n]);
		if (rig_now_ns() - before < SOON_NS)
			return list;
		softhca_free_device_list(list);
	}
	fail_msg("the list takes more than %llu ms", SOON_NS / 1000000);
	return NULL;
}

static uint64_t
guid_of(const char *name)
{
	struct softhca_device_attr attr;
	struct softhca_context *ctx;

	assert_int_equal(softhca_open(name, &ctx), 0);
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_int_equal(softhca_close(ctx), 0);
	return attr.node_guid;
}

static void
test_living(void **state)
{
	int64_t clients;
	struct softhca_device **list;

	begin();
	clients = rig_ask(&rig, "counters", 0, "clients_accepted");
	list = list_of(2);
	assert_string_equal(softhca_get_device_name(list[0]), "a");
	assert_string_equal(softhca_get_device_name(list[1]), "b");
	assert_int_equal(rig_ask(&rig, "counters", 0, "clients_accepted"), clients);
	for (int i = 0; i < 2; i++) {
		assert_true(softhca_get_device_guid(list[i]) != 0);
		assert_true(softhca_get_device_guid(list[i]) == guid_of(rig.path[i]));
	}
	assert_int_not_equal(softhca_get_device_index(list[0]), softhca_get_device_index(list[1]));
	assert_true(softhca_get_device_index(list[0]) >= 0);
	softhca_free_device_list(list);
	rig_stop(&rig);
	assert_int_equal(access(folder, F_OK), -1); /* nothing was left in it */
}

/* A stopped daemon lives, and need not answer. */
static void
test_stopped(void **state)
{
	struct softhca_device **before, **list;

	begin();
	before = list_of(2);
	rig_suspend(&rig);
	for (int i = 0; i < 1000; i++) {
		list = list_of(2);
		assert_memory_equal(list[1], before[1], sizeof(*list[1]));
		softhca_free_device_list(list);
	}
	assert_int_equal(kill(rig.pid, SIGCONT), 0);
	softhca_free_device_list(before);
	rig_stop(&rig);
}

/* A killed daemon leaves its files, and is not in the list. */
static void
test_killed(void **state)
{
	char left[RIG_PATH_MAX + 16];

	begin();
	snprintf(left, sizeof(left), "%s.device", rig.path[0]);
	assert_int_equal(access(left, R_OK), 0);
	assert_int_equal(kill(rig.pid, SIGKILL), 0);
	assert_int_equal(waitpid(rig.pid, NULL, 0), rig.pid);
	assert_int_equal(access(rig.path[0], F_OK), 0);
	assert_int_equal(access(left, R_OK), 0);
	softhca_free_device_list(list_of(0));
	rig_forget(&rig);
}

static void
make_socket(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s.sock", folder, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static void
describe(const char *name, const char *text)
{
	char path[RIG_PATH_MAX + 32];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.sock.device", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Sockets without description, or with one that is not a living daemon's, between two good ones */
static void
test_other_files(void **state)
{
	static const char *const names[] = {"a1", "a2", "a3", "a4", "a5"};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct softhca_device **list;
	char path[RIG_PATH_MAX + 32], target[RIG_PATH_MAX + 16];
	int fd;

	begin();
	for (int i = 0; i < 5; i++)
		make_socket(names[i]);
	describe("a2", "guid 0200000000000001\n"); /* not locked */
	snprintf(path, sizeof(path), "%s/a3.sock.device", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/a4.sock.device", folder);
	snprintf(target, sizeof(target), "%s.device", rig.path[0]);
	assert_int_equal(symlink(target, path), 0);
	describe("a5", "nothing that is known\n");
	snprintf(path, sizeof(path), "%s/a5.sock.device", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	list = list_of(2);
	assert_string_equal(softhca_get_device_name(list[1]), "b");
	softhca_free_device_list(list);
	close(fd);
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s/%s.sock", folder, names[i]);
		assert_int_equal(unlink(path), 0);
		strcat(path, ".device");
		assert_int_equal(unlink(path), i == 0 ? -1 : 0);
	}
	rig_stop(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_living, end),
		cmocka_unit_test_teardown(test_stopped, end),
		cmocka_unit_test_teardown(test_killed, end),
		cmocka_unit_test_teardown(test_other_files, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
