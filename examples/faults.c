/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A link that loses, doubles, reorders and damages frames: the protocol's repairs, and the counters
 * that show them. The choices follow a seed: faults [SEED].
 *
 *   cc faults.c -o faults $(pkg-config --cflags --libs softhca-embed)
 */

#include <inttypes.h>
#include <string.h>

#include <softhca/embed.h>

#include "example.h"

#define BYTES 16384u /* 16 packets */
#define MESSAGES 200u

/* Prints the counters of one HCA and its port that are not 0. */
static void
print_counters(struct softhca_embed *embed, unsigned int index)
{
	struct softhca_value values[512];
	int i, n = softhca_embed_counters(embed, index, values, 512);

	must(n >= 0 && n <= 512, "counters");
	printf("HCA %u\n", index);
	for (i = 0; i < n; i++)
		if (values[i].value != 0)
			printf("  %-32s %" PRIu64 "\n", values[i].name, values[i].value);
}

/* Prints the last faults of frames that one HCA has sent. */
static void
print_faults(struct softhca_embed *embed, unsigned int index)
{
	char text[2048];
	int n = softhca_embed_faults(embed, index, text, sizeof(text));

	must(n > 0, "no fault in so many frames");
	printf("the last %d faults of HCA %u\n%s", n, index, text);
}

static void
write_and_compare(struct side *a, const struct side *b, const struct address *to_b)
{
	unsigned int i;

	for (i = 0; i < MESSAGES; i++) {
		memset(a->memory, (int)i, BYTES);
		post(a, SOFTHCA_WR_RDMA_WRITE, BYTES, to_b);
		complete(a);
		must(memcmp(a->memory, b->memory, BYTES) == 0, "data differ");
	}
}

int
main(int argc, char **argv)
{
	/*
	 * In addition to the impairments below, the second ACK (BTH opcode 11h) of HCA 1 is lost;
	 * and of all HCAs the last packet of the third WRITE, as text.
	 */
	const struct softhca_fault_rule lost_ack = {
		.opcode = 0x11,
		.psn = SOFTHCA_FAULT_ANY,
		.nth = 2,
		.count = 1,
		.fault = SOFTHCA_FAULT_DROP,
	};
	struct softhca_embed_config config;
	struct softhca_embed *embed;
	struct side a, b;
	struct address to_b;

	softhca_embed_config_init(&config);
	config.memory_mb = 256;
	config.log_qps = 8;
	config.seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	config.impair.drop = 0.01;
	config.impair.dup = 0.01;
	config.impair.reorder = 0.01;
	config.impair.corrupt = 0.001;
	must(softhca_embed_create(&config, &embed) == 0, softhca_embed_last_error());
	must(softhca_embed_add_fault(embed, 1, &lost_ack) == 0, softhca_embed_last_error());
	must(softhca_embed_impair(embed, "drop,opcode=write-last,nth=3") == 0,
	     softhca_embed_last_error());
	must(softhca_embed_open(embed, 0, &a.ctx) == 0, "open 0");
	must(softhca_embed_open(embed, 1, &b.ctx) == 0, "open 1");
	to_b = connect_pair(&a, &b, BYTES, 0);

	write_and_compare(&a, &b, &to_b);
	print_counters(embed, 0);
	print_counters(embed, 1);
	print_faults(embed, 0);
	printf("%u messages of %u bytes, every byte compared\n", MESSAGES, BYTES);
	return softhca_embed_destroy(embed) == 0 ? 0 : 1;
}
