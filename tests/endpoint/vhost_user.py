# SPDX-License-Identifier: BSD-3-Clause
"""A front-end of vhost-user (a virtual machine's network card, without the machine): two split rings for
each pair of queues, in a memfd. It speaks the protocol well, and lets its user say anything else."""
import array
import mmap
import os
import socket
import struct
import time

(GET_FEATURES, SET_FEATURES, SET_OWNER, RESET_OWNER, SET_MEM_TABLE, SET_LOG_BASE, SET_LOG_FD, SET_VRING_NUM,
 SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR) = range(1, 15)
GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, GET_QUEUE_NUM, SET_VRING_ENABLE, SEND_RARP, NET_SET_MTU = range(15, 21)
LAST = 40  # beyond the last request
VERSION_1 = 1 << 32
PROTOCOL_FEATURES = 1 << 30
QUEUES = 1 << 22  # several pairs
PROTOCOL_QUEUES = 1  # the same among the features of the protocol
VERSION = 1  # in the flags of a message
SIZE = 256  # descriptors of a ring
BUFFER = 8192
HEADER = 12  # of a frame in virtio 1
RING = 0x4000  # room of a ring: 4 KiB descriptors, available ring, used ring
USER = 0x7f0000000000  # where the memory is for the front-end, as it tells
GUEST = 0x40000000  # and for its machine
NEXT, WRITE, INDIRECT = 1, 2, 4
RECEIVE, TRANSMIT = 0, 1  # of the first pair; those of others follow


class FrontEnd:
    def __init__(self, path, timeout, pairs=1):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.timeout = timeout
        self.rings = 2 * pairs
        self.bytes = self.rings * (RING + SIZE * BUFFER)
        self.file = os.memfd_create('guest')
        os.ftruncate(self.file, self.bytes)
        self.memory = mmap.mmap(self.file, self.bytes)
        self.next = [0] * self.rings  # of the available ring
        self.seen = [0] * self.rings  # of the used ring
        self.features = 0
        self.given = []

    def close(self):
        self.socket.close()
        if self.file >= 0:
            self.memory.close()
            os.close(self.file)
            self.file = -1
        for fd in self.given:
            os.close(fd)
        self.given = []

    # ---- messages ----

    def send(self, request, body=b'', fds=(), size=None, flags=VERSION):
        head = struct.pack('=III', request, flags, len(body) if size is None else size)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        self.socket.sendmsg([head + body], rights)

    def receive(self):
        head = self.socket.recv(12, socket.MSG_WAITALL)
        if len(head) < 12:
            raise ConnectionError('the back-end has closed')
        request, _, size = struct.unpack('=III', head)
        return request, self.socket.recv(size, socket.MSG_WAITALL) if size else b''

    def ask(self, request, body=b''):
        """The number that is answered."""
        self.send(request, body)
        return struct.unpack_from('=Q', self.receive()[1])[0]

    def ended(self):
        """Waits until the back-end ends the connection."""
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionError:
            pass

    def number(self, request, value):
        self.send(request, struct.pack('=Q', value))

    def state(self, request, ring, value):
        self.send(request, struct.pack('=II', ring, value))

    def greet(self, features=VERSION_1):
        self.features = features & self.ask(GET_FEATURES)
        self.send(SET_OWNER)
        self.number(SET_FEATURES, self.features)

    def region(self, guest=GUEST, size=None, user=USER, offset=0):
        return struct.pack('=4Q', guest, self.bytes if size is None else size, user, offset)

    def give_memory(self, regions=None, fds=None, count=None):
        regions = [self.region()] if regions is None else regions
        fds = [self.file] * len(regions) if fds is None else fds
        self.send(SET_MEM_TABLE, struct.pack('=II', len(regions) if count is None else count, 0) +
                  b''.join(regions), fds)

    def event(self):
        self.given.append(os.eventfd(0, os.EFD_NONBLOCK))
        return self.given[-1]

    def addresses(self, ring, user=USER):
        at = user + ring * RING
        self.send(SET_VRING_ADDR, struct.pack('=II4Q', ring, 0, at, at + 0x1000, at + 0x2000, 0))

    def start_ring(self, ring, call=None):
        self.state(SET_VRING_NUM, ring, SIZE)
        self.state(SET_VRING_BASE, ring, 0)
        self.addresses(ring)
        self.send(SET_VRING_CALL, struct.pack('=Q', ring), [self.event() if call is None else call])
        self.send(SET_VRING_KICK, struct.pack('=Q', ring), [self.event()])

    def start(self):
        """A card with its link up, and all its queues."""
        several = self.rings > 2
        self.greet(VERSION_1 | (QUEUES | PROTOCOL_FEATURES if several else 0))
        if several:
            self.number(SET_PROTOCOL_FEATURES, self.ask(GET_PROTOCOL_FEATURES) & PROTOCOL_QUEUES)
        self.give_memory()
        for ring in range(self.rings):
            for slot in range(0 if ring & 1 else SIZE):
                self.offer(ring, [(slot, BUFFER, WRITE)])
        for ring in range(self.rings):
            self.start_ring(ring)
        for pair in range(self.rings // 2 if several else 0):
            self.use(pair, True)
        return self

    def use(self, pair, on):
        """Returns when the back-end has obeyed: it answers messages in their order."""
        for ring in 2 * pair, 2 * pair + 1:
            self.state(SET_VRING_ENABLE, ring, int(on))
        self.ask(GET_FEATURES)

    # ---- rings: descriptors at 0, used ring at 0x1000, available ring at 0x2000 ----

    def buffer(self, ring, slot):
        return self.rings * RING + (ring * SIZE + slot) * BUFFER

    def describe(self, ring, slot, guest, size, flags, following=0):
        struct.pack_into('=QIHH', self.memory, ring * RING + 16 * slot, guest, size, flags, following)

    def publish(self, ring, head, ahead=1):
        at = ring * RING + 0x2000
        struct.pack_into('=H', self.memory, at + 4 + 2 * (self.next[ring] % SIZE), head)
        self.next[ring] += ahead
        struct.pack_into('=H', self.memory, at + 2, self.next[ring] & 0xffff)

    def offer(self, ring, chain):
        """chain: (slot, bytes, flags) of own buffers"""
        for i, (slot, size, flags) in enumerate(chain):
            more = i + 1 < len(chain)
            self.describe(ring, slot, GUEST + self.buffer(ring, slot), size, flags | (NEXT if more else 0),
                          chain[i + 1][0] if more else 0)
        self.publish(ring, chain[0][0])

    def used(self, ring):
        """Index of the used ring"""
        return struct.unpack_from('=H', self.memory, ring * RING + 0x1000 + 2)[0]

    def transmit(self, frame):
        slot = self.next[TRANSMIT] % SIZE
        at = self.buffer(TRANSMIT, slot)
        self.memory[at:at + HEADER + len(frame)] = bytes(HEADER) + frame
        self.offer(TRANSMIT, [(slot, HEADER + len(frame), 0)])

    def take(self, ring=RECEIVE):
        """The next frame that was received; None: no frame."""
        if self.used(ring) == self.seen[ring] & 0xffff:
            return None
        at = ring * RING + 0x1000 + 4 + 8 * (self.seen[ring] % SIZE)
        slot, size = struct.unpack_from('=II', self.memory, at)
        self.seen[ring] += 1
        at = self.buffer(ring, slot)
        frame = self.memory[at + HEADER:at + size]
        self.offer(ring, [(slot, BUFFER, WRITE)])
        return frame

    def resolve(self, own, ip):
        """The MAC address with which `ip` answers requests in ARP from `own` (MAC, IP)."""
        mac, source = own
        request = (b'\xff' * 6 + mac + struct.pack('>HHHBBH', 0x0806, 1, 0x0800, 6, 4, 1) + mac +
                   socket.inet_aton(source) + bytes(6) + socket.inet_aton(ip))
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            self.transmit(request.ljust(60, b'\0'))
            for _ in range(200):
                frame = self.take()
                if frame is None:
                    time.sleep(0.001)
                elif frame[12:14] == b'\x08\x06' and frame[21] == 2 and frame[28:32] == socket.inet_aton(ip):
                    return frame[22:28]
        raise AssertionError('%s does not answer' % ip)
