/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One RDMA WRITE between two HCAs inside this process: no daemon, no NIC, no root.
 *
 *   cc embedded_write.c -o embedded_write $(pkg-config --cflags --libs softhca-embed)
 */

#include <string.h>

#include <softhca/embed.h>

#include "example.h"

#define BYTES 4096u

int
main(void)
{
	struct softhca_embed_config config;
	struct softhca_embed *embed;
	struct side a, b;
	struct address to_b;

	softhca_embed_config_init(&config);
	config.memory_mb = 256;
	config.log_qps = 8;
	must(softhca_embed_create(&config, &embed) == 0, softhca_embed_last_error());
	must(softhca_embed_open(embed, 0, &a.ctx) == 0, "open 0");
	must(softhca_embed_open(embed, 1, &b.ctx) == 0, "open 1");
	to_b = connect_pair(&a, &b, BYTES, 0);

	/* The engine runs inside poll_cq: this thread is also the device. */
	strcpy(a.memory, "written by the other HCA");
	post(&a, SOFTHCA_WR_RDMA_WRITE, BYTES, &to_b);
	complete(&a);
	printf("%s\n", b.memory);
	return softhca_embed_destroy(embed) == 0 ? 0 : 1;
}
