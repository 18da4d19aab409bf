/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc_connect.h"
#include "ipc_msg.h"
#include "lib_error.h"

/*
 * A user whose daemon may have this process's memory, in addition to root and the own one; -1: none
 */
static uid_t
trusted_user(void)
{
	const char *named = secure_getenv("SOFTHCA_DAEMON_USER");
	struct passwd user, *found = NULL;
	char text[4096], *end;
	struct stat st;

	if (named != NULL && named[0] != '\0') {
		unsigned long uid = strtoul(named, &end, 10);

		if (*end == '\0')
			return (uid_t)uid;
		if (getpwnam_r(named, &user, text, sizeof(text), &found) == 0 && found != NULL)
			return user.pw_uid;
	}
	/* only root can create folders next to it */
	return lstat(IPC_DIRECTORY, &st) == 0 && S_ISDIR(st.st_mode) ? st.st_uid : (uid_t)-1;
}

/* A daemon gets memory and descriptors of this process, so its user must be trusted. */
static int
check_owner(const char *path, int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return lib_fail(-errno, "%s: the user of the daemon cannot be determined: %s", path,
				strerror(errno));
	if (cred.uid == 0 || cred.uid == geteuid() || cred.uid == trusted_user())
		return 0;
	return lib_fail(
		-EACCES,
		"%s: the daemon is run by user %u, which is neither root, nor this user, nor the owner of " IPC_DIRECTORY
		": set SOFTHCA_DAEMON_USER to the user if that is right",
		path, (unsigned int)cred.uid);
}

static void
set_limits(int sock, int seconds)
{
	struct timeval limit = {.tv_sec = seconds};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* It waits while others are being accepted. */
static int
connect_soon(int sock, const struct sockaddr_un *addr)
{
	int err;

	set_limits(sock, IPC_GREETING_SECONDS);
	while ((err = connect(sock, (const struct sockaddr *)addr, sizeof(*addr))) != 0 &&
	       errno == EINTR)
		;
	if (err == 0) {
		set_limits(sock, IPC_REPLY_SECONDS);
		return 0;
	}
	if (errno == EAGAIN)
		return lib_fail(-ETIMEDOUT,
				"%s: the daemon does not answer: after %d seconds it has accepted "
				"no connection: it has no CPU, hangs, or is stopped",
				addr->sun_path, IPC_GREETING_SECONDS);
	err = errno == ECONNREFUSED ? -ENOENT : -errno;
	return lib_fail(err, "%s: %s", addr->sun_path,
			err == -ENOENT	 ? "no daemon listens there"
			: err == -EACCES ? "this user may not use it (see the mode and group of "
					   "the socket)"
					 : strerror(-err));
}

int
ipc_connect(const char *path, int *out)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return lib_fail(-ENAMETOOLONG, "the path of the socket is too long: %s", path);
	strcpy(addr.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return lib_fail(-errno, "socket: %s", strerror(errno));
	err = connect_soon(sock, &addr);
	if (err == 0)
		err = check_owner(path, sock);
	if (err != 0) {
		close(sock);
		return err;
	}
	*out = sock;
	return 0;
}

/* Daemons of this version end a connection with another version in silence; later ones answer. */
#define SILENT_VERSION 1

/* Whether the daemon welcomes a greeting of that version. */
static bool
welcomes(const char *path, uint16_t version)
{
	const struct {
		struct ipc_request head;
		struct hca_ctl_hello hello;
	} m = {{version, HCA_CTL_HELLO, sizeof(struct hca_ctl_hello), 0}, {.magic = IPC_MAGIC}};
	struct {
		struct ipc_reply head;
		uint8_t body[IPC_BODY_MAX];
	} reply = {0};
	int fds[IPC_FDS_PER_MESSAGE], sock;
	unsigned int num_fds = IPC_FDS_PER_MESSAGE;
	ssize_t got = 0;

	if (ipc_connect(path, &sock) != 0)
		return false;
	set_limits(sock, IPC_GREETING_SECONDS);
	if (ipc_send(sock, &m, sizeof(m), NULL, 0, NULL, 0, 0) == 0) {
		got = ipc_receive(sock, &reply, sizeof(reply), fds, &num_fds);
		ipc_close_fds(fds, num_fds);
	}
	close(sock);
	return got >= (ssize_t)sizeof(reply.head) && reply.head.version == version &&
	       reply.head.op == HCA_CTL_HELLO && reply.head.err == 0;
}

int
ipc_explain_silence(const char *path)
{
	if (welcomes(path, SILENT_VERSION))
		return lib_fail(-EPROTONOSUPPORT,
				"%s: the daemon speaks version %u of the control channel, "
				"this program's libsofthca version %u: upgrade the daemon, "
				"and restart it",
				path, SILENT_VERSION, HCA_CTL_VERSION);
	return lib_fail(-EIO,
			"%s: the daemon ended the connection at the greeting: it may be shutting "
			"down",
			path);
}
