/* SPDX-License-Identifier: BSD-3-Clause */

/* Every operation by service, MTU, IP version and direction, as one table. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "host_special.h"

#define MTUS 5
#define COLUMNS (MTUS * 4) /* direction, IP version, MTU */

static const struct row {
	const char *name;
	uint32_t service, op;
} rows[] = {
	{"RC SEND", IBV_QPT_RC, IBV_WR_SEND},
	{"RC SEND_IMM", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM},
	{"RC WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE},
	{"RC WRITE_IMM", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM},
	{"RC READ", IBV_QPT_RC, IBV_WR_RDMA_READ},
	{"RC FETCH_ADD", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD},
	{"RC CMP_SWAP", IBV_QPT_RC, IBV_WR_ATOMIC_CMP_AND_SWP},
	{"UC SEND", IBV_QPT_UC, IBV_WR_SEND},
	{"UC SEND_IMM", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM},
	{"UC WRITE", IBV_QPT_UC, IBV_WR_RDMA_WRITE},
	{"UC WRITE_IMM", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM},
	{"UD SEND", IBV_QPT_UD, IBV_WR_SEND},
	{"UD SEND_IMM", IBV_QPT_UD, IBV_WR_SEND_WITH_IMM},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const marks[] = {".", "ok", "FAIL"};

struct tally {
	unsigned int passed, failed, untimed;
};

static bool
is_wanted(const struct host_options *o, const char *name)
{
	return o->filter == NULL || strstr(name, o->filter) != NULL;
}

/* A failure; not counted as one if the machine's clock is wrong. */
static void
fail(struct host *h, const char *name, const char *reason, struct tally *t)
{
	char clock[128];
	bool wrong = host_clock_is_wrong(&h->clock, clock, sizeof(clock));

	t->failed += !wrong;
	t->untimed += wrong;
	if (wrong)
		printf("NO RESULT %s: %s; it says: %s\n", name, clock, reason);
	else
		printf("FAIL %s: %s\n", name, reason);
}

/* 1: passed, 2: failed; negative: no more tests are possible. */
static int
run_one(struct host *h, const struct host_options *o, const char *name, struct host_case *c,
	struct tally *t)
{
	char reason[HOST_REASON] = "";
	int err;

	host_finish_case(c, o->seed, name);
	if (h == NULL) {
		printf("%s\n", name);
		return 0;
	}
	if (o->verbose)
		printf("  %s\n", name);
	err = host_run(h, c, reason);
	t->passed += err == 0;
	if (err != 0)
		fail(h, name, reason, t);
	fflush(stdout);
	if (h->lost)
		return err;
	return err == 0 ? 1 : 2;
}

static struct host_case
cell(const struct row *r, unsigned int column)
{
	return (struct host_case){
		.ours = column / (2 * MTUS) == 0,
		.test =
			{
				.service = r->service,
				.op = r->op,
				.mtu = 256u << column % MTUS,
				.ip = column / MTUS % 2 ? 6 : 4,
				.count = r->service == IBV_QPT_UD ? 12 : 26,
				.depth = 8,
				.sge = 1 + column % 3,
				.flags = EP_SIZES,
			},
	};
}

static bool
is_quick(unsigned int column)
{
	return column % MTUS == 2; /* 1024 */
}

static void
print_matrix(unsigned char result[ROWS][COLUMNS])
{
	printf("\n%-14s", "");
	for (unsigned int c = 0; c < COLUMNS; c += MTUS)
		printf("| %s IPv%u       ", c < 2 * MTUS ? "softhca -> rxe" : "rxe -> softhca",
		       c / MTUS % 2 ? 6 : 4);
	printf("\n%-14s", "MTU");
	for (unsigned int c = 0; c < COLUMNS; c++)
		printf("%s%-5u", c % MTUS == 0 ? "| " : "", 256u << c % MTUS);
	printf("\n");
	for (unsigned int r = 0; r < ROWS; r++) {
		printf("%-14s", rows[r].name);
		for (unsigned int c = 0; c < COLUMNS; c++)
			printf("%s%-5s", c % MTUS == 0 ? "| " : "", marks[result[r][c]]);
		printf("\n");
	}
}

static int
run_matrix(struct host *h, const struct host_options *o, struct tally *t)
{
	unsigned char result[ROWS][COLUMNS] = {{0}};
	char name[96];
	int rc = 0;

	for (unsigned int r = 0; r < ROWS && rc >= 0; r++) {
		for (unsigned int k = 0; k < COLUMNS && rc >= 0; k++) {
			struct host_case c = cell(&rows[r], k);

			snprintf(name, sizeof(name), "%s MTU %u IPv%u %s", rows[r].name,
				 (unsigned int)c.test.mtu, (unsigned int)c.test.ip,
				 c.ours ? "softhca->rxe" : "rxe->softhca");
			if (!is_wanted(o, name) || (o->quick && !is_quick(k)))
				continue;
			rc = run_one(h, o, name, &c, t);
			result[r][k] = rc < 0 ? 2 : (unsigned char)rc;
		}
	}
	if (h != NULL && t->passed + t->failed != 0)
		print_matrix(result);
	return rc < 0 ? rc : 0;
}

static int
run_specials(struct host *h, const struct host_options *o, struct tally *t)
{
	unsigned int before = t->passed + t->failed;
	struct {
		unsigned char both[2];
	} *result = calloc(host_num_specials, sizeof(*result));
	char name[96];
	int rc = 0;

	if (result == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < host_num_specials && rc >= 0; i++) {
		for (unsigned int way = 0; way < 2 && rc >= 0; way++) {
			struct host_case c;

			if (!host_special(i, way == 0, &c))
				continue;
			snprintf(name, sizeof(name), "%s %s", host_special_name(i),
				 way == 0 ? "softhca->rxe" : "rxe->softhca");
			if (!is_wanted(o, name))
				continue;
			rc = run_one(h, o, name, &c, t);
			result[i].both[way] = rc < 0 ? 2 : (unsigned char)rc;
		}
	}
	if (h != NULL && t->passed + t->failed != before)
		printf("\n%-44s| softhca -> rxe | rxe -> softhca\n", "");
	for (unsigned int i = 0; h != NULL && i < host_num_specials; i++)
		if (result[i].both[0] || result[i].both[1])
			printf("%-44s| %-15s| %s\n", host_special_name(i), marks[result[i].both[0]],
			       marks[result[i].both[1]]);
	free(result);
	return rc < 0 ? rc : 0;
}

static int
run_random(struct host *h, const struct host_options *o, struct tally *t)
{
	unsigned int before = t->passed, ran = 0;
	char name[160];
	int rc = 0;

	for (unsigned int i = 0; i < o->random && rc >= 0; i++) {
		struct host_case c;

		host_random_case(i, o->seed, &c, name, sizeof(name));
		if (!is_wanted(o, name))
			continue;
		rc = run_one(h, o, name, &c, t);
		ran++;
	}
	if (h != NULL && ran != 0)
		printf("\n%-44s| %u of %u passed\n", "drawn from the seed", t->passed - before,
		       ran);
	return rc < 0 ? rc : 0;
}

int
host_matrix(struct host *h, const struct host_options *o)
{
	struct tally t = {0};
	char clock[128];
	int err = run_matrix(h, o, &t);

	if (err == 0)
		err = run_specials(h, o, &t);
	if (err == 0)
		err = run_random(h, o, &t);
	if (h == NULL)
		return err;
	host_clock_is_wrong(&h->clock, clock, sizeof(clock));
	printf("\n%u passed, %u failed, %u without result (seed %llu); %s\n", t.passed, t.failed,
	       t.untimed, (unsigned long long)o->seed, clock);
	if (err != 0)
		printf("the guest is gone: %s\n", strerror(-err));
	if (err == 0 && t.passed + t.failed + t.untimed == 0) {
		printf("no case has such a name\n");
		err = -ENOENT;
	}
	return err != 0 ? err : (int)t.failed;
}
