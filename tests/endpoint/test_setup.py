#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""config/setup asks for hugepages once, counts the pages of daemons, and gives back those it has added; the
build that scripts share is configured again only as far as its options ask for it.

test_setup.py SETUP

The files of the kernel are in a folder of the test, and apt-get, meson and ninja are scripts: this machine
is left alone.
"""
import os
import subprocess
import sys
import tempfile
import unittest

SETUP = os.path.abspath(sys.argv[1])
POOL = 'sys/kernel/mm/hugepages/hugepages-2048kB/'
TOOLS = {
    'id': 'echo 0',
    'apt-cache': 'exit 0',
    # everything is installed once apt-get has been there
    'dpkg-query': '[ -e "$SETUP_ROOT/done" ] || [ "$4" != valgrind ] || exit 1; echo installed',
    'pkg-config': '[ -e "$SETUP_ROOT/verbs" ]',
    'meson': 'echo "$@" >>"$SETUP_ROOT/meson"; eval "dir=\\${$(($# - 4))}"; mkdir -p "$dir"; : >"$dir/build.ninja"',
    'ninja': '[ ! -e "$SETUP_ROOT/warns" ] || echo "x.c:1:2: warning: unused [-Wunused]"',
    'apt-get': 'case " $* " in *" install "*) echo "$@" >"$SETUP_ROOT/done" ;; esac',
}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for name, text in TOOLS.items():
            self.write('bin/' + name, '#!/bin/sh\n%s\n' % text)
            os.chmod(os.path.join(self.root, 'bin', name), 0o755)

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def run_tool(self, *words, status=0):
        env = dict(os.environ, SETUP_ROOT=self.root, PATH='%s/bin:%s' % (self.root, os.environ['PATH']))
        run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                             env=env, timeout=120, check=False)
        self.assertEqual(run.returncode, status, run.stdout)
        return run.stdout


class Setup(Case):
    def setUp(self):
        super().setUp()
        self.write('proc/meminfo', 'MemAvailable:   16000000 kB\n')
        self.write('proc/sys/vm/compact_memory', '')
        self.pages(0, 0)

    def pages(self, total, free):
        self.write(POOL + 'nr_hugepages', '%d\n' % total)
        self.write(POOL + 'free_hugepages', '%d\n' % free)

    def daemon(self, pid, name, pages):
        self.write('proc/%d/comm' % pid, name + '\n')
        self.write('proc/%d/status' % pid, 'Name:\t%s\nHugetlbPages:\t%8d kB\n' % (name, pages * 2048))

    def total(self):
        with open(os.path.join(self.root, POOL + 'nr_hugepages'), encoding='utf-8') as file:
            return int(file.read())

    def run_setup(self, *words, status=0):
        return self.run_tool(SETUP, *words, status=status)

    def test_once(self):
        self.pages(512, 512)
        self.run_setup()
        self.assertEqual(self.total(), 1024)
        # two daemons run now: nothing more is asked for
        self.pages(1024, 400)
        self.daemon(7, 'softhcad', 312)
        self.daemon(8, 'softhcad', 312)
        self.assertIn('624 held by daemons', self.run_setup())
        self.assertEqual(self.total(), 1024)

    def test_others(self):
        """Pages of other programs are not there for us."""
        self.pages(1024, 300)
        self.daemon(7, 'postgres', 724)
        self.run_setup()
        self.assertEqual(self.total(), 1024 + 724)

    def test_needed(self):
        """Fewer than a program needs are free, though the daemons have the rest."""
        self.pages(1024, 300)
        self.daemon(7, 'softhcad', 724)
        self.run_setup()
        self.assertEqual(self.total(), 1024)
        self.pages(1024, 100)
        self.daemon(7, 'softhcad', 924)
        self.assertIn('only 100 free', self.run_setup(status=1))
        self.assertEqual(self.total(), 1024 + 156)

    def test_undo(self):
        self.assertIn('setup has added none', self.run_setup('--undo'))
        self.pages(300, 300)
        self.run_setup()
        self.pages(1024, 300)
        self.daemon(7, 'other', 724)
        self.run_setup()
        self.assertEqual(self.total(), 1748)
        # another program has added 100
        self.pages(1848, 300)
        self.assertIn('1448 given back', self.run_setup('--undo'))
        self.assertEqual(self.total(), 400)
        self.assertIn('setup has added none', self.run_setup('--undo'))
        self.assertEqual(self.total(), 400)

    def test_packages(self):
        self.pages(2000, 2000)
        self.run_setup('--tests')
        said = self.run_setup('--undo')
        self.assertIn('apt-get purge --autoremove valgrind\n', said)


class Build(Case):
    def build(self, function='build_release "$2" programs'):
        script = 'root=$1; . "$3/lib.sh"; '
        return self.run_tool('bash', '-c', script + function, 'x', self.root, self.root + '/build',
                             os.path.dirname(SETUP))

    def configured(self):
        """How meson was started, each time"""
        with open(os.path.join(self.root, 'meson'), encoding='utf-8') as file:
            return [line.split()[:2] + line.split()[-3:] for line in file]

    def test_options(self):
        """libibverbs-dev that comes later changes the build in place; other options make it afresh."""
        self.build()
        self.build()
        release = self.root + '/build/release'
        options = ['--prefix=/usr', '--buildtype=release', '-Dverbs=disabled']
        self.assertEqual(self.configured(), [['setup', release] + options])
        self.write('build/release/kept', '')
        self.write('verbs', '')
        self.build()
        self.assertEqual(self.configured()[1:], [['setup', '--reconfigure'] + options[:2] + ['-Dverbs=enabled']])
        self.assertTrue(os.path.exists(release + '/kept'))
        self.build('build "$2/release" --prefix=/usr --buildtype=release -Dtests=disabled')
        self.assertFalse(os.path.exists(release + '/kept'))

    def test_warnings(self):
        self.build()
        self.assertFalse(os.path.exists(self.root + '/build/release.warned'))
        self.write('warns', '')
        self.build()
        os.unlink(self.root + '/warns')
        self.build()
        self.assertTrue(os.path.exists(self.root + '/build/release.warned'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
