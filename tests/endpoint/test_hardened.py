#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every program and library that is installed is built against attacks.

test_hardened.py BUILD

Position independent, GNU_RELRO, BIND_NOW, a stack that cannot be executed, a stack protector; checked
functions of the C library where the build is optimized.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import hardened

BUILD = os.path.abspath(sys.argv.pop(1))
EXPECTED = {'softhcad', 'softhca-perf', 'softhca-ctl', 'libsofthca.so', 'libsofthca-embed.so',
            'libsofthca-urma.so'}
WEAK = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) { char text[64]; sprintf(text, argv[0], argc); return atoi(text); }
"""
WEAK_FLAGS = {
    '-no-pie': 'not position independent',
    '-Wl,-z,norelro': 'no GNU_RELRO',
    '-Wl,-z,lazy': 'no BIND_NOW',
    '-Wl,-z,execstack': 'executable stack',
    '-fno-stack-protector': 'no stack protector',
    '-U_FORTIFY_SOURCE': 'not fortified: sprintf',
}
STRONG_FLAGS = ['-O2', '-fPIE', '-pie', '-fstack-protector-strong', '-U_FORTIFY_SOURCE', '-D_FORTIFY_SOURCE=2',
                '-Wl,-z,relro', '-Wl,-z,now', '-Wl,-z,noexecstack', '-w']


def introspect(what):
    return json.loads(hardened.output('meson', 'introspect', what, BUILD))


def build_options():
    return {option['name']: option['value'] for option in introspect('--buildoptions')}


class Installed(unittest.TestCase):
    """Files that `meson install` would copy."""

    def setUp(self):
        self.fortified = build_options()['optimization'] not in ('0', 'g')
        self.files = [path for path in introspect('--installed') if os.path.isfile(path)]

    def test_programs(self):
        found = [path for path in self.files if hardened.is_elf(path)]
        names = {os.path.basename(path) for path in found}
        for name in EXPECTED:
            self.assertTrue(any(have.startswith(name) for have in names), '%s is not in %s' % (name, names))
        for path in found:
            with self.subTest(path):
                self.assertEqual(hardened.complaints(path, self.fortified), [])

    def test_archives(self):
        found = [path for path in self.files if path.endswith('.a')]
        self.assertTrue(found)
        for path in found:
            with self.subTest(path):
                self.assertEqual(hardened.archive_complaints(path), [])


class Judge(unittest.TestCase):
    """The test detects missing hardening."""

    def judged(self, *more):
        with tempfile.TemporaryDirectory(prefix='softhca-hardened-') as place:
            program = os.path.join(place, 'program')
            subprocess.run(['cc', '-x', 'c', '-', '-o', program, *STRONG_FLAGS, *more], input=WEAK,
                           encoding='utf-8', check=True)
            return hardened.complaints(program)

    def test_strong(self):
        self.assertEqual(self.judged(), [])

    def test_weak(self):
        for flag, complaint in WEAK_FLAGS.items():
            with self.subTest(flag):
                self.assertIn(complaint, self.judged(flag))


if __name__ == '__main__':
    if build_options()['b_sanitize'] != 'none':
        print('skipped: sanitizers check more')
        sys.exit(77)
    unittest.main(verbosity=1)
