# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the source tree that no compiler makes.

checks.py ROOT RESULTS [FILTER]   runs them; prints a line per check, adds one per check to RESULTS
checks.py --format ROOT           formats all C files of the tree in place

Each check yields its complaints; none means passed.
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys

import comments
import coverage
import headers
import interface
import mirror
import pages
import rooms
import words

# room -> the rooms its files may include. Rooms are folders and sets of <...> headers.
WALLS = {
    'include': {'include', 'libc'},
    'src/abi': {'src/abi', 'libc'},
    'src/cpuyield': {'src/cpuyield', 'libc'},
    'src/sigbus': {'src/sigbus', 'libc'},
    'src/finding': {'src/finding', 'libc'},
    'src/device': {'src/device', 'src/cpuyield', 'src/sigbus', 'src/abi', 'dpdk', 'isal', 'libc'},
    'src/driver': {'src/driver', 'src/abi', 'libc'},
    'src/cm/core': {'src/cm/core', 'src/abi', 'libc'},
    'src/cm/ib': {'src/cm/ib', 'src/cm/core', 'src/abi', 'libc'},
    'src/cm/ping': {'src/cm/ping', 'src/cm/ib', 'src/abi', 'libc'},
    'src/cm/ub': {'src/cm/ub', 'src/cm/core', 'src/abi', 'libc'},
    'src/cmagent/core': {'src/cmagent/core', 'src/driver', 'src/abi', 'libc'},
    'src/cmagent/ib': {'src/cmagent/ib', 'src/cmagent/core', 'src/cm/ib', 'src/cm/ping', 'src/driver', 'src/abi',
                       'libc'},
    'src/cmagent/ub': {'src/cmagent/ub', 'src/cm/ub', 'src/cmagent/core', 'src/driver', 'src/abi', 'libc'},
    'src/ipc/channel': {'src/ipc/channel', 'src/abi', 'libc'},
    'src/lib': {'src/lib', 'src/cpuyield', 'src/abi', 'include', 'libc'},
    'src/urma': {'src/urma', 'src/lib', 'src/abi', 'include', 'libc'},
    'src/host': {'src/host', 'src/device', 'src/driver', 'src/abi', 'libc'},
    'src/telemetry': {'src/telemetry', 'src/finding', 'src/cm/ib', 'src/cmagent/ib', 'src/device', 'src/driver', 'src/abi', 'dpdk',
                      'libc'},
    'src/embed': {'src/embed', 'src/finding', 'src/host', 'src/cmagent/ub', 'src/cm/ub', 'src/cm/ib', 'src/cmagent/core', 'src/cmagent/ib',
                  'src/telemetry', 'src/device', 'src/driver', 'src/lib', 'src/abi', 'include', 'dpdk', 'isal', 'libc'},
    'src/ipc/client': {'src/ipc/client', 'src/ipc/channel', 'src/lib', 'src/abi', 'include', 'libc'},
    'src/ipc/server': {'src/ipc/server', 'src/ipc/channel', 'src/sigbus', 'src/driver', 'src/abi', 'libc'},
    'src/kernif': {'src/kernif', 'src/device', 'src/driver', 'src/abi', 'dpdk', 'libc'},
    'src/endpoint': {'src/endpoint', 'src/host', 'src/cmagent/ub', 'src/cm/ub', 'src/cm/ib', 'src/cm/ping', 'src/cmagent/core', 'src/cmagent/ib',
                     'src/telemetry', 'src/kernif', 'src/device', 'src/driver', 'src/ipc/server', 'src/finding', 'src/abi', 'dpdk', 'libc'},
    'src/sysfs': {'src/sysfs', 'include', 'libc'},
    'src/verbs': {'src/verbs', 'src/sysfs', 'src/abi', 'include', 'verbs', 'libc'},
    'apps': {'apps', 'src/finding', 'src/sysfs', 'src/verbs', 'include', 'src/abi', 'src/embed', 'src/endpoint', 'dpdk', 'jansson', 'libc'},
}

# <...> headers that are not the C library's, by name
PACKAGES = [
    ('dpdk', r'(rte_|dpdk_compat|ethdev_|bus_|eal_|dev_driver|cmdline)'),
    ('isal', r'(isa-l|crc\.h|crc64\.h|igzip_lib|erasure_code|raid\.h)'),
    ('verbs', r'(infiniband|rdma)/'),
    ('jansson', r'jansson'),
    ('cmocka', r'cmocka'),
    ('pcap', r'pcap'),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.M)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)

# The device gets time as an argument and randomness as hca->rng; only executors read clocks.
FORBIDDEN = re.compile(r'\b(rte_rdtsc\w*|rte_get_(?:tsc|timer|hpet)_cycles|rte_rand\w*|rte_srand|'
                       r'rte_timer_\w+|clock_gettime|gettimeofday|__rdtscp?|'
                       r's?random|s?rand|time|drand48)\s*\(')
EXECUTOR = re.compile(r'(^|/)[^/]*executor')

UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX)\b')


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = sorted(self.walk())
        self.c_files = [path for path in self.files if path.endswith(('.c', '.h'))]

    def walk(self):
        for top in ('include', 'src', 'apps', 'tests', 'benchmarks', 'config', 'examples', 'docs'):
            for folder, folders, names in os.walk(os.path.join(self.root, top)):
                folders[:] = [name for name in folders if name != '__pycache__']
                for name in names:
                    yield os.path.relpath(os.path.join(folder, name), self.root)

    def text(self, path):
        with open(os.path.join(self.root, path), encoding='utf-8', errors='replace') as file:
            return file.read()

    def exists(self, path):
        """As a file, or as the template a file of the build is made from."""
        full = os.path.join(self.root, path)
        return os.path.isfile(full) or os.path.isfile(full + '.in')


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def without_comments(text):
    """Comments and strings become blanks; positions and lines stay."""
    return COMMENT_OR_STRING.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def room_of(path):
    for room in WALLS:
        if path.startswith(room + '/'):
            return room
    return None


def resolve(tree, path, name):
    """The room of a file of ours that an include means, or None."""
    for folder in [os.path.dirname(path)] + list(WALLS):
        candidate = os.path.normpath(os.path.join(folder, name))
        if tree.exists(candidate) or tree.exists(candidate + '.in'):
            return room_of(candidate) or 'tests'
    return None


def package_of(name):
    for package, pattern in PACKAGES:
        if re.match(pattern, name):
            return package
    return None


def included_room(tree, path, quote, name):
    if quote == '<' and name.startswith('softhca/'):
        return 'include'
    ours = resolve(tree, path, name) if quote == '"' else None
    return ours or package_of(name) or ('libc' if quote == '<' else 'no such file')


def check_wall(tree, room):
    for path in tree.c_files:
        if room_of(path) != room:
            continue
        text = tree.text(path)
        for match in INCLUDE.finditer(text):
            target = included_room(tree, path, match.group(1), match.group(2))
            if target not in WALLS[room]:
                yield '%s:%d: %s may not include %s (%s)' % (
                    path, line_of(text, match.start()), room, match.group(2), target)


def check_abi_has_no_logic(tree):
    for path in tree.c_files:
        if path.startswith('src/abi/') and path.endswith('.c'):
            yield '%s: src/abi holds layouts only, no sources' % path


def check_time_and_random(tree):
    for path in tree.c_files:
        if not path.startswith('src/device/') or EXECUTOR.search(path):
            continue
        text = without_comments(tree.text(path))
        for match in FORBIDDEN.finditer(text):
            yield '%s:%d: %s is for executors only' % (
                path, line_of(text, match.start()), match.group(1))


# Files that show the time of day; no wait may use it, or setting the clock would be a stall.
TIME_OF_DAY = ('src/endpoint/endpoint_log.c', 'src/endpoint/endpoint_admin.c',
               'src/host/host_clock.c', 'apps/ctl/ctl_table.c', 'apps/perf/perf_json.c')
SETTABLE_CLOCK = re.compile(r'\b(CLOCK_REALTIME\w*|CLOCK_TAI|FUTEX_CLOCK_REALTIME|'
                            r'(?:gettimeofday|time|ftime|sem_timedwait|mtx_timedlock|cnd_timedwait|'
                            r'pthread_mutex_timedlock|pthread_rwlock_timed\w+)(?=\s*\())')


def check_clocks(tree):
    for path in tree.c_files:
        if not path.startswith(('src/', 'apps/')):
            continue
        text = without_comments(tree.text(path))
        if path not in TIME_OF_DAY:
            for match in SETTABLE_CLOCK.finditer(text):
                yield '%s:%d: %s: deadlines are of CLOCK_MONOTONIC' % (
                    path, line_of(text, match.start()), match.group(1))
        waits = re.search(r'\bpthread_cond_timedwait\s*\(', text)
        if waits and not re.search(r'\bpthread_condattr_setclock\s*\(\s*&?\w+,\s*CLOCK_MONOTONIC',
                                   text):
            yield '%s:%d: pthread_cond_timedwait without pthread_condattr_setclock' % (
                path, line_of(text, waits.start()))


def check_spdx(tree):
    for path in tree.c_files + [path for path in tree.files if path.endswith('meson.build')]:
        first = tree.text(path).split('\n', 1)[0]
        if 'SPDX-License-Identifier: BSD-3-Clause' not in first:
            yield '%s:1: no SPDX line' % path


def check_unfinished(tree):
    for path in tree.c_files:
        text = tree.text(path)
        for match in UNFINISHED.finditer(text):
            yield '%s:%d: %s' % (path, line_of(text, match.start()), match.group())


FORMAT_VERSION = '14'  # another one breaks lines at other places


class Skipped(Exception):
    """A check that cannot be made on this machine, and why."""


def format_version():
    """The major version of clang-format here, or None."""
    if not shutil.which('clang-format'):
        return None
    said = subprocess.run(['clang-format', '--version'], stdout=subprocess.PIPE, encoding='utf-8',
                          check=False).stdout
    match = re.search(r'version (\d+)', said)
    return match.group(1) if match else 'one without a version'


def clang_format(tree, *options):
    """The worst exit status, and all that was said. The files are dealt out, one share per CPU."""
    shares = len(os.sched_getaffinity(0))
    runs = [subprocess.Popen(['clang-format', '--style=file', *options, *tree.c_files[i::shares]],
                             cwd=tree.root, stderr=subprocess.PIPE, encoding='utf-8')
            for i in range(min(shares, len(tree.c_files)))]
    said = ''.join([run.communicate()[1] for run in runs])
    return max((abs(run.returncode) for run in runs), default=0), said


def check_format(tree):
    if not tree.c_files:
        return
    if format_version() != FORMAT_VERSION:
        raise Skipped('for clang-format %s, this machine has %s' % (FORMAT_VERSION, format_version()))
    status, said = clang_format(tree, '--dry-run')
    complaints = {}
    for line in said.splitlines():
        match = re.match(r'([^:]+):(\d+):\d+: warning:', line)
        if match:
            complaints.setdefault(match.group(1), []).append(match.group(2))
    for path, lines in complaints.items():
        yield '%s:%s: %d places; python3 tests/checks.py --format . mends them' % (
            path, lines[0], len(lines))
    if status and not complaints:
        yield said


LONGEST = 800  # lines of a file; the public header may have more, there is only one
WIDEST = 100  # columns


def check_length(tree):
    for path in tree.c_files + [path for path in tree.files if path.endswith('.py')]:
        lines = tree.text(path).count('\n')
        if lines > LONGEST and not path.startswith('include/'):
            yield '%s: %d lines, at most %d' % (path, lines, LONGEST)


def check_width(tree):
    """As clang-format has it; it leaves comments alone, and strings that are in one piece."""
    for path in tree.c_files:
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            width = len(line.expandtabs(8))
            if width > WIDEST and '"' not in line:
                yield '%s:%d: %d columns, at most %d' % (path, number, width, WIDEST)


def check_coverage(tree):
    yield from coverage.complaints(tree.root)


def check_interface(tree):
    yield from interface.complaints(tree.root)


def check_comment_names(tree):
    yield from comments.complaints(tree)


def check_page_names(tree):
    yield from comments.page_complaints(tree)


def check_classes(tree):
    """If a file of tests is started by class, meson.build starts each class that is not run by hand."""
    listed = tree.text('tests/endpoint/meson.build')
    for path in tree.files:
        if not re.match(r'tests/endpoint/test_\w+\.py$', path):
            continue
        parts = re.split(r'^class (\w+).*\n', tree.text(path), flags=re.M)
        names = [name for name, body in zip(parts[1::2], parts[2::2])
                 if re.search(r'^    def test_', body, re.M) and 'By hand' not in body]
        missing = [name for name in names if "'%s'" % name not in listed]
        if len(missing) < len(names):
            yield from ('%s: nothing starts class %s' % (path, name) for name in missing)


def checks():
    for room in WALLS:
        yield ('check-wall-' + os.path.basename(room),
               lambda tree, room=room: check_wall(tree, room))
    yield 'check-rooms', rooms.complaints
    yield 'check-abi-no-logic', check_abi_has_no_logic
    yield 'check-device-time-random', check_time_and_random
    yield 'check-clocks', check_clocks
    yield 'check-spdx', check_spdx
    yield 'check-unfinished', check_unfinished
    yield 'check-length', check_length
    yield 'check-width', check_width
    yield 'check-coverage', check_coverage
    yield 'check-interface', check_interface
    yield 'check-page-links', pages.links
    yield 'check-page-program', pages.program
    yield 'check-readme-length', pages.readme_length
    yield 'check-maintainers', pages.maintainers
    yield 'check-pictures', pages.pictures
    yield 'check-classes', check_classes
    yield 'check-unit-folders', mirror.complaints
    yield 'check-comment-names', check_comment_names
    yield 'check-page-names', check_page_names
    yield 'check-words', words.complaints
    yield 'check-headers', headers.complaints
    yield 'check-clang-format', check_format


def main():
    if sys.argv[1] == '--format':
        status, said = clang_format(Tree(sys.argv[2]), '-i')
        sys.stderr.write(said)
        sys.exit(status)
    tree = Tree(sys.argv[1])
    pattern = '*%s*' % (sys.argv[3] if len(sys.argv) > 3 else '')
    with open(sys.argv[2], 'a', encoding='utf-8') as results:
        for name, check in checks():
            if not fnmatch.fnmatchcase(name, pattern):
                continue
            try:
                complaints = list(check(tree))
            except Skipped as reason:
                print('%s skipped: %s' % (name, reason), flush=True)
                results.write('skip\t%s\n' % name)
                continue
            for complaint in complaints:
                print(complaint)
            print(name, 'FAIL' if complaints else 'OK', flush=True)
            results.write('%s\t%s\n' % ('fail' if complaints else 'pass', name))


if __name__ == '__main__':
    main()
