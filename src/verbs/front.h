/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRONT_H
#define FRONT_H

/*
 * libibverbs.so.1 over libsofthca. Regions, windows and address handles of verbs are those of
 * libsofthca, as are work requests and completions: they have one layout (front_layout.c). Every
 * other object of verbs is the first member of an object here that holds the object of libsofthca;
 * events of libsofthca carry a pointer to it.
 *
 * Functions fail as the manual pages of verbs say: with a positive errno, or with NULL or -1 and
 * errno. SOFTHCA_DEBUG=1 in the environment prints the reason of every failure.
 */

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <softhca/softhca.h>

/* Functions of the library's interface that no installed header declares */
#define FRONT_API __attribute__((visibility("default")))

#define front_of(pointer, type, member) \
	((type *)(uintptr_t)((const char *)(pointer)-offsetof(type, member)))

/*
 * Providers of other devices look for their operations behind a device before they touch it; they
 * find zeros there.
 */
#define FRONT_DEVICE_ZEROS 256

struct front_device {
	struct ibv_device pub;
	char zeros[FRONT_DEVICE_ZEROS];
	char open_name[256]; /* for softhca_open() */
	int index;
	int number;		   /* in dev_name: that of no other device that is in use */
	uint32_t users;		   /* lists and contexts; under the lock of front_device.c */
	struct front_device *next; /* in use; under that lock, as the members below */
	bool has_guid;
	uint64_t guid;
};

struct front_context {
	struct verbs_context ex;
	struct softhca_context *hca;
	struct front_device *device;
	struct front_live *objects; /* under the lock of front_live.c */
	bool like_mlx5;		    /* front_like.c */
	/* front_fault.c: ops.poll_cq without faults */
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
};

struct front_td {
	struct ibv_td pub;
	struct softhca_td *hca;
	uint32_t users; /* parent domains */
};

/* A protection domain, or a parent domain, which has one as its parent */
struct front_pd {
	struct ibv_pd pub;
	struct softhca_pd *hca;
	struct front_pd *parent;
	struct front_td *td; /* parent domains only; or NULL */
	uint32_t users;	     /* of a PD: its parent domains; of a parent domain: its objects */
};

struct front_channel {
	struct ibv_comp_channel pub;
	struct softhca_comp_channel *hca;
};

struct front_cq {
	struct ibv_cq_ex pub;
	struct softhca_cq *hca;
};

struct front_srq {
	struct ibv_srq pub;
	struct softhca_srq *hca;
};

struct front_xrcd {
	struct ibv_xrcd pub;
	struct softhca_xrcd *hca;
};

typedef void (*front_flush_fn)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			       size_t len, uint8_t type, uint8_t level);

/* The extended QP of verbs, and the member that the header of rdma-core 44 lacks */
struct front_qp {
	union {
		struct ibv_qp_ex pub;
		struct {
			char until_44[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *)];
			front_flush_fn wr_flush; /* since rdma-core 45 */
		};
	};
	struct softhca_qp *hca;
	struct front_batch *batch; /* front_wr.c; NULL: not created with send_ops_flags */
	/* front_fault.c; under its lock */
	struct front_qp *fault_next;
	unsigned int broken; /* queues with a completion that is an error on purpose, a set */
	bool to_error;
};

/* front_error.c: the errno of a result of libsofthca (0 or negative), which becomes positive. */
int front_result(int result, const char *call);
#define FRONT_RESULT(result) front_result(result, __func__)

/* The same of softhca_open(): the reason is explained by front_explain_device(). */
int front_result_of_open(int result, const char *call);
/*
 * The reason why a program gets no device: a line on stderr with SOFTHCA_DEBUG, and for a program
 * of softhca-run always the first one.
 */
void front_explain_device(int err, const char *call, const char *reason);

/* After a call of libsofthca that returned NULL and set errno. */
void *front_failed(const char *call);
#define FRONT_FAILED() front_failed(__func__)

/* Refuse a call here: sets errno, returns it. */
int front_refuse(int err, const char *call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A note on a call that succeeds: a line on stderr with SOFTHCA_DEBUG. */
bool front_notes(void); /* whether there will be a line */
void front_note(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define FRONT_REFUSE(err, ...) front_refuse(err, __func__, __VA_ARGS__)
#define FRONT_NULL(err, ...) (front_refuse(err, __func__, __VA_ARGS__), NULL)

/* Zeroed memory for an object; NULL: refused with ENOMEM. */
void *front_new(size_t bytes, const char *call);
#define FRONT_NEW(type) ((type *)front_new(sizeof(type), __func__))

/* A kind of objects, for front_live.c */
struct front_kind {
	const char *name;
	size_t handle; /* where the object has its public handle; 0: it has none */
	/* Destroy the object of libsofthca and free ours; a positive errno, explained: it stays */
	int (*destroy)(void *object, const char *call);
	/* Free ours after the context has closed, and its objects with it; NULL: nothing is ours */
	void (*free)(void *object);
};

/*
 * front_live.c: a new object is entered, or destroyed again if there is no memory for that (NULL);
 * an object is destroyed if it is there (else EINVAL) and has the handle and the context that it
 * got (else ENOENT, as from the kernel); all of a context that is closed are freed. pd: the
 * object's, or NULL; a parent domain counts the objects in it, and those moved to it.
 */
void *front_enter(void *object, const struct front_kind *kind, struct ibv_context *context,
		  struct ibv_pd *pd, const char *call);
#define FRONT_ENTER(object, kind, context) front_enter(object, kind, context, NULL, __func__)
#define FRONT_ENTER_PD(object, kind, pd) front_enter(object, kind, (pd)->context, pd, __func__)
void front_move(const void *object, struct ibv_pd *pd);
void front_renumber(const void *object); /* the object has got another handle */
int front_destroy(void *object, const struct front_kind *kind, const char *call);
#define FRONT_DESTROY(object, kind) front_destroy(object, kind, __func__)
void front_forget(struct front_context *owner);

/* front_device.c: ibv_get_device_list(), for call; lists and contexts keep a device. */
struct ibv_device **front_device_list(int *num_devices, const char *call);
void front_device_take(struct front_device *device);
void front_device_drop(struct front_device *device);
bool front_device_is_embedded(const struct front_device *device);

/* front_like.c: a new context; 0, or the errno of a name that is not known, explained */
int front_like(struct front_context *ctx, const char *call);
void front_like_device(const struct front_context *ctx, struct ibv_device_attr *attr);
uint8_t front_like_read_sl(struct ibv_cq_ex *pub);
int front_like_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

/* front_fault.c: SOFTHCA_VERBS_FAULTS names faults. 0, or the errno of a text that is wrong */
bool front_faults_on(void);
int front_faults_judge(const char *call);
/*
 * One more call: 0, or the errno (also in errno) with which it is to fail. call: the name of the
 * public function, or of an operation here.
 */
int front_fault_slow(const char *call);
static inline int
front_fault(const char *call)
{
	return front_faults_on() ? front_fault_slow(call) : 0;
}
/* The same as the first statement of a call. */
#define FRONT_FAULT(result) \
	do { \
		if (front_fault(__func__) != 0) \
			return result; \
	} while (0)
void front_fault_context(struct front_context *ctx);
void front_fault_qp_add(struct front_qp *qp);
void front_fault_qp_remove(const struct front_qp *qp);
void front_fault_qp_reset(struct front_qp *qp);
/* A completion is shown to the program: it may become an error; and afterwards, without locks. */
void front_fault_completion(const struct ibv_context *context, uint32_t qp_num, bool received,
			    enum ibv_wc_status *status);
void front_fault_settle(void);

/* front_watch.c: files with counters of an embedded device are written while it is open. */
void front_watch(struct front_device *device, struct softhca_context *hca);
void front_unwatch(const struct softhca_context *hca);

static inline struct front_context *
front_ctx(const struct ibv_context *context)
{
	return front_of(context, struct front_context, ex.context);
}

static inline struct softhca_context *
front_hca(const struct ibv_context *context)
{
	return front_ctx(context)->hca;
}

static inline struct softhca_pd *
front_pd_hca(const struct ibv_pd *pd)
{
	return pd != NULL ? ((const struct front_pd *)pd)->hca : NULL;
}

/*
 * The handles of verbs are not used here, but a program that has overwritten one gets an error, as
 * from the kernel (ENOENT). NULL names no object.
 */
#define FRONT_IS_GARBLED(object, number) ((object) != NULL && (object)->handle != (number))
#define FRONT_GARBLED(call, object) \
	front_refuse(ENOENT, call, "the handle of the " object " was overwritten")

static inline int
front_pd_judge(const struct ibv_pd *pd, const char *call)
{
	return FRONT_IS_GARBLED(pd, front_pd_hca(pd)->handle) ? FRONT_GARBLED(call, "PD") : 0;
}

static inline struct softhca_cq *
front_cq_hca(const struct ibv_cq *cq)
{
	return cq != NULL ? ((const struct front_cq *)(const void *)cq)->hca : NULL;
}

static inline struct softhca_srq *
front_srq_hca(const struct ibv_srq *srq)
{
	return srq != NULL ? ((const struct front_srq *)srq)->hca : NULL;
}

static inline int
front_cq_judge(const struct ibv_cq *cq, const char *call)
{
	return FRONT_IS_GARBLED(cq, front_cq_hca(cq)->handle) ? FRONT_GARBLED(call, "CQ") : 0;
}

static inline int
front_srq_judge(const struct ibv_srq *srq, const char *call)
{
	return FRONT_IS_GARBLED(srq, front_srq_hca(srq)->handle) ? FRONT_GARBLED(call, "SRQ") : 0;
}

static inline struct softhca_mr *
front_mr_hca(struct ibv_mr *mr)
{
	return (struct softhca_mr *)mr;
}

static inline struct softhca_mw *
front_mw_hca(struct ibv_mw *mw)
{
	return (struct softhca_mw *)mw;
}

static inline struct softhca_ah *
front_ah_hca(struct ibv_ah *ah)
{
	return (struct softhca_ah *)ah;
}

static inline struct front_qp *
front_qp(const struct ibv_qp *qp)
{
	return (struct front_qp *)(uintptr_t)qp;
}

static inline int
front_qp_judge(const struct ibv_qp *qp, const char *call)
{
	return FRONT_IS_GARBLED(qp, front_qp(qp)->hca->qp_num) ? FRONT_GARBLED(call, "QP") : 0;
}

/* front_ah.c: 0, or the errno of an address without GRH, which RoCE does not have. */
int front_path(const struct ibv_ah_attr *from, struct softhca_ah_attr *to, const char *call);
void front_path_back(const struct softhca_ah_attr *from, struct ibv_ah_attr *to);

/* Operations of ibv_context.ops and verbs_context, by the file that has them */
/* front_query.c */
int front_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int front_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		     size_t attr_size);
int front_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
/* front_pd.c */
struct ibv_td *front_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int front_dealloc_td(struct ibv_td *td);
struct ibv_pd *front_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr);
struct ibv_xrcd *front_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int front_close_xrcd(struct ibv_xrcd *xrcd);
/* front_mr.c */
struct ibv_mr *front_alloc_null_mr(struct ibv_pd *pd);
int front_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge);
/* front_mw.c */
struct ibv_mw *front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int front_dealloc_mw(struct ibv_mw *mw);
int front_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* front_cq.c */
struct ibv_cq_ex *front_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int front_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int front_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* front_cq_ex.c: give a CQ the functions of an extended one */
void front_cq_ex_init(struct front_cq *cq);
/* front_qp.c */
struct ibv_qp *front_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *front_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
/* front_qp_attr.c */
int front_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
/* front_wr.c: 0, or the errno of operations that a type cannot have; make and free a batch */
int front_wr_judge(struct ibv_context *context, enum ibv_qp_type type, uint64_t send_ops_flags,
		   const char *call);
int front_wr_init(struct front_qp *qp, const struct softhca_qp_cap *cap);
void front_wr_fini(struct front_qp *qp);
/* front_srq.c */
struct ibv_srq *front_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int front_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
/* front_post.c */
int front_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int front_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int front_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int front_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
