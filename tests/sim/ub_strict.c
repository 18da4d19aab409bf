/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_strict.h"

#include "sim_link.h"

#define PSN_MASK 0xffffffu
#define W STRICT_WINDOW
#define ETH 14u
#define IP (x->ip) /* as the peer x has it */
#define UDP 8u
#define TPH (ETH + IP + UDP)
#define TAH (TPH + 16u)

#define RULE(x, condition, ...) sim_check((x)->p->s, condition, "strict peer: " __VA_ARGS__)

/* ---- bytes ---- */

static uint32_t
get(const uint8_t *p, unsigned int n)
{
	uint32_t v = 0;

	for (unsigned int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static uint64_t
get64(const uint8_t *p)
{
	return (uint64_t)get(p, 4) << 32 | get(p + 4, 4);
}

static void
put(uint8_t *p, unsigned int n, uint32_t v)
{
	while (n-- > 0) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

static uint32_t
by_bit(uint32_t v)
{
	for (unsigned int k = 0; k < 8; k++)
		v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0);
	return v;
}

static uint32_t
crc32(uint32_t crc, const uint8_t *p, uint32_t n)
{
	static uint32_t of_byte[256];

	for (uint32_t i = 0; of_byte[255] == 0; i++)
		of_byte[i] = by_bit(i);
	crc = ~crc;
	while (n-- > 0)
		crc = crc >> 8 ^ of_byte[(uint8_t)crc ^ *p++];
	return ~crc;
}

/* From the IP header to the last pad byte; variant fields as ones. */
static uint32_t
icrc(const struct ub_strict *x, const uint8_t *frame, uint32_t len)
{
	uint8_t head[40 + UDP];

	memcpy(head, frame + ETH, IP + UDP);
	if (IP == 20) {
		head[1] = head[8] = head[10] = head[11] = 0xff;
	} else { /* traffic class, flow label, hop limit */
		head[0] |= 0x0f;
		head[1] = head[2] = head[3] = head[7] = 0xff;
	}
	head[IP + 6] = head[IP + 7] = 0xff;
	return crc32(crc32(0, head, IP + UDP), frame + TPH, len - 4 - TPH);
}

static int32_t
ahead(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* ---- frames of the peer ---- */

static const struct hca_tp *
tp_of(const struct ub_strict *x)
{
	return &x->p->side[0].h->core->ub->tp[1];
}

static void
deliver(struct ub_strict *x, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(x->p->side[0].h->pipe[0].tx_pool);

	RULE(x, m != NULL, "no mbuf");
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	RULE(x, sim_link_inject(x->p->s->side[0].wire, m), "the link is full");
}

static const uint8_t eid[15] = {0x20, 0x01, 0x0d, 0xb8, 0, 0x77};

static void
put_ip(const struct ub_strict *x, uint8_t *f, uint32_t len)
{
	static const uint8_t eth[ETH] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	memcpy(f, eth, ETH);
	memset(f + ETH, 0, IP + UDP);
	if (IP == 20) {
		put(f + 12, 2, 0x0800);
		f[ETH] = 0x45;
		put(f + ETH + 2, 2, len - ETH);
		put(f + ETH + 6, 2, 0x4000);
		f[ETH + 8] = 64;
		f[ETH + 9] = 17;
		put(f + ETH + 12, 4, 0x0a4d0002);
		put(f + ETH + 16, 4, 0x0a4d0001);
		return;
	}
	put(f + 12, 2, 0x86dd);
	f[ETH] = 0x60;
	put(f + ETH + 4, 2, len - ETH - IP);
	f[ETH + 6] = 17;
	f[ETH + 7] = 64;
	memcpy(f + ETH + 8, eid, 15);
	f[ETH + 23] = 2;
	memcpy(f + ETH + 24, eid, 15);
	f[ETH + 39] = 1;
}

/*
 * RTPH and the headers after it; n bytes from TPH on are there already, pad of them for alignment.
 */
static uint32_t
seal(struct ub_strict *x, uint8_t *f, uint8_t op, uint32_t flags, uint32_t psn, uint32_t msn,
     uint32_t n, uint32_t pad)
{
	uint32_t len = TPH + n + 4;

	put_ip(x, f, len);
	put(f + ETH + IP, 2, 0xc123);
	put(f + ETH + IP + 2, 2, 4792);
	put(f + ETH + IP + 4, 2, len - ETH - IP);
	f[TPH] = (uint8_t)((flags & 2) << 6 | op);
	f[TPH + 1] = (uint8_t)(pad << 4);
	put(f + TPH + 2, 3, tp_of(x)->cfg.peer_tpn);
	put(f + TPH + 5, 3, tp_of(x)->cfg.own_tpn);
	f[TPH + 8] = (uint8_t)((flags & 1) << 7);
	put(f + TPH + 9, 3, psn);
	f[TPH + 12] = op == 2 ? x->tell : 0;
	put(f + TPH + 13, 3, msn);
	memset(f + TPH + n - pad, 0, pad);
	for (uint32_t v = icrc(x, f, len), i = 0; i < 4; i++, v >>= 8)
		f[len - 4 + i] = (uint8_t)v;
	return len;
}

static void
out(struct ub_strict *x, uint32_t psn)
{
	const struct ub_strict_sent *s = &x->sent[psn % W];

	if (x->lose.responses != 0 && --x->lose.responses == 0)
		return;
	/* behind a hole, which other modes have no answer for, nothing is owed */
	if (s->bytes[TPH] & 0x80 && ahead(psn, x->una) >= 0 && x->owed_since == 0 &&
	    x->mode == HCA_TP_MODE_SACK)
		x->owed_since = x->p->s->now;
	deliver(x, s->bytes, s->len);
}

/* A TP Packet: kept until it is acknowledged. last: bit 1; A: bit 0. Returns its PSN. */
static uint32_t
make(struct ub_strict *x, const uint8_t *atah, uint32_t head, const uint8_t *data, uint32_t n,
     uint32_t flags)
{
	uint32_t psn = x->next, pad = -n & 3;
	struct ub_strict_sent *s = &x->sent[psn % W];

	RULE(x, ahead(psn, x->una) < (int32_t)W, "side 0 acknowledges nothing");
	memcpy(s->bytes + TAH, atah, head);
	if (n != 0)
		memcpy(s->bytes + TAH + head, data, n);
	s->len = seal(x, s->bytes, 1, flags, psn, x->msn, 16 + head + n + pad, pad);
	x->next = (psn + 1) & PSN_MASK;
	if (flags & 2)
		x->msn = (x->msn + 1) & PSN_MASK;
	return psn;
}

/* TPNAK: side 0 is to go back to the expected packet. */
static void
refuse(struct ub_strict *x)
{
	uint8_t f[256];
	uint32_t len;

	if (x->nak)
		return;
	x->nak = true;
	if (x->lose.acks != 0 && --x->lose.acks == 0)
		return;
	len = seal(x, f, 2, 0, x->epsn, 0, 16, 0);
	f[TPH + 12] = 3 << 5;
	for (uint32_t v = icrc(x, f, len), i = 0; i < 4; i++, v >>= 8)
		f[len - 4 + i] = (uint8_t)v;
	deliver(x, f, len);
}

/* TPACK, or in mode SACK TPSACK of 64 bits with holes. */
static void
acknowledge(struct ub_strict *x)
{
	uint8_t f[256];
	uint32_t n = 16;
	bool holes = x->mode == HCA_TP_MODE_SACK && ahead(x->max_rcv, x->epsn) >= 0;

	x->unacked = 0;
	if (x->lose.acks != 0 && --x->lose.acks == 0)
		return;
	if (holes) {
		memset(f + TAH, 0, 4 + 8);
		put(f + TAH + 1, 3, x->max_rcv);
		for (uint32_t k = 0; k < 64; k++)
			if (k == 0 || (ahead(x->max_rcv, x->epsn + k - 1) >= 0 &&
				       x->got[(x->epsn + k - 1) % W]))
				f[TAH + 4 + k / 8] |= (uint8_t)(1u << k % 8);
		n += 12;
	}
	deliver(x, f,
		seal(x, f, holes ? 5 : 2, 0, (x->epsn - 1) & PSN_MASK, x->tell != 0 ? x->told : 0,
		     n, 0));
}

/* ---- requests ---- */

static void
atah_of(uint8_t *a, uint8_t op, const uint8_t *btah, uint8_t rspst, uint8_t rspinfo)
{
	memset(a, 0, 8);
	a[0] = op;
	memcpy(a + 2, btah + 2, 2);
	a[4] = (uint8_t)(rspst << 5 | rspinfo);
	put(a + 5, 3, get(btah + 5, 3) & 0x3fffff);
}

/* Whether the request is one that is not answered now. */
static bool
keep(struct ub_strict *x, const uint8_t *btah, const uint8_t *from, uint32_t len, uint32_t offset)
{
	if (x->silent == 0 || (get(btah + 5, 3) & 0xfffff) != x->silent)
		return false;
	RULE(x, x->kept_n < RTE_DIM(x->kept), "more requests than are kept");
	memcpy(x->kept[x->kept_n].btah, btah, 8);
	x->kept[x->kept_n].from = from;
	x->kept[x->kept_n].len = len;
	x->kept[x->kept_n++].offset = offset;
	return true;
}

static void
taack(struct ub_strict *x, const uint8_t *btah)
{
	uint8_t a[8];

	if (x->tell != 0 || keep(x, btah, NULL, 0, 0))
		return;
	atah_of(a, 0x11, btah, 0, 0);
	out(x, make(x, a, 8, NULL, 0, 3));
}

/* The last two packets in the wrong order. */
static void
read_response(struct ub_strict *x, const uint8_t *btah, const uint8_t *from, uint32_t n,
	      uint32_t offset)
{
	uint32_t packets = n == 0 ? 1 : (n + x->mtu - 1) / x->mtu, held = 0;

	if (keep(x, btah, from, n, offset))
		return;
	for (uint32_t i = 0; i < packets; i++) {
		uint32_t at = i * x->mtu, psn;
		uint8_t a[16];

		atah_of(a, 0x12, btah, 0, 0);
		put(a + 8, 4, get(btah + 2, 2));
		put(a + 12, 4, offset + at / 1024);
		psn = make(x, a, 16, from + at, RTE_MIN(n - at, x->mtu),
			   i + 1 == packets ? 3 : i % 8 == 7);
		if (i + 2 == packets) {
			held = psn;
			continue;
		}
		out(x, psn);
		if (i + 1 == packets && packets > 1)
			out(x, held);
	}
}

static void
atomic_response(struct ub_strict *x, const uint8_t *btah, const uint8_t *old, uint32_t n)
{
	uint8_t a[12], drawn[64];

	if (keep(x, btah, NULL, n, 0))
		return;
	atah_of(a, 0x13, btah, 0, 0);
	put(a + 8, 4, get(btah + 2, 2));
	for (uint32_t i = 0; i < n; i++)
		drawn[i] = old[n - 1 - i]; /* most significant byte first */
	out(x, make(x, a, 12, drawn, n, 3));
}

/* Of atomics, zeros: it is too late for them. */
void
ub_strict_answer(struct ub_strict *x, unsigned int n)
{
	static const uint8_t zeros[64];

	RULE(x, n <= x->kept_n, "%u requests were kept", x->kept_n);
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *btah = x->kept[i].btah;

		if (btah[0] == 0x06)
			read_response(x, btah, x->kept[i].from, x->kept[i].len, x->kept[i].offset);
		else if (btah[0] >= 0x07 && btah[0] <= 0x0f)
			atomic_response(x, btah, zeros, x->kept[i].len);
		else
			taack(x, btah);
	}
	x->kept_n -= n;
	memmove(x->kept, x->kept + n, x->kept_n * sizeof(x->kept[0]));
}

static uint8_t *
memory(struct ub_strict *x, uint64_t address, uint64_t n)
{
	uint64_t base = (uintptr_t)x->p->side[1].mem;

	RULE(x, address >= base && address + n <= base + UB_PAIR_MEM, "address %#lx",
	     (unsigned long)address);
	return x->p->side[1].mem + (address - base);
}

/* An operation, by its TPMSN; its packets come in any order. True: all of it has come. */
static bool
complete(struct ub_strict *x, uint32_t msn, uint32_t bytes, uint32_t total, bool last)
{
	__typeof__(x->op[0]) *o = &x->op[msn % W];

	if (!o->open || o->tpmsn != msn) {
		memset(o, 0, sizeof(*o));
		o->open = true;
		o->tpmsn = msn;
	}
	o->bytes += bytes;
	if (last) {
		o->ended = true;
		o->end = total;
	}
	return o->ended && o->bytes == o->end;
}

struct request {
	const uint8_t *btah, *at, *end; /* next header; end of the payload */
	uint32_t psn, tpmsn;
	bool last, first;
	uint8_t user_op; /* of load and store */
};

static void
token(struct ub_strict *x, struct request *r, uint32_t want)
{
	if (!(r->btah[1] & 0x08))
		return;
	RULE(x, get(r->at, 4) == want, "TokenValue %#x", get(r->at, 4));
	r->at += 4;
}

static void
executed(struct ub_strict *x, const struct request *r)
{
	x->requests[r->btah[0]]++;
	x->order[x->executed++ % RTE_DIM(x->order)] = get(r->btah + 2, 2);
}

static void
on_send(struct ub_strict *x, struct request *r)
{
	uint32_t offset = (get(r->at + 4, 4) & 0xffffff) * 1024, n;
	bool immediate = r->btah[0] == 0x01;

	RULE(x, r->btah[4] & 0x08, "a Send without MT_EN");
	RULE(x, !immediate || r->last, "immediate before the last packet");
	r->at += 8;
	if (immediate) {
		x->immediate = get64(r->at);
		RULE(x, get64(r->at + 8) == 0, "IMMETAH of a Send");
		r->at += 16;
	}
	token(x, r, UB_PAIR_SEND_TOKEN);
	n = (uint32_t)(r->end - r->at);
	memcpy(x->p->side[1].mem + UB_PAIR_RECV + offset, r->at, n);
	if (!complete(x, r->tpmsn, n, offset + n, r->last))
		return;
	executed(x, r);
	taack(x, r->btah);
}

static void
on_write(struct ub_strict *x, struct request *r)
{
	uint8_t op = r->btah[0];
	uint64_t address;
	uint32_t length, n, tc = 0, id;
	const uint8_t *note = NULL, *enables;

	if (op == 0x04) {
		tc = get(r->at, 4);
		r->at += 4;
	}
	address = get64(r->at);
	id = get(r->at + 8, 4) >> 8;
	length = get(r->at + 12, 4);
	RULE(x, id == x->p->side[1].seg->seg.token_id, "TokenID %#x", id);
	r->at += 16;
	if (op == 0x04 || op == 0x05) {
		RULE(x, r->last, "immediate or notify before the last packet");
		note = r->at;
		r->at += op == 0x04 ? 16 : 24;
	}
	token(x, r, UB_PAIR_SEG_TOKEN);
	enables = r->at;
	if (op == 0x14)
		r->at += length / 8;
	n = (uint32_t)(r->end - r->at);
	RULE(x, n == length || n == x->mtu || r->last, "%u of %u bytes", n, length);
	for (uint32_t i = 0; i < n; i++)
		if (op != 0x14 || enables[length / 8 - 1 - i / 8] >> i % 8 & 1)
			*memory(x, address + i, 1) = r->at[i];
	if (!complete(x, r->tpmsn, n, length, r->last))
		return;
	executed(x, r);
	if (op == 0x04) {
		RULE(x, (tc & 0xfffff) == x->p->side[1].jetty->jetty_id.id, "TC id %#x", tc);
		RULE(x, get(note + 8, 4) == UB_PAIR_SEND_TOKEN, "token of the queue");
		x->immediate = get64(note);
	} else if (op == 0x05) {
		RULE(x, get(note + 12, 4) == (r->btah[1] & 0x08 ? UB_PAIR_SEG_TOKEN : 0),
		     "Notify_TokenValue %#x", get(note + 12, 4));
		x->notified = get64(note + 16);
		memcpy(memory(x, get64(note), 8), &x->notified, 8);
	}
	taack(x, r->btah);
}

static void
on_fetch(struct ub_strict *x, struct request *r)
{
	uint8_t op = r->btah[0], old[64], *at;
	uint32_t length, offset = 0;
	uint64_t address;

	RULE(x, r->last && get(r->at, 4) == get(r->btah + 2, 2), "TAID or `last`");
	RULE(x, r->first, "two packets");
	r->at += 4;
	if (op == 0x06) {
		offset = get(r->at, 4);
		r->at += 4;
	}
	address = get64(r->at);
	length = get(r->at + 12, 4);
	r->at += 16;
	token(x, r, UB_PAIR_SEG_TOKEN);
	at = memory(x, address, length);
	executed(x, r);
	if (op == 0x06) {
		RULE(x, r->at == r->end, "a Read with payload");
		read_response(x, r->btah, at, length, offset);
		return;
	}
	RULE(x, address % length == 0 && r->end - r->at == 2 * (int32_t)length, "operands");
	memcpy(old, at, length);
	ub_strict_change(op, r->user_op, at, r->at, r->at + length, length);
	atomic_response(x, r->btah, old, op == 0x09 ? 0 : length);
}

static void
user_operation(struct ub_strict *x, struct request *r)
{
	uint32_t header = get(r->at, 4);

	RULE(x, r->btah[0] == 0x09 || r->btah[0] == 0x0a, "UDETAH with opcode %#x", r->btah[0]);
	RULE(x, (header & 0xff8fffff) == 0, "UDETAH is %#x", header);
	r->user_op = (uint8_t)(header >> 20);
	r->at += 4;
}

static void
execute(struct ub_strict *x, const uint8_t *f, uint32_t len, uint32_t psn)
{
	struct request r = {.btah = f + TAH,
			    .at = f + TAH + 8,
			    .end = f + len - 4 - (f[TPH + 1] >> 4 & 3),
			    .psn = psn,
			    .tpmsn = get(f + TPH + 13, 3),
			    .last = f[TPH] >> 7};

	r.first = !x->op[r.tpmsn % W].open || x->op[r.tpmsn % W].tpmsn != r.tpmsn;
	RULE(x, (r.btah[1] & 0xf6) == 0x10, "BTAH byte 1 is %#x", r.btah[1]);
	RULE(x, (r.btah[4] & 0x81) == 0 && (get(r.btah + 5, 3) & 0xe00000) == 0, "BTAH");
	if (r.btah[1] & 1)
		user_operation(x, &r);
	else
		RULE(x, r.btah[0] != 0x09 && r.btah[0] != 0x0a, "load or store without UDETAH");
	if (r.btah[0] <= 0x01)
		on_send(x, &r);
	else if (r.btah[0] == 0x06 || (r.btah[0] >= 0x07 && r.btah[0] <= 0x0f))
		on_fetch(x, &r);
	else
		on_write(x, &r);
}

/* ---- transport ---- */

/* The rules of each PSN: once made, a packet does not change. */
static void
check_new(struct ub_strict *x, const uint8_t *f, uint32_t len, uint32_t psn)
{
	uint32_t msn = get(f + TPH + 13, 3), payload;
	bool last = f[TPH] >> 7;
	const uint8_t *tah = f + TAH;

	RULE(x, psn == x->max_sent, "PSN %#x, next is %#x", psn, x->max_sent);
	RULE(x, ahead(psn, x->epsn) < (int32_t)W, "beyond the window");
	RULE(x, msn == x->tpmsn, "TPMSN %#x, next is %#x", msn, x->tpmsn);
	payload = len - TAH - 4;
	/* only Sends and Writes have several packets: 8 or 16 bytes of headers and more */
	RULE(x, last || (tah[0] <= 0x05 && payload >= x->mtu + 8 + 8 && payload <= x->mtu + 8 + 24),
	     "%u bytes behind the RTPH of a packet that is not the last", payload);
	x->seen[psn % W].valid = true;
	x->seen[psn % W].last = last;
	x->seen[psn % W].tpmsn = msn;
	x->seen[psn % W].len = len;
	x->seen[psn % W].sum = crc32(0, tah, len - TAH - 4);
	x->got[psn % W] = false;
	x->max_sent = (psn + 1) & PSN_MASK;
	if (last)
		x->tpmsn = (msn + 1) & PSN_MASK;
}

static void
check_again(struct ub_strict *x, const uint8_t *f, uint32_t len, uint32_t psn)
{
	x->again++;
	RULE(x,
	     x->seen[psn % W].len == len && x->seen[psn % W].tpmsn == get(f + TPH + 13, 3) &&
		     x->seen[psn % W].last == f[TPH] >> 7,
	     "PSN %#x is another packet when it is sent again", psn);
	RULE(x, x->seen[psn % W].sum == crc32(0, f + TAH, len - TAH - 4),
	     "PSN %#x has other bytes when it is sent again", psn);
	RULE(x, f[TPH + 8] & 0x80, "sent again without A");
}

static void
on_packet(struct ub_strict *x, const uint8_t *f, uint32_t len)
{
	uint32_t psn = get(f + TPH + 9, 3);
	bool now = f[TPH + 8] & 0x80 || f[TPH] & 0x80, hole;

	RULE(x, f[TPH + 12] == 0, "status in a TP Packet");
	x->packets++;
	if (ahead(psn, x->max_sent) >= 0)
		check_new(x, f, len, psn);
	else
		check_again(x, f, len, psn);
	if (x->lose.data != 0 && --x->lose.data == 0)
		return;
	if (ahead(psn, x->epsn) < 0 || x->got[psn % W]) {
		if (ahead(psn, x->epsn) < 0 || x->mode == HCA_TP_MODE_SACK)
			acknowledge(x);
		return;
	}
	if (x->mode == HCA_TP_MODE_DROP && psn != x->epsn) {
		refuse(x);
		return;
	}
	x->nak = false;
	x->got[psn % W] = true;
	x->max_rcv = ahead(psn, x->max_rcv) > 0 ? psn : x->max_rcv;
	hole = psn != x->epsn;
	while (ahead(x->max_sent, x->epsn) > 0 && x->got[x->epsn % W]) {
		x->got[x->epsn % W] = false;
		x->epsn = (x->epsn + 1) & PSN_MASK;
		x->unacked++;
	}
	if (ahead(x->max_rcv, x->epsn) < 0)
		x->max_rcv = (x->epsn - 1) & PSN_MASK;
	if (x->tell != 0 && f[TPH] & 0x80) {
		x->told = get(f + TPH + 13, 3);
		execute(x, f, len, psn);
		acknowledge(x);
		x->tell = 0;
		return;
	}
	if (hole ? x->mode == HCA_TP_MODE_SACK : now || x->unacked >= STRICT_EVERY)
		acknowledge(x);
	execute(x, f, len, psn);
}

/*
 * Side 0 sends an urgent acknowledgement in the loop that receives the packet, or in as many as it
 * passes workers: that of decap, that of TPR, that of encap.
 */
static uint64_t
at_once(const struct ub_strict *x)
{
	const struct sim *s = x->p->s;
	unsigned int workers = s->cfg.layout == HCA_LAYOUT_RTC	  ? 1
			       : s->cfg.layout == HCA_LAYOUT_TXRX ? 2
								  : 3;

	return workers * s->cfg.tick_ns + s->cfg.tick_ns / 5;
}

/* Side 0 acknowledges; packets that it reports missing are sent again. */
static void
on_ack(struct ub_strict *x, const uint8_t *f, uint32_t len, bool sack)
{
	uint32_t psn = get(f + TPH + 9, 3), bits, max;
	bool negative = x->mode == HCA_TP_MODE_DROP && f[TPH + 12] == 3 << 5;

	x->acks++;
	RULE(x, f[TPH + 12] == 0 || negative, "status in an acknowledgement: %#x", f[TPH + 12]);
	if (negative)
		psn = (psn - 1) & PSN_MASK; /* it names the expected one */
	RULE(x, get(f + ETH + IP, 2) == 0xc123, "an acknowledgement from another port");
	RULE(x, ahead(psn, x->una) >= -1 && ahead(x->next, psn) > 0, "acknowledges PSN %#x", psn);
	RULE(x, x->owed_since == 0 || x->p->s->now <= x->owed_since + at_once(x),
	     "acknowledged %lu ns after A or `last`", x->p->s->now - x->owed_since);
	x->una = (psn + 1) & PSN_MASK;
	x->owed_since = 0;
	if (!sack) {
		RULE(x, len == TAH + 4, "TPACK of %u bytes", len);
		for (uint32_t k = psn + 1; negative && ahead(x->next, k) > 0; k++)
			out(x, k & PSN_MASK);
		return;
	}
	RULE(x, x->mode == HCA_TP_MODE_SACK, "TPSACK in mode %u", x->mode);
	bits = 64u << (f[TAH] & 7);
	max = get(f + TAH + 1, 3);
	RULE(x, len == TAH + 4 + bits / 8 + 4, "TPSACK of %u bytes", len);
	RULE(x, ahead(max, psn + 1) > 0 && ahead(x->next, max) > 0, "MaxRcvPSN %#x", max);
	RULE(x, f[TAH + 4] & 1 && !(f[TAH + 4] & 2), "first bits of a TPSACK");
	for (uint32_t k = 1; k < bits && ahead(max, psn + k) > 0; k++)
		if (!(f[TAH + 4 + k / 8] >> k % 8 & 1))
			out(x, (psn + k) & PSN_MASK);
}

static void
check_ip(const struct ub_strict *x, const uint8_t *f, uint32_t len)
{
	RULE(x, len >= TAH + 4 && len % 4 == ETH % 4, "length %u", len);
	if (IP == 20) {
		RULE(x, get(f + 12, 2) == 0x0800 && f[ETH] == 0x45, "no IPv4");
		RULE(x, get(f + ETH + 2, 2) == len - ETH, "lengths");
		RULE(x, get(f + ETH + 6, 2) == 0x4000 && f[ETH + 9] == 17, "fragments or protocol");
		RULE(x, get(f + ETH + 12, 4) == 0x0a4d0001 && get(f + ETH + 16, 4) == 0x0a4d0002,
		     "addresses");
		return;
	}
	RULE(x, get(f + 12, 2) == 0x86dd && f[ETH] >> 4 == 6, "no IPv6");
	RULE(x, get(f + ETH + 4, 2) == len - ETH - IP && f[ETH + 6] == 17, "length or next header");
	RULE(x,
	     memcmp(f + ETH + 8, eid, 15) == 0 && f[ETH + 23] == 1 &&
		     memcmp(f + ETH + 24, eid, 15) == 0 && f[ETH + 39] == 2,
	     "addresses");
}

static void
check_frame(struct ub_strict *x, const uint8_t *f, uint32_t len)
{
	uint32_t pad = f[TPH + 1] >> 4 & 3, crc = 0;

	check_ip(x, f, len);
	RULE(x,
	     get(f + ETH + IP + 2, 2) == 4792 && get(f + ETH + IP + 6, 2) == 0 &&
		     get(f + ETH + IP + 4, 2) == len - ETH - IP,
	     "UDP");
	for (unsigned int i = 4; i-- > 0;)
		crc = crc << 8 | f[len - 4 + i];
	RULE(x, crc == icrc(x, f, len), "ICRC");
	RULE(x, (f[TPH + 1] & 0xcf) == 0, "version or NLP");
	for (uint32_t i = 0; i < pad; i++)
		RULE(x, f[len - 5 - i] == 0, "padding");
	RULE(x,
	     get(f + TPH + 2, 3) == tp_of(x)->cfg.own_tpn &&
		     get(f + TPH + 5, 3) == tp_of(x)->cfg.peer_tpn,
	     "TPNs");
}

static bool
take(void *arg, uint8_t *f, uint32_t len)
{
	struct ub_strict *x = arg;
	uint8_t op = f[TPH] & 0x7f;

	check_frame(x, f, len);
	RULE(x, op == 1 || op == 2 || op == 5, "opcode %u", op);
	if (op == 1)
		on_packet(x, f, len);
	else
		on_ack(x, f, len, op == 5);
	return true;
}

void
ub_strict_open(struct ub_strict *x, struct ub_pair *p)
{
	memset(x, 0, sizeof(*x));
	x->p = p;
	x->ip = p->cfg.gid == SIM_GID_V6 ? 40 : 20;
	x->mtu = p->cfg.small_mtu ? 1024 : 4096;
	x->mode = p->cfg.mode;
	x->epsn = x->max_sent = 0xfffff0;
	x->max_rcv = x->epsn - 1;
	x->tpmsn = x->msn = 1;
	x->next = x->una = 0xfffff1;
	sim_link_lose(p->s->side[0].wire, take, x);
}

void
ub_strict_check(struct ub_strict *x)
{
	RULE(x, x->una == x->next, "PSN %#x is not acknowledged, next is %#x", x->una, x->next);
	RULE(x, x->epsn == x->max_sent, "PSN %#x never came", x->epsn);
}
