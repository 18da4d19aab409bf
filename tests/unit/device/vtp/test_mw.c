/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory windows as MPT entries: states, rights, ranges, permitted users. */

#include <errno.h>
#include <string.h>

#include "../rig.h"
#include "vtp/window.h"

#define KEY(i, tag) HCA_KEY_MAKE(0x2a, i, tag)
#define REGION 5u
#define WINDOW 9u
#define LEN (5u * 4096u)
#define RD HCA_ACCESS_REMOTE_READ
#define WR HCA_ACCESS_REMOTE_WRITE

static const struct hca_qp_cfg user = {.local_qpn = 0x1234,
				       .pd = RIG_PD,
				       .usr_page = RIG_PAGE,
				       .generation = 3};
/* of another client that has the PD */
static const struct hca_qp_cfg guest = {.local_qpn = 0x1235,
					.pd = RIG_PD,
					.usr_page = RIG_PAGE + 1,
					.generation = 3};

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
region(struct rig *r, uint32_t index, uint32_t rights)
{
	struct hca_mpt *m = (void *)r->in;
	uint32_t mtt = rig_mtt(r, r->user, 5);

	rig_fill_mpt(r, index, RIG_PD, r->user + 100, LEN - 100, mtt);
	if (rights & HCA_ACCESS_MW_BIND)
		rights |= HCA_MPT_FLAG_BIND_ENABLE;
	m->flags = hca_cpu_to_be32(HCA_MPT_FLAG_REGION | rights);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, index), HCA_STAT_OK);
}

static int
window(struct rig *r, uint32_t index, uint32_t pd, uint32_t flags)
{
	struct hca_mpt *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->flags = hca_cpu_to_be32(flags);
	m->key = hca_cpu_to_be32(KEY(index, 0x10));
	m->pd = hca_cpu_to_be32(pd);
	return rig_mbox(r, HCA_CMD_SW2HW_MPT, index);
}

static struct hca_bind
want(struct rig *r, uint64_t off, uint64_t len, uint32_t access)
{
	return (struct hca_bind){
		.access = access,
		.old_key = KEY(WINDOW, 0x10),
		.new_key = KEY(WINDOW, 0x11),
		.lkey = KEY(REGION, 0x33),
		.addr = (uintptr_t)r->user + 100 + off,
		.length = len,
	};
}

static uint8_t
bind(struct rig *r, const struct hca_bind *b)
{
	uint8_t rc = hca_window_claim(r->h->core, &user, b);

	if (rc == 0)
		hca_window_bind(r->h->core, &user, b);
	return rc;
}

static uint32_t
bound_to(struct rig *r, uint32_t index)
{
	return r->h->core->vtp.mpt[index].windows;
}

static int
free_key(struct rig *r, uint32_t index)
{
	return rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, index, 0, 0);
}

static void
type1(void **state)
{
	struct rig *r = *state;
	const struct hca_vtp *v = &r->h->core->vtp;
	struct hca_bind b = want(r, 1000, 5000, RD | WR);
	uint64_t va = b.addr;
	const struct hca_mpt_entry *e;
	uint32_t n;

	region(r, REGION, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND);
	assert_int_equal(window(r, WINDOW, RIG_PD, 0), HCA_STAT_OK);
	assert_null(hca_vtp_check(v, KEY(WINDOW, 0x10), RIG_PD, 0, 0, 0));
	assert_int_equal(bind(r, &b), 0);
	e = hca_vtp_check(v, b.new_key, RIG_PD, WR, va, 5000);
	assert_non_null(e);
	assert_ptr_equal(hca_vtp_ptr(v, e, va + 7, 100, &n), r->user + 1107);
	/*
	 * range and rights of the window, not of the region; no local use; the old key is invalid
	 */
	assert_null(hca_vtp_check(v, b.new_key, RIG_PD, WR, va - 1, 1));
	assert_null(hca_vtp_check(v, b.new_key, RIG_PD, WR, va, 5001));
	assert_null(hca_vtp_check(v, b.new_key, RIG_PD, HCA_ACCESS_REMOTE_ATOMIC, va, 8));
	assert_null(hca_vtp_check(v, b.new_key, RIG_PD, HCA_ACCESS_LOCAL_WRITE, va, 8));
	assert_null(hca_vtp_check(v, b.new_key, RIG_PD, HCA_MPT_FLAG_REGION, va, 8));
	assert_null(hca_vtp_check(v, KEY(WINDOW, 0x10), RIG_PD, WR, va, 8));
	assert_null(hca_vtp_check_bound(v, b.new_key, &user, WR, va, 8));
	assert_int_equal(bound_to(r, REGION), 1);
	assert_int_equal(free_key(r, REGION), HCA_STAT_RESOURCE_BUSY);
	assert_non_null(hca_vtp_check(v, KEY(REGION, 0x33), RIG_PD, 0, va, 8));
	/* bound elsewhere, then unbound */
	b = want(r, 0, 10, RD);
	b.new_key = KEY(WINDOW, 0x12);
	assert_int_equal(bind(r, &b), 0);
	assert_int_equal(bound_to(r, REGION), 1);
	assert_null(hca_vtp_check(v, KEY(WINDOW, 0x11), RIG_PD, RD, b.addr, 10));
	assert_non_null(hca_vtp_check(v, KEY(WINDOW, 0x12), RIG_PD, RD, b.addr, 10));
	b.length = 0;
	assert_int_equal(bind(r, &b), 0);
	assert_null(hca_vtp_check(v, KEY(WINDOW, 0x12), RIG_PD, RD, b.addr, 10));
	assert_int_equal(bound_to(r, REGION), 0);
	assert_int_equal(free_key(r, REGION), HCA_STAT_OK);
	assert_int_equal(free_key(r, WINDOW), HCA_STAT_OK);
}

/*
 * A window and a region of different domains are not bound, even in one PD: the region of the other
 * client may go at any time.
 */
static void
another_domain(void **state)
{
	struct rig *r = *state;
	struct hca_mpt *m = (void *)r->in;
	struct hca_bind b = want(r, 0, 100, RD);

	region(r, REGION, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND);
	assert_int_equal(window(r, WINDOW, RIG_PD, 0), HCA_STAT_OK);
	assert_int_equal(hca_window_claim(r->h->core, &guest, &b), HCA_SYND_MW_BIND);
	assert_int_equal(free_key(r, WINDOW), HCA_STAT_OK);
	memset(m, 0, sizeof(*m));
	m->key = hca_cpu_to_be32(KEY(WINDOW, 0x10));
	m->pd = hca_cpu_to_be32(RIG_PD);
	m->domain = hca_cpu_to_be32(HCA_MPT_DOMAIN_MAKE(RIG_PAGE + 1));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, WINDOW), HCA_STAT_OK);
	assert_int_equal(bind(r, &b), HCA_SYND_MW_BIND);
	assert_int_equal(hca_window_claim(r->h->core, &guest, &b), HCA_SYND_MW_BIND);
	b.length = 0; /* its own, unbound */
	assert_int_equal(hca_window_claim(r->h->core, &guest, &b), 0);
	hca_window_bind(r->h->core, &guest, &b);
	assert_int_equal(bound_to(r, REGION), 0);
	assert_int_equal(free_key(r, WINDOW), HCA_STAT_OK);
	assert_int_equal(free_key(r, REGION), HCA_STAT_OK);
}

static void
type2(void **state)
{
	struct rig *r = *state;
	const struct hca_vtp *v = &r->h->core->vtp;
	struct hca_bind b = want(r, 4000, 3000, WR | HCA_ACCESS_ZERO_BASED);
	struct hca_qp_cfg other = user;
	const struct hca_mpt_entry *e;
	uint32_t key = b.new_key, n;

	region(r, REGION, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND);
	assert_int_equal(window(r, WINDOW, RIG_PD, HCA_MPT_FLAG_WINDOW2), HCA_STAT_OK);
	assert_int_equal(bind(r, &b), 0);
	assert_null(hca_vtp_check(v, key, RIG_PD, WR, 0, 8));
	e = hca_vtp_check_bound(v, key, &user, WR, 0, 3000);
	assert_non_null(e);
	assert_ptr_equal(hca_vtp_ptr(v, e, 500, 8, &n), r->user + 4600);
	assert_null(hca_vtp_check_bound(v, key, &user, WR, 1, 3000));
	assert_null(hca_vtp_check_bound(v, key, &user, WR, UINT64_MAX, 1));
	assert_null(hca_vtp_check_bound(v, key, &user, RD, 0, 8));
	/* usable only by this QP, until it is reset, and in its PD */
	other.local_qpn ^= 0x100000;
	assert_null(hca_vtp_check_bound(v, key, &other, WR, 0, 8));
	assert_false(hca_window_invalidate(r->h->core, &other, key));
	other = user;
	other.generation++;
	assert_null(hca_vtp_check_bound(v, key, &other, WR, 0, 8));
	other = user;
	other.pd += 2048;
	assert_null(hca_vtp_check_bound(v, key, &other, WR, 0, 8));
	/* a bound window cannot be bound again, but it can be freed */
	assert_int_equal(bind(r, &b), HCA_SYND_MW_BIND);
	assert_int_equal(bound_to(r, REGION), 1);
	assert_true(hca_window_owned(r->h->core, &user, key));
	assert_false(hca_window_owned(r->h->core, &user, key ^ 1));
	assert_false(hca_window_owned(r->h->core, &user, KEY(REGION, 0x33)));
	assert_true(hca_window_invalidate(r->h->core, &user, key));
	assert_false(hca_window_invalidate(r->h->core, &user, key));
	hca_window_settle(r->h->core, key);
	assert_null(hca_vtp_check_bound(v, key, &user, WR, 0, 8));
	assert_int_equal(bound_to(r, REGION), 0);
	assert_int_equal(bind(r, &b), 0);
	assert_int_equal(free_key(r, WINDOW), HCA_STAT_OK);
	assert_int_equal(bound_to(r, REGION), 0);
	assert_int_equal(free_key(r, REGION), HCA_STAT_OK);
}

/* The window uses the region's translation, also when its pages are not adjacent. */
static void
scattered(void **state)
{
	static const uint8_t order[] = {7, 3, 4, 9, 1};
	struct rig *r = *state;
	struct hca_mbox_write_mtt *m = (void *)r->in;
	struct hca_mpt *mpt = (void *)r->in;
	struct hca_bind b = {.access = WR, .old_key = KEY(WINDOW, 0x10)};
	const struct hca_mpt_entry *e;
	uint32_t n;

	memset(m, 0, sizeof(*m));
	for (uint32_t i = 0; i < 5; i++)
		*hca_write_mtt_entry(m, i) = hca_cpu_to_be64((uintptr_t)r->user + 4096u * order[i]);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, 5), HCA_STAT_OK);
	rig_fill_mpt(r, REGION, RIG_PD, (void *)(uintptr_t)0x7123, 4 * 4096, 0);
	mpt->flags = hca_cpu_to_be32(HCA_MPT_FLAG_REGION | HCA_MPT_FLAG_BIND_ENABLE |
				     HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, REGION), HCA_STAT_OK);
	assert_int_equal(window(r, WINDOW, RIG_PD, 0), HCA_STAT_OK);
	b.new_key = KEY(WINDOW, 0x20);
	b.lkey = KEY(REGION, 0x33);
	for (uint32_t off = 0; off < 4 * 4096; off += 511) {
		b.addr = 0x7123 + off;
		b.length = 4 * 4096 - off;
		assert_int_equal(bind(r, &b), 0);
		for (uint64_t at = 0; at < b.length; at += 1021) {
			uint32_t lin = 0x123 + off + (uint32_t)at;

			e = hca_vtp_check(&r->h->core->vtp, b.new_key, RIG_PD, WR, b.addr + at, 1);
			assert_non_null(e);
			assert_ptr_equal(hca_vtp_ptr(&r->h->core->vtp, e, b.addr + at, 1, &n),
					 r->user + 4096u * order[lin / 4096] + lin % 4096);
		}
	}
}

#define BREAK_BIND(X) \
	X(b.lkey ^= 1) \
	X(b.lkey = 0) \
	X(b.lkey = KEY(WINDOW, 0x10)) \
	X(b.lkey = KEY(6, 0x33)) /* without the right to bind */ \
	X(b.lkey = KEY(7, 0x33)) /* of another PD */ \
	X(b.lkey = KEY(8, 0x33)) /* without local write */ \
	X(b.new_key ^= 1u << 8) \
	X(b.new_key ^= 1u << 31) \
	X(b.new_key = KEY(REGION, 0x34)) \
	X(b.old_key ^= 1u << 30) \
	X(b.old_key = KEY(10, 0x10)) \
	X(b.access |= HCA_ACCESS_LOCAL_WRITE) \
	X(b.access |= HCA_ACCESS_MW_BIND) \
	X(b.access |= HCA_ACCESS_ON_DEMAND) \
	X(b.access |= HCA_ACCESS_FLUSH_PERSISTENT) \
	X(b.addr--) \
	X(b.length++) \
	X(b.addr = UINT64_MAX) \
	X(b.length = UINT64_MAX) \
	X(b.addr -= 1; b.length = UINT64_MAX) \
	X(b.old_key = KEY(10, 0x10); b.new_key = KEY(10, 0x11)) /* a window of another PD */

static void
bad_binds_change_nothing(void **state)
{
	struct rig *r = *state;
	uint32_t all = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND;
	struct hca_bind b;

	region(r, REGION, all);
	region(r, 6, HCA_ACCESS_LOCAL_WRITE | WR);
	region(r, 7, all);
	r->h->core->vtp.mpt[7].pd += 2048;
	region(r, 8, HCA_ACCESS_MW_BIND);
	assert_int_equal(window(r, WINDOW, RIG_PD, 0), HCA_STAT_OK);
	assert_int_equal(window(r, 10, RIG_PD + 2048, 0), HCA_STAT_OK);
	rig_remember(r, 0);
#define X(change) \
	b = want(r, 0, LEN - 100, WR); \
	change; \
	assert_int_equal(bind(r, &b), HCA_SYND_MW_BIND); \
	rig_unchanged(r, 0);
	BREAK_BIND(X)
#undef X
	b = want(r, 0, LEN - 100, RD);
	b.lkey = KEY(8, 0x33); /* reading needs no local write */
	assert_int_equal(bind(r, &b), 0);
	b = want(r, 0, LEN - 100, WR);
	assert_int_equal(bind(r, &b), 0);
}

static void
bad_windows_are_refused(void **state)
{
	struct rig *r = *state;
	struct hca_mpt *m = (void *)r->in;

	rig_remember(r, 0);
	assert_int_equal(window(r, WINDOW, RIG_PD, RD), HCA_STAT_BAD_PARAM);
	assert_int_equal(window(r, WINDOW, RIG_PD, HCA_MPT_FLAG_BIND_ENABLE), HCA_STAT_BAD_PARAM);
	assert_int_equal(window(r, 0, RIG_PD, 0), HCA_STAT_BAD_INDEX);
	assert_int_equal(window(r, 128, RIG_PD, 0), HCA_STAT_BAD_INDEX);
	window(r, 0, RIG_PD, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, WINDOW), HCA_STAT_BAD_PARAM);
	window(r, 0, RIG_PD, 0);
	m->key = hca_cpu_to_be32(KEY(WINDOW, 0x10));
	m->length = hca_cpu_to_be64(1);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, WINDOW), HCA_STAT_BAD_PARAM);
	/* the two bits that allow binding must be set together */
	rig_fill_mpt(r, REGION, RIG_PD, r->user, 4096, rig_mtt(r, r->user, 1));
	m->flags |= hca_cpu_to_be32(HCA_ACCESS_MW_BIND);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, REGION), HCA_STAT_BAD_PARAM);
	rig_unchanged(r, 0);
	assert_int_equal(window(r, WINDOW, RIG_PD, 0), HCA_STAT_OK);
	assert_int_equal(window(r, WINDOW, RIG_PD, 0), HCA_STAT_BAD_RES_STATE);
}

/* The command waits until a concurrent bind has finished. */
static void
freeing_waits_while_busy(void **state)
{
	struct rig *r = *state;
	struct hca_bind b = want(r, 0, 100, RD);

	region(r, REGION, HCA_ACCESS_MW_BIND);
	assert_int_equal(window(r, WINDOW, RIG_PD, HCA_MPT_FLAG_WINDOW2), HCA_STAT_OK);
	assert_int_equal(hca_window_claim(r->h->core, &user, &b), 0);
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_HW2SW_MPT), WINDOW, 0, 0, 1);
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	hca_window_settle(r->h->core, b.new_key);
	/* binding again cannot delay the command: the claim is refused */
	assert_int_equal(hca_window_claim(r->h->core, &user, &b), HCA_SYND_MW_BIND);
	assert_int_equal(bound_to(r, REGION), 0);
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(r->h->core->vtp.mpt[WINDOW].state, HCA_MPT_FREE);
	assert_int_equal(bound_to(r, REGION), 0);
	/* bound while the command waits */
	assert_int_equal(window(r, WINDOW, RIG_PD, HCA_MPT_FLAG_WINDOW2), HCA_STAT_OK);
	assert_int_equal(hca_window_claim(r->h->core, &user, &b), 0);
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_HW2SW_MPT), WINDOW, 0, 0, 1);
	rig_poll(r);
	hca_window_bind(r->h->core, &user, &b);
	assert_int_equal(bound_to(r, REGION), 1);
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_int_equal(r->h->core->vtp.mpt[WINDOW].state, HCA_MPT_FREE);
	assert_int_equal(bound_to(r, REGION), 0);
	/* abandoned half way */
	assert_int_equal(window(r, WINDOW, RIG_PD, HCA_MPT_FLAG_WINDOW2), HCA_STAT_OK);
	assert_int_equal(hca_window_claim(r->h->core, &user, &b), 0);
	hca_window_settle(r->h->core, b.new_key);
	assert_int_equal(bound_to(r, REGION), 0);
	assert_int_equal(bind(r, &b), 0);
}

/* Memory of live regions cannot be detached. */
static void
detach_with_live_regions(void **state)
{
	struct rig *r = *state;
	uint64_t bus = (uintptr_t)r->user;

	rig_mr(r, REGION, RIG_PD, r->user + 3 * 4096 + 5, 4096);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus, RIG_BLOCK), -EBUSY);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus + 4096, RIG_BLOCK), -ENOENT);
	/* another window covers it: either can be detached, but not both */
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, bus + 3 * 4096, 8192), 0);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus, RIG_BLOCK), 0);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus + 3 * 4096, 8192), -EBUSY);
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, bus, RIG_BLOCK), 0);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus + 3 * 4096, 8192), 0);
	/* without regions it can be detached */
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, bus + (1 << 21), 4096), 0);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus + (1 << 21), 4096), 0);
	assert_int_equal(free_key(r, REGION), HCA_STAT_OK);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, bus, RIG_BLOCK), 0);
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, bus, RIG_BLOCK), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(another_domain),
		T(type1),
		T(type2),
		T(scattered),
		T(bad_binds_change_nothing),
		T(bad_windows_are_refused),
		T(freeing_waits_while_busy),
		T(detach_with_live_regions),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
