# SPDX-License-Identifier: BSD-3-Clause
"""Contracts of the public headers and of the face headers of rooms, in the form of DPDK's rte_ring.h.

Each function has a comment that begins with /** directly in front of it, a @param for each parameter
and for no other name, and a @return unless it returns nothing.
"""
import re

# Headers outside include/ that other rooms include. The list only gets longer.
FACES = (
    'src/device/hca.h',
    'src/driver/driver.h', 'src/driver/driver_addr.h', 'src/driver/driver_cm.h',
    'src/driver/driver_inspect.h', 'src/driver/driver_tp.h',
    'src/cm/core/cm_cookie.h', 'src/cm/core/cm_pairs.h', 'src/cm/core/cm_repeat.h',
    'src/cm/core/cm_share.h', 'src/cm/ib/ibcm.h',
    'src/ipc/channel/ipc_msg.h', 'src/ipc/client/ipc_client.h', 'src/ipc/client/ipc_connect.h',
    'src/ipc/client/ipc_list.h', 'src/ipc/server/ipc_server.h',
)

# In include/ the exported and the inline functions count; in faces all.
FUNCTION = r'^(?:%s)(?P<type>[^();{}=#]*?[ *\n])(?P<name>\w+)\((?P<args>[^;{]*)\)(?:;|\n\{)'
EXPORTED = re.compile(FUNCTION % 'SOFTHCA_API |static inline ', re.M | re.S)
ANY = re.compile(FUNCTION % r'static inline |(?!typedef|static)(?=[a-z])', re.M | re.S)
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
    described = re.findall(r'^ \* @param (\w+)(?:  |\n \*   )\S', text, re.M)
    wanted = parameters(match.group('args'))
    yield from ('no @param %s' % name for name in wanted if name not in described)
    yield from ('@param %s is not a parameter' % name for name in described if name not in wanted)
    if match.group('type').strip() != 'void' and not re.search(r'^ \* @return(?:  |\n \*   )\S', text, re.M):
        yield 'no @return'
    if not re.match(r'/\*\*(?: |\n \* )[^@\s]', text):
        yield 'no summary'


def complaints(tree):
    for path in tree.c_files:
        if not path.startswith('include/') and path not in FACES:
            continue
        text = tree.text(path)
        for match in (ANY if path in FACES else EXPORTED).finditer(text):
            comment = COMMENT.search(text[:match.start()])
            line = text.count('\n', 0, match.start()) + 1
            for fault in faults(comment, match):
                yield '%s:%d: %s(): %s' % (path, line, match.group('name'), fault)
