/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Setting up of channels: two machines, whose messages the input delivers, loses and damages, and
 * to which it gives messages of its own. The input is a list of steps; the low bits of the first
 * byte select the step, bit 7 the end:
 *
 *	0  import
 *	1  unimport the latest
 *	2  MS16         time passes
 *	3  n            message n of those on their way arrives
 *	4  n AT8 XOR8   the same with a byte changed
 *	5  n            it is lost
 *	6  LEN8 bytes   a message: type, status, transaction (0: that of a link), TLVs; a REQ of an
 *			odd status has a good cookie
 *	7  TPN8 EVENT   an event of a TP
 */

#include <string.h>

#include "fuzz.h"
#include "ubcm_impl.h"

#define ENDS 2u
#define ON_THEIR_WAY 16u
#define LINKS 4u
#define LOG_TPS 4u

struct message {
	uint32_t to;
	size_t len;
	uint8_t bytes[UBCM_MSG_MAX];
};

static struct {
	uint64_t now, random;
	_Alignas(16) uint8_t mem[ENDS][16384];
	struct ubcm *cm[ENDS];
	uint32_t tpns[ENDS][1u << LOG_TPS]; /* that exist */
	uint32_t handle[ENDS];
	struct message message[ON_THEIR_WAY];
	uint32_t nmessages;
} world;

static const uint8_t eid[ENDS][16] = {{[15] = 1}, {[15] = 2}};

static uint32_t
end_of(const void *arg)
{
	return (uint32_t)(uintptr_t)arg;
}

static void
send_message(void *arg, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes, size_t len)
{
	struct message *m = &world.message[world.nmessages];
	struct ubcm_msg parsed;

	fuzz_check(len <= UBCM_MSG_MAX, "a message of %zu bytes", len);
	fuzz_check(ubcm_msg_parse(bytes, len, &parsed) == UBCM_DROP_none, "sends what it drops");
	if (world.nmessages == ON_THEIR_WAY)
		return;
	world.nmessages++;
	m->to = 1 - end_of(arg);
	m->len = len;
	memcpy(m->bytes, bytes, len);
}

static int
act(void *arg, const struct ubcm_action *a)
{
	uint32_t *tpns = world.tpns[end_of(arg)];

	if (a->type == UBCM_JOIN && world.handle[end_of(arg)] == a->from)
		world.handle[end_of(arg)] = a->link;
	for (uint32_t i = 0; i < a->ntps; i++) {
		uint32_t *place = &tpns[a->tp[i].tpn & ((1u << LOG_TPS) - 1)];

		if (a->type == UBCM_UP || a->type == UBCM_DOWN || a->type == UBCM_JOIN)
			break;
		if (a->type == UBCM_CREATE) {
			fuzz_check(*place == 0, "TP %#x made twice", a->tp[i].tpn);
			*place = a->tp[i].tpn;
		}
		fuzz_check(*place == a->tp[i].tpn, "act %u on no TP", a->type);
		if (a->type == UBCM_DESTROY)
			*place = 0;
	}
	return 0;
}

static uint64_t
draw(void *arg)
{
	world.random = world.random * 6364136223846793005u + 1442695040888963407u;
	return world.random ^ world.random >> 29;
}

static uint64_t
traffic(void *arg, const struct ubcm_tp *tp, uint32_t ntps)
{
	for (uint32_t i = 0; i < ntps; i++)
		fuzz_check(world.tpns[end_of(arg)][tp[i].tpn & ((1u << LOG_TPS) - 1)] == tp[i].tpn,
			   "traffic of no TP");
	return world.random & 1;
}

static const struct ubcm_ops ops = {
	.send = send_message,
	.act = act,
	.random = draw,
	.traffic = traffic,
};

static void
begin(void)
{
	memset(&world, 0, sizeof(world));
	for (uint32_t e = 0; e < ENDS; e++) {
		struct ubcm_config cfg = {
			.ops = &ops,
			.arg = (void *)(uintptr_t)e,
			.limits = {1024, 1024, 4096, 1024, HCA_TP_MODE_SACK, 3, 0},
			.timer = {0, 1, 7, 16, 1},
			.tps = 2 + e,
			.log_tps = LOG_TPS,
			.max_links = LINKS,
		};

		fuzz_check(ubcm_bytes(&cfg) <= sizeof(world.mem[e]), "too small");
		world.cm[e] = ubcm_init(world.mem[e], &cfg);
	}
}

static void
deliver(uint32_t n, bool lose)
{
	struct message m;

	if (world.nmessages == 0)
		return;
	n %= world.nmessages;
	m = world.message[n];
	world.message[n] = world.message[--world.nmessages];
	if (!lose)
		ubcm_input(world.cm[m.to], eid[m.to], eid[1 - m.to], m.bytes, m.len, world.now);
}

static void
damage(struct fuzz_input *in)
{
	uint32_t n = fuzz_u8(in), at = fuzz_u8(in);
	uint8_t x = fuzz_u8(in);

	if (world.nmessages == 0)
		return;
	world.message[n % world.nmessages].bytes[at] ^= x;
	deliver(n, false);
}

/* A good one, so that the code after it is reached */
static size_t
put_cookie(uint8_t *p, const struct ubcm_msg *m, uint32_t to)
{
	hca_put_be16(p, UBCM_TLV_COOKIE);
	hca_put_be16(p + 2, 8);
	hca_put_be64(p + 4, cm_cookie(world.cm[to]->key, m->destination, m->source, m->transaction,
				      world.now));
	return 12;
}

/* With the right version, length and ENTITY, so that the rest is looked at. */
static void
own_message(struct fuzz_input *in, uint32_t to)
{
	struct ubcm_msg m = {.type = (uint8_t)(1 + fuzz_u8(in) % (UBCM_TYPES - 1)),
			     .status = fuzz_u8(in),
			     .transaction = fuzz_u8(in)};
	uint8_t bytes[UBCM_MSG_MAX];
	const uint8_t *tlvs;
	size_t len, n, want = fuzz_u8(in);

	if (m.transaction < LINKS)
		m.transaction = world.cm[to]->link[m.transaction].transaction;
	memcpy(m.source, eid[1 - to], 16);
	memcpy(m.destination, eid[to], 16);
	(void)ubcm_msg_build(&m, bytes);
	len = UBCM_HEADER_BYTES + 36;
	if (m.type == UBCM_REQ && (m.status & 1) != 0)
		len += put_cookie(bytes + len, &m, to);
	tlvs = fuzz_bytes(in, want, &n);
	if (n != 0)
		memcpy(bytes + len, tlvs, n);
	hca_put_be16(bytes + 2, (uint16_t)(len + n));
	ubcm_input(world.cm[to], eid[to], eid[1 - to], bytes, len + n, world.now);
}

static void
event(struct fuzz_input *in, uint32_t e)
{
	uint32_t tpn = world.tpns[e][fuzz_u8(in) % (1u << LOG_TPS)];

	ubcm_event(world.cm[e], tpn, fuzz_u8(in) % (UBCM_DRAINED + 1u), world.now);
}

static void
pass(uint64_t ms)
{
	uint64_t until = world.now + ms * UBCM_MS;

	for (;;) {
		uint64_t a = ubcm_deadline(world.cm[0]), b = ubcm_deadline(world.cm[1]);

		if ((a < b ? a : b) > until)
			break;
		world.now = a < b ? a : b;
		ubcm_tick(world.cm[a < b ? 0 : 1], world.now);
	}
	world.now = until;
}

static void
step(struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	uint32_t e = what >> 7;

	switch (what & 7) {
	case 0:
		(void)ubcm_import(world.cm[e], eid[e], eid[1 - e], world.now, &world.handle[e]);
		break;
	case 1:
		(void)ubcm_unimport(world.cm[e], world.handle[e], world.now);
		break;
	case 2:
		pass(fuzz_u16(in));
		break;
	case 3:
		deliver(fuzz_u8(in), false);
		break;
	case 4:
		damage(in);
		break;
	case 5:
		deliver(fuzz_u8(in), true);
		break;
	case 6:
		own_message(in, e);
		break;
	default:
		event(in, e);
	}
}

static void
check(uint32_t e)
{
	const struct ubcm_counters *c = ubcm_counters(world.cm[e], world.now);
	uint64_t sum = 0, tps = 0;

	for (uint32_t i = 0; i < UBCM_DROPS; i++)
		sum += c->dropped[i];
	for (uint32_t i = 0; i < UBCM_TYPES; i++)
		sum += c->handled[i];
	fuzz_check(sum == c->received, "messages do not add up");
	ubcm_end(world.cm[e], world.now);
	for (uint32_t i = 0; i < 1u << LOG_TPS; i++)
		tps += world.tpns[e][i] != 0;
	fuzz_check(tps == 0 && c->begun == c->ended && world.cm[e]->used == 0 &&
			   world.cm[e]->share.rows == 0,
		   "something is left");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct ubcm_msg m;

	(void)ubcm_msg_parse(data, size, &m);
	begin();
	while (in.p < in.end)
		step(&in);
	for (uint32_t e = 0; e < ENDS; e++)
		check(e);
	return 0;
}
