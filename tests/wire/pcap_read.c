/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap_read.h"

#define MAGIC_US 0xa1b2c3d4U
#define MAGIC_NS 0xa1b23c4dU
#define FILE_HEADER 24
#define RECORD_HEADER 16
#define LINKTYPE_ETHER 1

static uint32_t
word(const struct pcap_file *f, size_t at)
{
	uint32_t v;

	memcpy(&v, f->data + at, sizeof(v));
	return f->swapped ? __builtin_bswap32(v) : v;
}

static int
read_all(struct pcap_file *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	int rc = -EINVAL;
	long size;

	if (in == NULL)
		return -errno;
	if (fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < FILE_HEADER)
		goto err_close;
	rewind(in);
	f->data = malloc(size);
	if (f->data == NULL) {
		rc = -ENOMEM;
		goto err_close;
	}
	f->len = size;
	if (fread(f->data, 1, f->len, in) != f->len)
		goto err_free;
	fclose(in);
	return 0;

err_free:
	pcap_close_file(f);
err_close:
	fclose(in);
	return rc;
}

static bool
is_magic(uint32_t v)
{
	return v == MAGIC_US || v == MAGIC_NS;
}

int
pcap_open_file(struct pcap_file *f, const char *path)
{
	int rc;

	memset(f, 0, sizeof(*f));
	rc = read_all(f, path);
	if (rc < 0)
		return rc;
	f->pos = FILE_HEADER;
	f->swapped = !is_magic(word(f, 0));
	if (!is_magic(word(f, 0)))
		rc = -EINVAL;
	else if ((word(f, 20) & 0xffff) != LINKTYPE_ETHER)
		rc = -ENOTSUP;
	if (rc < 0)
		pcap_close_file(f);
	return rc;
}

int
pcap_next_frame(struct pcap_file *f, struct pcap_frame *out)
{
	if (f->pos == f->len)
		return 0;
	if (f->len - f->pos < RECORD_HEADER)
		return -EINVAL;
	out->len = word(f, f->pos + 8);
	out->wire_len = word(f, f->pos + 12);
	if (f->len - f->pos - RECORD_HEADER < out->len)
		return -EINVAL;
	out->data = f->data + f->pos + RECORD_HEADER;
	f->pos += RECORD_HEADER + out->len;
	return 1;
}

void
pcap_close_file(struct pcap_file *f)
{
	free(f->data);
	memset(f, 0, sizeof(*f));
}
