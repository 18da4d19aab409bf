#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The control channel, and the memory that libraries and daemons use, are those of the file: operations
with their numbers and sizes, structures and their members.

test_channel.py [--write] FILE SRC GENERATED -- COMPILER...
"""
import os
import sys

import layout

HEADERS = ('abi/abi_ctl.h', 'abi/abi_ops.h', 'abi/abi_bar.h', 'abi/abi_wqe.h', 'abi/abi_cqe.h',
           'abi/abi_ctx.h', 'ipc/channel/ipc_proto.h')
OPERATIONS = """
	printf("version %u.%u\\n", HCA_CTL_VERSION, HCA_CTL_MINOR);
	for (uint32_t i = 0; i < HCA_CTL_OP_COUNT; i++) {
		const struct hca_ctl_shape *s = hca_ctl_shape(i);
		printf("operation %u %s since %u: %u %u bytes, %u %u descriptors\\n", i, s->name,
		       s->since, s->request, s->answer, s->fds_in, s->fds_out);
	}
"""


def main():
    words = sys.argv[1:]
    write = words[0] == '--write'
    words = words[write:]
    split = words.index('--')
    path, src, generated = words[:split]
    headers = {}
    for name in HEADERS:
        with open(os.path.join(src, name), encoding='utf-8') as file:
            headers[name] = layout.without_comments(file.read())
    compiler = words[split + 1:] + ['-D_GNU_SOURCE', '-I' + src, '-I' + os.path.join(src, 'abi'),
                                    '-I' + generated]
    layout.compare(path, layout.layouts(headers, compiler, OPERATIONS), write,
                   'what is added raises HCA_CTL_MINOR, what changes HCA_CTL_VERSION: see '
                   'docs/reference/versions.md; then ninja abi-write')


main()
