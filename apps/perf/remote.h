/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_REMOTE_H
#define APPS_PERF_REMOTE_H

/*
 * softhca-perf between two processes: --server on one host, --client on another, each on the
 * device of a daemon (libsofthca only). They agree over TCP on lines of perf_exchange.h.
 *
 * In a session of this form side 0 is this process and side 1 the other one, of which numbers are
 * known and no objects: the rest of the program sees a session with one local side. With --cm the
 * lines go over an RC connection of the devices, which connection management has made.
 *
 *   server: hello (version, mtu)
 *   client: gids		server: gid (sgid, vlan, gid) for each of its GIDs, end
 *   client: case (test, my QP)	server: ready (my QP), once per QP, or error (text)
 *   client: go		server: go, once per timed pass or round of the checking pass
 *   both:   done (value: messages, elapsed_us), result (value: received, lost)
 *   client: alive, every second of a pass; stop: the QPs go; bye
 *
 * Either end may say "error" with a text at any time, and is given up when it is silent for
 * --timeout. Words of a client are not trusted: every number is checked as if it were an option.
 *
 * Errors: 0 or negative errno; the error has been printed.
 */

#include <sys/socket.h>

#include <softhca/cm.h>

#include "perf.h"
#include "perf_exchange.h"

#define REMOTE_PORT 18515u
/* How long to wait for a daemon or server that is being started, or --timeout if that is less. */
#define REMOTE_START_NS 10000000000ull
#define REMOTE_GIDS_MAX 256u
#define REMOTE_MEMORY_MAX (1ull << 30) /* a server gives to the slots of one kind */

/* --- remote_line.c: lines over TCP -------------------- */

struct remote_pump;

struct remote_line {
	int fd; /* -1: none */
	/* --cm: it moves the bytes of fd between these two addresses; NULL: fd is TCP */
	struct remote_pump *pump;
	union softhca_gid own, other;
	size_t used;
	uint64_t timeout_ns;
	uint64_t last_sent; /* when */
	uint64_t last_heard;
	char peer[80]; /* address and port, to be read */
	char buffer[PERF_EXCHANGE_LINE];
};

int remote_listen(uint32_t port, int *fd);
/* Waits for a client; -EINTR after a signal, -EAGAIN when `device` has something to read. */
int remote_accept(int listener, int device, struct remote_line *l, uint64_t timeout_ns);
/* host: name, IPv4, IPv6 or [IPv6], perhaps with :PORT in place of port. */
int remote_connect(struct remote_line *l, const char *host, uint32_t port, uint64_t timeout_ns);
/* Parse this text; port as in a service name. -EINVAL. */
int remote_split_host(const char *text, uint32_t otherwise, char host[256], char port[8]);
/* A line begins on fd; the peer's address is for people. */
void remote_line_start(struct remote_line *l, int fd, uint64_t timeout_ns,
		       const struct sockaddr *peer, socklen_t bytes);
void remote_close(struct remote_line *l);
/* Between two looks whether something has started. */
void remote_pause(void);
int remote_send(struct remote_line *l, const char *word, const struct perf_exchange *x);
/* One line: 1, nothing yet: 0. A line that is not of the exchange: -EPROTO; end: -EPIPE. */
int remote_poll(struct remote_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x);
/* Says "alive" when nothing was said for a second. */
int remote_beat(struct remote_line *l);
/* Waits for a line that is not "alive"; -ETIMEDOUT. An "error" is printed: -EREMOTEIO. */
int remote_recv(struct remote_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x);
/* The same, and anything but this word is -EPROTO. */
int remote_expect(struct remote_line *l, const char *word, struct perf_exchange *x);
/* Says it here and to the other end; returns err. */
int remote_fail(struct remote_line *l, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- remote_cm.c: --cm: both ends meet at an address of the device, not over TCP -------------- */

struct remote_door; /* of a server */

/* Takes requests for all addresses of the device at this port. */
int remote_cm_listen(struct softhca_context *ctx, uint32_t port, struct remote_door **door);
void remote_cm_unlisten(struct remote_door *door);
/* As remote_accept() and remote_connect(). */
int remote_cm_accept(struct remote_door *door, int device, struct remote_line *l,
		     uint64_t timeout_ns);
int remote_cm_connect(struct softhca_context *ctx, struct remote_line *l, const char *host,
		      uint32_t port, uint64_t timeout_ns);

/* --- remote_pump.c: a stream of bytes over an RC connection -------------------- */

/*
 * A channel of events that does not block, and a QP with its memory. NULL: the error has been
 * reported.
 */
struct remote_pump *remote_pump_open(struct softhca_context *ctx);
struct softhca_cm_channel *remote_pump_channel(const struct remote_pump *p);
struct softhca_qp *remote_pump_qp(const struct remote_pump *p);
/* Receives are posted; the QP is in INIT at least. */
int remote_pump_fill(struct remote_pump *p);
/* The id is connected, and belongs to the pump: a thread moves the bytes of *fd from now on. */
int remote_pump_start(struct remote_pump *p, struct softhca_cm_id *id, int *fd);
/* The other end of *fd is closed: written data leaves, and the connection ends. */
void remote_pump_close(struct remote_pump *p);

/* --- remote_gid.c: which pair of addresses -------------------- */

struct remote_gid {
	union softhca_gid gid;
	uint32_t index;
	uint32_t vlan; /* 0: none */
	uint8_t mac[6];
};

struct remote_gids {
	unsigned int count;
	struct remote_gid entry[REMOTE_GIDS_MAX];
};

int remote_gids_read(struct softhca_context *ctx, struct remote_gids *gids);
void remote_gids_print(const struct remote_gids *gids);
/* Only those --gid-index, --ip and --vlan allow. */
void remote_gids_filter(struct remote_gids *gids, const struct perf_options *opt);
/* Only this address. */
void remote_gids_only(struct remote_gids *gids, const union softhca_gid *gid);
/* The pair most likely to reach each other, or -ENETUNREACH and the best reason in why. */
int remote_gids_choose(const struct remote_gids *own, const struct remote_gids *peer,
		       struct remote_gid *mine, struct remote_gid *other, char why[256]);
/* Why frames cannot get from one to the other, or NULL. */
const char *remote_gid_unroutable(const struct remote_gid *a, const struct remote_gid *b);
/* Both addresses seem to be in one network, so that no router is needed. */
bool remote_gid_adjacent(const struct remote_gid *a, const struct remote_gid *b);
void remote_gid_text(const struct remote_gid *g, char text[80]);

/* --- remote_case.c: the test as both see it -------------------- */

enum remote_pass {
	REMOTE_PASS_TIMED,
	REMOTE_PASS_VERIFY,
};

void remote_case_fill(const struct perf_session *s, enum remote_pass pass, struct perf_exchange *x);
/* Options of the client within those of own, or -EINVAL and the reason in why. */
int remote_case_take(const struct perf_exchange *x, const struct perf_options *own,
		     struct perf_options *opt, char why[256]);

/* --- remote_setup.c -------------------- */

struct remote {
	const struct perf_options *own; /* of the command line */
	struct perf_options opt;	/* of the row */
	struct perf_session s;		/* its peer is this */
	struct remote_line line;
	uint32_t port_mtu; /* bytes, of the own port */
	bool client;
	bool open;	/* a row is */
	bool connected; /* atomic: no other thread sends signs of life for this one */
	/* client: of the flows of the next pass; NULL: zeros */
	const struct perf_flow_class *classes;
	uint32_t cases;	 /* server: QPs connected */
	uint32_t rounds; /* server: of the checking pass */
	enum remote_pass pass;
};

int remote_session_open(struct remote *r, const struct perf_options *opt);
void remote_session_close(struct remote *r);
/*
 * Daemons started a moment ago find each other, and until then nothing leaves the port: waits for
 * that as long as --timeout says, then goes on. Needs the peer's GID: one of the own port needs no
 * link.
 */
void remote_wait_link(struct remote *r);
/* Chooses the PSN of flow i and fills in its numbers for the other end. */
int remote_flow_say(struct remote *r, uint32_t i, struct perf_exchange *x);
/* Values of the other end. */
void remote_flow_hear(struct remote *r, uint32_t i, const struct perf_exchange *x);
/* Connects all flows and posts the receives this end needs from the first moment on. */
int remote_row_connect(struct remote *r);

/*
 * How far both ends are with a pass or a round: each says "done" when its requests are, and
 * "result" when the messages to it have arrived.
 */
struct remote_talk {
	bool told, heard; /* "done" */
	bool result_told, result_heard;
	struct perf_exchange done, result; /* as received */
};

/* Call it repeatedly: it sends signs of life to the other end. 1 = a word has come. */
int remote_talk_hear(struct remote *r, struct remote_talk *t);
int remote_talk_done(struct remote *r, struct remote_talk *t, const struct perf_exchange *x);
int remote_talk_result(struct remote *r, struct remote_talk *t, const struct perf_exchange *x);

/* --- perf_check.c: the checking pass -------------------- */

struct perf_check;
int perf_check_open(struct perf_session *s, struct perf_check **c);
void perf_check_close(struct perf_check *c);
/* Server: everything of a round up to its result. */
int perf_check_serve(struct perf_check *c, uint64_t round);

/* --- remote_client.c, remote_server.c -------------------- */

int remote_client(const struct perf_options *opt);
/* Client: finds the server and agrees with it on addresses and MTU. */
int remote_meet(struct remote *r);
/* Client: makes the QPs at both ends; the timed pass begins when this returns. */
int remote_pass_open(struct remote *r, enum remote_pass pass, uint64_t size);
void remote_pass_close(struct remote *r, int err);
int remote_server(const struct perf_options *opt);
int remote_print_gids(const struct perf_options *opt);

#endif
