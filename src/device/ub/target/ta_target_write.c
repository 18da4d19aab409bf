/* SPDX-License-Identifier: BSD-3-Clause */

/* Writes: their packets say each where its payload goes and is judged alone. */

#include <errno.h>

#include "ub/target/ta_target.h"
#include "vtp/foreign.h"

/* ---- access to segments ---- */

const struct hca_mpt_entry *
tat_access(struct tat_request *q, const struct hca_token_access *a)
{
	const struct hca_mpt_entry *e = NULL;
	enum hca_token_verdict verdict = hca_token_check(&q->h->core, a, &e);

	if (likely(verdict == HCA_TOKEN_OK))
		return e;
	tat_refuse(q, TAT_TOKEN + verdict - 1);
	if (verdict == HCA_TOKEN_BAD_VALUE)
		tat_mismatch(q);
	return NULL;
}

const struct hca_mpt_entry *
tat_access_of(struct tat_request *q, uint64_t len, uint32_t right)
{
	const uint8_t *maetah = q->tah + q->v.at->maetah;
	struct hca_token_access a = {
		.va = hca_ub_maetah_address(maetah),
		.len = len,
		.token_id = hca_ub_maetah_token_id(maetah),
		.right = right,
		.has_value = q->v.at->tvetah != 0,
	};

	if (a.has_value)
		a.value = hca_ub_tvetah_token_value(q->tah + q->v.at->tvetah);
	return tat_access(q, &a);
}

bool
tat_foreign_ok(struct tat_request *q, int rc)
{
	if (likely(rc == 0))
		return true;
	if (rc == -EAGAIN)
		tat_refuse_for(q, TAT_LATE, TAT_TIMER_LATE);
	else
		tat_refuse(q, TAT_GONE);
	return false;
}

bool
tat_store(struct tat_request *q, const struct hca_mpt_entry *e, uint64_t va, const uint8_t *src,
	  uint32_t len)
{
	if (unlikely(e->foreign))
		return tat_foreign_ok(q, hca_foreign_write(&q->h->core, e, va, src, len));
	hca_vtp_scatter(&q->h->vtp, e, va, src, len, q->h->icrc);
	return true;
}

/* ---- packets ---- */

void
tat_closing_read(const struct tat_request *q, struct tat_closing *c)
{
	const struct hca_ub_layout *at = q->v.at;

	*c = (struct tat_closing){
		.opcode = q->tah[0],
		.has_token = at->tvetah != 0,
		.solicited = hca_ub_btah_fce(q->tah),
	};
	if (at->mtetah != 0)
		c->tc = hca_get_be32(q->tah + at->mtetah);
	if (at->immetah != 0) {
		c->data = hca_ub_immetah_immediate(q->tah + at->immetah);
		c->token = hca_ub_immetah_token_value(q->tah + at->immetah);
		c->total = hca_ub_immetah_length(q->tah + at->immetah);
	}
	if (at->ntfetah != 0) {
		c->address = hca_ub_ntfetah_address(q->tah + at->ntfetah);
		c->token_id = hca_ub_ntfetah_token_id(q->tah + at->ntfetah);
		c->token = hca_ub_ntfetah_token_value(q->tah + at->ntfetah);
		c->data = hca_ub_ntfetah_data(q->tah + at->ntfetah);
	}
}

/* The last packet of a request that still lacks others: its fields are needed at the end. */
static void
keep_closing(struct tat_request *q)
{
	if (q->last && q->tah[0] != HCA_UB_TA_WRITE && !tat_open_is_complete(q) &&
	    tat_message_take(q))
		tat_closing_read(q, &q->msg->closing);
}

/* The length is that of the segment, the same in all of its packets; the last one has the rest. */
static bool
tat_fits_length(const struct tat_request *q, uint32_t length)
{
	const struct tat_open *o = q->o;
	uint64_t before = (uint64_t)hca_tp_past(q->rxd->psn, o->first) << q->tp->cfg.mtu_log;

	return o->length == length && (!q->last || before + q->len == length);
}

void
tat_write(struct tat_request *q)
{
	const uint8_t *maetah = q->tah + q->v.at->maetah;
	const struct hca_mpt_entry *e;
	struct tat_open *o = q->o;

	if (o->packets == 1)
		o->length = hca_ub_maetah_length(maetah);
	if (unlikely(!tat_fits_length(q, hca_ub_maetah_length(maetah)))) {
		tat_refuse(q, TAT_SUM);
		return;
	}
	keep_closing(q);
	if (q->len == 0 || o->answer != 0)
		return;
	e = tat_access_of(q, q->len, HCA_ACCESS_REMOTE_WRITE);
	if (likely(e != NULL) &&
	    likely(tat_store(q, e, hca_ub_maetah_address(maetah), q->payload, q->len)))
		o->bytes += q->len;
}

/* ---- byte enables: one big-endian number, whose bit n stands for byte n of the payload ---- */

static inline bool
is_enabled(const uint8_t *enables, uint32_t bytes, uint32_t n)
{
	return enables[bytes - 1 - n / 8] >> (n & 7) & 1;
}

static uint32_t
run_of(const uint8_t *enables, uint32_t bytes, uint32_t from, uint32_t end, bool enabled)
{
	uint32_t n = from;

	while (n < end && is_enabled(enables, bytes, n) == enabled)
		n++;
	return n - from;
}

void
tat_write_enabled(struct tat_request *q)
{
	const uint8_t *enables = q->tah + q->v.at->beetah, *maetah = q->tah + q->v.at->maetah;
	uint32_t bytes = q->v.enables_len, n = 0, run;
	const struct hca_mpt_entry *e = tat_access_of(q, q->len, HCA_ACCESS_REMOTE_WRITE);
	uint64_t va = hca_ub_maetah_address(maetah);

	while (e != NULL && n < q->len) {
		n += run_of(enables, bytes, n, q->len, false);
		run = run_of(enables, bytes, n, q->len, true);
		if (run != 0 && !tat_store(q, e, va + n, q->payload + n, run))
			return;
		n += run;
	}
}

/* ---- the end ---- */

/* Eight bytes that become visible at once, after all of the request's data. */
static void
store_notify(struct tat_request *q, const struct hca_mpt_entry *e, const struct tat_closing *c)
{
	uint64_t *at;
	uint32_t run;

	if (unlikely(e->foreign)) {
		__atomic_thread_fence(__ATOMIC_RELEASE);
		tat_foreign_ok(q, hca_foreign_write(&q->h->core, e, c->address, &c->data,
						    sizeof(c->data)));
		return;
	}
	at = (uint64_t *)(void *)hca_vtp_ptr(&q->h->vtp, e, c->address, sizeof(*at), &run);
	if (unlikely(run != sizeof(*at) || ((uintptr_t)at & (sizeof(*at) - 1)) != 0))
		tat_refuse(q, TAT_ALIGNMENT);
	else
		__atomic_store_n(at, c->data, __ATOMIC_RELEASE);
}

static void
tat_notify(struct tat_request *q, const struct tat_closing *c)
{
	const struct hca_token_access a = {
		.va = c->address,
		.len = sizeof(c->data),
		.token_id = c->token_id,
		.value = c->token,
		.right = HCA_ACCESS_REMOTE_WRITE,
		.has_value = c->has_token,
	};
	const struct hca_mpt_entry *e;

	if (unlikely((c->address & (sizeof(c->data) - 1)) != 0)) {
		tat_refuse(q, TAT_ALIGNMENT);
		return;
	}
	e = tat_access(q, &a);
	if (e != NULL)
		store_notify(q, e, c);
}

void
tat_write_done(struct tat_request *q)
{
	struct tat_closing c;

	if (unlikely(q->o->bytes != q->o->length)) {
		tat_refuse(q, TAT_SUM);
		return;
	}
	if (likely(q->msg == NULL && q->tah[0] == HCA_UB_TA_WRITE))
		return;
	if (q->msg != NULL)
		c = q->msg->closing;
	else
		tat_closing_read(q, &c);
	if (c.opcode == HCA_UB_TA_WRITE_NOTIFY)
		tat_notify(q, &c);
	else
		tat_immediate(q, &c);
}
