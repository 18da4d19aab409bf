#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The release has one place, meson.build; programs and pages say the same.

test_release.py ROOT RELEASE PROGRAM...
"""
import os
import re
import subprocess
import sys

ROOT, RELEASE, PROGRAMS = sys.argv[1], sys.argv[2], sys.argv[3:]


def found(path, pattern):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return re.search(pattern, file.read(), re.M)[1]


def main():
    assert re.fullmatch(r'\d+\.\d+\.\d+', RELEASE), RELEASE
    for program in PROGRAMS:
        run = subprocess.run([program, '--version'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             encoding='utf-8', timeout=60, check=True)
        assert run.stdout == '%s %s\n' % (os.path.basename(program), RELEASE), run.stdout
    newest = found('CHANGELOG.md', r'^## (\d+\.\d+\.\d+)$')
    assert newest == RELEASE, newest
    firmware = found('config/softhcad.conf', r'^fw_ver = (\S+)$')
    assert firmware == RELEASE, firmware


main()
