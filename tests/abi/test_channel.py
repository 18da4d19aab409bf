#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The control channel, and the memory that libraries and daemons use, are those of the file: operations
with their numbers and sizes, structures and their members, numbers, and the places of bits.

test_channel.py [--write] FILE SRC GENERATED -- COMPILER...
"""
import os
import re
import sys

import layout

HEADERS = ('abi/abi_ctl.h', 'abi/abi_ops.h', 'abi/abi_bar.h', 'abi/abi_wqe.h', 'abi/abi_cqe.h',
           'abi/abi_ctx.h', 'abi/abi_qp_attr.h', 'abi/abi_tp.h', 'ipc/channel/ipc_proto.h')
LISTS = ('HCA_OP_LIST', 'HCA_SYND_LIST', 'HCA_EVENT_LIST', 'HCA_QP_STATE_LIST', 'HCA_QP_ATTR_LIST',
         'HCA_CTL_FEATURE_LIST')
# of the registers and contexts that driver and device alone use, and parts of lists
INSIDE = re.compile(r'\bhca_(cqc|eqc|srqc|mpt|eqe|hcr|qp_transition|tpc\w*|mbox_\w+|ctl_shape|ctl_sizes|ctl_extra)\b|'
                    r'HCA_(BAR0|HCR|RESET|CMD|QPA|CQC|CQ_ST|CQ_FLAG|EQ|SRQC|MPT|MTT|BUS|KEY|TPC|TPG|TP_(?!ERR))|'
                    r'HCA_(CTL_VERSION|CTL_MINOR|QPN_MAKE)')
OPERATIONS = r"""
	printf("version %u.%u\n", HCA_CTL_VERSION, HCA_CTL_MINOR);
	for (uint32_t i = 0; i < HCA_CTL_OP_COUNT; i++) {
		const struct hca_ctl_shape *s = hca_ctl_shape(i);
		printf("operation %u %s since %u: %u %u bytes, %u %u descriptors\n", i, s->name,
		       s->since, s->request, s->answer, s->fds_in, s->fds_out);
	}
"""


def lists():
    """The number that follows the name in each row of a list."""
    for name in LISTS:
        yield '#define X(row, number, ...) printf("%s " #row " %%llu\\n", (unsigned long long)(number));' % name
        yield '%s(X)' % name
        yield '#undef X'


def attributes():
    """Where each attribute of a QP stands in its mailbox."""
    yield '#define X(name, member, word, field, ...) printf("attribute " #name " " #member " %zu %x\\n", ' \
          'offsetof(struct hca_qpc, word), HCA_BITS_OF(HCA_QPC_##field));'
    yield 'HCA_QP_VALUE_LIST(X)'
    yield '#undef X'
    yield '#define X(name, word, bits) printf("attribute " #name " %zu %x\\n", ' \
          'offsetof(struct hca_qpc, word), (unsigned int)(bits));'
    yield 'HCA_QP_WORD_LIST(X)'
    yield '#undef X'


def numbers(text):
    for name, value in re.findall(r'^#define (\w+)[ \t]+(\S.*)$', text, re.M):
        if not value.endswith('\\') and not value.startswith(('"', '_')) and not INSIDE.search(name):
            yield 'printf("number %s %%llu\\n", (unsigned long long)(%s));' % (name, name)


def bits(text):
    """Where each argument of a macro that makes a word goes: its lowest bit, and all of it."""
    for name, words in re.findall(r'^#define (\w+_MAKE_?\w*)\(([^)]*)\)', text, re.M):
        arguments = [word.strip() for word in words.split(',')]
        for at, argument in enumerate(arguments):
            for value in '1', '-1ll':
                given = ', '.join('(%sll)' % ('0' if i != at else value.rstrip('l'))
                                  for i in range(len(arguments)))
                if not INSIDE.search(name):
                    yield 'printf("bits %s %s %%llx\\n", (unsigned long long)(%s(%s)));' % (
                        name, argument, name, given)


def statements(headers):
    texts = [text for name, text in headers.items() if name.startswith('abi/')]
    lines = list(lists()) + list(attributes()) + [line for text in texts for line in list(numbers(text)) + list(bits(text))]
    return OPERATIONS + '\n'.join(lines)


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
    compiler = words[split + 1:] + ['-D_GNU_SOURCE', '-w', '-I' + src, '-I' + os.path.join(src, 'abi'),
                                    '-I' + generated]
    lines = layout.layouts(headers, compiler, statements(headers))
    layout.compare(path, [line for line in lines if not INSIDE.search(line)], write,
                   'what is added raises HCA_CTL_MINOR, what changes HCA_CTL_VERSION: see '
                   'docs/reference/versions.md; then ninja abi-write')


main()
