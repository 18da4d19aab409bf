#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that uses every function of the header of verbs.

test_all.py SOFTHCAD FOLDER-OF-LIBIBVERBS PROGRAM [unittest arguments]
"""
import os
import sys

import tools

PROGRAM = os.path.abspath(sys.argv.pop(3))


class All(tools.Tools):
    def test_all(self):
        print(self.run_at(0, PROGRAM), file=sys.stderr)
        self.stop()


if __name__ == '__main__':
    tools.main()
