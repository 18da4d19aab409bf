/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every allocation on the way to an object of verbs fails in its turn: the call says so, and leaves
 * nothing behind.
 */

#include "all.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

#define NEVER UINT64_MAX

/* Allocations of this thread until one fails; then it is NEVER again */
static _Thread_local uint64_t until = NEVER;

static bool
fails(void)
{
	if (until == NEVER || until-- != 0)
		return false;
	errno = ENOMEM;
	return true; /* until is NEVER now */
}

void *
malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *
calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(n, bytes);
}

void *
realloc(void *old, size_t bytes)
{
	return fails() ? NULL : __libc_realloc(old, bytes);
}

/* ---- objects ---- */

static void *
new_pd(struct all *all)
{
	return ibv_alloc_pd(all->context);
}

static int
drop_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *
new_td(struct all *all)
{
	struct ibv_td_init_attr attr = {0};

	return ibv_alloc_td(all->context, &attr);
}

static int
drop_td(void *td)
{
	return ibv_dealloc_td(td);
}

static void *
new_parent(struct all *all)
{
	struct ibv_parent_domain_init_attr attr = {.pd = all->pd};

	return ibv_alloc_parent_domain(all->context, &attr);
}

static void *
new_mr(struct all *all)
{
	return ibv_reg_mr(all->pd, all->memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
}

static int
drop_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *
new_null_mr(struct all *all)
{
	return ibv_alloc_null_mr(all->pd);
}

static void *
new_mw(struct all *all)
{
	return ibv_alloc_mw(all->pd, IBV_MW_TYPE_2);
}

static int
drop_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static void *
new_ah(struct all *all)
{
	struct ibv_ah_attr attr = {
		.grh = {.dgid = all->gid, .sgid_index = GID_INDEX, .hop_limit = 64},
		.is_global = 1,
		.port_num = PORT,
	};

	return ibv_create_ah(all->pd, &attr);
}

static int
drop_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

static void *
new_channel(struct all *all)
{
	return ibv_create_comp_channel(all->context);
}

static int
drop_channel(void *channel)
{
	return ibv_destroy_comp_channel(channel);
}

static void *
new_cq(struct all *all)
{
	return ibv_create_cq(all->context, 16, NULL, NULL, 0);
}

static void *
new_cq_ex(struct all *all)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};

	return ibv_create_cq_ex(all->context, &attr);
}

static int
drop_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *
new_srq(struct all *all)
{
	struct ibv_srq_init_attr attr = {NULL, {16, 1, 0}};

	return ibv_create_srq(all->pd, &attr);
}

static int
drop_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *
new_qp(struct all *all)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {16, 16, 4, 4, 64},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = all->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(all->context, &attr);
}

static int
drop_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *
new_xrcd(struct all *all)
{
	struct ibv_xrcd_init_attr attr = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, 0};

	return ibv_open_xrcd(all->context, &attr);
}

static int
drop_xrcd(void *xrcd)
{
	return ibv_close_xrcd(xrcd);
}

static void *
new_context(struct all *all)
{
	return ibv_open_device(all->list[0]);
}

static int
drop_context(void *context)
{
	return ibv_close_device(context);
}

static void *
new_list(struct all *all)
{
	return ibv_get_device_list(NULL);
}

static int
drop_list(void *list)
{
	ibv_free_device_list(list);
	return 0;
}

static const struct {
	const char *name;
	void *(*create)(struct all *all);
	int (*destroy)(void *object);
} kinds[] = {
	{"PD", new_pd, drop_pd},
	{"thread domain", new_td, drop_td},
	{"parent domain", new_parent, drop_pd},
	{"region", new_mr, drop_mr},
	{"null region", new_null_mr, drop_mr},
	{"window", new_mw, drop_mw},
	{"address handle", new_ah, drop_ah},
	{"channel", new_channel, drop_channel},
	{"CQ", new_cq, drop_cq},
	{"extended CQ", new_cq_ex, drop_cq},
	{"SRQ", new_srq, drop_srq},
	{"QP", new_qp, drop_qp},
	{"XRC domain", new_xrcd, drop_xrcd},
	{"context", new_context, drop_context},
	{"list of devices", new_list, drop_list},
};

/* The n-th allocation fails, from 0 on, until there is no n-th; returns their number. */
static unsigned int
create(struct all *all, size_t kind)
{
	for (unsigned int n = 0;; n++) {
		void *object;
		bool failed;
		int err;

		until = n;
		errno = 0;
		object = kinds[kind].create(all);
		err = errno;
		failed = until == NEVER;
		until = NEVER;
		/* a thread that cannot be started for lack of memory is EAGAIN */
		if (object == NULL && (!failed || (err != ENOMEM && err != EAGAIN)))
			printf("%s, allocation %u: errno %d\n", kinds[kind].name, n, err);
		CHECK(object != NULL || (failed && (err == ENOMEM || err == EAGAIN)));
		CHECK(object == NULL || kinds[kind].destroy(object) == 0);
		if (!failed)
			return n;
	}
}

int
main(void)
{
	struct all all;

	all_open(&all);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("%s: %u\n", kinds[i].name, create(&all, i));
	all_close(&all);
	puts("all allocations have failed");
	return 0;
}
