#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons and a network that misbehaves between them: both ends name its faults.

test_network.py SOFTHCA-CTL SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import time
import unittest

from daemon import Daemon, Namespaces, Skip, ctl, die_with_parent, ended, folder, free_port, ip

CTL, DAEMON, PERF = [os.path.abspath(word) for word in sys.argv[1:4]]
TIMEOUT_S = 240  # seconds, on a busy machine: a longer run counts as hung
RECEIVER, SENDER = 0, 1
ENDS = 'to-receiver', 'to-sender'  # of the relay
RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'relay.py')
TO_HOST, TO_PEERS = 'of the frames to this host', 'of the frames to peers'


class Page(unittest.TestCase):
    def test_sections(self):
        """docs/network.md has a section for each finding, and no other."""
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
        with open(os.path.join(root, 'src/finding/finding.c'), encoding='utf-8') as file:
            names = set(re.findall(r'add\(l, "([a-z-]+)"|FINDING_\w+, "([a-z-]+)"', file.read()))
        with open(os.path.join(root, 'docs/network.md'), encoding='utf-8') as file:
            sections = re.findall('^## ([a-z].*)$', file.read(), re.M)
        self.assertEqual(sorted(sections), sorted(a or b for a, b in names))


class Pair(unittest.TestCase):
    """Daemon 1 sends to daemon 0."""

    def open(self, device, prefix=lambda side: (), part=None):
        """device, prefix: of a side"""
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.daemons = []
        for side in (RECEIVER, SENDER):
            d = Daemon(DAEMON, self.place, 'shw%d%s' % (os.getpid(), 'ab'[side]), device(side),
                       '10.67.0.%d/24' % (side + 1), part(side) if part else {}, prefix=prefix(side))
            self.addCleanup(d.close)
            self.daemons.append(d.start())
        for d in self.daemons:
            d.wait_log('link up')

    def perf(self, *words, status=0, mtu='1024'):
        """Output of a client of the sender, whose server is at the receiver."""
        port = str(free_port())
        server = subprocess.Popen([PERF, '--device', self.daemons[RECEIVER].socket, '--once',
                                   '--timeout', str(TIMEOUT_S), '--server', port],
                                  stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        self.addCleanup(ended, server)
        self.addCleanup(server.kill)
        run = subprocess.run([PERF, '--device', self.daemons[SENDER].socket, '--client',
                              '127.0.0.1:' + port, '--mtu', mtu, '--ack-timeout', '18', *words],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                             timeout=TIMEOUT_S, check=False)
        self.assertEqual(run.returncode, status, run.stdout)
        return run.stdout

    def running(self, *words):
        """A client that sends small messages one by one until the test ends."""
        port = str(free_port())
        server = subprocess.Popen([PERF, '--device', self.daemons[RECEIVER].socket, '--once',
                                   '--timeout', str(TIMEOUT_S), '--server', port],
                                  stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        client = subprocess.Popen([PERF, '--device', self.daemons[SENDER].socket, '--client',
                                   '127.0.0.1:' + port, '--op', 'write', '--size', '64', '--depth', '1',
                                   '--duration', '100', *words],
                                  stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        for process in server, client:
            self.addCleanup(ended, process)
            self.addCleanup(process.kill)
        return client

    def still_runs(self, client):
        """It runs; between two looks at the counters it has the CPU."""
        self.assertIsNone(client.poll())
        time.sleep(0.02)

    def impair(self, words):
        self.assertNotIn('error', self.daemons[SENDER].ask('/softhca/impair,' + words))

    def findings(self, side):
        """{finding: text} of the doctor; each names its section and the daemon."""
        name = self.daemons[side].name
        run = ctl(CTL, 'doctor', '--json', '--prefix', name)
        found = {}
        for check in json.loads(run.stdout)['checks']:
            if check['check'] == 'network':
                section, more = check['fix'].split(' in docs/network.md; ')
                self.assertIn(name, more)
                self.assertEqual('softhca-ctl ping PEER' in more, section == 'path-mtu')
                found[section] = check['text']
        return found

    def status(self, side):
        run = ctl(CTL, 'status', '--json', '--prefix', self.daemons[side].name)
        return json.loads(run.stdout)[0]['status']['health']

    def told(self, command):
        run = ctl(CTL, command, '--json', '--prefix', self.daemons[SENDER].name)
        return json.loads(run.stdout)

    def after(self, faults, *words):
        """Findings of both ends after traffic on a bad network, and the lines of softhca-perf."""
        if faults:
            self.impair(faults)
        said = self.perf('--op', 'write', '--size', '4K', '--depth', '16', '--post-list', '1', '--iters', '1500', *words)
        self.assertLessEqual(int(self.daemons[SENDER].ask('/softhca/hca/counters')['req_cqe_error']), 0)
        found = [self.findings(side) for side in (RECEIVER, SENDER)]
        for side in (RECEIVER, SENDER):
            worst = next(iter(found[side].values()), ': well').split(': ', 1)[1]
            self.assertEqual(self.status(side), worst)
        return found, said

    def share(self, text, least, most):
        """The percentage that a text names."""
        percent = float(re.search(r'([0-9.e-]+) %', text).group(1))
        self.assertTrue(least < percent < most, text)


class Network(Pair):
    def setUp(self):
        self.open(lambda side: 'net_memif0,role=%s,socket=%s/wire' % (('server', 'client')[side], self.place),
                  part=lambda side: {'port': {'mac': '02:00:00:67:00:0%d' % (side + 1)}})

    def test_good(self):
        (receiver, sender), said = self.after('', '--ack-timeout', '21')
        self.assertEqual((receiver, sender), ({}, {}))
        self.assertNotIn('the network', said)

    def test_ecn(self):
        (receiver, sender), _ = self.after('ecn=0.3', '--ack-timeout', '21')
        self.assertEqual((receiver, sender), ({}, {}))

    def test_lost(self):
        (receiver, sender), said = self.after('drop=0.01')
        self.assertEqual(list(receiver), ['lost'])
        self.assertIn(TO_HOST, receiver['lost'])
        self.share(receiver['lost'], 0.4, 2.5)
        self.assertIn(list(sender), (['lost-out'], ['missing-out']))
        text = next(iter(sender.values()))
        self.assertIn(TO_PEERS, text)
        self.share(text, 0.4, 2.5)
        self.assertIn(TO_PEERS, said)

    def test_answers_lost(self):
        """READ responses: the requester receives them."""
        self.daemons[RECEIVER].ask('/softhca/impair,drop=0.01')
        self.perf('--op', 'read', '--size', '4K', '--depth', '16', '--post-list', '1', '--iters', '1500')
        found = self.findings(SENDER)
        self.assertIn(TO_HOST, found['lost'])
        self.share(found['lost'], 0.4, 2.5)

    def test_reordered(self):
        (receiver, sender), said = self.after('reorder=0.02')
        self.assertEqual(list(receiver), ['reordered'])
        self.share(receiver['reordered'], 0.2, 4)
        self.assertRegex(receiver['reordered'], r'by [0-9]+\.[0-9] on average')
        self.assertIn(list(sender), (['overtaken-out'], ['missing-out']))
        self.assertNotIn('loses', said)

    def test_doubled(self):
        (receiver, sender), _ = self.after('dup=0.05')
        self.assertEqual(list(receiver), ['doubled'])
        self.share(receiver['doubled'], 1.5, 8)
        self.assertIn(list(sender), ([], ['doubled-answers']))

    def test_damaged(self):
        for faults, name in (('corrupt=0.02', 'damaged'), ('truncate=0.02', 'cut')):
            (receiver, sender), _ = self.after(faults)
            self.assertIn(name, receiver)
            self.assertNotIn('lost', receiver)
            self.assertNotIn('reordered', receiver)
            self.assertTrue(sender)

    def test_round_trips(self):
        """10 ms each way, in qps and top; nothing is wrong."""
        self.daemons[RECEIVER].ask('/softhca/impair,delay=10000')
        self.impair('delay=10000')
        client = self.running('--ack-timeout', '21')
        qp = {}
        while qp.get('rtt_p50_ns') is None or qp['tx_packets'] < 20:
            self.still_runs(client)
            qp = self.told('qps')[0]['qps'] or [{}]
            qp = qp[0]
        self.assertGreaterEqual(qp['rtt_min_ns'], 20000000)
        self.assertLessEqual(qp['rtt_min_ns'], qp['rtt_p50_ns'])
        self.assertLessEqual(qp['rtt_p50_ns'], qp['rtt_p99_ns'])
        top = json.loads(subprocess.run(
            [CTL, 'top', '--once', '--json', '--interval', '0.1', '--prefix', self.daemons[SENDER].name],
            timeout=TIMEOUT_S, stdout=subprocess.PIPE, encoding='utf-8', check=True).stdout)
        self.assertGreaterEqual(top['qps'][0]['rtt_p50_ns'], 20000000)
        self.assertEqual((self.findings(SENDER), self.findings(RECEIVER)), ({}, {}))

    def test_stopped(self):
        """A stopped peer is not a network that loses frames. Seven repetitions are
        four seconds."""
        client = self.running('--ack-timeout', '17')
        counters = self.daemons[SENDER].ask
        while counters('/softhca/hca/counters')['req_packets'] < 2000:
            self.still_runs(client)
        self.daemons[RECEIVER].suspend()
        while counters('/softhca/hca/counters')['local_ack_timeout_err'] < 3:
            self.still_runs(client)
        self.daemons[RECEIVER].resume()
        before = counters('/softhca/hca/counters')['req_packets']
        while counters('/softhca/hca/counters')['req_packets'] < before + 2000:
            self.still_runs(client)
        self.assertEqual(list(self.findings(SENDER)), ['timeouts'])
        self.assertEqual(self.findings(RECEIVER), {})


class Veth(Pair):
    """Over packet sockets of the kernel."""

    def setUp(self):
        try:
            self.spaces = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(self.spaces.close)
        self.open(lambda side: 'net_af_packet0,iface=wire', self.spaces.prefix)

    def count(self, side, command, name):
        return self.daemons[side].ask(command)[name]

    def test_missed(self):
        """Drops of the receiver's socket while its daemon does not run are counted by its port."""
        client = self.running('--service', 'uc', '--depth', '64', '--size', '4K')

        def sent():
            return self.count(SENDER, '/softhca/hca/counters', 'sent_pkts')

        while sent() < 2000:
            self.still_runs(client)
        self.daemons[RECEIVER].suspend()
        before = sent()
        while sent() < before + 8000:
            self.still_runs(client)
        self.daemons[RECEIVER].resume()
        client.kill()
        client.wait()
        # until the daemons have taken all that waits: each frame is received or missed
        lost, missed, rests = 0, -1, time.monotonic()
        while time.monotonic() < rests + (0.4 if lost <= missed <= lost + 50 else TIMEOUT_S):
            was = lost, missed
            lost = sent() - self.count(RECEIVER, '/softhca/hca/counters', 'rcvd_pkts')
            missed = self.count(RECEIVER, '/softhca/port/counters', 'port_rcv_missed')
            if was != (lost, missed):
                rests = time.monotonic()
            time.sleep(0.05)
        self.assertGreater(missed, 100)
        self.assertTrue(lost <= missed <= lost + 50, (lost, missed))  # some are not RoCE
        self.assertEqual(next(iter(self.findings(RECEIVER))), 'missed')


class Relayed(Pair):
    """Packet sockets again, with a relay in a network namespace in the middle."""

    def setUp(self):
        try:
            self.spaces = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(self.spaces.close)
        self.middle = 'sh%dm' % os.getpid()
        ip('netns', 'add', self.middle)
        self.addCleanup(ip, 'netns', 'del', self.middle)
        for name, end in zip(self.spaces.names, ENDS):
            self.spaces.run(name, 'ip', 'link', 'del', 'wire', check=False)
            ip('link', 'add', 'wire', 'netns', name, 'type', 'veth', 'peer', 'name', end, 'netns', self.middle)
            for space, link in (name, 'wire'), (self.middle, end):
                self.spaces.run(space, 'sysctl', '-q', '-w', 'net.ipv6.conf.%s.disable_ipv6=1' % link)
                self.spaces.run(space, 'ip', 'link', 'set', link, 'mtu', '4200', 'up')

    def between(self, kind, amount):
        """Daemons with a bad network between them."""
        relay = subprocess.Popen(['ip', 'netns', 'exec', self.middle, sys.executable, RELAY, *ENDS, kind,
                                  str(amount)], stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        self.addCleanup(relay.stdout.close)
        self.addCleanup(relay.wait)
        self.addCleanup(relay.kill)
        self.assertEqual(relay.stdout.readline(), b'ready\n')
        self.open(lambda side: 'net_af_packet0,iface=wire', self.spaces.prefix)

    def traffic(self):
        self.perf('--op', 'write', '--size', '4K', '--depth', '8', '--post-list', '1', '--iters', '400')
        return self.findings(RECEIVER), self.findings(SENDER)

    def test_lost(self):
        self.between('lose', 0.02)
        receiver, sender = self.traffic()
        self.assertEqual(list(receiver), ['lost'])
        self.assertIn(list(sender), (['lost-out'], ['missing-out']))

    def test_reordered(self):
        self.between('reorder', 0.05)
        receiver, sender = self.traffic()
        self.assertEqual(list(receiver), ['reordered'])
        self.assertIn(list(sender), (['overtaken-out'], ['missing-out']))

    def test_doubled(self):
        self.between('double', 0.05)
        receiver, sender = self.traffic()
        self.assertEqual(list(receiver), ['doubled'])
        self.assertIn(list(sender), ([], ['doubled-answers']))

    def test_path_mtu(self):
        """Small messages pass, large ones never."""
        self.between('mtu', 1500)
        small = '--op', 'write', '--size', '64', '--depth', '1', '--duration', '0.1'
        self.perf(*small, mtu='4096')
        self.assertEqual(self.findings(SENDER), {})
        self.perf('--op', 'write', '--size', '4K', '--depth', '4', '--iters', '64', '--ack-timeout', '12',
                  mtu='4096', status=1)
        self.perf(*small, mtu='4096')
        found = self.findings(SENDER)
        self.assertEqual(list(found), ['path-mtu'])
        self.assertIn('small frames pass', found['path-mtu'])
        self.assertNotIn('lost', self.findings(RECEIVER))
        run = ctl(CTL, 'ping', '10.67.0.%d' % (RECEIVER + 1), '--json', '--count', '2', '--prefix',
                  self.daemons[SENDER].name)
        told = json.loads(run.stdout)['ping']
        self.assertEqual((told['received'], told['passed'], told['failed']), (2, 1024, 2048))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
