/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests that Linux rxe sent to another rxe are sent to our responder, with equal memory at equal
 * addresses: it must give the answers of the other rxe. It may acknowledge more than requested, and
 * it does not count credits; a table below lists the other differences.
 *
 *  test_replay CAPTURE...
 */

#include <stdio.h>

#include "../wire/pcap_read.h"
#include "abi_roce.h"
#include "engine/pkt.h"
#include "sim_link.h"
#include "sim_test.h"
#include "sim_victim.h"

#define PROGRAM "test_replay"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PSN 0x100u /* of the first request in every capture */
#define BYTES 65536u
#define PAGE 4096u
#define MANY 128u
#define RECV 32768u

static const struct capture {
	const char *name;
	uint32_t rkey, mtu; /* of the responder's memory; enum softhca_mtu */
	uint64_t addr;
	unsigned int receives; /* completions of them */
	uint32_t recv_len;     /* [RECV] */
	unsigned int late;     /* receives are posted after this number of answers */
	bool uc;
	uint8_t nak;	/* the standard's syndrome, if rxe uses another one */
	uint32_t psn;	/* of the first request [PSN] */
	uint8_t tclass; /* of requests */
} captures[] = {
	{"rc_cas", 0x1227, SOFTHCA_MTU_256, 0x7f2d9278b000, 0},
	{"rc_fadd", 0x14dd, SOFTHCA_MTU_256, 0x7f974ce89000, 0},
	{"rc_mixed", 0x1600, SOFTHCA_MTU_256, 0x7fa261252000, 4},
	{"ipv6_rc_mixed", 0x3012, SOFTHCA_MTU_256, 0x7f4169984000, 4},
	{"rc_read", 0xeff, SOFTHCA_MTU_256, 0x7f30560a8000, 0},
	{"rc_send", 0x294, SOFTHCA_MTU_256, 0x7fdb9f9f0000, 13},
	{"rc_send_imm", 0x4e7, SOFTHCA_MTU_256, 0x7f53330d0000, 5},
	{"rc_send_mtu1024", 0x28bd, SOFTHCA_MTU_1024, 0x7fb1b10fe000, 2},
	{"rc_write", 0xa37, SOFTHCA_MTU_256, 0x7f6aba735000, 0},
	{"rc_write_imm", 0xc6f, SOFTHCA_MTU_256, 0x7f622c537000, 4},
	{"rc_rnr", 0x184e, SOFTHCA_MTU_256, 0x7f5606157000, 2, .late = 2},
	{"rc_nak_send_len", 0x225b, SOFTHCA_MTU_256, 0x7f6c39e36000, 0, .recv_len = 64,
	 .nak = HCA_NAK_INVALID_REQ},
	{"rc_nak_write_rkey", 0x1cac, SOFTHCA_MTU_256, 0x7f967f90d000, 0},
	{"uc_all", 0x249a, SOFTHCA_MTU_256, 0x7f65a8745000, 8, .uc = true},
};

/* softhca answered rxe's marked WRITEs here. */
static const struct capture marked_writes = {"rc_write_ce",  0x22000a18, SOFTHCA_MTU_256,
					     0x557ef1ae5000, 0,		 .psn = 13732001,
					     .tclass = 3};

/* The contents of a frame without addresses and keys. */
struct answer {
	uint8_t opcode, syndrome;
	uint32_t psn, msn, len;
	uint64_t original;
	uint8_t copy[1024];
};

struct replay {
	struct sim *s;
	struct sim_injector x;
	const struct capture *c;
	struct pcap_file file;
	struct sim_pair_attr attr;
	struct softhca_qp *qp;
	struct softhca_cq *cq;
	struct softhca_mr *mr, *recv_mr;
	uint8_t *mem, *recv;
	struct hca_roce_path path;
	uint32_t asked[MANY], num_asked;
	struct read {
		uint64_t va;
		uint32_t psn;
	} reads[MANY];
	unsigned int num_reads;
	struct answer theirs[MANY], ours[MANY];
	uint8_t cnp[2][HCA_MBUF_DATA]; /* the last one: of the capture, of ours */
	unsigned int cnps[2];
	unsigned int num_theirs, num_ours;
};

static int num_files;
static char **files;

/* --- frames -------------------- */

/* From BTH to ICRC, after the TOS byte. */
static bool
note_cnp(struct replay *r, unsigned int ours, const uint8_t *frame, const struct roce_view *v)
{
	if (v->opcode != HCA_BTH_CNP)
		return false;
	r->cnps[ours]++;
	r->cnp[ours][0] = frame[v->l3 + 1];
	memcpy(r->cnp[ours] + 1, frame + v->bth, v->icrc - v->bth);
	return true;
}

static void
read_answer(const uint8_t *frame, const struct roce_view *v, struct answer *a)
{
	struct roce_headers h = {0};

	roce_get_headers(frame + v->bth, v->op, &h);
	*a = (struct answer){.opcode = v->opcode, .psn = v->psn, .len = v->payload_len};
	if (v->op->ext & HCA_EXT_AETH) {
		a->syndrome = h.aeth.syndrome;
		a->msn = h.aeth.msn;
		/* credits and RNR times may differ */
		if (HCA_AETH_KIND(a->syndrome) != HCA_AETH_NAK)
			a->syndrome = HCA_AETH_KIND(a->syndrome);
	}
	a->original = v->op->ext & HCA_EXT_ATOMICACKETH ? h.original : 0;
	memcpy(a->copy, frame + v->payload, v->payload_len);
}

/* Observe the responder's frames on the link, which are then lost. */
static bool
look(void *arg, uint8_t *frame, uint32_t len)
{
	struct replay *r = arg;
	struct roce_view v;

	if (roce_parse(frame, len, &v) != 0)
		return false;
	if (note_cnp(r, 1, frame, &v))
		return true;
	sim_check(r->s, r->num_ours < MANY && v.payload_len <= sizeof(r->ours[0].copy),
		  "too many answers");
	read_answer(frame, &v, &r->ours[r->num_ours++]);
	return true;
}

static bool
was_asked(const struct replay *r, uint32_t psn)
{
	for (uint32_t i = 0; i < r->num_asked; i++)
		if (r->asked[i] == psn)
			return true;
	return false;
}

static uint8_t *
memory_at(struct replay *r, uint64_t va, uint32_t len)
{
	sim_check(r->s, va >= r->c->addr && va - r->c->addr + len <= BYTES, "%s: address %#llx",
		  r->c->name, (unsigned long long)va);
	return r->mem + (va - r->c->addr);
}

static void
note_read(struct replay *r, const uint8_t *frame, const struct roce_view *v)
{
	struct roce_headers h = {0};

	roce_get_headers(frame + v->bth, v->op, &h);
	if (v->op->kind == HCA_PKT_READ_REQ)
		r->reads[r->num_reads++ % MANY] = (struct read){h.reth.va, v->psn};
	else if (v->op->kind == HCA_PKT_CMP_SWAP || v->op->kind == HCA_PKT_FETCH_ADD)
		r->reads[r->num_reads++ % MANY] = (struct read){h.atomic.va, v->psn};
}

/* restored, so that READs and ATOMICs return the first result */
static void
fill_memory(struct replay *r)
{
	for (unsigned int i = r->num_theirs; i-- > 0;) {
		const struct answer *a = &r->theirs[i];
		bool atomic = HCA_BTH_OPERATION(a->opcode) == HCA_BTH_RC_ATOMIC_ACK;
		unsigned int k = r->num_reads;
		uint64_t va;

		if (!atomic && a->len == 0)
			continue;
		while (k > 1 && r->reads[k - 1].psn > a->psn)
			k--;
		va = r->reads[k - 1].va +
		     (uint64_t)(a->psn - r->reads[k - 1].psn) * (128u << r->c->mtu);
		if (atomic)
			memcpy(memory_at(r, va, 8), &a->original, 8);
		else
			memcpy(memory_at(r, va, a->len), a->copy, a->len);
	}
}

/* Walk the capture; requests: only requests, else only answers. */
static void
each_frame(struct replay *r, bool requests,
	   void (*fn)(struct replay *r, const uint8_t *frame, const struct roce_view *v))
{
	struct roce_view v;
	struct pcap_frame f;

	r->file.pos = 24; /* after the header */
	while (pcap_next_frame(&r->file, &f) > 0) {
		sim_check(r->s, roce_parse(f.data, f.len, &v) == 0, "%s: a bad frame", r->c->name);
		if (!note_cnp(r, 0, f.data, &v) && v.op->is_response != requests)
			fn(r, f.data, &v);
	}
}

static void
note_theirs(struct replay *r, const uint8_t *frame, const struct roce_view *v)
{
	struct answer *a = &r->theirs[r->num_theirs++];

	sim_check(r->s, r->num_theirs < MANY, "too many answers");
	read_answer(frame, v, a);
	if (r->c->nak != 0 && HCA_AETH_KIND(a->syndrome) == HCA_AETH_NAK)
		a->syndrome = HCA_NAK_SYNDROME(r->c->nak);
}

static void
post_receives(struct replay *r)
{
	struct softhca_sge sge = {(uintptr_t)r->recv, r->c->recv_len ? r->c->recv_len : RECV,
				  r->recv_mr->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned int i = 0; i < 32; i++)
		sim_check(r->s, softhca_post_recv(r->qp, &wr, &bad) == 0, "post_recv");
}

static void
send_request(struct replay *r, const uint8_t *frame, const struct roce_view *v)
{
	uint8_t tail[HCA_MBUF_DATA], out[HCA_MBUF_DATA];
	struct roce_headers h = {0};
	struct sim_packet p = {
		.opcode = v->opcode,
		.pad = v->pad,
		.ackreq = v->ackreq,
		.se = v->se,
		.psn = v->psn,
		.len = v->icrc - v->bth - HCA_ROCE_BTH_LEN,
		.tail = tail + HCA_ROCE_BTH_LEN,
	};
	unsigned int before = r->num_ours;

	memcpy(tail, frame + v->bth, v->icrc - v->bth);
	roce_get_headers(tail, v->op, &h);
	/* an invalid key stays invalid */
	h.reth.rkey = h.reth.rkey - r->c->rkey + r->mr->rkey;
	h.atomic.rkey = h.atomic.rkey - r->c->rkey + r->mr->rkey;
	roce_put_headers(tail, v->op, &h);
	if (v->ackreq)
		r->asked[r->num_asked++ % MANY] = v->psn;
	sim_inject(&r->x, out, sim_craft(&r->x, &r->path, &p, out));
	sim_settle(r->s);
	if (r->num_ours != before && r->num_ours == r->c->late)
		post_receives(r);
}

/* --- objects -------------------- */

static void
modify(struct replay *r, uint32_t state, uint32_t mask)
{
	bool v6 = strncmp(r->c->name, "ipv6", 4) == 0;
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC,
		.path_mtu = r->c->mtu,
		.dest_qp_num = SIM_VICTIM_PEER,
		.rq_psn = r->c->psn != 0 ? r->c->psn : PSN,
		.sq_psn = PSN,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = {.port_num = 1,
			    .is_global = 1,
			    .hop_limit = 64,
			    .sgid_index = v6 ? SIM_GID_V6 : SIM_GID_V4},
	};

	sim_gid(0, a.ah_attr.sgid_index, a.ah_attr.dgid.raw);
	sim_check(r->s, softhca_modify_qp(r->qp, &a, mask | SOFTHCA_QP_STATE) == 0, "to %s: %s",
		  softhca_qp_state_str(state), softhca_last_error(NULL));
	r->path = (struct hca_roce_path){
		.udp.dmac = {2, 0, 0, 0, 0, 2},
		.udp.smac = {2, 0, 0, 0, 0, 1},
		.udp.hop_limit = 64,
		.udp.sport = 0xc123,
		.udp.tclass = r->c->tclass,
		.pkey = 0xffff,
		.qpn = r->qp->qp_num,
		.migreq = true,
		.udp.ip_version = v6 ? 6 : 4,
	};
	sim_gid(0, a.ah_attr.sgid_index, r->path.udp.sip);
	sim_gid(1, a.ah_attr.sgid_index, r->path.udp.dip);
}

static void
open_objects(struct replay *r)
{
	struct sim_side *side = &r->s->side[1];
	struct softhca_cq_init_attr ca = {.cqe = 256};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = r->c->uc ? SOFTHCA_QPT_UC : SOFTHCA_QPT_RC,
	};
	const uint32_t rights = SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC;
	void *page[BYTES / PAGE];

	r->mem = aligned_alloc(PAGE, BYTES);
	r->recv = aligned_alloc(PAGE, BYTES);
	for (unsigned int i = 0; i < COUNT(page); i++)
		page[i] = r->mem + (size_t)i * PAGE;
	r->mr = softhca_reg_mr_pages(side->pd, r->c->addr, BYTES, PAGE, page, COUNT(page), rights);
	r->recv_mr = softhca_reg_mr(side->pd, r->recv, BYTES, rights);
	r->cq = softhca_create_cq(side->ctx, &ca);
	qa.send_cq = qa.recv_cq = r->cq;
	r->qp = softhca_create_qp(side->pd, &qa);
	sim_check(r->s, r->mr != NULL && r->recv_mr != NULL && r->qp != NULL, "objects: %s",
		  softhca_last_error(side->ctx));
	modify(r, SOFTHCA_QPS_INIT,
	       SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
	modify(r, SOFTHCA_QPS_RTR,
	       SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
		       (r->c->uc ? 0 : SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER));
}

static void
close_objects(struct replay *r)
{
	int rc = softhca_destroy_qp(r->qp);

	rc |= softhca_destroy_cq(r->cq);
	rc |= softhca_dereg_mr(r->mr);
	rc |= softhca_dereg_mr(r->recv_mr);
	sim_check(r->s, rc == 0, "close");
	free(r->mem);
	free(r->recv);
}

/* --- comparing -------------------- */

static void
compare(struct replay *r)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->num_ours; i++) {
		const struct answer *o = &r->ours[i], *t = &r->theirs[n];

		if (HCA_BTH_OPERATION(o->opcode) == HCA_BTH_RC_ACK && o->syndrome == HCA_AETH_ACK &&
		    !was_asked(r, o->psn))
			continue;
		sim_check(r->s, n < r->num_theirs, "%s: answer %u, opcode %#x, PSN %#x: one more",
			  r->c->name, i, o->opcode, o->psn);
		sim_check(r->s,
			  o->opcode == t->opcode && o->psn == t->psn &&
				  o->syndrome == t->syndrome && o->msn == t->msn &&
				  o->len == t->len && o->original == t->original &&
				  memcmp(o->copy, t->copy, o->len) == 0,
			  "%s: answer %u: opcode %#x PSN %#x syndrome %#x MSN %u, %u bytes, %#llx; "
			  "rxe: opcode %#x PSN %#x syndrome %#x MSN %u, %u bytes, %#llx",
			  r->c->name, n, o->opcode, o->psn, o->syndrome, o->msn, o->len,
			  (unsigned long long)o->original, t->opcode, t->psn, t->syndrome, t->msn,
			  t->len, (unsigned long long)t->original);
		n++;
	}
	sim_check(r->s, n == r->num_theirs, "%s: %u answers, rxe gave %u", r->c->name, n,
		  r->num_theirs);
}

static unsigned int
received(struct replay *r)
{
	struct softhca_wc wc;
	unsigned int n = 0;

	while (softhca_poll_cq(r->cq, 1, &wc) == 1)
		n += wc.status == SOFTHCA_WC_SUCCESS;
	return n;
}

static void
replay(struct sim *s, const struct capture *c, const char *path)
{
	struct replay *r = calloc(1, sizeof(*r));

	sim_check(s, r != NULL && pcap_open_file(&r->file, path) == 0, "%s", path);
	r->s = s;
	r->c = c;
	sim_injector_open(s, &r->x);
	sim_link_lose(s->side[1].wire, look, r);
	open_objects(r);
	memset(r->mem, 0, BYTES);
	each_frame(r, true, note_read);
	each_frame(r, false, note_theirs);
	fill_memory(r);
	if (c->late == 0)
		post_receives(r);
	each_frame(r, true, send_request);
	compare(r);
	sim_check(s, received(r) == c->receives, "%s: receives", c->name);
	sim_link_lose(s->side[1].wire, NULL, NULL);
	close_objects(r);
	sim_injector_close(&r->x);
	pcap_close_file(&r->file);
	free(r);
}

/* A CNP of the capture comes to a QP of ours with dcqcn. */
static void
slows_down(struct replay *r)
{
	struct sim_side *side = &r->s->side[1];
	struct softhca_sge sge = {(uintptr_t)r->recv, 256, r->recv_mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = SOFTHCA_WR_SEND},
			       *bad;
	const struct sim_packet p = {
		.opcode = HCA_BTH_CNP,
		.len = HCA_CNP_PAYLOAD_LEN,
		.tail = r->cnp[0] + 1,
	};
	struct hca_congestion_limits before, after;
	uint8_t out[HCA_MBUF_DATA];

	modify(r, SOFTHCA_QPS_RTS,
	       SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
		       SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
	sim_check(r->s, hca_driver_set_congestion(side->drv, SOFTHCA_CONGESTION_DCQCN) == 0, "set");
	hca_qp_congestion(side->hca, r->qp->qp_num, &before);
	sim_inject(&r->x, out, sim_craft(&r->x, &r->path, &p, out));
	sim_settle(r->s);
	sim_check(r->s, sim_counter(r->s, 1, "rp_cnp_handled") == 1, "CNP not taken");
	sim_check(r->s, softhca_post_send(r->qp, &wr, &bad) == 0, "post_send");
	sim_run_for(r->s, 1000000);
	hca_qp_congestion(side->hca, r->qp->qp_num, &after);
	sim_check(r->s, before.rate_bps == 0 && after.rate_bps == 50000000000,
		  "%llu bit/s, then %llu", (unsigned long long)before.rate_bps,
		  (unsigned long long)after.rate_bps);
	sim_check(r->s, hca_driver_set_congestion(side->drv, SOFTHCA_CONGESTION_NONE) == 0, "set");
}

/* Marked data of rxe: the same CNP that it got, and all of it is acknowledged. */
static void
marked_in(const struct sim_config *cfg)
{
	const char *path = NULL;
	struct replay *r = calloc(1, sizeof(*r));
	struct sim *s = sim_open(cfg);
	uint64_t frames, cnps;

	for (int i = 0; i < num_files; i++)
		if (strstr(files[i], marked_writes.name) != NULL)
			path = files[i];
	sim_check(s, r != NULL && path != NULL && pcap_open_file(&r->file, path) == 0, "capture");
	r->s = s;
	r->c = &marked_writes;
	sim_injector_open(s, &r->x);
	sim_link_lose(s->side[1].wire, look, r);
	open_objects(r);
	each_frame(r, true, send_request);
	frames = sim_counter(s, 1, "np_ecn_marked_roce_packets");
	cnps = sim_counter(s, 1, "np_cnp_sent");
	sim_check(s, frames == 15 && cnps != 0 && cnps == r->cnps[1], "%u marks, %u CNPs",
		  (unsigned int)frames, r->cnps[1]);
	sim_check(s, cnps + sim_counter(s, 1, "np_cnp_suppressed") == frames, "marks lost");
	sim_check(s,
		  r->num_ours != 0 && r->ours[r->num_ours - 1].psn == marked_writes.psn + 14 &&
			  r->ours[r->num_ours - 1].syndrome == HCA_AETH_ACK,
		  "the last answer");
	/* without the number of the QP and the request for an ACK, TOS and BTH are those rxe got */
	memcpy(r->cnp[1] + 6, r->cnp[0] + 6, 3);
	sim_check(s, memcmp(r->cnp[0], r->cnp[1], 1 + HCA_ROCE_BTH_LEN + HCA_CNP_PAYLOAD_LEN) == 0,
		  "another CNP");
	memmove(r->cnp[0] + 1, r->cnp[0] + 1 + HCA_ROCE_BTH_LEN, HCA_CNP_PAYLOAD_LEN);
	slows_down(r);
	sim_link_lose(s->side[1].wire, NULL, NULL);
	close_objects(r);
	sim_injector_close(&r->x);
	pcap_close_file(&r->file);
	free(r);
	sim_close(s);
}
SIM_TEST(marked)

static void
replay_all_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	unsigned int done = 0;

	for (int i = 0; i < num_files; i++) {
		const char *name = strrchr(files[i], '/');

		name = name != NULL ? name + 1 : files[i];
		for (unsigned int k = 0; k < COUNT(captures); k++)
			if (strncmp(name, captures[k].name, strlen(name) - strlen(".pcap")) == 0 &&
			    strlen(captures[k].name) == strlen(name) - strlen(".pcap")) {
				replay(s, &captures[k], files[i]);
				done++;
			}
	}
	sim_check(s, done == COUNT(captures), "%u captures of %zu", done, COUNT(captures));
	sim_close(s);
}
SIM_TEST(replay_all)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_all),
		cmocka_unit_test(marked),
	};

	num_files = argc - 1;
	files = argv + 1;
	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
