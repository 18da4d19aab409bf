# SPDX-License-Identifier: BSD-3-Clause
"""Sizes and members of structures, and values of constants, as a compiler has them: one line each."""
import os
import re
import subprocess
import sys
import tempfile


def without_comments(text):
    return re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)


def pieces(body):
    """The declarations of a structure: text up to a semicolon outside of braces."""
    depth = start = 0
    for at, char in enumerate(body):
        depth += (char == '{') - (char == '}')
        if char == ';' and depth == 0:
            yield body[start:at].strip()
            start = at + 1


def members(body):
    """Names that offsetof() takes; of a bit field none."""
    for piece in pieces(body):
        inner = re.fullmatch(r'(?:struct|union)\s*\{(.*)\}', piece, re.S)
        if inner:
            yield from members(inner[1])
            continue
        piece = re.sub(r'\{.*\}', ' ', piece, flags=re.S)
        for word in piece.split(','):
            name = re.search(r'(\w+)(?:\s*\[[^\]]*\])*$', word.strip())
            if ':' not in word and not word.strip().endswith('[]'):
                yield name[1]


def structures(text):
    """(struct or union, name, members)"""
    pattern = r'^(?:typedef )?(struct|union) (\w+) \{\n(.*?)^\}'
    for kind, name, body in re.findall(pattern, text, re.M | re.S):
        yield kind, name, list(members(body))


def constants(text):
    """Enumerators that stand in the text; how many there are is none."""
    for body in re.findall(r'\benum(?: \w+)? \{(.*?)\}', text, re.S):
        for word in re.sub(r'^#.*$', '', body, flags=re.M).split(','):
            name = re.match(r'\s*([A-Z]\w+)\s*(?:=.*)?$', word, re.S)
            if name and not name[1].endswith('_COUNT'):
                yield name[1]


def program(headers, more):
    lines = ['#include <%s>' % name for name in headers]
    lines += ['#include <stddef.h>', '#include <stdio.h>', 'int main(void)', '{', more]
    for text in headers.values():
        for kind, name, names in structures(text):
            full = '%s %s' % (kind, name)
            lines.append('printf("%s %%zu\\n", sizeof(%s));' % (full, full))
            for member in names:
                lines.append('printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));' % (
                    full, member, full, member, full, member))
        for name in constants(text):
            lines.append('printf("constant %s %%lld\\n", (long long)%s);' % (name, name))
    return '\n'.join(lines + ['return 0;', '}', ''])


def layouts(headers, compiler, more=''):
    """headers: text without comments, by name. more: statements that print further lines."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'layout.c')
        with open(source, 'w', encoding='utf-8') as file:
            file.write(program(headers, more))
        binary = os.path.join(folder, 'layout')
        subprocess.run(compiler + [source, '-o', binary], check=True, timeout=120)
        return subprocess.run([binary], stdout=subprocess.PIPE, encoding='utf-8', check=True,
                              timeout=60).stdout.splitlines()


def compare(path, lines, write, words):
    """The lines against those of the file, or into it. words: the advice for a difference."""
    if write:
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join(lines) + '\n')
        return
    with open(path, encoding='utf-8') as file:
        agreed = file.read().splitlines()
    for line in sorted(set(agreed) - set(lines)):
        print('changed or gone: %s' % line)
    for line in sorted(set(lines) - set(agreed)):
        print('not in %s: %s' % (os.path.basename(path), line))
    if len(agreed) < 100 or sorted(agreed) != sorted(lines):
        sys.exit(words)
