/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Neighbours of the programs that benchmarks/shared-cpus measures.
 *
 *   crowd poll DEVICE    polls an empty CQ in a tight loop
 *   crowd sleep DEVICE   sleeps on a completion channel whose CQ is armed
 *   crowd burn           computes
 *
 * Prints a line when it is ready and runs until it is killed.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <softhca/softhca.h>

static void
ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int
fail(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, softhca_last_error(NULL));
	return 1;
}

static int
attached(const char *device, bool polls)
{
	struct softhca_cq_init_attr attr = {.cqe = 64};
	struct softhca_context *ctx;
	struct softhca_wc wc;
	struct softhca_cq *cq;

	if (softhca_open(device, &ctx) != 0)
		return fail(device);
	attr.channel = polls ? NULL : softhca_create_comp_channel(ctx);
	cq = softhca_create_cq(ctx, &attr);
	if (cq == NULL || (!polls && softhca_req_notify_cq(cq, 0) != 0))
		return fail("CQ");
	ready();
	while (polls)
		if (softhca_poll_cq(cq, 1, &wc) < 0)
			return fail("poll_cq");
	softhca_get_cq_event(attr.channel, &cq, NULL);
	return fail("the channel has ended");
}

static void
burn(void)
{
	ready();
	for (volatile unsigned int i = 0;; i = i + 1)
		;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 3 && (strcmp(what, "poll") == 0 || strcmp(what, "sleep") == 0))
		return attached(argv[2], strcmp(what, "poll") == 0);
	if (argc == 2 && strcmp(what, "burn") == 0)
		burn();
	fprintf(stderr, "usage: crowd poll DEVICE | sleep DEVICE | burn\n");
	return 2;
}
