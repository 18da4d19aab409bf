/* SPDX-License-Identifier: BSD-3-Clause */

/* Two processes exchange data through a daemon; afterwards no object of theirs is left in it. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

#define ROUNDS 20u

RIG_OF_ALL(rig)

static int
talk_on_b(int sock, void *arg)
{
	return peer_visit(rig.path[1], sock, arg, ROUNDS);
}

static void
two_processes(struct peer_config cfg)
{
	int sock;
	pid_t pid = rig_fork(talk_on_b, &cfg, &sock);

	assert_int_equal(peer_visit(rig.path[0], sock, &cfg, ROUNDS), 0);
	rig_join(pid);
	close(sock);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	assert_true(rig_wait_empty(&rig, 1) >= 0);
}

static void
rc(void **state)
{
	two_processes((struct peer_config){.type = SOFTHCA_QPT_RC});
}

static void
rc_events(void **state)
{
	two_processes((struct peer_config){.type = SOFTHCA_QPT_RC, .events = true});
}

static void
rc_srq_events(void **state)
{
	two_processes((struct peer_config){.type = SOFTHCA_QPT_RC, .srq = true, .events = true});
}

static void
ud(void **state)
{
	two_processes((struct peer_config){.type = SOFTHCA_QPT_UD});
}

static void
ud_srq_events(void **state)
{
	two_processes((struct peer_config){.type = SOFTHCA_QPT_UD, .srq = true, .events = true});
}

static void
uc(void **state)
{
	two_processes((struct peer_config){.type = SOFTHCA_QPT_UC, .events = true});
}

/* Another client that creates and destroys channels. */
static void *
churn(void *arg)
{
	struct softhca_context *ctx;
	int err = softhca_open(rig.path[0], &ctx);

	while (err == 0 && !__atomic_load_n((bool *)arg, __ATOMIC_RELAXED)) {
		struct softhca_comp_channel *channel = softhca_create_comp_channel(ctx);

		err = channel != NULL ? softhca_destroy_comp_channel(channel) : -errno;
	}
	if (err == 0)
		err = softhca_close(ctx);
	return (void *)(intptr_t)err;
}

/* A thread waiting for an event gets it, whatever the driver does for other clients meanwhile. */
static void
events_beside_control(void **state)
{
	/* nothing is lost here, but on a busy machine answers may take long */
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true, .timeout = 20};
	enum {
		CHURNERS = 3,
		MESSAGES = 4000
	};
	pthread_t thread[CHURNERS];
	struct softhca_wc wc;
	bool end = false;
	struct peer a, b;
	void *result;

	assert_int_equal(peer_open(&a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&a, &b), 0);
	for (unsigned int i = 0; i < CHURNERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, churn, &end), 0);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		assert_int_equal(peer_post(&a, SOFTHCA_WR_RDMA_WRITE, i, 0, 64, 0), 0);
		assert_int_equal(peer_wait(&a, &wc, RIG_TIMEOUT_S), 0);
	}
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < CHURNERS; i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_null(result);
	}
	peer_close(&a);
	peer_close(&b);
}

/* Objects left at close: the daemon also frees them. */
static void
close_with_objects(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .srq = true, .events = true};
	struct peer p;

	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_true(rig_ask(&rig, "usage", 0, "qps") == 1);
	assert_int_equal(softhca_close(p.ctx), 0);
	assert_int_equal(softhca_free(p.buf), 0);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
}

/* A context on each device in one process; memory is attached to each at its first use. */
static void
two_contexts(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_qp_init_attr mixed = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};
	struct softhca_srq_init_attr_ex queue = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct peer_config shared = cfg;
	struct softhca_wc wc;
	struct peer a, b;

	shared.buf = softhca_alloc(PEER_BYTES);
	assert_non_null(shared.buf);
	assert_int_equal(peer_open(&a, rig.path[0], &shared), 0);
	assert_int_equal(peer_open(&b, rig.path[1], &shared), 0);
	assert_int_equal(peer_connect_pair(&a, &b), 0);
	peer_fill(a.buf, 4096, 5);
	assert_int_equal(peer_post(&a, SOFTHCA_WR_RDMA_WRITE, 1, 0, 4096, 8192), 0);
	assert_int_equal(peer_wait(&a, &wc, RIG_TIMEOUT_S), 0);
	assert_true(peer_verify((uint8_t *)shared.buf + 8192, 4096, 5));
	queue.pd = b.pd;
	mixed.send_cq = a.cq;
	mixed.recv_cq = b.cq;
	assert_null(softhca_create_qp(a.pd, &mixed));
	assert_int_equal(errno, EINVAL);
	assert_null(softhca_create_qp(b.pd, &mixed));
	mixed.recv_cq = a.cq;
	assert_null(softhca_create_qp(b.pd, &mixed));
	assert_null(softhca_create_srq_ex(a.ctx, &queue));
	assert_int_equal(errno, EINVAL);
	peer_close(&a);
	peer_close(&b);
	assert_int_equal(softhca_free(shared.buf), 0);
}

static void
queries(void **state)
{
	struct softhca_device_attr attr;
	struct softhca_counter counters[4];
	struct softhca_gid_entry entry;
	struct softhca_port_attr port;
	struct softhca_context *ctx;
	uint16_t pkey;

	assert_int_equal(softhca_open(rig.path[1], &ctx), 0);
	assert_string_equal(ctx->name, "test1");
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_true(attr.max_qp > 0);
	assert_true((attr.node_guid >> 24 & 0xffff) == 0xfffe);
	assert_true(attr.max_res_rd_atom >= attr.max_qp_rd_atom);
	assert_true(attr.local_ca_ack_delay > 0);
	assert_int_equal(softhca_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, SOFTHCA_PORT_ACTIVE);
	assert_int_equal(port.phys_state, SOFTHCA_PHYS_LINK_UP);
	assert_true(port.link_speed == 100000);
	assert_int_equal(port.active_width, SOFTHCA_WIDTH_4X);
	assert_int_equal(port.active_speed, SOFTHCA_SPEED_EDR);
	assert_int_equal(softhca_query_gid_ex(ctx, 1, 0, &entry, 0), 0);
	assert_int_equal(entry.gid.raw[15], 2);
	assert_int_equal(softhca_query_pkey(ctx, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(softhca_get_pkey_index(ctx, 1, 0xffff), 0);
	assert_int_equal(softhca_get_pkey_index(ctx, 1, 0x8123), -ENOENT);
	assert_true(softhca_query_counters(ctx, NULL, 0) > 50);
	assert_true(softhca_query_counters(ctx, counters, 4) > 50);
	assert_true(counters[3].name[0] != '\0');
	assert_int_equal(softhca_query_gid(ctx, 1, 100000, &entry.gid), -EINVAL);
	assert_true(strlen(softhca_last_error(ctx)) > 5);
	assert_int_equal(softhca_close(ctx), 0);
}

/* A list of pages in which one page comes again and again, longer than one message */
static void
page_list(void **state)
{
	enum {
		PAGES = 20000
	};
	static void *pages[PAGES];
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_mr *mr;
	uint8_t *mem;

	assert_int_equal(softhca_open(rig.path[0], &ctx), 0);
	pd = softhca_alloc_pd(ctx);
	mem = softhca_alloc(8192);
	assert_true(pd != NULL && mem != NULL);
	for (int i = 0; i < PAGES; i++)
		pages[i] = mem + i % 2 * 4096;
	mr = softhca_reg_mr_pages(pd, 0x10000, PAGES * 4096ul, 4096, pages, PAGES,
				  SOFTHCA_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	pages[PAGES - 1] = mem + 1;
	assert_null(softhca_reg_mr_pages(pd, 0x10000, PAGES * 4096ul, 4096, pages, PAGES, 0));
	assert_int_equal(softhca_free(mem), 0);
	assert_int_equal(softhca_close(ctx), 0);
}

static void
resize_and_rereg(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	uint32_t old;
	struct peer p;
	uint8_t *mem = softhca_alloc(3 << 20);

	assert_non_null(mem);
	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_int_equal(softhca_resize_cq(p.cq, 4096), 0);
	old = p.mr->rkey;
	assert_int_equal(softhca_rereg_mr(p.mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
					  mem + 123, (3 << 20) - 123, 0),
			 0);
	assert_int_not_equal(p.mr->rkey, old);
	peer_close(&p);
	assert_int_equal(softhca_free(mem), 0);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
}

/* Both clocks, in ns */
struct clocks {
	uint64_t raw, wall;
};

static struct clocks
read_clocks(struct softhca_context *ctx)
{
	struct softhca_values values = {.comp_mask = SOFTHCA_VALUES_MASK_RAW_CLOCK};
	struct timespec ts;

	assert_int_equal(softhca_query_rt_values(ctx, &values), 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	return (struct clocks){
		.raw = values.raw_clock,
		.wall = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec,
	};
}

/* A WRITE; the times of its completion, which is read in its slot. */
static struct clocks
write_times(struct peer *p)
{
	uint64_t end = rig_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);
	struct clocks c;
	int err;

	assert_int_equal(peer_post(p, SOFTHCA_WR_RDMA_WRITE, 7, 0, 64, 0), 0);
	do
		err = softhca_start_poll(p->cq);
	while (err == -ENOENT && rig_now_ns() < end);
	assert_int_equal(err, 0);
	assert_int_equal(p->cq->status, SOFTHCA_WC_SUCCESS);
	assert_int_equal(p->cq->wr_id, 7);
	c.raw = softhca_wc_read_completion_ts(p->cq);
	c.wall = softhca_wc_read_completion_wallclock_ns(p->cq);
	assert_int_equal(softhca_next_poll(p->cq), -ENOENT);
	softhca_end_poll(p->cq);
	return c;
}

/* Completions with times, before and after the CQ gets new memory. The slack is that of workers. */
static void
times(void **state)
{
	const struct peer_config cfg = {
		.type = SOFTHCA_QPT_RC,
		.wc_flags = SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	const uint64_t slack = 1000000000;
	struct peer a, b;

	assert_int_equal(peer_open(&a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&a, &b), 0);
	for (unsigned int i = 0; i < 200; i++) {
		struct clocks before = read_clocks(a.ctx), at = write_times(&a);
		struct clocks after = read_clocks(a.ctx);

		assert_in_range(at.raw, before.raw - slack, after.raw + slack);
		assert_in_range(at.wall, before.wall - slack, after.wall + slack);
		if (i == 100)
			assert_int_equal(softhca_resize_cq(a.cq, 4096), 0);
	}
	peer_close(&a);
	peer_close(&b);
}

/* Number of descriptors of this file that exec() would pass on. */
static unsigned int
inherited(int file)
{
	struct stat want, st;
	unsigned int n = 0;

	assert_int_equal(fstat(file, &want), 0);
	for (int fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && st.st_dev == want.st_dev && st.st_ino == want.st_ino &&
		     (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
	return n;
}

/* Files that softhca_attach() accepts, which the daemon leaves as they are. */
static void
attached_memory(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	uint8_t *mem;
	struct peer p;

	assert_int_equal(ftruncate(fd, PEER_BYTES), 0);
	mem = mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(softhca_attach(fd, mem, PEER_BYTES, 0), 0);
	assert_int_equal(inherited(fd), 0);
	assert_int_equal(softhca_attach(fd, mem, PEER_BYTES, 0), -EEXIST);
	assert_int_equal(softhca_attach(fd, mem + 1, PEER_BYTES, 0), -EINVAL);
	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_int_equal(softhca_dereg_mr(p.mr), 0);
	p.mr = softhca_reg_mr(p.pd, mem, PEER_BYTES, 0);
	assert_non_null(p.mr);
	assert_int_equal(fcntl(fd, F_GET_SEALS), 0);
	assert_int_equal(softhca_detach(mem), -EBUSY);
	peer_close(&p);
	assert_int_equal(softhca_detach(mem), 0);
	assert_int_equal(softhca_detach(mem), -EINVAL);
	munmap(mem, PEER_BYTES);
	close(fd);
}

/* Leftovers of a failed test are removed before the next one. */
static int
sleeper(int sock, void *arg)
{
	struct raw r;

	raw_open(&r, rig.path[0]);
	peer_meet(sock);
	return (int)sleep(60);
}

static void
left_behind(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true};
	struct peer p, q;
	struct raw r;
	int sock;

	rig_fork(sleeper, NULL, &sock);
	assert_int_equal(peer_meet(sock), 0);
	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&q, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p, &q), 0);
	raw_open(&r, rig.path[0]);
	assert_int_equal(rig_tidy(state), 0);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	raw_close(&r);
	peer_close(&p);
	peer_close(&q);
	close(sock);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rc, rig_tidy),
		cmocka_unit_test_teardown(rc_events, rig_tidy),
		cmocka_unit_test_teardown(rc_srq_events, rig_tidy),
		cmocka_unit_test_teardown(ud, rig_tidy),
		cmocka_unit_test_teardown(ud_srq_events, rig_tidy),
		cmocka_unit_test_teardown(uc, rig_tidy),
		cmocka_unit_test_teardown(events_beside_control, rig_tidy),
		cmocka_unit_test_teardown(queries, rig_tidy),
		cmocka_unit_test_teardown(close_with_objects, rig_tidy),
		cmocka_unit_test_teardown(two_contexts, rig_tidy),
		cmocka_unit_test_teardown(page_list, rig_tidy),
		cmocka_unit_test_teardown(resize_and_rereg, rig_tidy),
		cmocka_unit_test_teardown(times, rig_tidy),
		cmocka_unit_test_teardown(attached_memory, rig_tidy),
		cmocka_unit_test_teardown(left_behind, rig_tidy),
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
