/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Each operation of UB with data of 0 B to 8 MiB in 1 to 16 SGEs, over a good link and in each form
 * of packets: every byte is compared, and nothing is sent again.
 */

#include <sys/mman.h>

#include "ub_pair.h"

#define PROGRAM "sim-ub-sizes"

#define PART (9 * MIB)
#define MIB (1u << 20)
#define LARGEST (8 * MIB)
/* Parts of larger memories than those of the pair; each has room in front and behind. */
#define FROM 4096u
#define TO (PART + 4096u)
#define INTO (2 * PART + 4096u)
#define NOTIFY (3 * PART)
#define MEMORY (3 * PART + 4096u)

static struct ub_pair pair;

static const struct ub_pair_config forms[] = {
	{.gid = SIM_GID_V4},
	{.gid = SIM_GID_V4, .small_mtu = true},
	{.gid = SIM_GID_V6},
	{.gid = SIM_GID_V6, .small_mtu = true},
};

static const urma_opcode_t opcodes[] = {URMA_OPC_WRITE, URMA_OPC_WRITE_IMM, URMA_OPC_WRITE_NOTIFY,
					URMA_OPC_READ,	URMA_OPC_SEND,	    URMA_OPC_SEND_IMM};

static const uint32_t lengths[] = {0,	 1,    3,    64,    1000,  1023,  1024,	  1025, 4095,
				   4096, 4097, 9000, 65535, 65536, 65537, 200001, MIB};

/* ---- memory, of both sides ---- */

static uint8_t *memory[2];
static urma_target_seg_t *usual[2], *usual_peers[2];

static uint8_t *
map(struct ub_pair *p)
{
	struct sim_rng rng = {1};
	void *at = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sim_check(p->s, at != MAP_FAILED, "no memory");
	for (uint32_t i = 0; i < LARGEST; i += 8) {
		uint64_t v = sim_random(&rng);

		memcpy((uint8_t *)at + FROM + i, &v, sizeof(v));
	}
	return at;
}

static void
open_memory(struct ub_pair *p)
{
	urma_token_t token = {UB_PAIR_SEG_TOKEN};

	for (unsigned int i = 0; i < 2; i++) {
		struct ub_pair_side *sd = &p->side[i];
		urma_seg_cfg_t cfg = {.len = MEMORY,
				      .token_value = token,
				      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
						  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};

		memory[i] = memory[i] != NULL ? memory[i] : map(p);
		cfg.va = (uintptr_t)memory[i];
		usual[i] = sd->seg;
		sd->seg = urma_register_seg(sd->ctx, &cfg);
		sim_check(p->s, sd->seg != NULL, "segment: %s", softhca_urma_reason());
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct ub_pair_side *sd = &p->side[i];

		usual_peers[i] = sd->to_seg;
		sd->to_seg = urma_import_seg(sd->ctx, &p->side[1 - i].seg->seg, &token, 0,
					     (urma_import_seg_flag_t){0});
		sim_check(p->s, sd->to_seg != NULL, "import: %s", softhca_urma_reason());
	}
}

static void
close_memory(struct ub_pair *p)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct ub_pair_side *sd = &p->side[i];

		sim_check(p->s, urma_unimport_seg(sd->to_seg) == URMA_SUCCESS, "unimport");
		sim_check(p->s, urma_unregister_seg(sd->seg) == URMA_SUCCESS, "unregister");
		sd->to_seg = usual_peers[i];
		sd->seg = usual[i];
	}
}

/* ---- data in pieces ---- */

/* The data's pieces follow each other in memory the other way round; some are empty. */
static void
cut(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t len, urma_sge_t *sge, uint32_t n)
{
	uint32_t left = len;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i + 1 == n ? left : sim_below(&p->rng, 2 * (left / (n - i)) + 2);

		k = RTE_MIN(k, left);
		left -= k;
		sge[i] = (urma_sge_t){(uintptr_t)memory[side] + at + left, k, p->side[side].seg};
	}
}

static const uint8_t *
flat(const urma_sge_t *sge, uint32_t n, uint8_t *buffer)
{
	uint8_t *at = buffer;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(at, (const void *)(uintptr_t)sge[i].addr, sge[i].len);
		at += sge[i].len;
	}
	return buffer;
}

struct message {
	urma_opcode_t opcode;
	uint32_t len, id;
	urma_sge_t own[UB_PAIR_SGES], theirs[UB_PAIR_SGES];
	uint32_t nown, ntheirs; /* theirs: of a receive; else one, which is remote */
	bool jfr, is_inline;
};

static bool
is_send(urma_opcode_t opcode)
{
	return opcode == URMA_OPC_SEND || opcode == URMA_OPC_SEND_IMM;
}

static void
check_data(struct ub_pair *p, const struct message *m)
{
	static uint8_t buffer[2][LARGEST];
	const uint8_t *a = flat(m->own, m->nown, buffer[0]);
	const uint8_t *b = flat(m->theirs, m->ntheirs, buffer[1]);
	uint32_t into = is_send(m->opcode) ? INTO : m->opcode == URMA_OPC_READ ? INTO : TO;
	const uint8_t *changed = memory[m->opcode != URMA_OPC_READ] + into;

	if (memcmp(a, b, m->len) != 0)
		ub_pair_same_bytes(p, a, b, m->len);
	UB_PAIR_EQ(p, changed[-1] | changed[m->len], 0);
}

/* ---- requests ---- */

static void
post_receive(struct ub_pair *p, const struct message *m)
{
	urma_sge_t own[UB_PAIR_SGES];
	urma_jfr_wr_t wr = {.src = {own, m->ntheirs}, .user_ctx = m->id};
	urma_status_t status;

	memcpy(own, m->theirs, sizeof(own));
	if (!is_send(m->opcode))
		wr.src.num_sge = 0;
	status = m->jfr ? urma_post_jfr_wr(p->side[1].jfr, &wr, NULL)
			: urma_post_jetty_recv_wr(p->side[1].jetty, &wr, NULL);
	sim_check(p->s, status == URMA_SUCCESS, "receive: %s", softhca_urma_reason());
}

static void
post(struct ub_pair *p, const struct message *m)
{
	urma_sge_t own[UB_PAIR_SGES], peers[2] = {m->theirs[0]};
	urma_jfs_wr_t wr = ub_pair_request(p, 0, m->opcode, m->id);

	memcpy(own, m->own, sizeof(own));
	peers[0].tseg = p->side[0].to_seg;
	peers[1] = (urma_sge_t){(uintptr_t)memory[1] + NOTIFY, 8, p->side[0].to_seg};
	wr.flag.bs.inline_flag = m->is_inline;
	if (is_send(m->opcode)) {
		wr.tjetty = m->jfr ? p->side[0].to_jfr : p->side[0].to_jetty;
		wr.send = (urma_send_wr_t){.src = {own, m->nown}, .imm_data = m->id};
	} else if (m->opcode == URMA_OPC_READ) {
		wr.rw = (urma_rw_wr_t){.src = {peers, 1}, .dst = {own, m->nown}};
	} else {
		wr.rw = (urma_rw_wr_t){.src = {own, m->nown},
				       .dst = {peers, m->opcode == URMA_OPC_WRITE_NOTIFY ? 2 : 1},
				       .notify_data = m->id};
	}
	ub_pair_post(p, 0, &wr);
}

/* Status and receiver of each error. */
static void
check_told(struct ub_pair *p, const struct message *m)
{
	uint64_t notified;
	urma_cr_t cr;

	if (m->opcode == URMA_OPC_WRITE_NOTIFY) {
		memcpy(&notified, memory[1] + NOTIFY, 8);
		UB_PAIR_EQ(p, notified, m->id);
	}
	if (!is_send(m->opcode) && m->opcode != URMA_OPC_WRITE_IMM)
		return;
	cr = ub_pair_received(p, 1, m->id, m->len);
	UB_PAIR_EQ(p, cr.opcode,
		   m->opcode == URMA_OPC_SEND	    ? URMA_CR_OPC_SEND
		   : m->opcode == URMA_OPC_SEND_IMM ? URMA_CR_OPC_SEND_WITH_IMM
						    : URMA_CR_OPC_WRITE_WITH_IMM);
	UB_PAIR_EQ(p, cr.imm_data, m->opcode == URMA_OPC_SEND ? 0 : m->id);
}

static void
transfer(struct ub_pair *p, urma_opcode_t opcode, uint32_t len, uint32_t sges, bool is_inline)
{
	static uint32_t id;
	struct message m = {.opcode = opcode, .len = len, .id = ++id, .is_inline = is_inline};
	bool read = opcode == URMA_OPC_READ;
	uint32_t shift = len < LARGEST ? id % 5 : 0;

	m.nown = sges;
	m.ntheirs = is_send(opcode) ? 1 + (sges + 6) % UB_PAIR_SGES : 1;
	m.jfr = is_send(opcode) && id % 2;
	cut(p, 0, read ? INTO : FROM + shift, len, m.own, m.nown);
	cut(p, 1, is_send(opcode) ? INTO : read ? FROM + shift : TO, len, m.theirs, m.ntheirs);
	memset(memory[!read] + (is_send(opcode) || read ? INTO : TO) - 1, 0, len + 2);
	if (is_send(opcode) || opcode == URMA_OPC_WRITE_IMM)
		post_receive(p, &m);
	post(p, &m);
	ub_pair_done(p, 0, m.id, URMA_CR_SUCCESS);
	check_told(p, &m);
	check_data(p, &m);
}

/* ---- tests ---- */

static void
in_form(const struct sim_config *cfg, unsigned int form, void (*fn)(struct ub_pair *p))
{
	struct ub_pair_config c = forms[form];

	c.sim = *cfg;
	ub_pair_open(&pair, &c);
	open_memory(&pair);
	fn(&pair);
	UB_PAIR_EQ(&pair, ub_pair_again(&pair), 0);
	UB_PAIR_EQ(&pair, ub_pair_timeouts(&pair), 0);
	close_memory(&pair);
	ub_pair_close(&pair);
}

#define IN_FORMS(n) \
	static void n##_in(const struct sim_config *cfg) \
	{ \
		for (unsigned int i = 0; i < RTE_DIM(forms); i++) \
			in_form(cfg, i, n##_of); \
	} \
	SIM_TEST(n)

/* Longer requests with a few numbers of SGEs only. */
static void
every_length_of(struct ub_pair *p)
{
	for (unsigned int k = 0; k < RTE_DIM(opcodes); k++)
		for (unsigned int i = 0; i < RTE_DIM(lengths); i++)
			for (uint32_t n = 1; n <= UB_PAIR_SGES; n += lengths[i] < MIB ? 1 : 5)
				transfer(p, opcodes[k], lengths[i], n, false);
}

static void
random_lengths_of(struct ub_pair *p)
{
	for (unsigned int k = 0; k < RTE_DIM(opcodes); k++)
		for (uint32_t n = 1; n <= UB_PAIR_SGES; n++)
			transfer(p, opcodes[k], sim_below(&p->rng, 20000), n, false);
}

static void
largest_of(struct ub_pair *p)
{
	for (unsigned int k = 0; k < RTE_DIM(opcodes); k++)
		transfer(p, opcodes[k], LARGEST, k % 2 ? UB_PAIR_SGES : 1, false);
}

/* Every length that a WQE holds. */
static void
inlines_of(struct ub_pair *p)
{
	for (unsigned int k = 0; k < RTE_DIM(opcodes); k++)
		for (uint32_t len = 0; opcodes[k] != URMA_OPC_READ && len <= UB_PAIR_INLINE; len++)
			transfer(p, opcodes[k], len, 1 + len % UB_PAIR_SGES, true);
}

/* ---- completion only after the data was read ---- */

static struct {
	struct ub_pair *p;
	const struct hca_icrc_ops *icrc;
	const uint32_t *done_seq; /* of the only TP */
	uint32_t begin, copied;
} watched;

/* After the completion the program may reuse the memory of the packets. */
static uint32_t
watched_copy(uint32_t seed, void *dst, const void *src, size_t n)
{
	uint32_t done = __atomic_load_n(watched.done_seq, __ATOMIC_ACQUIRE) - watched.begin;

	sim_check(watched.p->s, done <= watched.copied, "%u packets are done, %u are read", done,
		  watched.copied);
	watched.copied++;
	return watched.icrc->copy_crc(seed, dst, src, n);
}

static void
read_before_done_of(struct ub_pair *p)
{
	struct hca *h = p->side[0].h;
	struct hca_icrc_ops ops = *h->pipe[0].icrc;
	uint32_t packets = MIB / (p->cfg.small_mtu ? 1024 : 4096);

	watched.p = p;
	watched.icrc = h->pipe[0].icrc;
	watched.done_seq = &ub_pair_tp(p, 0, 1)->encap.done_seq;
	watched.begin = *watched.done_seq;
	watched.copied = 0;
	ops.copy_crc = watched_copy;
	h->pipe[0].icrc = &ops;
	transfer(p, URMA_OPC_WRITE, MIB, 1, false);
	h->pipe[0].icrc = watched.icrc;
	UB_PAIR_EQ(p, watched.copied, packets);
	UB_PAIR_EQ(p, *watched.done_seq - watched.begin, packets);
}

IN_FORMS(every_length)
IN_FORMS(read_before_done)
IN_FORMS(random_lengths)
IN_FORMS(largest)
IN_FORMS(inlines)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),	  cmocka_unit_test(read_before_done),
		cmocka_unit_test(random_lengths), cmocka_unit_test(inlines),
		cmocka_unit_test(largest),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
