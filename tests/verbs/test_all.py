#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that uses every function of the header of verbs; and whether it does.

test_all.py SOFTHCAD FOLDER-OF-LIBIBVERBS PROGRAM EXAMPLE THREADS [unittest arguments]
NO_MEMORY in the environment: a program whose allocations fail, if any; LOADED: a program
that loads the library that LIBSOFTHCA names; LATER: one that uses declarations of newer headers.
"""
import glob
import os
import re
import shutil
import sys
import unittest

import tools

PROGRAM, EXAMPLE, THREADS = [os.path.abspath(sys.argv.pop(3)) for _ in range(3)]
UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'unit', 'verbs', 'ucma')
HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = '/usr/share/man/man3/ibv_*.3*'
HEADER = '/usr/include/infiniband/verbs.h'
STATIC_LINKING = {'ibv_static_providers'}


class Lists(unittest.TestCase):
    def test_header(self):
        with open(HEADER, encoding='utf-8') as file:
            text = re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S)
        names = set(re.findall(r'\b(\w*ibv_\w+)\s*\([^;{)]*\)\s*[;{]', text))
        names = {name for name in names if not name.startswith('_')} - STATIC_LINKING
        self.assertGreater(len(names), 150)
        source = ''
        for path in glob.glob(os.path.join(HERE, 'all_*.c')) + [os.path.join(HERE, 'later.c')]:
            with open(path, encoding='utf-8') as file:
                source += file.read()
        self.assertEqual([name for name in sorted(names)
                          if not re.search(r'\b(later_)?%s\(' % name, source)], [])

    def test_pages(self):
        """docs/verbs.md has a row for each manual page, and the tests it names exist; those of
        commands of librdmacm are unit tests."""
        with open(os.path.join(HERE, '..', '..', 'docs', 'verbs.md'), encoding='utf-8') as file:
            rows = re.findall(r'^\| (`\w.*?) \| .*? \| (`\w+\.\w+`: .*) \|$', file.read(), re.M)
        documented = [name for pages, _ in rows for name in re.findall(r'`(\w+)`', pages)]
        self.assertEqual(len(set(documented)), len(documented))
        for file, tests in re.findall(r'`(\w+\.\w+)`: ([\w ]+)', '\n'.join(row[1] for row in rows)):
            folder = UNIT if file.startswith('test_ucma') else HERE
            with open(os.path.join(folder, file), encoding='utf-8') as source:
                text = source.read()
            for test in tests.split():
                self.assertRegex(text, r'(?m)^(    def )?%s\(' % test, file)
        pages = {os.path.basename(path).split('.')[0] for path in glob.glob(PAGES)}
        if not pages:
            self.skipTest('there are no manual pages (package libibverbs-dev)')
        self.assertEqual(pages - set(documented), set())


class All(tools.Tools):
    def test_all(self):
        said = self.run_at(0, PROGRAM)
        self.assertIn('every function answers as its page says', said)
        self.stop()

    def test_embedded(self):
        """The same, on HCAs in the program. They live as long as it does, and their memory is found through
        memory of DPDK, which LeakSanitizer does not read."""
        path = self.library + ':' + os.path.join(self.library, '..', 'embed')
        said = self.run_at(0, PROGRAM, LD_LIBRARY_PATH=path, SOFTHCA_DEVICE='embed',
                           ASAN_OPTIONS='detect_leaks=0')
        self.assertIn('every function answers as its page says', said)

    def test_later(self):
        """A program that was linked with rdma-core 65 starts, and gets the results of the pages."""
        said = self.run_at(0, os.environ['LATER'])
        self.assertIn('every later function answers as its page says', said)
        self.stop()

    def test_example(self):
        for side, d in enumerate(self.daemons):
            said = self.run_at(side, EXAMPLE)
            self.assertIn('%s: written by verbs\n' % d.name, said)
        self.stop()

    def test_slow(self):
        """Memory that is reached the slow way says so once: the daemon of a client, and with
        SOFTHCA_DEBUG the program."""
        words = 'reached the slow way'
        log = self.daemons[0].text()
        if os.geteuid() == 0:
            self.assertNotIn(words, self.run_at(0, EXAMPLE))
            self.assertNotIn(words, self.daemons[0].text()[len(log):])
        for count, debug in enumerate(('1', '1', ''), 1):
            said = self.run_at(0, EXAMPLE, SOFTHCA_SLOW_MR='1', SOFTHCA_DEBUG=debug)
            self.assertEqual(said.count(words), int(debug == '1'), said)
            said = self.daemons[0].text()
            lines = re.findall(r'client (\d+) \(user %d\).* %s' % (os.geteuid(), words), said)
            self.assertEqual(len(lines), count, said)
            self.assertEqual(len(set(lines)), count, said)

    def test_debug(self):
        """Why a call failed, if that is asked for."""
        nobody = {'SOFTHCA_DEVICE': os.path.join(self.place, 'nobody.sock')}
        reason = 'softhca: ibv_open_device: '
        said = self.finish(self.begin(0, EXAMPLE, SOFTHCA_DEBUG='1', **nobody), 1)
        self.assertIn(reason, said)
        said = self.finish(self.begin(0, EXAMPLE, SOFTHCA_DEBUG='', **nobody), 1)
        self.assertNotIn(reason, said)

    def test_no_memory(self):
        if 'NO_MEMORY' not in os.environ:
            self.skipTest('there is no such program in a build with a sanitizer')
        said = self.run_at(0, os.environ['NO_MEMORY'])
        self.assertIn('all allocations have failed', said)
        self.stop()

    def test_unloaded(self):
        """The library stays when it is unloaded: it has a thread, and handlers of fork()."""
        said = self.run_at(0, os.environ['LOADED'], 'unload', os.environ['LIBSOFTHCA'])
        self.assertEqual(said, 'unloaded\n')

    def test_secure(self):
        """A set-group-ID program ignores its caller's environment."""
        said = self.run_at(0, os.environ['LOADED'], 'list', os.environ['LIBSOFTHCA'],
                           SOFTHCA_DIRECTORY=self.place)
        self.assertEqual(said, '2 devices\n')
        if os.geteuid() != 0:
            self.skipTest('only root makes programs of other groups')
        program = os.path.join(self.place, 'loaded')
        shutil.copy(os.environ['LOADED'], program)
        os.chown(program, -1, os.getegid() + 1)
        os.chmod(program, 0o2755)
        self.addCleanup(os.remove, program)
        said = self.run_at(0, program, 'list', os.environ['LIBSOFTHCA'],
                           SOFTHCA_DIRECTORY=self.place)
        self.assertNotEqual(said, '2 devices\n')

    def test_threads(self):
        said = self.run_at(0, THREADS, '8', '1', SOFTHCA_DEBUG='')
        self.assertRegex(said, r'^\d+ lives of 8 threads\n$')
        self.stop()


if __name__ == '__main__':
    tools.main()
