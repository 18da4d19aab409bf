# SPDX-License-Identifier: BSD-3-Clause
"""The names that comments and pages (*.md) use against the tree.

A file that a comment names must be there. A name with an underscore, in small letters or in capitals, must
occur outside comments, and a name written as a call must be called or defined there; or they come from
somewhere else: EXTERNAL and ABROAD say from where. A name may be short of its prefix unless that is the
project's. With an underscore (and a star) at its end it stands for every name that begins so.

In pages, links and words in backquotes with a slash in them must be files or folders of the tree.

Not seen: words without underscore that are no call, and whether the text about a name is true.
"""

import bisect
import fnmatch
import functools
import io
import os
import re
import tokenize

# Prefixes of DPDK, verbs and the RDMA connection manager, whose headers are not read.
ABROAD = re.compile(r'(rte_|RTE_|ibv_|IBV_|rdma_|RDMA_CM_)')

# Names of libraries, the kernel, tools and formats that no code of ours uses.
EXTERNAL = {
    'clone', 'dpdk-devbind.py', 'dpdk-telemetry.py', 'epb_flags', 'exec', 'io_uring', 'MADV_FREE', 'mlnx_qos',
    'MADV_GUARD_INSTALL', 'MADV_REMOVE', 'MADV_WIPEONFORK', 'MCL_FUTURE', 'mincore',
    'MREMAP_DONTUNMAP', 'ndev_ifindex', 'O_DIRECT', 'PIPE_BUF', 'rxe_cfg', 'tx_invalid_descs',
    'UCX_UD_ETH_DGID_CHECK', 'XDP_STATISTICS', '_Fork',
    # fields of the interface's tables that share a word with others
    'rq_wqe_counter', 'sq_wqe_counter',
}

C_PIECE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
HASH_COMMENT = re.compile(r'(?:^|(?<=\s))#(?!!)[^\n]*', re.M)

FILE = re.compile(r'(?<![\w/.-])[\w*][\w/.*-]*\.(?:c|h|py|md|sh)\b(?!\.?\w)')
NAME = re.compile(r'(?<![\w/.-])([a-z]\w*_\w*|_[a-z]\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]*)(?!\w)')
CALL = re.compile(r'(?<!\w)(\w+)\(\)')
CALLED = re.compile(r'\b(\w+)\)?[ \t]?\(')

# Names to which one part is glued: "##" of the preprocessor, "+" of meson. A lone prefix is not
# enough, or any word could follow it.
GLUE = re.compile(r"\b([A-Za-z]\w*_\w+_)##|'(\w+_\w+_)' \+")

# Names with one of these are written in full.
OURS = re.compile(r'(hca|softhca|lib)_', re.I)


def c_comments(text):
    return [m.span() for m in C_PIECE.finditer(text) if m.group().startswith('/')]


def python_comments(text):
    """Comments and doc strings."""
    starts = [0]
    for line in text.splitlines(True):
        starts.append(starts[-1] + len(line))
    spans = []
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        opens = before in (tokenize.NEWLINE, tokenize.INDENT) and token.string.startswith('"""')
        if token.type == tokenize.COMMENT or opens:
            spans.append((starts[token.start[0] - 1] + token.start[1],
                          starts[token.end[0] - 1] + token.end[1]))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return spans


def comments(path, text):
    """(start, end) of each."""
    if path.endswith(('.c', '.h', '.c.in', '.h.in')):
        return c_comments(text)
    if path.endswith('.py'):
        return python_comments(text)
    return [m.span() for m in HASH_COMMENT.finditer(text)]


def outside(text, spans):
    last = 0
    pieces = []
    for start, end in spans:
        pieces.append(text[last:start])
        last = end
    return ' '.join(pieces + [text[last:]])


class Names:
    """Known names: files, and the words outside comments."""

    def __init__(self, root, paths):
        self.files = ['/' + re.sub(r'\.in$', '', path) for path in paths]
        self.files += ['/' + name for name in os.listdir(root)]
        self.words = set()
        self.calls = set()
        self.glue = set()

    def add(self, code):
        self.words.update(re.findall(r'\w+', code))
        self.calls.update(CALLED.findall(code))
        self.glue.update(a or b for a, b in GLUE.findall(code))

    def close(self):
        self.sorted = sorted(self.words)
        self.ends = {word[i:] for word in self.words for i in range(len(word)) if word[i] == '_'}

    def begins(self, start):
        i = bisect.bisect_left(self.sorted, start)
        return i < len(self.sorted) and self.sorted[i].startswith(start)

    def has_file(self, name):
        return (name in EXTERNAL or ABROAD.match(os.path.basename(name)) or
                any(fnmatch.fnmatchcase(file, '*/' + name) for file in self.files))

    def has(self, name):
        if name in self.words or name in EXTERNAL or ABROAD.match(name):
            return True
        if name.endswith('_'):
            return self.begins(name)
        if not OURS.match(name) and '_' + name.lstrip('_') in self.ends:
            return True
        return any(name.startswith(part) and name[len(part):] in self.words for part in self.glue)

    def has_call(self, name):
        if '_' in name or name in EXTERNAL:
            return self.has(name)
        return name in self.calls or any(
            OURS.match(call) and call.endswith('_' + name) for call in self.calls)


def unknown(names, comment):
    """(name, position) of each name in a comment that stands for nothing."""
    for match in FILE.finditer(comment):
        if not names.has_file(match.group()):
            yield match.group(), match.start()
    bare = FILE.sub(lambda m: ' ' * len(m.group()), comment)
    for pattern, known in (NAME, names.has), (CALL, names.has_call):
        for match in pattern.finditer(bare):
            if not known(match.group(1)):
                yield match.group(1), match.start(1)


def is_text(path):
    return '/corpus/' not in path and not path.endswith(('.pcap', '.md'))


LINK = re.compile(r'\]\(([^)#:]+)(?:#[\w-]*)?\)')
PATH = re.compile(r'`([\w.-]+(?:/[\w.-]+)*/?)`')


@functools.lru_cache(maxsize=1)
def names_of(tree):
    """The known names, and the files with comments: (path, text, spans of its comments)."""
    names = Names(tree.root, tree.files)
    texts = []
    for path in filter(is_text, tree.files):
        text = tree.text(path)
        spans = comments(path, text)
        names.add(outside(text, spans))
        texts.append((path, text, spans))
    names.close()
    return names, texts


def complaints(tree):
    names, texts = names_of(tree)
    for path, text, spans in texts:
        for start, end in spans:
            found = dict(unknown(names, text[start:end]))
            for name, at in sorted(found.items(), key=lambda item: item[1]):
                yield '%s:%d: there is no %s' % (path, text.count('\n', 0, start + at) + 1, name)


def unknown_paths(tree, page, text):
    """Links are relative to their page; a path in backquotes is that of the tree or its end, or
    of a build."""
    for match in LINK.finditer(text):
        target = os.path.join(tree.root, os.path.dirname(page), match.group(1))
        if not os.path.exists(target):
            yield match.group(1), match.start(1)
    known = set()
    for file in tree.files:
        parts = file.split('/')
        known.update('/'.join(parts[i:j]) for i in range(len(parts))
                     for j in range(i + 1, len(parts) + 1))
    for match in PATH.finditer(text):
        name = match.group(1).rstrip('/')
        if '/' in match.group(1) and name not in known and not name.startswith('build/') and \
                not os.path.exists(os.path.join(tree.root, name)):
            yield match.group(1), match.start(1)


def page_complaints(tree):
    names = names_of(tree)[0]
    pages = [path for path in tree.files if path.endswith('.md')]
    pages += [name for name in sorted(os.listdir(tree.root)) if name.endswith('.md')]
    for page in pages:
        # headers of the C library in a program are files of the system
        text = re.sub(r'#include <\w+\.h>', lambda m: ' ' * len(m.group()), tree.text(page))
        found = dict(unknown(names, text))
        found.update(unknown_paths(tree, page, text))
        for name, at in sorted(found.items(), key=lambda item: item[1]):
            yield '%s:%d: there is no %s' % (page, text.count('\n', 0, at) + 1, name)
