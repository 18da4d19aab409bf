/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Faults of frames that an operator names by their opcodes: which frames they meet, and the text
 * about them in the list of faults and in captures.
 */

#include "../../../test_path.h"
#include "port_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi_roce.h"
#include "abi_ub.h"
#include "port/port_impair.h"
#include "port/port_pcap.h"

static char path[TEST_PATH_MAX];

static struct hca_port *
new_impair(struct hca_port *inner)
{
	static unsigned int serial;
	char name[16];
	const struct hca_port_impair_config cfg = {.name = name, .seed = 7, .socket_id = -1};
	struct hca_port *p;

	snprintf(name, sizeof(name), "tn%u", serial++);
	assert_int_equal(hca_port_impair_open(&cfg, inner, &p), 0);
	return p;
}

static struct hca_impair_text
said(const char *text)
{
	struct hca_impair_text t;
	char why[128];

	if (hca_impair_parse(text, &t, why, sizeof(why)) != 0)
		fail_msg("%s: %s", text, why);
	return t;
}

static void
add_rule(struct hca_port *p, const char *text)
{
	const struct hca_impair_text t = said(text);

	assert_int_equal(t.kind, HCA_IMPAIR_RULE);
	assert_int_equal(hca_port_impair_rule(p, &t.rule), 0);
}

static void
send_frame(struct hca_port *p, struct rte_mbuf *m, uint64_t now)
{
	assert_int_equal(p->ops->tx(p, 0, &m, 1, now), 1);
}

static void
send_of(struct hca_port *p, uint8_t opcode, uint32_t psn)
{
	send_frame(p, rig_frame_of(opcode, psn, RIG_QPN, 0, false), 100 + psn);
}

/* The second ACK, once; everything else passes. */
static void
nth_by_name(void **state)
{
	static const uint8_t opcodes[] = {HCA_BTH_RC_ACK, HCA_BTH_RC_READ_RESP_ONLY,
					  HCA_BTH_RC_ATOMIC_ACK, HCA_BTH_RC_ACK, HCA_BTH_RC_ACK};
	struct hca_port *p = new_impair(rig_sink());
	struct hca_fired fired[HCA_FIRED_MAX];
	char text[40];

	(void)state;
	add_rule(p, "drop,opcode=ack,nth=2");
	for (uint32_t i = 0; i < RTE_DIM(opcodes); i++)
		send_of(p, opcodes[i], i);
	assert_int_equal(sink.n, 4);
	assert_int_equal(rig_psn_of(2), 2);
	assert_int_equal(rig_psn_of(3), 4);
	assert_int_equal(hca_port_impair_hits(p, 0), 1);
	assert_int_equal(hca_port_impair_seen(p, 0), 3);
	assert_int_equal(hca_port_impair_fired(p, fired), 1);
	assert_int_equal(fired[0].number, 1);
	assert_int_equal(fired[0].psn, 3);
	assert_int_equal(fired[0].dst, RIG_QPN);
	assert_int_equal(fired[0].frame, 4);
	assert_int_equal(fired[0].at, 103);
	assert_string_equal(fired[0].opcode, "rc-ack");
	hca_fired_text(&fired[0], text, sizeof(text));
	assert_string_equal(text, "drop by rule 1");
	rig_done(p);
}

/* UB: by the transport's opcode, and by that of the transaction inside. */
static void
ub_names(void **state)
{
	struct hca_port *p = new_impair(rig_sink());
	struct hca_fired fired[HCA_FIRED_MAX];

	(void)state;
	add_rule(p, "drop,opcode=tpack,count=0");
	add_rule(p, "drop,opcode=taack,nth=1");
	send_frame(p, rig_ub_frame(HCA_UB_TP_ACK, 1, 5, 6), 1);
	send_frame(p, rig_ub_frame(HCA_UB_TP_RTP, 2, 5, 6), 2);
	send_frame(p, rig_ub_frame(HCA_UB_TP_RTP, 3, 5, 6), 3);
	send_of(p, HCA_BTH_RC_ACK, 4);
	assert_int_equal(sink.n, 2);
	assert_int_equal(rig_psn_of(1), 4);
	assert_int_equal(hca_port_impair_fired(p, fired), 2);
	assert_string_equal(fired[0].opcode, "tpack");
	assert_string_equal(fired[1].opcode, "taack");
	assert_int_equal(fired[1].rule, 2);
	rig_done(p);
}

/* Probabilities of one opcode: all of its frames, and none of the others. */
static void
odds_by_name(void **state)
{
	struct hca_port *p = new_impair(rig_sink());
	struct hca_fired fired[HCA_FIRED_MAX];
	struct hca_impair_text t = said("drop=1,opcode=rc-write-only");

	(void)state;
	hca_port_impair_set(p, &t.odds);
	for (uint32_t i = 0; i < 40; i++)
		send_of(p, i % 2 != 0 ? HCA_BTH_RC_WRITE_ONLY : HCA_BTH_RC_SEND_ONLY, i);
	assert_int_equal(sink.n, 20);
	/* the last sixteen, oldest first */
	assert_int_equal(hca_port_impair_fired(p, fired), HCA_FIRED_MAX);
	for (uint32_t i = 0; i < HCA_FIRED_MAX; i++) {
		assert_int_equal(fired[i].psn, 39 - 2 * (HCA_FIRED_MAX - 1 - i));
		assert_int_equal(fired[i].number, 5 + i);
		assert_int_equal(fired[i].rule, 0);
	}
	rig_done(p);
}

static void
kinds_of_texts(void **state)
{
	static const struct {
		const char *text;
		uint32_t nth, count, psn;
	} rules[] = {
		{"drop,opcode=ack,nth=3", 3, 1, HCA_FAULT_ANY},
		{"opcode=ack,nth=3,drop", 3, 1, HCA_FAULT_ANY},
		{"drop,psn=7", 0, 1, 7},
		{"drop,opcode=ack", 0, 0, HCA_FAULT_ANY},
		{"drop,nth=2,count=0", 2, 0, HCA_FAULT_ANY},
		{"rule=dup", 0, 0, HCA_FAULT_ANY},
		{"drop,qp=5", 0, 0, HCA_FAULT_ANY},
	};
	struct hca_impair_text t;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(rules); i++) {
		t = said(rules[i].text);
		assert_int_equal(t.kind, HCA_IMPAIR_RULE);
		assert_int_equal(t.rule.nth, rules[i].nth);
		assert_int_equal(t.rule.count, rules[i].count);
		assert_int_equal(t.rule.psn, rules[i].psn);
	}
	t = said("port=down,after=100,for=50");
	assert_int_equal(t.kind, HCA_IMPAIR_PORT);
	assert_int_equal(t.after_ms, 100);
	assert_int_equal(t.for_ms, 50);
	assert_int_equal(said("gid=change,after=9").after_ms, 9);
	assert_int_equal(said("drop=1,opcode=ack").kind, HCA_IMPAIR_ODDS);
}

static void
wrong_texts(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"drop,opcode=foo,nth=3", "\"opcode=foo\": expected send, "},
		{"drop", "drop=0.01"},
		{"drop,dup,nth=1", "\"dup\": expected one fault"},
		{"melt,nth=3", "\"melt\": expected one of drop "},
		{"nth=3", "as in drop,nth=3"},
		{"drop,drop=0.5,nth=1", "\"drop=0.5\""},
		{"port=up,for=5", "\"port=up\": expected down"},
		{"port=down", "for=MS"},
		{"port=down,for=0", "\"for=0\": expected milliseconds"},
		{"port=down,for=5,drop=1", "\"drop=1\""},
		{"gid=new", "\"gid=new\": expected change"},
		{"drop,nth=1;dup,nth=1", "one at a time"},
	};
	struct hca_impair_text t;
	char why[256];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(hca_impair_parse(bad[i].text, &t, why, sizeof(why)), -EINVAL);
		if (strstr(why, bad[i].why) == NULL)
			fail_msg("%s: %s", bad[i].text, why);
	}
}

/* ---- captures ---- */

static char file[1 << 16];
static size_t file_len;

static void
read_file(void)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	file_len = fread(file, 1, sizeof(file), f);
	fclose(f);
	unlink(path);
}

/* Comment of the block that begins at *at, which moves on; "" if it has none; NULL: no packet */
static const char *
next_comment(size_t *at)
{
	static char comment[64];
	uint32_t head[8], option;

	for (;;) {
		if (*at + sizeof(head) > file_len)
			return NULL;
		memcpy(head, file + *at, sizeof(head));
		*at += head[1];
		if (head[0] == 6)
			break;
	}
	memcpy(&option, file + *at - head[1] + 28 + (head[5] + 3) / 4 * 4, sizeof(option));
	if ((option & 0xffff) != 1)
		return "";
	snprintf(comment, sizeof(comment), "%.*s", (int)(option >> 16),
		 file + *at - head[1] + 32 + (head[5] + 3) / 4 * 4);
	return comment;
}

static void
comments(const char *const *want, unsigned int n)
{
	size_t at = 0;

	for (unsigned int i = 0; i < n; i++) {
		const char *got = next_comment(&at);

		assert_non_null(got);
		assert_string_equal(got, want[i]);
	}
	assert_null(next_comment(&at));
}

static struct hca_pcap *
open_file(void)
{
	const struct hca_pcap_ng ng = {.interface = "x", .replace = true};
	struct hca_pcap *c;

	close(mkstemp(test_path(path, "named")));
	assert_int_equal(hca_pcap_open_ng(path, &ng, &c), 0);
	return c;
}

/* The third frame is dropped, the fifth damaged, the seventh delayed. */
static void
run_faults(struct hca_port *p, struct hca_port *impair)
{
	add_rule(impair, "drop,psn=2");
	add_rule(impair, "corrupt_icrc,psn=4");
	add_rule(impair, "rule=delay,psn=6,arg=1000,count=1");
	for (uint32_t i = 0; i < 8; i++)
		send_of(p, HCA_BTH_RC_WRITE_ONLY, i);
	p->ops->poll(p, 0, 100000);
}

/* The capture is in front of the faults, as of links in memory: every frame as it was. */
static void
marks_in_front(void **state)
{
	static const char *const want[] = {
		"", "", "drop by rule 1", "", "corrupt_icrc by rule 2", "", "delay by rule 3", ""};
	struct hca_port *impair = new_impair(rig_sink()), *p;
	struct hca_pcap *c = open_file();

	(void)state;
	assert_int_equal(hca_port_pcap_open(c, impair, -1, &p), 0);
	hca_port_impair_watch(impair, hca_port_pcap_mark, p);
	run_faults(p, impair);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(c), 0);
	read_file();
	comments(want, RTE_DIM(want));
	assert_int_equal(sink.n, 7);
	rig_done(p);
}

/* It is behind them, as in daemons: dropped frames are in the file, delayed ones come later. */
static void
marks_behind(void **state)
{
	static const char *const want[] = {
		"", "", "drop by rule 1", "", "corrupt_icrc by rule 2", "", "", ""};
	struct hca_pcap *c = open_file();
	struct hca_port *pcap, *p;

	(void)state;
	assert_int_equal(hca_port_pcap_open(c, rig_sink(), -1, &pcap), 0);
	p = new_impair(pcap);
	hca_port_impair_watch(p, hca_port_pcap_mark, pcap);
	run_faults(p, p);
	hca_port_pcap_attach(pcap, NULL);
	assert_int_equal(hca_pcap_close(c), 0);
	read_file();
	comments(want, RTE_DIM(want));
	assert_int_equal(sink.n, 7);
	rig_done(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_by_name),	cmocka_unit_test(ub_names),
		cmocka_unit_test(odds_by_name), cmocka_unit_test(kinds_of_texts),
		cmocka_unit_test(wrong_texts),	cmocka_unit_test(marks_in_front),
		cmocka_unit_test(marks_behind),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
