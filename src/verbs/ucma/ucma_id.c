/* SPDX-License-Identifier: BSD-3-Clause */

/* Ids: making, finding and ending them, their ends, and moving them to another file. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "ucma.h"

/* ---- life ---- */

static void
id_link(struct ucma_id *id, struct ucma_file *file)
{
	id->file = file;
	id->next = file->ids;
	id->link = &file->ids;
	if (id->next != NULL)
		id->next->link = &id->next;
	file->ids = id;
}

static void
id_unlink(struct ucma_id *id)
{
	*id->link = id->next;
	if (id->next != NULL)
		id->next->link = id->link;
}

static int
id_number(struct ucma_id *id)
{
	int number;

	pthread_mutex_lock(&ucma.lock);
	number = ucma_table_add(&ucma.ids, id);
	pthread_mutex_unlock(&ucma.lock);
	return number;
}

struct ucma_id *
ucma_id_new(struct ucma_file *file, uint64_t uid, uint32_t space, uint32_t qp_type)
{
	struct ucma_id *id = calloc(1, sizeof(*id));
	int number;

	if (id == NULL)
		return NULL;
	id->uid = uid;
	id->space = space;
	id->qp_type = qp_type;
	id->file = file; /* before it can be found */
	number = id_number(id);
	if (number < 0) {
		free(id);
		return NULL;
	}
	id->number = (uint32_t)number;
	id_link(id, file);
	return id;
}

void
ucma_id_free(struct ucma_id *id)
{
	pthread_mutex_lock(&ucma.lock);
	ucma_table_set(&ucma.ids, id->number, NULL);
	pthread_mutex_unlock(&ucma.lock);
	id_unlink(id);
	ucma_groups_free(id);
	ucma_ends_cut(id, 0);
	ucma_hca_list_free(&id->asked);
	free(id);
}

static struct ucma_id *
id_find(const struct ucma_call *call, uint32_t number, int *err)
{
	struct ucma_id *id;

	pthread_mutex_lock(&ucma.lock);
	id = ucma_table_get(&ucma.ids, number);
	*err = id == NULL ? -ENOENT : id->file != call->file ? -EINVAL : 0;
	pthread_mutex_unlock(&ucma.lock);
	return *err == 0 ? id : NULL;
}

struct ucma_id *
ucma_id_look(const struct ucma_call *call, uint32_t number, int *err)
{
	struct ucma_id *id = id_find(call, number, err);

	if (id != NULL && id->gone)
		*err = -EIO;
	return *err == 0 ? id : NULL;
}

struct ucma_id *
ucma_id_get(const struct ucma_call *call, uint32_t number, int *err)
{
	struct ucma_id *id = ucma_id_look(call, number, err);

	if (id != NULL)
		id->informed = false;
	return id;
}

struct ucma_id *
ucma_id_at_hca(const struct ucma_call *call, uint32_t number, int *err)
{
	struct ucma_id *id = ucma_id_get(call, number, err);

	if (id != NULL && id->num_ends == 0) {
		*err = ucma_front_refuse(
			EINVAL, call->name,
			"id %u has no address: bind it, or resolve a destination first", number);
		return NULL;
	}
	return id;
}

/* ---- ends ---- */

static int
end_set_options(struct softhca_cm_id *end, const struct ucma_options *options)
{
	int err = 0;

	for (uint32_t i = 0; i < UCMA_OPTIONS && err == 0; i++)
		if (options->set[i])
			err = softhca_cm_set_option(end, (enum softhca_cm_option)i,
						    options->value[i]);
	return err;
}

static int
end_make(const struct ucma_call *call, struct ucma_id *id, struct ucma_hca *hca,
	 struct ucma_end *end)
{
	int err = ucma_source_get(call, hca, &end->source);

	if (err != 0)
		return err;
	end->id = softhca_cm_create_id(end->source->channel, (enum softhca_cm_space)id->space,
				       (enum softhca_qp_type)id->qp_type, id);
	if (end->id == NULL)
		return ucma_front_result(-errno, call->name);
	err = ucma_front_result(end_set_options(end->id, &id->options), call->name);
	if (err != 0)
		softhca_cm_destroy_id(end->id);
	return err;
}

int
ucma_end_add(const struct ucma_call *call, struct ucma_id *id, struct ucma_hca *hca)
{
	struct ucma_end *ends = realloc(id->ends, (id->num_ends + 1) * sizeof(*ends));
	int err;

	if (ends == NULL)
		return -ENOMEM;
	id->ends = ends;
	err = end_make(call, id, hca, &ends[id->num_ends]);
	if (err == 0)
		id->num_ends++;
	return err;
}

void
ucma_end_drop(struct ucma_id *id, uint32_t i)
{
	softhca_cm_destroy_id(id->ends[i].id);
	for (id->num_ends--; i < id->num_ends; i++)
		id->ends[i] = id->ends[i + 1];
	if (id->num_ends != 0)
		return;
	free(id->ends);
	id->ends = NULL;
}

void
ucma_ends_cut(struct ucma_id *id, uint32_t n)
{
	while (id->num_ends > n)
		ucma_end_drop(id, id->num_ends - 1);
}

/* ---- commands ---- */

/* Of the port space, but in RDMA_PS_IB */
static int
qp_type_of(const struct rdma_ucm_create_id *cmd, uint32_t *type)
{
	switch (cmd->ps) {
	case RDMA_PS_TCP:
		*type = SOFTHCA_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*type = SOFTHCA_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		*type = cmd->qp_type;
		return 0;
	default:
		return -EINVAL;
	}
}

int
ucma_create_id(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_create_id *cmd = data;
	struct rdma_ucm_create_id_resp resp;
	struct ucma_id *id;
	uint32_t type;
	int err;

	if (call->out < sizeof(resp))
		return -ENOSPC;
	if (qp_type_of(cmd, &type) != 0)
		return ucma_front_refuse(EINVAL, call->name,
					 "port space %#x: expected RDMA_PS_TCP, UDP, IB or IPOIB",
					 cmd->ps);
	id = ucma_id_new(call->file, cmd->uid, cmd->ps, type);
	if (id == NULL)
		return -ENOMEM;
	resp.id = id->number;
	err = ucma_answer(call, cmd->response, &resp, sizeof(resp));
	if (err != 0)
		ucma_id_free(id);
	return err;
}

int
ucma_destroy_id(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_destroy_id *cmd = data;
	struct rdma_ucm_destroy_id_resp resp;
	struct ucma_id *id;
	int err;

	if (call->out < sizeof(resp))
		return -ENOSPC;
	id = id_find(call, cmd->id, &err);
	if (id == NULL)
		return err;
	resp.events_reported = id->events;
	ucma_id_free(id);
	return ucma_answer(call, cmd->response, &resp, sizeof(resp));
}

/* ---- another file ---- */

static void
files_lock(struct ucma_file *a, struct ucma_file *b)
{
	pthread_mutex_lock(a < b ? &a->lock : &b->lock);
	pthread_mutex_lock(a < b ? &b->lock : &a->lock);
}

/* An HCA that does not answer any more has nothing to move. */
static int
ends_move(const struct ucma_call *call, struct ucma_id *id)
{
	struct ucma_source *to;
	int err = 0;

	for (uint32_t i = 0; i < id->num_ends && err == 0; i++)
		err = ucma_source_get(call, id->ends[i].source->hca, &to);
	for (uint32_t i = 0; i < id->num_ends && err == 0; i++) {
		ucma_source_get(call, id->ends[i].source->hca, &to);
		ucma_front_result(softhca_cm_migrate(id->ends[i].id, to->channel), call->name);
		id->ends[i].source = to;
	}
	return err;
}

static int
id_move(const struct ucma_call *call, struct ucma_id *id)
{
	int err = ends_move(call, id);

	if (err != 0)
		return err;
	id_unlink(id);
	pthread_mutex_lock(&ucma.lock);
	id_link(id, call->file);
	pthread_mutex_unlock(&ucma.lock);
	return 0;
}

/* The locks of both files are held. */
static int
id_migrate(const struct ucma_call *call, struct ucma_file *from,
	   const struct rdma_ucm_migrate_id *cmd)
{
	const struct ucma_call there = {call->name, from, (int)cmd->fd, 0};
	struct rdma_ucm_migrate_resp resp;
	struct ucma_id *id;
	int err;

	id = ucma_id_get(&there, cmd->id, &err);
	if (id == NULL)
		return err;
	resp.events_reported = id->events;
	err = from != call->file ? id_move(call, id) : 0;
	return err != 0 ? err : ucma_answer(call, cmd->response, &resp, sizeof(resp));
}

int
ucma_migrate_id(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_migrate_id *cmd = data;
	struct ucma_file *from = ucma_file_get((int)cmd->fd);
	int err = -EINVAL;

	if (call->out < sizeof(struct rdma_ucm_migrate_resp))
		err = -ENOSPC;
	else if (fcntl((int)cmd->fd, F_GETFD) < 0)
		err = -ENOENT;
	else if (from == call->file)
		err = id_migrate(call, from, cmd);
	else if (from != NULL && from->forks == ucma.forks) {
		pthread_mutex_unlock(&call->file->lock);
		files_lock(from, call->file);
		err = id_migrate(call, from, cmd);
		pthread_mutex_unlock(&from->lock);
	}
	if (from != NULL)
		ucma_file_put(from);
	return err;
}
