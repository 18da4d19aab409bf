/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "abi_release.h"
#include "embed_ctl.h"
#include "lib_ctl.h"

#define USER_FIRST UINT64_C(0x1000)
#define USER_END UINT64_C(0x7ffffffff000)

struct embed_ctl {
	struct hca_driver *drv;
	struct hca_client *client;
	struct embed_ctl_config config;
	uint32_t forks; /* embed_forks() when it was opened */
};

/* Whether this process was forked from the one that has the HCA. */
static bool
foreign(void *arg)
{
	return ((struct embed_ctl *)arg)->forks != embed_forks();
}

static int
ctl_call(void *arg, enum hca_ctl_op op, const void *request, void *answer,
	 struct hca_ctl_extra *extra)
{
	return foreign(arg) ? -EPERM
			    : hca_client_call(((struct embed_ctl *)arg)->client, op, request,
					      answer, extra);
}

static const char *
ctl_reason(void *arg)
{
	return foreign(arg) ? "the context belongs to the process this one was forked from"
			    : hca_driver_reason();
}

static volatile void *
ctl_uar(void *arg)
{
	return hca_client_uar(((struct embed_ctl *)arg)->client);
}

static bool
ctl_alive(void *arg)
{
	return !hca_driver_dead(((struct embed_ctl *)arg)->drv);
}

static unsigned int
ctl_progress(void *arg)
{
	struct embed_ctl *ctl = arg;

	return ctl->config.progress(ctl->config.arg);
}

static unsigned int
ctl_posted(void *arg)
{
	struct embed_ctl *ctl = arg;

	return ctl->config.posted(ctl->config.arg);
}

static int
ctl_sleep(void *arg, uint32_t pipe, const uint32_t **word, int *kick_fd)
{
	const struct embed_ctl_config *c = &((struct embed_ctl *)arg)->config;

	if (c->sleep[pipe].word == NULL)
		return -ENOENT;
	*word = c->sleep[pipe].word;
	*kick_fd = c->sleep[pipe].kick_fd;
	return 0;
}

static int
ctl_close(void *arg)
{
	struct embed_ctl *ctl = arg;

	hca_client_close(ctl->client);
	if (ctl->config.closed != NULL)
		ctl->config.closed(ctl->config.arg);
	free(ctl);
	return 0;
}

#define CTL_OPS(progress_fn, posted_fn) \
	{ \
		.call = ctl_call, .reason = ctl_reason, .uar = ctl_uar, .alive = ctl_alive, \
		.progress = progress_fn, .posted = posted_fn, .sleep = ctl_sleep, \
		.close = ctl_close, \
	}

static const struct softhca_ctl_ops manual_ops = CTL_OPS(ctl_progress, ctl_posted);
static const struct softhca_ctl_ops background_ops = CTL_OPS(NULL, NULL);

int
embed_ctl_open(struct hca_driver *drv, const struct embed_ctl_config *config,
	       struct softhca_context **ctx)
{
	/* the device belongs to this process */
	const struct hca_client_who who = {.privileged = true};
	const struct hca_ctl_identity me = {HCA_RELEASE};
	struct hca_ctl_identity device;
	struct embed_ctl *ctl = calloc(1, sizeof(*ctl));
	int err;

	if (ctl == NULL)
		return -ENOMEM;
	ctl->drv = drv;
	ctl->config = *config;
	if (config->posted == NULL)
		ctl->config.posted = config->progress;
	ctl->forks = embed_forks();
	err = hca_client_open(drv, &who, &ctl->client);
	if (err != 0)
		goto err_free;
	err = hca_client_attach(ctl->client, USER_FIRST, USER_END - USER_FIRST);
	if (err == 0)
		err = hca_client_call(ctl->client, HCA_CTL_IDENTIFY, &me, &device, NULL);
	if (err != 0)
		goto err_client;
	err = softhca_context_create(config->progress != NULL ? &manual_ops : &background_ops, ctl,
				     config->name, ctx);
	if (err != 0)
		goto err_client;
	return 0;

err_client:
	hca_client_close(ctl->client);
err_free:
	free(ctl);
	return err;
}
