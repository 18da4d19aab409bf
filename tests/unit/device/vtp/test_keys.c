/* SPDX-License-Identifier: BSD-3-Clause */

/* MPT and MTT commands, access checks, scatter. */

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "bar/bar.h"
#include "../rig.h"

#define KEY(i) HCA_KEY_MAKE(0x2a, i, 0x33)

static int
setup(void **state)
{
	*state = rig_new(true);
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static void
contiguous_region(void **state)
{
	struct rig *r = *state;
	const struct hca_vtp *v = &r->h->core->vtp;
	uint8_t *p = r->user + 100;
	uint32_t key = rig_mr(r, 5, RIG_PD, p, 10000), n;
	const struct hca_mpt_entry *e;

	e = hca_vtp_check(v, key, RIG_PD, HCA_ACCESS_REMOTE_WRITE, (uintptr_t)p + 9999, 1);
	assert_non_null(e);
	assert_ptr_equal(e->base, p);
	assert_ptr_equal(hca_vtp_ptr(v, e, (uintptr_t)p + 5000, 100, &n), p + 5000);
	assert_int_equal(n, 100);
	assert_null(hca_vtp_check(v, key, RIG_PD, 0, (uintptr_t)p + 9999, 2));
	assert_null(hca_vtp_check(v, key, RIG_PD, 0, (uintptr_t)p - 1, 1));
	assert_null(hca_vtp_check(v, key, RIG_PD + 2048, 0, (uintptr_t)p, 1));
	assert_null(hca_vtp_check(v, key ^ 1, RIG_PD, 0, (uintptr_t)p, 1));
	assert_null(hca_vtp_check(v, key ^ 0x80000000, RIG_PD, 0, (uintptr_t)p, 1));
	assert_null(hca_vtp_check(v, key, RIG_PD, 0, UINT64_MAX - 1, 8));
	/* the ICM holds the entry as the owner wrote it */
	assert_int_equal(hca_get_be32(r->driver + 4 * 4096 + 5 * HCA_MPT_SIZE + 8), key);
}

/* Pages in any order; scatter writes the last byte last, each byte to its page. */
static void
scattered_pages(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_write_mtt *m = (void *)r->in;
	static const uint8_t order[] = {7, 3, 4, 9, 1};
	uint8_t src[5 * 4096];
	const struct hca_mpt_entry *e;
	uint64_t va = 0x7000;

	memset(m, 0, sizeof(*m));
	for (uint32_t i = 0; i < 5; i++)
		*hca_write_mtt_entry(m, i) = hca_cpu_to_be64((uintptr_t)r->user + 4096u * order[i]);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 5), HCA_STAT_OK);
	rig_fill_mpt(r, 6, RIG_PD, (void *)(uintptr_t)va, 5 * 4096, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 6), HCA_STAT_OK);
	e = hca_vtp_check(&r->h->core->vtp, KEY(6), RIG_PD, HCA_ACCESS_LOCAL_WRITE, va, 5 * 4096);
	assert_non_null(e);
	assert_null(e->base);
	for (uint32_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7 + i / 4096);
	hca_vtp_scatter(&r->h->core->vtp, e, va + 1, src, sizeof(src) - 3, r->h->pipe[0].icrc);
	for (uint32_t i = 0; i < sizeof(src) - 3; i++)
		assert_int_equal(r->user[4096u * order[(i + 1) / 4096] + (i + 1) % 4096], src[i]);
	assert_int_equal(r->user[4096u * 7], 0);
	assert_int_equal(r->user[4096u * 1 + 4094], 0);
}

/* A copy whose last byte is on a page that may not be written yet. */
static struct {
	uint8_t *page;
	const uint8_t *src;
	size_t before; /* bytes in front of the page */
	volatile bool faulted, complete;
} guarded;

/* The store to the page: all bytes before it must be there. */
static void
on_fault(int number)
{
	(void)number;
	guarded.faulted = true;
	guarded.complete = memcmp(guarded.page - guarded.before, guarded.src, guarded.before) == 0;
	mprotect(guarded.page, 4096, PROT_READ | PROT_WRITE);
}

static void
last_byte_is_last(void **state)
{
	struct rig *r = *state;
	uint32_t key = rig_mr(r, 5, RIG_PD, r->user, 8192);
	const struct hca_mpt_entry *e =
		hca_vtp_check(&r->h->core->vtp, key, RIG_PD, 0, (uintptr_t)r->user, 1);
	struct sigaction fault = {.sa_handler = on_fault}, old;
	uint8_t src[600];

	for (uint32_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(1 + i % 251);
	assert_int_equal(sigaction(SIGSEGV, &fault, &old), 0);
	for (uint32_t n = 1; n <= sizeof(src); n++) {
		uint8_t *to = r->user + 4096 - (n - 1);

		memset(r->user, 0, 8192);
		guarded.page = r->user + 4096;
		guarded.src = src;
		guarded.before = n - 1;
		guarded.faulted = false;
		assert_int_equal(mprotect(guarded.page, 4096, PROT_READ), 0);
		hca_vtp_scatter(&r->h->core->vtp, e, (uintptr_t)to, src, n, r->h->pipe[0].icrc);
		assert_true(guarded.faulted && guarded.complete);
		assert_memory_equal(to, src, n);
		assert_int_equal(to[n], 0);
	}
	sigaction(SIGSEGV, &old, NULL);
}

/* Ranges near 2^64: no sum may wrap. */
static void
ranges_do_not_wrap(void **state)
{
	static const struct {
		uint64_t start, length;
	} region[] = {
		{0, 4096},
		{UINT64_MAX - 4095, 4096},
		{(UINT64_C(1) << 63) - 100, 200},
		{(UINT64_C(1) << 31) - 1, 3},
		{UINT64_C(0xffffffff), 4096},
	};
	static const uint64_t len[] = {0,
				       1,
				       2,
				       4095,
				       4096,
				       4097,
				       1u << 31,
				       UINT64_C(1) << 32,
				       UINT64_C(1) << 63,
				       UINT64_MAX - 1,
				       UINT64_MAX};
	struct rig *r = *state;
	struct hca_mpt *m = (void *)r->in;
	uint32_t mtt = rig_mtt(r, r->user, 3);

	for (unsigned int i = 0; i < RTE_DIM(region); i++) {
		uint64_t s = region[i].start, n = region[i].length;
		const uint64_t va[] = {s,     s + 1, s + n - 1,	 s + n,	    s + n + 1,
				       s - 1, 0,     UINT64_MAX, s / 2 + 7, ~s};

		rig_fill_mpt(r, 5, RIG_PD, (void *)(uintptr_t)s, n, mtt);
		m->first_byte_offset = hca_cpu_to_be32(4095);
		assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_OK);
		for (unsigned int a = 0; a < RTE_DIM(va); a++) {
			for (unsigned int k = 0; k < RTE_DIM(len); k++) {
				unsigned __int128 end = (unsigned __int128)va[a] + len[k];
				bool inside = va[a] >= s && end <= (unsigned __int128)s + n;
				const struct hca_mpt_entry *e =
					hca_vtp_check(&r->h->core->vtp, KEY(5), RIG_PD, 0, va[a],
						      len[k]);

				/* length 0 at the end, which may be 2^64 */
				if (len[k] == 0)
					inside = va[a] - s <= n;
				assert_int_equal(e != NULL, inside);
			}
		}
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 5, 0, 0), HCA_STAT_OK);
	}
}

/* Every page size, with the first byte anywhere in the first page. */
static void
page_sizes(void **state)
{
	struct rig *r = *state;
	struct hca_mpt *m = (void *)r->in;

	for (uint32_t log = 0; log < 32; log++) {
		uint32_t size = 1u << log;
		bool valid = log >= HCA_MIN_PAGE_LOG && log <= HCA_MAX_PAGE_LOG;
		/* the rig's memory may be aligned to less than a large page */
		bool aligned = valid && ((uintptr_t)r->user & (size - 1)) == 0;

		rig_fill_mpt(r, 5, RIG_PD, r->user, 100, rig_mtt(r, r->user, 1));
		m->page_size = hca_cpu_to_be32(size);
		m->first_byte_offset = hca_cpu_to_be32(size - 1);
		if (!aligned || size - 1 + 100 > RIG_BLOCK) {
			assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_BAD_PARAM);
			continue;
		}
		/* the region extends to a second page that was never written */
		assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_BAD_PARAM);
		m->first_byte_offset = hca_cpu_to_be32(size - 100);
		assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_OK);
		assert_ptr_equal(r->h->core->vtp.mpt[5].base, r->user + size - 100);
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 5, 0, 0), HCA_STAT_OK);
	}
}

/* No memory, so no MTT entry is looked at; only an access of length 0 is allowed. */
static void
region_of_length_0(void **state)
{
	struct rig *r = *state;
	const struct hca_vtp *v = &r->h->core->vtp;
	const struct hca_mpt *m = (const void *)r->in;

	rig_fill_mpt(r, 5, RIG_PD, (void *)(uintptr_t)UINT64_MAX, 0, 900);
	assert_int_equal(m->mtt_sz, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_OK);
	assert_null(v->mpt[5].base);
	assert_int_equal(v->mtt_ref[900], 0);
	assert_non_null(hca_vtp_check(v, KEY(5), RIG_PD, 0, UINT64_MAX, 0));
	assert_null(hca_vtp_check(v, KEY(5), RIG_PD, 0, UINT64_MAX, 1));
	assert_null(hca_vtp_check(v, KEY(5), RIG_PD, 0, UINT64_MAX - 1, 0));
	assert_null(hca_vtp_check(v, KEY(5), RIG_PD, 0, 0, 0));
	rig_fill_cqc(r, 2, 4, KEY(5));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 5, 0, 0), HCA_STAT_OK);
	assert_null(hca_vtp_check(v, KEY(5), RIG_PD, 0, UINT64_MAX, 0));
}

#define BREAK_MPT(X) \
	X(m->flags |= hca_cpu_to_be32(HCA_MPT_FLAG_PHYSICAL)) \
	X(m->flags |= hca_cpu_to_be32(HCA_ACCESS_ON_DEMAND)) \
	X(m->flags |= hca_cpu_to_be32(HCA_ACCESS_ZERO_BASED)) \
	X(m->flags &= ~hca_cpu_to_be32(HCA_MPT_FLAG_REGION)) \
	X(m->flags &= ~hca_cpu_to_be32(HCA_ACCESS_LOCAL_WRITE)) \
	X(m->page_size = hca_cpu_to_be32(2048)) \
	X(m->page_size = hca_cpu_to_be32(12288)) \
	X(m->page_size = 0) \
	X(m->page_size = hca_cpu_to_be32(1u << 31)) \
	X(m->key = hca_cpu_to_be32(KEY(6))) \
	X(m->flags |= hca_cpu_to_be32(HCA_MPT_FLAG_NULL)) \
	X(m->length = hca_cpu_to_be64(UINT64_MAX)) \
	X(m->length = hca_cpu_to_be64(4096 * 5 + 1)) \
	X(m->start = hca_cpu_to_be64(UINT64_MAX - 5)) \
	X(m->first_byte_offset = hca_cpu_to_be32(4096)) \
	X(m->pd = hca_cpu_to_be32(HCA_PD_MAKE(1, 2))) \
	X(m->pd = hca_cpu_to_be32(HCA_PD_MAKE(1, 0))) \
	X(m->domain = hca_cpu_to_be32(HCA_MPT_DOMAIN_MAKE(2))) \
	X(m->domain = hca_cpu_to_be32(HCA_MPT_DOMAIN_MAKE(0))) \
	X(m->domain = hca_cpu_to_be32(RIG_PAGE)) \
	X(m->domain = hca_cpu_to_be32(HCA_MPT_DOMAIN_MAKE(RIG_PAGE) | HCA_BIT(11))) \
	X(m->mtt_sz = hca_cpu_to_be32(3)) \
	X(hca_mpt_set_mtt_seg(m, 1020)) \
	X(hca_mpt_set_mtt_seg(m, UINT64_MAX - 2)) \
	X(hca_mpt_set_mtt_seg(m, 900))

static void
bad_mpt_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct hca_mpt *m = (void *)r->in;
	/* the last four pages of the user's window: a fifth page is outside */
	uint8_t *p = r->user + RIG_BLOCK - 4 * 4096;
	uint32_t mtt = rig_mtt(r, p, 5);

	rig_remember(r, 0);
#define X(change) \
	rig_fill_mpt(r, 5, RIG_PD, p, 4 * 4096, mtt); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, 0);
	BREAK_MPT(X)
#undef X
	rig_fill_mpt(r, 5, RIG_PD, p, 4 * 4096, mtt);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 0), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 128), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_OK);
	rig_remember(r, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 5), HCA_STAT_BAD_RES_STATE);
	rig_unchanged(r, 0);
}

static void
live_ranges_are_busy(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_write_mtt *m = (void *)r->in;

	rig_mr(r, 5, RIG_PD, r->user, 3 * 4096);
	memset(m, 0, sizeof(*m));
	m->start_index = hca_cpu_to_be64(2);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 1), HCA_STAT_RESOURCE_BUSY);
	m->start_index = hca_cpu_to_be64(1u << RIG_LOG_MTTS);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 1), HCA_STAT_BAD_INDEX);
	m->start_index = hca_cpu_to_be64(UINT64_MAX);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 2), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 509), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 0), HCA_STAT_BAD_PARAM);
	m->start_index = hca_cpu_to_be64(3);
	*hca_write_mtt_entry(m, 0) = hca_cpu_to_be64(0x1001);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 1), HCA_STAT_BAD_PARAM);
	*hca_write_mtt_entry(m, 0) = hca_cpu_to_be64(0x1000);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 1), HCA_STAT_OK);
	/* deregistered: its entries may be written again, and the key is invalid */
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 5, 0, 0), HCA_STAT_OK);
	assert_null(hca_vtp_check(&r->h->core->vtp, KEY(5), RIG_PD, 0, (uintptr_t)r->user, 1));
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 5, 0, 0), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 999, 0, 0), HCA_STAT_BAD_INDEX);
	m->start_index = hca_cpu_to_be64(2);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 1), HCA_STAT_OK);
}

/* HW2SW_MPT completes only after every worker has passed a quiescent state. */
static void
invalidation_waits_for_readers(void **state)
{
	struct rig *r = *state;

	rig_mr(r, 5, RIG_PD, r->user, 4096);
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_HW2SW_MPT), 5, 0, 0, 1);
	for (unsigned int i = 0; i < 5; i++)
		hca_ceu_poll(&r->h->pipe[0], 0, 32); /* this worker itself does not report */
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(r->h->core->vtp.mpt[5].state, HCA_MPT_DYING);
	assert_null(hca_vtp_check(&r->h->core->vtp, KEY(5), RIG_PD, 0, (uintptr_t)r->user, 1));
	rig_poll(r);
	rig_poll(r);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(r->h->core->vtp.mpt[5].state, HCA_MPT_FREE);
}

static unsigned int
polls_of(struct rig *r, uint16_t op, uint64_t in)
{
	unsigned int n = 0;

	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, op), 5, in, 0, 1);
	for (; rig_ctrl(r) & HCA_HCR_GO; n++)
		rig_poll(r);
	assert_int_equal(HCA_HCR_STATUS(rig_ctrl(r)), HCA_STAT_OK);
	return n;
}

static uint32_t
references(const struct rig *r)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < r->h->core->vtp.mtt_count; i++)
		sum += r->h->core->vtp.mtt_ref[i];
	return sum;
}

/*
 * No poll handles a whole large region or HCA at once; a reset in the middle leaves nothing behind.
 */
static void
big_regions_go_in_slices(void **state)
{
	const uint32_t pages = 1u << RIG_LOG_MTTS;
	struct rig *r = *state;

	for (uint32_t i = 0; i < pages; i++)
		r->h->core->vtp.mtt[i] = (uintptr_t)r->user;
	rig_fill_mpt(r, 5, RIG_PD, r->user, pages * 4096u, 0);
	assert_true(polls_of(r, HCA_CMD_SW2HW_MPT, (uintptr_t)r->in) >= 2 * pages / 1024 - 1);
	assert_int_equal(references(r), pages);
	assert_true(polls_of(r, HCA_CMD_HW2SW_MPT, 0) >= pages / 1024);
	assert_int_equal(references(r), 0);

	for (unsigned int polls = 1; polls < 2 * pages / 1024 + 4; polls++) {
		rig_fill_mpt(r, 5, RIG_PD, r->user, pages * 4096u, 0);
		rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_SW2HW_MPT), 5, (uintptr_t)r->in, 0, 1);
		for (unsigned int i = 0; i < polls; i++)
			rig_poll(r);
		hca_bar_store(r->h->core->bar0, HCA_BAR0_RESET, HCA_RESET_START);
		for (unsigned int i = 0; hca_bar_load(r->h->core->bar0, HCA_BAR0_RESET) != 0; i++) {
			assert_in_range(i, 0, 1000);
			rig_poll(r);
		}
		assert_int_equal(references(r), 0);
		assert_int_equal(r->h->core->vtp.mpt[5].state, HCA_MPT_FREE);
		rig_init_hca(r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(region_of_length_0),
		T(contiguous_region),
		T(scattered_pages),
		T(last_byte_is_last),
		T(bad_mpt_changes_nothing),
		T(ranges_do_not_wrap),
		T(page_sizes),
		T(live_ranges_are_busy),
		T(invalidation_waits_for_readers),
		T(big_regions_go_in_slices),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
