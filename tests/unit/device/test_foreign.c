/* SPDX-License-Identifier: BSD-3-Clause */

/* Foreign memory in the MPT: which regions are accepted, and what may lie in them. */

#include <errno.h>

#include "rig.h"
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

	r->h->cfg.foreign = nothing_there;
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
	r->h->cfg.foreign = NULL;
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
	assert_int_equal(r->h->vtp.mpt[9].state, HCA_MPT_FOREIGN);
	assert_null(r->h->vtp.mpt[9].base);
	assert_null(hca_vtp_check(&r->h->vtp, KEY(9), RIG_PD, 0, WHERE, 8));
	assert_non_null(hca_foreign_find(&r->h->vtp, KEY(9), RIG_PD, NULL, 0, WHERE, LEN));
	/* the window exists as long as the region, and queues cannot lie in it */
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, WHERE, LEN), -EBUSY);
	rig_fill_cqc(r, 2, 4, KEY(9));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 9, 0, 0), HCA_STAT_OK);
	assert_null(hca_foreign_find(&r->h->vtp, KEY(9), RIG_PD, NULL, 0, WHERE, LEN));
	assert_int_equal(hca_dma_detach(r->h, RIG_PAGE, WHERE, LEN), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dma_windows, setup, teardown),
		cmocka_unit_test_setup_teardown(regions, setup, teardown),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
