/* SPDX-License-Identifier: BSD-3-Clause */

/* Segments: regions of the library that a token row opens to peers; and those of peers. */

#include "urma_impl.h"

#define ACCESS_ALL \
	(URMA_ACCESS_LOCAL_ONLY | URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)
#define NO_TOKEN_IDS "a TokenID comes with its segment, from urma_register_seg()"
#define ACCESS_PEERS (URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)

static int
check_cfg(const urma_context_t *ctx, const urma_seg_cfg_t *cfg)
{
	if (ctx == NULL || cfg == NULL)
		return urma_fail(-EINVAL, URMA_NULL_CFG, (const void *)ctx, (const void *)cfg);
	if (cfg->flag.bs.reserved != 0 || (cfg->flag.bs.access & ~(uint32_t)ACCESS_ALL) != 0)
		return urma_fail(
			-EINVAL,
			"segment flags %#x: access is a set of %#x, and the reserved bits must be "
			"0",
			cfg->flag.value, ACCESS_ALL);
	if (cfg->flag.bs.dsva)
		return urma_fail(
			-EOPNOTSUPP,
			"flag dsva: shared virtual addresses are not offered; clear the flag");
	if (cfg->flag.bs.token_id_valid)
		return urma_fail(-EOPNOTSUPP, "flag token_id_valid: " NO_TOKEN_IDS);
	if (cfg->flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
		return urma_fail(-EOPNOTSUPP, URMA_NO_POLICY, cfg->flag.bs.token_policy,
				 URMA_TOKEN_PLAIN_TEXT);
	if ((cfg->flag.bs.access & URMA_ACCESS_LOCAL_ONLY) != 0 &&
	    (cfg->flag.bs.access & ACCESS_PEERS) != 0)
		return urma_fail(-EINVAL, "access %#x: LOCAL_ONLY (%#x) excludes rights of peers",
				 cfg->flag.bs.access, URMA_ACCESS_LOCAL_ONLY);
	return 0;
}

/* The device writes local memory whatever peers may do: Reads and receives end there. */
static uint32_t
region_access(const urma_seg_cfg_t *cfg)
{
	uint32_t access = cfg->flag.bs.access, flags = SOFTHCA_ACCESS_LOCAL_WRITE;

	flags |= (access & URMA_ACCESS_READ) != 0 ? SOFTHCA_ACCESS_REMOTE_READ : 0;
	flags |= (access & URMA_ACCESS_WRITE) != 0 ? SOFTHCA_ACCESS_REMOTE_WRITE : 0;
	flags |= (access & URMA_ACCESS_ATOMIC) != 0 ? SOFTHCA_ACCESS_REMOTE_ATOMIC : 0;
	return flags | (cfg->flag.bs.non_pin ? SOFTHCA_ACCESS_ON_DEMAND : 0);
}

static int
set_token(struct urma_segment *s, uint32_t flags, uint32_t first, uint32_t second)
{
	struct urma_ctx *ctx = urma_ctx_of(s->pub.urma_ctx);
	struct urma_ctl_token request = {
		.lkey = s->mr->lkey,
		.flags = HCA_TOKEN_EXPORTED | (s->check ? HCA_TOKEN_CHECK : 0) | flags,
		.value = {first, second},
	};

	return ctx->ctl->set_token(ctx->lib, &request);
}

static void
fill_segment(struct urma_segment *s, urma_context_t *ctx, const urma_seg_cfg_t *cfg)
{
	s->check = cfg->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
	s->token = s->check ? cfg->token_value.token : 0;
	s->exported = (cfg->flag.bs.access & ACCESS_PEERS) != 0;
	s->pub.urma_ctx = ctx;
	s->pub.user_ctx = cfg->user_ctx;
	s->pub.seg.ubva = (urma_ubva_t){.eid = ctx->eid, .va = s->mr->addr};
	s->pub.seg.len = cfg->len;
	s->pub.seg.attr.bs.token_policy = cfg->flag.bs.token_policy;
	s->pub.seg.attr.bs.access = cfg->flag.bs.access;
	s->pub.seg.token_id = HCA_KEY_TOKEN_ID(s->mr->rkey);
}

static struct softhca_mr *
register_memory(struct urma_ctx *ctx, const urma_seg_cfg_t *cfg)
{
	void *addr = (void *)(uintptr_t)cfg->va;

	if (cfg->flag.bs.user_iova)
		return softhca_reg_mr_iova(ctx->pd, addr, cfg->len, cfg->iova, region_access(cfg));
	return softhca_reg_mr(ctx->pd, addr, cfg->len, region_access(cfg));
}

/* Peers may use it when its token row says so, which is last. */
urma_target_seg_t *
urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *cfg)
{
	struct urma_segment *s;
	int err;

	if (check_cfg(ctx, cfg) != 0)
		return NULL;
	s = urma_object_new(urma_ctx_of(ctx), sizeof(*s), "a segment");
	if (s == NULL)
		return NULL;
	s->mr = register_memory(urma_ctx_of(ctx), cfg);
	if (s->mr == NULL) {
		err = -errno;
		goto err_free;
	}
	fill_segment(s, ctx, cfg);
	err = s->exported ? set_token(s, 0, s->token, 0) : 0;
	if (err != 0)
		goto err_dereg;
	return &s->pub;

err_dereg:
	(void)softhca_dereg_mr(s->mr);
err_free:
	urma_object_free(urma_ctx_of(ctx), s);
	errno = -err;
	return NULL;
}

urma_status_t
urma_unregister_seg(urma_target_seg_t *tseg)
{
	struct urma_segment *s = (struct urma_segment *)tseg;
	int err;

	if (tseg == NULL || s->mr == NULL)
		return urma_status(urma_fail(
			-EINVAL,
			"tseg is NULL or imported: expected a segment of urma_register_seg(); "
			"urma_unimport_seg() ends an import"));
	err = softhca_dereg_mr(s->mr);
	if (err == 0)
		urma_object_free(urma_ctx_of(tseg->urma_ctx), s);
	return urma_status(err);
}

/* ---- of peers ---- */

static int
check_import(const urma_context_t *ctx, const urma_seg_t *seg, const urma_token_t *token,
	     urma_import_seg_flag_t flag)
{
	if (ctx == NULL || seg == NULL)
		return urma_fail(-EINVAL,
				 "ctx %p, seg %p: expected a context and the segment of a peer",
				 (const void *)ctx, (const void *)seg);
	if (flag.bs.reserved != 0)
		return urma_fail(-EINVAL, "import flags %#x: the reserved bits must be 0",
				 flag.value);
	if (flag.bs.mapping)
		return urma_fail(
			-EOPNOTSUPP,
			"flag mapping: memory of peers is reached by requests only; clear the "
			"flag");
	if (seg->attr.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
		return urma_fail(-EOPNOTSUPP, URMA_NO_POLICY, seg->attr.bs.token_policy,
				 URMA_TOKEN_PLAIN_TEXT);
	if (seg->attr.bs.token_policy == URMA_TOKEN_PLAIN_TEXT && token == NULL)
		return urma_fail(
			-EINVAL,
			"token_value is NULL, and segment %#x has the token policy PLAIN_TEXT: "
			"pass the peer's token",
			seg->token_id);
	if (seg->token_id > HCA_TOKEN_ID_MASK || seg->ubva.va + seg->len < seg->ubva.va)
		return urma_fail(
			-EINVAL,
			"TokenID %#x, %llu bytes at %#llx: a TokenID is at most %#x, and the range "
			"must not wrap",
			seg->token_id, (unsigned long long)seg->len,
			(unsigned long long)seg->ubva.va, HCA_TOKEN_ID_MASK);
	return 0;
}

urma_target_seg_t *
urma_import_seg(urma_context_t *ctx, urma_seg_t *seg, urma_token_t *token_value, uint64_t addr,
		urma_import_seg_flag_t flag)
{
	struct urma_segment *s;

	if (check_import(ctx, seg, token_value, flag) != 0)
		return NULL;
	s = urma_object_new(urma_ctx_of(ctx), sizeof(*s), "a segment");
	if (s == NULL)
		return NULL;
	s->pub.seg = *seg;
	s->pub.urma_ctx = ctx;
	s->check = seg->attr.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
	s->token = s->check ? token_value->token : 0;
	return &s->pub;
}

urma_status_t
urma_unimport_seg(urma_target_seg_t *tseg)
{
	if (tseg == NULL || ((struct urma_segment *)tseg)->mr != NULL)
		return urma_status(urma_fail(
			-EINVAL,
			"tseg is NULL or registered here: expected a segment of urma_import_seg(); "
			"urma_unregister_seg() ends a registration"));
	urma_object_free(urma_ctx_of(tseg->urma_ctx), tseg);
	return URMA_SUCCESS;
}

/* ---- tokens ---- */

urma_token_id_t *
urma_alloc_token_id(urma_context_t *ctx)
{
	urma_fail(-EOPNOTSUPP, "urma_alloc_token_id(): " NO_TOKEN_IDS);
	return NULL;
}

urma_status_t
urma_free_token_id(urma_token_id_t *token_id)
{
	return urma_status(urma_fail(-EINVAL, "urma_free_token_id(): " NO_TOKEN_IDS));
}

static int
check_rotation(const struct urma_segment *s)
{
	if (s == NULL || s->mr == NULL || !s->exported || !s->check)
		return urma_fail(
			-EINVAL,
			"only the token of a registered segment with rights of peers and token "
			"policy PLAIN_TEXT can change");
	return 0;
}

urma_status_t
softhca_urma_rotate_token(urma_target_seg_t *tseg, urma_token_t second)
{
	struct urma_segment *s = (struct urma_segment *)tseg;
	int err = check_rotation(s);

	if (err == 0)
		err = set_token(s, HCA_TOKEN_SECOND, s->token, second.token);
	if (err != 0)
		return urma_status(err);
	s->second = second.token;
	s->rotating = true;
	return URMA_SUCCESS;
}

urma_status_t
softhca_urma_commit_token(urma_target_seg_t *tseg)
{
	struct urma_segment *s = (struct urma_segment *)tseg;
	int err = check_rotation(s);

	if (err == 0 && !s->rotating)
		err = urma_fail(
			-EINVAL,
			"segment %#x has no second token: softhca_urma_rotate_token() comes before "
			"the commit",
			s->pub.seg.token_id);
	if (err == 0)
		err = set_token(s, 0, s->second, 0);
	if (err != 0)
		return urma_status(err);
	s->token = s->second;
	s->rotating = false;
	return URMA_SUCCESS;
}
