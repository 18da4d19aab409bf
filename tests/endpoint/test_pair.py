#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons joined by memif or by a veth pair between network namespaces, with client processes on both:
every operation of each service verified, links that go down, peers that die and return, with ping and TCP at
the same time.

test_pair.py SOFTHCAD TALK [unittest arguments]
"""
import concurrent.futures
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from daemon import Daemon, Namespaces, READY_S, Skip, folder

BINARY, TALK = [os.path.abspath(word) for word in sys.argv[1:3]]
MACS = ('02:00:00:66:00:01', '02:00:00:66:00:02')
IPS = ('10.66.0.1', '10.66.0.2')
# Operations that each client must have verified: names of talk.h
DATAGRAM = ['SEND', 'SEND_IMM', 'SEND_INLINE', 'SEND_SGES']
UNRELIABLE = DATAGRAM + ['WRITE', 'WRITE_IMM', 'WRITE_INLINE', 'WRITE_SGES']
RELIABLE = UNRELIABLE + ['READ', 'READ_SGES', 'FETCH_ADD', 'CMP_SWAP']
WINDOWS = ['BIND_MW', 'MW_WRITE', 'MW_UNBIND', 'MW_REFUSED',
           'BIND_MW2', 'MW2_WRITE', 'LOCAL_INV', 'MW2_REFUSED']
RC = RELIABLE + WINDOWS + ['MW_READ', 'MW2_READ', 'SEND_INV']
OPERATIONS = {
    'rc': RC,
    'uc': UNRELIABLE + WINDOWS,
    'ud': DATAGRAM,
    'srq': RC + ['XRC_' + name for name in RELIABLE],
}
GID_IPV4 = 1
FAULTS = ('dropped', 'duplicated', 'reordered', 'corrupted')
TURNS = int(os.environ.get('SOFTHCA_KILLS', '4'))
PIPELINES = int(os.environ.get('SOFTHCA_PIPELINES', '1'))

TRANSFER = '''
import hashlib, socket, sys
n = int(sys.argv[3])
block = bytes(range(256)) * 256
if sys.argv[1] == 'serve':
    s = socket.create_server((sys.argv[2], 5001))
    s.settimeout(240)
    c, _ = s.accept()
    c.settimeout(240)
    h = hashlib.sha256()
    left = n
    while left:
        data = c.recv(min(left, 65536))
        if not data:
            sys.exit('short by %d' % left)
        h.update(data)
        left -= len(data)
    c.sendall(h.digest())
else:
    import time
    end = time.monotonic() + 240
    while True:
        try:
            c = socket.create_connection((sys.argv[2], 5001), 5)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    c.settimeout(240)
    h = hashlib.sha256()
    left = n
    while left:
        data = block[:left]
        c.sendall(data)
        h.update(data)
        left -= len(data)
    sys.exit(0 if c.recv(32) == h.digest() else 'digest differs')
'''


class Talk:
    """A conversation: one process at each daemon."""

    def __init__(self, place, daemons, name, service, gid=GID_IPV4, seconds=0.1, events=False,
                 timeout=17, port_returns=False):
        meet = os.path.join(place, 'meet-' + name)
        self.name = '%s (%s)' % (name, service)
        self.service = service
        self.verified = []
        self.lost = 0
        self.ends = []
        for daemon, side in zip(daemons, ('--listen', '--connect')):
            command = [TALK, '--device', daemon.socket, '--meet', meet, side, '--type', service,
                       '--gid', str(gid), '--seconds', str(seconds), '--ack-timeout', str(timeout)]
            command += (['--events'] if events else []) + (['--port-returns'] if port_returns else [])
            self.ends.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                              encoding='utf-8'))

    def finish(self, ends=None):
        """[(exit status, output)] of both ends, or of these."""
        results = []
        for end in ends or self.ends:
            try:
                text = end.communicate(timeout=READY_S)[0]
            except subprocess.TimeoutExpired:
                end.kill()
                text = end.communicate()[0] + '\nstill running: killed'
            results.append((end.returncode, text))
        return results

    def good(self, case):
        """Rounds of both ends, after both went well and verified every operation."""
        rounds = []
        for status, text in self.finish():
            case.assertEqual(status, 0, self.name + ': ' + text)
            verified = dict(re.findall(r'\b([A-Z][A-Z0-9_]+) (\d+)', text))
            missing = [name for name in OPERATIONS[self.service] if name not in verified]
            case.assertEqual(missing, [], self.name + ': ' + text)
            self.verified.append({name: int(n) for name, n in verified.items()})
            self.lost += number(text, 'lost')
            rounds.append(number(text, 'rounds'))
        case.assertGreater(min(rounds), 0)
        # losses allowed for unreliable services on a busy machine
        case.assertLess(self.lost, 5 + min(rounds), self.name)
        return min(rounds)

    def said(self):
        """Verified operations of both ends, in lines."""
        lines = ['%s: messages lost and sent again: %d; verified at either end:' %
                 (self.name, self.lost)]
        for names in (UNRELIABLE + RELIABLE[len(UNRELIABLE):], RC[len(RELIABLE):],
                      OPERATIONS['srq'][len(RC):]):
            counts = ['%s %s' % (name, '/'.join(str(v[name]) for v in self.verified))
                      for name in names if all(name in v for v in self.verified)]
            lines += ['    ' + ' '.join(counts)] if counts else []
        return '\n'.join(lines)

    def end(self):
        """Both ends finish their round. One that has just begun has not blocked the signal yet."""
        deadline = time.monotonic() + READY_S
        while self.ends[0].poll() is None and not blocks_sigterm(self.ends[0].pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.ends[0].terminate()

    def running(self):
        return all(end.poll() is None for end in self.ends)

    def close(self):
        for end in self.ends:
            if end.poll() is None:
                end.kill()
            end.wait()
            end.stdout.close()


def blocks_sigterm(pid):
    with open('/proc/%d/status' % pid, encoding='ascii') as file:
        blocked = re.search(r'SigBlk:\t(\w+)', file.read()).group(1)
    return int(blocked, 16) >> (signal.SIGTERM - 1) & 1 != 0


def number(text, what):
    return int(re.search(r'\b%s (\d+)' % what, text).group(1))


def pipelines(n):
    return {'hca': {'pipelines': n}, 'memory': {'size_mb': 192 + 64 * n}}


class Case(unittest.TestCase):
    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.daemons = []
        self.spaces = None

    def namespaces(self):
        try:
            self.spaces = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(self.spaces.close)

    def daemon(self, side, device, *parts):
        d = Daemon(BINARY, self.place, 'shp%d%s' % (os.getpid(), 'ab'[side]), device,
                   IPS[side] + '/24', {'port': {'mac': MACS[side]}}, pipelines(PIPELINES), *parts,
                   prefix=self.spaces.prefix(side) if self.spaces else ())
        self.addCleanup(d.close)
        return d

    def memif(self, *parts):
        wire = 'socket=%s/wire' % self.place
        self.daemons = [self.daemon(side, 'net_memif0,role=%s,%s' % (role, wire), *parts)
                        for side, role in enumerate(('server', 'client'))]

    def veth(self, *parts):
        self.namespaces()
        for side in (0, 1):
            self.spaces.run(self.spaces.names[side], 'ip', 'link', 'set', 'wire', 'address',
                            MACS[side])
        self.daemons = [self.daemon(side, 'net_af_packet0,iface=wire', *parts)
                        for side in (0, 1)]

    def start(self):
        for d in self.daemons:
            d.start()
        for d in self.daemons:
            d.wait_log('link up')

    def wait_traffic(self):
        """Clients of both daemons are connected and talk."""
        def sent():
            return [d.ask('/softhca/hca/counters')['sent_pkts'] for d in self.daemons]
        deadline, before = time.monotonic() + READY_S, sent()
        while not all(now > was for now, was in zip(sent(), before)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def talk(self, name, service, **options):
        t = Talk(self.place, self.daemons, name, service, **options)
        self.addCleanup(t.close)
        return t

    def stop(self):
        for d in reversed(self.daemons):
            self.assertEqual(d.stop(), 0, d.text())
            self.assertNotIn('error', d.text(), d.text())

    def four_each(self, **options):
        talks = [self.talk(service, service, **options) for service in OPERATIONS]
        self.all_good(talks)

    def all_good(self, talks):
        rounds = {t.name: t.good(self) for t in talks}
        print('\nrounds:', rounds, file=sys.stderr)
        for t in talks:
            print(t.said(), file=sys.stderr)


class Memif(Case):
    def test_four_clients_each(self):
        self.memif()
        self.start()
        self.four_each()
        self.stop()

    def test_link_local(self):
        """GID 0: next hops found by neighbour discovery of the daemons."""
        self.memif()
        self.start()
        self.talk('v6', 'rc', gid=0).good(self)
        self.stop()

    def test_events(self):
        self.memif()
        self.start()
        self.talk('sleeping', 'rc', events=True).good(self)
        self.stop()

    def test_peer_returns(self):
        """A daemon is killed under traffic and started again: new connections work at once."""
        self.memif()
        self.start()
        for turn in range(TURNS):
            victim = turn % 2
            survivor = self.daemons[1 - victim]
            t = self.talk('doomed%d' % turn, 'rc', seconds=60)
            self.wait_traffic()
            self.assertEqual([end.poll() for end in t.ends], [None, None])
            ups = survivor.text().count('link up')
            start = time.monotonic()
            self.daemons[victim].stop(signal.SIGKILL)
            self.assertNotEqual(t.ends[victim].wait(240), 0)
            ended = time.monotonic() - start
            t.close()  # a client that only waits to receive never learns that its peer is gone
            self.daemons[victim].start()
            self.wait_back(survivor, ups)
            print('its client ended after %.2f s, link back after %.2f s' %
                  (ended, time.monotonic() - start), file=sys.stderr)
            self.talk('again%d' % turn, 'rc').good(self)
        self.stop()

    def wait_back(self, survivor, ups):
        """The link is up again; on a machine without time the daemon may not have seen it go."""
        start = time.monotonic()
        while survivor.text().count('link up') <= ups:
            waited = time.monotonic() - start
            if waited > 5 and all(d.ask('/softhca/endpoint')['link'] == 1 for d in self.daemons):
                return
            self.assertLess(waited, 240, survivor.text())
            time.sleep(0.02)

    def test_end_with_clients(self):
        """Clients of a daemon that ends get an error and fail; they do not hang."""
        self.memif()
        self.start()
        t = self.talk('late', 'rc', seconds=600, timeout=15)
        self.wait_traffic()
        self.assertEqual(self.daemons[0].stop(), 0, self.daemons[0].text())
        listener, = t.finish(t.ends[:1])  # the other end may wait to receive
        self.assertEqual(listener[0], 1, listener[1])
        self.assertEqual(self.daemons[1].stop(), 0, self.daemons[1].text())


def pcapng(path):
    """[(direction, frame)] of a capture."""
    with open(path, 'rb') as file:
        data = file.read()
    at, frames = 0, []
    while at < len(data):
        kind, total = struct.unpack_from('<II', data, at)
        assert struct.unpack_from('<I', data, at + total - 4)[0] == total, 'block of %d' % total
        if kind == 6:
            length = struct.unpack_from('<I', data, at + 20)[0]
            options = at + 28 + (length + 3) // 4 * 4
            code, size, way = struct.unpack_from('<HHI', data, options)
            assert (code, size) == (2, 4)
            frames.append((way, data[at + 28:at + 28 + length]))
        at += total
    return frames


def wakes_of(pid):
    """How often the threads of a process have slept."""
    count = 0
    for thread in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/status' % (pid, thread), encoding='ascii') as file:
            count += sum(int(line.split()[1]) for line in file if line.startswith('voluntary_ctxt'))
    return count


class Admin(Case):
    def setUp(self):
        super().setUp()
        self.memif()
        self.start()

    def test_idle(self):
        """Daemons at rest wake about 20 times a second, most of them to look at the link."""
        pids = [d.process.pid for d in self.daemons]
        end = time.monotonic() + READY_S
        while True:  # after announcements, and alarms that grow
            before = [wakes_of(pid) for pid in pids]
            time.sleep(2)
            wakes = [wakes_of(pid) - was for pid, was in zip(pids, before)]
            if max(wakes) < 90:
                break
            self.assertLess(time.monotonic(), end, wakes)
        self.assertEqual([d.ask('/softhca/hca/counters')['wake_missed'] for d in self.daemons], [0, 0])
        self.stop()

    def test_see(self):
        t = self.talk('seen', 'rc', seconds=600)
        a = self.daemons[0]
        end = time.monotonic() + READY_S
        while a.ask('/softhca/hca/counters')['sent_pkts'] == 0 and time.monotonic() < end:
            time.sleep(0.05)
        shown = a.ask('/softhca/endpoint')
        self.assertEqual((shown['link'], shown['roce_mtu'], shown['mac']), (1, 4096, MACS[0]))
        clients = a.ask('/softhca/clients')
        self.assertEqual([c['pid'] for c in clients.values()], [t.ends[0].pid])
        self.assertGreater(a.ask('/softhca/hca/counters')['sent_pkts'], 0)
        self.assertEqual(a.ask('/softhca/usage')['clients'], 1)
        self.assertEqual(a.ask('/softhca/hca/list'), [a.name])
        t.end()
        t.good(self)
        end = time.monotonic() + READY_S
        while (used := a.ask('/softhca/usage'))['clients'] != 0 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual({used[key] for key in ('clients', 'qps', 'cqs', 'mrs', 'pds', 'channels',
                                                'tx_mbufs', 'records', 'full_records')}, {0}, used)
        self.assertEqual(a.ask('/softhca/clients'), {})
        self.assertEqual(a.ask('/softhca/ipc')['clients_accepted'], 1)
        self.assertGreater(a.ask('/softhca/kernif')['gids_set'], 0)
        self.stop()

    def test_capture(self):
        """Both directions, and other protocols, while traffic runs."""
        path = os.path.join(self.place, 'capture.pcapng')
        a = self.daemons[0]
        self.assertIn('is no capture', a.ask('/softhca/capture,relative')['error'])
        self.assertIn('No such file', a.ask('/softhca/capture,/no/such/folder/x')['error'])
        self.assertEqual(a.ask('/softhca/capture,' + path)['active'], 1)
        self.talk('captured', 'rc', seconds=0.5).good(self)
        frames = a.ask('/softhca/capture,off')['frames']
        seen = pcapng(path)
        self.assertEqual(len(seen), frames)
        macs = [bytes.fromhex(mac.replace(':', '')) for mac in MACS]
        for way, frame in seen:
            self.assertEqual(frame[6:12], macs[0 if way == 2 else 1])
        for way in (1, 2):
            roce = [f for w, f in seen if w == way and f[12:14] == b'\x08\x00' and
                    f[36:38] == b'\x12\xb7']
            self.assertGreater(len(roce), 10)
        self.stop()


class Impair(Admin):
    test_see = test_capture = None

    def test_impair(self):
        """Faults are injected while traffic runs, and data is right nevertheless."""
        a = self.daemons[0]
        for bad in ('drop=2', 'drop=x', 'drop', 'nothing=1', 'rule=melt', 'rule=drop,psn=99999999',
                    'delay=-1', 'delay_us=1', ',', 'drop=0.1,'):
            self.assertEqual(list(a.ask('/softhca/impair,' + bad)), ['error'], bad)
        for d in self.daemons:
            d.ask('/softhca/impair,drop=0.03,dup=0.03,reorder=0.03,corrupt=0.03')
        said = {}
        for turn in range(10):
            self.talk('rough%d' % turn, 'rc', seconds=1, timeout=14).good(self)
            said = a.ask('/softhca/impair')
            if all(said[fault] > 0 for fault in FAULTS):
                break
        print('impaired: %s' % said, file=sys.stderr)
        for fault in FAULTS:
            self.assertGreater(said[fault], 0)
        for d in self.daemons:
            d.ask('/softhca/impair,off')
        a.ask('/softhca/impair,rule=drop,opcode=6,nth=1,count=3')
        before = a.ask('/softhca/impair')
        self.talk('ruled', 'rc', seconds=0.5, timeout=16).good(self)
        # three in each queue that the frames leave by
        self.assertIn(a.ask('/softhca/impair')['dropped'] - before['dropped'],
                      [3 * n for n in range(1, PIPELINES + 1)])
        a.ask('/softhca/impair,off')
        before = a.ask('/softhca/impair')
        self.talk('smooth', 'rc', seconds=0.5).good(self)
        after = a.ask('/softhca/impair')
        self.assertEqual(after['dropped'] - before['dropped'], 0)
        self.stop()


class Alone(Case):
    """Both ends at one daemon, on a port that brings every frame back."""

    def frames(self, where):
        """How many frames the port had, of which it dropped some."""
        d = self.daemon(0, 'net_ring0', {'port': {'own_frames': where}})
        self.daemons = [d, d]
        d.start()
        d.ask('/softhca/impair,drop=0.02')
        self.talk(where, 'rc', timeout=14).good(self)
        said = d.ask('/softhca/impair')
        self.assertEqual(said['dropped'] > 0, said['frames'] > 0)
        self.assertEqual(d.stop(), 0)
        return said['frames']

    def test_own_frames(self):
        """They stay in the device unless the configuration says that faults shall reach them."""
        self.assertEqual(self.frames('device'), 0)
        self.assertGreater(self.frames('port'), 0)


class Veth(Case):
    def test_four_clients_each(self):
        self.veth()
        self.start()
        self.four_each()
        self.stop()

    def test_link_lost(self):
        """The link goes down under traffic: clients get an event, and lost packets are sent again."""
        self.veth()
        self.start()
        # seven retries outlast the time that the daemons take to see the link
        t = self.talk('through', 'rc', seconds=600, port_returns=True, timeout=19)
        self.wait_traffic()
        name = self.spaces.names[1]
        self.spaces.run(name, 'ip', 'link', 'set', 'wire', 'down')
        for d in self.daemons:
            d.wait_log('link down')
        time.sleep(0.2)
        self.spaces.run(name, 'ip', 'link', 'set', 'wire', 'up')
        for d in self.daemons:
            d.wait_log('link up', count=2)
        t.end()  # each client waits for the event
        for status, text in t.finish():
            self.assertEqual(status, 0, text)
            self.assertEqual((number(text, 'port_err'), number(text, 'port_active')), (1, 1),
                             text + self.daemons[0].text() + self.daemons[1].text())
        self.stop()


class Pipelines(Case):
    """Daemons with several pipelines, and one with more than its peer."""

    def run_with(self, device, *numbers):
        """[(packets, handed over)] of each pipeline of both daemons."""
        device(*(pipelines(n) for n in numbers))
        self.start()
        self.four_each()
        shares = []
        for d, n in zip(self.daemons, numbers):
            decap = [d.ask('/softhca/stages,%s,%d' % (d.name, i))['decap'] for i in range(n)]
            shares.append([(s['packets'], s['handed_over']) for s in decap])
            self.assertEqual([s['pipeline'] for s in decap], list(range(n)))
            self.assertEqual(len({s['worker'] for s in decap}), n)
            self.assertIn('error', d.ask('/softhca/stages,%s,%d' % (d.name, n)) or {'error': 0})
        print('packets, handed over: %s' % shares, file=sys.stderr)
        self.stop()
        return shares

    def memif(self, *parts):
        wire = 'socket=%s/wire' % self.place
        self.daemons = [self.daemon(side, 'net_memif0,role=%s,%s' % (role, wire), parts[side % len(parts)])
                        for side, role in enumerate(('server', 'client'))]

    def test_steered(self):
        """Both ends of a memif know the QPN: frames arrive in the pipeline of their QP."""
        for numbers in (2, 2), (1, 4):
            with self.subTest(numbers=numbers):
                for share in self.run_with(self.memif, *numbers):
                    for packets, handed_over in share:
                        self.assertGreater(packets, 0)
                        self.assertEqual(handed_over, 0)

    def test_hashed(self):
        """The kernel distributes frames by the hash of the flow: others are handed over."""
        shares = self.run_with(self.veth, 2, 2)
        for share in shares:
            self.assertTrue(all(packets > 0 for packets, _ in share))
        self.assertGreater(sum(handed for share in shares for _, handed in share), 0)

    def test_too_many(self):
        self.namespaces()
        d = self.daemon(0, 'net_af_packet0,iface=wire,qpairs=1', pipelines(2))
        d.start(wait=False)
        self.assertNotEqual(d.process.wait(READY_S), 0)
        self.assertIn('[hca] pipelines = 2: device net_af_packet0 has 1 queue: expected', d.text())

    def test_queues_without_pipeline(self):
        """The kernel would give frames to queues that are not read."""
        self.namespaces()
        for queues, n in (4, 2), (3, 4):
            with self.subTest(queues=queues, pipelines=n):
                d = self.daemon(0, 'net_af_packet0,iface=wire,qpairs=%d' % queues, pipelines(n))
                d.start(wait=False)
                self.assertNotEqual(d.process.wait(READY_S), 0)
                self.assertIn('qpairs=%d, and [hca] pipelines = %d: expected as many' % (queues, n), d.text())

    def test_auto(self):
        self.namespaces()
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest('one CPU')
        two = '%d,%d' % tuple(cpus[:2])
        for device, lcores, size_mb, expected in (('net_null0', two, 256, 2), ('net_null0', cpus[0], 256, 1),
                                                  ('net_null0', two, 128, 1), ('net_vhost0,iface=vm', two, 256, 1),
                                                  ('net_af_packet0,iface=wire,qpairs=1', two, 256, 1)):
            with self.subTest(device=device, lcores=lcores, size_mb=size_mb):
                device = device.replace('=vm', '=%s/vm' % self.place)
                d = self.daemon(0, device, {'hca': {'pipelines': 'auto', 'lcores': lcores},
                                            'memory': {'size_mb': size_mb}})
                d.start()
                self.assertEqual(d.ask('/softhca/status,' + d.name)['pipelines'], expected)
                self.assertEqual(d.stop(), 0)


class Kernel(Case):
    """Every daemon has an interface of the kernel with the address RoCE uses."""

    def setUp(self):
        if shutil.which('ping') is None:
            self.skipTest('ping is not installed (package iputils-ping)')
        super().setUp()

    def beside(self, kind='tap'):
        kernel = {'kernel': {'interface': kind, 'name': 'hca'}}
        return kernel

    def everything(self):
        self.start()
        talks = [self.talk(service, service, seconds=600) for service in OPERATIONS]
        with concurrent.futures.ThreadPoolExecutor() as beside:
            ping = beside.submit(self.pings)
            took = self.transfer(1 << 20)
            ping = ping.result()
        for t in talks:
            if not t.running():
                self.fail('%s ended early: %s' % (t.name, t.finish()))
        for t in talks:
            t.end()
        self.all_good(talks)
        print('meanwhile %s; TCP: 1 MiB in %.2f s' % (ping, took), file=sys.stderr)
        self.stop()

    def pings(self):
        """Five answers, however late: without -w ping waits for the last one twice the longest."""
        text = self.spaces.run(self.spaces.names[0], 'ping', '-c', '5', '-i', '0.05', '-w', '240',
                               IPS[1])
        sent, received = re.search(r'(\d+) packets transmitted, (\d+) received', text).groups()
        self.assertGreaterEqual(int(received), 5, text)
        # one that is behind the last answer may be under way; one before it will not come any more
        seen = {int(n) for n in re.findall(r'icmp_seq=(\d+) ', text)}
        lost = max(seen) - len(seen)
        self.assertLessEqual(lost, 2, text)
        return 'ping: %s transmitted, %s received, %d lost, %s' % (
            sent, received, lost, re.search(r'rtt.*', text).group())

    def transfer(self, size):
        """Seconds a TCP transfer takes, its data compared."""
        a, b = self.spaces.names
        serve = subprocess.Popen(['ip', 'netns', 'exec', b, sys.executable, '-c', TRANSFER,
                                  'serve', IPS[1], str(size)], stderr=subprocess.PIPE,
                                 encoding='utf-8')
        self.addCleanup(serve.stderr.close)
        self.addCleanup(serve.wait)
        self.addCleanup(serve.kill)
        start = time.monotonic()
        self.spaces.run(a, sys.executable, '-c', TRANSFER, 'send', IPS[1], str(size))
        took = time.monotonic() - start
        self.assertEqual(serve.wait(240), 0)
        return took

    def test_veth(self):
        self.veth(self.beside())
        self.everything()

    def test_memif(self):
        self.namespaces()
        self.memif(self.beside('auto'))
        self.everything()
        self.assertIn('interface = auto: a TAP interface', self.daemons[0].text())


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
