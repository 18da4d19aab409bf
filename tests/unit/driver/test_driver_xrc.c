/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * XRC domains of files: right to open one, its lifetime, and the fate of target QPs whose creator
 * has gone while others have them open.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi_ctx.h"
#include "driver_types.h"
#include "fake_hw.h"

#define PAGE 4096u
#define CREATE HCA_CTL_XRCD_CREATE
#define NEW HCA_CTL_XRCD_NEW
#define CLIENTS 3u
#define QUOTA 6u
#define PRIVATE (-1)

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client[CLIENTS];
static int async_fd[CLIENTS];
static uint8_t *memory;
static char path[64];
static int file;
static unsigned int paths_closed;

int __real_close(int fd);
int __wrap_close(int fd);

/* A path is the driver's: closing it may take long, so neither lock may be held. */
int
__wrap_close(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_PATH) != 0 && drv != NULL) {
		assert_true(driver_lock_try(&drv->lock));
		assert_int_equal(pthread_mutex_trylock(&drv->event_lock), 0);
		pthread_mutex_unlock(&drv->event_lock);
		driver_lock_give(&drv->lock);
		paths_closed++;
	}
	return __real_close(fd);
}

static void
open_client(unsigned int i, uint32_t user)
{
	const struct hca_client_who who = {.user = user, .privileged = i == 0};

	assert_int_equal(hca_client_open(drv, &who, &client[i]), 0);
	assert_int_equal(hca_client_attach(client[i], (uintptr_t)memory, PAGE), 0);
	assert_int_equal(call_async_fd(client[i], &async_fd[i]), 0);
	fcntl(async_fd[i], F_SETFL, O_NONBLOCK);
}

static void
close_client(unsigned int i)
{
	hca_client_close(client[i]);
	close(async_fd[i]);
	client[i] = NULL;
}

static int
setup(void **state)
{
	struct hca_driver_config config = {.timeout_ms = 50,
					   .quota = {.qps = QUOTA, .xrcds = 3, .channels = 2}};

	fake = fake_hw_create();
	memory = aligned_alloc(PAGE, PAGE);
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		open_client(i, getuid());
	strcpy(path, "/tmp/softhca-xrc-XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0);
	return 0;
}

static void
nothing_is_left(void)
{
	struct hca_driver_usage u;

	hca_driver_usage(drv, &u);
	assert_int_equal(u.xrcds, 0);
	assert_int_equal(u.qps, 0);
	assert_int_equal(u.srqs, 0);
	assert_int_equal(fake->live[LIVE_QP], 0);
}

static int
teardown(void **state)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (client[i] != NULL)
			close_client(i);
	nothing_is_left();
	hca_driver_destroy(drv);
	close(file);
	unlink(path);
	free(memory);
	fake_hw_destroy(fake);
	return 0;
}

static int
open_domain(unsigned int i, int fd, uint32_t flags, uint32_t *number)
{
	struct hca_ctl_extra extra = {.fds = {fd, -1, -1, -1}};

	if (fd == PRIVATE)
		return hca_client_call(client[i], HCA_CTL_ALLOC_XRCD, NULL, number, NULL);
	return hca_client_call(client[i], HCA_CTL_OPEN_XRCD, &flags, number, &extra);
}

static uint32_t
domain(unsigned int i, int fd)
{
	uint32_t number = 0;

	assert_int_equal(open_domain(i, fd, CREATE, &number), 0);
	assert_int_not_equal(number, 0);
	return number;
}

static int
close_domain(unsigned int i, uint32_t number)
{
	return call_drop(client[i], HCA_CTL_DEALLOC_XRCD, number);
}

static uint32_t
target(unsigned int i, uint32_t xrcd)
{
	const struct hca_ctl_qp qp = {.service = HCA_ST_XRC_TGT, .xrcd = xrcd};
	uint32_t qpn;

	assert_int_equal(hca_client_call(client[i], HCA_CTL_CREATE_QP, &qp, &qpn, NULL), 0);
	return qpn;
}

static int
open_target(unsigned int i, uint32_t qpn, uint32_t xrcd)
{
	const struct hca_ctl_open_qp open = {.qpn = qpn, .xrcd = xrcd};

	return hca_client_call(client[i], HCA_CTL_OPEN_QP, &open, NULL, NULL);
}

static int
destroy(unsigned int i, uint32_t qpn)
{
	return call_drop(client[i], HCA_CTL_DESTROY_QP, qpn);
}

static int
to_init(unsigned int i, uint32_t qpn)
{
	const struct hca_ctl_modify m = {.qpn = qpn,
					 .opcode = HCA_CMD_RST2INIT_QPEE,
					 .has_mailbox = 1};

	return hca_client_call(client[i], HCA_CTL_MODIFY_QP, &m, NULL, NULL);
}

/* Asks for the names of its counters only. */
static int
counters(unsigned int i, uint32_t qpn)
{
	const struct hca_ctl_count count = {.of = HCA_CTL_COUNTERS_QP, .number = qpn};
	struct hca_ctl_counters answer;

	return hca_client_call(client[i], HCA_CTL_QUERY_COUNTERS, &count, &answer, NULL);
}

static uint32_t
qps_of(const struct hca_client *c)
{
	struct hca_driver_client_info info[CLIENTS];
	struct hca_ctl_info own;
	unsigned int n = hca_driver_list_clients(drv, 0, info, CLIENTS);

	assert_int_equal(hca_client_call((struct hca_client *)(uintptr_t)c, HCA_CTL_INFO, NULL,
					 &own, NULL),
			 0);
	while (n-- > 0)
		if (info[n].index == own.uar_page)
			return info[n].qps;
	fail();
	return 0;
}

/* ---- files ---- */

static void
flags_are_judged(void **state)
{
	uint32_t number;

	assert_int_equal(open_domain(0, file, 0, &number), -ENOENT);
	assert_int_equal(open_domain(0, file, NEW, &number), -ENOENT);
	assert_int_equal(open_domain(0, file, 4, &number), -EINVAL);
	assert_int_equal(open_domain(0, file, CREATE | NEW, &number), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(open_domain(i, file, CREATE | NEW, &number), -EEXIST);
	assert_int_equal(open_domain(1, file, NEW, &number), 0); /* O_EXCL alone says nothing */
	assert_int_equal(open_domain(2, file, 0, &number), 0);
}

static void
descriptors_are_judged(void **state)
{
	int fd = open(path, O_PATH), zero = open("/dev/zero", O_RDWR), pipes[2];
	uint32_t number;

	assert_int_equal(open_domain(0, 12345, CREATE, &number), -EBADF);
	assert_int_equal(open_domain(0, -7, CREATE, &number), -EBADF);
	assert_int_equal(open_domain(0, fd, CREATE, &number), -EBADF);
	assert_int_equal(open_domain(0, zero, CREATE, &number), -EINVAL);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(open_domain(0, pipes[1], CREATE, &number), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	close(zero);
	close(fd);
	fd = open("/tmp", O_RDONLY | O_DIRECTORY);
	assert_int_equal(open_domain(0, fd, CREATE, &number), -EINVAL);
	close(fd);
}

/* A file is its inode, not its path or its descriptor; a memfd has an inode as well. */
static void
inode_names_it(void **state)
{
	char other[80];
	int fd = open(path, O_RDONLY), mem = memfd_create("xrc", MFD_CLOEXEC);
	uint32_t number = domain(0, file);

	assert_int_equal(domain(1, fd), number);
	close(fd);
	snprintf(other, sizeof(other), "%s-2", path);
	assert_int_equal(link(path, other), 0);
	fd = open(other, O_RDWR);
	assert_int_equal(domain(2, fd), number);
	close(fd);
	unlink(other);
	assert_int_not_equal(domain(2, mem), number);
	assert_int_not_equal(domain(2, PRIVATE), number);
	close(mem);
}

/* The file may go: while the domain lives no other file gets its inode's number. */
static void
inode_is_kept(void **state)
{
	uint32_t first = domain(0, file), number;
	struct stat kept, s;

	assert_int_equal(fstat(file, &kept), 0);
	close(file);
	unlink(path);
	for (unsigned int i = 0; i < 64; i++) {
		file = open(path, O_RDWR | O_CREAT, 0600);
		assert_int_equal(fstat(file, &s), 0);
		assert_true(s.st_ino != kept.st_ino || s.st_dev != kept.st_dev);
		assert_int_equal(open_domain(1, file, 0, &number), -ENOENT);
		close(file);
		unlink(path);
	}
	file = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(close_domain(0, first), 0);
}

/* Its owner and root with any descriptor; others with one for writing. */
static void
rights_are_judged(void **state)
{
	const uid_t owner = getuid() != 0 ? getuid() : 4321;
	int reads = open(path, O_RDONLY), writes = open(path, O_WRONLY);
	uint32_t number;

	assert_int_equal(fchown(file, owner, (gid_t)-1), 0);
	close_client(0);
	open_client(0, owner);
	close_client(1);
	open_client(1, owner + 1);
	close_client(2);
	open_client(2, 0);
	assert_int_equal(open_domain(1, reads, CREATE, &number), -EACCES);
	assert_int_equal(open_domain(0, reads, CREATE, &number), 0);
	assert_int_equal(open_domain(1, reads, CREATE, &number), -EACCES);
	assert_int_equal(open_domain(2, reads, 0, &number), 0);
	assert_int_equal(open_domain(1, writes, 0, &number), 0);
	close(reads);
	close(writes);
}

/* ---- domains ---- */

static void
lives_until_the_last_close(void **state)
{
	uint32_t number = domain(0, file), again;

	assert_int_equal(domain(1, file), number);
	assert_int_equal(domain(1, file), number);
	assert_int_equal(close_domain(0, number), 0);
	assert_int_equal(close_domain(0, number), -EINVAL);
	assert_int_equal(close_domain(1, number), 0);
	assert_int_equal(open_domain(2, file, 0, &again), 0);
	assert_int_equal(again, number);
	close_client(1);
	assert_int_equal(close_domain(2, number), 0);
	assert_int_equal(open_domain(2, file, 0, &again), -ENOENT);
	nothing_is_left();
}

/* Closed by a call, and by the end of the client. */
static void
file_is_closed_without_locks(void **state)
{
	int mem = memfd_create("xrc", MFD_CLOEXEC);
	uint32_t number = domain(0, file);

	domain(0, mem);
	paths_closed = 0;
	assert_int_equal(close_domain(0, number), 0);
	assert_int_equal(paths_closed, 1);
	close_client(0);
	assert_int_equal(paths_closed, 2);
	close(mem);
}

static void
busy(void **state)
{
	uint32_t number = domain(0, file), qpn;

	domain(1, file);
	qpn = target(0, number);
	assert_int_equal(close_domain(1, number), 0); /* it is not client 1 that uses it */
	assert_int_equal(close_domain(0, number), -EBUSY);
	domain(0, file);
	assert_int_equal(close_domain(0, number), 0);
	assert_int_equal(close_domain(0, number), -EBUSY);
	assert_int_equal(destroy(0, qpn), 0);
	assert_int_equal(close_domain(0, number), 0);
}

static void
quota_of_domains(void **state)
{
	int mem = memfd_create("xrc", MFD_CLOEXEC);
	uint32_t number;

	domain(0, PRIVATE);
	domain(0, PRIVATE);
	domain(0, file);
	assert_int_equal(open_domain(0, mem, CREATE, &number), -ENOMEM);
	domain(0, file); /* the same one */
	assert_int_equal(open_domain(1, mem, 0, &number), -ENOENT);
	close(mem);
}

/* Each file keeps a descriptor open, as a channel does: one client does not get all there are. */
static void
quota_of_files(void **state)
{
	int mem[2] = {memfd_create("xrc", MFD_CLOEXEC), memfd_create("xrc", MFD_CLOEXEC)}, end;
	uint32_t first = domain(0, file), number, channel;

	domain(1, mem[0]);
	domain(1, mem[1]);
	domain(0, mem[0]);
	assert_int_equal(open_domain(0, mem[1], CREATE, &number), -ENOMEM); /* of another client */
	assert_int_equal(call_create_channel(client[0], &channel, &end), -ENOMEM);
	domain(0, file); /* the same one */
	domain(0, PRIVATE);
	assert_int_equal(close_domain(0, first), 0);
	assert_int_equal(call_create_channel(client[0], &channel, &end), -ENOMEM);
	assert_int_equal(close_domain(0, first), 0);
	assert_int_equal(call_create_channel(client[0], &channel, &end), 0);
	assert_int_equal(open_domain(0, file, CREATE, &number), -ENOMEM);
	assert_int_equal(call_drop(client[0], HCA_CTL_DESTROY_CHANNEL, channel), 0);
	assert_int_equal(open_domain(0, file, CREATE, &number), 0);
	close(end);
	close(mem[0]);
	close(mem[1]);
}

/* ---- target QPs ---- */

/* In the device they are no client's: one that ends takes only its own objects along. */
static void
belongs_to_no_client(void **state)
{
	uint32_t shared = target(0, domain(0, file)), own = target(0, domain(0, PRIVATE));
	const struct hca_qpc *q;
	struct hca_ctl_info info;

	assert_int_equal(hca_client_call(client[0], HCA_CTL_INFO, NULL, &info, NULL), 0);
	assert_int_equal(to_init(0, shared), 0);
	q = (const void *)fake_last(fake, HCA_CMD_RST2INIT_QPEE)->mailbox;
	assert_int_equal(hca_be32_to_cpu(q->usr_page), 0);
	assert_int_equal(HCA_PD_DOMAIN(hca_be32_to_cpu(q->pd)), 0);
	assert_int_equal(hca_be32_to_cpu(q->flags) & HCA_QPC_PRIVILEGED, 0);
	assert_int_equal(to_init(0, own), 0);
	q = (const void *)fake_last(fake, HCA_CMD_RST2INIT_QPEE)->mailbox;
	assert_int_equal(hca_be32_to_cpu(q->usr_page), info.uar_page);
	assert_true(hca_be32_to_cpu(q->flags) & HCA_QPC_PRIVILEGED);
}

static void
opened_by_another(void **state)
{
	uint32_t number = domain(0, file), qpn = target(0, number);

	assert_int_equal(open_target(1, qpn, number), -EINVAL); /* not in the domain */
	assert_int_equal(to_init(1, qpn), -EINVAL);
	assert_int_equal(counters(1, qpn), -EINVAL);
	domain(1, file);
	assert_int_equal(open_target(1, qpn ^ 0x1000, number), -EINVAL);
	assert_int_equal(open_target(1, qpn, domain(1, PRIVATE)), -EINVAL);
	assert_int_equal(open_target(1, qpn, number), 0);
	assert_int_equal(to_init(1, qpn), 0);
	assert_int_equal(counters(1, qpn), 0);
	assert_int_equal(close_domain(1, number), -EBUSY);
	/* the creator keeps the QP that this client closes */
	assert_int_equal(destroy(1, qpn), 0);
	assert_int_equal(destroy(1, qpn), -EINVAL);
	assert_int_equal(fake->live[LIVE_QP], 1);
	assert_int_equal(close_domain(1, number), 0);
	assert_int_equal(destroy(0, qpn), 0);
	assert_int_equal(fake->live[LIVE_QP], 0);
}

/* A client that has it more than once closes it as often, and pays for it once. */
static void
opened_again(void **state)
{
	uint32_t number = domain(0, file), qpn = target(0, number);

	domain(1, file);
	assert_int_equal(to_init(0, qpn), 0);
	assert_int_equal(open_target(0, qpn, number), 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(open_target(1, qpn, number), 0);
	assert_int_equal(qps_of(client[0]), 1);
	assert_int_equal(qps_of(client[1]), 1);
	assert_int_equal(destroy(1, qpn), 0);
	/* the owner gives it up: the next one has the two that are left */
	assert_int_equal(destroy(0, qpn), 0);
	assert_int_equal(destroy(0, qpn), 0);
	assert_int_equal(destroy(0, qpn), -EINVAL);
	assert_int_equal(fake->live[LIVE_QP], 1);
	assert_int_equal(destroy(1, qpn), 0);
	assert_int_equal(fake->live[LIVE_QP], 1);
	assert_int_equal(destroy(1, qpn), 0);
	assert_int_equal(destroy(1, qpn), -EINVAL);
	assert_int_equal(fake->live[LIVE_QP], 0);
}

/* The creator destroys it, or ends: it lives as long as a client has it open. */
static void
outlives_its_creator(void **state)
{
	uint32_t number = domain(0, file), qpn;

	domain(1, file);
	domain(2, file);
	for (unsigned int ends = 0; ends < 2; ends++) {
		domain(0, file);
		qpn = target(0, number);
		assert_int_equal(to_init(0, qpn), 0);
		assert_int_equal(open_target(1, qpn, number), 0);
		assert_int_equal(open_target(2, qpn, number), 0);
		if (ends)
			close_client(0);
		else
			assert_int_equal(destroy(0, qpn), 0);
		assert_int_equal(fake->live[LIVE_QP], 1);
		if (!ends)
			assert_int_equal(destroy(0, qpn), -EINVAL);
		assert_int_equal(destroy(2, qpn), 0);
		assert_int_equal(fake->live[LIVE_QP], 1);
		assert_int_equal(close_domain(1, number), -EBUSY);
		assert_int_equal(destroy(1, qpn), 0);
		assert_int_equal(fake->live[LIVE_QP], 0);
		assert_int_equal(destroy(1, qpn), -EINVAL);
	}
}

/* All end without a word: the last one takes it along. */
static void
last_client_takes_it_along(void **state)
{
	uint32_t number = domain(0, file), qpn = target(0, number);

	domain(1, file);
	domain(2, file);
	assert_int_equal(to_init(0, qpn), 0);
	assert_int_equal(open_target(1, qpn, number), 0);
	assert_int_equal(open_target(2, qpn, number), 0);
	close_client(0);
	close_client(2);
	assert_int_equal(fake->live[LIVE_QP], 1);
	close_client(1);
	nothing_is_left();
}

/* A QP counts for each client that holds it, so each QP counts until the last one closes it. */
static void
quota_of_qps(void **state)
{
	uint32_t number = domain(0, file), qpn[QUOTA];

	domain(1, file);
	for (unsigned int i = 0; i < QUOTA; i++) {
		qpn[i] = target(0, number);
		if (i < QUOTA - 1)
			assert_int_equal(open_target(1, qpn[i], number), 0);
	}
	target(1, number);
	assert_int_equal(open_target(1, qpn[QUOTA - 1], number), -ENOMEM);
	assert_int_equal(qps_of(client[0]), QUOTA);
	assert_int_equal(qps_of(client[1]), QUOTA);
	assert_int_equal(destroy(0, qpn[0]), 0);
	assert_int_equal(qps_of(client[0]), QUOTA - 1);
	assert_int_equal(qps_of(client[1]), QUOTA);
	close_client(0);
	assert_int_equal(qps_of(client[1]), QUOTA);
	assert_int_equal(destroy(1, qpn[0]), 0);
	assert_int_equal(qps_of(client[1]), QUOTA - 1);
}

/* ---- events ---- */

static unsigned int
events(unsigned int i, uint32_t qpn)
{
	struct hca_ctl_event e;
	unsigned int n = 0;

	hca_driver_poll(drv);
	while (read(async_fd[i], &e, sizeof(e)) == sizeof(e))
		n += e.type == HCA_EVENT_COMM_EST && e.object == qpn;
	return n;
}

static void
events_for_all_holders(void **state)
{
	uint32_t number = domain(0, file), qpn = target(0, number);

	domain(1, file);
	domain(2, file);
	assert_int_equal(open_target(1, qpn, number), 0);
	fake_event(fake, 1, HCA_EVENT_COMM_EST, qpn);
	assert_false(hca_driver_poll_few(drv)); /* not a worker's business */
	assert_int_equal(events(0, qpn), 1);
	assert_int_equal(events(1, qpn), 1);
	assert_int_equal(events(2, qpn), 0);
	assert_int_equal(destroy(0, qpn), 0);
	fake_event(fake, 1, HCA_EVENT_COMM_EST, qpn);
	assert_true(hca_driver_poll_few(drv));
	assert_int_equal(events(0, qpn), 0);
	assert_int_equal(events(1, qpn), 1);
}

/* Events that wait for room in an opener's pipe are its own, and go with it. */
static void
delayed_events(void **state)
{
	uint32_t number = domain(0, file), qpn = target(0, number);
	unsigned int n = 0;

	domain(1, file);
	domain(2, file);
	assert_int_equal(open_target(1, qpn, number), 0);
	assert_int_equal(open_target(2, qpn, number), 0);
	while (hca_driver_owed(drv) < 3) {
		fake_event(fake, 1, HCA_EVENT_COMM_EST, qpn);
		hca_driver_poll(drv);
		assert_true(++n < 1000000);
	}
	assert_int_equal(destroy(0, qpn), 0);
	assert_int_equal(hca_driver_owed(drv), 2);
	assert_true(events(1, qpn) > 0);
	assert_int_equal(events(1, qpn), 1); /* the one delayed */
	close_client(2);
	assert_int_equal(hca_driver_owed(drv), 0);
	assert_int_equal(destroy(1, qpn), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(flags_are_judged),
		T(descriptors_are_judged),
		T(inode_names_it),
		T(inode_is_kept),
		T(rights_are_judged),
		T(lives_until_the_last_close),
		T(file_is_closed_without_locks),
		T(busy),
		T(quota_of_domains),
		T(quota_of_files),
		T(belongs_to_no_client),
		T(opened_by_another),
		T(opened_again),
		T(outlives_its_creator),
		T(last_client_takes_it_along),
		T(quota_of_qps),
		T(events_for_all_holders),
		T(delayed_events),
#undef T
	};

	return cmocka_run_group_tests_name("driver-xrc", tests, NULL, NULL);
}
