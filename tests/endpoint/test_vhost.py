#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Front-ends of vhost-user that send garbage, give memory that is none, chain descriptors in circles and
leave early: the daemon lives, and serves the next one.

test_vhost.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

from daemon import Daemon, READY_S, folder, free_port
import vhost_user as v

BINARY, PERF = [os.path.abspath(word) for word in sys.argv[1:3]]
OWN = (bytes.fromhex('020000660002'), '10.66.0.2')
MAC = bytes.fromhex('020000660001')
LEFT = (OSError, ConnectionError)  # the back-end has seen enough


class FrontEnds(unittest.TestCase):
    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.path = os.path.join(self.place, 'vhost')
        self.daemon = Daemon(BINARY, self.place, 'shw%d' % os.getpid(), 'net_vhost0,iface=' + self.path,
                             '10.66.0.1/24', {'port': {'mac': MAC.hex(':')}})
        self.addCleanup(self.daemon.close)
        self.daemon.start()
        self.served()  # objects of the first use exist
        self.files = self.at_rest()

    def open_files(self):
        return len(os.listdir('/proc/%d/fd' % self.daemon.process.pid))

    def at_rest(self):
        """Descriptors of the daemon when it has closed those of a front-end that is gone."""
        before, now = None, self.open_files()
        while before != now:
            time.sleep(0.1)
            before, now = now, self.open_files()
        return now

    def assert_closed(self):
        """The daemon has no more descriptors than before; its thread may wait for a CPU before it closes
        them."""
        deadline = time.monotonic() + READY_S
        while self.open_files() > self.files and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertLessEqual(self.open_files(), self.files)

    def front_end(self):
        f = v.FrontEnd(self.path, READY_S)
        self.addCleanup(f.close)
        return f

    def served(self):
        """A front-end that means well has its link, and an answer."""
        f = self.front_end().start()
        self.assertEqual(f.resolve(OWN, '10.66.0.1'), MAC)
        f.close()

    def tearDown(self):
        """The next one is served, nothing is left of those before, and the daemon ends as it should."""
        self.assertIsNone(self.daemon.process.poll(), self.daemon.text())
        self.served()
        if self.files is not None:
            self.assert_closed()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.text())

    # ---- messages ----

    def test_garbage(self):
        r = random.Random(1)
        for _ in range(60):
            f = self.front_end()
            with contextlib.suppress(*LEFT):
                f.socket.sendall(r.randbytes(r.randrange(1, 600)))
                f.socket.shutdown(socket.SHUT_WR)
                f.ended()
            f.close()
        for size in 0xffffffff, 0x7fffffff, 0x10000, 4096:
            f = self.front_end()
            with contextlib.suppress(*LEFT):
                f.send(v.SET_FEATURES, bytes(8), size=size)
                f.socket.shutdown(socket.SHUT_WR)
                f.ended()
            f.close()

    def test_requests_of_any_kind(self):
        """With bodies and descriptors of any kind, before the memory is there and after."""
        self.files = None  # DPDK 22.11 keeps some of those of messages that it refuses
        r = random.Random(2)
        others = [os.open('/dev/null', os.O_RDWR), os.open('/', os.O_RDONLY), *os.pipe(), os.eventfd(0)]
        self.addCleanup(lambda: [os.close(fd) for fd in others])
        for turn in range(3 * v.LAST):
            f = self.front_end()
            with contextlib.suppress(*LEFT):
                f.greet()
                if turn >= v.LAST:
                    f.give_memory()
                if turn >= 2 * v.LAST:
                    f.start_ring(turn % 2)
                for _ in range(4):
                    body = r.choice((b'', bytes(8), struct.pack('=II', r.randrange(300), r.randrange(1 << 17)),
                                     r.randbytes(8), r.randbytes(40), r.randbytes(r.randrange(280))))
                    f.send(turn % v.LAST, body, r.sample(others, r.randrange(3)))
                f.socket.shutdown(socket.SHUT_WR)
                f.ended()
            f.close()

    def test_leaves_after_each_message(self):
        for count in range(1, 14):
            f = self.front_end()
            said = 0
            send = f.send

            class Enough(Exception):
                pass

            def counted(*words, **more):
                nonlocal said
                if said == count:
                    raise Enough
                said += 1
                send(*words, **more)

            f.send = counted
            with contextlib.suppress(Enough):
                f.start()
            f.close()
        # in the middle of a message
        for part in 5, 12, 15:
            f = self.front_end()
            f.socket.sendall(struct.pack('=IIIQ', v.SET_FEATURES, v.VERSION, 8, 0)[:part])
            f.close()

    # ---- memory ----

    def test_memory_that_is_none(self):
        self.files = None  # DPDK 22.11 keeps that of a region that it cannot map
        beyond = v.USER + (1 << 30)
        cases = [
            {'regions': [], 'count': 0}, {'count': 0}, {'count': 2}, {'count': 9}, {'count': 0xffffffff},
            {'fds': []}, {'regions': [b'']}, {'fds': [os.open('/', os.O_RDONLY)]}, {'fds': list(os.pipe())[:1]},
            {'size': 0}, {'size': 1 << 62}, {'size': (1 << 64) - 1}, {'offset': 1 << 63},
            {'offset': (1 << 64) - 1}, {'offset': 4095}, {'guest': (1 << 64) - 4096}, {'user': beyond},
            {'user': 0}, {'user': (1 << 64) - 4096}, {'size': 4096},
        ]
        for case in cases:
            f = self.front_end()
            of_region = {key: case.pop(key) for key in ('size', 'offset', 'guest', 'user') if key in case}
            case.setdefault('regions', [f.region(**of_region)])
            with contextlib.suppress(*LEFT):
                f.greet()
                f.give_memory(**case)
                for ring in v.RECEIVE, v.TRANSMIT:
                    f.start_ring(ring)
                f.transmit(bytes(60))
                f.socket.shutdown(socket.SHUT_WR)
                f.ended()
            f.close()

    def test_rings_elsewhere(self):
        """Addresses of rings that lie outside, at the end, or are not aligned."""
        first = self.front_end()
        end = v.USER + first.bytes
        first.close()
        for user in (0, v.USER - 4096, end, end - 16, end - 0x2000, v.USER + 1, v.USER + 7, (1 << 64) - 1,
                     (1 << 64) - 0x1000):
            f = self.front_end()
            with contextlib.suppress(*LEFT):
                f.addresses = lambda ring, f=f, user=user: f.send(v.SET_VRING_ADDR, struct.pack(
                    '=II4Q', ring, 0, *[(user + n) % (1 << 64) for n in (0, 0x1000, 0x2000)], 0))
                f.start()
                f.transmit(bytes(60))
                f.socket.shutdown(socket.SHUT_WR)
                f.ended()
            f.close()

    # ---- descriptors ----

    def answers(self, f):
        """Until the worker has had time to look at the ring"""
        deadline = time.monotonic() + 0.03
        while time.monotonic() < deadline:
            f.take()
            time.sleep(0.001)

    def test_descriptors(self):
        """Chains in circles, of nothing, of too much, to anywhere; an index from anywhere."""
        def chain(*entries):
            return lambda f, ring: [f.describe(ring, *entry) for entry in entries] and f.publish(ring, 0)
        here = v.GUEST + 2 * v.RING
        kinds = [
            chain((0, here, 64, v.NEXT, 0)),
            chain((0, here, 64, v.NEXT, 1), (1, here, 64, v.NEXT, 0)),
            chain(*[(n, here, 64, v.NEXT, (n + 1) % v.SIZE) for n in range(v.SIZE)]),
            chain((0, here, 64, v.NEXT, v.SIZE)), chain((0, here, 64, v.NEXT, 0xffff)),
            chain((0, here, 0, 0, 0)), chain((0, here, 0xffffffff, 0, 0)), chain((0, 0, 64, 0, 0)),
            chain((0, (1 << 64) - 64, 4096, 0, 0)), chain((0, here, 5, v.WRITE, 0)),
            chain((0, here, 64, v.INDIRECT, 0)), chain((0, here, 4096, v.INDIRECT | v.NEXT, 0)),
            chain((0, here, 12, v.NEXT, 1), (1, 0, 1500, 0, 0)), chain((0, here, 12, 0, 0)),
            chain((0, here, 1 << 20, 0, 0)),
            lambda f, ring: f.publish(ring, v.SIZE), lambda f, ring: f.publish(ring, 0xffff),
            lambda f, ring: f.publish(ring, 0, ahead=v.SIZE + 1),
            lambda f, ring: f.publish(ring, 0, ahead=40000),
        ]
        for kind in kinds:
            for ring in v.TRANSMIT, v.RECEIVE:
                f = self.front_end()
                f.greet(v.VERSION_1 | 1 << 28)  # with indirect descriptors
                f.give_memory()
                if ring == v.RECEIVE:
                    kind(f, ring)  # instead of buffers
                for each in v.RECEIVE, v.TRANSMIT:
                    f.start_ring(each)
                if ring == v.TRANSMIT:
                    kind(f, ring)
                else:
                    f.transmit(self.request())
                self.answers(f)
                self.assertIsNone(self.daemon.process.poll(), self.daemon.text())
                f.close()

    def request(self):
        """The daemon's answer, in a buffer of the other ring."""
        return (b'\xff' * 6 + OWN[0] + struct.pack('>HHHBBH', 0x0806, 1, 0x0800, 6, 4, 1) + OWN[0] +
                socket.inet_aton(OWN[1]) + bytes(6) + socket.inet_aton('10.66.0.1')).ljust(60, b'\0')

    def test_descriptors_at_random(self):
        r = random.Random(3)
        for _ in range(12):
            f = self.front_end().start()
            for _ in range(30):
                ring = r.randrange(2)
                if ring == v.TRANSMIT and r.random() < 0.3:
                    f.transmit(r.randbytes(r.randrange(0, 4000)))
                    continue
                for _ in range(4):
                    f.describe(ring, r.randrange(v.SIZE), v.GUEST + r.randrange(-4096, f.bytes + 4096),
                               r.choice((0, 1, 12, 64, 1500, 9000, 1 << 31)), r.randrange(8),
                               r.randrange(v.SIZE + 2))
                f.publish(ring, r.randrange(v.SIZE + 2))
            self.answers(f)
            f.close()


class Queues(unittest.TestCase):
    """A daemon with two pipelines and QPs in both. Frames of the second one leave by the second pair of queues,
    if the guest uses it, else by the first. The guest sends back all it gets, and so the QPs talk."""

    def setUp(self):
        context = folder()
        place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.path = os.path.join(place, 'vhost')
        self.daemon = Daemon(BINARY, place, 'shq%d' % os.getpid(), 'net_vhost0,iface=' + self.path, '10.66.0.1/24',
                             {'port': {'mac': MAC.hex(':'), 'own_frames': 'port'}, 'hca': {'pipelines': 2},
                              'memory': {'size_mb': 320}})
        self.addCleanup(self.daemon.close)
        self.daemon.start()

    def front_end(self, pairs):
        f = v.FrontEnd(self.path, READY_S, pairs)
        self.addCleanup(f.close)
        f.start()
        self.read(f)
        return f

    def read(self, f):
        """The daemon has read the messages."""
        self.assertEqual(f.resolve(OWN, '10.66.0.1'), MAC)

    def rings_of(self, f):
        """The rings by which frames of RoCE arrive while softhca-perf runs. Frames of an earlier run are
        dropped before it."""
        port, rings = free_port(), set()
        for ring in range(0, f.rings, 2):
            while f.take(ring) is not None:
                pass
        words = [PERF, '--device', self.daemon.socket, '--timeout', str(READY_S)]
        with subprocess.Popen([*words, '--server', str(port), '--once'], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as server:
            self.addCleanup(server.kill)
            while b'serves' not in server.stdout.readline():
                self.assertIsNone(server.poll())
            client = subprocess.Popen([*words, '--client', '127.0.0.1:%d' % port, '--op', 'send', '--iters', '20',
                                       '--size', '64', '--verify'], stdout=subprocess.DEVNULL)
            self.addCleanup(client.kill)
            while client.poll() is None:
                for ring in range(0, f.rings, 2):
                    frame = f.take(ring)
                    if frame is not None and frame[12:14] == b'\x08\0' and frame[36:38] == struct.pack('>H', 4791):
                        rings.add(ring)
                        f.transmit(frame)
                time.sleep(0.0001)
            self.assertEqual(client.returncode, 0, self.daemon.text())
        return rings

    def test_one_pair(self):
        for _ in range(2):
            f = self.front_end(1)
            self.assertEqual(self.rings_of(f), {0})
            f.close()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.text())

    def test_pairs_in_use(self):
        f = self.front_end(2)
        for on in True, False, True:
            f.use(1, on)
            self.read(f)
            self.assertEqual(self.rings_of(f), {0, 2} if on else {0})
        f.close()
        self.assertEqual(self.rings_of(self.front_end(1)), {0})
        self.assertEqual(self.daemon.stop(), 0, self.daemon.text())


class End(unittest.TestCase):
    """The daemon ends, also while its front-end has not sent the rest of a message."""

    def ends(self, owe):
        with folder() as place:
            path = os.path.join(place, 'vhost')
            d = Daemon(BINARY, place, 'shw%de' % os.getpid(), 'net_vhost0,iface=' + path, '10.66.0.1/24')
            self.addCleanup(d.close)
            d.start()
            f = v.FrontEnd(path, READY_S)
            self.addCleanup(f.close)
            f.greet()
            owe(f)
            d.process.send_signal(signal.SIGTERM)
            self.assertEqual(d.stop(timeout=READY_S), 0, d.text())

    def test_half_a_message(self):
        def owe(f):
            f.send(v.SET_MEM_TABLE, b'', size=40)
            time.sleep(0.1)
        self.ends(owe)

    def test_answers_unread(self):
        def owe(f):
            f.socket.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                while True:
                    f.send(v.GET_FEATURES)
        self.ends(owe)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
