# SPDX-License-Identifier: BSD-3-Clause
"""Links of pages (*.md), the length of the README, the program that a page shows, pictures, and
MAINTAINERS.

comments.page_complaints() checks that the file behind a link exists; here the heading behind its
"#" must exist too, under the name that GitHub makes of it.
"""
import os
import re
import xml.etree.ElementTree

import rooms

README = 'README.md'
README_LINES = 160
PROGRAM = 'docs/guide/program.md'
MAINTAINERS = 'MAINTAINERS'

FENCE = re.compile(r'^ {0,3}```.*?^ {0,3}```$|^ {4}[^\n]*$', re.M | re.S)
CODE = re.compile(r'`[^`\n]+`')
LINK = re.compile(r'\]\(([^)#:\s]*)#([^)\s]+)\)')
HEADING = re.compile(r'^#{1,6} +(.*?) *#*$', re.M)
FOLDER = re.compile(r'\b(?:apps|benchmarks|config|docs|include|src|tests)\b[\w./-]*(?<![.])')
SHOWN = re.compile(r'^`(examples/\w+\.c)`, whole.*?^```c\n(.*?)^```$', re.M | re.S)


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group())


def pages(tree):
    """Every page of the tree and of its top folder."""
    yield from (path for path in tree.files if path.endswith('.md'))
    yield from (name for name in sorted(os.listdir(tree.root)) if name.endswith('.md'))


def anchor(heading):
    """The name of a heading in a link, as GitHub makes it."""
    text = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading)
    return re.sub(r'[^\w\- ]', '', text.lower()).replace(' ', '-')


def anchors(text):
    """All of them; the second heading of the same words has -1 at its end."""
    found = set()
    for heading in HEADING.findall(FENCE.sub(blank, text)):
        name = anchor(heading)
        number = 0
        while name in found:
            number += 1
            name = '%s-%d' % (anchor(heading), number)
        found.add(name)
    return found


def links(tree):
    texts = {page: tree.text(page) for page in pages(tree)}
    names = {page: anchors(text) for page, text in texts.items()}
    for page, text in texts.items():
        bare = CODE.sub(blank, FENCE.sub(blank, text))
        for match in LINK.finditer(bare):
            path = os.path.normpath(os.path.join(os.path.dirname(page), match.group(1))) if match.group(1) else page
            if path in names and match.group(2) not in names[path]:
                yield '%s:%d: %s has no heading #%s' % (
                    page, text.count('\n', 0, match.start()) + 1, path, match.group(2))


def readme_length(tree):
    lines = tree.text(README).count('\n')
    if lines >= README_LINES:
        yield '%s: %d lines, fewer than %d wanted: the rest belongs to docs' % (README, lines, README_LINES)


def program(tree):
    """The program of the page is the file that the tests build and run."""
    shown = SHOWN.search(tree.text(PROGRAM))
    if shown is None:
        yield '%s: no program after a line that begins with its file and ", whole"' % PROGRAM
    elif tree.text(shown.group(1)) != shown.group(2):
        yield '%s: its program is not %s' % (PROGRAM, shown.group(1))


def maintainers(tree):
    """Its folders and files exist, and each room has a role."""
    text = tree.text(MAINTAINERS)
    listed = FOLDER.findall(text[text.index('---'):text.index('What a role does')])
    for path in listed:
        if not os.path.exists(os.path.join(tree.root, path)):
            yield '%s: there is no %s' % (MAINTAINERS, path)
    for room in rooms.ROOMS:
        if not any(room == path or room.startswith(path + '/') for path in listed):
            yield '%s: no role has the room %s' % (MAINTAINERS, room)


def pictures(tree):
    """Each picture of docs is well-formed, and a page shows it."""
    texts = {page: tree.text(page) for page in pages(tree)}
    for path in tree.files:
        if not path.startswith('docs/') or not path.endswith('.svg'):
            continue
        try:
            xml.etree.ElementTree.fromstring(tree.text(path))
        except xml.etree.ElementTree.ParseError as error:
            yield '%s: %s' % (path, error)
        if not any('](%s)' % os.path.relpath(path, os.path.dirname(page) or '.') in text
                   for page, text in texts.items()):
            yield '%s: no page shows it' % path
