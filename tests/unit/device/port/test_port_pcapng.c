/* SPDX-License-Identifier: BSD-3-Clause */

/* Captures as pcapng: every block byte by byte; disks that are slow or full. */

#include "../../../test_path.h"
#include "port_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "port/pcap_writer.h"
#include "port/port_pcap.h"

#define EPOCH 0x1234567800000000u
#define NAME "wire0" /* not a multiple of four bytes */
#define FILE_MAX (1u << 18)

static char path[TEST_PATH_MAX];
static uint8_t file[FILE_MAX];
static size_t file_len, at;

/* Choose a path that does not exist. */
static void
new_path(void)
{
	close(mkstemp(test_path(path, "pcapng")));
	unlink(path);
}

static void
read_file(void)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	file_len = fread(file, 1, sizeof(file), f);
	assert_true(file_len < sizeof(file));
	fclose(f);
	unlink(path);
	at = 0;
}

static uint32_t
word(void)
{
	uint32_t w;

	assert_true(at + 4 <= file_len);
	memcpy(&w, file + at, 4);
	at += 4;
	return w;
}

static void
words(const uint32_t *want, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(word(), want[i]);
}
#define WORDS(...) \
	words((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Check section and interface blocks: name, times in ns. */
static void
head(uint32_t snaplen)
{
	char name[8];

	WORDS(0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28);
	WORDS(1, 44, 1, snaplen, 5u << 16 | 2);
	memcpy(name, file + at, sizeof(name));
	assert_memory_equal(name, NAME "\0\0", sizeof(name));
	at += sizeof(name);
	WORDS(1u << 16 | 9, 9, 0, 44);
}

/* Check that the packet block holds frame i of the sink, cut at snaplen. */
static void
packet(unsigned int i, uint32_t snaplen, uint32_t way, uint64_t now)
{
	const struct rte_mbuf *m = sink.got[i];
	uint32_t kept = RTE_MIN(m->data_len, snaplen), pad = -kept & 3;
	uint32_t total = 28 + kept + pad + 12 + 4;
	uint64_t time = EPOCH + now;

	assert_int_equal(at % 4, 0);
	WORDS(6, total, 0, (uint32_t)(time >> 32), (uint32_t)time, kept, m->data_len);
	assert_memory_equal(file + at, rte_pktmbuf_mtod(m, void *), kept);
	at += kept;
	for (; pad != 0; pad--)
		assert_int_equal(file[at++], 0);
	WORDS(4u << 16 | 2, way, 0, total);
}

static void
statistics(uint64_t last, uint32_t lost, uint32_t frames)
{
	WORDS(5, 52, 0, (uint32_t)(last >> 32), (uint32_t)last, 8u << 16 | 5, lost, 0, 8u << 16 | 8,
	      frames, 0, 0, 52);
	assert_int_equal(at, file_len);
}

/* Symbolic links are not followed, whether their target exists or not. */
static void
follows_no_link(const struct hca_pcap_ng *ng)
{
	struct hca_pcap *c;
	char link[TEST_PATH_MAX + 8], target[TEST_PATH_MAX + 8];

	snprintf(link, sizeof(link), "%s-link", path);
	snprintf(target, sizeof(target), "%s-target", path);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(hca_pcap_open_ng(link, ng, &c), -EEXIST);
	assert_int_equal(hca_pcap_open(link, 0, &c), -ELOOP);
	assert_int_not_equal(access(target, F_OK), 0);
	unlink(link);
}

static struct hca_pcap *
open_capture(struct hca_pcap_ng ng, struct hca_port *inner, struct hca_port **p)
{
	struct hca_pcap *c;

	new_path();
	ng.interface = NAME;
	ng.epoch = EPOCH;
	assert_int_equal(hca_pcap_open_ng(path, &ng, &c), 0);
	assert_int_equal(hca_pcap_open_ng(path, &ng, &c), -EEXIST);
	follows_no_link(&ng);
	assert_int_equal(hca_port_pcap_open(c, inner, -1, p), 0);
	hca_port_pcap_both_ways(*p);
	return c;
}

static void
end_capture(struct hca_port *p, struct hca_pcap *c)
{
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(c), 0);
	read_file();
}

/* Both directions, complete and cut: every length of padding. */
static void
blocks(void **state)
{
	(void)state;
	for (uint32_t snaplen = 60; snaplen < 65; snaplen++) {
		uint32_t cut = snaplen == 64 ? 0 : snaplen;
		struct hca_port *p;
		struct hca_pcap *c;

		c = open_capture((struct hca_pcap_ng){.snaplen = cut}, rig_source(2), &p);
		rig_send(p, 5, 7);
		assert_int_equal(rig_receive(p, 8, 0xffffffff), 2);
		rig_send(p, 6, 0x100000001);
		assert_int_equal(hca_pcap_frames(c), 4);
		assert_int_equal(hca_pcap_lost(c), 0);
		end_capture(p, c);
		cut = cut != 0 ? cut : 65535;
		head(cut);
		packet(0, cut, 2, 7);
		packet(1, cut, 1, 0xffffffff);
		packet(2, cut, 1, 0xffffffff);
		packet(3, cut, 2, 0x100000001);
		statistics(EPOCH + 0x100000001, 0, 4);
		rig_done(p);
	}
}

static void
empty(void **state)
{
	struct hca_port *p;
	struct hca_pcap *c = open_capture((struct hca_pcap_ng){0}, rig_sink(), &p);

	(void)state;
	end_capture(p, c);
	head(65535);
	statistics(0, 0, 0);
	rig_done(p);
}

/* A capture of one TP or of one QP has no frame of the other wire with the same number. */
static void
choice_of_wire(void **state)
{
	static const uint8_t wires[] = {HCA_WIRE_ROCE, HCA_WIRE_UB};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(wires); i++) {
		struct hca_pcap_ng ng = {.one_qp = true, .wire = wires[i], .remote_qpn = RIG_QPN};
		struct hca_port *p;
		struct hca_pcap *c = open_capture(ng, rig_sink(), &p);
		struct rte_mbuf *m[2] = {
			rig_frame(1),
			rig_ub_frame(HCA_UB_TP_RTP, 1, RIG_QPN, 5),
		};

		assert_int_equal(p->ops->tx(p, 0, m, 2, 3), 2);
		end_capture(p, c);
		head(65535);
		packet(i, 65535, 2, 3);
		rig_done(p);
	}
}

/* One direction; one QP: frames for it, and frames to its peer or with it as source. */
static void
choices(void **state)
{
	static const struct hca_pcap_ng ngs[] = {
		{.no_sent = true},
		{.no_received = true},
		{.one_qp = true, .qpn = 5, .remote_qpn = RIG_QPN},
		{.one_qp = true, .qpn = RIG_QPN, .remote_qpn = 9},
	};
	/*
	 * frames of the sink: 0 received for RIG_QPN; sent to RIG_QPN, a datagram of 5 to 8, to 9
	 */
	static const bool there[][4] = {{1, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 1, 0}, {1, 0, 0, 1}};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(ngs); i++) {
		struct hca_port *p;
		struct hca_pcap *c = open_capture(ngs[i], rig_source(1), &p);
		struct rte_mbuf *m[3] = {
			rig_frame(1),
			rig_frame_of(HCA_BTH_UD_SEND_ONLY, 2, 8, 5, false),
			rig_frame_of(HCA_BTH_RC_WRITE_ONLY, 3, 9, 0, false),
		};
		uint32_t n = 0;

		assert_int_equal(rig_receive(p, 1, 3), 1);
		assert_int_equal(p->ops->tx(p, 0, m, 3, 3), 3);
		end_capture(p, c);
		head(65535);
		for (unsigned int k = 0; k < 4; k++) {
			n += there[i][k];
			if (there[i][k])
				packet(k, 65535, k == 0 ? 1 : 2, 3);
		}
		statistics(EPOCH + 3, 0, n);
		rig_done(p);
	}
}

/*
 * Frames that do not fit are left out, counted, and reported in the file; the traffic is not
 * affected.
 */
static void
no_room(void **state)
{
	struct hca_port *p;
	struct hca_pcap *c = open_capture((struct hca_pcap_ng){.ring = 64}, rig_source(3), &p);

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		rig_send(p, i, 1);
	assert_int_equal(rig_receive(p, 8, 2), 3);
	assert_int_equal(sink.n, 8);
	assert_int_equal(hca_pcap_frames(c), 0);
	assert_int_equal(hca_pcap_lost(c), 8);
	assert_false(hca_pcap_failed(c));
	end_capture(p, c);
	head(65535);
	statistics(EPOCH + 2, 8, 0);
	rig_done(p);
}

/* The file cannot grow: the capture fails and reports it; traffic is not delayed. */
static void
full_disk(void **state)
{
	struct rlimit before, small = {.rlim_cur = 8192};
	struct hca_port *p;
	struct hca_pcap *c = open_capture((struct hca_pcap_ng){0}, rig_sink(), &p);
	unsigned int sent = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	while (!hca_pcap_failed(c)) {
		rig_send(p, sent, 1);
		if (++sent % 64 == 0) {
			rig_sink_clear();
			sched_yield();
		}
	}
	rig_sink_clear();
	for (unsigned int i = 0; i < 10; i++)
		rig_send(p, i, 2);
	assert_int_equal(sink.n, 10);
	assert_true(hca_pcap_lost(c) >= 10);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(c), -EIO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	read_file();
	assert_int_equal(file_len, 8192);
	head(65535);
	rig_done(p);
}

/* ---- the writer alone ---- */

/* Many turns of a small ring, in pieces: everything is written once and in order. */
static void
around(void **state)
{
	struct pcap_writer *w;
	uint32_t n = 0;
	int fd;

	(void)state;
	new_path();
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pcap_writer_start(fd, 64, &w), 0);
	for (; n < 3000; n++) {
		const struct pcap_piece pieces[] = {{&n, 4}, {"abc", n % 4}, {"", 0}, {&n, 4}};

		while (!pcap_writer_put(w, pieces, RTE_DIM(pieces)))
			sched_yield();
	}
	assert_int_equal(pcap_writer_stop(w), 0);
	close(fd);
	read_file();
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(word(), i);
		assert_memory_equal(file + at, "abc", i % 4);
		at += i % 4;
		assert_int_equal(word(), i);
	}
	assert_int_equal(at, file_len);
}

/* The pipe is not read: writers never wait, but are refused. */
static void
slow_disk(void **state)
{
	static uint8_t bytes[1000];
	const struct pcap_piece piece = {bytes, sizeof(bytes)};
	struct pcap_writer *w;
	unsigned int took = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pcap_writer_start(fds[1], 1 << 18, &w), 0);
	for (unsigned int i = 0; i < 10000; i++)
		took += pcap_writer_put(w, &piece, 1);
	assert_in_range(took, (1 << 18) / 1000, 2000);
	assert_false(pcap_writer_failed(w));
	close(fds[0]);
	assert_int_equal(pcap_writer_stop(w), -EPIPE);
	close(fds[1]);
}

static void
no_space(void **state)
{
	const struct pcap_piece piece = {"x", 1};
	struct pcap_writer *w;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(pcap_writer_start(fd, 64, &w), 0);
	assert_true(pcap_writer_put(w, &piece, 1));
	while (!pcap_writer_failed(w))
		sched_yield();
	assert_false(pcap_writer_put(w, &piece, 1));
	assert_int_equal(pcap_writer_stop(w), -ENOSPC);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks),   cmocka_unit_test(empty),
		cmocka_unit_test(choices),  cmocka_unit_test(choice_of_wire),
		cmocka_unit_test(no_room),  cmocka_unit_test(full_disk),
		cmocka_unit_test(around),   cmocka_unit_test(slow_disk),
		cmocka_unit_test(no_space),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
