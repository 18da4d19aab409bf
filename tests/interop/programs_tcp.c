/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A TCP program without RDMA: send a file, or receive one.
 *
 *	programs_tcp send|receive FILE ADDRESS PORT
 */

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
failed(const char *what)
{
	perror(what);
	return 1;
}

static int
send_file(int fd, const char *path)
{
	FILE *file = fopen(path, "rb");
	char buf[65536];
	size_t n, sent;
	ssize_t m;

	if (file == NULL)
		return failed(path);
	while ((n = fread(buf, 1, sizeof(buf), file)) > 0)
		for (sent = 0; sent < n; sent += (size_t)m) {
			m = send(fd, buf + sent, n - sent, 0);
			if (m <= 0)
				return failed("send");
		}
	fclose(file);
	return shutdown(fd, SHUT_WR) == 0 ? 0 : failed("shutdown");
}

static int
receive_file(int fd, const char *path)
{
	FILE *file = fopen(path, "wb");
	char buf[65536];
	ssize_t n;

	if (file == NULL)
		return failed(path);
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (fwrite(buf, 1, (size_t)n, file) != (size_t)n)
			return failed("write");
	if (fclose(file) != 0 || n < 0)
		return failed("recv");
	return 0;
}

int
main(int argc, char **argv)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct addrinfo *to;
	int fd, result;

	if (argc != 5 || getaddrinfo(argv[3], argv[4], &hints, &to) != 0)
		return 2;
	fd = socket(to->ai_family, SOCK_STREAM, 0);
	if (strcmp(argv[1], "send") == 0) {
		if (connect(fd, to->ai_addr, to->ai_addrlen) != 0)
			return failed("connect");
		result = send_file(fd, argv[2]);
	} else {
		if (bind(fd, to->ai_addr, to->ai_addrlen) != 0 || listen(fd, 1) != 0)
			return failed("listen");
		fd = accept(fd, NULL, NULL);
		result = fd < 0 ? failed("accept") : receive_file(fd, argv[2]);
	}
	close(fd);
	return result;
}
