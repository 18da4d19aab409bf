#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-ctl against a daemon and against a measuring softhca-perf: its output is true.

test_ctl.py SOFTHCA-CTL SOFTHCAD SOFTHCA-PERF PAGE [unittest arguments]
"""
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from daemon import Daemon, ended, folder, free_port, telemetry_socket

CTL, DAEMON, PERF, PAGE = [os.path.abspath(word) for word in sys.argv[1:5]]
TIMEOUT_S = 300  # seconds, on a busy machine: a longer run counts as hung
VIEWS = ('status', 'qps', 'jettys', 'tps', 'mrs', 'gids', 'clients', 'cm', 'stages', 'usage')


def ctl(*words, env=None, timeout=TIMEOUT_S):
    return subprocess.run([CTL] + [str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding='utf-8', timeout=timeout, check=False,
                          env=dict(os.environ, **(env or {})))


def answered(*words, **options):
    """Again while a daemon has no CPU for the 10 s which softhca-ctl waits for it."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        run = ctl(*words, **options)
        if 'does not answer within' not in run.stdout + run.stderr or time.monotonic() > end:
            return run


class Case(unittest.TestCase):
    def wait(self, true):
        end = time.monotonic() + TIMEOUT_S
        while not true():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def good(self, *words, **options):
        run = answered(*words, **options)
        self.assertEqual((run.returncode, run.stderr), (0, ''), run.stdout)
        return run.stdout

    def json(self, *words, **options):
        return json.loads(self.good(*words, '--json', **options))

    def bad(self, status, text, *words, **options):
        run = (ctl if 'not answer' in text else answered)(*words, **options)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn(text, run.stderr)


class CommandLine(Case):
    def test_usage(self):
        for name in VIEWS + ('counters', 'top'):
            self.assertIn('  %s' % name, self.good('--help'))
        self.assertIn('softhca-ctl', self.good('--version'))
        self.bad(2, 'no command "nonsense"', 'nonsense')
        self.bad(2, 'unexpected argument', 'qps', 'word')
        self.bad(2, "softhca-ctl: unrecognized option '--nonsense'", 'qps', '--nonsense')
        self.bad(2, "softhca-ctl: option '--interval' requires", 'top', '--interval')
        self.bad(2, '--interval', 'top', '--interval', 'x')
        self.bad(2, '--interval', 'counters', '--interval', '-1')

    def test_nobody(self):
        with tempfile.TemporaryDirectory() as empty:
            for name in VIEWS:
                self.bad(1, 'no HCA was found', name, '--prefix', 'nosuch',
                         env={'XDG_RUNTIME_DIR': empty})
            self.bad(1, 'no process', 'counters', '--prefix', 'nosuch')
            self.assertEqual(json.loads(ctl('qps', '--json', '--prefix', 'nosuch').stdout), [])


class OfDaemon(Case):
    """One for all: it only reads."""

    @classmethod
    def setUpClass(cls):
        context = folder()
        cls.place = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.name = 'shc%dd' % os.getpid()
        cls.daemon = Daemon(DAEMON, cls.place, cls.name, 'net_null0',
                            ['10.66.0.1/24', '2001:db8::1/64'])
        cls.addClassCleanup(cls.daemon.close)
        cls.daemon.start()

    def about(self, *words):
        return self.json(*words, '--prefix', self.name)

    def test_status(self):
        status, = self.about('status')
        self.assertEqual((status['process'], status['hca']), (self.name, self.name))
        status = status['status']
        self.assertEqual(status['pid'], self.daemon.process.pid)
        self.assertEqual(status['health'], 'well')
        self.assertEqual(status['device'], 'net_null0')
        self.assertEqual(status['socket'], self.daemon.socket)
        self.assertEqual(status['active_mtu'], 4096)
        self.assertIn('device', self.good('status', '--prefix', self.name))

    def test_names_of_folder(self):
        """A daemon that is found under several names of its folder is one."""
        folder_of = os.path.dirname(os.path.dirname(self.daemon.runtime_dirs()[0]))
        link = os.path.join(self.place, 'link')
        os.symlink(folder_of, link)
        self.addCleanup(os.unlink, link)
        for runtime in folder_of, folder_of + '/', link:
            self.assertEqual(len(self.json('status', '--prefix', self.name, env={'XDG_RUNTIME_DIR': runtime})), 1)
            self.good('counters', '--prefix', self.name, env={'XDG_RUNTIME_DIR': runtime})

    def test_crowd(self):
        """DPDK serves few at a time and hangs up on the others: they wait for their turn."""
        crowd = []
        while True:
            one = telemetry_socket(self.daemon.runtime_dirs()[0])
            self.addCleanup(one.close)
            crowd.append(one)
            if one.recv(1024) == b'':
                break
        late = subprocess.Popen([CTL, 'status', '--prefix', self.name], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding='utf-8')
        time.sleep(0.5)  # it has been turned away meanwhile
        for one in crowd:
            one.close()
        text = late.communicate(timeout=TIMEOUT_S)[0]
        self.assertEqual(late.returncode, 0, text)

    def test_gids(self):
        gids, = self.about('gids')
        self.assertIn('10.66.0.1', [gid['ip'] for gid in gids['gids']])
        self.assertIn('2001:db8::1', [gid['ip'] for gid in gids['gids']])
        self.assertIn('10.66.0.1', self.good('gids', '--prefix', self.name))

    def test_what_there_is(self):
        """A wrong name is answered with the right ones."""
        self.bad(1, self.name, 'qps', '--prefix', 'nosuch')
        self.bad(1, self.name, 'counters', '--prefix', 'nosuch')
        self.bad(1, 'it has: ' + self.name, 'counters', '--prefix', self.name, '--hca', 'nosuch')
        self.bad(1, '%s of %s' % (self.name, self.name), 'qps', '--prefix', self.name, '--hca',
                 'nosuch')

    def test_frame(self):
        """Every answer in JSON says of which process and HCA it is, and when."""
        answers = [self.about(name)[0] for name in VIEWS]
        answers += [self.about('counters'), self.about('impair'),
                    self.about('top', '--once', '--interval', '0.1'),
                    json.loads(self.good('counters', '--watch', '--count', '1', '--interval', '0.1',
                                         '--json', '--prefix', self.name)),
                    self.about('capture', os.path.join(self.place, 'frame'), '--seconds', '0.1')]
        for answer in answers:
            self.assertEqual((answer['process'], answer['hca']), (self.name, self.name))
            self.assertRegex(answer['time'], r'^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')
        said = json.loads(ctl('doctor', '--json', '--prefix', self.name).stdout)
        self.assertEqual((said['process'], said['hca']), (None, None))
        self.assertIn('time', said)

    def test_key(self):
        """q ends top on a terminal, and the terminal is as before."""
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        before = termios.tcgetattr(slave)
        process = subprocess.Popen([CTL, 'top', '--interval', '30', '--prefix', self.name],
                                   stdin=slave, stdout=slave, stderr=slave)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + TIMEOUT_S
        while termios.tcgetattr(slave)[3] & termios.ICANON and time.monotonic() < end:
            time.sleep(0.02)
        os.write(master, b'xq')
        self.assertEqual(process.wait(timeout=TIMEOUT_S), 0)
        self.assertEqual(termios.tcgetattr(slave), before)
        os.close(slave)

    def test_empty(self):
        for name in ('qps', 'clients'):
            answer, = self.about(name)
            self.assertEqual(answer[name], [])

    def test_stages(self):
        def encap():
            answer, = self.about('stages')
            return {stage['stage']: stage for stage in answer['stages']}['encap']
        self.wait(lambda: encap()['polls'] > 0)

    def test_counters(self):
        counters = self.about('counters')
        for name in ('sent_pkts', 'port_rcv_missed', 'ipc_clients_accepted', 'fault_frames'):
            self.assertIn(name, counters['counters'])
        for value in self.about('counters', '--nonzero')['counters'].values():
            self.assertNotEqual(value, 0)

    def test_top(self):
        def decap():
            top = self.about('top', '--once', '--interval', '0.2')
            self.assertGreaterEqual(top['seconds'], 0.2)
            self.assertEqual(top['qps'], [])
            return {stage['stage']: stage for stage in top['stages']}['decap']
        self.wait(lambda: decap()['polls_per_s'] > 0)  # the worker may have no CPU meanwhile
        # measured while it looked only
        answer = self.daemon.ask('/softhca/stages,%s' % self.name)
        self.assertEqual({stage['measured'] for stage in answer.values()}, {0})


class Lab(Case):
    """Two daemons on one wire, RC between them."""

    @classmethod
    def setUpClass(cls):
        context = folder()
        cls.place = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.daemons = []
        for side, role in enumerate(('server', 'client')):
            d = Daemon(DAEMON, cls.place, 'shc%d%s' % (os.getpid(), 'ab'[side]),
                       'net_memif0,role=%s,socket=%s/wire' % (role, cls.place),
                       '10.66.0.%d/24' % (side + 1),
                       {'port': {'mac': '02:00:00:66:00:0%d' % (side + 1)}})
            cls.addClassCleanup(d.close)
            cls.daemons.append(d.start())
        for d in cls.daemons:
            d.wait_log('link up')

    def setUp(self):
        self.ends = []
        self.addCleanup(self.stop)

    def stop(self):
        for end in self.ends:
            if end.poll() is None:
                end.kill()
            end.wait()
        if self.ends:  # the next test must not see their values
            self.wait(lambda: not any(self.about(side, 'qps')[0]['qps'] for side in range(2)))
        self.ends = []

    def traffic(self, *more):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = str(s.getsockname()[1])
        words = (('--server', port), ('--client', '127.0.0.1:' + port, '--op', 'send', '--size',
                                      '100', '--duration', '600', '--ack-timeout', '17', '--events', *more))
        for daemon, each in zip(self.daemons, words):
            self.ends.append(subprocess.Popen([PERF, '--device', daemon.socket, *each],
                                              stdout=subprocess.DEVNULL))
        # the client waits for the server
        self.wait(lambda: any(qp['tx_bytes'] for qp in self.about(1, 'qps')[0]['qps']))

    def about(self, side, *words):
        return self.json(*words, '--prefix', self.daemons[side].name)


class Captures(Lab):
    """While it runs, on a wire that takes 2 ms: the CPUs are for the captures."""

    def traffic(self, *more):
        self.daemons[0].ask('/softhca/impair,delay=2000')
        super().traffic(*more)

    def capture(self, name, *words, ways=()):
        """Again if empty or without these directions: on a busy machine traffic can pause."""
        end, frames, number, seen = time.monotonic() + TIMEOUT_S, 0, 0, []
        while (frames == 0 or not set(ways) <= {each[0] for each in seen}) and time.monotonic() < end:
            path = os.path.join(self.place, '%s-%u' % (name, number))
            said = self.about(1, 'capture', path, '--seconds', '0.1', *words)
            said = said['capture']
            self.assertEqual((said['file'], said['active']), (path, 0))
            frames, number = said['frames'], number + 1
            with open(path, 'rb') as file:
                seen = blocks(file.read())
        return frames, seen, path

    def test_capture(self):
        self.traffic()
        qp = max(self.about(1, 'qps')[0]['qps'], key=lambda each: each['tx_bytes'])
        frames, all_of_them, path = self.capture('all', ways=(1, 2))
        self.assertGreater(frames, 0)
        self.assertEqual(len(all_of_them), frames)
        self.assertEqual({way for way, _, _ in all_of_them}, {1, 2})
        if shutil.which('tshark'):
            said = subprocess.run(['tshark', '-r', path, '-c', '2000', '-T', 'fields', '-e',
                                   'frame.interface_name', '-e', 'infiniband.bth.destqp'],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
                                  timeout=TIMEOUT_S, check=False)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertIn(self.daemons[1].name, said.stdout)
            self.assertIn('0x%06x' % qp['remote_qpn'], said.stdout)
        for way, words in ((1, 'in'), (2, 'out')):
            frames, seen, _ = self.capture(words, '--dir', words, '--qp', hex(qp['qpn']),
                                           '--snaplen', '60')
            self.assertGreater(frames, 0)
            self.assertEqual({each[0] for each in seen}, {way})
            self.assertLessEqual(max(len(each[2]) for each in seen), 60)
            self.assertGreater(max(each[1] for each in seen), 61)
            number = qp['qpn'] if way == 1 else qp['remote_qpn']
            self.assertEqual({int.from_bytes(each[2][47:50], 'big') for each in seen}, {number})
        prefix = ('--prefix', self.daemons[1].name)
        self.bad(1, 'File exists', 'capture', path, *prefix)
        self.bad(1, 'No such file', 'capture', self.place + '/nosuch/x', *prefix)
        wrong = qp['qpn'] ^ 0x800000
        self.bad(1, 'no QP %#x; there are' % wrong, 'capture', path + 'x', '--qp', wrong, *prefix)
        self.bad(1, '%#x' % qp['qpn'], 'capture', path + 'x', '--qp', wrong, *prefix)
        self.bad(2, '--dir', 'capture', path + 'x', '--dir', 'up', *prefix)
        self.bad(2, 'expected one file', 'capture', *prefix)
        self.assertFalse(os.path.exists(path + 'x'))

    def test_capture_on_a_full_disk(self):
        """It ends and says so; traffic goes on."""
        self.traffic()
        path = os.path.join(self.place, 'full')
        pid = self.daemons[1].process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 20, hard))
        try:
            self.bad(1, 'the file could not be written', 'capture', path, '--prefix', self.daemons[1].name)
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
        self.assertEqual(os.path.getsize(path), 1 << 20)
        self.daemons[1].wait_log('capture ended: the file could not be written')
        before = max(qp['tx_bytes'] for qp in self.about(1, 'qps')[0]['qps'])
        self.wait(lambda: max(qp['tx_bytes'] for qp in self.about(1, 'qps')[0]['qps']) > before)
        frames, seen, _ = self.capture('after')
        self.assertEqual(len(seen), frames)

    def test_signal(self):
        """Without --seconds it ends with the operator."""
        path = os.path.join(self.place, 'ended')
        process = subprocess.Popen([CTL, 'capture', path, '--prefix', self.daemons[0].name],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.wait(lambda: os.path.exists(path) and self.daemons[0].ask('/softhca/capture')['active'] == 1)
        # one that cannot begin does not end it
        self.bad(1, 'File exists', 'capture', path, '--prefix', self.daemons[0].name)
        self.assertEqual(self.daemons[0].ask('/softhca/capture')['active'], 1)
        process.send_signal(signal.SIGINT)
        self.assertIn(b'frames in', process.communicate(timeout=TIMEOUT_S)[0])
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.daemons[0].ask('/softhca/capture')['active'], 0)


class Settings(Lab):
    """While it runs."""

    def counter(self, side, name):
        return self.about(side, 'counters')['counters'][name]

    def grows(self, side, name):
        before = self.counter(side, name)
        self.wait(lambda: self.counter(side, name) > before)

    def set(self, side, *words):
        return self.about(side, 'set', *words)['set']

    def test_congestion(self):
        """Marks on the way bring CNPs, which the sender obeys as long as it has an algorithm."""
        defaults = {'congestion': 'none', 'cnp_interval_us': 50, 'cnp_dscp': 48, 'swift_base_delay_us': 25}
        self.assertEqual(self.set(1), defaults)
        self.traffic()
        self.good('impair', '--ecn', '1', '--prefix', self.daemons[1].name)
        self.grows(1, 'rp_cnp_ignored')
        for name in ('dcqcn', 'none', 'dcqcn'):
            self.assertEqual(self.set(1, 'congestion=' + name), dict(defaults, congestion=name))
            self.assertEqual(self.about(1, 'status')[0]['status']['congestion'], name)
            self.grows(1, 'rp_cnp_ignored' if name == 'none' else 'rp_cnp_handled')
            self.grows(1, 'req_packets')
            qp = max(self.about(1, 'qps')[0]['qps'], key=lambda each: each['tx_bytes'])
            self.assertEqual(qp['congestion'], name)
            self.assertEqual('cc_rate_bps' in qp, name == 'dcqcn', qp)
            self.assertEqual('cc_window' in qp, name == 'dcqcn', qp)
        self.daemons[1].wait_log('set congestion=dcqcn')
        prefix = ('--prefix', self.daemons[1].name)
        self.bad(1, ', found "cubic"', 'set', 'congestion=cubic', *prefix)
        self.bad(1, 'congestion=NAME, cnp_interval_us=N, cnp_dscp=N, swift_base_delay_us=N', 'set', 'colour=red', *prefix)
        self.bad(2, 'expected NAME=VALUE, found "congestion"', 'set', 'congestion', *prefix)
        self.bad(1, 'cnp_dscp: expected 1 to 63, found "64"', 'set', 'cnp_dscp=64', *prefix)
        # one is wrong: none changes
        self.bad(1, 'found "64"', 'set', 'congestion=none', 'cnp_dscp=64', *prefix)
        self.assertEqual(self.set(1), dict(defaults, congestion='dcqcn'))
        changed = {'congestion': 'dcqcn', 'cnp_interval_us': 1000000, 'cnp_dscp': 63, 'swift_base_delay_us': 5}
        self.assertEqual(self.set(1, *('%s=%s' % pair for pair in changed.items())), changed)
        self.assertEqual(self.set(1), changed)
        self.assertEqual(self.set(0), defaults)
        said = answered('doctor', '--config', self.daemons[1].config).stdout
        self.assertIn('%s: congestion control: dcqcn, after a restart none' % self.daemons[1].name, said)
        self.assertIn('%s: congestion control: none\n' % self.daemons[0].name, said)

    def test_doctor_of_one_cpu(self):
        """Programs have the affinity mask of the doctor: the workers of two daemons take turns on one CPU."""
        mask = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, mask)
        os.sched_setaffinity(0, {min(mask)})
        said = json.loads(answered('doctor', '--json', '--config', self.daemons[1].config).stdout)
        self.assertIn(('warn', '1 CPUs for'), [(each['level'], each['text'][:10]) for each in said['checks']
                                               if 'programs that may poll' in each['text']], said)


class Faults(Lab):
    """While it runs."""

    def test_rules_that_fired(self):
        self.good('impair', 'off', '--prefix', self.daemons[1].name)
        self.traffic()
        said = self.impair(1, '--psn', '0xfff=drop')
        self.assertEqual(said['rule_1'], 'rule=drop,psn=4095,count=1: fired 0 times, matched 0')
        self.assertNotIn('rule_2', said)
        self.wait(lambda: any(qp['retransmissions'] for qp in self.about(1, 'qps')[0]['qps']))
        psns = [qp['next_psn'] for qp in self.about(1, 'qps')[0]['qps']]
        rule = 'rule=drop,count=3,opcode=4'
        self.assertTrue(psns)
        said = self.daemons[1].ask('/softhca/impair,' + rule)
        self.wait(lambda: self.impair(1)['rule_2'].startswith(rule + ': fired 3 times, matched '))
        self.wait(lambda: self.about(1, 'status')[0]['status']['health'] != 'well')
        self.daemons[1].wait_log('sequence NAK')
        self.assertNotIn('rule_1', self.impair(1, 'off'))

    def impair(self, side, *words):
        return self.about(side, 'impair', *words)['impair']

    def drops_no_more(self):
        """A worker without a CPU may still have the former setting."""
        dropped = self.impair(1)['dropped']
        time.sleep(0.2)
        return self.impair(1)['dropped'] == dropped

    def test_impair(self):
        self.assertEqual(self.impair(1, '--show')['setting'], '')
        self.traffic()
        said = self.impair(1, '--drop', '0.05', '--delay', '3')
        self.assertEqual(said['setting'], 'drop=0.05,delay=3')
        self.wait(lambda: self.impair(1)['dropped'] > 10 and
                  self.impair(1)['delayed'] > 10)
        said = self.impair(1, '--psn', '0x10=drop')
        self.assertEqual(said['setting'], 'drop=0.05,delay=3 rule=drop,psn=16,count=1')
        self.wait(lambda: any(qp['retransmissions'] for qp in self.about(1, 'qps')[0]['qps']))
        self.assertEqual(self.impair(1, 'off')['setting'], '')
        self.wait(self.drops_no_more)
        for words in (('--drop', '2'), ('--drop', 'x'), ('--psn', '5'), ('--psn', '5=eat'),
                      ('--psn', '0x1000000=drop'), ('on',), ('--dir', 'in'), ('--qp', '5'),
                      ('--dir', 'up', '--drop', '1'), ('--qp', '0', '--drop', '1'),
                      ('off', '--qp', '5')):
            self.assertEqual(ctl('impair', *words).returncode, 2, words)
        self.stop()


    def test_named_frames(self):
        """The third answer of one QP by its name; the last faults are listed, and the capture marks it."""
        for daemon in self.daemons:
            self.good('impair', 'off', '--prefix', daemon.name)
        self.traffic()
        busy = max(self.about(0, 'qps')[0]['qps'], key=lambda each: each['rx_bytes'])
        number = self.impair(0).get('fired_1', '0:').split(':')[0]
        path = os.path.join(self.place, 'named.pcapng')
        capture = subprocess.Popen([CTL, 'capture', path, '--dir', 'out', '--prefix', self.daemons[0].name],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.wait(lambda: self.daemons[0].ask('/softhca/capture')['active'])
        said = self.impair(0, '--qp', hex(busy['qpn']), '--opcode', 'ack', '--nth', '3', '--drop')
        self.assertEqual(said['setting'], 'drop,opcode=ack,nth=3,qp=%u' % busy['qpn'])
        self.wait(lambda: 'fired 1 times' in self.impair(0)['rule_1'])
        said = self.impair(0)
        fired = [text for name, text in said.items() if re.fullmatch('fired_[0-9]+', name)][-1]
        self.assertRegex(fired, r'^\d+: drop by rule 1: rc-ack, PSN \d+, to QP 0x%x, frame \d+, [\d.]+ s ago$'
                         % busy['remote_qpn'])
        self.assertNotEqual(fired.split(':')[0], number)
        time.sleep(0.2)
        self.assertIn('fired 1 times', self.impair(0)['rule_1'])
        capture.send_signal(signal.SIGINT)
        capture.communicate(timeout=TIMEOUT_S)
        with open(path, 'rb') as file:
            self.assertEqual(file.read().count(b'drop by rule 1'), 1)
        self.good('impair', 'off', '--prefix', self.daemons[0].name)
        # one language: the same as a text, and with a probability
        text = 'drop=0.5,opcode=ack;drop,opcode=read-response,nth=9'
        said = self.impair(0, text + ';')
        self.assertEqual(said['setting'], text.replace(';', ' '))
        self.assertIn('rule_1', said)
        self.good('impair', 'off', '--prefix', self.daemons[0].name)
        self.bad(1, 'expected send, send-only', 'impair', '--opcode', 'foo', '--drop', '--prefix',
                 self.daemons[0].name)
        for words in (('--opcode', 'ack'), ('--nth', '3'), ('--psn', '5'), ('--drop', '--dup', '--nth', '1'),
                      ('--after', '5'), ('drop,opcode=foo,nth=1',), ('--check',), ('--check', 'drop=2')):
            self.assertEqual(ctl('impair', *words).returncode, 2, words)
        for good in text, text + ';', 'call=ibv_reg_mr,nth=3,errno=ENOMEM;', 'drop=0.01' + 502 * '0':
            self.assertEqual(ctl('impair', '--check', good).returncode, 0, good)
        for wrong in text + ';;', 'call=ibv_reg_mr,nth=3,errno=ENOMEM;;':
            self.assertEqual(ctl('impair', '--check', wrong).returncode, 2, wrong)
        self.bad(2, 'more than 511 characters', 'impair', '--check', 'drop=0.01' + 503 * '0')
        self.stop()

    def test_port_down(self):
        """No frame comes in or goes out meanwhile, and RC goes on after it."""
        self.traffic()
        before, downs = self.impair(0), 0

        def loses():
            nonlocal downs
            self.good('impair', '--port-down', '100', '--prefix', self.daemons[0].name)
            downs += 1
            end = time.monotonic() + 1
            while (now := self.impair(0))['down_rx_lost'] == before['down_rx_lost'] and time.monotonic() < end:
                time.sleep(0.02)
            return now['down_rx_lost'] > before['down_rx_lost']
        self.wait(loses)  # again if the sender had no CPU meanwhile
        self.assertIn(self.impair(0)['link_downs'] - before['link_downs'], range(1, downs + 1))
        sent = max(qp['tx_bytes'] for qp in self.about(1, 'qps')[0]['qps'])
        self.wait(lambda: max(qp['tx_bytes'] for qp in self.about(1, 'qps')[0]['qps']) > sent + (1 << 20))
        self.assertTrue(all(end.poll() is None for end in self.ends))
        self.stop()

    def test_held(self):
        """QPs of softhca-perf wait for their fault: the third answer to one of them is lost."""
        port = str(free_port())
        for daemon, words in zip(self.daemons, (('--once', '--server', port), (
                '--client', 'localhost:' + port, '--op', 'read', '--size', '64K', '--iters', '320',
                '--pause-before-traffic'))):
            self.good('impair', 'off', '--prefix', daemon.name)
            self.ends.append(subprocess.Popen([PERF, '--device', daemon.socket, *words], stdin=subprocess.PIPE,
                                              stdout=subprocess.PIPE, encoding='utf-8'))
        server, client = self.ends
        said = ''
        while 'goes on' not in said:
            line = client.stdout.readline()
            self.assertTrue(line, said)
            said += line
        qpn, peer = re.search('QP (0x[0-9a-f]+) <-> QP (0x[0-9a-f]+)', said).groups()
        said = self.impair(0, '--qp', peer, '--opcode', 'read-response', '--nth', '3', '--drop')
        self.assertIn('fired 0 times, matched 0', said['rule_1'])
        said = client.communicate('\n', timeout=TIMEOUT_S)[0]
        self.assertEqual((client.returncode, ended(server)), (0, 0), said)
        server.stdout.close()
        said = self.impair(0)
        self.assertIn('fired 1 times', said['rule_1'])
        fired = [text for name, text in said.items() if re.fullmatch('fired_[0-9]+', name)][-1]
        self.assertRegex(fired, '^[0-9]+: drop by rule 1: rc-read-response-[a-z]+, PSN [0-9]+, to QP ' + qpn)
        self.good('impair', 'off', '--prefix', self.daemons[0].name)

    def faults(self, side):
        said = self.impair(side)
        return {name: value for name, value in said.items()
                if isinstance(value, int) and value != 0 and not name.endswith('frames')}

    def test_impair_received(self):
        """Sender of the test drops nothing, its receiver does, and the other way round."""
        for daemon in self.daemons:
            self.good('impair', 'off', '--prefix', daemon.name)
        self.traffic()
        before = [self.faults(side) for side in (0, 1)]
        frames = self.impair(0)['in_frames']
        said = self.impair(0, '--dir', 'in', '--drop', '0.02', '--corrupt', '0.02', '--dup', '0.02',
                           '--reorder', '0.02', '--ecn', '0.02')
        self.assertEqual(said['in_setting'],
                         'drop=0.02,corrupt=0.02,dup=0.02,reorder=0.02,ecn=0.02')
        self.assertEqual(said['setting'], '')
        named = ('in_dropped', 'in_corrupted', 'in_duplicated', 'in_reordered', 'in_ecn_marked')
        self.wait(lambda: all(self.faults(0).get(name, 0) > before[0].get(name, 0) + 10
                              for name in named))
        # frames lost here are sent again there
        self.wait(lambda: any(qp['retransmissions'] for qp in self.about(1, 'qps')[0]['qps']))
        self.good('impair', 'off', '--dir', 'in', '--prefix', self.daemons[0].name)
        after = self.faults(0)
        for name in ('dropped', 'corrupted', 'duplicated', 'reordered', 'ecn_marked'):
            self.assertEqual(after.get(name, 0), before[0].get(name, 0))
        self.assertEqual(self.faults(1), before[1])
        counters = self.about(0, 'counters')['counters']
        self.assertEqual(counters['fault_in_dropped'], after['in_dropped'])
        said = self.impair(0)
        self.assertEqual((said['in_setting'], said['in_dropped']), ('', after['in_dropped']))
        self.wait(lambda: self.impair(0)['in_frames'] > frames + 1000)
        # of one QP only: one that nothing is sent to has no faults
        qps = [each['qpn'] for each in self.about(0, 'qps')[0]['qps']]
        busy = max(self.about(0, 'qps')[0]['qps'], key=lambda each: each['rx_bytes'])
        self.bad(1, 'there is no QP', 'impair', '--dir', 'in', '--drop', '1', '--qp',
                 next(n for n in range(2, 99) if n not in qps), '--prefix', self.daemons[0].name)
        self.good('impair', '--dir', 'both', '--drop', '0.05', '--qp', busy['qpn'], '--prefix',
                  self.daemons[0].name)
        for name in ('in_dropped', 'dropped'):
            start = self.faults(0).get(name, 0)
            self.wait(lambda at=name, low=start: self.faults(0).get(at, 0) > low + 5)
        self.good('impair', 'off', '--prefix', self.daemons[0].name)
        self.stop()


def blocks(data):
    """[(direction, length on the wire, bytes)] of a pcapng file."""
    at, frames = 0, []
    while at < len(data):
        kind, total = struct.unpack_from('<II', data, at)
        assert struct.unpack_from('<I', data, at + total - 4)[0] == total
        if kind == 6:
            kept, length = struct.unpack_from('<II', data, at + 20)
            way = struct.unpack_from('<I', data, at + 28 + (kept + 3) // 4 * 4 + 4)[0]
            frames.append((way, length, data[at + 28:at + 28 + kept]))
        at += total
    return frames


class Page(Case):
    def test_page(self):
        with open(PAGE, encoding='utf-8') as file:
            text = file.read()
        said = self.good('--help')
        for command in re.findall(r'^  ([a-z]+)', said, re.M):
            self.assertRegex(text, r'(?m)^\.It Cm %s\b' % command)
        if shutil.which('mandoc'):
            lint = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', PAGE],
                                  stdout=subprocess.PIPE, encoding='utf-8', timeout=TIMEOUT_S,
                                  check=False)
            self.assertEqual((lint.returncode, lint.stdout), (0, ''))


class Stopped(Case):
    """A daemon that does not run is named, and soon."""

    def test_stopped(self):
        with folder() as place:
            daemon = Daemon(DAEMON, place, 'shc%ds' % os.getpid(), 'net_null0', '10.66.0.1/24')
            self.addCleanup(daemon.close)
            daemon.start()
            daemon.suspend()
            words = ('--prefix', daemon.name)
            try:
                said = '%s (process %d) does not answer' % (daemon.name, daemon.process.pid)
                run = ctl('doctor', *words)
                self.assertEqual(run.returncode, 1)
                self.assertIn(said + ' within 1.5 s: it is stopped; resume it', run.stdout)
                self.assertIn('kill -CONT %d' % daemon.process.pid, run.stdout)
                # the longer it takes the more connections are not accepted: then its number is
                # unknown
                for command in ('status', 'counters', 'top', 'qps'):
                    self.bad(1, 'does not answer', command, *words)
            finally:
                daemon.resume()
            self.assertIn('well', self.good('status', *words))


class OfPerf(Case):
    """Embedded HCAs with traffic; two of them in one process."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.env = {'XDG_RUNTIME_DIR': place.name}
        self.process = subprocess.Popen(
            [PERF, '--telemetry', '--no-huge', '--qps', '24', '--duration', '600'],
            env=dict(os.environ, **self.env), stdout=subprocess.DEVNULL)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end and not self.busy():
            time.sleep(0.1)

    def busy(self):
        run = ctl('qps', '--json', '--prefix', 'softhca', env=self.env)
        return run.returncode == 0 and any(
            len(hca['qps']) == 24 and all(qp['tx_packets'] for qp in hca['qps'])
            for hca in json.loads(run.stdout))

    def about(self, *words):
        return self.json(*words, '--prefix', 'softhca', env=self.env)

    def top_moves(self, hca):
        top = self.about('top', '--once', '--hca', hca, '--qps', '5')
        self.assertEqual(len(top['qps']), 5)
        rates = [qp['bytes_per_s'] for qp in top['qps']]
        self.assertEqual(rates, sorted(rates, reverse=True))
        busy = {stage['stage']: stage['busy_share'] for stage in top['stages']}
        return top['port']['port_xmit_data'] > 0 and busy['encap'] > 0

    def counters_move(self, hca):
        watched = self.good('counters', '--watch', '--count', '2', '--interval', '0.2', '--json', '--hca', hca,
                            '--prefix', 'softhca', env=self.env).splitlines()
        self.assertEqual(len(watched), 2)
        return all(json.loads(line)['rates'].get('sent_pkts', 0) > 0 for line in watched)

    def test_all(self):
        a, b = self.about('qps')
        self.assertEqual(len(a['qps']), 24)
        self.assertEqual({qp['qpn'] for qp in a['qps']}, {qp['remote_qpn'] for qp in b['qps']})
        self.assertEqual({qp['state'] for qp in a['qps'] + b['qps']}, {'RTS'})
        mrs, _ = self.about('mrs')
        keys = [mr['key'] for mr in mrs['mrs']]
        self.assertGreater(len(keys), 48)  # more than one answer holds
        self.assertIn('local_read,local_write', {mr['rights'][:22] for mr in mrs['mrs']})
        self.assertEqual(len(set(keys)), len(keys))
        self.bad(1, 'choose one with --hca', 'counters', '--prefix', 'softhca', env=self.env)
        self.wait(lambda: self.top_moves(a['hca']))  # the process may have no CPU meanwhile
        self.wait(lambda: self.counters_move(a['hca']))
        for name in VIEWS:
            self.assertIn(a['hca'], self.good(name, '--prefix', 'softhca', env=self.env))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
