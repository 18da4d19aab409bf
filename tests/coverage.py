# SPDX-License-Identifier: BSD-3-Clause
"""The coverage table of README.md against the tree.

Under the heading "What is proved, and where" every entry of the lists in src/abi stands exactly
once, in the section of its list, beside tests that exist. A row is

    | `NAME` `NAME` ... | `FILE`: test test, `FILE`: test |

with files below tests/ and names of test functions in them; what is refused says so in its row.
"""

import os
import re

HEADING = '## What is proved, and where'

# section of the table: (header, list macro)
SECTIONS = {
    'Commands': ('src/abi/abi_cmd.h', 'HCA_CMD_LIST'),
    'Command status': ('src/abi/abi_cmd.h', 'HCA_STAT_LIST'),
    'Operations': ('src/abi/abi_wqe.h', 'HCA_OP_LIST'),
    'Services': ('src/abi/abi_ctx.h', 'enum hca_service'),
    'QP states': ('src/abi/abi_ctx.h', 'enum hca_qp_state'),
    'QP attributes': ('src/abi/abi_ctx.h', 'HCA_QP_ATTR_LIST'),
    'Completion status': ('src/abi/abi_cqe.h', 'HCA_SYND_LIST'),
    'Events': ('src/abi/abi_cqe.h', 'HCA_EVENT_LIST'),
    'Capabilities': ('src/abi/abi_cmd.h', 'HCA_CAP_LIST'),
}

ENUM_PREFIX = {'enum hca_service': 'HCA_ST_', 'enum hca_qp_state': 'HCA_QPS_'}


def listed(text, what):
    """Names of an X-macro list or an enumeration."""
    if what.startswith('enum'):
        body = re.search(re.escape(what) + r' \{(.*?)\};', text, re.S).group(1)
        names = re.findall(ENUM_PREFIX[what] + r'(\w+) = ', body)
        return [name for name in names if name != 'COUNT']
    body = re.search(r'#define ' + what + r'\(X\)((?:[^\n]*\\\n)*[^\n]*)', text).group(1)
    return re.findall(r'\bX\((\w+),', body)


def rows(readme):
    """(section, names, tests as [(file, [function])], line number) of every row."""
    lines = readme.split('\n')
    if HEADING not in lines:
        return
    section = None
    for number in range(lines.index(HEADING) + 1, len(lines)):
        line = lines[number]
        if line.startswith('## '):
            return
        if line.startswith('### '):
            section = line[4:].strip()
        match = re.match(r'\| (`[^|]*) \| ([^|]*) \|', line)
        if not match:
            continue
        names = re.findall(r'`(\w+)`', match.group(1))
        tests = [(f, re.findall(r'\w+', t))
                 for f, t in re.findall(r'`([\w/.-]+)`: ([\w ]+)', match.group(2))]
        yield section, names, tests, number + 1


def missing_functions(root, file, functions):
    path = os.path.join(root, 'tests', file)
    if not os.path.isfile(path):
        return ['file tests/' + file]
    with open(path, encoding='utf-8') as source:
        text = source.read()
    return ['%s in tests/%s' % (name, file) for name in functions
            if not re.search(r'\b%s(_in)?\b' % name, text)]


def complaints(root):
    with open(os.path.join(root, 'README.md'), encoding='utf-8') as source:
        readme = source.read()
    seen = {section: [] for section in SECTIONS}
    for section, names, tests, line in rows(readme):
        if section not in SECTIONS:
            yield 'README.md:%d: section %s is not known' % (line, section)
            continue
        seen[section] += names
        if not tests:
            yield 'README.md:%d: no test named' % line
        for file, functions in tests:
            for what in missing_functions(root, file, functions):
                yield 'README.md:%d: there is no %s' % (line, what)
    for section, (header, what) in SECTIONS.items():
        with open(os.path.join(root, header), encoding='utf-8') as source:
            known = listed(source.read(), what)
        for name in known:
            if seen[section].count(name) != 1:
                yield 'README.md: %s stands %d times under %s' % (
                    name, seen[section].count(name), section)
        for name in set(seen[section]) - set(known):
            yield 'README.md: %s is not in %s' % (name, what)


if __name__ == '__main__':
    import sys
    found = list(complaints(sys.argv[1] if len(sys.argv) > 1 else '.'))
    print('\n'.join(found) or 'complete')
    sys.exit(1 if found else 0)
