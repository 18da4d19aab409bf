# SPDX-License-Identifier: BSD-3-Clause
"""docs/reference/coverage.md against the tree.

Every entry of the lists in src/abi stands exactly once in it, in the section of its list, with tests that
exist. A row is

    | `NAME` `NAME` ... | `FILE`: test test, `FILE`: test |

with files below tests/ and names of test functions in them; a refused entry says so in its row.
"""

import os
import re

PAGE = 'docs/reference/coverage.md'

# section of the page: (header, list macro)
SECTIONS = {
    'Commands': ('src/abi/abi_cmd.h', 'HCA_CMD_LIST'),
    'Command status': ('src/abi/abi_cmd.h', 'HCA_STAT_LIST'),
    'Operations': ('src/abi/abi_wqe.h', 'HCA_OP_LIST'),
    'Services': ('src/abi/abi_ctx.h', 'enum hca_service'),
    'QP states': ('src/abi/abi_ctx.h', 'HCA_QP_STATE_LIST'),
    'QP attributes': ('src/abi/abi_qp_attr.h', 'HCA_QP_ATTR_LIST'),
    'Completion status': ('src/abi/abi_cqe.h', 'HCA_SYND_LIST'),
    'Events': ('src/abi/abi_cqe.h', 'HCA_EVENT_LIST'),
    'Events of connections': ('src/abi/abi_ctl.h', 'HCA_CTL_CM_EVENT_LIST'),
    'Operations of connections': ('src/abi/abi_ops.h', 'HCA_CTL_OPS CM_'),
    'Features of the control channel': ('src/abi/abi_ops.h', 'HCA_CTL_FEATURE_LIST'),
    'Capabilities': ('src/abi/abi_cmd.h', 'HCA_CAP_LIST'),
}

ENUM_PREFIX = {'enum hca_service': 'HCA_ST_'}


def listed(text, what):
    """Names of an X-macro list, or of those that begin as the second word, or of an enumeration."""
    if what.startswith('enum'):
        body = re.search(re.escape(what) + r' \{(.*?)\};', text, re.S).group(1)
        names = re.findall(ENUM_PREFIX[what] + r'(\w+) = ', body)
        return [name for name in names if name != 'COUNT']
    what, _, begin = what.partition(' ')
    body = re.search(r'#define ' + what + r'\(X\)((?:[^\n]*\\\n)*[^\n]*)', text).group(1)
    return re.findall(r'\bX\((' + begin + r'\w+),', body)


def rows(page):
    """(section, names, tests as [(file, [function])], line number) of every row."""
    section = None
    for number, line in enumerate(page.split('\n'), 1):
        if line.startswith('## '):
            section = line[3:].strip()
        match = re.match(r'\| (`[^|]*) \| ([^|]*) \|', line)
        if not match:
            continue
        names = re.findall(r'`(\w+)`', match.group(1))
        tests = [(f, re.findall(r'\w+', t))
                 for f, t in re.findall(r'`([\w/.-]+)`: ([\w ]+)', match.group(2))]
        yield section, names, tests, number


def missing_functions(root, file, functions):
    path = os.path.join(root, 'tests', file)
    if not os.path.isfile(path):
        return ['file tests/' + file]
    with open(path, encoding='utf-8') as source:
        text = source.read()
    return ['%s in tests/%s' % (name, file) for name in functions
            if not re.search(r'\b%s(_in)?\b' % name, text)]


def complaints(root):
    with open(os.path.join(root, PAGE), encoding='utf-8') as source:
        page = source.read()
    seen = {section: [] for section in SECTIONS}
    for section, names, tests, line in rows(page):
        if section not in SECTIONS:
            yield '%s:%d: section %s is not known' % (PAGE, line, section)
            continue
        seen[section] += names
        if not tests:
            yield '%s:%d: no test named' % (PAGE, line)
        for file, functions in tests:
            for what in missing_functions(root, file, functions):
                yield '%s:%d: there is no %s' % (PAGE, line, what)
    for section, (header, what) in SECTIONS.items():
        with open(os.path.join(root, header), encoding='utf-8') as source:
            known = listed(source.read(), what)
        for name in known:
            if seen[section].count(name) != 1:
                yield '%s: %s stands %d times under %s' % (
                    PAGE, name, seen[section].count(name), section)
        for name in set(seen[section]) - set(known):
            yield '%s: %s is not in %s' % (PAGE, name, what)


if __name__ == '__main__':
    import sys
    found = list(complaints(sys.argv[1] if len(sys.argv) > 1 else '.'))
    print('\n'.join(found) or 'complete')
    sys.exit(1 if found else 0)
