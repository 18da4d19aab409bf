/* SPDX-License-Identifier: BSD-3-Clause */

/* Foreign memory in the MPT: accepted regions, and the objects that may lie in them. */

#include <errno.h>
#include <string.h>

#include "../rig.h"
#include "vtp/foreign.h"

#define KEY(i) HCA_KEY_MAKE(0x2a, i, 0x33)
#define WHERE (HCA_BUS_FOREIGN | 0x40000u)
#define LEN (3u * 4096u)

static int
nothing_there(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	return -EFAULT;
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	r->h->core->cfg.foreign = nothing_there;
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

/*
 * Only if the composition can access such memory, only for clients, and not across the address bit.
 */
static void
dma_windows(void **state)
{
	struct rig *r = *state;

	assert_int_equal(hca_dma_attach(r->h, 0, WHERE, LEN), -EINVAL);
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, HCA_BUS_FOREIGN - 4096, 8192), -EINVAL);
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, WHERE, LEN), 0);
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, WHERE, LEN), 0);
	r->h->core->cfg.foreign = NULL;
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, WHERE, LEN), -EINVAL);
}

static void
regions(void **state)
{
	struct rig *r = *state;
	const uint8_t *at = (const uint8_t *)(uintptr_t)WHERE;
	uint32_t mtt = rig_mtt(r, at, 3), mixed = rig_mtt(r, at, 1);

	rig_mtt(r, r->user, 1); /* after the end */
	rig_fill_mpt(r, 9, RIG_PD, at, LEN, mtt);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 9), HCA_STAT_BAD_PARAM); /* no window */
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, WHERE, LEN), 0);
	rig_fill_mpt(r, 9, RIG_PD, at, 8192, mixed);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 9), HCA_STAT_BAD_PARAM); /* both kinds */
	rig_fill_mpt(r, 9, RIG_PD, at, LEN, mtt);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 9), HCA_STAT_OK);
	assert_int_equal(r->h->core->vtp.mpt[9].state, HCA_MPT_FOREIGN);
	assert_null(r->h->core->vtp.mpt[9].base);
	assert_null(hca_vtp_check(&r->h->core->vtp, KEY(9), RIG_PD, 0, WHERE, 8));
	assert_non_null(hca_foreign_find(&r->h->core->vtp, KEY(9), RIG_PD, NULL, 0, WHERE, LEN));
	/* the window exists as long as the region, and queues cannot lie in it */
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, WHERE, LEN), -EBUSY);
	rig_fill_cqc(r, 2, 4, KEY(9));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 9, 0, 0), HCA_STAT_OK);
	assert_null(hca_foreign_find(&r->h->core->vtp, KEY(9), RIG_PD, NULL, 0, WHERE, LEN));
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, WHERE, LEN), 0);
}

#define BREAK_NULL(X) \
	X(m->start = hca_cpu_to_be64(4096)) \
	X(m->length = hca_cpu_to_be64(4096)) \
	X(m->flags &= ~hca_cpu_to_be32(HCA_MPT_FLAG_REGION)) \
	X(m->flags &= ~hca_cpu_to_be32(HCA_ACCESS_LOCAL_WRITE)) \
	X(m->flags |= hca_cpu_to_be32(HCA_ACCESS_REMOTE_READ)) \
	X(m->flags |= hca_cpu_to_be32(HCA_ACCESS_REMOTE_WRITE)) \
	X(m->flags |= hca_cpu_to_be32(HCA_ACCESS_REMOTE_ATOMIC)) \
	X(m->flags |= hca_cpu_to_be32(HCA_ACCESS_ZERO_BASED)) \
	X(m->flags |= hca_cpu_to_be32(HCA_MPT_FLAG_BIND_ENABLE | HCA_ACCESS_MW_BIND))

static void
fill_null(struct rig *r)
{
	struct hca_mpt *m = (void *)r->in;

	rig_fill_mpt(r, 9, RIG_PD, NULL, 0, 0);
	m->flags =
		hca_cpu_to_be32(HCA_MPT_FLAG_REGION | HCA_MPT_FLAG_NULL | HCA_ACCESS_LOCAL_WRITE);
}

/* Every address, no memory, for local accesses only. */
static void
null_region(void **state)
{
	static const uint64_t somewhere[] = {0, 0x1234567, UINT64_MAX - 16};
	struct rig *r = *state;
	struct hca_mpt *m = (void *)r->in;
	const struct hca_vtp *v = &r->h->core->vtp;
	const struct hca_mpt_entry *e;
	uint8_t bytes[16], zeros[16] = {0};

	rig_remember(r, 0);
#define X(change) \
	fill_null(r); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 9), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, 0);
	BREAK_NULL(X)
#undef X
	fill_null(r);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 9), HCA_STAT_OK);
	for (size_t i = 0; i < 3; i++) {
		assert_null(hca_vtp_check(v, KEY(9), RIG_PD, 0, somewhere[i], 8));
		e = hca_foreign_find(v, KEY(9), RIG_PD, NULL, HCA_ACCESS_LOCAL_WRITE, somewhere[i],
				     16);
		assert_non_null(e);
		memset(bytes, 0x55, sizeof(bytes));
		assert_int_equal(hca_foreign_write(r->h->core, e, somewhere[i], bytes, 16), 0);
		assert_int_equal(hca_foreign_read(r->h->core, e, somewhere[i], bytes, 16), 0);
		assert_memory_equal(bytes, zeros, 16);
	}
	assert_null(hca_foreign_find(v, KEY(9), RIG_PD, NULL, 0, UINT64_MAX - 15, 17));
	assert_null(hca_foreign_find(v, KEY(9), RIG_PD, NULL, HCA_ACCESS_REMOTE_READ, 0, 8));
	assert_null(hca_foreign_find(v, KEY(9), RIG_PD + 2048, NULL, 0, 0, 8));
	rig_fill_cqc(r, 2, 4, KEY(9));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 9, 0, 0), HCA_STAT_OK);
	assert_null(hca_foreign_find(v, KEY(9), RIG_PD, NULL, 0, 0, 8));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dma_windows, setup, teardown),
		cmocka_unit_test_setup_teardown(regions, setup, teardown),
		cmocka_unit_test_setup_teardown(null_region, setup, teardown),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
