#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The program of docs/guide/program.md is built and run by the page's lines for a build tree, and names a
failing step.

test_hello.py ROOT LIBSOFTHCA LIBSOFTHCA-EMBED
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, LIBRARY, EMBED = [os.path.abspath(word) for word in sys.argv[1:]]
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(LIBRARY)))


def shell(command, place, status=0):
    run = subprocess.run(['sh', '-c', command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place,
                         encoding='utf-8', timeout=120, check=False)
    if run.returncode != status:
        raise AssertionError('%s\nended with %d: %s' % (command, run.returncode, run.stdout + run.stderr))
    return run


class Hello(unittest.TestCase):
    def test_page(self):
        with open(os.path.join(ROOT, 'docs/guide/program.md'), encoding='utf-8') as file:
            lines = re.search(r'^    (cc .*-Iinclude.*&&\n.*hello_write)$', file.read(), re.M).group(1)
        with tempfile.TemporaryDirectory() as place:
            for name in 'examples', 'include':
                os.symlink(os.path.join(ROOT, name), os.path.join(place, name))
            os.makedirs(os.path.join(place, 'build'))
            os.symlink(BUILD, os.path.join(place, 'build/release'))
            self.assertEqual(shell(lines, place).stdout, 'written over RoCE\n')
            again = 'LD_LIBRARY_PATH=build/release/src/lib ./hello_write '
            self.assertRegex(shell(again + '/nowhere/x.sock', place, 1).stderr, r'softhca_open.*: .*/nowhere/x\.sock')
            self.assertIn('libsofthca-embed', shell(again, place, 1).stderr)
        self.assertTrue(EMBED.startswith(BUILD))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
