#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-run in all its forms, also in a container, the page of its options, and the doctor's findings on
verbs programs.

test_run.py SOFTHCAD FOLDER-OF-LIBIBVERBS FOLDER-OF-PROGRAMS PAGE EXAMPLE LOST [unittest arguments]
In the environment MANY: a program that opens a device many times; FILES: one that may have few files; LEAKS and
LEAKS_ASAN: one that gives all back, LEAKS_ASAN built for AddressSanitizer, if that is there.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import tools
from control import OldDaemon
from daemon import folder

PROGRAMS, PAGE, EXAMPLE, LOST = [os.path.abspath(word) for word in sys.argv[3:7]]
del sys.argv[3:7]
SCRIPT = os.path.join(PROGRAMS, 'softhca-run')
CTL = os.path.join(PROGRAMS, 'softhca-ctl')
CONTAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'container.py')


class Script(tools.Tools):
    """Without daemons: a place of its own for those of softhca-run."""
    prefix = ()

    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def environment(self, side, **more):
        return {**os.environ, 'XDG_RUNTIME_DIR': self.place, 'SOFTHCA_DEVICE': '',
                'SOFTHCA_DIRECTORY': self.place, **more}

    def start_script(self, *words, **more):
        return self.begin(0, *self.prefix, SCRIPT, *words, **more)

    def run_script(self, *words, status=0, **more):
        return self.finish(self.start_script(*words, **more), status)

    def both(self, options, command, client_options=None):
        """Output of the server and the client, each started by the script."""
        self.tool(command[0])
        port = tools.free_port()
        command += '-p', str(port)
        server = self.start_script(*options, *command)
        tools.wait_listening(port, server)
        said = self.run_script(*(client_options or options), *command, '127.0.0.1')
        return self.finish(server) + said

    def repeated(self, options):
        """The same datagrams are lost each time, others with another seed."""
        faults = 'drop=0.05,seed=%d'
        first, *again = [self.run_script(*options, '--impair', faults % 7, LOST) for _ in range(3)]
        self.assertEqual(again, [first, first])
        lost = [int(word) for word in first.split()]
        self.assertGreater(len(lost), 20)
        self.assertLess(len(lost), 100)
        self.assertNotEqual(self.run_script(*options, '--impair', faults % 8, LOST), first)

    def measured(self, options, gid):
        """Both ends take leave of each other by TCP: neither goes while the other sends again."""
        for program in 'ib_send_bw', 'ib_write_bw':
            said = self.both(options, (program, '-F', '-x', gid, '-s', '8192', '-n', '100'))
            self.assertEqual(len(re.findall(r'\n 8192 +100 +[\d.]+ +[\d.]*[1-9]', said)), 2, said)

    def own(self):
        """Folders of daemons that softhca-run has started."""
        home = os.path.join(self.place, 'softhca-run-%d' % os.geteuid())
        if not os.path.isdir(home):
            return []
        return [entry.path for entry in os.scandir(home) if not entry.is_symlink()]

    def wait_ended(self):
        deadline = time.monotonic() + tools.TIMEOUT_S
        while any(os.path.exists(os.path.join(path, 'pid')) for path in self.own()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


class Given(Script):
    """Daemons that others have started."""

    def setUp(self):
        tools.Tools.setUp(self)

    def test_device(self):
        self.tool('ibv_devinfo')
        for form in [], ['--preload']:
            for d in self.daemons:
                said = self.run_script('--device', d.socket, *form, 'ibv_devinfo')
                self.assertRegex(said, r'hca_id:\s+%s\b' % d.name)
                said = self.run_script('--directory', self.place, '--device', d.name, *form, '--',
                                       'ibv_devinfo')
                self.assertRegex(said, r'hca_id:\s+%s\b' % d.name)
        said = self.run_script('ibv_devices')
        for d in self.daemons:
            self.assertIn(d.name, said)

    def test_example(self):
        for d in self.daemons:
            said = self.run_script('--device', d.socket, EXAMPLE)
            self.assertEqual(said, '%s: written by verbs\n' % d.name)
        self.assertEqual(self.own(), [])

    def test_old_daemon(self):
        """A daemon of version 7.0 of the control channel: programs run, and --debug names the missing
        features."""
        path = os.path.join(self.place, 'old.sock')
        old = OldDaemon(path, self.daemons[0].socket)
        self.addCleanup(old.close)
        written = 'old: written by verbs\n'
        self.assertEqual(self.run_script('--device', path, EXAMPLE), written)
        said = self.run_script('--debug', '--device', path, EXAMPLE)
        self.assertIn(written, said)
        self.assertRegex(said, r'ibv_open_device: the daemon speaks version 7\.0 .* upgrade the daemon')

    def test_preload_pingpong(self):
        sides = [['--preload', '--device', d.socket] for d in self.daemons]
        said = self.both(sides[0], ('ibv_rc_pingpong', '-g', '1', '-n', '100'), sides[1])
        self.assertEqual(len(re.findall(r'bytes in [\d.]+ seconds', said)), 2)

    def test_devices(self):
        said = json.loads(self.run_script(CTL, 'devices', '--json'))['devices']
        self.assertEqual([d['name'] for d in said], sorted(d.name for d in self.daemons))
        self.assertTrue(all(d['usable'] for d in said))
        said = json.loads(self.run_script('--device', self.daemons[1].socket, CTL, 'devices', '--json'))
        self.assertEqual([d['name'] for d in said['devices']], [self.daemons[1].name])

    def test_doctor(self):
        def checks(*words, **more):
            process = self.begin(0, *words, CTL, 'doctor', '--json', SOFTHCA_VERBS=self.library, **more)
            text = process.communicate(timeout=tools.TIMEOUT_S)[0]
            self.assertIn(process.returncode, (0, 1), text)
            return json.loads(text)['checks']

        def said(found, name):
            return [(c['level'], c['text']) for c in found if c['check'] == name]

        inside = checks(SCRIPT)
        self.assertEqual([level for level, _ in said(inside, 'verbs')], ['ok'])
        self.assertIn(self.library, said(inside, 'verbs')[0][1])
        self.assertEqual([level for level, _ in said(inside, 'devices')], ['ok', 'ok'])
        self.assertEqual(len(said(inside, 'memory')), 2)
        kinds = said(inside, 'kinds')
        self.assertEqual(len(kinds), 2)
        for _, text in kinds:
            for kind in ('private,', 'stack', 'private file mapping', 'shared anonymous', 'SysV', 'POSIX shm',
                         'memfd', 'hugetlb', 'mapped file', 'read-only file'):
                self.assertIn(kind, text.replace(';', ',') + ',')
            self.assertRegex(text, r'shared as it is: [^;]*POSIX shm, memfd')
        self.assertEqual([level for level, _ in said(checks(SCRIPT, '--preload'), 'verbs')], ['ok'])
        outside = checks('env', LD_LIBRARY_PATH='')
        self.assertEqual([level for level, _ in said(outside, 'verbs')], ['warn'])
        none = checks('env', SOFTHCA_DIRECTORY='/nowhere')
        self.assertEqual([level for level, _ in said(none, 'devices')], ['warn'])
        wrong = checks('env', SOFTHCA_DEVICE='nobody')
        self.assertEqual([level for level, _ in said(wrong, 'devices')], ['FAIL', 'ok'])
        self.assertIn('there is no device "nobody"', said(wrong, 'devices')[0][1])

    def test_sysfs(self):
        if os.geteuid() != 0:
            self.skipTest('only root has it in /dev too')
        name = self.daemons[0].name
        show = ('cat /sys/class/infiniband/%s/ports/1/gids/1; ls /sys/class/net; '
                'test -c /dev/infiniband/uverbs0 && test -w /dev/infiniband/uverbs0 && echo node; '
                'cat /sys/class/infiniband_verbs/uverbs1/ibdev' % name)
        said = self.run_script('--sysfs', 'sh', '-c', show).split('\n')
        self.assertEqual(said[0], '0000:0000:0000:0000:0000:ffff:0a42:0001')
        self.assertIn('lo', said)
        self.assertEqual(said[-3:-1], ['node', self.daemons[1].name])
        self.assertFalse(os.path.exists('/sys/class/infiniband/' + name))

    def refused(self, *words, **more):
        """Messages of the script when it starts no program; it has not started a daemon either."""
        said = self.run_script(*words, 'echo', 'started', status=2, **more)
        self.assertNotIn('started', said)
        self.assertEqual(self.own(), [])
        return said

    def test_no_other(self):
        """A name of a missing daemon is not replaced by another daemon."""
        nobody = os.path.join(self.place, 'nobody.sock')
        self.assertIn('no daemon listens there', self.refused('--device', nobody))
        self.assertIn('there is no device "nobody"', self.refused('--device', 'nobody'))
        self.assertIn('there is no device "nobody"', self.refused(SOFTHCA_DEVICE='nobody'))
        self.assertIn('there is no folder /nowhere', self.refused('--directory', '/nowhere'))
        self.assertIn('no daemon that runs has its socket in /proc/self',
                      self.refused('--directory', '/proc/self'))
        for form in '--own', '--embed':
            self.assertIn('do not go with', self.refused(form, '--device', self.daemons[0].socket))

    def test_no_permission(self):
        """Nor a daemon that this user may not use."""
        if os.geteuid() != 0:
            self.skipTest('needs root, to be another user')
        os.chmod(self.place, 0o755)
        for d in self.daemons:
            os.chmod(d.socket, 0o600)
        self.prefix = 'setpriv', '--reuid=65534', '--clear-groups', '--'
        probe = self.start_script('--help')
        if probe.wait(tools.TIMEOUT_S) != 0:
            self.skipTest('an ordinary user cannot read this build: ' + probe.stdout.read())
        for words in (), ('--device', self.daemons[1].socket), ('--device', self.daemons[1].name):
            said = self.refused(*words)
            self.assertIn('%s cannot be used' % self.daemons[1].name, said)
            self.assertIn('this user may not use it', said)
        os.chmod(self.daemons[0].socket, 0o666)
        said = self.run_script('ibv_devinfo', '-d', self.daemons[0].name)
        self.assertNotIn('softhca:', said)
        said = self.run_script('ibv_devinfo', '-d', self.daemons[1].name, status=1)
        self.assertEqual(said.count('softhca: '), 1, said)
        self.assertRegex(said, 'softhca: ibv_open_device: .*: this user may not use it')
        os.chmod(self.place, 0o700)
        self.assertIn('ermission denied', self.refused())

    def test_debug(self):
        """A failure is explained if asked for, a failed open in any case, once."""
        d = self.daemons[0]
        words = 'sh', '-c', 'mv %s %s.gone; exec ibv_devinfo -d %s' % (d.socket, d.socket, d.name)
        for more in ['--debug'], []:
            said = self.run_script(*more, '--device', d.socket, *words, status=1)
            self.assertIn('softhca: ibv_open_device: %s: ' % d.socket, said)
            os.rename(d.socket + '.gone', d.socket)


class Own(Script):
    """The daemon of this user."""

    def test_example(self):
        self.assertEqual(self.run_script(EXAMPLE), 'own: written by verbs\n')
        self.wait_ended()
        self.assertEqual(self.run_script('--preload', EXAMPLE), 'own: written by verbs\n')
        self.wait_ended()
        self.assertEqual(len(self.own()), 1)

    def test_shared(self):
        """Two programs have one daemon, which outlives neither, also if one is killed."""
        first = self.start_script('sh', '-c', 'echo up; exec sleep 1000')
        self.assertEqual(first.stdout.readline(), 'up\n')
        pids = []
        for _ in range(2):
            self.assertEqual(self.run_script(EXAMPLE), 'own: written by verbs\n')
            with open(os.path.join(self.own()[0], 'pid'), encoding='ascii') as file:
                pids.append(file.read())
        self.assertEqual(pids[0], pids[1])
        first.kill()
        first.wait()
        self.wait_ended()

    def test_children(self):
        """A program has no child that it has not made."""
        said = self.run_script(sys.executable, '-c',
                               'import os\ntry:\n os.wait()\nexcept ChildProcessError:\n print("none")')
        self.assertEqual(said, 'none\n')

    def test_two_at_once(self):
        ends = [self.start_script(EXAMPLE) for _ in range(4)]
        for end in ends:
            self.assertEqual(self.finish(end), 'own: written by verbs\n')
        self.wait_ended()

    def test_no_start(self):
        """A daemon that ends at once is reported, with its message."""
        home = os.path.join(self.place, 'softhca-run-%d' % os.geteuid(), 'own')
        os.makedirs(os.path.join(home, 'own.sock'), mode=0o700)
        self.assertIn('did not start', self.run_script(EXAMPLE, status=2))

    def test_many(self):
        """More contexts than a user has in other daemons."""
        self.assertEqual(self.run_script(os.environ['MANY'], '100'), '100 contexts: ok\n')

    def test_like(self):
        """Identity of the device, and its completions of datagrams."""
        for options, said in (((), '0x25348 1 0 0'), (('--like', 'mlx5'), '0x2c9 4119 9 10')):
            vendor, part, ipv6, ipv4 = said.split()
            lines = self.run_script(*options, os.environ['LIKE']).splitlines()
            self.assertEqual(lines[0], '%s %s' % (vendor, part))
            self.assertEqual(set(lines[1:]), {'IPv6 %s %s' % (ipv6, ipv6), 'IPv4 %s %s' % (ipv4, ipv4)})
        self.assertIn('expected mlx5', self.run_script('--like', 'mlx4', 'true', status=2))
        said = self.run_script('--debug', 'ibv_devinfo', status=1, SOFTHCA_LIKE='nothing')
        self.assertIn('SOFTHCA_LIKE=nothing: mlx5 is known', said)

    def test_pingpong(self):
        said = self.both((), ('ibv_rc_pingpong', '-g', '1', '-n', '100'))
        self.assertEqual(len(re.findall(r'bytes in [\d.]+ seconds', said)), 2)
        self.wait_ended()

    def test_wrong_faults(self):
        for faults, reason in (('drop=2', 'drop'), ('melt=1', 'melt'), ('drop', 'NAME=NUMBER'),
                               ('seed=7', 'no fault'), ('drop=0.1,seed=x', 'expected a number'),
                               ('drop,opcode=foo,nth=1', '"opcode=foo": expected send'),
                               ('drop=0.1;port=down', 'for=MS')):
            said = self.run_script('--impair', faults, 'true', status=2)
            self.assertRegex(said, '^softhca-run: --impair: .*' + reason)
            self.assertNotRegex(said, '--(drop|melt)')
        self.wait_ended()
        # no pattern of files
        pattern = os.path.join(self.place, '*')
        os.mknod(os.path.join(self.place, 'file'))
        self.assertIn('found "%s"' % pattern, self.run_script('--impair', pattern, 'true', status=2))
        said = self.run_script('--device', 'nobody', '--impair', 'drop=0.1', 'true', status=2)
        self.assertIn('--impair is for daemons of softhca-run', said)

    def test_wrong(self):
        self.assertIn('usage:', self.run_script(status=2))
        self.assertIn('unknown option --nonsense', self.run_script('--nonsense', 'true', status=2))
        self.assertIn('--device needs a value', self.run_script('--device', status=2))
        said = self.run_script('true', status=2, SOFTHCA_VERBS='/nowhere')
        self.assertIn('there is no /nowhere/libibverbs.so.1', said)
        said = self.run_script('--preload', 'true', status=2, SOFTHCA_VERBS='/nowhere')
        self.assertIn('there is no /nowhere/libsofthca-verbs.so', said)
        self.run_script('--embed', '/no/such/program', status=127)
        self.run_script('--embed', 'sh', '-c', 'exit 5', status=5)

    def test_fixed_addresses(self):
        if subprocess.run(['setarch', '-R', 'true'], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest('this container does not permit fixed addresses')
        words = 'grep', 'stack', '/proc/self/maps'
        found = {self.run_script('--embed', '--fixed-addresses', *words) for _ in range(3)}
        self.assertEqual(len(found), 1, found)
        self.assertEqual(len({self.run_script('--embed', *words) for _ in range(3)} | found), 4)

    def test_page(self):
        with open(PAGE, encoding='utf-8') as file:
            page = file.read()
        options = re.findall(r'^  --([a-z]+)', self.run_script('--help'), re.M)
        self.assertGreater(len(options), 3)
        for option in options:
            self.assertIn('.It Fl -' + option, page)


class CheckedValgrind(Script):
    """Checkers of memory report no leak of the library, and find the program's leaks."""
    lost = 9

    def checked(self, *command, **more):
        for form in ['--embed'], ['--own']:
            said = self.run_script(*form, *command, **more)
            self.assertIn('all was given back', said)
            self.assertNotRegex(said, 'ERROR: LeakSanitizer|SUMMARY: ')
            process = self.start_script(*form, *command, 'leak', **more)
            said = process.communicate(timeout=tools.TIMEOUT_S)[0]
            self.assertIn(process.returncode, (1, self.lost), said)
            self.assertEqual(len(re.findall(r'\b12,?345 byte', said)), 1 + ('SUMMARY' in said), said)
            self.assertRegex(said, r'\bin leak\b|: leak \(')

    def test_valgrind(self):
        self.tool('valgrind')
        self.checked('valgrind', '-q', '--leak-check=full', '--error-exitcode=%d' % self.lost,
                     os.environ['LEAKS'])


class Checked(CheckedValgrind):
    test_valgrind = None

    def test_asan(self):
        if 'LEAKS_ASAN' not in os.environ:
            self.skipTest('there is no such program in a build with a sanitizer')
        self.checked(os.environ['LEAKS_ASAN'], ASAN_OPTIONS='abort_on_error=0')  # meson 1.7 sets 1

    def test_asan_small(self):
        """Without hugepages, which are files; on a port of DPDK."""
        if 'LEAKS_ASAN' not in os.environ:
            self.skipTest('there is no such program in a build with a sanitizer')
        self.assertIn('all was given back',
                      self.run_script('--wire', self.place + '/wire', 'sh', '-c', 'ulimit -n 100; exec "$0"',
                                      os.environ['LEAKS_ASAN']))


class Many(Script):
    """As many contexts as the daemon of this user has, and one more."""

    def test_full(self):
        said = self.run_script('--debug', os.environ['MANY'], '1025', status=2)
        self.assertIn('it has 1024 clients, its limit', said)
        self.assertIn('1024 contexts: ENOMEM', said)


class Slow(Script):
    """The same, where all takes long."""

    def test_slow_start(self):
        """The daemon takes long, as on a busy machine, and the last one has removed its files."""
        apps = os.path.join(self.place, 'apps')
        os.mkdir(apps)
        os.symlink(os.path.join(PROGRAMS, '../src'), os.path.join(self.place, 'src'))
        os.symlink(CTL, os.path.join(apps, 'softhca-ctl'))
        script, slow = (os.path.join(apps, name) for name in ('softhca-run', 'softhcad'))
        shutil.copy(SCRIPT, script)
        with open(slow, 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\nrm -f "${2%%/*}/pid"\nsleep 7\nexec %s "$@"\n' %
                       shlex.quote(os.path.join(PROGRAMS, 'softhcad')))
        os.chmod(slow, 0o755)
        said = self.finish(self.begin(0, script, EXAMPLE))
        self.assertEqual(said, 'own: written by verbs\n')
        self.wait_ended()


class Faulty(Script):
    """The same, with faults."""

    def test_impair(self):
        """Frames of a program to itself are also lost, and both ends still get all data."""
        words = '--impair', 'drop=0.05,corrupt=0.02,seed=7'
        self.measured(words, '1')
        name = 'own' + os.path.basename(self.own()[0])
        said = self.run_script(*words, CTL, 'impair', '--show', '--prefix', name, '--json')
        setting = json.loads(said)
        self.assertIn('drop=0.05', json.dumps(setting))
        with open(os.path.join(self.own()[0], 'softhcad.conf'), encoding='utf-8') as file:
            self.assertIn('seed = 7\n', file.read())

    def test_repeated(self):
        self.repeated(())

    def test_named_frame(self):
        """One datagram of the program is lost, by a rule that its daemon lists."""
        words = '--impair', 'drop,opcode=ud-send,nth=5;seed=3'
        prefix = '"$(basename "$SOFTHCA_DIRECTORY"/*.sock .sock)"'
        said = self.run_script(*words, 'sh', '-c', '%s; %s impair --prefix %s' %
                               (shlex.quote(LOST), shlex.quote(CTL), prefix))
        self.assertEqual(said.splitlines()[0], '4')
        self.assertIn('drop,opcode=ud-send,nth=5: fired 1 times', said)
        self.assertRegex(said, r'drop by rule 1: ud-send-only, PSN 4, to QP')


class OnPurpose(Script):
    """Calls that fail, completions that are errors, events: the programs' reactions."""

    def faulty(self, faults, *words, options=('--embed',)):
        """Lines of the program; those of the library, which reports its faults."""
        lines = self.run_script(*options, '--impair', faults, os.environ['FAULTY'], *words).splitlines()
        return ([line for line in lines if not line.startswith('softhca: ')],
                [line for line in lines if line.startswith('softhca: ')])

    def test_calls(self):
        """The first registration is that of the program's set-up."""
        good = ['ibv_reg_mr %d: good' % i for i in (1, 2, 3, 4)] + ['ibv_alloc_pd: good']
        lines, said = self.faulty('call=ibv_reg_mr,nth=3,errno=ENOMEM', 'calls', '4')
        self.assertEqual(lines, good[:1] + ['ibv_reg_mr 2: Cannot allocate memory'] + good[2:])
        self.assertEqual(said, ['softhca: ibv_reg_mr: fails on purpose, call 3: call=ibv_reg_mr,nth=3,errno=ENOMEM'])
        lines, said = self.faulty('call=reg_mr,nth=4,count=0,errno=EPERM;call=alloc_pd,nth=2,errno=EMFILE', 'calls',
                                  '4')
        self.assertEqual(lines, good[:2] + ['ibv_reg_mr %d: Operation not permitted' % i for i in (3, 4)] +
                         ['ibv_alloc_pd: Too many open files'])
        self.assertEqual(len(said), 3)
        lines, said = self.faulty('call=ibv_reg_mr,nth=9,errno=ENOMEM', 'calls', '4')
        self.assertEqual((lines, said), (good, []))

    def test_every_call(self):
        """Each that the list has fails once, and works the next time."""
        program = os.environ['FAULTY_ALL']
        faults = self.run_script('--embed', program, 'faults')
        said = self.run_script('--embed', '--impair', faults, program)
        self.assertIn('%d calls have failed and worked' % (faults.count(';') + 1), said)

    def sent(self, statuses, end='sender: ERR'):
        return (['recv %d: success' % i for i in range(1, len(statuses) + 1)] +
                ['send %d: %s' % (i, status) for i, status in enumerate(statuses, 1)] + [end, 'receiver: RTS'])

    def test_completions(self):
        """The QP is in the error state, requests completed after it are flushed; after a reset all is good."""
        ok, flushed, exceeded = 'success', 'Work Request Flushed Error', 'transport retry counter exceeded'
        expected = self.sent([ok, ok, exceeded, flushed, flushed])
        for form in 'completions', 'extended':
            lines, said = self.faulty('completion,of=send,nth=3,status=retry-exc', form, '5')
            self.assertEqual(lines, expected, form)
            self.assertRegex('\n'.join(said), '^softhca: completion 3 of QP 0x[0-9a-f]+ is an error on purpose '
                             r'\(retry-exc\): completion,of=send,nth=3,status=retry-exc$')
        lines, _ = self.faulty('completion,of=send,nth=3,status=IBV_WC_RETRY_EXC_ERR', 'again', '5')
        self.assertEqual(lines, expected + self.sent([ok] * 5, 'sender: RTS'))
        lines, _ = self.faulty('completion,of=send,nth=2,status=retry-exc', 'inside', '3')
        self.assertEqual(lines[3:], ['send: ' + ok, 'send: ' + exceeded, 'sender: INIT'])
        # of a receive, on a daemon, counted with all others
        lines, _ = self.faulty('completion,nth=2,status=loc-prot', 'completions', '3', options=('--own',))
        self.assertEqual(lines[:3], ['recv 1: success', 'recv 2: local protection error', 'recv 3: ' + flushed])
        self.assertEqual(lines[-2:], ['sender: RTS', 'receiver: ERR'])
        lines, _ = self.faulty('drop,opcode=send-only,nth=2;completion,of=send,nth=5,status=rem-op', 'completions', '5')
        self.assertEqual(lines, self.sent([ok] * 4 + ['remote operation error']))
        self.wait_ended()

    def test_events(self):
        """The link goes down and comes up; the table of GIDs is said to have changed."""
        down = ['port error: down', 'port active: active']
        for options in ('--embed',), ():
            # on a busy machine the link may be up again when the program looks
            self.events(down, 'port=down,after=20,for=%d', (200, 2000, 10000), options)
        # and the table may have changed before it begins
        self.events(['GID table change: active'], 'gid=change,after=%d', (1500, 10000), ())
        self.wait_ended()

    def events(self, expected, faults, times_ms, options):
        for ms in times_ms:
            process = self.start_script(*options, '--impair', faults % ms, os.environ['FAULTY'], 'events',
                                        str(len(expected)))
            said = process.communicate(timeout=tools.TIMEOUT_S)[0]
            lines = [line for line in said.splitlines() if not line.startswith('softhca: ')]
            if (process.returncode, lines) == (0, expected):
                return
        self.assertEqual((process.returncode, lines), (0, expected), said)

    def test_wrong(self):
        for faults, reason in (('call=ibv_fly,nth=1,errno=ENOMEM', '"call=ibv_fly": expected a call of verbs'),
                               ('call=ibv_reg_mr,nth=1', 'call= needs errno'),
                               ('call=ibv_reg_mr,errno=ENOTHING', '"errno=ENOTHING": expected a name of errno'),
                               ('call=ibv_reg_mr,errno=ENOMEM,nth=0', '"nth=0": expected a number from 1'),
                               ('completion,nth=2', 'status=NAME'),
                               ('completion,status=bad', '"status=bad": expected one of loc-len'),
                               ('completion,of=both,status=fatal', '"of=both": expected send or recv')):
            self.assertIn(reason, self.run_script('--embed', '--impair', faults, 'true', status=2))
        said = self.run_script('--embed', os.environ['FAULTY'], 'calls', '1', status=1, SOFTHCA_VERBS_FAULTS=faults)
        self.assertIn('softhca: SOFTHCA_VERBS_FAULTS: "of=both": expected send or recv', said)
        said = self.run_script('--embed', '--impair', 'gid=change', 'true', status=2)
        self.assertIn('gid=change is for daemons', said)
        said = self.run_script('--embed', CTL, 'impair', 'call=ibv_reg_mr,errno=ENOMEM', status=2)
        self.assertIn('see softhca-run', said)


class Plain(Script):
    """A user without XDG_RUNTIME_DIR, as in containers."""

    def setUp(self):
        super().setUp()
        self.user = os.geteuid()
        if self.user == 0:
            self.user = 50000 + os.getpid() % 10000
            self.prefix = ('setpriv', '--reuid=%d' % self.user, '--regid=%d' % self.user, '--clear-groups',
                           '--')
            os.chmod(self.place, 0o755)
        self.home = '/tmp/softhca-run-%d' % self.user
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        probe = self.start_script('--help')
        if probe.wait(tools.TIMEOUT_S) != 0:
            self.skipTest('an ordinary user cannot read this build: ' + probe.stdout.read())

    def environment(self, side, **more):
        environment = super().environment(side, **more)
        del environment['XDG_RUNTIME_DIR']
        return environment

    def own(self):
        return [entry.path for entry in os.scandir(self.home) if os.path.exists(entry.path + '/start')]

    def test_forms(self):
        faults = '--impair', 'drop=0.01,seed=7'
        for words, name in (((), 'own'), (faults, 'own[0-9]+'), (('--own',), 'own'),
                            (('--embed',), 'embed0'), (('--embed', *faults), 'embed0'),
                            (('--preload',), 'own')):
            self.assertRegex(self.run_script(*words, EXAMPLE), '^%s: written by verbs\n$' % name)
        self.wait_ended()

    def test_doctor(self):
        """All is well for programs: no failure, and no setting that this user cannot make."""
        for words, role in ((), 'daemons of ' + self.home), (('--embed',), 'HCAs inside programs'):
            said = json.loads(self.run_script(*words, CTL, 'doctor', '--json', SOFTHCA_VERBS=''))
            self.assertEqual((said['failed'], said['warned']), (0, 0), said)
            found = {check['check']: check['text'] for check in said['checks']}
            self.assertIn(role, found['role'])
            self.assertLessEqual(set(found), {'role', 'daemon', 'gids', 'cpu', 'congestion', 'verbs', 'devices', 'memory',
                                              'kinds'})
        process = self.begin(0, *self.prefix, 'env', '-u', 'SOFTHCA_VERBS', CTL, 'doctor')
        self.assertNotIn('not installed', self.finish(process))
        self.wait_ended()

    def test_one_daemon(self):
        """softhca-ctl finds one daemon whichever name of the runtime folder it gets."""
        for runtime in '', self.home, self.home + '/.':
            said = self.run_script('--impair', 'drop=0.02,seed=9', 'env', 'XDG_RUNTIME_DIR=' + runtime, CTL,
                                   'status', '--json')
            self.assertEqual(len(json.loads(said)), 1, said)
        self.wait_ended()


class Embed(Script):
    """HCAs inside the program."""

    def test_devinfo(self):
        self.tool('ibv_devinfo')
        said = self.run_script('--embed', 'ibv_devinfo')
        self.assertEqual(re.findall(r'hca_id:\s+(\w+)', said), ['embed0', 'embed1'])
        said = self.run_script('--wire', self.place + '/wire', 'ibv_devinfo')
        self.assertEqual(re.findall(r'hca_id:\s+(\w+)', said), ['embed0'])

    def test_files(self):
        """With few files each call fails with EMFILE, a daemon's or embedded."""
        for form in '--own', '--embed':
            said = self.run_script(form, os.environ['FILES'], '128')
            self.assertRegex(said, r'limits are too low')
            self.assertIn('5 files: ibv_open_device: EMFILE', said)
        self.wait_ended()

    def test_gids(self):
        """The order of a daemon: link-local, IPv4, IPv6."""
        self.tool('ibv_devinfo')
        order = []
        for form in '--own', '--embed':
            said = self.run_script(form, 'ibv_devinfo', '-v')
            gids = re.findall(r'GID\[ *(\d)\]:\s+([0-9a-f:.]+)', said)
            order.append([(index, gid.split(':')[0] + (':ffff:' if 'ffff' in gid else ''))
                          for index, gid in gids[:3]])
        self.assertEqual(order, [[('0', 'fe80'), ('1', ':ffff:'), ('2', '2001')]] * 2)
        self.wait_ended()

    def test_example(self):
        self.assertEqual(self.run_script('--embed', EXAMPLE), 'embed0: written by verbs\n')
        self.assertEqual(self.run_script('--embed', '--preload', EXAMPLE),
                         'embed0: written by verbs\n')

    def test_repeated(self):
        self.repeated(('--embed',))

    def test_wire(self):
        """Two programs with an HCA each, also on a bad wire."""
        said = self.on_wire(lambda wire: self.both(wire, ('ibv_rc_pingpong', '-g', '1', '-n', '200', '-c')))
        self.assertEqual(len(re.findall(r'bytes in [\d.]+ seconds', said)), 2)
        self.on_wire(lambda wire: self.measured(wire + ('--impair', 'drop=0.02,dup=0.02,seed=7'), '1'))

    def on_wire(self, run):
        """The ends drop frames until they have met: on a busy machine that may take longer than the half second in
        which these programs repeat."""
        for number in range(4):
            try:
                return run(('--wire', '%s/wire%d' % (self.place, number)))
            except AssertionError as error:
                if number == 3 or not re.search('Failed status (12|transport retry)', str(error)):
                    raise
        raise AssertionError('not reached')

    def test_wrong(self):
        self.tool('ibv_devinfo')
        for name, value, reason in (
                ('IMPAIR', 'melt=1', 'melt'), ('SEED', 'x', 'expected a number'),
                ('FIRST', '1000', 'up to 128'), ('PORT', 'net_nothing0', 'net_nothing0')):
            said = self.run_script('--embed', '--debug', 'ibv_devinfo', status=1,
                                   **{'SOFTHCA_EMBED_' + name: value})
            self.assertIn(reason, said)


class Container(Script):
    """All of it as an ordinary user where nothing is allowed."""
    prefix = sys.executable, CONTAINER

    def setUp(self):
        super().setUp()
        probe = self.begin(0, *self.prefix, SCRIPT, '--help')
        if probe.wait(tools.TIMEOUT_S) != 0:
            self.skipTest('an ordinary user cannot read this build: ' + probe.stdout.read())

    def test_refused(self):
        """The container is one."""
        said = self.finish(self.begin(0, *self.prefix, 'sh', '-c', '''
grep -e CapEff -e CapBnd -e Seccomp: -e NoNewPrivs /proc/self/status
grep 'Max locked' /proc/self/limits
id -u
ls /dev/net /sys/kernel/mm/hugepages 2>/dev/null
'''))
        self.assertIn('CapEff:\t0000000000000000', said)
        self.assertIn('Seccomp:\t2', said)
        self.assertIn('NoNewPrivs:\t1', said)
        self.assertLessEqual(int(re.search(r'Max locked memory +(\d+)', said).group(1)), 64 << 20)
        if os.geteuid() == 0:
            self.assertIn('CapBnd:\t0000000000000000', said)
            self.assertNotIn('\ntun', said)
            self.assertNotIn('hugepages-', said)
            self.assertIn('\n65534\n', said)

    def test_example(self):
        self.assertEqual(self.run_script(EXAMPLE), 'own: written by verbs\n')
        self.assertEqual(self.run_script('--embed', EXAMPLE), 'embed0: written by verbs\n')

    def test_doctor(self):
        process = self.start_script(CTL, 'doctor', '--json')
        text = process.communicate(timeout=tools.TIMEOUT_S)[0]
        found = [c['text'] for c in json.loads(text)['checks'] if c['check'] == 'memory']
        self.assertEqual(len(found), 1, text)
        self.assertIn('the slow way, which this daemon allows', found[0])

    def lossy(self, unreliable, options, words):
        """Memory is accessed the slow way here, and a frame without an answer in time is lost: UC and UD do
        not send it again, and the programs wait for it until they give up."""
        for _ in range(2 if unreliable else 0):
            self.timeout_s = tools.TIMEOUT_S / 8
            try:
                return self.both(options, words)
            except AssertionError as lost:
                print('again, without a message:', str(lost)[-200:])
            finally:
                self.timeout_s = tools.TIMEOUT_S
        return self.both(options, words)

    def test_programs(self):
        for options in (), ('--wire', self.place + '/wire'):
            gid = '1'
            for program in 'rc', 'srq', 'uc', 'ud':
                said = self.lossy(program[0] == 'u', options,
                                  ('ibv_%s_pingpong' % program, '-g', gid, '-n', '100'))
                self.assertEqual(len(re.findall(r'bytes in [\d.]+ seconds', said)), 2)
            for words in (('ib_write_bw', '-c', 'RC'), ('ib_read_lat',), ('ib_send_bw', '-c', 'UD')):
                said = self.lossy('UD' in words, options, words + ('-F', '-x', gid, '-n', '200'))
                self.assertRegex(said, r'\n (\d+) +(\d+) +[\d.]+ +[\d.]*[1-9]')

    def test_impair(self):
        self.measured(('--impair', 'drop=0.04,seed=11'), '1')


if __name__ == '__main__':
    tools.main()
