#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of programs: the judge, with allocators and ways to reach memory, and rows of single cases.

test_memory.py SOFTHCAD FOLDER-OF-LIBIBVERBS FOLDER-OF-PROGRAMS JUDGE ROWS [unittest arguments]
MEMORY_STEPS: steps of each combination (else a second); MEMORY_SEED: of all (else 1), or `random`:
each run prints its own.
"""
import glob
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import tools  # noqa: E402
from daemon import folder  # noqa: E402

PROGRAMS, JUDGE, ROWS = [os.path.abspath(sys.argv.pop(3)) for _ in range(3)]
SCRIPT = os.path.join(PROGRAMS, 'softhca-run')
SANITIZED = 'ASAN_OPTIONS' in os.environ
LIBRARIES = '/usr/lib/%s-linux-gnu' % os.uname().machine


def tuned(trim, mmap):
    return {'GLIBC_TUNABLES': 'glibc.malloc.trim_threshold=%d:glibc.malloc.mmap_threshold=%d' %
                              (trim, mmap)}


def mimalloc():
    """The library has the number of the release in its name: 2 on Debian 12, 3 on 13."""
    names = sorted(os.path.basename(path) for path in glob.glob(LIBRARIES + '/libmimalloc.so.[0-9]'))
    return names[-1] if names else 'libmimalloc.so'


LONG = {'giant', 'goes_back_in_parts', 'random_heap', 'scattered', 'threads_touch_added'}
ROW_SKIPPED = 77

# name: environment, and whether it takes nothing for zeros that it has given back
ALLOCATORS = {
    'glibc': ({}, True),
    'small': (tuned(4096, 16384), True),
    'large': (tuned(1 << 30, 1 << 25), True),
    'jemalloc': ({'LD_PRELOAD': 'libjemalloc.so.2'}, False),
    'tcmalloc': ({'LD_PRELOAD': 'libtcmalloc_minimal.so.4'}, False),
    'mimalloc': ({'LD_PRELOAD': mimalloc()}, False),
}


class Ways(tools.Tools):
    """A daemon that others have started."""
    pinned = 'private'

    def run_there(self, words, status=0, **more):
        return self.finish(self.begin(0, *words, **more), status)


class OwnWay(Ways):
    """The daemon of softhca-run."""

    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def environment(self, side, **more):
        return {**os.environ, 'XDG_RUNTIME_DIR': self.place, 'SOFTHCA_DEVICE': '',
                'SOFTHCA_DIRECTORY': self.place, **more}

    def begin(self, side, *command, **more):
        """The allocator is the program's alone."""
        words = ['%s=%s' % pair for pair in more.items()]
        return super().begin(side, SCRIPT, '--own', 'env', *words, *command)


class EmbedWay(OwnWay):
    """HCAs in the program. Their memory is found through memory of DPDK, which LeakSanitizer does not read."""
    pinned = 'none'

    def environment(self, side, **more):
        path = self.library + ':' + os.path.join(self.library, '..', 'embed')
        return {**os.environ, 'LD_LIBRARY_PATH': path, 'SOFTHCA_DEVICE': 'embed',
                'ASAN_OPTIONS': 'detect_leaks=0', **more}

    def begin(self, side, *command, **more):
        return Ways.begin(self, side, *command, **more)


class SlowWay(Ways):
    """Private memory stays where it is."""
    pinned = 'none'

    def environment(self, side, **more):
        return super().environment(side, SOFTHCA_SLOW_MR='1', **more)


class Judge:
    """A second, or MEMORY_STEPS, of each allocator."""
    timeout_s = 7200 if 'MEMORY_STEPS' in os.environ else tools.TIMEOUT_S

    def judge(self, name):
        more, keeps = ALLOCATORS[name]
        preload = more.get('LD_PRELOAD')
        if preload and SANITIZED:
            self.skipTest('a sanitizer has an allocator of its own')
        if preload and not os.path.exists(os.path.join(LIBRARIES, preload)):
            self.skipTest('%s is missing (config/setup --tests)' % preload)
        words = [JUDGE, '--pinned', self.pinned]
        if 'MEMORY_STEPS' in os.environ:
            words += '--steps', os.environ['MEMORY_STEPS']
        else:
            words += '--seconds', '1'
        seed = os.environ.get('MEMORY_SEED', '1')
        if seed != 'random':
            words += '--seed', seed
        if keeps and not SANITIZED:
            words += '--free-registered',
        said = self.run_there(words, **more)
        self.assertIn('no difference', said)
        print(said.split('\n')[-2], flush=True)

    def test_glibc(self):
        self.judge('glibc')

    def test_small(self):
        self.judge('small')

    def test_large(self):
        self.judge('large')

    def test_jemalloc(self):
        self.judge('jemalloc')

    def test_tcmalloc(self):
        self.judge('tcmalloc')

    def test_mimalloc(self):
        self.judge('mimalloc')


class Given(Judge, Ways):
    pass


class Own(Judge, OwnWay):
    pass


class Embed(Judge, EmbedWay):
    pass


class Slow(Judge, SlowWay):
    pass


class Rows:
    """Each row in a process of its own."""
    long = False

    def test_rows(self):
        names = self.run_there([ROWS]).split()
        self.assertGreater(len(names), 40)
        self.assertEqual(LONG - set(names), set())
        for name in names:
            if (name in LONG) == self.long:
                with self.subTest(name):
                    self.run_row(name)

    def run_row(self, name):
        words = [ROWS] + (['--in-place'] if self.pinned == 'none' else []) + [name]
        process = self.begin(0, *words)
        said = process.communicate(timeout=self.timeout_s)[0]
        if process.returncode == ROW_SKIPPED:
            print('%s: %s' % (name, said), end='', flush=True)
        else:
            self.assertEqual(process.returncode, 0, said)


class RowsOwn(Rows, OwnWay):
    def setUp(self):
        super().setUp()
        self.begin(0, 'sleep', '1000')  # the daemon lives on between rows


class RowsOwnLong(RowsOwn):
    long = True


class RowsEmbed(Rows, EmbedWay):
    pass


class RowsSlow(Rows, SlowWay):
    pass


if __name__ == '__main__':
    tools.main()
