/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_FOREIGN_IMPL_H
#define IPC_FOREIGN_IMPL_H

/* Shared by ipc_foreign.c (files, mappings, pages) and ipc_agent.c (access). */

#include <pthread.h>

#include "ipc_budget.h"
#include "ipc_foreign.h"

#define IPC_FOREIGN_BYTES 8192u /* per access: a packet's payload and more */

struct ipc_foreign {
	int mem, maps;
	int stop_fd;		/* of the server */
	int tid;		/* of the agent's thread; 0: it has not begun */
	uint32_t refs;		/* references of the owner and the agent */
	uint32_t ended;		/* every access fails */
	uint32_t stop;		/* the agent must end */
	uint32_t agent_asleep;	/* the agent sleeps, or is about to */
	uint32_t worker_asleep; /* the worker that waits sleeps, or is about to */
	int agent_cpu;		/* where they ran last, -1: unknown */
	int worker_cpu;
	pthread_mutex_t lock; /* of the workers: one request at a time */
	uint32_t state;	      /* of the request: enumeration in ipc_agent.c; both sleep on it */
	uint64_t empty_at;    /* when the client's budget of waiting was empty last */
	struct ipc_budget *budget; /* of its user, until it is destroyed */
	/* the request */
	bool write;
	uint32_t len;
	uint64_t addr;
	int result;
	uint8_t bytes[IPC_FOREIGN_BYTES];
};

/* ipc_agent.c: the agent's thread. */
int ipc_foreign_start(struct ipc_foreign *f, uid_t uid);
/* ipc_foreign.c: called with the last reference. */
void ipc_foreign_free(struct ipc_foreign *f);

#endif
