/* SPDX-License-Identifier: BSD-3-Clause */

/* Protection domains that several clients share: rights, lifetime, and owners of memory. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi_ctx.h"
#include "driver_types.h"
#include "fake_hw.h"

#define PAGE 4096u
#define CLIENTS 3u
#define USER 1000u
#define PDS 4u

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client[CLIENTS];
static uint8_t *memory[CLIENTS];

static void
open_client(unsigned int i, uint32_t user)
{
	const struct hca_client_who who = {.user = user};

	assert_int_equal(hca_client_open(drv, &who, &client[i]), 0);
	memory[i] = aligned_alloc(PAGE, PAGE);
	assert_int_equal(hca_client_attach(client[i], (uintptr_t)memory[i], PAGE), 0);
}

static void
close_client(unsigned int i)
{
	hca_client_close(client[i]);
	free(memory[i]);
	client[i] = NULL;
}

static int
setup(void **state)
{
	struct hca_driver_config config = {.timeout_ms = 50, .quota = {.pds = PDS}};

	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		open_client(i, USER);
	return 0;
}

static int
teardown(void **state)
{
	struct hca_driver_usage u;

	for (unsigned int i = 0; i < CLIENTS; i++)
		if (client[i] != NULL)
			close_client(i);
	hca_driver_usage(drv, &u);
	assert_int_equal(u.pds, 0);
	assert_int_equal(u.mrs, 0);
	assert_null(drv->shared_pds);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
	return 0;
}

static struct hca_ctl_share
token_of(unsigned int i)
{
	struct hca_ctl_info info;

	assert_int_equal(hca_client_call(client[i], HCA_CTL_INFO, NULL, &info, NULL), 0);
	return info.share;
}

static int
join(unsigned int i, const struct hca_ctl_share *share)
{
	return hca_client_call(client[i], HCA_CTL_JOIN, share, NULL, NULL);
}

static int
import(unsigned int i, uint32_t pdn)
{
	return hca_client_call(client[i], HCA_CTL_IMPORT_PD, &pdn, NULL, NULL);
}

static uint32_t
alloc(unsigned int i)
{
	uint32_t pdn = 0;

	assert_int_equal(hca_client_call(client[i], HCA_CTL_ALLOC_PD, NULL, &pdn, NULL), 0);
	return pdn;
}

static int
dealloc(unsigned int i, uint32_t pdn)
{
	return call_drop(client[i], HCA_CTL_DEALLOC_PD, pdn);
}

/* A region of the client's memory, or of that of client `of` */
static int
reg(unsigned int i, unsigned int of, uint32_t pdn, struct hca_ctl_keys *keys)
{
	const struct hca_ctl_mr mr = {.va = (uintptr_t)memory[of], .length = PAGE, .pdn = pdn};
	struct hca_ctl_extra none = {0};

	return hca_client_call(client[i], HCA_CTL_REG_MR, &mr, keys, &none);
}

static int
find(unsigned int i, uint32_t pdn, uint32_t lkey, struct hca_ctl_found_mr *found)
{
	const struct hca_ctl_find_mr request = {.pdn = pdn, .index = HCA_KEY_INDEX(lkey)};

	return hca_client_call(client[i], HCA_CTL_IMPORT_MR, &request, found, NULL);
}

static void
join_all(void)
{
	const struct hca_ctl_share share = token_of(0);

	for (unsigned int i = 1; i < CLIENTS; i++)
		assert_int_equal(join(i, &share), 0);
}

/* Only with the token, and only the same user or root. */
static void
who_may(void **state)
{
	struct hca_ctl_share share = token_of(0), other = token_of(1);
	uint32_t pdn = alloc(0), own;

	assert_memory_not_equal(&share, &other, sizeof(share));
	assert_int_equal(import(1, pdn), -EINVAL);
	share.token[1] ^= 1;
	assert_int_equal(join(1, &share), -ENOENT);
	share.token[1] ^= 1;
	assert_int_equal(join(0, &share), -EBUSY); /* it has a PD */
	own = alloc(1);
	assert_int_equal(join(1, &share), -EBUSY);
	assert_int_equal(dealloc(1, own), 0);
	assert_int_equal(join(1, &share), 0);
	assert_int_equal(import(1, pdn + HCA_PD_MAKE(1, 0)), -EINVAL);
	assert_int_equal(import(1, pdn), 0);
	close_client(2);
	open_client(2, USER + 1);
	assert_int_equal(join(2, &share), -EACCES);
	assert_int_equal(import(2, pdn), -EINVAL);
	close_client(2);
	open_client(2, 0);
	assert_int_equal(join(2, &share), 0);
	assert_int_equal(import(2, pdn), 0);
}

/* Its own memory, its own account; the other's regions are found, and not touched. */
static void
whose(void **state)
{
	uint32_t pdn = alloc(0), page = client[1]->uar;
	struct hca_ctl_keys first, second;
	struct hca_ctl_found_mr found;
	const struct hca_mpt *mpt;

	join_all();
	assert_int_equal(find(1, pdn, 0, &found), -EINVAL);
	assert_int_equal(import(1, pdn), 0);
	assert_int_equal(reg(0, 0, pdn, &first), 0);
	assert_int_equal(reg(1, 0, pdn, &second), -EPERM);
	assert_int_equal(reg(1, 1, pdn, &second), 0);
	mpt = (const void *)fake_last(fake, HCA_CMD_SW2HW_MPT)->mailbox;
	assert_int_equal(hca_be32_to_cpu(mpt->domain), HCA_MPT_DOMAIN_MAKE(page));
	assert_int_equal(hca_be32_to_cpu(mpt->pd), pdn);
	assert_int_equal(find(1, pdn, first.lkey, &found), 0);
	assert_int_equal(found.keys.lkey, first.lkey);
	assert_int_equal(found.keys.rkey, first.rkey);
	assert_int_equal(found.length, PAGE);
	assert_int_equal(find(2, pdn, first.lkey, &found), -EINVAL);
	assert_int_equal(call_drop(client[1], HCA_CTL_DEREG_MR, first.lkey), -EINVAL);
	assert_int_equal(dealloc(1, pdn), -EBUSY);
	assert_int_equal(call_drop(client[1], HCA_CTL_DEREG_MR, second.lkey), 0);
	assert_int_equal(dealloc(1, pdn), 0);
	assert_int_equal(dealloc(0, pdn), -EBUSY);
	close_client(0);
	assert_int_equal(find(1, alloc(1), first.lkey, &found), -EINVAL);
}

/* A client whose page was that of the PD's first owner does not get the number. */
static void
outlives_its_maker(void **state)
{
	struct hca_ctl_share share = token_of(0);
	uint32_t pdn = alloc(0), page = client[0]->uar, n = 0;

	join_all();
	assert_int_equal(import(1, pdn), 0);
	close_client(0);
	assert_int_equal(import(2, pdn), 0);
	assert_int_equal(dealloc(1, pdn), 0);
	do {
		if (client[0] != NULL)
			close_client(0);
		open_client(0, USER);
	} while (client[0]->uar != page && ++n < 4096);
	assert_int_equal(client[0]->uar, page);
	assert_int_equal(import(0, pdn), -EINVAL); /* it has a token of its own */
	client[0]->next_pd = HCA_PD_NUMBER(pdn) - 1;
	assert_int_not_equal(alloc(0), pdn);
	assert_int_equal(dealloc(2, pdn), 0);
	client[0]->next_pd = HCA_PD_NUMBER(pdn) - 1;
	assert_int_equal(alloc(0), pdn);
	assert_int_equal(join(1, &share), 0); /* client 2 still has it */
}

/* Imported once more, it is given back as often; every one counts once. */
static void
counted(void **state)
{
	uint32_t pdn[PDS], own;

	for (unsigned int i = 0; i < PDS; i++)
		pdn[i] = alloc(0);
	join_all();
	own = alloc(1);
	for (unsigned int i = 0; i + 1 < PDS; i++)
		assert_int_equal(import(1, pdn[i]), 0);
	assert_int_equal(import(1, pdn[PDS - 1]), -ENOMEM);
	assert_int_equal(import(1, pdn[0]), 0);
	assert_int_equal(import(0, pdn[0]), 0);
	assert_int_equal(import(0, own), -ENOMEM);
	assert_int_equal(dealloc(1, pdn[0]), 0);
	assert_int_equal(import(1, pdn[PDS - 1]), -ENOMEM);
	assert_int_equal(dealloc(1, pdn[0]), 0);
	assert_int_equal(dealloc(1, pdn[0]), -EINVAL);
	assert_int_equal(import(1, pdn[PDS - 1]), 0);
	assert_int_equal(dealloc(0, pdn[0]), 0);
	assert_int_equal(dealloc(0, pdn[0]), 0);
	assert_int_equal(dealloc(0, pdn[0]), -EINVAL);
	assert_int_equal(import(0, own), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_may, setup, teardown),
		cmocka_unit_test_setup_teardown(whose, setup, teardown),
		cmocka_unit_test_setup_teardown(outlives_its_maker, setup, teardown),
		cmocka_unit_test_setup_teardown(counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
