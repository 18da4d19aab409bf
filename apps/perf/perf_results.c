/* SPDX-License-Identifier: BSD-3-Clause */

/* Outputs of rows in addition to the table: --json, --histogram, --plot. */

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"

#define PLOT "softhca-plot"

extern char **environ;

/* softhca-plot stands where this program does, or in PATH. */
static void
find_plot(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(PLOT));
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL)
		strcpy(slash + 1, PLOT);
	if (slash == NULL || access(path, X_OK) != 0)
		strcpy(path, PLOT);
}

/* 0, or -EIO: it has reported the error, or this does. */
static int
run_plot(const char *first, const char *second, const char *third)
{
	const char *argv[] = {PLOT, first, second, third, NULL};
	char path[PATH_MAX];
	int status = 0, err;
	pid_t child;

	find_plot(path);
	err = posix_spawnp(&child, path, NULL, NULL, (char *const *)argv, environ);
	if (err == 0 && waitpid(child, &status, 0) == child && status == 0)
		return 0;
	fprintf(stderr, "softhca-perf: --plot: no picture: %s\n",
		err == ENOENT ? PLOT " or python3 is not installed"
		: err != 0    ? strerror(err)
			      : PLOT " failed");
	return -EIO;
}

static int
open_plot(struct perf_results *r)
{
	int fd;

	if (run_plot("--check", "--output", r->opt->plot) != 0)
		return -EIO;
	if (r->json_path != NULL)
		return 0;
	snprintf(r->temporary, sizeof(r->temporary), "%s/softhca-perf.XXXXXX",
		 getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	fd = mkstemp(r->temporary);
	if (fd < 0) {
		fprintf(stderr, "softhca-perf: --plot: cannot write %s: %s\n", r->temporary,
			strerror(errno));
		r->temporary[0] = '\0';
		return -EIO;
	}
	close(fd);
	r->json_path = r->temporary;
	return 0;
}

int
perf_results_open(struct perf_results *r, const struct perf_options *opt)
{
	*r = (struct perf_results){.opt = opt, .json_path = opt->json};
	if (opt->plot != NULL && open_plot(r) != 0)
		return -EIO;
	if (r->json_path != NULL) {
		r->json = perf_json_open(opt, r->json_path);
		if (r->json == NULL)
			return -EIO;
	}
	if (opt->histogram == NULL)
		return 0;
	r->histogram = fopen(opt->histogram, "we");
	if (r->histogram != NULL)
		return 0;
	fprintf(stderr, "softhca-perf: --histogram: cannot write %s: %s\n", opt->histogram,
		strerror(errno));
	return -EIO;
}

int
perf_results_row(struct perf_results *r, const struct perf_session *s, const struct perf_row *row)
{
	if (r->histogram != NULL && row->has_latency)
		perf_histogram_print(r->histogram, r->opt, row);
	r->rows++;
	return r->json != NULL ? perf_json_row(r->json, s, row) : 0;
}

int
perf_results_close(struct perf_results *r)
{
	int err = 0;

	if (r->json != NULL && perf_json_close(r->json) != 0)
		err = -EIO;
	if (r->histogram != NULL && fclose(r->histogram) != 0) {
		fprintf(stderr, "softhca-perf: --histogram: cannot write %s\n", r->opt->histogram);
		err = -EIO;
	}
	if (r->json != NULL && r->opt->plot != NULL && r->rows != 0 && err == 0)
		err = run_plot("--output", r->opt->plot, r->json_path);
	if (r->temporary[0] != '\0')
		unlink(r->temporary);
	return err;
}
