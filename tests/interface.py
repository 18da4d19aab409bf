# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/reference/interface.md, made from the headers of src/abi (or others of src).

A table stands below a line that names its source:

    <!-- struct hca_qpc, abi_qp_attr.h -->          its members, as their comments describe them
    <!-- HCA_CMD_LIST, abi_cmd.h: name, code -->    the rows of an X-macro; of each as many
                                                    arguments as headings

interface.py --write updates them; tests/checks.py complains of tables that differ.
"""
import os
import re
import sys

PAGE = 'docs/reference/interface.md'
MARK = re.compile(r'<!-- (struct )?(\w+), ([\w/]+\.h)(?:: ([^>]*))? -->\n\n?')
MEMBER = re.compile(r'^\t+(?:const )?(?:struct )?(\w+) (\w+)((?:\[[^\]]*\])?);[ \t]*'
                    r'(?:/\*(.*?)\*/)?', re.M | re.S)
OFFSET = re.compile(r'^([0-9A-F]{2,3}h)\s*(\[[0-9A-F]+h\])?\s*')


def body_of(text, name):
    start = text.index('struct %s {\n' % name)
    return text[start:re.compile(r'^}', re.M).search(text, start).start()]


def in_one_line(comment):
    return re.sub(r'\s*\n\s*\*?\s*', ' ', comment).strip().replace('|', '\\|')


def struct_rows(text, name):
    yield 'offset', 'member', 'holds'
    for kind, member, array, comment in MEMBER.findall(body_of(text, name)):
        words = in_one_line(comment)
        at = OFFSET.match(words)
        if member.startswith('reserved') and (at is None or words == at.group(1)):
            continue
        offset = (at.group(1) + (' ' + at.group(2) if at.group(2) else '')) if at else ''
        yield offset, '`%s%s`' % (member, array), words[at.end():] if at else words


def arguments(row):
    """Split at commas outside of strings and brackets."""
    return [word.strip() for word in re.findall(r'(?:"[^"]*"|\([^)]*\)|[^,"(])+', row)]


def list_rows(text, name, headings):
    columns = [word.strip() for word in headings.split(',')]
    yield tuple(columns)
    body = re.search(r'#define ' + name + r'\(X\)((?:[^\n]*\\\n)*[^\n]*)', text).group(1)
    for row in re.findall(r'\bX\(((?:"[^"]*"|\([^()]*\)|[^"()])*)\)', body.replace('\\\n', ' ')):
        words = arguments(row)
        cells = ['`%s`' % words[0]] + [word.strip('"').replace(' |', ',') for word in words[1:]]
        cells = cells[:len(columns)]
        yield tuple('' if cell == '0' and i > 1 else cell for i, cell in enumerate(cells))


def table(root, match):
    path = match.group(3) if '/' in match.group(3) else 'abi/' + match.group(3)
    with open(os.path.join(root, 'src', path), encoding='utf-8') as file:
        text = file.read()
    rows = list(struct_rows(text, match.group(2)) if match.group(1) else
                list_rows(text, match.group(2), match.group(4)))
    rows.insert(1, ('---',) * len(rows[0]))
    return ''.join('| %s |\n' % ' | '.join(row) for row in rows)


def made(root, page):
    """The page as it should be."""
    pieces = []
    last = 0
    for match in MARK.finditer(page):
        pieces += [page[last:match.start()], match.group().rstrip('\n'), '\n\n', table(root, match), '\n']
        last = match.end()
        while page.startswith('|', last):
            last = page.index('\n', last) + 1
        last += page.startswith('\n', last)
    return ''.join(pieces) + page[last:]


def complaints(root):
    with open(os.path.join(root, PAGE), encoding='utf-8') as file:
        page = file.read()
    there, wanted = page.split('\n'), made(root, page).split('\n')
    for number, (line, want) in enumerate(zip(there, wanted), 1):
        if line != want:
            yield '%s:%d: not what src/abi says; python3 tests/interface.py --write mends it' % (
                PAGE, number)
            return
    if len(there) != len(wanted):
        yield '%s: the last table is not as long as it should be' % PAGE


if __name__ == '__main__':
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(top, PAGE)
    with open(path, encoding='utf-8') as source:
        old = source.read()
    if sys.argv[1:] == ['--write']:
        with open(path, 'w', encoding='utf-8') as out:
            out.write(made(top, old))
    else:
        sys.exit('\n'.join(complaints(top)) or None)
