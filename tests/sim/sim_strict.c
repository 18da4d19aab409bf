/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "abi_roce.h"
#include "sim_link.h"
#include "sim_strict.h"
#include "roce_craft.h"

#define PSNS (1u << 24)
#define FAR 8192u /* PSNs that an ACK may reach back */

static bool
was_asked(const struct sim_strict_side *d, uint32_t psn)
{
	return d->asked[psn / 8] >> psn % 8 & 1;
}

static void
note_request(struct sim_strict_side *d, const struct roce_view *v)
{
	d->requests++;
	d->asks += v->ackreq;
	if (v->ackreq)
		d->asked[v->psn / 8] |= (uint8_t)(1u << v->psn % 8);
}

/* Take the request that this ACK may name from those that requested one; PSNS: none. */
static uint32_t
take_asked(struct sim_strict_side *d, uint32_t psn)
{
	uint32_t found = PSNS;

	for (uint32_t i = 0; i < FAR; i++, psn = (psn - 1) & (PSNS - 1)) {
		if (!was_asked(d, psn))
			continue;
		if (found == PSNS)
			found = psn;
		d->asked[psn / 8] &= (uint8_t) ~(1u << psn % 8);
	}
	return found;
}

static bool
judge_ack(struct sim_strict_side *d, uint8_t *frame, const struct roce_view *v)
{
	struct hca_bth *bth = (void *)(frame + v->bth);
	uint32_t psn;

	if (!d->x->strict)
		return false;
	psn = take_asked(&d->x->side[1 - d->side], v->psn);
	if (psn == PSNS)
		return true;
	bth->psn = hca_cpu_to_be32(HCA_BTH_MAKE_PSN(false, psn));
	roce_seal(hca_icrc_select(), frame, v);
	return false;
}

static bool
look(void *arg, uint8_t *frame, uint32_t len)
{
	struct sim_strict_side *d = arg;
	struct roce_view v;
	uint8_t syndrome;

	if (roce_parse(frame, len, &v) != 0)
		return false;
	if (v.opcode == HCA_BTH_CNP) {
		d->cnps++;
		return false;
	}
	if (!v.op->is_response)
		note_request(d, &v);
	if (HCA_BTH_OPERATION(v.opcode) != HCA_BTH_RC_ACK)
		return false;
	syndrome = frame[v.bth + HCA_ROCE_BTH_LEN];
	if (HCA_AETH_KIND(syndrome) == HCA_AETH_ACK) {
		d->acks++;
		return judge_ack(d, frame, &v);
	}
	if (HCA_AETH_KIND(syndrome) == HCA_AETH_RNR_NAK)
		d->rnr_naks++;
	else if (HCA_AETH_VALUE(syndrome) == HCA_NAK_PSN_SEQ)
		d->seq_naks++;
	else
		d->other_naks++;
	return false;
}

void
sim_strict_open(struct sim *s, struct sim_strict *x, bool strict)
{
	*x = (struct sim_strict){.s = s, .strict = strict};
	for (unsigned int i = 0; i < 2; i++) {
		x->side[i] = (struct sim_strict_side){.x = x, .side = i};
		x->side[i].asked = calloc(1, PSNS / 8);
		sim_check(s, x->side[i].asked != NULL, "no memory");
		sim_link_lose(s->side[i].wire, look, &x->side[i]);
	}
}

void
sim_strict_close(struct sim_strict *x)
{
	for (unsigned int i = 0; i < 2; i++) {
		sim_link_lose(x->s->side[i].wire, NULL, NULL);
		free(x->side[i].asked);
	}
}
