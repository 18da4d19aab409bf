/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ub_frames FILE.pcap: random legal packets with every opcode of the transport and of the
 * transaction, those that are only printed too, over IPv4 and IPv6 with and without a VLAN tag.
 * Prints the number of frames.
 */

#include <stdio.h>
#include <string.h>

#include "ub_craft.h"

#define EACH 3u

static uint64_t rng_state = 0x5eed5eed;
static unsigned int frames;

static uint64_t
rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static void
put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void
write_frame(FILE *f, const uint8_t *frame, uint32_t len)
{
	put32(f, frames / 1000);
	put32(f, frames % 1000 * 1000);
	put32(f, len);
	put32(f, len);
	fwrite(frame, len, 1, f);
	frames++;
}

static int
make(FILE *f, uint8_t tp, uint8_t ta, unsigned int address)
{
	static uint8_t frame[UB_ROOM], payload[HCA_UB_MTU_MAX];
	struct hca_ub_path path = {
		.udp = {.dmac = {2, 0, 0, 0, 0, 1},
			.smac = {2, 0, 0, 0, 0, 2},
			.vlan = (address & 2) != 0,
			.vlan_tci = 0x6064,
			.ip_version = address & 1 ? 6 : 4,
			.tclass = 0x6a,
			.hop_limit = 64,
			.sip = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1},
			.dip = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2}},
	};
	struct hca_udp_template t;
	struct ub_packet p;
	int n;

	path.udp.sport = (uint16_t)(0xc000 | rng());
	path.udp.flow_label = hca_ub_flow_label(path.udp.sport);
	ub_random_of(rng, rng() & 7 ? 200 : HCA_UB_MTU_MAX, tp, ta, &p);
	p.h.form = HCA_UB_FORM_DEFAULT;
	p.h.caqm = false;
	for (uint32_t i = 0; i < p.payload_len; i++)
		payload[i] = (uint8_t)rng();
	n = hca_ub_template_fill(&path, &t);
	if (n == 0)
		n = ub_build(hca_icrc_select(), &t, &p.h, payload, p.payload_len, frame,
			     sizeof(frame));
	if (n > 0)
		write_frame(f, frame, (uint32_t)n);
	return n;
}

static int
make_each(FILE *f, uint8_t tp, uint8_t ta)
{
	for (unsigned int i = 0; i < 4 * EACH; i++)
		if (make(f, tp, ta, i) <= 0)
			return -1;
	return 0;
}

static int
make_all(FILE *f)
{
	for (unsigned int tp = 0; tp < HCA_UB_TP_OPCODES; tp++) {
		if (hca_ub_tp_ops[tp].name == NULL)
			continue;
		if (!(hca_ub_tp_ops[tp].headers & HCA_UB_TP_TA) && make_each(f, tp, 0) != 0)
			return -1;
		for (unsigned int ta = 0; (hca_ub_tp_ops[tp].headers & HCA_UB_TP_TA) && ta < 256;
		     ta++) {
			uint32_t is = hca_ub_ta_ops[ta].is;

			if (hca_ub_ta_ops[ta].name == NULL ||
			    (tp == HCA_UB_TP_UTP && !(is & HCA_UB_OP_UNRELIABLE)))
				continue;
			if (make_each(f, tp, ta) != 0)
				return -1;
		}
	}
	return 0;
}

int
main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
	int rc;

	if (f == NULL) {
		perror(argc == 2 ? argv[1] : "usage: ub_frames FILE.pcap");
		return 1;
	}
	/* classic pcap, microseconds, version 2.4, Ethernet */
	put32(f, 0xa1b2c3d4);
	put32(f, 4 << 16 | 2);
	put32(f, 0);
	put32(f, 0);
	put32(f, 65535);
	put32(f, 1);
	rc = make_all(f);
	printf("%u\n", frames);
	return fclose(f) == 0 && rc == 0 ? 0 : 1;
}
