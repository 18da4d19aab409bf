/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * "embed:N" of softhca_open(): HCA N of this process, created at the first open with worker threads
 * and default sizes: two back to back, or one on a port of its own. They exist as long as the
 * process. The environment chooses:
 *	SOFTHCA_EMBED_PORT    the port, a device of DPDK; only one HCA exists then
 *	SOFTHCA_EMBED_FIRST   number of the first HCA [0]: the other end of its wire has another
 *	SOFTHCA_EMBED_IMPAIR  faults of the wire, as softhca_embed_impair() takes them
 *	SOFTHCA_EMBED_SEED    of all random numbers [0: those of the system]
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "embed_impl.h"

SOFTHCA_API int softhca_embed_open_default(unsigned int index, struct softhca_context **ctx);

/* A variable that is set and not empty, or NULL. */
static const char *
setting(const char *name)
{
	const char *value = secure_getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* *number keeps its value if the variable is not set. */
static int
take_number(const char *name, uint64_t max, uint64_t *number)
{
	const char *value = setting(name);
	char *end;

	if (value == NULL)
		return 0;
	errno = 0;
	*number = strtoull(value, &end, 0);
	if (errno == 0 && *end == '\0' && value[0] != '-' && *number <= max)
		return 0;
	return embed_fail(-EINVAL, "%s=%s: expected a number up to %llu", name, value,
			  (unsigned long long)max);
}

static int
configure(struct softhca_embed_config *c, const char **port, const char **impair)
{
	uint64_t first = 0, seed = 0;
	int err;

	softhca_embed_config_init(c);
	c->executor = SOFTHCA_EXECUTOR_THREADS;
	c->link_local_first = 1; /* as in daemons: programs are used to index 1 for IPv4 */
	*impair = setting("SOFTHCA_EMBED_IMPAIR");
	*port = setting("SOFTHCA_EMBED_PORT");
	if (*port != NULL) {
		c->ports = port;
		c->num_hcas = 1;
	}
	err = take_number("SOFTHCA_EMBED_FIRST", EMBED_FIRST_MAX, &first);
	if (err == 0)
		err = take_number("SOFTHCA_EMBED_SEED", UINT64_MAX, &seed);
	c->first = (uint32_t)first;
	c->seed = seed;
	if (err == 0 && *impair != NULL)
		err = softhca_embed_impair(NULL, *impair);
	return err;
}

static int
create(struct softhca_embed **out)
{
	static const char *port; /* used as long as they exist */
	struct softhca_embed_config c;
	const char *impair;
	int err = configure(&c, &port, &impair);

	if (err == 0)
		err = softhca_embed_create(&c, out);
	if (err != 0 || impair == NULL)
		return err;
	err = softhca_embed_impair(*out, impair);
	if (err != 0) {
		softhca_embed_destroy(*out);
		*out = NULL;
	}
	return err;
}

int
softhca_embed_open_default(unsigned int index, struct softhca_context **ctx)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	static struct softhca_embed *shared;
	int err = 0;

	pthread_mutex_lock(&once);
	if (shared == NULL)
		err = create(&shared);
	pthread_mutex_unlock(&once);
	return err == 0 ? softhca_embed_open(shared, index, ctx) : err;
}
