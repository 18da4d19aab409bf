#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that uses every function of the header of verbs; and whether it does.

test_all.py SOFTHCAD FOLDER-OF-LIBIBVERBS PROGRAM EXAMPLE [unittest arguments]
"""
import glob
import os
import re
import sys

import tools

PROGRAM, EXAMPLE = [os.path.abspath(sys.argv.pop(3)) for _ in range(2)]
HEADER = '/usr/include/infiniband/verbs.h'
STATIC_LINKING = {'ibv_static_providers'}


class All(tools.Tools):
    def test_header(self):
        with open(HEADER, encoding='utf-8') as file:
            text = re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S)
        names = set(re.findall(r'\b(\w*ibv_\w+)\s*\([^;{)]*\)\s*[;{]', text))
        names = {name for name in names if not name.startswith('_')} - STATIC_LINKING
        self.assertGreater(len(names), 150)
        source = ''
        for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'all_*.c')):
            with open(path, encoding='utf-8') as file:
                source += file.read()
        self.assertEqual([name for name in sorted(names)
                          if not re.search(r'\b%s\(' % name, source)], [])

    def test_all(self):
        print(self.run_at(0, PROGRAM), file=sys.stderr)
        self.stop()

    def test_example(self):
        for side, d in enumerate(self.daemons):
            said = self.run_at(side, EXAMPLE)
            self.assertEqual(said, '%s: written by verbs\n' % d.name)
        self.stop()


if __name__ == '__main__':
    tools.main()
