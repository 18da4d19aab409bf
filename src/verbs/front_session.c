/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sessions: contexts of libsofthca, with the file that names them. A program may import a context
 * by a duplicate of its cmd_fd, in the process that opened it.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front.h"

static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct front_session *sessions;

struct front_session *
front_session_new(struct softhca_context *hca)
{
	struct front_session *session = front_new(sizeof(*session), "ibv_open_device");

	if (session == NULL)
		return NULL;
	session->fd = memfd_create("softhca-context", MFD_CLOEXEC);
	if (session->fd < 0) {
		front_refuse(errno, "ibv_open_device", "no file for the context");
		free(session);
		return NULL;
	}
	session->hca = hca;
	session->users = 1;
	pthread_mutex_lock(&sessions_lock);
	session->next = sessions;
	sessions = session;
	pthread_mutex_unlock(&sessions_lock);
	return session;
}

static bool
same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

struct front_session *
front_session_find(int fd)
{
	struct front_session *session;

	pthread_mutex_lock(&sessions_lock);
	for (session = sessions; session != NULL; session = session->next)
		if (same_file(session->fd, fd))
			break;
	if (session != NULL)
		session->users++;
	pthread_mutex_unlock(&sessions_lock);
	return session;
}

int
front_session_drop(struct front_session *session)
{
	struct front_session **at;
	int err;

	pthread_mutex_lock(&sessions_lock);
	if (--session->users != 0) {
		pthread_mutex_unlock(&sessions_lock);
		return 0;
	}
	for (at = &sessions; *at != session; at = &(*at)->next)
		;
	*at = session->next;
	pthread_mutex_unlock(&sessions_lock);
	err = softhca_close(session->hca);
	close(session->fd);
	free(session);
	return err;
}

/* ---- objects by number ---- */

void
front_handle_add(struct ibv_context *context, struct front_handle *handle)
{
	struct front_session *session = front_ctx(context)->session;

	pthread_mutex_lock(&sessions_lock);
	handle->next = session->handles;
	session->handles = handle;
	pthread_mutex_unlock(&sessions_lock);
}

/* Entries that are `handle`, or of the object `hca` */
static void
take_out(struct ibv_context *context, const struct front_handle *handle, const void *hca)
{
	struct front_handle **at;

	pthread_mutex_lock(&sessions_lock);
	at = &front_ctx(context)->session->handles;
	while (*at != NULL) {
		if (*at == handle || (*at)->hca == hca)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&sessions_lock);
}

void
front_handle_remove(struct ibv_context *context, const struct front_handle *handle)
{
	take_out(context, handle, NULL);
}

void
front_handle_forget(struct ibv_context *context, const void *hca)
{
	take_out(context, NULL, hca);
}

void *
front_handle_find(struct ibv_context *context, enum front_kind kind, uint32_t number)
{
	struct front_handle *handle;
	void *hca = NULL;

	pthread_mutex_lock(&sessions_lock);
	handle = front_ctx(context)->session->handles;
	while (handle != NULL && (handle->kind != kind || handle->number != number))
		handle = handle->next;
	if (handle != NULL)
		hca = handle->hca;
	pthread_mutex_unlock(&sessions_lock);
	return hca;
}
