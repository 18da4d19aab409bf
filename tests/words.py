# SPDX-License-Identifier: BSD-3-Clause
"""Idioms of translated sentences in comments and pages, per 10,000 words.

words [ROOM ...]         prints each idiom with its place
words --table            prints words, idioms and rate of each room and page
words --write            lowers the budgets to the present rates

A room is a folder of rooms.ROOMS, of apps or of tests; a page is a file of docs, a manual page or a page in
the top folder. The text of a room is its comments and doc strings, that of a page is everything but code.
tests/words.budget has the highest rate of each; a rate above it is a failure, and so is a rate that is lower
by a tenth and more than MARGIN, until --write lowers the budget. A room without a line counts in the line of
the folder around it; without one its limit is DEFAULT.
"""
import argparse
import collections
import math
import os
import re
import sys

import comments
import rooms

BUDGET = 'tests/words.budget'
PER = 10000
MARGIN = 5
DEFAULT = 15
FLOOR = 3  # the rate of DPDK's headers; no budget is lower

# Signs of a translated sentence; the plain form is in CONTRIBUTING.md.
IDIOMS = {
    'person': r'\b(?:nobody|no one|somebody|someone|anybody|everybody|whoever|whomever|whosoever|who|whom)\b',
    'none': r'\bnone (?:is|are|was|were|has|have|had|can|may|will|but)\b|\bthere (?:is|are|was|were) none\b|'
            r'\b(?:that|this|it) is one\b',
    'what': r'\bwhat\b(?![^.;]*\?)',
    'nothing': r'\bnothing (?:has|needs|waits|uses|comes|goes|asks|stands|knows|but|of|else)\b',
    'mind': r'\b(?:knows?|knew|believes?|believed|owes?|owed|hears?|heard)\b',
    'too': r',\s+too\b(?! \w)|\btoo(?=[.;:)])',
    'beside': r'\bbesides?\b',
    'of': r'(?:^|[.;:]\s+)(?-i:Of )(?!course)',
    'degree': r'\b(?:so much|so many|such an?|that much)\b',
    'itself': r'\bby (?:it|them)sel(?:f|ves)\b',
    'adverb': r'\b(?:anew|likewise|whence|thence|thereby|wherefore|whereupon|evermore|hitherto|for ever)\b',
    'while': r'\b(?:for|after) a while\b',
}
IDIOM = re.compile('|'.join('(?P<%s>%s)' % item for item in IDIOMS.items()), re.I | re.M)
WORD = re.compile(r"[A-Za-z][\w'-]*")

FENCE = re.compile(r'^ {0,3}```.*?^ {0,3}```$|^ {4}[^\n]*$', re.M | re.S)
CODE = re.compile(r'`[^`\n]+`|\]\([^)\s]*\)')
ROFF_CODE = re.compile(r'^\.(?:EX|nf)$.*?^\.(?:EE|fi)$', re.M | re.S)
ROFF = re.compile(r'^[.\'](?:\\"|TH|SH|SS|TP|TQ|PP|P|br|RS|RE|IP|so|de|ad|nh|hy|in|sp)\b.*$|^\.\\".*$|'
                  r'^\.(?:[BIR]{1,2}|SM)\b|\\f[A-Z]', re.M)
MANUAL = re.compile(r'\.[1-9](?:\.in)?$')
STRING = re.compile(r'"[^"\n]*"')

Line = collections.namedtuple('Line', 'room path number idiom text')


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group())


def page_text(path, text):
    if MANUAL.search(path):
        return ROFF.sub(blank, ROFF_CODE.sub(blank, text))
    return CODE.sub(blank, FENCE.sub(blank, text))


def comment_text(text, spans):
    """The text with all but its comments as blanks."""
    pieces = []
    last = 0
    for start, end in spans:
        pieces.append(re.sub(r'[^\n]', ' ', text[last:start]))
        pieces.append(re.sub(r'^[ \t]*(?:/\*+|\*/?|//|#+)|\*/$|"""', blank, text[start:end], flags=re.M))
        last = end
    pieces.append(re.sub(r'[^\n]', ' ', text[last:]))
    return ''.join(pieces)


def is_page(path):
    return path.endswith('.md') or bool(MANUAL.search(path))


def room_of(path):
    """A page is a room of its own."""
    if is_page(path):
        return path
    parts = path.split('/')
    if parts[0] in ('apps', 'tests'):
        return '/'.join(parts[:2]) if len(parts) > 2 else parts[0]
    index = rooms.room_of(path)
    return rooms.ROOMS[index] if index >= 0 else parts[0]


def texts(tree):
    """(path, text to read) of every file that has some."""
    for path in tree.files:
        if '/corpus/' in path or path.endswith(('.pcap', '.svg', '.json')):
            continue
        text = tree.text(path)
        if is_page(path):
            yield path, page_text(path, text)
        else:
            yield path, comment_text(text, comments.comments(path, text))
    for name in sorted(os.listdir(tree.root)):
        if name.endswith('.md'):
            yield name, page_text(name, tree.text(name))
        elif name == 'meson.build':
            text = tree.text(name)
            yield name, comment_text(text, comments.comments(name, text))


def count(tree):
    """Words of each room, and its idioms."""
    words = collections.Counter()
    found = []
    for path, text in texts(tree):
        room = room_of(path)
        words[room] += len(WORD.findall(text))
        bare = STRING.sub(blank, text)
        lines = text.split('\n')
        for match in IDIOM.finditer(bare):
            number = text.count('\n', 0, match.end() - 1)
            found.append(Line(room, path, number + 1, match.lastgroup, lines[number].strip()))
    return words, found


def rate(idioms, words):
    return idioms * PER / words if words else 0


def read_budget(tree):
    budget = {}
    for line in tree.text(BUDGET).splitlines():
        if line and not line.startswith('#'):
            room, value = line.split()
            budget[room] = int(value)
    return budget


def line_of(budget, room):
    """The room of the budget that holds a room: itself, or a folder around it; or None."""
    while room and room not in budget:
        room = os.path.dirname(room)
    return room or None


def sums(tree, budget):
    """Words and idioms of each line of the budget, and of each room without one."""
    words, found = count(tree)
    total = collections.Counter()
    idioms = collections.defaultdict(list)
    for room in words:
        total[line_of(budget, room) or room] += words[room]
    for line in found:
        idioms[line_of(budget, line.room) or line.room].append(line)
    return total, idioms


def complaints(tree):
    budget = read_budget(tree)
    words, idioms = sums(tree, budget)
    for room in sorted(words):
        limit = budget.get(room, DEFAULT)
        now = rate(len(idioms[room]), words[room])
        if len(idioms[room]) > math.ceil(limit * words[room] / PER):
            last = idioms[room][-1]
            yield '%s: %d idioms in %d words are %.0f per %d, at most %d; tests/words %s lists them, as %s:%d: %s' % (
                room, len(idioms[room]), words[room], now, PER, limit, room, last.path, last.number, last.text)
        elif limit > FLOOR and room in budget and now < limit - max(MARGIN, limit / 10):
            yield '%s: %.0f idioms per %d words, the budget is %d: tests/words --write lowers it' % (
                room, now, PER, limit)
    for room in sorted(set(budget) - set(words)):
        yield '%s: there is no %s' % (BUDGET, room)


HEAD = '# Highest rate of idioms per 10,000 words: tests/words --write lowers it, nothing raises it.\n'


def write(tree):
    budget = read_budget(tree)
    words, idioms = sums(tree, budget)
    lines = []
    for room in sorted(words):
        if words[room]:
            now = max(math.ceil(rate(len(idioms[room]), words[room])), FLOOR)
            lines.append('%-36s %4d\n' % (room, min(now, budget.get(room, now))))
    with open(os.path.join(tree.root, BUDGET), 'w', encoding='utf-8') as file:
        file.write(HEAD + ''.join(lines))


def main(tree):
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--write', action='store_true', help='lower the budgets to the present rates')
    parser.add_argument('--table', action='store_true', help='words, idioms and rate of each room')
    parser.add_argument('rooms', nargs='*', metavar='ROOM', help='room, page or file (default: all)')
    args = parser.parse_args()
    if args.write:
        write(tree)
        return 0
    words, found = count(tree)
    if args.table:
        idioms = collections.Counter(line.room for line in found)
        for room in sorted(words, key=lambda room: -rate(idioms[room], words[room])):
            print('%-36s %6d words %5d idioms %4.0f' % (
                room, words[room], idioms[room], rate(idioms[room], words[room])))
        return 0
    for line in found:
        if not args.rooms or any(line.path == room or line.room == room or line.path.startswith(room + '/')
                                 for room in args.rooms):
            print('%s:%d: [%s] %s' % (line.path, line.number, line.idiom, line.text))
    return 0
