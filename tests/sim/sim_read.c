/* SPDX-License-Identifier: BSD-3-Clause */

/* Completions read one by one and field by field, with all that a CQ can have. */

#include <errno.h>
#include <inttypes.h>

#include "sim.h"

static struct softhca_wc
fields(const struct softhca_cq *cq)
{
	return (struct softhca_wc){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = softhca_wc_read_opcode(cq),
		.vendor_err = softhca_wc_read_vendor_err(cq),
		.byte_len = softhca_wc_read_byte_len(cq),
		.imm_data = softhca_wc_read_imm_data(cq),
		.qp_num = softhca_wc_read_qp_num(cq),
		.src_qp = softhca_wc_read_src_qp(cq),
		.wc_flags = softhca_wc_read_wc_flags(cq),
		.pkey_index = softhca_wc_read_pkey_index(cq),
		.slid = (uint16_t)softhca_wc_read_slid(cq),
		.sl = softhca_wc_read_sl(cq),
		.dlid_path_bits = softhca_wc_read_dlid_path_bits(cq),
	};
}

/* Not before the completion that precedes it, nor in the future; the two clocks are one here. */
static void
check_times(struct sim *s, const struct softhca_cq *cq, uint64_t *last)
{
	uint64_t time = softhca_wc_read_completion_ts(cq);

	sim_check(s, time >= *last && time <= s->now,
		  "completed at %" PRIu64 ", after one of %" PRIu64 ", read at %" PRIu64, time,
		  *last, s->now);
	sim_check(s, softhca_wc_read_completion_wallclock_ns(cq) == time,
		  "completed at %" PRIu64 ", on the wall clock %" PRIu64, time,
		  softhca_wc_read_completion_wallclock_ns(cq));
	*last = time;
}

int
sim_read_cq(struct sim *s, struct softhca_cq *cq, int num, struct softhca_wc *wc, uint16_t *vlan)
{
	int got = 0, err = softhca_start_poll(cq);
	uint64_t last = 1;

	if (err != 0)
		return err == -ENOENT ? 0 : err;
	do {
		check_times(s, cq, &last);
		wc[got] = fields(cq);
		vlan[got] = softhca_wc_read_cvlan(cq);
		sim_check(s, vlan[got] == 0 || (wc[got].wc_flags & SOFTHCA_WC_GRH) != 0,
			  "VLAN tag %#x of no datagram", vlan[got]);
		got++;
	} while (got < num && softhca_next_poll(cq) == 0);
	softhca_end_poll(cq);
	return got;
}
