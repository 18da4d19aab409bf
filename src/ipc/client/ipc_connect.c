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

/* A user whose daemon may have this process's memory, beside root and the own one; -1: none */
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
	/* only root can create folders beside it */
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

int
ipc_connect(const char *path, int *out)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = IPC_REPLY_SECONDS};
	int sock, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return lib_fail(-ENAMETOOLONG, "the path of the socket is too long: %s", path);
	strcpy(addr.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return lib_fail(-errno, "socket: %s", strerror(errno));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	while ((err = connect(sock, (struct sockaddr *)&addr, sizeof(addr))) != 0 && errno == EINTR)
		; /* it waits while others are being accepted */
	if (err != 0) {
		err = errno == ECONNREFUSED ? -ENOENT : -errno;
		lib_fail(err, "%s: %s", path,
			 err == -ENOENT ? "no daemon listens there" : strerror(errno));
		close(sock);
		return err;
	}
	if (check_owner(path, sock) != 0) {
		close(sock);
		return -EACCES;
	}
	*out = sock;
	return 0;
}

/* Whether the daemon answers a HELLO of this version. */
static bool
answers(const char *path, uint16_t version)
{
	const struct {
		struct ipc_request head;
		struct hca_ctl_hello hello;
	} m = {{version, HCA_CTL_HELLO, sizeof(struct hca_ctl_hello), 0}, {.magic = IPC_MAGIC}};
	uint8_t reply[sizeof(struct ipc_reply) + IPC_BODY_MAX];
	int fds[IPC_FDS_PER_MESSAGE], sock;
	unsigned int num_fds = IPC_FDS_PER_MESSAGE;
	ssize_t got = 0;

	if (ipc_connect(path, &sock) != 0)
		return false;
	if (ipc_send(sock, &m, sizeof(m), NULL, 0, NULL, 0, 0) == 0) {
		got = ipc_receive(sock, reply, sizeof(reply), fds, &num_fds);
		ipc_close_fds(fds, num_fds);
	}
	close(sock);
	return got > 0;
}

/* The daemon closed the connection without an answer, as earlier versions do. */
int
ipc_explain_silence(const char *path)
{
	for (uint16_t version = HCA_CTL_VERSION - 1; version > 0; version--)
		if (answers(path, version))
			return lib_fail(-EPROTONOSUPPORT,
					"%s: the daemon speaks version %u of the control channel, "
					"this program's libsofthca version %u: upgrade the daemon, "
					"and restart it",
					path, version, HCA_CTL_VERSION);
	return lib_fail(-EIO,
			"%s: the daemon ended the connection at the greeting: it may have all the "
			"clients it takes ('softhca-ctl clients'), or be shutting down",
			path);
}
