/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SEND and receive without spinning: completion channels of two HCAs in one poll(2) loop.
 *
 * The HCAs run in threads of their own, so this thread may sleep. A message goes back and forth:
 * each side answers its messages, until ROUNDS messages have arrived.
 *
 *   cc events.c -o events $(pkg-config --cflags --libs softhca-embed)
 */

#include <poll.h>

#include <softhca/embed.h>

#include "example.h"

#define BYTES 256u
#define ROUNDS 1000u

/* Polls all completions and answers each receive with a SEND. Returns the number of receives. */
static unsigned int
serve(struct side *s)
{
	struct softhca_wc wc;
	unsigned int received = 0;
	int n;

	while ((n = softhca_poll_cq(s->cq, 1, &wc)) == 1) {
		must(wc.status == SOFTHCA_WC_SUCCESS, softhca_wc_status_str(wc.status));
		if (!(wc.opcode & SOFTHCA_WC_RECV))
			continue;
		received++;
		post_receive(s, BYTES);
		post(s, SOFTHCA_WR_SEND, BYTES, NULL);
	}
	must(n == 0, "poll_cq");
	return received;
}

/* The channel of a side is readable: take its event, ask for the next, then poll completions. */
static unsigned int
on_event(struct side *s)
{
	struct softhca_cq *cq;
	void *cq_context;

	must(softhca_get_cq_event(s->channel, &cq, &cq_context) == 0, "get_cq_event");
	softhca_ack_cq_events(cq, 1);
	must(softhca_req_notify_cq(cq, 0) == 0, "req_notify_cq");
	return serve(s);
}

int
main(void)
{
	struct softhca_embed_config config;
	struct softhca_embed *embed;
	struct side side[2];
	struct pollfd fds[2];
	unsigned int i, received = 0;

	softhca_embed_config_init(&config);
	config.memory_mb = 256;
	config.log_qps = 8;
	config.executor = SOFTHCA_EXECUTOR_THREADS;
	must(softhca_embed_create(&config, &embed) == 0, softhca_embed_last_error());
	for (i = 0; i < 2; i++)
		must(softhca_embed_open(embed, i, &side[i].ctx) == 0, "open");
	connect_pair(&side[0], &side[1], BYTES, 1);
	for (i = 0; i < 2; i++) {
		must(softhca_req_notify_cq(side[i].cq, 0) == 0, "req_notify_cq");
		post_receive(&side[i], BYTES);
		fds[i] = (struct pollfd){.fd = side[i].channel->fd, .events = POLLIN};
	}
	post(&side[0], SOFTHCA_WR_SEND, BYTES, NULL);
	while (received < ROUNDS) {
		must(poll(fds, 2, -1) > 0, "poll");
		for (i = 0; i < 2; i++)
			if (fds[i].revents != 0)
				received += on_event(&side[i]);
	}
	printf("%u messages, none lost\n", received);
	return softhca_embed_destroy(embed) == 0 ? 0 : 1;
}
