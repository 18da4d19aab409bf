#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/two_processes.c on a daemon with config/examples/user.conf.

test_example.py ROOT SOFTHCAD TWO-PROCESSES
"""
import os
import re
import subprocess
import sys

from daemon import Daemon, folder

ROOT, DAEMON, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4])
LIMIT_S = 240  # a longer run counts as hung


class Example(Daemon):
    """The example as it is, but for its name and its socket."""

    def __init__(self, place):
        name = 'example%d' % os.getpid()
        super().__init__(DAEMON, place, name, '', [])
        with open(os.path.join(ROOT, 'config/examples/user.conf'), encoding='utf-8') as file:
            text = file.read()
        text, names = re.subn(r'(?m)^name = \w+$', 'name = ' + name, text)
        text, sockets = re.subn(r'(?m)^socket = \S+$', 'socket = ' + self.socket, text)
        assert (names, sockets) == (1, 1)
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write(text)


with folder() as place:
    daemon = Example(place).start()
    try:
        said = subprocess.run([PROGRAM, daemon.socket], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding='utf-8', timeout=LIMIT_S, check=False)
        print(said.stdout, end='')
        assert said.returncode == 0, said.returncode
        assert said.stdout == 'written by the child\n', said.stdout
        assert daemon.stop() == 0
    finally:
        daemon.close()
