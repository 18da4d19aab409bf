#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The ABI of the libraries is that of the file: exported names with their versions, sizes and members
of public structures, values of constants.

test_abi.py [--write] FILE INCLUDE RELEASE LIBRARY:HEADER[,HEADER...]... -- COMPILER...

A changed or missing line breaks programs: it needs another soname (docs/reference/versions.md). New lines are
written to the file with --write.
"""
import os
import re
import subprocess
import sys

import layout

# Names that came with a release, by its node: a later name gets the node of the release that it comes with.
RELEASED = {'SOFTHCA_0.2': 103, 'SOFTHCA_URMA_0.2': 60, 'SOFTHCA_EMBED_0.2': 23}


def exported(library):
    """NAME NODE of each name that the library gives to others."""
    lines = subprocess.run(['readelf', '-W', '--dyn-syms', library], stdout=subprocess.PIPE,
                           encoding='utf-8', check=True, timeout=60).stdout.splitlines()
    for line in lines:
        words = line.split()
        if len(words) >= 8 and words[3] != 'SECTION' and words[6] not in ('UND', 'ABS') and \
                words[4] in ('GLOBAL', 'WEAK'):
            name, _, node = words[7].partition('@')
            yield name, node.lstrip('@')


def needed(library):
    """Nodes of other libraries that it does not load without"""
    said = subprocess.run(['readelf', '-W', '-V', library], stdout=subprocess.PIPE, encoding='utf-8',
                          check=True, timeout=60).stdout
    return re.findall(r'Name: (\S+)  Flags', said)


def public(library, header, release):
    """The lines of a library. Each name of its headers is exported, and the other exports are private."""
    declared = set(re.findall(r'^SOFTHCA_API\s[^(;]*?(\w+)\(', header, re.M))
    there = dict(exported(library))
    private = {name for name, node in there.items() if node == 'SOFTHCA_PRIVATE_' + release}
    wrong = sorted(declared ^ (set(there) - private))
    assert len(declared) > 10 and not wrong, '%s: declared or exported alone: %s' % (library, wrong)
    short = os.path.basename(library).split('.so')[0]
    # the dynamic linker refuses libsofthca of another release
    assert short == 'libsofthca' or 'SOFTHCA_PRIVATE_' + release in needed(library), needed(library)
    return ['%s %s@%s' % (short, name, there[name]) for name in sorted(declared)]


def no_late_names(lines):
    nodes = [line.partition('@')[2] for line in lines]
    for node, count in RELEASED.items():
        assert nodes.count(node) == count, '%s has %d names, its release has %d: give a new name the node of the ' \
            'release that it comes with' % (node, nodes.count(node), count)


def main():
    words = sys.argv[1:]
    write = words[0] == '--write'
    words = words[write:]
    split = words.index('--')
    path, include, release = words[:3]
    headers, lines = {}, []
    for library, names in (word.split(':') for word in words[3:split]):
        names = names.split(',')
        for name in names:
            with open(os.path.join(include, name), encoding='utf-8') as file:
                headers[name] = layout.without_comments(file.read())
        lines += public(library, '\n'.join(headers[name] for name in names), release)
    no_late_names(lines)
    lines += layout.layouts(headers, words[split + 1:] + ['-I' + include])
    layout.compare(path, lines, write, 'see docs/reference/versions.md: The ABI of the libraries')


main()
