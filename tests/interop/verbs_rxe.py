# SPDX-License-Identifier: BSD-3-Clause
"""The same programs on softhca at one end and on Linux rxe, in a virtual machine, at the other."""
import os
import re
import socket
import subprocess
import time

import guest
import image
from verbs_cases import GID_IPV4, GID_IPV6, GID_LINK, RXE_PROGRAMS
from verbs_rig import HERE, READY_S, Failed, Rig, both, free_port, wait_listening

PEER = os.path.join(HERE, 'peer/programs')
ADDRESSES = ['10.77.0.1/24', '2001:db8:77::1/64']
OURS_MAC = '02:00:00:77:00:01'
HOST = '10.0.2.2'     # this machine, as the guest sees it
GUEST_PORT = 18515    # where servers in the guest listen
GUEST_ADDRESSES = {GID_IPV4: '::ffff:10.77.0.2', GID_IPV6: '2001:db8:77::2'}
TRIES = 3
# An emulated machine may stand still for longer than a program has its QPs retry.
STOOD_STILL = re.compile(r'transport retry counter exceeded|\b[Ss]tatus 12\b')


class Unavailable(Exception):
    """Why there is no virtual machine with rxe here."""


def images(programs):
    try:
        return guest.images(PEER, programs)
    except (image.Missing, OSError, subprocess.TimeoutExpired) as why:
        raise Unavailable(why) from None


def tsc_khz(build):
    """Frequency of the cycle counter, 0 where it is not known."""
    host = os.path.join(build, 'tests/interop/interop-host')
    done = subprocess.run([host, '--clock'], stdout=subprocess.PIPE, check=False)
    return int(done.stdout) if done.returncode == 0 else 0


class Channel:
    """Lines and bytes from the guest."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(1)
        self.socket = None
        self.pending = b''

    def accept(self, limit):
        self.listener.settimeout(limit)
        self.socket = self.listener.accept()[0]

    def send(self, *words):
        self.socket.sendall((' '.join(words) + '\n').encode())

    def fill(self, deadline):
        self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
        data = self.socket.recv(1 << 16)
        if not data:
            raise AssertionError('the virtual machine has ended')
        self.pending += data

    def line(self, limit):
        deadline = time.monotonic() + limit
        while b'\n' not in self.pending:
            self.fill(deadline)
        line, self.pending = self.pending.split(b'\n', 1)
        return line.decode().split()

    def take(self, size, limit):
        deadline = time.monotonic() + limit
        while len(self.pending) < size:
            self.fill(deadline)
        text, self.pending = self.pending[:size], self.pending[size:]
        return text.decode(errors='replace')

    def close(self):
        for each in self.socket, self.listener:
            if each is not None:
                each.close()


class Remote:
    """A program in the guest; there is one at a time."""

    def __init__(self, channel, words, limit, port=0):
        self.channel = channel
        self.returncode = None
        self.text = ''
        channel.send('run', str(port), str(2 * limit), *words)
        if port != 0:
            self.expect('listening', limit)

    def expect(self, word, limit):
        line = self.channel.line(limit)
        if line[0] != word:
            raise AssertionError('the guest says %s, not %s' % (line, word))
        return line[1:]

    def result(self, limit):
        status, size = (int(word) for word in self.expect('done', limit))
        self.text = self.channel.take(size, READY_S)
        self.returncode = status

    def said(self):
        return self.text

    def finish(self, limit):
        if self.returncode is None:
            try:
                self.result(limit)
            except TimeoutError:
                self.kill()
                raise Failed('not done after %d s' % limit, self.text) from None
        return self.text

    def kill(self):
        if self.returncode is None:
            self.channel.send('stop')
            self.result(READY_S)


class RxeRig(Rig):
    """A daemon whose port is the network card of the virtual machine."""
    guest_programs = RXE_PROGRAMS
    addresses = ADDRESSES

    def __init__(self, build, place, where):
        self.build = build
        self.where = where
        self.images = images(self.guest_programs)
        self.programs = []
        self.console = os.path.join(place, 'console')
        self.machine = None
        self.channel = Channel(os.path.join(place, 'control'))
        self.daemons = [self.daemon(place, 'a', 'net_vhost0,iface=%s/wire' % place, self.addresses,
                                    OURS_MAC)]
        self.port = free_port()
        try:
            self.daemons[0].start()
            self.boot(place)
            self.daemons[0].wait_log('link up')
        except BaseException:
            self.close()
            raise

    def boot(self, place):
        # TCP has a network card of its own, by which programs exchange the numbers of their QPs
        command = guest.machine(place, *self.images, False, tsc_khz(self.build), (
            '-netdev', 'user,id=talk,ipv6=off,hostfwd=tcp:127.0.0.1:%d-:%d' % (self.port, GUEST_PORT),
            '-device', 'virtio-net-pci,netdev=talk,romfile=,vectors=0'))
        with open(os.path.join(place, 'qemu'), 'ab') as log:
            self.machine = guest.start(command, stdout=log, stderr=log)
        try:
            self.channel.accept(READY_S)
            gids = self.channel.line(READY_S)[1:]
            self.gids = {ours: str(gids.index(gid_text(address)))
                         for ours, address in GUEST_ADDRESSES.items()}
            self.gids[GID_LINK] = '0'
        except (TimeoutError, AssertionError, ValueError) as error:
            raise AssertionError('the virtual machine does not start: %s\n%s%s' % (
                error, guest.tail(self.console), guest.tail(os.path.join(place, 'qemu')))) from None

    def close(self):
        super().close()
        guest.stop(self.machine)
        self.channel.close()

    def daemon_of(self, side):
        return self.daemons[0]

    def pair(self, case, words):
        ours, theirs = self.begin_server_first(case, tuple(words))
        return both(*((ours, theirs) if case.role == 'client' else (theirs, ours)), case.limit)

    def begin_server_first(self, case, words):
        at_guest = tuple(self.gids[word] if before in ('-g', '-x') else word
                         for before, word in zip(('',) + words, words))
        if case.role == 'client':
            theirs = Remote(self.channel, at_guest + ('-p', str(GUEST_PORT)), case.limit, GUEST_PORT)
            return self.begin(0, words + ('-p', str(self.port), '127.0.0.1')), theirs
        port = str(free_port())
        ours = self.begin(0, words + ('-p', port))
        wait_listening(int(port), ours.process)
        return ours, Remote(self.channel, at_guest + ('-p', port, HOST), case.limit)

    def run(self, case):
        for attempt in range(1, TRIES + 1):
            try:
                shown = super().run(case)
                return shown if attempt == 1 else '%s (try %d)' % (shown, attempt)
            except Failed as failed:
                if attempt == TRIES or not STOOD_STILL.search(failed.said):
                    raise
        raise AssertionError('not reached')


def gid_text(address):
    """As the kernel writes it in sysfs."""
    raw = socket.inet_pton(socket.AF_INET6, address)
    return ':'.join('%02x%02x' % (raw[i], raw[i + 1]) for i in range(0, 16, 2))
