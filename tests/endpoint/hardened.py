# SPDX-License-Identifier: BSD-3-Clause
"""Hardening of a compiled file, as readelf shows it."""
import os
import re
import subprocess

# _FORTIFY_SOURCE replaces calls of these by checked ones; not of snprintf() if its format is "%s".
FORMATTED = re.compile(r'(v?[fds]?printf|vsnprintf)$')
CHECKED = re.compile(r'__\w+_chk$')


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding='utf-8',
                          check=True, env=dict(os.environ, LC_ALL='C')).stdout


def is_elf(path):
    with open(path, 'rb') as file:
        return file.read(4) == b'\x7fELF'


def elf_files(folder):
    """Programs and shared libraries below it."""
    for place, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(place, name)
            if not os.path.islink(path) and not name.endswith('.o') and is_elf(path):
                yield path


def needed_names(path):
    """Names that the file takes from other libraries."""
    names = set()
    for line in output('readelf', '-W', '--dyn-syms', path).splitlines():
        words = line.split()
        if len(words) > 7 and words[6] == 'UND':
            names.add(words[7].split('@')[0])
    return names


def segments(path):
    """(kind, flags) of each; flags as 'RWE'."""
    found = re.findall(r'^  ([A-Z_]+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3}) ',
                       output('readelf', '-W', '-l', path), re.M)
    return [(kind, flags.replace(' ', '')) for kind, flags in found]


def dynamic(path):
    """(tag, value) of each entry of the dynamic section."""
    return re.findall(r'^ 0x[0-9a-f]+ \((\w+)\) +(.*)$', output('readelf', '-W', '-d', path), re.M)


def layout_complaints(path):
    have, entries = segments(path), dynamic(path)
    flags = ' '.join(value for tag, value in entries if tag.startswith('FLAGS'))
    tags = {tag for tag, _ in entries}
    if any(kind == 'INTERP' for kind, _ in have) and 'PIE' not in flags:
        yield 'not position independent'
    if not any(kind == 'GNU_RELRO' for kind, _ in have):
        yield 'no GNU_RELRO'
    if 'NOW' not in flags and 'BIND_NOW' not in tags:
        yield 'no BIND_NOW'
    if [flags for kind, flags in have if kind == 'GNU_STACK'] != ['RW']:
        yield 'executable stack'
    if any(kind == 'LOAD' and 'W' in flags and 'E' in flags for kind, flags in have):
        yield 'a segment that can be written and executed'
    if 'TEXTREL' in tags:
        yield 'code is relocated'


def code_complaints(path, fortified=True):
    names = needed_names(path)
    if '__stack_chk_fail' not in names:
        yield 'no stack protector'
    if fortified and any(map(FORMATTED.match, names)) and not any(map(CHECKED.match, names)):
        yield 'not fortified: %s' % ' '.join(sorted(filter(FORMATTED.match, names)))


def complaints(path, fortified=True):
    """Missing hardening of a program or a shared library."""
    return list(layout_complaints(path)) + list(code_complaints(path, fortified))


def archive_complaints(path):
    """Missing hardening of a static library."""
    names = set(re.findall(r'^ +U (\w+)$', output('nm', path), re.M))
    return [] if '__stack_chk_fail' in names else ['no stack protector']
