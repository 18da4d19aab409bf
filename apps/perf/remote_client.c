/* SPDX-License-Identifier: BSD-3-Clause */

/* --client: agrees with the server on addresses and MTU, then row after row. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_version.h"
#include "remote.h"

static const struct perf_exchange none;

/* ---- before the first row ---- */

/* The lines of --flows are read by programs. */
static FILE *
remarks(const struct remote *r)
{
	return r->opt.flows != NULL ? stderr : stdout;
}

static int
greet(struct remote *r, struct perf_exchange *hello)
{
	int err = remote_expect(&r->line, "hello", hello);

	if (err == -ETIMEDOUT)
		fprintf(stderr, "softhca-perf: a server takes one client at a time: is it busy?\n");
	if (err != 0 || hello->version == PERF_EXCHANGE_VERSION)
		return err;
	return remote_fail(&r->line, -EPROTO,
			   "the client (%s) speaks version %u of the exchange, the server (%.60s) "
			   "version %" PRIu64,
			   PERF_COMMIT, PERF_EXCHANGE_VERSION, hello->text, hello->version);
}

static int
hear_gids(struct remote *r, struct remote_gids *gids)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int err = remote_send(&r->line, "gids", &none);

	gids->count = 0;
	while (err == 0) {
		err = remote_recv(&r->line, word, &x);
		if (err != 0 || strcmp(word, "end") == 0)
			break;
		if (strcmp(word, "gid") != 0 || gids->count == REMOTE_GIDS_MAX)
			return remote_fail(&r->line, -EPROTO, "\"%s\" is no GID", word);
		memcpy(gids->entry[gids->count].gid.raw, x.gid, sizeof(x.gid));
		gids->entry[gids->count].index = (uint32_t)x.sgid & 0xff;
		gids->entry[gids->count].vlan = (uint32_t)x.vlan & 0xfff;
		gids->count++;
	}
	return err;
}

static int
choose_gids(struct remote *r, struct remote_gid *mine, struct remote_gid *other)
{
	static struct remote_gids own, peer; /* large */
	char why[256], a[80], b[80];
	int err = remote_gids_read(r->s.ctx[0], &own);

	if (err != 0)
		return remote_fail(&r->line, err, "no GID table: %s", softhca_last_error(NULL));
	remote_gids_filter(&own, &r->opt);
	err = hear_gids(r, &peer);
	if (err != 0)
		return err;
	if (r->line.pump != NULL) { /* those that have met */
		remote_gids_only(&own, &r->line.own);
		remote_gids_only(&peer, &r->line.other);
	}
	if (remote_gids_choose(&own, &peer, mine, other, why) != 0)
		return remote_fail(&r->line, -ENETUNREACH, "%s", why);
	remote_gid_text(mine, a);
	remote_gid_text(other, b);
	fprintf(remarks(r), "# %s here, %s there\n", a, b);
	if (!remote_gid_adjacent(mine, other))
		fprintf(stderr,
			"softhca-perf: %s and %s do not look like one network: a router has to "
			"know "
			"both\n",
			a, b);
	return 0;
}

static int
choose_mtu(struct remote *r, const struct perf_exchange *hello)
{
	bool given = perf_option_given(&r->opt, "mtu");
	uint32_t best = r->port_mtu < hello->mtu ? r->port_mtu : (uint32_t)hello->mtu;

	if (r->opt.wire == PERF_WIRE_UB)
		best = best >= 4096 ? 4096 : 1024;
	else if (best < 256)
		best = 256;
	if (!given)
		r->opt.mtu = r->opt.mtu < best ? r->opt.mtu : best;
	if (given && r->opt.mtu > best)
		return remote_fail(
			&r->line, -EINVAL,
			"MTU %u was asked for: the client's port has %u, the server's %" PRIu64,
			r->opt.mtu, r->port_mtu, hello->mtu);
	if (r->port_mtu != hello->mtu)
		fprintf(remarks(r),
			"# MTU %u: the client's port has %u, the server's %" PRIu64 "\n",
			r->opt.mtu, r->port_mtu, hello->mtu);
	return 0;
}

static int
agree(struct remote *r)
{
	struct remote_gid mine = {0}, other = {0};
	struct perf_exchange hello;
	const char *reason;
	int err = greet(r, &hello);

	if (err == 0)
		err = choose_mtu(r, &hello);
	if (err == 0)
		err = choose_gids(r, &mine, &other);
	if (err != 0)
		return err;
	r->s.gid[0] = mine.gid;
	r->s.sgid_index[0] = (uint8_t)mine.index;
	r->s.gid[1] = other.gid;
	r->s.sgid_index[1] = (uint8_t)other.index; /* the server's own number of it */
	r->opt.ip = mine.gid.raw[10] == 0xff && mine.gid.raw[11] == 0xff && mine.gid.raw[0] == 0 &&
				    mine.gid.raw[1] == 0
			    ? 4
			    : 6;
	r->opt.embed.vlan = mine.vlan;
	if (r->opt.service == PERF_SERVICE_UD && !perf_option_given(&r->opt, "size"))
		r->opt.size = r->opt.mtu;
	if (r->opt.seed == 0)
		r->opt.seed = perf_now_ns();
	reason = perf_options_check(&r->opt);
	return reason == NULL ? 0 : remote_fail(&r->line, -EINVAL, "%s", reason);
}

/* ---- a pass ---- */

static int
open_flow(struct remote *r, uint32_t i)
{
	struct perf_exchange x, ready;
	int err;

	remote_case_fill(&r->s, r->pass, &x);
	x.sgid = r->s.sgid_index[1];
	err = remote_flow_say(r, i, &x);
	if (err == 0)
		err = remote_send(&r->line, "case", &x);
	if (err == 0)
		err = remote_expect(&r->line, "ready", &ready);
	if (err == 0)
		remote_flow_hear(r, i, &ready);
	return err;
}

int
remote_pass_open(struct remote *r, enum remote_pass pass, uint64_t size)
{
	struct perf_exchange x;
	int err;

	r->pass = pass;
	r->open = true;
	err = perf_row_open(&r->s, size);
	if (err != 0)
		return remote_fail(&r->line, err, "the client: %s", softhca_last_error(NULL));
	for (uint32_t i = 0; i < r->s.num_flows && err == 0; i++) {
		r->s.flows[i].class =
			r->classes != NULL ? r->classes[i] : (struct perf_flow_class){0};
		err = open_flow(r, i);
	}
	if (err != 0)
		return err;
	err = remote_row_connect(r);
	if (err != 0)
		return remote_fail(&r->line, err, "the client: %s", softhca_last_error(NULL));
	/* Each round of the checking pass has a "go" of its own. */
	if (pass == REMOTE_PASS_TIMED)
		err = remote_send(&r->line, "go", &none);
	if (err == 0 && pass == REMOTE_PASS_TIMED)
		err = remote_expect(&r->line, "go", &x);
	return err;
}

void
remote_pass_close(struct remote *r, int err)
{
	perf_row_close(&r->s);
	r->open = false;
	if (err == 0)
		remote_send(&r->line, "stop", &none);
}

int
remote_meet(struct remote *r)
{
	const struct perf_remote_options *o = &r->own->remote;
	uint64_t timeout_ns = o->timeout * 1000000000ull;
	int err = o->cm ? remote_cm_connect(r->s.ctx[0], &r->line, o->client, o->port, timeout_ns)
			: remote_connect(&r->line, o->client, o->port, timeout_ns);

	if (err == 0)
		err = agree(r);
	if (err == 0)
		remote_wait_link(r);
	r->s.wake_fd = r->line.fd;
	return err;
}

int
remote_client(const struct perf_options *opt)
{
	static struct remote r; /* large */
	struct perf_results results = {0};
	int err = remote_session_open(&r, opt);

	r.client = true;
	if (err == 0)
		err = perf_results_open(&results, &r.opt);
	if (err == 0)
		err = remote_meet(&r);
	if (err == 0)
		err = perf_rows_run(&r.s, &results);
	if (err == 0)
		remote_send(&r.line, "bye", &none);
	if (perf_results_close(&results) != 0 && err == 0)
		err = -EIO;
	remote_session_close(&r);
	return err;
}

int
remote_print_gids(const struct perf_options *opt)
{
	static struct remote r;
	static struct remote_gids gids;
	int err = remote_session_open(&r, opt);

	if (err == 0)
		err = remote_gids_read(r.s.ctx[0], &gids);
	if (err == 0) {
		printf("# %s, MTU %u\n", r.s.ctx[0]->name, r.port_mtu);
		remote_gids_print(&gids);
	}
	remote_session_close(&r);
	return err;
}
