# SPDX-License-Identifier: BSD-3-Clause
"""Contracts of the public headers, in the form of DPDK's rte_ring.h.

Each public function has a comment that begins with /** directly in front of it, a @param for each
parameter and for no other name, and a @return unless it returns nothing.
"""
import re

PROTOTYPE = re.compile(r'^(?:SOFTHCA_API |static inline )(?P<type>[^();{}]*?[ *\n])(?P<name>\w+)\((?P<args>[^;{]*)\)(?:;|\n\{)',
                       re.M | re.S)
COMMENT = re.compile(r'/\*\*(?:(?!\*/).)*\*/\n\Z', re.S)


def parameters(text):
    """Names, in order; an array is named before its brackets."""
    if text.strip() == 'void':
        return []
    return [re.search(r'(\w+)(?:\[[^\]]*\])?$', part.strip()).group(1) for part in text.split(',')]


def faults(comment, match):
    """Missing parts of the contract of one function."""
    if comment is None:
        yield 'no contract: a comment that begins with /**'
        return
    text = comment.group()
    described = re.findall(r'^ \* @param (\w+)  \S', text, re.M)
    wanted = parameters(match.group('args'))
    yield from ('no @param %s' % name for name in wanted if name not in described)
    yield from ('@param %s is not a parameter' % name for name in described if name not in wanted)
    if match.group('type').strip() != 'void' and not re.search(r'^ \* @return  \S', text, re.M):
        yield 'no @return'
    if not re.match(r'/\*\*(?: |\n \* )[^@\s]', text):
        yield 'no summary'


def complaints(tree):
    for path in tree.c_files:
        if not path.startswith('include/'):
            continue
        text = tree.text(path)
        for match in PROTOTYPE.finditer(text):
            comment = COMMENT.search(text[:match.start()])
            line = text.count('\n', 0, match.start()) + 1
            for fault in faults(comment, match):
                yield '%s:%d: %s(): %s' % (path, line, match.group('name'), fault)
