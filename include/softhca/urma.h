/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_URMA_H
#define SOFTHCA_URMA_H

/*
 * URMA over softhca: Jettys, segments and completions of UB, the second wire of the device. Names
 * and meanings are those of the public liburma, so a program that uses only this subset changes
 * only its include line. Library: libsofthca-urma, pkg-config softhca-urma.
 *
 * Rules for every call, unless its contract differs:
 *
 * Threads: any thread may call anything; lock_free flags are accepted and change nothing. An object
 * must not be used by a thread while another deletes it. Posting and polling wait only for threads
 * that use the same queue. After fork() the child may not use any object.
 *
 * Errors: urma_status_t is URMA_SUCCESS, else an errno or URMA_FAIL; errno is set. Calls that
 * return a pointer return NULL and set errno. Calls that return int: see there.
 * softhca_urma_reason() then has a sentence for this thread. EINVAL a value is wrong; ENOMEM no
 * memory, or all of the device's are in use; EBUSY something still uses the object; EOPNOTSUPP not
 * offered, by this release or this device; EIO the device is gone. EBUSY, EOPNOTSUPP and EIO are
 * URMA_FAIL, with that errno.
 *
 * Owners: an object of a create, import, register or get call belongs to the library until the call
 * that undoes it; the program only reads it. Configurations are copied. Memory of a segment, and of
 * requests with data that is not inline, belongs to the device until unregistered, or completed.
 *
 * Integers are in host byte order, EIDs in network byte order.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <softhca/softhca.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URMA_EID_SIZE 16
#define URMA_MAX_NAME 64

/* --- results -------------------- */

typedef enum urma_status {
	URMA_SUCCESS = 0,
	URMA_EAGAIN = EAGAIN,
	URMA_ENOMEM = ENOMEM,
	URMA_ENOPERM = EPERM,
	URMA_ETIMEOUT = ETIMEDOUT,
	URMA_EINVAL = EINVAL,
	URMA_EEXIST = EEXIST,
	URMA_EINPROGRESS = EINPROGRESS,
	URMA_FAIL = 0x1000,
} urma_status_t;

/* Status of a completion. */
typedef enum urma_cr_status {
	URMA_CR_SUCCESS = 0,
	URMA_CR_UNSUPPORTED_OPCODE_ERR,
	URMA_CR_LOC_LEN_ERR,
	URMA_CR_LOC_OPERATION_ERR, /* not raised here */
	URMA_CR_LOC_ACCESS_ERR,
	URMA_CR_REM_RESP_LEN_ERR,
	URMA_CR_REM_UNSUPPORTED_REQ_ERR,
	URMA_CR_REM_OPERATION_ERR, /* not raised here */
	URMA_CR_REM_ACCESS_ABORT_ERR,
	URMA_CR_ACK_TIMEOUT_ERR,
	URMA_CR_RNR_RETRY_CNT_EXC_ERR,
	URMA_CR_WR_FLUSH_ERR,
	URMA_CR_WR_SUSPEND_DONE,   /* of no request: user_ctx is 0 */
	URMA_CR_WR_FLUSH_ERR_DONE, /* of no request: all of the queue are flushed */
	URMA_CR_WR_UNHANDLED,	   /* not raised here */
	URMA_CR_LOC_DATA_POISON,
	URMA_CR_REM_DATA_POISON,
} urma_cr_status_t;

/* Operation that completed a receive. */
typedef enum urma_cr_opcode {
	URMA_CR_OPC_SEND = 0,
	URMA_CR_OPC_SEND_WITH_IMM,
	URMA_CR_OPC_SEND_WITH_INV, /* not raised here */
	URMA_CR_OPC_WRITE_WITH_IMM,
} urma_cr_opcode_t;

/* --- devices, addresses, contexts -------------------- */

typedef union urma_eid {
	uint8_t raw[URMA_EID_SIZE]; /* an IPv6 address, or ::ffff:a.b.c.d */
	struct {
		uint64_t reserved;
		uint32_t prefix;
		uint32_t addr;
	} in4;
	struct {
		uint64_t subnet_prefix;
		uint64_t interface_id;
	} in6;
} urma_eid_t;

typedef struct urma_eid_info {
	urma_eid_t eid;
	uint32_t eid_index;
} urma_eid_info_t;

typedef struct urma_init_attr {
	uint64_t token; /* ignored */
	uint32_t uasid; /* ignored: address spaces have no numbers here */
} urma_init_attr_t;

typedef enum urma_transport_type {
	URMA_TRANSPORT_INVALID = -1,
	URMA_TRANSPORT_UB = 0,
} urma_transport_type_t;

typedef struct urma_device {
	char name[URMA_MAX_NAME];
	urma_transport_type_t type;
} urma_device_t;

typedef enum urma_transport_mode {
	URMA_TM_RM = 1, /* reliable, many to many */
	URMA_TM_RC = 2, /* reliable, bound to one peer */
	URMA_TM_UM =
		4, /* unreliable: Sends of one packet, which may be lost, to Jettys of this mode */
} urma_transport_mode_t;

typedef enum urma_order_type {
	URMA_DEF_ORDER, /* as OI */
	URMA_OT,	/* the target orders; not offered yet */
	URMA_OI,	/* the initiator orders */
	URMA_OL,	/* the transport orders; not offered yet */
	URMA_NO,	/* unreliable; not offered yet */
} urma_order_type_t;

typedef union urma_device_feature {
	struct {
		uint32_t oor : 1;		/* packets out of order are kept */
		uint32_t spray_en : 1;		/* a channel may use several paths */
		uint32_t selective_retrans : 1; /* only lost packets are sent again */
		uint32_t jetty_grp : 1;
		uint32_t error_suspend : 1; /* queues may stop at an error */
		uint32_t muti_seg_per_token_id : 1;
		uint32_t reserved : 26;
	} bs;
	uint32_t value;
} urma_device_feature_t;

typedef struct urma_device_cap {
	urma_device_feature_t feature;
	uint32_t max_jfc, max_jfs, max_jfr, max_jetty;
	uint32_t max_jfc_depth, max_jfs_depth, max_jfr_depth;
	uint32_t max_jfs_inline_len;
	uint32_t max_jfs_sge;  /* local ones */
	uint32_t max_jfs_rsge; /* remote ones: 1 */
	uint32_t max_jfr_sge;
	uint64_t max_msg_size; /* Writes and Reads; Sends: 16 MiB */
	uint32_t max_read_size, max_write_size;
	uint32_t max_cas_size, max_swap_size, max_fetch_and_add_size; /* bytes of an operand */
	uint32_t max_fetch_and_sub_size, max_fetch_and_and_size;
	uint32_t max_fetch_and_or_size, max_fetch_and_xor_size;
	uint16_t trans_mode; /* set of urma_transport_mode_t */
	uint32_t ceq_cnt;    /* numbers for ceqn */
	uint32_t max_eid_cnt;
} urma_device_cap_t;

/* Operands of more than 16 bytes are atomic among the device's own operations only. */
typedef struct urma_device_attr {
	uint64_t guid;
	urma_device_cap_t dev_cap;
	uint8_t port_cnt;
	uint32_t reserved_jetty_id_min, reserved_jetty_id_max; /* ids that programs may ask for */
} urma_device_attr_t;

typedef struct urma_context {
	urma_device_t *dev;
	int async_fd;	/* readable when there is an asynchronous event */
	urma_eid_t eid; /* of this context */
	uint32_t eid_index;
	uint32_t uasid; /* 0 */
} urma_context_t;

/**
 * Prepare the library. Optional. The library counts the calls.
 *
 * @param conf  ignored; may be NULL
 * @return  URMA_SUCCESS; URMA_FAIL with errno ELIBBAD: libsofthca is of another release
 */
SOFTHCA_API urma_status_t urma_init(urma_init_attr_t *conf);

/**
 * Undo one urma_init(). Open contexts stay open.
 *
 * @return  URMA_SUCCESS; URMA_FAIL: no urma_init() is left to undo
 */
SOFTHCA_API urma_status_t urma_uninit(void);

/**
 * List the devices of the daemons that run on this machine.
 *
 * @param num_devices  number of devices found
 * @return  the list, to be freed with urma_free_device_list(); NULL: an error, errno is set
 */
SOFTHCA_API urma_device_t **urma_get_device_list(int *num_devices);

/**
 * Free a list of devices. Contexts of its devices stay valid.
 *
 * @param list  list from urma_get_device_list(), or NULL
 */
SOFTHCA_API void urma_free_device_list(urma_device_t **list);

/**
 * Get a device by its name, also "embed". The library frees it when the process ends.
 *
 * @param name  1 to URMA_MAX_NAME - 1 characters
 * @return  the device; NULL: errno is set. The call does not check whether the device exists
 */
SOFTHCA_API urma_device_t *urma_get_device_by_name(char *name);

/**
 * Read the addresses of a device with their indexes. The call opens the device.
 *
 * @param dev  device
 * @param cnt  number of addresses
 * @return  the list, to be freed with urma_free_eid_list(); NULL: errno is set
 */
SOFTHCA_API urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt);

/**
 * Free a list of addresses.
 *
 * @param list  list from urma_get_eid_list(), or NULL
 */
SOFTHCA_API void urma_free_eid_list(urma_eid_info_t *list);

/**
 * Read the capabilities of a device. The call opens the device.
 *
 * @param dev  device
 * @param attr  capabilities
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *attr);

/**
 * Open a device. All objects of the context use the address with this index.
 *
 * @param dev  device
 * @param eid_index  index of an address in urma_get_eid_list()
 * @return  the context; NULL: errno is set
 */
SOFTHCA_API urma_context_t *urma_create_context(urma_device_t *dev, uint32_t eid_index);

/**
 * Close a context.
 *
 * @param ctx  context
 * @return  URMA_SUCCESS; URMA_FAIL with errno EBUSY: objects of the context exist
 */
SOFTHCA_API urma_status_t urma_delete_context(urma_context_t *ctx);

/**
 * Make a context over an open one, for example of an embedded HCA, with its first address. The new
 * context does not own it: call urma_delete_context() before softhca_close().
 *
 * @param ctx  context of <softhca/softhca.h>
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API urma_context_t *softhca_urma_context(struct softhca_context *ctx);

/**
 * Make a context over an open one, as softhca_urma_context(), with a chosen address.
 *
 * @param ctx  context of <softhca/softhca.h>
 * @param eid_index  index of the address
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API urma_context_t *softhca_urma_context_at(struct softhca_context *ctx,
						    uint32_t eid_index);

/**
 * Explain why the last call of this thread failed.
 *
 * @return  a sentence, valid until the next call of this thread; never NULL
 */
SOFTHCA_API const char *softhca_urma_reason(void);

/* --- completions -------------------- */

typedef struct urma_jfce {
	urma_context_t *urma_ctx;
	int fd; /* readable when there is a completion event; non-blocking */
} urma_jfce_t;

typedef union urma_jfc_flag {
	struct {
		uint32_t lock_free : 1;
		uint32_t jfc_inline : 1; /* refused */
		uint32_t reserved : 30;
	} bs;
	uint32_t value;
} urma_jfc_flag_t;

typedef struct urma_jfc_cfg {
	uint32_t depth; /* rounded up to a power of two */
	urma_jfc_flag_t flag;
	uint32_t ceqn;
	urma_jfce_t *jfce; /* NULL: only polled */
	uint64_t user_ctx;
} urma_jfc_cfg_t;

typedef enum urma_jfc_attr_mask {
	JFC_MODERATE_COUNT = 1,
	JFC_MODERATE_PERIOD = 2,
} urma_jfc_attr_mask_t;

typedef struct urma_jfc_attr {
	uint32_t mask;
	uint16_t moderate_count;
	uint16_t moderate_period; /* us */
} urma_jfc_attr_t;

/* Of a Jetty, JFS or JFR: whose address, and its number there. */
typedef struct urma_jetty_id {
	urma_eid_t eid;
	uint32_t uasid; /* 0 */
	uint32_t id;
} urma_jetty_id_t;

typedef urma_jetty_id_t urma_jfs_id_t;
typedef urma_jetty_id_t urma_jfr_id_t;
typedef urma_jetty_id_t urma_jfc_id_t;

typedef struct urma_jfc {
	urma_context_t *urma_ctx;
	urma_jfc_id_t jfc_id;
	urma_jfc_cfg_t jfc_cfg;
} urma_jfc_t;

typedef union urma_cr_flag {
	struct {
		uint8_t s_r : 1;   /* 1: of a receive */
		uint8_t jetty : 1; /* 1: of a Jetty, 0: of a JFS or JFR */
		uint8_t reserved : 6;
	} bs;
	uint8_t value;
} urma_cr_flag_t;

/* One completion. */
typedef struct urma_cr {
	urma_cr_status_t status;
	uint64_t user_ctx;	 /* of the request */
	urma_cr_opcode_t opcode; /* of a receive */
	urma_cr_flag_t flag;
	uint32_t completion_len;   /* bytes */
	uint32_t local_id;	   /* of the Jetty, JFS or JFR */
	urma_jetty_id_t remote_id; /* of a receive: the sender */
	uint64_t imm_data;	   /* of a receive by ..._IMM */
	uint32_t tpn;		   /* of a receive: the channel it came by */
	uintptr_t user_data;	   /* pointer to the Jetty, JFS or JFR */
} urma_cr_t;

/**
 * Create a channel of completion events.
 *
 * @param ctx  context
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API urma_jfce_t *urma_create_jfce(urma_context_t *ctx);

/**
 * Delete a channel of completion events.
 *
 * @param jfce  channel
 * @return  URMA_SUCCESS; URMA_FAIL with errno EBUSY: a JFC uses the channel
 */
SOFTHCA_API urma_status_t urma_delete_jfce(urma_jfce_t *jfce);

/**
 * Create a completion queue.
 *
 * @param ctx  context
 * @param cfg  depth, channel and flags; copied
 * @return  the completion queue with the granted depth in jfc_cfg; NULL: errno is set
 */
SOFTHCA_API urma_jfc_t *urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *cfg);

/**
 * Delay completion events by count and period. An attribute that the mask does not select keeps its
 * value.
 *
 * @param jfc  completion queue of this library
 * @param attr  new limits
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr);

/**
 * Delete a completion queue. Blocks until all its events are acknowledged.
 *
 * @param jfc  completion queue of this library
 * @return  URMA_SUCCESS; URMA_FAIL with errno EBUSY: a Jetty, JFS or JFR uses it
 */
SOFTHCA_API urma_status_t urma_delete_jfc(urma_jfc_t *jfc);

/**
 * Take completions. Those of one queue arrive in the order of its requests. If the HCA is embedded
 * and has no worker of its own, the call runs the engine.
 *
 * @param jfc  completion queue of this library
 * @param cr_cnt  size of cr
 * @param cr  completions
 * @return  number of completions in cr, or -1: errno is set
 */
SOFTHCA_API int urma_poll_jfc(urma_jfc_t *jfc, int cr_cnt, urma_cr_t *cr);

/**
 * Request an event for the next completion. A completion may have arrived before the call, so poll
 * the JFC once more after it.
 *
 * @param jfc  completion queue of this library
 * @param solicited_only  true: for the next solicited or failed completion only
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only);

/**
 * Wait until a JFC of the channel has an event, and take the waiting events. The program
 * acknowledges each of them with urma_ack_jfc().
 *
 * @param jfce  channel
 * @param jfc_cnt  size of jfc
 * @param time_out  milliseconds; 0: do not wait, -1: no limit
 * @param jfc  JFCs with an event; one with two events is in the array twice
 * @return  number of events in jfc; 0: time_out has passed; -1: errno is set
 */
SOFTHCA_API int urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t *jfc[]);

/**
 * Acknowledge events.
 *
 * @param jfc  completion queues
 * @param nevents  number of events to acknowledge, one for each of jfc
 * @param jfc_cnt  size of jfc and nevents
 */
SOFTHCA_API void urma_ack_jfc(urma_jfc_t *jfc[], uint32_t nevents[], uint32_t jfc_cnt);

/* --- memory -------------------- */

typedef struct urma_token {
	uint32_t token;
} urma_token_t;

enum urma_token_policy {
	URMA_TOKEN_NONE,       /* no value is asked for */
	URMA_TOKEN_PLAIN_TEXT, /* requests must have the value */
	URMA_TOKEN_SIGNED,     /* not offered, as the next */
	URMA_TOKEN_ALL_ENCRYPTED,
};

enum urma_access {
	URMA_ACCESS_LOCAL_ONLY = 1, /* peers may do nothing; this device may write it */
	URMA_ACCESS_READ = 2,	    /* rights of peers */
	URMA_ACCESS_WRITE = 4,
	URMA_ACCESS_ATOMIC = 8,
};

typedef struct urma_token_id {
	urma_context_t *urma_ctx;
	uint32_t token_id;
} urma_token_id_t;

typedef union urma_reg_seg_flag {
	struct {
		uint32_t token_policy : 3;
		uint32_t cacheable : 1; /* ignored */
		uint32_t dsva : 1;	/* refused */
		uint32_t access : 6;	/* enum urma_access */
		uint32_t non_pin : 1;	/* memory that the device reaches page by page */
		uint32_t user_iova : 1; /* addresses in requests begin with iova, not with va */
		uint32_t token_id_valid : 1;
		uint32_t reserved : 18;
	} bs;
	uint32_t value;
} urma_reg_seg_flag_t;

typedef struct urma_seg_cfg {
	uint64_t va, len;
	urma_token_id_t *token_id; /* with token_id_valid; one segment each */
	urma_token_t token_value;  /* with URMA_TOKEN_PLAIN_TEXT; draw it at random */
	urma_reg_seg_flag_t flag;
	uint64_t user_ctx;
	uint64_t iova; /* with user_iova */
} urma_seg_cfg_t;

typedef struct urma_ubva {
	urma_eid_t eid;
	uint32_t uasid; /* 0 */
	uint64_t va;
} urma_ubva_t;

typedef union urma_seg_attr {
	struct {
		uint32_t token_policy : 3;
		uint32_t cacheable : 1;
		uint32_t dsva : 1;
		uint32_t access : 6;
		uint32_t reserved : 21;
	} bs;
	uint32_t value;
} urma_seg_attr_t;

/*
 * Description of a segment for a peer, which also needs the token value; without pointers, so it
 * can be sent.
 */
typedef struct urma_seg {
	urma_ubva_t ubva;
	uint64_t len;
	urma_seg_attr_t attr;
	uint32_t token_id;
} urma_seg_t;

/* A registered segment, or an imported one. */
typedef struct urma_target_seg {
	urma_seg_t seg;
	uint64_t user_ctx;
	uint64_t mva; /* 0: imported segments are not mapped */
	urma_context_t *urma_ctx;
	urma_token_id_t *token_id; /* NULL unless given */
} urma_target_seg_t;

typedef union urma_import_seg_flag {
	struct {
		uint32_t cacheable : 1; /* ignored */
		uint32_t access : 6;
		uint32_t mapping : 1; /* refused */
		uint32_t reserved : 24;
	} bs;
	uint32_t value;
} urma_import_seg_flag_t;

/**
 * Register memory for the device and, as far as cfg->flag.bs.access grants it, for peers.
 *
 * @param ctx  context
 * @param cfg  memory, rights, token policy and token value; copied
 * @return  the segment; NULL with errno EOPNOTSUPP: access of peers on a device without UB, or a
 *   token policy that is not offered
 */
SOFTHCA_API urma_target_seg_t *urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *cfg);

/**
 * Unregister a segment. After the call neither the device nor a peer accesses the memory.
 *
 * @param tseg  segment from urma_register_seg()
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_unregister_seg(urma_target_seg_t *tseg);

/**
 * Import a segment of a peer, for use in requests. The call sends no message: an error in the
 * segment shows in the completion of the first request that uses it.
 *
 * @param ctx  context
 * @param seg  the peer's description of its segment
 * @param token_value  the segment's token value; NULL with URMA_TOKEN_NONE
 * @param addr  ignored
 * @param flag  flags
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API urma_target_seg_t *urma_import_seg(urma_context_t *ctx, urma_seg_t *seg,
					       urma_token_t *token_value, uint64_t addr,
					       urma_import_seg_flag_t flag);

/**
 * Forget a segment of a peer.
 *
 * @param tseg  segment from urma_import_seg()
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_unimport_seg(urma_target_seg_t *tseg);

/**
 * Not offered: the device assigns a TokenID when it registers a segment.
 *
 * @param ctx  context
 * @return  NULL with errno EOPNOTSUPP
 */
SOFTHCA_API urma_token_id_t *urma_alloc_token_id(urma_context_t *ctx);

/**
 * Not offered, as urma_alloc_token_id().
 *
 * @param token_id  TokenID
 * @return  URMA_EINVAL
 */
SOFTHCA_API urma_status_t urma_free_token_id(urma_token_id_t *token_id);

/**
 * Accept a second token value for a registered segment. Requests with either value are executed
 * until softhca_urma_commit_token(); after it the second value alone is valid.
 *
 * @param tseg  segment with URMA_TOKEN_PLAIN_TEXT and rights of peers
 * @param second  the new value
 * @return  URMA_SUCCESS; URMA_EINVAL: not a registered segment with a token value
 */
SOFTHCA_API urma_status_t softhca_urma_rotate_token(urma_target_seg_t *tseg, urma_token_t second);

/**
 * End the validity of the first token value.
 *
 * @param tseg  segment of softhca_urma_rotate_token()
 * @return  URMA_SUCCESS; URMA_EINVAL: softhca_urma_rotate_token() was not called
 */
SOFTHCA_API urma_status_t softhca_urma_commit_token(urma_target_seg_t *tseg);

/* --- queues -------------------- */

typedef enum urma_jetty_state {
	URMA_JETTY_STATE_RESET = 0,
	URMA_JETTY_STATE_READY,
	URMA_JETTY_STATE_SUSPENDED,
	URMA_JETTY_STATE_ERROR,
} urma_jetty_state_t;

typedef urma_jetty_state_t urma_jfs_state_t;

typedef enum urma_jfr_state {
	URMA_JFR_STATE_RESET = 0,
	URMA_JFR_STATE_READY,
	URMA_JFR_STATE_ERROR,
} urma_jfr_state_t;

typedef union urma_jfs_flag {
	struct {
		uint32_t lock_free : 1;
		uint32_t error_suspend : 1; /* an error stops the queue; else it goes on */
		uint32_t outorder_comp : 1; /* refused */
		uint32_t order_type : 8;    /* urma_order_type_t */
		uint32_t multi_path : 1;    /* ignored */
		uint32_t reserved : 20;
	} bs;
	uint32_t value;
} urma_jfs_flag_t;

/* "or": 0 means that, and the object's copy has it. */
typedef struct urma_jfs_cfg {
	uint32_t depth; /* rounded up to a power of two */
	urma_jfs_flag_t flag;
	urma_transport_mode_t trans_mode;
	uint8_t priority;	  /* 0..15 */
	uint8_t max_sge;	  /* or 1 */
	uint8_t max_rsge;	  /* or 1, which is all there is */
	uint32_t max_inline_data; /* or 64 */
	uint8_t rnr_retry;	  /* 0..7; 7: no limit */
	uint8_t err_timeout;	  /* 0..31: 4.096 us * 2^err_timeout; or 17 */
	urma_jfc_t *jfc;
	uint64_t user_ctx;
} urma_jfs_cfg_t;

typedef struct urma_jfs {
	urma_context_t *urma_ctx;
	urma_jfs_id_t jfs_id;
	urma_jfs_cfg_t jfs_cfg;
} urma_jfs_t;

typedef enum urma_jfs_attr_mask {
	JFS_STATE = 1,
} urma_jfs_attr_mask_t;

typedef struct urma_jfs_attr {
	uint32_t mask;
	urma_jfs_state_t state;
} urma_jfs_attr_t;

typedef union urma_jfr_flag {
	struct {
		uint32_t token_policy : 3; /* enum urma_token_policy */
		uint32_t tag_matching : 1; /* refused */
		uint32_t lock_free : 1;
		uint32_t order_type : 8;
		uint32_t reserved : 19;
	} bs;
	uint32_t value;
} urma_jfr_flag_t;

typedef struct urma_jfr_cfg {
	uint32_t id;	/* 32..1023, or one that the device chooses */
	uint32_t depth; /* rounded up to a power of two, less one */
	urma_jfr_flag_t flag;
	urma_transport_mode_t trans_mode;
	uint8_t max_sge;       /* or 1 */
	uint8_t min_rnr_timer; /* 0..19: senders wait 2 us * 2^min_rnr_timer; or 12 */
	urma_jfc_t *jfc;
	urma_token_t token_value;
	uint64_t user_ctx;
} urma_jfr_cfg_t;

typedef struct urma_jfr {
	urma_context_t *urma_ctx;
	urma_jfr_id_t jfr_id;
	urma_jfr_cfg_t jfr_cfg;
} urma_jfr_t;

typedef enum urma_jfr_attr_mask {
	JFR_RX_THRESHOLD = 1,
	JFR_STATE = 2,
} urma_jfr_attr_mask_t;

typedef struct urma_jfr_attr {
	uint32_t mask;
	uint32_t rx_threshold; /* one event when fewer receives are left */
	urma_jfr_state_t state;
} urma_jfr_attr_t;

typedef union urma_jetty_flag {
	struct {
		uint32_t share_jfr : 1; /* 1: receives are those of shared.jfr */
		uint32_t reserved : 31;
	} bs;
	uint32_t value;
} urma_jetty_flag_t;

typedef struct urma_target_jetty urma_target_jetty_t;

typedef struct urma_jetty_cfg {
	uint32_t id; /* 32..1023, or 0: one that the device chooses */
	urma_jetty_flag_t flag;
	urma_jfs_cfg_t jfs_cfg;
	union {
		struct {
			urma_jfr_t *jfr;
			urma_jfc_t *jfc; /* NULL: that of jfr; another one is refused */
		} shared;
		urma_jfr_cfg_t *jfr_cfg; /* without share_jfr: a receive queue of its own */
	};
	uint64_t user_ctx;
} urma_jetty_cfg_t;

typedef struct urma_jetty {
	urma_context_t *urma_ctx;
	urma_jetty_id_t jetty_id;
	urma_target_jetty_t *remote_jetty; /* with URMA_TM_RC, while bound */
	urma_jetty_cfg_t jetty_cfg;
} urma_jetty_t;

typedef enum urma_jetty_attr_mask {
	JETTY_RX_THRESHOLD = 1,
	JETTY_STATE = 2,
} urma_jetty_attr_mask_t;

typedef struct urma_jetty_attr {
	uint32_t mask;
	uint32_t rx_threshold;
	urma_jetty_state_t state;
} urma_jetty_attr_t;

/**
 * Create a queue of requests. It is READY when the call returns.
 *
 * @param ctx  context
 * @param cfg  depth, order, mode and limits; copied
 * @return  the JFS with the granted values in jfs_cfg; NULL: errno is set
 */
SOFTHCA_API urma_jfs_t *urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *cfg);

/**
 * Change the state of a JFS.
 *
 * READY to SUSPENDED and back: the device stops and goes on.
 * Any state to ERROR: the device flushes requests and receives.
 * Any state to RESET: the device flushes first, the call waits until every posted request has its
 * completion, and a binding ends. Posts fail until the JFS is READY again.
 * RESET to READY: the JFS has its old number and configuration and empty queues; imports by peers
 * stay valid.
 *
 *
 * @param jfs  queue of requests
 * @param attr  mask JFS_STATE and the new state
 * @return  URMA_SUCCESS; URMA_EAGAIN: to RESET, the JFS is not flushed after 1 s; to READY from
 *   RESET, the program has not polled all completions, or has not called urma_flush_jfs().
 *   URMA_EINVAL: the present state does not allow the change
 */
SOFTHCA_API urma_status_t urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr);

/**
 * Read the configuration and the present state of a JFS.
 *
 * @param jfs  queue of requests
 * @param cfg  configuration; may be NULL
 * @param attr  state; may be NULL
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg,
					 urma_jfs_attr_t *attr);

/**
 * Delete a JFS. Incomplete requests get no completion. After the call the device accesses no memory
 * of the JFS.
 *
 * @param jfs  queue of requests
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_delete_jfs(urma_jfs_t *jfs);

/**
 * Take requests that the device has not completed, each as a completion with URMA_CR_WR_FLUSH_ERR.
 * Call it after URMA_CR_WR_FLUSH_ERR_DONE of this JFS.
 *
 * @param jfs  queue of requests
 * @param cr_cnt  size of cr
 * @param cr  completions
 * @return  number of completions in cr, or -1: errno is set
 */
SOFTHCA_API int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr);

/**
 * Create a queue of receives that Jettys share and that peers can send to.
 *
 * @param ctx  context
 * @param cfg  depth, mode, token policy and token value; copied
 * @return  the JFR with the granted values in jfr_cfg; NULL: errno is set
 */
SOFTHCA_API urma_jfr_t *urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *cfg);

/**
 * Set the threshold of a JFR. JFR_STATE is refused: a JFR is READY until it is deleted.
 *
 * @param jfr  queue of receives
 * @param attr  mask JFR_RX_THRESHOLD and the threshold
 * @return  URMA_SUCCESS; URMA_EINVAL: threshold above the depth; URMA_FAIL with errno EOPNOTSUPP:
 *   JFR_STATE
 */
SOFTHCA_API urma_status_t urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr);

/**
 * Read the configuration and the present state of a JFR.
 *
 * @param jfr  queue of receives
 * @param cfg  configuration; may be NULL
 * @param attr  state; may be NULL
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg,
					 urma_jfr_attr_t *attr);

/**
 * Delete a JFR.
 *
 * @param jfr  queue of receives
 * @return  URMA_SUCCESS; URMA_FAIL with errno EBUSY: a Jetty uses it
 */
SOFTHCA_API urma_status_t urma_delete_jfr(urma_jfr_t *jfr);

/**
 * Create a Jetty: a queue of requests, and a queue of receives or a shared JFR.
 *
 * @param ctx  context
 * @param cfg  both configurations, or one and a JFR; copied
 * @return  the Jetty with the granted values in jetty_cfg; NULL: errno is set
 */
SOFTHCA_API urma_jetty_t *urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *cfg);

/**
 * Change the state or the threshold of a Jetty. States and errors as for urma_modify_jfs().
 *
 * @param jetty  Jetty
 * @param attr  mask, state and threshold
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr);

/**
 * Read the configuration and the present state of a Jetty.
 *
 * @param jetty  Jetty
 * @param cfg  configuration; may be NULL
 * @param attr  state; may be NULL
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg,
					   urma_jetty_attr_t *attr);

/**
 * Delete a Jetty, as urma_delete_jfs().
 *
 * @param jetty  Jetty
 * @return  URMA_SUCCESS; URMA_FAIL with errno EBUSY: the Jetty is bound
 */
SOFTHCA_API urma_status_t urma_delete_jetty(urma_jetty_t *jetty);

/**
 * Take requests that the device has not completed, as urma_flush_jfs().
 *
 * @param jetty  Jetty
 * @param cr_cnt  size of cr
 * @param cr  completions
 * @return  number of completions in cr, or -1: errno is set
 */
SOFTHCA_API int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr);

/* --- peers -------------------- */

typedef union urma_import_jetty_flag {
	struct {
		uint32_t token_policy : 3;
		uint32_t order_type : 8;
		uint32_t share_tp : 1; /* ignored: channels are always shared */
		uint32_t reserved : 20;
	} bs;
	uint32_t value;
} urma_import_jetty_flag_t;

typedef enum urma_target_type {
	URMA_JFR = 0,
	URMA_JETTY,
	URMA_JETTY_GROUP, /* not offered */
} urma_target_type_t;

typedef struct urma_rjetty {
	urma_jetty_id_t jetty_id;
	urma_transport_mode_t trans_mode;
	urma_target_type_t type;
	urma_import_jetty_flag_t flag;
} urma_rjetty_t;

typedef struct urma_rjfr {
	urma_jfr_id_t jfr_id;
	urma_transport_mode_t trans_mode;
	urma_import_jetty_flag_t flag;
} urma_rjfr_t;

struct urma_target_jetty {
	urma_context_t *urma_ctx;
	urma_jetty_id_t id;
	urma_transport_mode_t trans_mode;
	urma_target_type_t type;
	urma_import_jetty_flag_t flag;
};

/**
 * Import a Jetty or JFR of a peer, for use in requests. If no channel to the peer's host exists,
 * the call sets channels up and waits for them. With URMA_TM_UM it needs no channel.
 *
 * @param ctx  context
 * @param rjetty  id, mode, type and flags of the peer's object
 * @param token_value  the peer's token value; NULL with URMA_TOKEN_NONE
 * @return  the imported Jetty; NULL with errno ETIMEDOUT: the peer has not answered for 26 s
 */
SOFTHCA_API urma_target_jetty_t *urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty,
						   urma_token_t *token_value);

/**
 * Forget a Jetty of a peer.
 *
 * @param tjetty  imported Jetty
 * @return  URMA_SUCCESS; URMA_FAIL with errno EBUSY: a Jetty is bound to it
 */
SOFTHCA_API urma_status_t urma_unimport_jetty(urma_target_jetty_t *tjetty);

/**
 * Import a JFR of a peer, as urma_import_jetty().
 *
 * @param ctx  context
 * @param rjfr  id, mode and flags of the peer's JFR
 * @param token_value  the peer's token value; NULL with URMA_TOKEN_NONE
 * @return  the imported JFR; NULL with errno ETIMEDOUT: the peer has not answered for 26 s
 */
SOFTHCA_API urma_target_jetty_t *urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr,
						 urma_token_t *token_value);

/**
 * Forget a JFR of a peer, as urma_unimport_jetty().
 *
 * @param target_jfr  imported JFR
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_unimport_jfr(urma_target_jetty_t *target_jfr);

/**
 * Bind a Jetty of mode URMA_TM_RC to its only peer. The device refuses requests of other peers.
 *
 * @param jetty  Jetty
 * @param tjetty  imported Jetty
 * @return  URMA_SUCCESS; URMA_EEXIST: the Jetty is bound already
 */
SOFTHCA_API urma_status_t urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

/**
 * End the binding of a Jetty.
 *
 * @param jetty  Jetty
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_unbind_jetty(urma_jetty_t *jetty);

/* --- requests -------------------- */

typedef enum urma_opcode {
	URMA_OPC_WRITE = 0x00,
	URMA_OPC_WRITE_IMM = 0x01,
	URMA_OPC_WRITE_NOTIFY = 0x02,
	URMA_OPC_READ = 0x10,
	URMA_OPC_CAS = 0x20,
	URMA_OPC_SWAP = 0x21,
	URMA_OPC_FADD = 0x22,
	URMA_OPC_FSUB = 0x23,
	URMA_OPC_FAND = 0x24,
	URMA_OPC_FOR = 0x25,
	URMA_OPC_FXOR = 0x26,
	URMA_OPC_SEND = 0x40,
	URMA_OPC_SEND_IMM = 0x41,
	URMA_OPC_SEND_INVALIDATE = 0x42, /* refused */
	URMA_OPC_NOP = 0x51, /* refused: a request that does nothing completes nothing */
	/* not in liburma */
	SOFTHCA_URMA_OPC_WRITE_BE = 0xf0,     /* some of the bytes of rw */
	SOFTHCA_URMA_OPC_ATOMIC_LOAD = 0xf1,  /* faa, by faa.op; gives the old value */
	SOFTHCA_URMA_OPC_ATOMIC_STORE = 0xf2, /* faa, by faa.op; gives nothing */
} urma_opcode_t;

typedef union urma_jfs_wr_flag {
	struct {
		uint32_t place_order : 2; /* 0 none, 1 relaxed, 2 strong: after all before it */
		uint32_t comp_order : 1;  /* the receiver completes it after those before it */
		uint32_t fence : 1;	  /* after all Reads and atomics before it */
		uint32_t solicited_enable : 1;
		uint32_t complete_enable : 1; /* 0: a completion only if it fails */
		uint32_t inline_flag : 1;     /* data is copied now; tseg may be NULL */
		uint32_t reserved : 25;
	} bs;
	uint32_t value;
} urma_jfs_wr_flag_t;

/* Local: tseg is registered. Remote: tseg is imported. */
typedef struct urma_sge {
	uint64_t addr;
	uint32_t len;
	urma_target_seg_t *tseg;
} urma_sge_t;

typedef struct urma_sg {
	urma_sge_t *sge;
	uint32_t num_sge;
} urma_sg_t;

/* The remote side has one SGE; for WRITE_NOTIFY a second, where the 8 bytes of data go. */
typedef struct urma_rw_wr {
	urma_sg_t src;
	urma_sg_t dst;
	uint8_t target_hint;	     /* ignored: of groups */
	uint64_t notify_data;	     /* of WRITE_NOTIFY; of WRITE_IMM the immediate */
	const uint8_t *byte_enables; /* WRITE_BE: bit n % 8 of byte n / 8 is byte n of src */
} urma_rw_wr_t;

typedef struct urma_send_wr {
	urma_sg_t src;
	uint8_t target_hint;
	uint64_t imm_data;
} urma_send_wr_t;

/*
 * Atomics: dst is remote, its len that of the operands, 1, 2, 4 .. 64, its address a multiple of
 * it; src is local, where the old value goes. Values up to 8 bytes stand in the request, others at
 * an address, little-endian.
 */
typedef struct urma_cas_wr {
	urma_sge_t *dst;
	urma_sge_t *src;
	union {
		uint64_t cmp_data;
		uint64_t cmp_addr;
	};
	union {
		uint64_t swap_data; /* also of SWAP */
		uint64_t swap_addr;
	};
} urma_cas_wr_t;

enum softhca_urma_atomic {
	SOFTHCA_URMA_ATOMIC_ADD,
	SOFTHCA_URMA_ATOMIC_CLR, /* and not */
	SOFTHCA_URMA_ATOMIC_EOR,
	SOFTHCA_URMA_ATOMIC_SET, /* or */
	SOFTHCA_URMA_ATOMIC_SMAX,
	SOFTHCA_URMA_ATOMIC_SMIN,
	SOFTHCA_URMA_ATOMIC_UMAX,
	SOFTHCA_URMA_ATOMIC_UMIN,
};

typedef struct urma_faa_wr {
	urma_sge_t *dst;
	urma_sge_t *src; /* ATOMIC_STORE: NULL */
	union {
		uint64_t operand;
		uint64_t operand_addr;
	};
	uint32_t op; /* ATOMIC_LOAD and ATOMIC_STORE: enum softhca_urma_atomic */
} urma_faa_wr_t;

typedef struct urma_jfs_wr {
	urma_opcode_t opcode;
	urma_jfs_wr_flag_t flag;
	urma_target_jetty_t *tjetty; /* NULL: the bound one */
	uint64_t user_ctx;
	union {
		urma_rw_wr_t rw;
		urma_send_wr_t send;
		urma_cas_wr_t cas;
		urma_faa_wr_t faa;
	};
	struct urma_jfs_wr *next;
} urma_jfs_wr_t;

typedef struct urma_jfr_wr {
	urma_sg_t src; /* where data goes */
	uint64_t user_ctx;
	struct urma_jfr_wr *next;
} urma_jfr_wr_t;

/**
 * Post a list of requests.
 *
 * @param jetty  Jetty
 * @param wr  first request
 * @param bad_wr  on an error the first request that was not posted; all before it are posted
 * @return  URMA_SUCCESS; URMA_ENOMEM: the queue is full, poll its JFC; URMA_EINVAL: the request
 *   *bad_wr is invalid
 */
SOFTHCA_API urma_status_t urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr,
						  urma_jfs_wr_t **bad_wr);

/**
 * Post a list of requests, as urma_post_jetty_send_wr().
 *
 * @param jfs  queue of requests
 * @param wr  first request
 * @param bad_wr  on an error the first request that was not posted
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr,
					   urma_jfs_wr_t **bad_wr);

/**
 * Post a list of receives.
 *
 * @param jetty  Jetty
 * @param wr  first receive
 * @param bad_wr  on an error the first receive that was not posted; all before it are posted
 * @return  URMA_SUCCESS; URMA_ENOMEM: the queue is full; URMA_EINVAL: the Jetty shares a JFR, or
 *   the receive *bad_wr is invalid
 */
SOFTHCA_API urma_status_t urma_post_jetty_recv_wr(urma_jetty_t *jetty, urma_jfr_wr_t *wr,
						  urma_jfr_wr_t **bad_wr);

/**
 * Post a list of receives, as urma_post_jetty_recv_wr().
 *
 * @param jfr  queue of receives
 * @param wr  first receive
 * @param bad_wr  on an error the first receive that was not posted
 * @return  URMA_SUCCESS, or an error
 */
SOFTHCA_API urma_status_t urma_post_jfr_wr(urma_jfr_t *jfr, urma_jfr_wr_t *wr,
					   urma_jfr_wr_t **bad_wr);

/**
 * Post a Write with one local SGE.
 *
 * @param jfs  queue of requests
 * @param target_jfr  imported destination
 * @param dst_tseg  imported segment
 * @param src_tseg  registered segment
 * @param dst  address in dst_tseg
 * @param src  address in src_tseg
 * @param len  bytes
 * @param flag  flags of the request
 * @param user_ctx  returned in the completion
 * @return  as urma_post_jfs_wr()
 */
SOFTHCA_API urma_status_t urma_write(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
				     urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg,
				     uint64_t dst, uint64_t src, uint32_t len,
				     urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * Post a Read with one local SGE.
 *
 * @param jfs  queue of requests
 * @param target_jfr  imported destination
 * @param dst_tseg  registered segment
 * @param src_tseg  imported segment
 * @param dst  address in dst_tseg
 * @param src  address in src_tseg
 * @param len  bytes
 * @param flag  flags of the request
 * @param user_ctx  returned in the completion
 * @return  as urma_post_jfs_wr()
 */
SOFTHCA_API urma_status_t urma_read(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
				    urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg,
				    uint64_t dst, uint64_t src, uint32_t len,
				    urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * Post a Send with one SGE.
 *
 * @param jfs  queue of requests
 * @param target_jfr  imported destination
 * @param src_tseg  registered segment
 * @param src  address in src_tseg
 * @param len  bytes
 * @param flag  flags of the request
 * @param user_ctx  returned in the completion
 * @return  as urma_post_jfs_wr()
 */
SOFTHCA_API urma_status_t urma_send(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
				    urma_target_seg_t *src_tseg, uint64_t src, uint32_t len,
				    urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * Post a receive with one SGE.
 *
 * @param jfr  queue of receives
 * @param recv_tseg  registered segment
 * @param buf  address in recv_tseg
 * @param len  bytes
 * @param user_ctx  returned in the completion
 * @return  as urma_post_jfr_wr()
 */
SOFTHCA_API urma_status_t urma_recv(urma_jfr_t *jfr, urma_target_seg_t *recv_tseg, uint64_t buf,
				    uint32_t len, uint64_t user_ctx);

/* --- asynchronous events -------------------- */

typedef enum urma_async_event_type {
	URMA_EVENT_JFC_ERR = 0,
	URMA_EVENT_JFS_ERR,
	URMA_EVENT_JFR_ERR,
	URMA_EVENT_JFR_LIMIT,
	URMA_EVENT_JETTY_ERR,
	URMA_EVENT_JETTY_LIMIT,
	URMA_EVENT_JETTY_GRP_ERR, /* not raised here */
	URMA_EVENT_PORT_ACTIVE,
	URMA_EVENT_PORT_DOWN,
	URMA_EVENT_DEV_FATAL,
	URMA_EVENT_EID_CHANGE,
} urma_async_event_type_t;

typedef struct urma_async_event {
	const urma_context_t *urma_ctx;
	union {
		urma_jfc_t *jfc;
		urma_jfs_t *jfs;
		urma_jfr_t *jfr;
		urma_jetty_t *jetty;
		uint32_t port_id;
		uint32_t eid_idx;
	} element;
	urma_async_event_type_t event_type;
	void *priv; /* of the library */
} urma_async_event_t;

/**
 * Get the next asynchronous event. Blocks unless ctx->async_fd is O_NONBLOCK. The program
 * acknowledges each event with urma_ack_async_event().
 *
 * @param ctx  context
 * @param event  event
 * @return  URMA_SUCCESS; URMA_EAGAIN: no event waits (O_NONBLOCK)
 */
SOFTHCA_API urma_status_t urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event);

/**
 * Acknowledge an asynchronous event.
 *
 * @param event  event from urma_get_async_event()
 */
SOFTHCA_API void urma_ack_async_event(urma_async_event_t *event);

#ifdef __cplusplus
}
#endif

#endif
