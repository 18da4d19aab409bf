/* SPDX-License-Identifier: BSD-3-Clause */

/* urma_memory DEVICE: writes, reads and atomics to memory of its own, by its host's address. */

#include "urma_program.h"

#define FAR_PART (2 * PART) /* where the remote side is */

/* Its old value lies at PART. */
static uint64_t
atomic(struct program *p, urma_opcode_t opcode, uint64_t operand, uint64_t compare)
{
	urma_sge_t old = own(p, PART, 8);
	urma_sge_t far = {p->to_seg->seg.ubva.va + FAR_PART, 8, p->to_seg};
	urma_jfs_wr_t wr = {.opcode = opcode};
	uint64_t value;

	if (opcode == URMA_OPC_CAS || opcode == URMA_OPC_SWAP)
		wr.cas = (urma_cas_wr_t){.src = &old,
					 .dst = &far,
					 .cmp_data = compare,
					 .swap_data = operand};
	else
		wr.faa = (urma_faa_wr_t){.src = &old, .dst = &far, .operand = operand};
	post(p, &wr);
	next(p);
	memcpy(&value, p->mem + PART, sizeof(value));
	return value;
}

static uint64_t
far_value(const struct program *p)
{
	uint64_t value;

	memcpy(&value, p->mem + FAR_PART, sizeof(value));
	return value;
}

static void
atomics(struct program *p)
{
	static const uint64_t zero;

	memcpy(p->mem + FAR_PART, &zero, sizeof(zero));
	must(atomic(p, URMA_OPC_FADD, 5, 0) == 0 && far_value(p) == 5, "fetch and add");
	must(atomic(p, URMA_OPC_FSUB, 1, 0) == 5 && far_value(p) == 4, "fetch and sub");
	must(atomic(p, URMA_OPC_FOR, 3, 0) == 4 && far_value(p) == 7, "fetch and or");
	must(atomic(p, URMA_OPC_FAND, 6, 0) == 7 && far_value(p) == 6, "fetch and and");
	must(atomic(p, URMA_OPC_FXOR, 2, 0) == 6 && far_value(p) == 4, "fetch and xor");
	must(atomic(p, URMA_OPC_CAS, 9, 5) == 4 && far_value(p) == 4, "a comparison that fails");
	must(atomic(p, URMA_OPC_CAS, 9, 4) == 4 && far_value(p) == 9, "compare and swap");
	must(atomic(p, URMA_OPC_SWAP, 1, 0) == 9 && far_value(p) == 1, "swap");
}

int
main(int argc, char **argv)
{
	static const uint32_t lengths[] = {0, 1, 4096, 100001, PART};
	struct program p = {0};

	must(argc == 2, "usage: urma_memory DEVICE");
	open_program(&p, argv[1], URMA_TM_RM, 0);
	import_peer(&p, &p.jetty->jetty_id, &p.seg->seg, URMA_TM_RM);
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(p.mem + FAR_PART, 0, PART);
		memset(p.mem + PART, 0, PART);
		transfer(&p, URMA_OPC_WRITE, 0, FAR_PART, lengths[i]);
		same(p.mem + FAR_PART, p.mem, lengths[i], "what was written");
		must(lengths[i] == PART || p.mem[FAR_PART + lengths[i]] == 0, "and no more");
		transfer(&p, URMA_OPC_READ, PART, FAR_PART, lengths[i]);
		same(p.mem + PART, p.mem, lengths[i], "what was read");
	}
	atomics(&p);
	unimport_peer(&p);
	close_program(&p);
	printf("verified\n");
	return 0;
}
