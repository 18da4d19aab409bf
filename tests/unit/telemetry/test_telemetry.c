/* SPDX-License-Identifier: BSD-3-Clause */

/* Answers on the telemetry socket, compared with the API. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <rte_eal.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>
#include <softhca/urma.h>

/* The agent of UB is also a client, with one Jetty. */
#define AGENT 1u

#define ANSWER 65536

static struct softhca_embed *embed;
static struct softhca_context *ctx[2];
static struct softhca_pd *pd[2];
static struct softhca_cq *cq[2];
static struct softhca_qp *qp[2];
static struct softhca_mr *mr[2];
static uint8_t *buf[2];
static int sock;
static char name[2][32];

/* ---- the socket ---- */

static json_t *
ask(const char *format, ...)
{
	static char answer[ANSWER];
	char command[128];
	json_t *whole, *part;
	va_list ap;
	ssize_t n;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	assert_true(send(sock, command, strlen(command), 0) > 0);
	n = recv(sock, answer, sizeof(answer) - 1, 0);
	assert_true(n > 0);
	answer[n] = '\0';
	whole = json_loads(answer, 0, NULL);
	assert_non_null(whole);
	/* {"command": ...}, or null if the command was refused */
	command[strcspn(command, ",")] = '\0';
	part = json_incref(json_object_get(whole, command));
	json_decref(whole);
	return part;
}

static uint64_t
number(json_t *dict, const char *key)
{
	json_t *v = json_object_get(dict, key);

	if (!json_is_integer(v))
		fail_msg("no number %s", key);
	return (uint64_t)json_integer_value(v);
}

static void
connect_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char greeting[1024];

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_true(sock >= 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_true(recv(sock, greeting, sizeof(greeting), 0) > 0);
}

/* ---- traffic ---- */

static void
to_state(unsigned int i, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = qp[1 - i]->qp_num,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64},
	};

	assert_int_equal(softhca_query_gid(ctx[1 - i], 1, 0, &a.ah_attr.dgid), 0);
	assert_int_equal(softhca_modify_qp(qp[i], &a, SOFTHCA_QP_STATE | mask), 0);
}

static void
open_side(unsigned int i)
{
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};

	assert_int_equal(softhca_embed_open(embed, i, &ctx[i]), 0);
	pd[i] = softhca_alloc_pd(ctx[i]);
	cq[i] = softhca_create_cq(ctx[i], &ca);
	qa.send_cq = qa.recv_cq = cq[i];
	qp[i] = softhca_create_qp(pd[i], &qa);
	buf[i] = aligned_alloc(4096, 8192);
	memset(buf[i], i, 8192);
	mr[i] = softhca_reg_mr(pd[i], buf[i], 8192,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE);
	assert_true(qp[i] != NULL && mr[i] != NULL);
}

static void
write_some(unsigned int n)
{
	struct softhca_sge sge = {(uintptr_t)buf[0], 3000, mr[0]->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)buf[1], mr[1]->rkey},
	};
	struct softhca_send_wr *bad;
	struct softhca_wc wc;

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(softhca_post_send(qp[0], &wr, &bad), 0);
	while (n > 0)
		n -= (unsigned int)softhca_poll_cq(cq[0], 1, &wc);
	for (unsigned int i = 0; i < 100; i++)
		softhca_embed_progress(embed);
}

static int
setup(void **state)
{
	/* A file prefix of its own, because other users may run this test at the same time. */
	static char prefix[32];
	static const char *const args[] = {"--no-huge", "-m",	       "256",
					   "--no-pci",	"--no-shconf", "--log-level=error",
					   prefix,	"-l",	       "0",
					   NULL};
	struct softhca_embed_config c;

	snprintf(prefix, sizeof(prefix), "--file-prefix=shtel%d", (int)getpid());
	softhca_embed_config_init(&c);
	c.ub = 1;
	c.eal_args = (const char *const *)args;
	c.log_qps = 8;
	c.log_cqs = 8;
	c.log_mpts = 10;
	c.log_mtts = 12;
	c.mbufs = 512;
	c.records = 1024;
	if (softhca_embed_create(&c, &embed) != 0) {
		print_error("%s\n", softhca_embed_last_error());
		return -1;
	}
	for (unsigned int i = 0; i < 2; i++)
		open_side(i);
	for (unsigned int i = 0; i < 2; i++) {
		to_state(i, SOFTHCA_QPS_INIT,
			 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
		to_state(i, SOFTHCA_QPS_RTR,
			 SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
				 SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
				 SOFTHCA_QP_MIN_RNR_TIMER);
		to_state(i, SOFTHCA_QPS_RTS,
			 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
				 SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
	}
	connect_socket();
	return 0;
}

static int
teardown(void **state)
{
	close(sock);
	softhca_embed_destroy(embed);
	free(buf[0]);
	free(buf[1]);
	return 0;
}

/* ---- tests ---- */

static void
lists(void **state)
{
	json_t *list = ask("/softhca/hca/list");
	unsigned int found = 0;

	assert_int_equal(json_array_size(list), 2);
	for (unsigned int i = 0; i < 2; i++)
		snprintf(name[i], sizeof(name[i]), "%s",
			 json_string_value(json_array_get(list, i)));
	json_decref(list);
	for (unsigned int i = 0; i < 2; i++) {
		list = ask("/softhca/qp/list,%s", name[i]);
		assert_int_equal(json_array_size(list), 1 + AGENT);
		for (unsigned int k = 0; k < 1 + AGENT; k++)
			found += json_integer_value(json_array_get(list, k)) == qp[i]->qp_num;
		json_decref(list);
		list = ask("/softhca/qp/list,%s,2", name[i]);
		assert_int_equal(json_array_size(list), 0);
		json_decref(list);
	}
	assert_int_equal(found, 2);
	list = ask("/softhca/port/list,%s", name[0]);
	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
}

/* The dictionary has those of the counters that are UB's, or that are not, and no others. */
static void
same(json_t *dict, bool ub, const struct softhca_counter *c, int n)
{
	size_t others = 0;

	for (int i = 0; i < n; i++) {
		if ((strncmp(c[i].name, "ub_", 3) == 0) != ub) {
			others++;
			continue;
		}
		/* the API's query is itself counted */
		if (strncmp(c[i].name, "hcr_", 4) == 0)
			continue;
		if (number(dict, c[i].name) != c[i].value)
			fail_msg("%s: %llu and %llu", c[i].name,
				 (unsigned long long)number(dict, c[i].name),
				 (unsigned long long)c[i].value);
	}
	assert_int_equal(json_object_size(dict) + others, n);
	json_decref(dict);
}

static void
counters(void **state)
{
	struct softhca_counter c[512];
	json_t *d;
	int n;

	write_some(10);
	for (unsigned int i = 0; i < 2; i++) {
		n = softhca_query_counters(ctx[i], c, 512);
		assert_true(n > 0 && n <= 512);
		same(ask("/softhca/hca/counters,%s", name[i]), false, c, n);
		same(ask("/softhca/ub/counters,%s", name[i]), true, c, n);
		n = softhca_query_port_counters(ctx[i], 1, c, 256);
		assert_true(n > 0);
		same(ask("/softhca/port/counters,%s", name[i]), false, c, n);
		n = softhca_query_qp_counters(qp[i], c, 256);
		assert_true(n > 0);
		same(ask("/softhca/qp/counters,%s,%u", name[i], qp[i]->qp_num), false, c, n);
	}
	d = ask("/softhca/qp/counters,%s,0x%x", name[0], qp[0]->qp_num);
	assert_int_equal(number(d, "tx_packets"), 30);
	assert_int_equal(number(d, "tx_bytes"), 30000);
	json_decref(d);
}

static void
stages(void **state)
{
	static const char *const some[] = {"parser", "req_tx", "encap", "decap",
					   "ee",     "req_rx", "ceu"};
	uint64_t busy = 0;
	json_t *d;

	softhca_embed_reset_times(embed);
	write_some(20);
	softhca_embed_stop_times(embed);
	softhca_embed_reset_times(embed);
	write_some(20);
	d = ask("/softhca/stages,%s", name[0]);
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		json_t *s = json_object_get(d, some[i]);

		assert_int_equal(number(s, "worker"), 0);
		assert_int_equal(number(s, "waiting"), 0);
		busy += number(s, "busy_cycles");
		assert_true(number(s, "polls") >= number(s, "busy_polls"));
		assert_true(number(s, "polls") > 0);
	}
	assert_true(busy > 0);
	json_decref(d);
	softhca_embed_stop_times(embed);
}

static void
usage(void **state)
{
	struct softhca_value v[64];
	int n = softhca_embed_resources(embed, 0, v, 64);
	json_t *d = ask("/softhca/usage,%s", name[0]);

	assert_true(n > 0 && n <= 64);
	assert_int_equal(json_object_size(d), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(number(d, v[i].name), v[i].value);
	assert_int_equal(number(d, "qps"), 1 + AGENT);
	assert_true(number(d, "qp_bytes") > 0);
	assert_true(number(d, "qp_job_bytes") > 0);
	json_decref(d);
}

static const char *
text(json_t *dict, const char *key)
{
	const char *t = json_string_value(json_object_get(dict, key));

	if (t == NULL)
		fail_msg("no text %s", key);
	return t;
}

/* The program's Jetty; the list also has that of the agent. */
static json_t *
jetty_of_program(json_t *list, uint32_t id)
{
	const char *key;
	json_t *j;

	assert_int_equal(json_object_size(list), 1 + AGENT);
	json_object_foreach(list, key, j) {
		if (number(j, "id") == id)
			return j;
	}
	fail_msg("there is no Jetty %u", id);
	return NULL;
}

/* The single member of a list. */
static json_t *
only(json_t *list)
{
	assert_int_equal(json_object_size(list), 1);
	return json_object_iter_value(json_object_iter(list));
}

static void
queue_pairs(void **state)
{
	json_t *list, *q;

	for (unsigned int i = 0; i < 2; i++) {
		list = ask("/softhca/qps,%s", name[i]);
		q = only(list);
		assert_int_equal(number(q, "qpn"), qp[i]->qp_num);
		assert_int_equal(number(q, "remote_qpn"), qp[1 - i]->qp_num);
		assert_string_equal(text(q, "state"), "RTS");
		assert_string_equal(text(q, "service"), "RC");
		assert_string_equal(text(q, "peer"), i == 0 ? "10.77.0.2" : "10.77.0.1");
		assert_int_equal(number(q, "mtu"), 1024);
		assert_int_equal(number(q, i == 0 ? "next_psn" : "expected_psn"),
				 number(q, i == 0 ? "tx_packets" : "rx_packets"));
		json_decref(list);
		list = ask("/softhca/qps,%s,%u", name[i], 1u << 20);
		assert_int_equal(json_object_size(list), 0);
		json_decref(list);
	}
}

/* A Jetty is among the Jettys and not among the QPs; no client has set up a TP. */
static void
jettys(void **state)
{
	urma_context_t *urma = softhca_urma_context(ctx[0]);
	urma_jfc_cfg_t depth = {.depth = 16};
	urma_jfc_t *jfc = urma_create_jfc(urma, &depth);
	urma_jfr_cfg_t receives = {.depth = 7, .jfc = jfc, .trans_mode = URMA_TM_RM};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = 8, .jfc = jfc, .trans_mode = URMA_TM_RM},
				.jfr_cfg = &receives};
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_SUSPENDED};
	urma_jetty_t *jetty = urma_create_jetty(urma, &cfg);
	json_t *list, *j;

	assert_non_null(jetty);
	list = ask("/softhca/jettys,%s", name[0]);
	j = jetty_of_program(list, jetty->jetty_id.id);
	assert_string_equal(text(j, "service"), "JETTY");
	assert_string_equal(text(j, "state"), "READY");
	assert_int_equal(number(j, "open_segments"), 0);
	json_decref(list);
	assert_int_equal(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);
	list = ask("/softhca/jettys,%s", name[0]);
	assert_string_equal(text(jetty_of_program(list, jetty->jetty_id.id), "state"), "SUSPENDED");
	json_decref(list);
	list = ask("/softhca/qps,%s", name[0]);
	assert_int_equal(number(only(list), "qpn"), qp[0]->qp_num);
	json_decref(list);
	list = ask("/softhca/tps,%s", name[0]);
	assert_int_equal(json_object_size(list), 0);
	json_decref(list);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	list = ask("/softhca/jettys,%s", name[0]);
	assert_int_equal(json_object_size(list), AGENT);
	json_decref(list);
	assert_int_equal(urma_delete_jfc(jfc), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(urma), URMA_SUCCESS);
}

/* Read in pieces, each region appears once, including those of the program. */
static void
regions(void **state)
{
	unsigned int found = 0, next = 0, pieces = 0;
	json_t *list, *m;
	const char *key;
	size_t n;

	do {
		list = ask("/softhca/mrs,%s,%u", name[0], next);
		n = json_object_size(list);
		json_object_foreach(list, key, m) {
			assert_true(number(m, "index") >= next);
			next = (unsigned int)number(m, "index") + 1;
			if (number(m, "key") != mr[0]->lkey)
				continue;
			found++;
			assert_int_equal(number(m, "address"), (uintptr_t)buf[0]);
			assert_int_equal(number(m, "length"), 8192);
			assert_string_equal(text(m, "kind"), "region");
		}
		json_decref(list);
		pieces++;
	} while (n != 0);
	assert_int_equal(found, 1);
	assert_true(pieces >= 2);
}

/* The entry of a region; *list owns it. */
static json_t *
region_of(const struct softhca_mr *m, json_t **list)
{
	unsigned int index = m->lkey >> 8 & 0x1ffff;
	char key[16];

	snprintf(key, sizeof(key), "%u", index);
	*list = ask("/softhca/mrs,%s,%u", name[0], index);
	return json_object_get(*list, key);
}

/* Special regions: without memory, and at another address */
static void
special_regions(void **state)
{
	const uint64_t iova = (uintptr_t)buf[0] + 8192;
	struct softhca_mr *null = softhca_alloc_null_mr(mr[0]->pd);
	struct softhca_mr *moved = softhca_reg_mr_iova(mr[0]->pd, buf[0], 4096, iova, 0);
	json_t *list, *m;

	assert_true(null != NULL && moved != NULL);
	m = region_of(null, &list);
	assert_string_equal(text(m, "kind"), "null");
	json_decref(list);
	m = region_of(moved, &list);
	assert_string_equal(text(m, "kind"), "region");
	assert_int_equal(number(m, "address"), iova);
	json_decref(list);
	assert_int_equal(softhca_dereg_mr(null), 0);
	assert_int_equal(softhca_dereg_mr(moved), 0);
}

static void
addresses(void **state)
{
	json_t *list = ask("/softhca/gids,%s", name[0]), *g = json_object_get(list, "0");

	assert_string_equal(text(g, "ip"), "10.77.0.1");
	assert_string_equal(text(g, "gid"), "::ffff:10.77.0.1");
	assert_string_equal(text(g, "mac"), "02:00:00:77:00:01");
	assert_string_equal(text(json_object_get(list, "1"), "ip"), "2001:db8:77::1");
	assert_null(json_object_get(list, "2"));
	json_decref(list);
}

static void
attached(void **state)
{
	json_t *list = ask("/softhca/clients,%s", name[0]), *c, *s;
	const char *key;

	assert_int_equal(json_object_size(list), 1 + AGENT);
	json_object_foreach(list, key, c) {
		assert_int_equal(number(c, "qps"), 1);
		assert_int_equal(number(c, "cqs"), 1);
	}
	json_decref(list);
	s = ask("/softhca/status,%s", name[0]);
	assert_int_equal(number(s, "pid"), getpid());
	assert_int_equal(number(s, "clients"), 1 + AGENT);
	assert_int_equal(number(s, "active_mtu"), 4096);
	assert_string_equal(text(s, "port_state"), "ACTIVE");
	assert_string_equal(text(s, "layout"), "rtc");
	json_decref(s);
}

static void
measured(void **state)
{
	json_t *d = ask("/softhca/measure,%s,1", name[0]);

	assert_int_equal(number(d, "measured"), 1);
	json_decref(d);
	write_some(20);
	d = ask("/softhca/stages,%s", name[0]);
	assert_true(number(json_object_get(d, "encap"), "busy_ns") > 0);
	json_decref(d);
	json_decref(ask("/softhca/measure,%s,0", name[0]));
	write_some(20);
	d = ask("/softhca/stages,%s", name[0]);
	assert_int_equal(number(json_object_get(d, "encap"), "polls"), 0);
	json_decref(d);
}

static void
refused(json_t *answer)
{
	assert_true(answer == NULL || json_is_null(answer));
	json_decref(answer);
}

static void
wrong_questions(void **state)
{
	refused(ask("/softhca/hca/counters,nobody"));
	refused(ask("/softhca/qp/counters,%s", name[0]));
	refused(ask("/softhca/qp/counters,%s,", name[0]));
	refused(ask("/softhca/qp/counters,%s,12x", name[0]));
	refused(ask("/softhca/qp/counters,%s,%u", name[0], qp[1]->qp_num));
	refused(ask("/softhca/qp/counters,%s,99999999999999999999", name[0]));
	refused(ask("/softhca/qp/counters,%s,-%u", name[0], qp[0]->qp_num));
	refused(ask("/softhca/qp/counters,%s, %u", name[0], qp[0]->qp_num));
	refused(ask("/softhca/port/counters,%s,2", name[0]));
	refused(ask("/softhca/usage,nobody"));
	refused(ask("/softhca/measure,%s", name[0]));
	refused(ask("/softhca/measure,%s,2", name[0]));
	refused(ask("/softhca/qps,%s,4294967296", name[0]));
	refused(ask("/softhca/mrs,%s,x", name[0]));
	refused(ask("/softhca/stages,%s%s%s", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		    "bbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccc"));
}

/* A removed HCA is not found; the commands remain. */
static void
gone(void **state)
{
	struct softhca_embed_config c;
	struct softhca_embed *second;
	json_t *list;

	softhca_embed_config_init(&c);
	c.log_qps = c.log_cqs = 8;
	c.log_mpts = 10;
	c.log_mtts = 12;
	c.mbufs = 512;
	c.records = 1024;
	assert_int_equal(softhca_embed_create(&c, &second), 0);
	list = ask("/softhca/hca/list");
	assert_int_equal(json_array_size(list), 4);
	json_decref(list);
	softhca_embed_destroy(second);
	list = ask("/softhca/hca/list");
	assert_int_equal(json_array_size(list), 2);
	json_decref(list);
}

static void
remove_runtime_dir(void)
{
	rmdir(rte_eal_get_runtime_dir());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),       cmocka_unit_test(counters),
		cmocka_unit_test(stages),      cmocka_unit_test(usage),
		cmocka_unit_test(queue_pairs), cmocka_unit_test(jettys),
		cmocka_unit_test(regions),     cmocka_unit_test(special_regions),
		cmocka_unit_test(addresses),   cmocka_unit_test(attached),
		cmocka_unit_test(measured),    cmocka_unit_test(wrong_questions),
		cmocka_unit_test(gone),
	};

	atexit(remove_runtime_dir); /* after DPDK's own handler, which removes its socket */
	return cmocka_run_group_tests(tests, setup, teardown);
}
