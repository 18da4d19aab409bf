/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * tshark_frames FILE.pcap: writes frames made by encap, every RC opcode with several payloads, to
 * FILE, and a line "opcode psn length icrc payload" per frame to stdout. For test_tshark.py.
 */

#include <stdio.h>
#include <string.h>

#include "../unit/device/frame/frame_rig.h"

static void
put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void
write_frame(FILE *f, const uint8_t *frame, uint32_t len, uint32_t index)
{
	put32(f, index / 1000);
	put32(f, index % 1000 * 1000);
	put32(f, len);
	put32(f, len);
	fwrite(frame, len, 1, f);
}

static void
make(struct frame_rig *r, uint8_t opcode, uint32_t psn, uint32_t payload)
{
	struct rte_mbuf *m = frame_rig_txd(r, opcode, psn, payload);
	struct hca_txd *d = hca_txd(m);
	uint8_t first = r->frames & 1;

	if (!hca_roce_opcodes[opcode].is_request && opcode == HCA_BTH_RC_ACK && first)
		d->syndrome = HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ);
	d->flags = first ? HCA_TXD_ACKREQ : HCA_TXD_SOLICITED;
	if (hca_roce_opcodes[opcode].is_request)
		frame_rig_request(r, m);
	else
		frame_rig_response(r, m);
	printf("%u %u %u %u %u\n", opcode, psn, r->len[r->frames - 1],
	       hca_get_be32(r->frame[r->frames - 1] + r->len[r->frames - 1] - HCA_ICRC_LEN),
	       payload);
}

int
main(int argc, char **argv)
{
	static const uint32_t payloads[] = {0, 1, 2, 3, 13, 64, 256, 257, 1023, 4096};
	struct frame_rig *r = frame_rig_new();
	FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
	uint32_t psn = FR_PSN;

	if (f == NULL) {
		perror(argc == 2 ? argv[1] : "usage: tshark_frames FILE.pcap");
		return 1;
	}
	for (uint8_t op = 0; op <= HCA_BTH_RC_FETCH_ADD; op++)
		for (unsigned int i = 0;
		     i < (hca_roce_opcodes[op].has_payload ? RTE_DIM(payloads) : 2); i++)
			make(r, op, psn++, hca_roce_opcodes[op].has_payload ? payloads[i] : 0);
	/* classic pcap, microseconds, version 2.4, Ethernet */
	put32(f, 0xa1b2c3d4);
	put32(f, 4 << 16 | 2);
	put32(f, 0);
	put32(f, 0);
	put32(f, 65535);
	put32(f, 1);
	for (unsigned int i = 0; i < r->frames; i++)
		write_frame(f, r->frame[i], r->len[i], i);
	frame_rig_free(r);
	return fclose(f) == 0 ? 0 : 1;
}
