/* SPDX-License-Identifier: BSD-3-Clause */

/* Captures, classic and pcapng, of sent and received frames. */

#include "../../test_path.h"
#include "port_rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/port_pcap.h"

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
	assert_int_equal(p->ops->tx(p, &m, 1, 3), 1);
	assert_int_equal(hca_pcap_frames(file), 3);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	unlink(path);
	rig_done(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture),
		cmocka_unit_test(capture_of_both_ways),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
