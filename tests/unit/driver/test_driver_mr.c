/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory windows and re-registration in the driver: mailboxes, owners, order, failures. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_ctx.h"
#include "fake_hw.h"

#define PAGE 4096u
#define MEM_PAGES 64u

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static uint8_t *memory;
static uint32_t pdn;

static int
setup(void **state)
{
	struct hca_driver_config config = {.timeout_ms = 50, .quota = {.mrs = 4, .mtts = 16}};

	fake = fake_hw_create();
	memory = aligned_alloc(PAGE, MEM_PAGES * PAGE);
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_client_open(drv, NULL, &client), 0);
	assert_int_equal(hca_client_attach(client, (uintptr_t)memory, MEM_PAGES * PAGE), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &pdn, NULL), 0);
	return 0;
}

static int
teardown(void **state)
{
	hca_driver_destroy(drv);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fake->live[i], 0);
	free(memory);
	fake_hw_destroy(fake);
	return 0;
}

static struct hca_ctl_keys
make_mr(uint64_t off, uint64_t length, uint32_t access)
{
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory + off,
				.length = length,
				.pdn = pdn,
				.access = access};
	struct hca_ctl_keys keys;

	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, NULL), 0);
	return keys;
}

static const struct hca_mpt *
last_mpt(void)
{
	return (const void *)fake_last(fake, HCA_CMD_SW2HW_MPT)->mailbox;
}

static uint64_t
mtts(void)
{
	struct hca_driver_usage usage;

	hca_driver_usage(drv, &usage);
	return usage.mtts;
}

static void
test_windows(void **state)
{
	const struct hca_mpt *m;
	struct hca_client *other;
	uint32_t key, again;

	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_1}, &key, NULL),
			 0);
	m = last_mpt();
	assert_int_equal(hca_be32_to_cpu(m->flags), 0);
	assert_int_equal(hca_be32_to_cpu(m->key), key);
	assert_int_equal(hca_be32_to_cpu(m->pd), pdn);
	assert_int_equal(m->length | m->start | m->mtt_sz | m->page_size, 0);
	assert_int_equal(fake_last(fake, HCA_CMD_SW2HW_MPT)->in_modifier, HCA_KEY_INDEX(key));
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn), -EBUSY);
	/* not a region, or another client's; the tag may have changed meanwhile */
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, key), -EINVAL);
	assert_int_equal(hca_client_open(drv, NULL, &other), 0);
	assert_int_equal(call_drop(other, HCA_CTL_DEALLOC_MW, key), -EINVAL);
	assert_int_equal(hca_client_call(other, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_1}, &again,
					 NULL),
			 -EINVAL);
	hca_client_close(other);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, key ^ 1u << 25), -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, key ^ 0x5a), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, key), -EINVAL);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_2}, &again,
					 NULL),
			 0);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->flags), HCA_MPT_FLAG_WINDOW2);
	assert_int_not_equal(HCA_KEY_TAG(key ^ again), key ^ again);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, again), 0);
	for (uint32_t type = 0; type < 5; type++)
		if (type != HCA_CTL_MW_TYPE_1 && type != HCA_CTL_MW_TYPE_2)
			assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
							 &(struct hca_ctl_mw){pdn, type}, &key,
							 NULL),
					 -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, make_mr(0, 8, 0).rkey), -EINVAL);
}

/* Windows count as regions; a refused one leaves nothing behind. */
static void
test_window_quota(void **state)
{
	uint32_t key[4], more;

	fake->fail_op = HCA_CMD_SW2HW_MPT;
	fake->fail_status = HCA_STAT_BAD_PARAM;
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_1}, &more, NULL),
			 -EINVAL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
						 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_2},
						 &key[i], NULL),
				 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_2}, &more, NULL),
			 -ENOMEM);
	fake->fail_op = HCA_CMD_HW2SW_MPT;
	fake->fail_status = HCA_STAT_RESOURCE_BUSY;
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, key[0]), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_MW, key[0]), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_2}, &more, NULL),
			 0);
}

/* Closing a client destroys windows before the regions they may be bound to. */
static void
test_close_order(void **state)
{
	uint32_t windows = 0, index;
	uint32_t key;

	make_mr(0, PAGE, HCA_ACCESS_MW_BIND);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->flags),
			 HCA_MPT_FLAG_REGION | HCA_MPT_FLAG_BIND_ENABLE | HCA_ACCESS_MW_BIND);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_MW,
					 &(struct hca_ctl_mw){pdn, HCA_CTL_MW_TYPE_1}, &key, NULL),
			 0);
	make_mr(0, PAGE, HCA_ACCESS_MW_BIND);
	index = fake->count;
	hca_client_close(client);
	for (; index < fake->count; index++) {
		const struct fake_command *c = &fake->log[index % FAKE_LOG];

		if (c->op != HCA_CMD_HW2SW_MPT)
			continue;
		assert_int_equal(c->in_modifier == HCA_KEY_INDEX(key), windows == 0);
		windows++;
	}
	assert_int_equal(windows, 3);
}

static void
test_zero_based(void **state)
{
	const struct hca_mpt *m;

	make_mr(100, 5000, HCA_ACCESS_ZERO_BASED);
	m = last_mpt();
	assert_int_equal(hca_be64_to_cpu(m->start), 0);
	assert_int_equal(hca_be32_to_cpu(m->first_byte_offset), 100);
	assert_int_equal(hca_be64_to_cpu(m->length), 5000);
	assert_int_equal(hca_be32_to_cpu(m->mtt_sz), 2);
}

static int
change(struct hca_ctl_keys *keys, uint32_t flags, struct hca_ctl_mr mr)
{
	return hca_client_call(client, HCA_CTL_REREG_MR,
			       &(struct hca_ctl_rereg){keys->lkey, flags, mr}, keys, NULL);
}

static void
test_rereg(void **state)
{
	struct hca_ctl_keys keys = make_mr(0, PAGE, HCA_ACCESS_LOCAL_WRITE), old = keys;
	const struct hca_mpt *m;
	uint32_t second, count;

	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &second, NULL), 0);
	assert_int_equal(change(&keys, HCA_CTL_REREG_ACCESS, (struct hca_ctl_mr){.access = 0}), 0);
	m = last_mpt();
	assert_int_equal(keys.lkey, old.lkey);
	assert_int_equal(hca_be32_to_cpu(m->flags), HCA_MPT_FLAG_REGION);
	assert_int_equal(hca_be64_to_cpu(m->start), (uintptr_t)memory);
	assert_int_equal(mtts(), 1);
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION,
				(struct hca_ctl_mr){.va = (uintptr_t)memory + PAGE + 9,
						    .length = 3 * PAGE,
						    .access = HCA_ACCESS_LOCAL_WRITE}),
			 0);
	m = last_mpt();
	assert_int_not_equal(keys.lkey, old.lkey);
	assert_int_equal(HCA_KEY_INDEX(keys.lkey), HCA_KEY_INDEX(old.lkey));
	assert_int_equal(hca_be32_to_cpu(m->flags), HCA_MPT_FLAG_REGION);
	assert_int_equal(hca_be64_to_cpu(m->start), (uintptr_t)memory + PAGE + 9);
	assert_int_equal(hca_be64_to_cpu(m->length), 3 * PAGE);
	assert_int_equal(hca_be32_to_cpu(m->first_byte_offset), 9);
	assert_int_equal(mtts(), 4);
	assert_int_equal(change(&old, HCA_CTL_REREG_ACCESS, (struct hca_ctl_mr){0}), -EINVAL);
	old = keys;
	assert_int_equal(change(&keys, HCA_CTL_REREG_PD, (struct hca_ctl_mr){.pdn = second}), 0);
	assert_int_not_equal(keys.lkey, old.lkey);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->pd), second);
	assert_int_equal(hca_be64_to_cpu(last_mpt()->length), 3 * PAGE);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, second), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn), 0);
	/* refused without a command */
	count = fake->count;
#define REFUSED(err, flags, ...) \
	assert_int_equal(change(&keys, flags, (struct hca_ctl_mr){__VA_ARGS__}), err)
	REFUSED(-EINVAL, 0, 0);
	REFUSED(-EINVAL, 8, 0);
	REFUSED(-EINVAL, HCA_CTL_REREG_PD, .pdn = pdn);
	REFUSED(-EINVAL, HCA_CTL_REREG_ACCESS, .access = HCA_ACCESS_REMOTE_WRITE);
	REFUSED(-EOPNOTSUPP, HCA_CTL_REREG_ACCESS, .access = HCA_ACCESS_ON_DEMAND);
	REFUSED(-EINVAL, HCA_CTL_REREG_TRANSLATION, .va = UINT64_MAX - 5, .length = 10);
	REFUSED(-EPERM, HCA_CTL_REREG_TRANSLATION, .va = (uintptr_t)memory, .length = 65 * PAGE);
	REFUSED(-ENOMEM, HCA_CTL_REREG_TRANSLATION, .va = (uintptr_t)memory, .length = 20 * PAGE);
#undef REFUSED
	assert_int_equal(fake->count, count);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
	assert_int_equal(mtts(), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, second), 0);
}

/* Quotas count the entries that a region has; CHECK_MR asks them, and takes nothing. */
static void
test_entries(void **state)
{
	const struct {
		struct hca_ctl_need need;
		int error;
	} cases[] = {
		{{.entries = 7, .regions = 1}, 0},
		{{.entries = 8, .regions = 1}, -ENOMEM},
		{{.entries = 1, .regions = 3}, 0},
		{{.entries = 1, .regions = 4}, -ENOMEM},
		{{.entries = UINT64_MAX, .regions = 1}, -ENOMEM},
		{{.entries = 0, .regions = 0}, 0},
	};
	struct hca_ctl_keys keys = make_mr(16, 8 * PAGE, 0);
	uint32_t count = fake->count;

	assert_int_equal(mtts(), 9); /* of a quota of 16 */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(hca_client_call(client, HCA_CTL_CHECK_MR, &cases[i].need, NULL,
						 NULL),
				 cases[i].error);
	assert_int_equal(fake->count, count);
	assert_int_equal(mtts(), 9);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
}

/* An address for work requests of its own: kept until the translation changes. */
static void
test_iova(void **state)
{
	const uint64_t iova = UINT64_MAX - 2 * PAGE + 101; /* the region ends below 2^64 */
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory + 100, .length = PAGE, .pdn = pdn};
	struct hca_driver_mr_info info;
	struct hca_ctl_keys keys;

	mr.shift = iova - mr.va;
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, NULL), 0);
	assert_int_equal(hca_be64_to_cpu(last_mpt()->start), iova);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->first_byte_offset), 100);
	assert_int_equal(hca_driver_list_mrs(drv, HCA_KEY_INDEX(keys.lkey), &info, 1), 1);
	assert_int_equal(info.va, iova);
	assert_int_equal(change(&keys, HCA_CTL_REREG_ACCESS,
				(struct hca_ctl_mr){.access = HCA_ACCESS_ZERO_BASED}),
			 0);
	assert_int_equal(hca_be64_to_cpu(last_mpt()->start), 0);
	assert_int_equal(change(&keys, HCA_CTL_REREG_ACCESS, (struct hca_ctl_mr){0}), 0);
	assert_int_equal(hca_be64_to_cpu(last_mpt()->start), iova);
	mr.shift = PAGE;
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION, mr), 0);
	assert_int_equal(hca_be64_to_cpu(last_mpt()->start), mr.va + PAGE);
	mr.shift = 8;
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION, mr), -EINVAL);
	mr.shift = -(uint64_t)(uintptr_t)memory; /* the region would begin below 0 */
	mr.va = (uintptr_t)memory - 100;
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION, mr), -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
}

/* Length 0: no MTT is written, and the memory of the client is not looked up. */
static void
test_length_0(void **state)
{
	struct hca_ctl_mr mr = {.va = UINT64_MAX, .pdn = pdn};
	uint32_t count = fake->count;
	struct hca_ctl_keys keys;

	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, NULL), 0);
	assert_int_equal(fake->count, count + 1);
	assert_int_equal(hca_be64_to_cpu(last_mpt()->start), UINT64_MAX);
	assert_int_equal(last_mpt()->length | last_mpt()->mtt_sz, 0);
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION,
				(struct hca_ctl_mr){.va = (uintptr_t)memory, .length = 3 * PAGE}),
			 0);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->mtt_sz), 3);
	assert_int_equal(mtts(), 3);
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION, (struct hca_ctl_mr){.va = 7}), 0);
	assert_int_equal(last_mpt()->length | last_mpt()->mtt_sz, 0);
	assert_int_equal(mtts(), 1);
	mr.npages = 1;
	mr.page_size = PAGE;
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, NULL), -EINVAL);
}

static void
test_null(void **state)
{
	struct hca_driver_mr_info info;
	struct hca_ctl_keys keys;
	uint32_t second;

	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &second, NULL), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_NULL_MR, &second, &keys, NULL), 0);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->flags),
			 HCA_MPT_FLAG_REGION | HCA_MPT_FLAG_NULL | HCA_ACCESS_LOCAL_WRITE);
	assert_int_equal(last_mpt()->start | last_mpt()->length | last_mpt()->mtt_sz, 0);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->pd), second);
	assert_int_equal(hca_driver_list_mrs(drv, HCA_KEY_INDEX(keys.lkey), &info, 1), 1);
	assert_true(info.null);
	assert_int_equal(change(&keys, HCA_CTL_REREG_ACCESS, (struct hca_ctl_mr){0}), -EINVAL);
	assert_int_equal(change(&keys, HCA_CTL_REREG_PD, (struct hca_ctl_mr){.pdn = pdn}), -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, second), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, second), 0);
	/* refused: no such PD, the device, the quota */
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_NULL_MR, &second, &keys, NULL),
			 -EINVAL);
	fake->fail_op = HCA_CMD_SW2HW_MPT;
	fake->fail_status = HCA_STAT_BAD_PARAM;
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_NULL_MR, &pdn, &keys, NULL),
			 -EINVAL);
	assert_int_equal(mtts(), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_NULL_MR, &pdn, &keys, NULL),
				 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_NULL_MR, &pdn, &keys, NULL),
			 -ENOMEM);
}

static int
advise(uint64_t addr, uint64_t length, uint32_t pd, uint32_t lkey, uint32_t write)
{
	return hca_client_call(client, HCA_CTL_ADVISE_MR,
			       &(struct hca_ctl_advice){addr, length, pd, lkey, write, 0}, NULL,
			       NULL);
}

/* Of memory that the device does not map only; the device is not told. Advice is judged. */
static void
test_on_demand(void **state)
{
	uint64_t page[2] = {HCA_BUS_FOREIGN | 0x5000, HCA_BUS_FOREIGN | 0x9000};
	struct hca_ctl_extra extra = {.pages = page};
	struct hca_ctl_mr mr = {.va = 0x7010,
				.length = PAGE,
				.shift = 16 * PAGE,
				.page_size = PAGE,
				.npages = 2,
				.pdn = pdn,
				.access = HCA_ACCESS_ON_DEMAND};
	const uint64_t start = mr.va + mr.shift;
	struct hca_driver_mr_info info;
	struct hca_ctl_keys keys, other;
	uint32_t second;

	assert_int_equal(hca_client_attach(client, HCA_BUS_FOREIGN, HCA_BUS_FOREIGN_BYTES), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &second, NULL), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, &extra), 0);
	assert_int_equal(hca_be32_to_cpu(last_mpt()->flags), HCA_MPT_FLAG_REGION);
	assert_int_equal(hca_driver_list_mrs(drv, HCA_KEY_INDEX(keys.lkey), &info, 1), 1);
	assert_int_equal(info.access, HCA_ACCESS_ON_DEMAND);
	other = make_mr(0, PAGE, 0);
	assert_int_equal(change(&other, HCA_CTL_REREG_ACCESS,
				(struct hca_ctl_mr){.access = HCA_ACCESS_ON_DEMAND}),
			 -EOPNOTSUPP);
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION,
				(struct hca_ctl_mr){.va = (uintptr_t)memory, .length = PAGE}),
			 -EOPNOTSUPP);
	page[0] = (uintptr_t)memory;
	page[1] = (uintptr_t)memory;
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &other, &extra), -EOPNOTSUPP);

	assert_int_equal(advise(start, PAGE, pdn, keys.lkey, 0), 0);
	assert_int_equal(advise(start + PAGE, 0, pdn, keys.lkey, 0), 0);
	assert_int_equal(advise(start, PAGE + 1, pdn, keys.lkey, 0), -EFAULT);
	assert_int_equal(advise(start - 1, 1, pdn, keys.lkey, 0), -EFAULT);
	assert_int_equal(advise(start + 1, UINT64_MAX, pdn, keys.lkey, 0), -EFAULT);
	assert_int_equal(advise(start, 1, pdn, keys.lkey, 1), -EFAULT);
	assert_int_equal(advise(start, 1, second, keys.lkey, 0), -EFAULT);
	assert_int_equal(advise(start, 1, pdn ^ 1u << 20, keys.lkey, 0), -EINVAL);
	assert_int_equal(advise(start, 1, pdn, keys.lkey ^ 1, 0), -EFAULT);
	assert_int_equal(advise((uintptr_t)memory, 1, pdn, other.lkey, 0), 0);
	assert_int_equal(change(&keys, HCA_CTL_REREG_ACCESS,
				(struct hca_ctl_mr){.access = HCA_ACCESS_ON_DEMAND |
							      HCA_ACCESS_LOCAL_WRITE |
							      HCA_ACCESS_ZERO_BASED}),
			 0);
	assert_int_equal(advise(0, PAGE, pdn, keys.lkey, 1), 0);
	assert_int_equal(advise(start, 1, pdn, keys.lkey, 1), -EFAULT);
	/* without ON_DEMAND there is nothing to fetch */
	assert_int_equal(change(&keys, HCA_CTL_REREG_ACCESS, (struct hca_ctl_mr){0}), 0);
	assert_int_equal(advise(start, PAGE, pdn, keys.lkey, 0), 0);
}

/* Whichever command fails, the region is unchanged and usable. */
static void
test_rereg_fails(void **state)
{
	static const struct {
		uint32_t op, status;
		int err;
	} fail[] = {
		{HCA_CMD_WRITE_MTT, HCA_STAT_BAD_PARAM, -EINVAL},
		{HCA_CMD_HW2SW_MPT, HCA_STAT_RESOURCE_BUSY, -EBUSY},
		{HCA_CMD_SW2HW_MPT, HCA_STAT_BAD_PARAM, -EINVAL},
	};
	struct hca_ctl_keys keys = make_mr(0, 2 * PAGE, HCA_ACCESS_LOCAL_WRITE), old = keys;
	const struct hca_mpt before = *last_mpt();
	const struct hca_ctl_mr mr = {.va = (uintptr_t)memory + 8 * PAGE, .length = 6 * PAGE};

	for (size_t i = 0; i < sizeof(fail) / sizeof(fail[0]); i++) {
		fake->fail_op = fail[i].op;
		fake->fail_status = fail[i].status;
		assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION, mr), fail[i].err);
		assert_int_equal(keys.lkey, old.lkey);
		assert_int_equal(mtts(), 2);
		assert_memory_equal(last_mpt(), &before, sizeof(before));
		assert_int_equal(fake->live[LIVE_MPT], 6); /* with those of the EQs */
	}
	assert_int_equal(change(&keys, HCA_CTL_REREG_TRANSLATION, mr), 0);
	assert_int_equal(mtts(), 6);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, old.lkey), -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_windows), T(test_window_quota), T(test_close_order), T(test_zero_based),
		T(test_rereg),	 T(test_entries),      T(test_iova),	    T(test_length_0),
		T(test_null),	 T(test_on_demand),    T(test_rereg_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
