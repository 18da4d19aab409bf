/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCMA_H
#define UCMA_H

/*
 * /dev/infiniband/rdma_cm inside the process, for the system's librdmacm: its calls of the C
 * library that reach the device come here (ucma_hook.c), and the commands of <rdma/rdma_user_cm.h>
 * are carried out with <softhca/cm.h>.
 *
 * A file is the result of one open() of the device: an epoll descriptor with the channel of each
 * HCA that the file uses, and a mark by which a duplicate is known. An id of the process has an end
 * (an id of libsofthca) at each HCA that it uses: no end before it has an address, one at each HCA
 * if that is a wildcard, else one.
 *
 * Locks, in this order: of one file or two (by address), hca_lock, lock. Under them a thread waits
 * only for an answer of a daemon. The contents of a file are under its lock; an id moves between
 * files under the locks of both and `lock`.
 */

#include <netinet/in.h>
#include <sys/socket.h>

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>
#pragma GCC visibility pop

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <softhca/cm.h>
#include <softhca/softhca.h>

#define UCMA_PATH "/dev/infiniband/rdma_cm"

/* ---- numbers of objects ---- */

/* The lowest number that is free is given. */
struct ucma_table {
	void **slots;
	uint32_t size;
	uint32_t lowest; /* no lower number is free */
};

/* The number, or -ENOMEM */
int ucma_table_add(struct ucma_table *table, void *object);
/* Put an object at a number, or take it away (NULL); 0 or -ENOMEM */
int ucma_table_set(struct ucma_table *table, uint32_t number, void *object);
void *ucma_table_get(const struct ucma_table *table, uint32_t number);

/* ---- objects ---- */

struct ucma_hca {
	struct ucma_hca *next;
	struct ibv_device *device;
	struct softhca_context *ctx;
	__be64 guid;
	uint32_t index;
	uint32_t users; /* sources, and lists of HCAs */
	bool dead;	/* its daemon has ended */
};

/* The channel of a file at an HCA */
struct ucma_source {
	struct ucma_source *next;
	struct ucma_hca *hca;
	struct softhca_cm_channel *channel;
	bool dead;
};

struct ucma_hca_list {
	struct ucma_hca **hcas;
	uint32_t n;
};

struct ucma_end {
	struct ucma_source *source;
	struct softhca_cm_id *id;
};

/* Values of SET_OPTION before the id had an end */
#define UCMA_OPTIONS 4u
struct ucma_options {
	bool set[UCMA_OPTIONS];
	uint32_t value[UCMA_OPTIONS]; /* by enum softhca_cm_option */
};

enum ucma_progress {
	UCMA_UNRESOLVED,
	UCMA_RESOLVING,
	UCMA_RESOLVED, /* has a destination, as a request also has */
};

struct ucma_id {
	struct ucma_file *file;
	struct ucma_id *next, **link; /* those of the file */
	uint32_t number;
	uint32_t space;	  /* enum softhca_cm_space */
	uint32_t qp_type; /* enum softhca_qp_type */
	uint64_t uid;	  /* 0: of a request that is not accepted; its events are dropped */
	uint32_t events;  /* reported */
	struct ucma_options options;
	struct ucma_end *ends;
	uint32_t num_ends;
	enum ucma_progress progress;
	bool bound;		    /* by BIND or LISTEN */
	bool routed;		    /* has a path */
	bool gone;		    /* its HCA has gone */
	struct ucma_hca_list asked; /* by RESOLVE: their number */
	uint32_t num_asked;
	struct sockaddr_storage dst;
	int timeout_ms;
	struct ucma_group *groups;
	struct softhca_cm_info info; /* of the first end */
	bool informed;		     /* it is so; until the next event or command but QUERY */
};

/* A membership */
struct ucma_group {
	struct ucma_group *next; /* those of the id */
	struct ucma_id *id;
	uint32_t number;
	uint32_t membership; /* libsofthca's */
	uint64_t uid;
	uint32_t events;
};

struct ucma_file {
	pthread_mutex_t lock;
	struct ucma_file *next, **link; /* all; under ucma.lock */
	uint64_t token;
	uint32_t refs;	/* descriptors that are known and calls; under ucma.lock */
	uint32_t forks; /* ucma.forks when it was opened */
	int watch;	/* closed by its known descriptors: tells whether others live; or -1 */
	struct ucma_source *sources;
	struct ucma_source *turn; /* asked first for an event */
	struct ucma_id *ids;
};

struct ucma_state {
	pthread_mutex_t lock;
	pthread_mutex_t hca_lock;
	struct ucma_table ids;
	struct ucma_table groups;
	struct ucma_table files; /* by descriptor */
	struct ucma_file *all;
	uint32_t kept;	       /* files that are closed, but for descriptors that are not known */
	struct ucma_hca *hcas; /* under hca_lock */
	uint64_t tokens;
	uint32_t forks; /* of this process from others */
	int mark;	/* an eventfd that never fires, in each file; -1: none */
};

extern struct ucma_state ucma;

/* ---- ucma_front.c: calls of the rest of the library ---- */

/* The devices of now, with a reference to each; NULL with errno. */
struct ibv_device **ucma_front_devices(int *n);
void ucma_front_free_devices(struct ibv_device **list);
int ucma_front_open(struct ibv_device *device, struct softhca_context **ctx);
void ucma_front_take(struct ibv_device *device);
void ucma_front_drop(struct ibv_device *device);
/* A result of libsofthca (0 or a negative errno), explained with SOFTHCA_DEBUG; it is returned. */
int ucma_front_result(int result, const char *call);
/* SOFTHCA_VERBS_FAULTS: one more call of librdmacm ("rdma_connect"). 0, or the errno, negative */
int ucma_front_fault(const char *call);
/* Refuse a call: -err, explained. */
int ucma_front_refuse(int err, const char *call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- ucma_hook.c ---- */

/* Lead librdmacm here, if it is loaded and not led yet. Costs little; any thread. */
void ucma_hook(void);

/* The calls that it makes then, for a path that is the device's and for descriptors of ours */
int ucma_open(int flags);
/* false: the descriptor is not of ours. */
bool ucma_is_file(int fd);
/* The result of write(2): -1 with errno */
ssize_t ucma_write(int fd, const void *data, size_t bytes);
/* close: closes the descriptor */
int ucma_close(int fd, int (*close)(int fd));

/* ---- ucma_file.c ---- */

/* The file of a descriptor, with a reference; NULL: it is none of ours. */
struct ucma_file *ucma_file_get(int fd);
void ucma_file_put(struct ucma_file *file);
/* Files that are closed by now, though a duplicate or a waiting call had kept them, end. */
void ucma_file_sweep(void);

/* ---- commands ---- */

struct ucma_call {
	const char *name;
	struct ucma_file *file; /* locked, but in GET_EVENT */
	int fd;
	uint32_t out; /* bytes of room for the answer */
};

/* Copy an answer, as much as there is room for. 0; -EFAULT */
int ucma_answer(const struct ucma_call *call, uint64_t response, const void *answer, size_t bytes);

/* Each returns 0 or a negative errno; data: the structure of the command, zeros where it ended. */
#define UCMA_COMMANDS(X) \
	X(CREATE_ID, create_id, struct rdma_ucm_create_id, qp_type) \
	X(DESTROY_ID, destroy_id, struct rdma_ucm_destroy_id, id) \
	X(BIND_IP, bind_ip, struct rdma_ucm_bind_ip, id) \
	X(RESOLVE_IP, resolve_ip, struct rdma_ucm_resolve_ip, timeout_ms) \
	X(RESOLVE_ROUTE, resolve_route, struct rdma_ucm_resolve_route, timeout_ms) \
	X(QUERY_ROUTE, query_route, struct rdma_ucm_query, id) \
	X(CONNECT, connect, struct rdma_ucm_connect, reserved) \
	X(LISTEN, listen, struct rdma_ucm_listen, backlog) \
	X(ACCEPT, accept, struct rdma_ucm_accept, reserved) \
	X(REJECT, reject, struct rdma_ucm_reject, private_data) \
	X(DISCONNECT, disconnect, struct rdma_ucm_disconnect, id) \
	X(INIT_QP_ATTR, init_qp_attr, struct rdma_ucm_init_qp_attr, qp_state) \
	X(GET_EVENT, get_event, struct rdma_ucm_get_event, response) \
	X(SET_OPTION, set_option, struct rdma_ucm_set_option, optlen) \
	X(NOTIFY, notify, struct rdma_ucm_notify, event) \
	X(JOIN_IP_MCAST, join_ip_mcast, struct rdma_ucm_join_ip_mcast, id) \
	X(LEAVE_MCAST, leave_mcast, struct rdma_ucm_destroy_id, id) \
	X(MIGRATE_ID, migrate_id, struct rdma_ucm_migrate_id, fd) \
	X(QUERY, query, struct rdma_ucm_query, option) \
	X(BIND, bind, struct rdma_ucm_bind, addr) \
	X(RESOLVE_ADDR, resolve_addr, struct rdma_ucm_resolve_addr, dst_addr) \
	X(JOIN_MCAST, join_mcast, struct rdma_ucm_join_mcast, addr)

#define X(NAME, name, type, last) int ucma_##name(const struct ucma_call *call, const void *data);
UCMA_COMMANDS(X)
#undef X

/* ---- ucma_hca.c ---- */

/*
 * All HCAs that can be opened, those with the addresses most like dst first (NULL: in the order of
 * the devices). The list keeps them; 0, or a negative errno: no HCA.
 */
int ucma_hca_list(const struct sockaddr_storage *dst, struct ucma_hca_list *list);
void ucma_hca_list_free(struct ucma_hca_list *list);
/* The channel of the file at an HCA, which is made if missing */
int ucma_source_get(const struct ucma_call *call, struct ucma_hca *hca,
		    struct ucma_source **source);
/* The daemon has ended. */
void ucma_source_died(const struct ucma_call *call, struct ucma_source *source);
void ucma_sources_free(struct ucma_file *file);

/* ---- ucma_id.c ---- */

/* A new id without ends; NULL: no memory */
struct ucma_id *ucma_id_new(struct ucma_file *file, uint64_t uid, uint32_t space, uint32_t qp_type);
/* End it with all that it has. */
void ucma_id_free(struct ucma_id *id);
/* An id of the call's file: NULL with *err -ENOENT; -EINVAL: another file has it; -EIO: gone */
struct ucma_id *ucma_id_get(const struct ucma_call *call, uint32_t number, int *err);
/* The same, for a command that changes nothing */
struct ucma_id *ucma_id_look(const struct ucma_call *call, uint32_t number, int *err);
/* The same of an id that needs an end */
struct ucma_id *ucma_id_at_hca(const struct ucma_call *call, uint32_t number, int *err);
int ucma_end_add(const struct ucma_call *call, struct ucma_id *id, struct ucma_hca *hca);
void ucma_end_drop(struct ucma_id *id, uint32_t i);
/* Forget all ends but those before n. */
void ucma_ends_cut(struct ucma_id *id, uint32_t n);
void ucma_groups_free(struct ucma_id *id);

/* ---- ucma_sockaddr.c ---- */

/* Of the family; 0: an unknown one */
uint32_t ucma_addr_size(const struct sockaddr_storage *addr);
/* The family is known and the size that a command gives is the family's. */
int ucma_addr_judge(const struct ucma_call *call, const struct sockaddr_storage *addr,
		    uint32_t size);
/* The wildcard. Loopback addresses stand for it, as in Linux. */
bool ucma_addr_is_any(const struct sockaddr_storage *addr);
/* In host byte order; 0: none is given */
uint16_t ucma_addr_port(const struct sockaddr_storage *addr);
void ucma_addr_set_port(struct sockaddr_storage *addr, uint16_t port);
union softhca_gid ucma_addr_gid(const struct sockaddr_storage *addr);

/* ---- ucma_addr.c ---- */

/* The HCA that RESOLVE has asked cannot reach the destination: whether another one is asked. */
bool ucma_resolve_next(const struct ucma_call *call, struct ucma_id *id, int status);
void ucma_resolve_done(struct ucma_id *id);

/* ---- ucma_query.c ---- */

void ucma_ah_to_kern(const struct softhca_ah_attr *from, struct ib_uverbs_ah_attr *to);

#endif
