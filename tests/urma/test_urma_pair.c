/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two HCAs in this process, programs' calls of URMA only: channels are set up by the HCAs' agents
 * when a peer is imported. In each layout, with threads of the HCAs and without.
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/urma.h>

#define BYTES (64u << 10)
#define PART (16u << 10)
#define CHANNELS 4u /* to a peer, unless configured */
#define TOKEN 0x5eedu
#define DEPTH 32u

struct side {
	struct softhca_context *lib;
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg;
	uint8_t *mem;
	/* of the peer */
	urma_target_jetty_t *to;
	urma_target_seg_t *to_seg;
};

static struct softhca_embed *embed;
static struct side side[2];

static const struct {
	enum softhca_layout layout;
	enum softhca_executor executor;
} ways[] = {
	{SOFTHCA_LAYOUT_RTC, SOFTHCA_EXECUTOR_MANUAL},
	{SOFTHCA_LAYOUT_RTC, SOFTHCA_EXECUTOR_THREADS},
	{SOFTHCA_LAYOUT_TXRX, SOFTHCA_EXECUTOR_THREADS},
	{SOFTHCA_LAYOUT_FULL, SOFTHCA_EXECUTOR_THREADS},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

#define OK(call) assert_int_equal(call, URMA_SUCCESS)

/* ---- objects ---- */

static void
open_side(struct side *s, unsigned int i)
{
	urma_jfc_cfg_t depth = {.depth = 4 * DEPTH};
	urma_jfs_cfg_t sends = {.depth = DEPTH,
				.trans_mode = URMA_TM_RM,
				.max_sge = 1,
				.max_inline_data = 64,
				.rnr_retry = 7,
				.err_timeout = 17};
	urma_jfr_cfg_t receives = {.depth = DEPTH,
				   .trans_mode = URMA_TM_RM,
				   .max_sge = 1,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = TOKEN};
	urma_seg_cfg_t seg = {.len = BYTES,
			      .token_value.token = TOKEN,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						    URMA_ACCESS_ATOMIC}};
	urma_jetty_cfg_t cfg;

	memset(s, 0, sizeof(*s));
	assert_int_equal(softhca_embed_open(embed, i, &s->lib), 0);
	s->ctx = softhca_urma_context(s->lib);
	assert_non_null(s->ctx);
	s->jfc = urma_create_jfc(s->ctx, &depth);
	sends.jfc = receives.jfc = s->jfc;
	cfg = (urma_jetty_cfg_t){.jfs_cfg = sends, .jfr_cfg = &receives};
	s->jetty = urma_create_jetty(s->ctx, &cfg);
	s->jfr = urma_create_jfr(s->ctx, &receives);
	s->mem = aligned_alloc(4096, BYTES);
	assert_true(s->jfc != NULL && s->jetty != NULL && s->jfr != NULL && s->mem != NULL);
	for (uint32_t n = 0; n < BYTES; n++)
		s->mem[n] = (uint8_t)(n * 7 + i);
	seg.va = (uintptr_t)s->mem;
	s->seg = urma_register_seg(s->ctx, &seg);
	assert_non_null(s->seg);
}

static void
close_side(struct side *s)
{
	OK(urma_unregister_seg(s->seg));
	OK(urma_delete_jetty(s->jetty));
	OK(urma_delete_jfr(s->jfr));
	OK(urma_delete_jfc(s->jfc));
	OK(urma_delete_context(s->ctx));
	assert_int_equal(softhca_close(s->lib), 0);
	free(s->mem);
}

static void
begin(unsigned int way)
{
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.hugepages = 2;
	cfg.executor = ways[way].executor;
	cfg.layout = ways[way].layout;
	cfg.mbufs = 512;
	cfg.seed = 1 + way;
	cfg.log_qps = 8;
	cfg.log_cqs = 6;
	cfg.log_srqs = 4;
	cfg.log_mpts = 8;
	cfg.log_mtts = 12;
	cfg.log_tps = 5;
	cfg.ub_ops = 512;
	cfg.ub = 1;
	if (softhca_embed_create(&cfg, &embed) != 0)
		fail_msg("%s", softhca_embed_last_error());
	open_side(&side[0], 0);
	open_side(&side[1], 1);
}

static void
end(void)
{
	close_side(&side[0]);
	close_side(&side[1]);
	assert_int_equal(softhca_embed_destroy(embed), 0);
}

static urma_target_jetty_t *
try_import(struct side *s, const urma_jetty_id_t *id)
{
	urma_rjetty_t jetty = {.jetty_id = *id,
			       .trans_mode = URMA_TM_RM,
			       .type = URMA_JETTY,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {TOKEN};

	return urma_import_jetty(s->ctx, &jetty, &token);
}

static bool
imported(struct side *s, const struct side *peer)
{
	urma_token_t token = {TOKEN};

	s->to = try_import(s, &peer->jetty->jetty_id);
	if (s->to == NULL)
		return false;
	s->to_seg =
		urma_import_seg(s->ctx, &peer->seg->seg, &token, 0, (urma_import_seg_flag_t){0});
	assert_non_null(s->to_seg);
	return true;
}

static void
import(struct side *s, const struct side *peer)
{
	if (!imported(s, peer))
		fail_msg("%s", softhca_urma_reason());
}

static void
unimport(struct side *s)
{
	OK(urma_unimport_seg(s->to_seg));
	OK(urma_unimport_jetty(s->to));
}

/* ---- requests ---- */

static urma_cr_t
next(struct side *s)
{
	urma_cr_t cr;
	int n;

	do {
		n = urma_poll_jfc(s->jfc, 1, &cr);
	} while (n == 0);
	assert_int_equal(n, 1);
	return cr;
}

static void
done(struct side *s, uint64_t id)
{
	urma_cr_t cr = next(s);

	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(cr.user_ctx, id);
}

static urma_sge_t
local(struct side *s, uint32_t at, uint32_t len)
{
	return (urma_sge_t){(uintptr_t)s->mem + at, len, s->seg};
}

static urma_sge_t
remote(struct side *s, const struct side *peer, uint32_t at, uint32_t len)
{
	return (urma_sge_t){(uintptr_t)peer->mem + at, len, s->to_seg};
}

static void
rw(struct side *s, const struct side *peer, urma_opcode_t opcode, uint64_t id)
{
	urma_sge_t mine = local(s, opcode == URMA_OPC_READ ? PART : 0, PART);
	urma_sge_t theirs = remote(s, peer, opcode == URMA_OPC_READ ? 0 : 2 * PART, PART);
	urma_jfs_wr_t wr = {.opcode = opcode,
			    .flag.bs.complete_enable = 1,
			    .tjetty = s->to,
			    .user_ctx = id};

	wr.rw.src = (urma_sg_t){opcode == URMA_OPC_READ ? &theirs : &mine, 1};
	wr.rw.dst = (urma_sg_t){opcode == URMA_OPC_READ ? &mine : &theirs, 1};
	OK(urma_post_jetty_send_wr(s->jetty, &wr, NULL));
}

static void
fetch_add(struct side *s, const struct side *peer, uint64_t id)
{
	urma_sge_t mine = local(s, 0, 8), theirs = remote(s, peer, 2 * PART, 8);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD,
			    .flag.bs.complete_enable = 1,
			    .tjetty = s->to,
			    .user_ctx = id};

	wr.faa.src = &mine;
	wr.faa.dst = &theirs;
	wr.faa.operand = 5;
	OK(urma_post_jetty_send_wr(s->jetty, &wr, NULL));
}

static void
receive(struct side *s, uint64_t id)
{
	urma_sge_t sge = local(s, 3 * PART, PART);
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = id};

	OK(urma_post_jetty_recv_wr(s->jetty, &wr, NULL));
}

static void
send(struct side *s, uint64_t id)
{
	urma_sge_t sge = local(s, 0, PART);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM,
			    .flag.bs.complete_enable = 1,
			    .tjetty = s->to,
			    .user_ctx = id};

	wr.send.src = (urma_sg_t){&sge, 1};
	wr.send.imm_data = id;
	OK(urma_post_jetty_send_wr(s->jetty, &wr, NULL));
}

static void
all_requests(struct side *s, struct side *peer)
{
	uint64_t old, now;
	urma_cr_t cr;

	rw(s, peer, URMA_OPC_WRITE, 1);
	done(s, 1);
	assert_memory_equal(peer->mem + 2 * PART, s->mem, PART);
	rw(s, peer, URMA_OPC_READ, 2);
	done(s, 2);
	assert_memory_equal(peer->mem, s->mem + PART, PART);
	memcpy(&old, peer->mem + 2 * PART, sizeof(old));
	fetch_add(s, peer, 3);
	done(s, 3);
	assert_memory_equal(s->mem, &old, sizeof(old));
	memcpy(&now, peer->mem + 2 * PART, sizeof(now));
	assert_int_equal(now, old + 5);
	receive(peer, 4);
	send(s, 5);
	cr = next(peer);
	assert_int_equal(cr.user_ctx, 4);
	assert_int_equal(cr.imm_data, 5);
	assert_int_equal(cr.completion_len, PART);
	assert_memory_equal(&cr.remote_id.eid, &s->ctx->eid, sizeof(cr.remote_id.eid));
	assert_int_equal(cr.remote_id.id, s->jetty->jetty_id.id);
	done(s, 5);
	assert_memory_equal(peer->mem + 3 * PART, s->mem, PART);
}

/* ---- tests ---- */

static void
test_requests(void **state)
{
	for (unsigned int way = 0; way < WAYS; way++) {
		begin(way);
		import(&side[0], &side[1]);
		all_requests(&side[0], &side[1]);
		/* the other way is there already, and still when the first is not used any more */
		import(&side[1], &side[0]);
		unimport(&side[0]);
		all_requests(&side[1], &side[0]);
		unimport(&side[1]);
		end();
	}
}

static void *
import_there(void *arg)
{
	import(&side[1], &side[0]);
	return NULL;
}

/* Both ends at once: one pair of channels serves both. */
static void
test_both(void **state)
{
	pthread_t thread;

	for (unsigned int way = 0; way < WAYS; way++) {
		begin(way);
		assert_int_equal(pthread_create(&thread, NULL, import_there, NULL), 0);
		import(&side[0], &side[1]);
		pthread_join(thread, NULL);
		all_requests(&side[0], &side[1]);
		all_requests(&side[1], &side[0]);
		assert_int_equal(((uintptr_t)side[0].to != 0) + ((uintptr_t)side[1].to != 0), 2);
		unimport(&side[0]);
		unimport(&side[1]);
		end();
	}
}

/* Over every channel of the group, which take requests in turn. */
static bool
all_channels_work(struct side *s, const struct side *peer)
{
	for (unsigned int i = 0; i < 2 * CHANNELS; i++) {
		rw(s, peer, URMA_OPC_WRITE, 8);
		if (next(s).status != URMA_CR_SUCCESS)
			return false;
	}
	return true;
}

/*
 * Import again until requests succeed: the agent may learn of a channel's death a little later than
 * the program, and clients that join the group meanwhile share its end.
 */
static void
import_again(struct side *s, struct side *peer)
{
	for (unsigned int failed = 0;; failed++) {
		if (imported(s, peer)) {
			if (all_channels_work(s, peer))
				return;
			unimport(s);
		}
		if (failed >= 1000)
			fail_msg("no channel to the peer: %s", softhca_urma_reason());
		usleep(1000);
	}
}

/*
 * Nothing arrives any more: requests fail when the channels have used up their retries, and the
 * next import makes new ones.
 */
static void
test_peer_dies(void **state)
{
	struct softhca_impairment nothing = {.drop = 1};
	urma_target_jetty_t *old;
	urma_cr_t cr;

	for (unsigned int way = 0; way < WAYS; way++) {
		begin(way);
		import(&side[0], &side[1]);
		all_requests(&side[0], &side[1]);
		assert_int_equal(softhca_embed_set_impairment(embed, &nothing), 0);
		rw(&side[0], &side[1], URMA_OPC_WRITE, 7);
		cr = next(&side[0]);
		assert_int_equal(cr.status, URMA_CR_ACK_TIMEOUT_ERR);
		assert_int_equal(cr.user_ctx, 7);
		assert_int_equal(softhca_embed_set_impairment(embed, NULL), 0);
		old = side[0].to;
		OK(urma_unimport_seg(side[0].to_seg));
		import_again(&side[0], &side[1]);
		all_requests(&side[0], &side[1]);
		OK(urma_unimport_jetty(old));
		unimport(&side[0]);
		end();
	}
}

/* An address without a host, and one of the other IP version: refused at once. */
static void
test_nobody(void **state)
{
	urma_jetty_id_t id;

	begin(0);
	id = side[1].jetty->jetty_id;
	id.eid.raw[15] = 99;
	errno = 0;
	assert_null(try_import(&side[0], &id));
	assert_int_equal(errno, EHOSTUNREACH);
	assert_non_null(strstr(softhca_urma_reason(), "no MAC address"));
	memset(id.eid.raw, 0, 12);
	assert_null(try_import(&side[0], &id));
	assert_int_equal(errno, EINVAL);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_peer_dies),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
