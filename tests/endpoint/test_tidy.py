#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Leftovers of a test are removed, however it ends: files in TMPDIR, and processes.

test_tidy.py TIDY [unittest arguments]
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TIDY = os.path.abspath(sys.argv[1])
TIMEOUT_S = 240
# a file, a folder, a process in a session of its own; then its numbers, and it waits
TEST = r"""
import os, subprocess, sys, tempfile, time
folder = tempfile.mkdtemp()
open(os.path.join(folder, 'file'), 'w').close()
left = subprocess.Popen(['sleep', '1000'], start_new_session=True)
print(os.getpid(), left.pid, folder, flush=True)
time.sleep(float(sys.argv[1]))
"""


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Tidy(unittest.TestCase):
    def leftovers(self, seconds, kill):
        """Ends a test in some way; the exit status of tidy once nothing is left."""
        tidy = subprocess.Popen([TIDY, sys.executable, '-c', TEST, seconds], encoding='utf-8',
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with tidy.stdout:
            test, left, folder = tidy.stdout.readline().split()
        place = os.path.dirname(folder)
        self.assertNotEqual(place, tempfile.gettempdir())
        kill(tidy.pid, int(test))
        status = tidy.wait(TIMEOUT_S)
        end = time.monotonic() + TIMEOUT_S

        def there():
            return [exists(int(test)), exists(int(left)), os.path.exists(place)]

        while any(there()) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(there(), [False, False, False])
        return status

    def test_ends(self):
        self.assertEqual(self.leftovers('0', lambda tidy, test: None), 0)

    def test_killed(self):
        self.assertEqual(self.leftovers('1000', lambda tidy, test: os.kill(test, signal.SIGKILL)),
                         128 + signal.SIGKILL)

    def test_killed_with_its_wrapper(self):
        self.assertEqual(self.leftovers('1000', lambda tidy, test: os.kill(tidy, signal.SIGKILL)),
                         -signal.SIGKILL)

    def test_runs_too_long(self):
        test = 'import subprocess; subprocess.Popen(["sleep", "1000"]).wait()'
        for seconds in '2', '10', '60':  # the program may not have begun
            late = subprocess.run([TIDY, sys.executable, '-c', test], encoding='utf-8', check=False,
                                  stderr=subprocess.PIPE, timeout=TIMEOUT_S,
                                  env=dict(os.environ, TIDY_SECONDS=seconds))
            self.assertEqual(late.returncode, 124)
            self.assertIn('it ran for more than %s s' % seconds, late.stderr)
            if ' sleep; ' in late.stderr:
                break
        self.assertRegex(late.stderr, r'(?m)^tidy: \d+/\d+ sleep; .*sleep 1000')

    def test_cpu_time(self):
        """A line has the time of all processes of a test: those that it waited for, and those that it left."""
        burn = 'import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(%d)'
        test = 'import subprocess, sys; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE); p.stdout.%s'
        with tempfile.TemporaryDirectory() as place:
            times = os.path.join(place, 'times')
            for sleep, end in (0, 'read(); p.wait()'), (1000, 'readline()'):
                subprocess.run([TIDY, sys.executable, '-c', test % end, sys.executable, '-c', burn % sleep],
                               check=True, timeout=TIMEOUT_S, env=dict(os.environ, TIDY_TIMES=times))
            with open(times, encoding='utf-8') as file:
                lines = file.read().splitlines()
        self.assertEqual(len(lines), 2)
        for line in lines:
            seconds, command = line.split('\t')
            self.assertGreater(float(seconds), 0.3)
            self.assertIn(' -c import subprocess', command)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
