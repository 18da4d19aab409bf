/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The HCR state machine and commands about the device: success, errors, completion by event, reset.
 */

#include <string.h>

#include "ceu/ceu.h"
#include "../rig.h"

#define ROCE_CAPS ((uint32_t)(HCA_CEU_CAPS | HCA_CAP_RC | HCA_CAP_UC | HCA_CAP_UD | HCA_CAP_XRC))

static int
setup_raw(void **state)
{
	*state = rig_new(false);
	return 0;
}

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

/* Words of QUERY_DEV_LIM according to the interface decisions and the rig's configuration. */
static void
dev_lim_golden(void **state)
{
	struct rig *r = *state;
	static const uint32_t golden[] = {
		0x01000000, 0x00000000, 0x000f0016, 0x05040307, 0x14000404, 0x00080000,
		0x01000040, 0x00400040, 0x0f510011, 0x000c0000, 0x00100200, 0x00100200,
		0x00000100, 0x00000000, ROCE_CAPS,  0x00000001, 0x20200c0f, 0x01dc0700,
		16,	    16,		8,	    0x1e0c0000, 0x00000400, 0x00000000,
		0x08000040, 2048,	HCA_CTR_N,  1024,	0x1f100000,
	};

	memset(r->out, 0xee, 512);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_DEV_LIM, 0), HCA_STAT_OK);
	for (unsigned int i = 0; i < RTE_DIM(golden); i++)
		assert_int_equal(hca_get_be32(r->out + 4 * i), golden[i]);
	for (unsigned int i = 4 * RTE_DIM(golden); i < 256; i++)
		assert_int_equal(r->out[i], 0);
	assert_int_equal(r->out[256], 0xee);
}

static void
adapter_and_nop(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_ADAPTER, 0), HCA_STAT_OK);
	assert_memory_equal(r->out, "\0\x02\x53\x48\0\0\0\1\0\0\0\1\0\0\0\0", 16);
	assert_int_equal(hca_get_be64(r->out + 0x10), HCA_FW_VER_DEFAULT);
	assert_memory_equal(r->out + 0x18, "\0\0\0\xff\xfe\0\0\1", 8);
	assert_int_equal(rig_cmd(r, HCA_CMD_NOP, 0, HCA_NOP_IN_MODIFIER, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_NOP, 0, 3, 0, 0), HCA_STAT_BAD_PARAM);
}

/* Every opcode that does not exist, and every one that is not announced. */
static void
unknown_opcodes(void **state)
{
	static const struct {
		uint16_t op;
		uint32_t caps;
	} rows[] = {
#define X(name, opcode, in_len, out_len, flags, caps) {opcode, caps},
		HCA_CMD_LIST(X)
#undef X
	};
	static const bool known[HCA_HCR_OP_MAX + 1] = {
#define X(name, opcode, in_len, out_len, flags, caps) [opcode] = true,
		HCA_CMD_LIST(X)
#undef X
	};
	struct rig *r = *state;

	for (unsigned int op = 0; op <= HCA_HCR_OP_MAX; op++)
		if (!known[op])
			assert_int_equal(rig_mbox(r, (uint16_t)op, 0), HCA_STAT_BAD_OP);
	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		if (rows[i].caps & ~ROCE_CAPS)
			assert_int_equal(rig_mbox(r, rows[i].op, 0), HCA_STAT_BAD_OP);
}

static void
needs_init_hca(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 1), HCA_STAT_BAD_SYS_STATE);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, 5), HCA_STAT_BAD_SYS_STATE);
	assert_int_equal(rig_mbox(r, HCA_CMD_CLOSE_HCA, 0), HCA_STAT_BAD_SYS_STATE);
	rig_init_hca(r);
	assert_int_equal(rig_mbox(r, HCA_CMD_INIT_HCA, 0), HCA_STAT_BAD_SYS_STATE);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, 5), HCA_STAT_OK);
}

static void
init_hca_limits(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_init_hca *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->qpc_base = hca_cpu_to_be64(HCA_INIT_MAKE(0x1000, RIG_LOG_QPS + 1));
	assert_int_equal(rig_mbox(r, HCA_CMD_INIT_HCA, 0), HCA_STAT_EXCEED_LIM);
	assert_false(r->h->core->ctxmgt->ready);
}

/* Mailboxes must lie completely inside the driver's windows. */
static void
mailbox_domain(void **state)
{
	struct rig *r = *state;
	uint64_t end = (uintptr_t)r->driver + RIG_BLOCK;

	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_DEV_LIM, 0, 0, 0, (uintptr_t)r->user),
			 HCA_STAT_BAD_PARAM);
	assert_int_equal(r->user[0], 0);
	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_DEV_LIM, 0, 0, 0, end - 255), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_DEV_LIM, 0, 0, 0, end - 256), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_DEV_LIM, 0, 0, 0, UINT64_MAX - 10),
			 HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_SET_PKEY, 0, 0, (uintptr_t)r->user, 0),
			 HCA_STAT_BAD_PARAM);
}

static void
windows_join_and_go(void **state)
{
	struct rig *r = *state;
	struct hca *h = r->h;

	assert_int_equal(hca_dma_attach(h, 9, 0x10000, 0x1000), 0);
	assert_int_equal(hca_dma_attach(h, 9, 0x11000, 0x1000), 0);
	assert_true(hca_dma_allowed(h->core, 9, 0x10800, 0x1000));
	assert_false(hca_dma_allowed(h->core, 9, 0x10800, 0x1801));
	assert_false(hca_dma_allowed(h->core, 8, 0x10800, 1));
	assert_false(hca_dma_allowed(h->core, 9, 0x10800, 0));
	assert_int_equal(hca_dma_detach(h, 9, 0x11000, 0x1000), 0);
	assert_int_equal(hca_dma_detach(h, 9, 0x11000, 0x1000), -ENOENT);
	assert_false(hca_dma_allowed(h->core, 9, 0x10800, 0x1000));
	assert_true(hca_dma_allowed(h->core, 9, 0x10800, 0x800));
	assert_int_equal(hca_dma_attach(h, 2048, 0x10000, 0x1000), -EINVAL);
	assert_int_equal(hca_dma_attach(h, 1, UINT64_MAX - 1, 0x1000), -EINVAL);
}

static void
icm_map_and_unmap(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_map_icm *m = (void *)r->in;

	/* overlaps mapped pages: neither chunk of the pair is mapped */
	memset(m, 0, sizeof(*m));
	hca_map_icm_entry(m, 0)->virt = hca_cpu_to_be64(0x900000);
	hca_map_icm_entry(m, 0)->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE((uintptr_t)r->driver, 1));
	hca_map_icm_entry(m, 1)->virt = hca_cpu_to_be64(0x101000);
	hca_map_icm_entry(m, 1)->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE((uintptr_t)r->driver, 1));
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_ICM, 1, 2, (uintptr_t)m, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->ctxmgt->map[1].count, 4);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_ICM, 3, 1, (uintptr_t)m, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_ICM, 1, 0, (uintptr_t)m, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_ICM, 1, 257, (uintptr_t)m, 0), HCA_STAT_BAD_PARAM);
	/* a client's memory */
	hca_map_icm_entry(m, 0)->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE((uintptr_t)r->user, 1));
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_ICM, 1, 1, (uintptr_t)m, 0), HCA_STAT_BAD_PARAM);
	/* parts of chunks, then whole ones */
	assert_int_equal(rig_cmd(r, HCA_CMD_UNMAP_ICM, 1, 1, 0x100000, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_UNMAP_ICM, 1, 1, 0x700000, 0), HCA_STAT_BAD_PARAM);
	rig_eq(r, 0, 4);
	assert_int_equal(rig_cmd(r, HCA_CMD_UNMAP_ICM, 1, 1, 0x120000, 0), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(rig_cmd(r, HCA_CMD_UNMAP_ICM, 1, 2, 0x100000, 0), HCA_STAT_OK);
	assert_false(hca_icm_mapped(r->h->core, HCA_ICM_QPC, 0));
	assert_true(hca_icm_mapped(r->h->core, HCA_ICM_CQC, 0));
}

static void
address_tables(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_set_gid *g = (void *)r->in;
	struct hca_mbox_set_pkey *p = (void *)r->in;

	rig_gid(r);
	assert_non_null(hca_gid_get(r->h->core->ctxmgt, 0));
	g->index = hca_cpu_to_be32(HCA_GID_ENTRIES);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_BAD_INDEX);
	g->index = 0;
	g->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV6, 0, 0));
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_BAD_PARAM);
	g->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 1, 0xfff));
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_BAD_PARAM);
	assert_non_null(hca_gid_get(r->h->core->ctxmgt, 0));
	/* the same address in another VLAN is another entry; a duplicate is refused */
	g->index = hca_cpu_to_be32(1);
	g->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 0, 0));
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_BAD_PARAM);
	g->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 1, 5));
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_OK);
	assert_int_equal(hca_gid_get(r->h->core->ctxmgt, 1)->vlan_id, 5);
	memcpy(g->gid, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_BAD_PARAM);
	g->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV6, 0, 0));
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_OK);
	assert_int_equal(hca_gid_get(r->h->core->ctxmgt, 1)->ip_version, 6);
	g->flags = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_OK);
	assert_null(hca_gid_get(r->h->core->ctxmgt, 1));
	memset(p, 0, sizeof(*p));
	p->index = hca_cpu_to_be32(HCA_PKEY_ENTRIES);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_PKEY, 0), HCA_STAT_BAD_INDEX);
	p->index = hca_cpu_to_be32(1);
	p->pkey = hca_cpu_to_be32(0x8000);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_PKEY, 0), HCA_STAT_BAD_PARAM);
	p->pkey = hca_cpu_to_be32(0x1234);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_PKEY, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->pkey[1], 0x1234);
}

static void
mad_and_counters(void **state)
{
	struct rig *r = *state;
	struct hca_mad_smp *in = (void *)r->in, *out = (void *)r->out;
	struct hca_mbox_counters *c = (void *)r->out;

	memset(in, 0, sizeof(*in));
	in->base_version = 1;
	in->mgmt_class = HCA_MAD_CLASS_SUBN_LID;
	in->class_version = 1;
	in->method = HCA_MAD_METHOD_GET;
	in->attr_id = hca_cpu_to_be16(HCA_MAD_ATTR_PORT_INFO);
	assert_int_equal(rig_mbox(r, HCA_CMD_MAD_IFC, 1), HCA_STAT_OK);
	assert_int_equal(out->status, 0);
	assert_int_equal(((struct hca_mad_port_info *)out->data)->mtu_cap, HCA_MTU_4096);
	in->attr_id = hca_cpu_to_be16(HCA_MAD_ATTR_NODE_INFO);
	assert_int_equal(rig_mbox(r, HCA_CMD_MAD_IFC, 1), HCA_STAT_OK);
	assert_memory_equal(out->data + 0x1e, "\0\1\0\0\0\1\1\x02\x53\x48", 10);
	in->attr_id = hca_cpu_to_be16(HCA_MAD_ATTR_PKEY_TABLE);
	assert_int_equal(rig_mbox(r, HCA_CMD_MAD_IFC, 1), HCA_STAT_OK);
	assert_int_equal(hca_get_be16(out->data), 0xffff);
	in->method = 2;
	assert_int_equal(rig_mbox(r, HCA_CMD_MAD_IFC, 1), HCA_STAT_OK);
	assert_int_equal(hca_be16_to_cpu(out->status), HCA_MAD_STATUS_BAD_METHOD);
	assert_int_equal(rig_mbox(r, HCA_CMD_MAD_IFC, 2), HCA_STAT_BAD_PARAM);

	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_COUNTERS, 1, 0, 0, (uintptr_t)c), 0);
	assert_string_equal(c->name[0], "sent_pkts");
	assert_int_equal(
		rig_cmd(r, HCA_CMD_QUERY_COUNTERS, 0, HCA_CTR_hcr_commands, 0, (uintptr_t)c), 0);
	assert_true(hca_be64_to_cpu(c->value[0]) >= 5);
	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_COUNTERS, 0, HCA_CTR_N, 0, (uintptr_t)c),
			 HCA_STAT_BAD_INDEX);
}

/* The clock of the CQEs: that of the poll in which the command runs. */
static void
clock_command(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 3; i++) {
		uint64_t before = r->now;

		assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_CLOCK, 0, 0, 0, 0), HCA_STAT_OK);
		assert_in_range(r->out_param, before + 1, r->now);
		rig_poll(r);
	}
	assert_int_equal(rig_cmd(r, HCA_CMD_QUERY_CLOCK, 0, 1, 0, 0), HCA_STAT_BAD_PARAM);
}

/*
 * E = 1: go is cleared at acceptance, and an EQE with the token reports completion; a full EQ
 * delays it.
 */
static void
completion_by_event(void **state)
{
	struct rig *r = *state;

	rig_eq(r, 0, 1);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, HCA_MAP_EQ_UNMAP | 0,
				 HCA_EVENT_MASK(HCA_EVENT_EQ_OVERFLOW), 0),
			 HCA_STAT_OK);
	for (uint16_t t = 0; t < 3; t++) {
		rig_post(r, HCA_HCR_MAKE_CTRL(1, 0, HCA_CMD_NOP), t == 1 ? 0 : 0x1f, 0, 0,
			 0x700 + t);
		rig_poll(r);
		assert_false(rig_ctrl(r) & HCA_HCR_GO);
	}
	assert_int_equal(rig_eqe(r, 0)->type, HCA_EVENT_CMD);
	assert_int_equal(rig_eqe(r, 0)->owner, HCA_OWNER_SW);
	assert_int_equal(hca_le16_to_cpu(rig_eqe(r, 0)->cmd.token), 0x700);
	assert_int_equal(rig_eqe(r, 0)->status, HCA_STAT_OK);
	assert_int_equal(rig_eqe(r, 1)->status, HCA_STAT_BAD_PARAM);
	rig_poll(r);
	/* the third event waits for room, and so does the next command */
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_NOP), 0x1f, 0, 0, 1);
	rig_poll(r);
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	rig_eqe(r, 0)->owner = HCA_OWNER_HW;
	hca_bar_store(r->h->core->bar0, HCA_BAR0_EQ_CI(0), 1);
	rig_poll(r);
	rig_poll(r);
	assert_int_equal(hca_le16_to_cpu(rig_eqe(r, 0)->cmd.token), 0x702);
	assert_int_equal(rig_eqe(r, 0)->owner, HCA_OWNER_SW);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
}

static void
expect_empty(struct rig *r)
{
	struct hca_usage u;

	hca_usage(r->h, &u);
	assert_int_equal(u.qps, 0);
	assert_int_equal(u.cqs, 0);
	assert_int_equal(u.mpts, 0);
	assert_int_equal(u.messages, 0);
	assert_int_equal(u.records + u.full_records, 0);
	for (uint32_t i = 0; i < r->h->core->vtp.mtt_count; i++)
		assert_int_equal(r->h->core->vtp.mtt_ref[i], 0);
}

static void
reset_register(void **state)
{
	struct rig *r = *state;

	for (unsigned int round = 0; round < 3; round++) {
		rig_qp_world(r);
		for (uint32_t i = 3; i < 7; i++) {
			assert_int_equal(rig_to_init(r, i), HCA_STAT_OK);
			assert_int_equal(rig_to_rtr(r, i), HCA_STAT_OK);
			assert_int_equal(rig_to_rts(r, i), HCA_STAT_OK);
		}
		hca_bar_store(r->h->core->bar0, HCA_BAR0_RESET, HCA_RESET_START);
		for (unsigned int i = 0; i < 1000 && hca_bar_load(r->h->core->bar0, HCA_BAR0_RESET);
		     i++)
			rig_poll(r);
		assert_int_equal(hca_bar_load(r->h->core->bar0, HCA_BAR0_RESET), 0);
		expect_empty(r);
		assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, 5), HCA_STAT_BAD_SYS_STATE);
		r->next_mtt = 0;
		rig_init_hca(r);
	}
}

/* After a reset the next driver finds no GIDs and P_Keys of the previous one. */
static void
reset_forgets_addresses(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_set_pkey *m = (void *)r->in;

	rig_gid(r);
	memset(m, 0, sizeof(*m));
	m->pkey = hca_cpu_to_be32(0x8001);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_PKEY, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->pkey[0], 0x8001);
	assert_non_null(hca_gid_get(r->h->core->ctxmgt, 0));
	hca_bar_store(r->h->core->bar0, HCA_BAR0_RESET, HCA_RESET_START);
	for (unsigned int i = 0; i < 1000 && hca_bar_load(r->h->core->bar0, HCA_BAR0_RESET); i++)
		rig_poll(r);
	assert_int_equal(r->h->core->ctxmgt->pkey[0], 0xffff);
	assert_null(hca_gid_get(r->h->core->ctxmgt, 0));
}

static void
close_frees_everything(void **state)
{
	struct rig *r = *state;

	rig_qp_world(r);
	assert_int_equal(rig_to_init(r, 4), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_OK);
	expect_empty(r);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_BAD_SYS_STATE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RAW(f) cmocka_unit_test_setup_teardown(f, setup_raw, teardown)
		RAW(dev_lim_golden),	RAW(adapter_and_nop),	    RAW(needs_init_hca),
		RAW(init_hca_limits),	T(unknown_opcodes),	    T(mailbox_domain),
		T(windows_join_and_go), T(icm_map_and_unmap),	    T(address_tables),
		T(mad_and_counters),	T(clock_command),	    T(completion_by_event),
		T(reset_register),	T(reset_forgets_addresses), T(close_frees_everything),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
