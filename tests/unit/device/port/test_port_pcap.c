/* SPDX-License-Identifier: BSD-3-Clause */

/* Captures, classic and pcapng, of sent and received frames. */

#include "../../../test_path.h"
#include "port_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/port_pcap.h"
#include "wire/wire_view.h"

static void
capture(void **state)
{
	char path[TEST_PATH_MAX];
	uint8_t head[24], frame_head[16], bytes[512];
	struct hca_pcap *file;
	struct hca_port *p;
	uint32_t len;
	int fd = mkstemp(test_path(path, "pcap"));
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hca_pcap_open(path, 3, &file), 0);
	assert_int_equal(hca_port_pcap_open(file, rig_sink(), -1, &p), 0);
	assert_int_equal(hca_port_missed(p), RIG_MISSED);
	for (uint32_t i = 0; i < 5; i++)
		rig_send(p, i, 3000000007u + i);
	assert_int_equal(sink.n, 5);
	assert_int_equal(hca_pcap_frames(file), 3);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(head, sizeof(head), 1, f), 1);
	memcpy(&len, head, 4);
	assert_int_equal(len, 0xa1b23c4d);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t w[4];

		assert_int_equal(fread(frame_head, sizeof(frame_head), 1, f), 1);
		memcpy(w, frame_head, sizeof(w));
		assert_int_equal(w[0], 3);
		assert_int_equal(w[1], 7 + i);
		assert_int_equal(w[2], sink.got[i]->data_len);
		assert_int_equal(w[3], w[2]);
		assert_int_equal(fread(bytes, w[2], 1, f), 1);
		assert_memory_equal(bytes, rte_pktmbuf_mtod(sink.got[i], void *), w[2]);
	}
	assert_int_equal(fgetc(f), EOF);
	fclose(f);
	unlink(path);
	assert_int_equal(hca_pcap_open("/nonexistent/x", 1, &file), -ENOENT);
	rig_done(p);
}

/* A capture includes received frames if requested. */
static void
capture_of_both_ways(void **state)
{
	char path[TEST_PATH_MAX];
	struct hca_port *inner = rig_source(4), *p;
	struct rte_mbuf *m = rig_frame(9);
	struct hca_pcap *file;

	(void)state;
	close(mkstemp(test_path(path, "pcap")));
	assert_int_equal(hca_pcap_open(path, 0, &file), 0);
	assert_int_equal(hca_port_pcap_open(file, inner, -1, &p), 0);
	assert_int_equal(rig_receive(p, 2, 1), 2);
	assert_int_equal(hca_pcap_frames(file), 0);
	hca_port_pcap_both_ways(p);
	assert_int_equal(rig_receive(p, 8, 2), 2);
	assert_int_equal(hca_pcap_frames(file), 2);
	assert_int_equal(p->ops->tx(p, 0, &m, 1, 3), 1);
	assert_int_equal(hca_pcap_frames(file), 3);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	unlink(path);
	rig_done(p);
}

#define ANSWER_MS 50u /* an answer that nothing delays takes less */

static struct hca_port *peer;
static struct rte_mbuf *the_answer;
static pthread_t answerer;
static bool answered;

static void *
answer(void *arg)
{
	(void)arg;
	peer->ops->tx(peer, 0, &the_answer, 1, 2);
	__atomic_store_n(&answered, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The peer's thread has the frame, and sends its answer before this call returns if it can. */
static uint16_t
tx_to_peer(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)p;
	(void)now;
	assert_int_equal(n, 1);
	rte_pktmbuf_free(m[0]);
	assert_int_equal(pthread_create(&answerer, NULL, answer, NULL), 0);
	for (uint32_t i = 0; i < ANSWER_MS && !__atomic_load_n(&answered, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	return n;
}

static void
close_nothing(struct hca_port *p)
{
	(void)p;
}

static uint32_t
next_psn(FILE *f)
{
	struct hca_wire_view v;
	uint8_t bytes[512];
	uint32_t head[4];

	assert_int_equal(fread(head, sizeof(head), 1, f), 1);
	assert_in_range(head[2], 1, sizeof(bytes));
	assert_int_equal(fread(bytes, head[2], 1, f), 1);
	assert_int_equal(hca_wire_parse(bytes, head[2], &v), 0);
	return v.psn;
}

/* Two ports with a thread each share a file: an answer stands behind its request. */
static void
answers_come_later(void **state)
{
	static const struct hca_port_ops ops = {.tx = tx_to_peer, .close = close_nothing};
	struct hca_port to_peer = {.ops = &ops, .max_frame = 4400, .queue_size = 64}, *p;
	char path[TEST_PATH_MAX];
	struct hca_pcap *file;
	FILE *f;

	(void)state;
	close(mkstemp(test_path(path, "pcap")));
	assert_int_equal(hca_pcap_open(path, 0, &file), 0);
	assert_int_equal(hca_port_pcap_open(file, &to_peer, -1, &p), 0);
	assert_int_equal(hca_port_pcap_open(file, rig_sink(), -1, &peer), 0);
	the_answer = rig_frame(2);
	rig_send(p, 1, 1);
	assert_int_equal(pthread_join(answerer, NULL), 0);
	hca_port_pcap_attach(p, NULL);
	hca_port_pcap_attach(peer, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 24, SEEK_SET), 0);
	assert_int_equal(next_psn(f), 1);
	assert_int_equal(next_psn(f), 2);
	fclose(f);
	unlink(path);
	p->ops->close(p);
	rig_done(peer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture),
		cmocka_unit_test(capture_of_both_ways),
		cmocka_unit_test(answers_come_later),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
