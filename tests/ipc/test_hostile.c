/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Hostile clients: every message malformed in every way, descriptors and addresses that are not
 * memory or belong to others, numbers and doorbells of others, memory that vanishes, replies that
 * are never read. All are refused and counted, while two other clients exchange verified data.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi_bar.h"
#include "abi_wqe.h"
#include "ipc_rig.h"
#include "raw.h"

#define MEMORY_MB 256u
#define MEMORY ((uint64_t)MEMORY_MB << 20)
#define VA UINT64_C(0x10000000)
#define MIB UINT64_C(0x100000)
#define HANG_NS (RIG_TIMEOUT_S * UINT64_C(1000000000))

static struct rig rig;
static struct bystanders by;
static uint64_t seed = 20261;

static uint32_t
random32(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 32);
}

static int
start(void **state)
{
	static const char *const extra[] = {"12", "8", "256", NULL};

	rig_start(&rig, extra);
	bystanders_start(&by, &rig);
	rig_keep(by.pid);
	return 0;
}

static int
shut_down(void **state)
{
	bystanders_stop(&by);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	rig_stop(&rig);
	return 0;
}

static int64_t
counted(const char *name)
{
	return rig_ask(&rig, "counters", 0, name);
}

static bool
is_settled(void)
{
	return rig_ask(&rig, "usage", 0, "clients") == 1 &&
	       rig_ask(&rig, "usage", 0, "hca_qps") == 1 &&
	       rig_ask(&rig, "usage", 0, "hca_mpts") == 4;
}

/* Wait until only the bystanders are left; the last client may not even be admitted yet. */
static void
settled(void)
{
	for (uint64_t end = rig_now_ns() + 2 * HANG_NS; rig_now_ns() < end;) {
		if (is_settled())
			return;
		usleep(1000);
	}
	fail_msg("something is left: %ld clients", (long)rig_ask(&rig, "usage", 0, "clients"));
}

/* ---- framing ---- */

/* The daemon closes the connection without an answer. */
static void
ends(const void *bytes, size_t len, const int *fds, unsigned int num_fds)
{
	struct raw r;

	raw_open(&r, rig.path[0]);
	((struct ipc_request *)(uintptr_t)bytes)->seq += r.seq;
	raw_packet(&r, bytes, len, fds, num_fds);
	assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
	raw_close(&r);
}

static void
every_length(void **state)
{
	static struct {
		struct ipc_request head;
		uint8_t body[IPC_BODY_MAX + 64];
	} m;
	int64_t before = counted("ended_protocol");
	unsigned int n = 0;

	for (uint16_t op = 1; op < HCA_CTL_OP_COUNT; op++) {
		size_t right = hca_ctl_shape(op)->request;
		const size_t lens[] = {0, 1, right - 1, right + 1, right + 8, IPC_BODY_MAX};

		for (unsigned int i = 0; i < 6; i++) {
			if (lens[i] > IPC_BODY_MAX || lens[i] == right ||
			    (op == HCA_CTL_PAGES && lens[i] == 8))
				continue;
			memset(&m, 0, sizeof(m.head));
			memset(m.body, 0xff, sizeof(m.body));
			m.head = (struct ipc_request){HCA_CTL_VERSION, op, (uint32_t)lens[i], 0};
			ends(&m, sizeof(m.head) + lens[i], NULL, 0);
			n++;
		}
	}
	settled();
	printf("%u messages of a wrong length\n", n);
	assert_int_equal(counted("ended_protocol") - before, n);
}

static void
bad_framing(void **state)
{
	static struct {
		struct ipc_request head;
		uint8_t body[IPC_BODY_MAX + 4096];
	} m;
	const struct ipc_request good = {HCA_CTL_VERSION, HCA_CTL_ALLOC_PD, 0, 0};
	int64_t before = counted("ended_protocol");
	int fds[253], one = open("/dev/null", O_RDWR);

	for (int i = 0; i < 253; i++)
		fds[i] = one;
#define BAD(change, bytes, nfds) \
	do { \
		memset(&m, 0, sizeof(m)); \
		m.head = good; \
		change; \
		ends(&m, bytes, fds, nfds); \
	} while (0)
	BAD(m.head.version = 0, sizeof(m.head), 0);
	BAD(m.head.version = HCA_CTL_VERSION + 1, sizeof(m.head), 0);
	BAD(m.head.op = HCA_CTL_OP_COUNT, sizeof(m.head), 0);
	BAD(m.head.op = 0xffff, sizeof(m.head), 0);
	BAD(m.head.op = HCA_CTL_HELLO; m.head.len = 8, sizeof(m.head) + 8, 0);
	BAD(m.head.len = 1, sizeof(m.head), 0);
	BAD(m.head.len = UINT32_MAX, sizeof(m.head), 0);
	BAD(m.head.seq = 1, sizeof(m.head), 0);
	BAD(m.head.seq = UINT64_MAX, sizeof(m.head), 0);
	BAD(, 1, 0);
	BAD(, sizeof(m.head) - 1, 0);
	BAD(m.head.len = IPC_BODY_MAX + 4096, sizeof(m), 0);
	BAD(, sizeof(m.head), 1);
	BAD(, sizeof(m.head), 2);
	BAD(, sizeof(m.head), 253);
	BAD(m.head.op = HCA_CTL_ATTACH; m.head.len = 32, sizeof(m.head) + 32, 0);
	BAD(m.head.op = HCA_CTL_ATTACH; m.head.len = 32, sizeof(m.head) + 32, 2);
	BAD(m.head.op = HCA_CTL_PAGES; m.head.len = 16; m.body[0] = 2, sizeof(m.head) + 16, 0);
	BAD(m.head.op = HCA_CTL_PAGES; m.head.len = 16;
	    memset(m.body, 0xff, 4), sizeof(m.head) + 16, 0);
#undef BAD
	close(one);
	settled();
	assert_int_equal(counted("ended_protocol") - before, 19);
}

static unsigned int
daemon_fds(void)
{
	struct dirent *entry;
	unsigned int n = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", rig.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* An empty packet looks like the end of the stream, but may carry descriptors. */
static void
empty_packets(void **state)
{
	int fds[2] = {open("/dev/null", O_RDWR), open("/dev/zero", O_RDWR)};
	unsigned int before = daemon_fds();
	uint64_t end;
	struct raw r;

	for (unsigned int i = 0; i < 20; i++) {
		raw_open(&r, rig.path[0]);
		assert_int_equal(raw_packet(&r, "", 0, fds, 1 + i % 2), 0);
		assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
		raw_close(&r);
	}
	close(fds[0]);
	close(fds[1]);
	settled();
	/* separate threads close the descriptors */
	for (end = rig_now_ns() + HANG_NS; daemon_fds() > before && rig_now_ns() < end;)
		usleep(1000);
	assert_true(daemon_fds() <= before);
}

static void
bad_hello(void **state)
{
	struct hca_ctl_hello hello = {.magic = IPC_MAGIC + 1};
	int64_t silent = counted("ended_silent");
	struct raw r;

	raw_connect(&r, rig.path[0]);
	assert_int_equal(raw_call(&r, HCA_CTL_HELLO, &hello, sizeof(hello), -1), -EPROTO);
	assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
	raw_close(&r);

	raw_connect(&r, rig.path[0]);
	assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1), -EPIPE);
	raw_close(&r);

	raw_connect(&r, rig.path[0]); /* and nothing more */
	assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
	raw_close(&r);
	assert_int_equal(counted("ended_silent") - silent, 1);
	settled();
}

/* Correct framing, random contents. */
static void
random_requests(void **state)
{
	enum {
		REQUESTS = 20000
	};
	uint8_t body[IPC_BODY_MAX];
	unsigned int refused = 0, done = 0;
	int mem = memfd_create("random", MFD_ALLOW_SEALING);
	struct raw r;

	printf("seed %lu\n", (unsigned long)seed);
	assert_int_equal(ftruncate(mem, (off_t)(64 * MIB)), 0);
	assert_int_equal(fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	raw_open_today(&r, rig.path[0]);
	for (unsigned int i = 0; i < REQUESTS; i++) {
		uint16_t op = HCA_CTL_ATTACH +
			      (uint16_t)(random32() % (HCA_CTL_OP_COUNT - HCA_CTL_ATTACH));
		size_t len = hca_ctl_shape(op)->request;
		int err;

		for (size_t k = 0; k < len; k++)
			body[k] = random32() % 3 == 0 ? (uint8_t)random32() : 0;
		if (op == HCA_CTL_PAGES) {
			((struct hca_ctl_pages *)body)->count = random32() % 16;
			len = 8 + ((struct hca_ctl_pages *)body)->count * 8;
		}
		if (op == HCA_CTL_ATTACH && random32() % 2 == 0) {
			const struct hca_ctl_segment s = {VA + random32() % 64 * 4096,
							  random32() % 16 * 4096,
							  random32() % 8 * 4096, random32() % 4, 0};
			memcpy(body, &s, sizeof(s));
		}
		err = raw_call(&r, op, body, len, hca_ctl_shape(op)->fds_in != 0 ? mem : -1);
		if (r.fds[0] >= 0)
			close(r.fds[0]);
		r.fds[0] = -1;
		if (err == 0)
			done++;
		else
			refused++;
		assert_int_not_equal(err, -EPIPE);
		assert_int_not_equal(err, -ETIMEDOUT);
		assert_int_not_equal(err, -EIO);
	}
	raw_close(&r);
	close(mem);
	printf("%u random requests refused, %u granted\n", refused, done);
	assert_true(refused > REQUESTS / 2);
	settled();
}

/* ---- memory ---- */

/* A regular file that was unlinked. */
static int
plain_file(const char *folder)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/softhca-hostile-XXXXXX", folder);
	fd = mkstemp(path);
	unlink(path);
	return fd;
}

static int
sealed_file(const char *name, uint64_t bytes, int seals)
{
	int fd = memfd_create(name, MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	/* with all pages allocated; large ones have parts that are refused, or filled later */
	for (uint64_t at = 0; at < bytes && bytes <= 4 * MIB; at += 4096)
		assert_int_equal(pwrite(fd, "", 1, (off_t)at), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int
reopened(int fd, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags);
}

static void
bad_files(void **state)
{
	int good = sealed_file("good", MIB, F_SEAL_SHRINK), fds[2], pair[2];
	const struct {
		int fd;
		int error;
	} files[] = {
		{sealed_file("unsealed", MIB, 0), -EBADF},
		{sealed_file("grow", MIB, F_SEAL_GROW), -EBADF},
		{sealed_file("read only", MIB, F_SEAL_SHRINK | F_SEAL_WRITE), -EBADF},
		{sealed_file("future", MIB, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), -EBADF},
		{sealed_file("short", MIB - 4096, F_SEAL_SHRINK), -EBADF},
		{sealed_file("empty", 0, F_SEAL_SHRINK), -EBADF},
		{reopened(good, O_RDONLY), -EBADF},
		{reopened(good, O_WRONLY), -EBADF},
		{reopened(good, O_PATH), -EBADF},
		{open("/dev/zero", O_RDWR), -EBADF},
		{open("/tmp", O_RDONLY), -EBADF},
		{plain_file("/tmp"), -EBADF},
		{plain_file("/dev/shm"), -EBADF},
		{pipe(fds) == 0 ? fds[1] : -1, -EBADF},
		{socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? pair[0] : -1, -EBADF},
	};
	int64_t before = counted("refused_file");
	struct raw r;

	raw_open(&r, rig.path[0]);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_true(files[i].fd >= 0);
		assert_int_equal(raw_attach(&r, files[i].fd, VA, MIB, 0), files[i].error);
		close(files[i].fd);
	}
	assert_int_equal(counted("refused_file") - before, sizeof(files) / sizeof(files[0]));
	assert_int_equal(raw_attach(&r, good, VA, MIB, 0), 0);
	raw_close(&r);
	close(fds[0]);
	close(pair[1]);
	close(good);
	settled();
}

static void
bad_segments(void **state)
{
	int fd = sealed_file("segments", 4 * MEMORY, F_SEAL_SHRINK);
	int small = sealed_file("small", 4 * MIB, F_SEAL_SHRINK);
	const struct {
		uint64_t va, length, offset;
		int error;
	} bad[] = {
		{VA + 1, MIB, 0, -EINVAL},
		{VA, MIB + 1, 0, -EINVAL},
		{VA, MIB, 8, -EINVAL},
		{VA, 0, 0, -EINVAL},
		{0, MIB, 0, -EINVAL},
		{UINT64_MAX - 4095, 8192, 0, -EINVAL},
		{VA, UINT64_MAX - 4095, 0, -EBADF},
		{VA, 4096, UINT64_MAX - 4095, -EBADF},
		{VA, MIB, 4 * MEMORY, -EBADF},
		{VA, MEMORY + 4096, 0, -ENOMEM},
		{VA, MIB, 0, -EEXIST}, /* from here on one segment is attached */
		{VA + 4096, 4096, 0, -EEXIST},
		{VA - 4096, 8192, 0, -EEXIST},
		{VA + MIB - 4096, 8192, 0, -EEXIST},
		{VA - MIB, 4 * MIB, 0, -EEXIST},
		{2 * VA, MEMORY - MIB + 4096, 0, -ENOMEM},
	};
	const char *limit = getenv("IPCD_SEGMENTS");
	uint64_t most = limit != NULL ? strtoull(limit, NULL, 0) : 32768;
	uint32_t number;
	struct raw r;

	raw_open(&r, rig.path[0]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (i == 10)
			assert_int_equal(raw_attach(&r, small, VA, MIB, 0), 0);
		assert_int_equal(raw_attach(&r, fd, bad[i].va, bad[i].length, bad[i].offset),
				 bad[i].error);
	}
	number = r.number + 100000;
	assert_int_equal(raw_call(&r, HCA_CTL_DETACH, &number, sizeof(number), -1), -EINVAL);
	number = 0;
	assert_int_equal(raw_call(&r, HCA_CTL_DETACH, &number, sizeof(number), -1), 0);
	assert_int_equal(raw_call(&r, HCA_CTL_DETACH, &number, sizeof(number), -1), -EINVAL);
	/* the maximum number of segments, of a page each */
	for (uint64_t i = 0; i < most; i++)
		assert_int_equal(raw_attach(&r, small, VA + i * 8192, 4096, i % 1024 * 4096), 0);
	assert_int_equal(raw_attach(&r, fd, 4 * VA, 4096, 0), -ENOMEM);
	raw_close(&r);
	close(small);
	close(fd);
	settled();
}

static uint32_t
make_pd(struct raw *r)
{
	assert_int_equal(raw_call(r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
	return r->number;
}

static int
reg(struct raw *r, uint32_t pdn, uint64_t va, uint64_t length)
{
	const struct hca_ctl_mr mr = {.va = va, .length = length, .pdn = pdn, .access = 7};

	return raw_call(r, HCA_CTL_REG_MR, &mr, sizeof(mr), -1);
}

/* Addresses outside of attached memory: regions, queues, pages. */
static void
foreign_addresses(void **state)
{
	int fd = sealed_file("mine", MIB, F_SEAL_SHRINK);
	int64_t before = counted("refused_address");
	struct hca_ctl_cq cq = {.log_size = 4, .channel = HCA_CTL_NO_CHANNEL};
	struct hca_ctl_mr list = {.va = VA, .length = 8192, .page_size = 4096, .npages = 2};
	struct hca_ctl_pages pages = {.count = 2, .page = {VA, 0x7f0000000000}};
	struct raw r;

	raw_open(&r, rig.path[0]);
	list.pdn = make_pd(&r);
	assert_int_equal(raw_attach(&r, fd, VA, MIB, 0), 0);
	assert_int_equal(reg(&r, list.pdn, VA, MIB), 0);
	assert_int_equal(reg(&r, list.pdn, VA, MIB + 1), -EPERM);
	assert_int_equal(reg(&r, list.pdn, VA - 1, 2), -EPERM);
	assert_int_equal(reg(&r, list.pdn, VA + MIB, 1), -EPERM);
	assert_int_equal(reg(&r, list.pdn, 0, UINT64_MAX), -ENOMEM);
	assert_int_equal(reg(&r, list.pdn, (uintptr_t)&r, 8), -EPERM);
	assert_int_equal(reg(&r, list.pdn, 0, 0), 0); /* no memory */
	assert_int_equal(reg(&r, list.pdn, UINT64_MAX - 10, 100), -EINVAL);
	cq.addr = VA + MIB - 4096;
	cq.log_size = 10; /* sticks out */
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_CQ, &cq, sizeof(cq), -1), -EPERM);
	cq.addr = 0x7f0000000000;
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_CQ, &cq, sizeof(cq), -1), -EPERM);
	cq.addr = VA + 8;
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_CQ, &cq, sizeof(cq), -1), -EINVAL);
	cq.log_size = 200;
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_CQ, &cq, sizeof(cq), -1), -EINVAL);
	assert_int_equal(raw_call(&r, HCA_CTL_PAGES, &pages, 8 + 16, -1), 0);
	assert_int_equal(raw_call(&r, HCA_CTL_REG_MR, &list, sizeof(list), -1), -EPERM);
	/* the list is used up */
	assert_int_equal(raw_call(&r, HCA_CTL_REG_MR, &list, sizeof(list), -1), -EINVAL);
	pages.page[1] = VA + 1;
	assert_int_equal(raw_call(&r, HCA_CTL_PAGES, &pages, 8 + 16, -1), 0);
	assert_int_equal(raw_call(&r, HCA_CTL_REG_MR, &list, sizeof(list), -1), -EINVAL);
	assert_int_equal(counted("refused_address") - before, 7);
	raw_close(&r);
	close(fd);
	settled();
}

/* Numbers of another client: every call that takes one is refused and has no effect. */
static void
foreign_numbers(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .srq = true, .events = true};
	struct softhca_context *ctx;
	struct hca_ctl_modify modify = {0};
	struct hca_ctl_mr mr = {.va = VA, .length = 4096, .access = 1};
	struct hca_ctl_rereg rereg = {.flags = HCA_CTL_REREG_ACCESS};
	struct hca_ctl_arm arm = {0};
	struct hca_ctl_mw mw = {.type = 1};
	uint32_t n;
	struct softhca_xrcd *xrcd;
	const struct softhca_xrcd_init_attr xa = {.fd = -1};
	struct softhca_qp_attr attr;
	struct peer p, q;
	struct raw r;

	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&q, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p, &q), 0);
	ctx = p.ctx;
	xrcd = softhca_open_xrcd(ctx, &xa);
	assert_non_null(xrcd);
	raw_open(&r, rig.path[0]);
#define REFUSED(op, value) \
	do { \
		n = (value); \
		assert_int_not_equal(raw_call(&r, HCA_CTL_##op, &n, sizeof(n), -1), 0); \
		assert_int_not_equal(r.head.err, -EPIPE); \
	} while (0)
	REFUSED(DEALLOC_PD, p.pd->handle);
	REFUSED(DEREG_MR, p.mr->lkey);
	REFUSED(DESTROY_CQ, p.cq->handle);
	REFUSED(DESTROY_QP, p.qp->qp_num);
	REFUSED(QUERY_QP, p.qp->qp_num);
	REFUSED(DESTROY_SRQ, p.srq->handle);
	REFUSED(QUERY_SRQ, p.srq->handle);
	REFUSED(DEALLOC_XRCD, xrcd->handle);
	REFUSED(DESTROY_CHANNEL, 1);
#undef REFUSED
	modify.qpn = p.qp->qp_num;
	for (uint32_t op = 0; op < 0x1000; op += op < 0x50 ? 1 : 0x3f)
		for (modify.opcode = op, modify.has_mailbox = 0; modify.has_mailbox < 2;
		     modify.has_mailbox++)
			assert_int_not_equal(
				raw_call(&r, HCA_CTL_MODIFY_QP, &modify, sizeof(modify), -1), 0);
	rereg.lkey = p.mr->lkey;
	assert_int_not_equal(raw_call(&r, HCA_CTL_REREG_MR, &rereg, sizeof(rereg), -1), 0);
	arm.srqn = p.srq->handle;
	assert_int_not_equal(raw_call(&r, HCA_CTL_ARM_SRQ, &arm, sizeof(arm), -1), 0);
	mw.pdn = p.pd->handle;
	assert_int_not_equal(raw_call(&r, HCA_CTL_ALLOC_MW, &mw, sizeof(mw), -1), 0);
	mr.pdn = p.pd->handle;
	assert_int_not_equal(raw_call(&r, HCA_CTL_REG_MR, &mr, sizeof(mr), -1), 0);

	assert_int_equal(softhca_query_qp(p.qp, &attr, 0, NULL), 0);
	assert_int_equal(attr.qp_state, SOFTHCA_QPS_RTS);
	assert_int_equal(softhca_close_xrcd(xrcd), 0);
	raw_close(&r);
	peer_close(&p);
	peer_close(&q);
	settled();
}

/* ---- doorbells ---- */

/* Write one word when the device has taken the previous one; it may have to wait for a CPU. */
static void
ring(struct hca_uar_page *uar, uint32_t slot, uint64_t word)
{
	uint64_t end = rig_now_ns() + HANG_NS;

	for (unsigned int spins = 0; __atomic_load_n(&uar->fifo[slot], __ATOMIC_ACQUIRE) != 0;
	     spins++) {
		if (spins < 1000)
			continue;
		assert_true(rig_now_ns() < end);
		usleep(100);
	}
	__atomic_store_n(&uar->fifo[slot], hca_cpu_to_le64(word), __ATOMIC_RELEASE);
}

/*
 * Wait until the counter has grown by at least this number; the device counts after taking a word.
 */
static void
device_counts(const char *name, int64_t before, int64_t more)
{
	uint64_t end = rig_now_ns() + HANG_NS;
	int64_t now;

	do {
		now = rig_ask(&rig, "device", 0, name) - before;
	} while (now < more && rig_now_ns() < end && usleep(1000) == 0);
	if (now < more)
		fail_msg("%s: %ld, not %ld", name, (long)now, (long)more);
}

static void
doorbells_of_others(void **state)
{
	enum {
		RINGS = 20000
	};
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	int64_t foreign = rig_ask(&rig, "device", 0, "db_foreign_qpn");
	int64_t dead = rig_ask(&rig, "device", 0, "db_dead_qpn");
	struct hca_uar_page *uar;
	struct softhca_wc wc;
	struct peer p, q;
	uint32_t slot;
	struct raw r;

	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&q, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p, &q), 0);
	raw_open(&r, rig.path[0]);
	uar = mmap(NULL, HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, r.uar_fd, 0);
	assert_ptr_not_equal(uar, MAP_FAILED);
	assert_int_equal(raw_call(&r, HCA_CTL_INFO, NULL, 0, -1), 0);
	slot = HCA_UAR_FIFO_FIRST(r.info.uar_page);
	for (unsigned int i = 0; i < RINGS; i++, slot = (slot + 1) % HCA_UAR_FIFO_SLOTS) {
		uint32_t qpn = i % 2 == 0 ? p.qp->qp_num : random32() & 0xffffff;

		ring(uar, slot,
		     HCA_DB_MAKE(random32() % 64, 0, HCA_OP_SEND, qpn != 0 ? qpn : 1, 4));
	}
	device_counts("db_foreign_qpn", foreign, RINGS / 2);
	/* and fill the whole page with random words, repeatedly */
	for (unsigned int i = 0; i < 200; i++)
		for (size_t k = 0; k < HCA_UAR_PAGE_SIZE / 4; k++)
			((volatile uint32_t *)uar)[k] = random32();
	peer_fill(p.buf, 65536, 8);
	assert_int_equal(peer_post(&p, SOFTHCA_WR_RDMA_WRITE, 1, 0, 65536, 0), 0);
	assert_int_equal(peer_wait(&p, &wc, RIG_TIMEOUT_S), 0);
	assert_true(peer_verify(q.buf, 65536, 8));
	printf("doorbells for another's QP refused: %ld, for none: %ld\n",
	       (long)(rig_ask(&rig, "device", 0, "db_foreign_qpn") - foreign),
	       (long)(rig_ask(&rig, "device", 0, "db_dead_qpn") - dead));
	/* the page is sealed: it cannot be truncated or unmapped */
	assert_int_not_equal(ftruncate(r.uar_fd, 0), 0);
	munmap(uar, HCA_UAR_PAGE_SIZE);
	raw_close(&r);
	peer_close(&p);
	peer_close(&q);
	settled();
}

/* ---- memory that vanishes ---- */

/*
 * Memory without pages (the daemon is made to find none in this client's segments) ends its owner
 * only. The device continues with zeros.
 */
static int
loser(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_async_event e;
	struct softhca_wc wc;
	struct peer p, q;
	int err = peer_open(&p, rig.path[0], &cfg);

	if (err == 0)
		err = peer_open(&q, rig.path[1], &cfg);
	if (err == 0)
		err = peer_connect_pair(&p, &q);
	if (err == 0)
		err = peer_meet(sock);
	if (err != 0)
		return err;
	for (uint64_t id = 0; err >= 0; id++) {
		peer_post(&p, SOFTHCA_WR_RDMA_WRITE, id, 0, 65536, 0);
		peer_post(&q, SOFTHCA_WR_RDMA_READ, id, 131072, 65536, 0);
		softhca_poll_cq(q.cq, 1, &wc);
		err = softhca_poll_cq(p.cq, 1, &wc);
	}
	if (err != -EIO) {
		fprintf(stderr, "poll_cq: %d\n", err);
		return err;
	}
	/* errors that the device found in queues of zeros may be reported first */
	do {
		err = softhca_get_async_event(p.ctx, &e);
		if (err == 0)
			softhca_ack_async_event(&e);
	} while (err == 0 && e.event_type != SOFTHCA_EVENT_DEVICE_FATAL);
	if (err != 0)
		fprintf(stderr, "get_async_event: %d\n", err);
	return err;
}

static void
lost_segment(void **state)
{
	int64_t before = counted("ended_segment_lost");

	for (int i = 0; i < 10; i++) {
		int sock;
		pid_t pid = rig_fork(loser, NULL, &sock);
		char question[40];

		assert_int_equal(peer_meet(sock), 0);
		usleep(5000);
		snprintf(question, sizeof(question), "lose %d", (int)pid);
		assert_true(rig_ask(&rig, question, 0, "segments") > 0);
		rig_join(pid);
		close(sock);
	}
	settled();
	assert_int_equal(counted("ended_segment_lost") - before, 10);
}

/* ---- too much ---- */

static void
replies_nobody_reads(void **state)
{
	const struct hca_ctl_count all = {.of = HCA_CTL_COUNTERS_DEVICE, .max = 1000};
	int64_t before = counted("ended_not_reading");
	struct raw r;
	int n = 0;

	raw_open(&r, rig.path[0]);
	while (n < 100000 && raw_request(&r, HCA_CTL_QUERY_COUNTERS, &all, sizeof(all), -1) == 0) {
		r.seq++;
		n++;
	}
	printf("%d requests without reading a reply\n", n);
	assert_true(n < 100000);
	assert_int_equal(counted("ended_not_reading") - before, 1);
	raw_close(&r);
	settled();
}

static void
too_many_clients(void **state)
{
	int64_t before = counted("refused_clients_per_uid");
	struct raw r[8];

	for (int i = 0; i < 7; i++)
		raw_open(&r[i], rig.path[0]);
	raw_connect(&r[7], rig.path[0]);
	assert_int_equal(raw_reply(&r[7], RIG_TIMEOUT_MS), 1);
	assert_int_equal(r[7].head.err, -EMFILE);
	assert_int_equal(r[7].head.seq, 0);
	assert_non_null(strstr(r[7].head.reason, "the limit of a user"));
	assert_int_equal(raw_reply(&r[7], RIG_TIMEOUT_MS), 0);
	assert_int_equal(counted("refused_clients_per_uid") - before, 1);
	for (int i = 0; i < 8; i++)
		raw_close(&r[i]);
	settled();
}

/* Disconnect at every point of the handshake. */
static void
come_and_go(void **state)
{
	const struct hca_ctl_hello hello = {.magic = IPC_MAGIC};
	struct raw r;

	for (int i = 0; i < 300; i++) {
		raw_connect(&r, rig.path[0]);
		if (i % 3 != 0)
			raw_request(&r, HCA_CTL_HELLO, &hello, sizeof(hello), -1);
		if (i % 3 == 2 && raw_reply(&r, RIG_TIMEOUT_MS) == 1) {
			r.uar_fd = r.fds[0];
			r.sleep_fd = r.fds[1];
			r.seq = r.welcome.nonce + 1;
			raw_request(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1);
		}
		raw_close(&r);
		if (i % 4 == 3)
			settled();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_length, rig_tidy),
		cmocka_unit_test_teardown(bad_framing, rig_tidy),
		cmocka_unit_test_teardown(empty_packets, rig_tidy),
		cmocka_unit_test_teardown(bad_hello, rig_tidy),
		cmocka_unit_test_teardown(random_requests, rig_tidy),
		cmocka_unit_test_teardown(bad_files, rig_tidy),
		cmocka_unit_test_teardown(bad_segments, rig_tidy),
		cmocka_unit_test_teardown(foreign_addresses, rig_tidy),
		cmocka_unit_test_teardown(foreign_numbers, rig_tidy),
		cmocka_unit_test_teardown(doorbells_of_others, rig_tidy),
		cmocka_unit_test_teardown(lost_segment, rig_tidy),
		cmocka_unit_test_teardown(replies_nobody_reads, rig_tidy),
		cmocka_unit_test_teardown(too_many_clients, rig_tidy),
		cmocka_unit_test_teardown(come_and_go, rig_tidy),
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
