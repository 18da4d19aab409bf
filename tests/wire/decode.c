/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode [-q] FILE.pcap... prints a line per frame, and fails if a file cannot be read, or if a
 * frame is neither RoCEv2 nor UB, malformed, cut short, or has a wrong ICRC. -q: print only these.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decode_ub.h"
#include "pcap_read.h"
#include "roce_craft.h"

struct totals {
	unsigned long frames;
	unsigned long bad;
};

static void
print_headers(const struct hca_roce_opcode_info *op, const struct roce_headers *h)
{
	if (op->at.deth)
		printf(" qkey %08x src_qpn %06x", h->deth.qkey, h->deth.src_qpn);
	if (op->at.xrceth)
		printf(" srqn %06x", h->xrceth);
	if (op->at.feth)
		printf(" placement %u selectivity %u", HCA_FETH_PLACEMENT(h->feth),
		       HCA_FETH_SELECTIVITY(h->feth));
	if (op->at.reth)
		printf(" va %016" PRIx64 " rkey %08x len %u", h->reth.va, h->reth.rkey,
		       h->reth.len);
	if (op->at.atomiceth)
		printf(" va %016" PRIx64 " rkey %08x swap_add %016" PRIx64 " compare %016" PRIx64,
		       h->atomic.va, h->atomic.rkey, h->atomic.swap_add, h->atomic.compare);
	if (op->at.aeth)
		printf(" syndrome %02x msn %06x", h->aeth.syndrome, h->aeth.msn);
	if (op->at.atomicacketh)
		printf(" original %016" PRIx64, h->original);
	if (op->at.immdt)
		printf(" imm %02x%02x%02x%02x", h->imm[0], h->imm[1], h->imm[2], h->imm[3]);
	if (op->at.ieth)
		printf(" inv_rkey %08x", h->ieth);
}

static void
print_frame(const uint8_t *frame, const struct roce_view *v, const char *verdict)
{
	struct roce_headers h;

	printf("IPv%u %-22s qpn %06x psn %06x pkey %04x%s%s%s payload %u pad %u", v->ip_version,
	       v->op->name, v->qpn, v->psn, v->pkey, v->ackreq ? " ackreq" : "", v->se ? " se" : "",
	       v->migreq ? " migreq" : "", v->payload_len, v->pad);
	roce_get_headers(frame + v->bth, v->op, &h);
	print_headers(v->op, &h);
	/* in the order of the bytes, as Wireshark prints it */
	printf(" icrc %08x %s\n", hca_get_be32(frame + v->icrc), verdict);
}

static bool
decode_ub_frame(const struct hca_icrc_ops *ops, const struct pcap_frame *f, const char *where,
		unsigned long number, bool quiet)
{
	struct ub_view v;
	int rc = decode_ub_parse(f->data, f->len, &v);
	bool ok;

	if (rc < 0) {
		printf("%s:%lu: %s: %s%s\n", where, number, ub_drop_name(rc), ub_drop_text(rc),
		       f->len < f->wire_len ? " (cut by capture)" : "");
		return false;
	}
	ok = ub_icrc_ok(ops, f->data, &v.w);
	if (!ok || !quiet) {
		printf("%s:%lu: IPv%u ", where, number, v.w.ip_version);
		decode_ub_print(f->data, &v);
		printf(" %s\n", ok ? "ok" : "WRONG");
	}
	return ok;
}

/* False if the frame is to be reported. */
static bool
decode_frame(const struct hca_icrc_ops *ops, const struct pcap_frame *f, const char *where,
	     unsigned long number, bool quiet)
{
	struct roce_view v;
	bool ok;
	int rc;

	if (decode_is_ub(f->data, f->len))
		return decode_ub_frame(ops, f, where, number, quiet);
	rc = roce_parse(f->data, f->len, &v);
	if (rc < 0) {
		printf("%s:%lu: %s: %s%s\n", where, number, roce_drop_name(rc), roce_drop_text(rc),
		       f->len < f->wire_len ? " (cut by capture)" : "");
		return false;
	}
	ok = roce_icrc_ok(ops, f->data, &v);
	if (!ok || !quiet) {
		printf("%s:%lu: ", where, number);
		print_frame(f->data, &v, ok ? "ok" : "WRONG");
	}
	return ok;
}

static bool
decode_file(const struct hca_icrc_ops *ops, const char *path, bool quiet, struct totals *sum)
{
	const char *slash = strrchr(path, '/');
	struct pcap_frame frame;
	struct pcap_file file;
	unsigned long number = 0;
	int rc;

	rc = pcap_open_file(&file, path);
	if (rc < 0) {
		fprintf(stderr, "decode: %s: %s\n", path, strerror(-rc));
		return false;
	}
	while ((rc = pcap_next_frame(&file, &frame)) > 0) {
		sum->frames++;
		if (!decode_frame(ops, &frame, slash ? slash + 1 : path, ++number, quiet))
			sum->bad++;
	}
	pcap_close_file(&file);
	if (rc < 0)
		fprintf(stderr, "decode: %s: ends inside record %lu\n", path, number + 1);
	return rc == 0;
}

int
main(int argc, char **argv)
{
	const struct hca_icrc_ops *ops = hca_icrc_select();
	bool quiet = argc > 1 && strcmp(argv[1], "-q") == 0, readable = true;
	struct totals sum = {0, 0};
	int i = quiet ? 2 : 1;

	if (i >= argc) {
		fprintf(stderr, "usage: decode [-q] FILE.pcap...\n");
		return 2;
	}
	for (; i < argc; i++)
		readable &= decode_file(ops, argv[i], quiet, &sum);
	printf("%lu frames, %lu bad\n", sum.frames, sum.bad);
	return readable && sum.bad == 0 ? 0 : 1;
}
