/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The server's end of the control channel: an input is the conversation of one client. Each request
 * is a byte for the op, a byte for its form (length, descriptor) and its body. Well-formed requests
 * are executed by the real driver and device; after the client has ended none of its objects may be
 * left.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_msg.h"
#include "ipc_server_impl.h"
#include "world.h"

#define REQUESTS_MAX 64u
#define FILE_BYTES (1u << 20)

/* Form byte: bit 7: a body of another length (bits [4:0]); [6:5]: which file. */
#define SHAPE_OTHER_LENGTH 0x80u
#define SHAPE_FILE(s) ((s) >> 5 & 3u)

static struct ipc_server server;
static int files[4];
static int own_mem, own_maps;

/* Two valid files, one that is not sealed, and a descriptor that is not a file. */
static void
make_files(void)
{
	for (int i = 0; i < 3; i++) {
		files[i] = memfd_create("fuzz", MFD_ALLOW_SEALING);
		fuzz_check(files[i] >= 0 && ftruncate(files[i], FILE_BYTES) == 0, "memfd");
		for (unsigned int at = 0; at < FILE_BYTES; at += 4096)
			fuzz_check(pwrite(files[i], "", 1, at) == 1, "memfd");
		if (i < 2)
			fcntl(files[i], F_ADD_SEALS, F_SEAL_SHRINK);
	}
	files[3] = open("/dev/zero", O_RDWR);
	own_mem = open("/proc/self/mem", O_RDWR);
	own_maps = open("/proc/self/maps", O_RDONLY);
}

static void
begin(struct ipc_session *s, struct hca_driver *drv)
{
	if (server.config.driver == NULL) {
		make_files();
		server.config = (struct ipc_server_config){
			.driver = drv,
			.memory_max = 16u << 20,
			.segments_max = 64,
			.slow_memory = true,
		};
	}
	*s = (struct ipc_session){
		.server = &server,
		.sock = -1,
		.pid_fd = -1,
		.pid = getpid(),
		.lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
}

/* Read the body from the input: of the op's size unless the form byte sets another one. */
static uint32_t
read_body(struct fuzz_input *in, uint16_t op, uint8_t shape, uint8_t *body)
{
	uint32_t want = op < HCA_CTL_OP_COUNT ? hca_ctl_shape(op)->request : shape & 31u;
	const uint8_t *p;
	size_t n;

	if (op == HCA_CTL_PAGES)
		want = 8 + (shape & 15u) * 8;
	if (shape & SHAPE_OTHER_LENGTH)
		want = want / 2 + (shape & 31u);
	memset(body, 0, want);
	p = fuzz_bytes(in, want, &n);
	memcpy(body, p, n);
	if (op == HCA_CTL_PAGES && want >= 8)
		((struct hca_ctl_pages *)body)->count = shape & 15u;
	if (op == HCA_CTL_HELLO)
		((struct hca_ctl_hello *)body)->magic = IPC_MAGIC;
	return want;
}

static void
request(struct fuzz_input *in, struct ipc_session *s)
{
	static struct hca_ctl_pages body; /* the largest, and aligned */
	static struct ipc_answer answer;
	uint16_t op = s->greeted ? fuzz_u8(in) % (HCA_CTL_OP_COUNT + 2) : HCA_CTL_HELLO;
	uint8_t shape = fuzz_u8(in);
	uint32_t len = read_body(in, op, shape, (uint8_t *)&body);
	int fds[2] = {files[SHAPE_FILE(shape)], files[3]}, err;
	unsigned int num_fds = shape & 1 || op >= HCA_CTL_OP_COUNT ? 0 : hca_ctl_shape(op)->fds_in;

	if (op == HCA_CTL_MEMORY && !(shape & 2)) {
		fds[0] = own_mem;
		fds[1] = own_maps;
	}

	if (ipc_form(s, op, &body, len, num_fds) != IPC_FORM_KNOWN ||
	    (op == HCA_CTL_HELLO) == s->greeted)
		return;
	answer.len = 0;
	answer.num_fds = 0;
	err = ipc_execute(s, op, &body, fds, &answer);
	fuzz_check(err <= 0, "op %u answers %d", op, err);
	fuzz_check(err == 0 || answer.num_fds == 0, "op %u fails and gives descriptors", op);
	fuzz_check(answer.len <= IPC_BODY_MAX, "op %u answers %u bytes", op, answer.len);
	ipc_close_fds(answer.extra.fds, answer.num_fds);
}

static bool
same_usage(const struct hca_driver_usage *a, const struct hca_driver_usage *b)
{
	return a->clients == b->clients && a->pds == b->pds && a->mrs == b->mrs &&
	       a->cqs == b->cqs && a->qps == b->qps && a->channels == b->channels &&
	       a->mtts == b->mtts && a->srqs == b->srqs && a->xrcds == b->xrcds;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct world *w = world_begin();
	struct hca_driver_usage before, after;
	struct ipc_session s;

	hca_driver_usage(w->drv, &before);
	begin(&s, w->drv);
	for (unsigned int i = 0; i < REQUESTS_MAX && in.p < in.end; i++) {
		request(&in, &s);
		if (s.greeted && s.client == NULL)
			break; /* CLOSE */
	}
	ipc_session_release(&s);
	free(s.pages);
	close(s.lost_fd);
	hca_driver_usage(w->drv, &after);
	fuzz_check(same_usage(&before, &after), "something of the client is left");
	world_end(w);
	return 0;
}
