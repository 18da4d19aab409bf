# SPDX-License-Identifier: BSD-3-Clause
"""The cases of tests/interop/cm-rxe: pairs of programs that connect by librdmacm, one of them on Linux rxe.

A case has the commands of the server and the client, and the text that each must print. In a command HERE is
the server's address, OWN the address of the end that runs the command, PORT the port where the server listens.
"""
import os
import re

HERE, OWN, PORT = '@here', '@own', '@port'
CONNECTED = ('REQ', 'REP', 'RTU', 'DREQ', 'DREP')
SECONDS = 60


class Case:
    limit = SECONDS

    def __init__(self, name, server, client, short=False, net='IPv4', status=(0, 0), server_says='', client_says='',
                 messages=CONNECTED, listens=True, lost=None, early=None, group=None):
        self.name = name
        self.server, self.client = server.split(), client.split()
        self.short = short
        self.net = net
        self.status = status  # of client and server; None: any
        self.says = client_says, server_says
        self.messages = messages  # at least one of each must be on the wire
        self.listens = listens  # the server does, for requests
        self.lost = lost  # (the end that sends it, its number among the messages of that end, from 1), or None
        self.group = group  # that the server joins before the client begins
        self.early = early  # said by a client that did not wait for the server: it is tried again

    def judge(self, client, server):
        """Of ends with returncode and said(): '' or why it has not passed."""
        for end, who, status, says in zip((client, server), ('client', 'server'), self.status, self.says):
            said = end.said()
            if status is not None and end.returncode != status:
                return 'the %s ended with %s: %s' % (who, end.returncode, last_line(said))
            if not re.search(says, said, re.S):
                return 'the %s did not say "%s": %s' % (who, says, last_line(said))
        return ''


def last_line(text):
    lines = [line.strip() for line in text.split('\n') if line.strip()]
    ours = [line for line in lines if line.startswith('softhca:')]
    return (ours or lines or ['nothing'])[-1][:160]


def private(count, room):
    """How cm-play says `count` bytes in a field of `room` bytes."""
    return 'data %d %s' % (room, ''.join('%02x' % i for i in range(1, count + 1)))


PLAY = 'cm-play listen @here @port ', 'cm-play connect @here @port '
RPING = 'rping -s -a @here -p @port -C 20 -V ', 'rping -c -a @here -p @port -C 20 -V '


def play(name, server, client, **options):
    return Case('cm-play, ' + name, PLAY[0] + server, PLAY[1] + client, **options)


def refusals():
    """One end or the other says no."""
    yield play('the server refuses, 148 bytes', 'reject data=148', 'data=56', short=True, status=(1, 0),
               client_says='REJECTED status 28 ' + private(148, 148),
               server_says='CONNECT_REQUEST status 0 ' + private(56, 56), messages=('REQ', 'REJ'))
    yield play('the server refuses, no data', 'reject', '', status=(1, 0), client_says='REJECTED status 28 data 148\n',
               messages=('REQ', 'REJ'))
    yield Case('cm-play, nothing listens', '', PLAY[1], status=(1, None), listens=False, short=True,
               client_says='REJECTED status 8 data 148\n', messages=('REQ', 'REJ'))
    yield play('the client refuses the answer', '', 'reject data=9', status=(0, 1),
               client_says='CONNECT_RESPONSE status 0', server_says='REJECTED status 28 ' + private(9, 148),
               messages=('REQ', 'REP', 'REJ'))
    yield play('the server ends with a request', 'vanish', '', status=(1, 0), client_says='REJECTED status 28',
               messages=('REQ', 'REJ'))
    yield play('the client ends when connected', '', 'vanish', short=True, server_says='DISCONNECTED status 0')


def datagrams():
    """SIDR."""
    sidr = ('SIDR_REQ', 'SIDR_REP')
    yield play('datagrams, private data of both', 'udp data=136', 'udp data=144', short=True, messages=sidr,
               client_says='ESTABLISHED status 0 ' + private(136, 136),
               server_says='CONNECT_REQUEST status 0 ' + private(144, 180))
    yield play('datagrams, refused', 'udp reject', 'udp', status=(1, 0), client_says='UNREACHABLE status 2',
               messages=sidr)
    yield Case('cm-play, datagrams, nothing listens', '', PLAY[1] + 'udp', status=(1, None), listens=False,
               client_says='UNREACHABLE status 1', messages=sidr)
    yield Case('udaddy', 'udaddy -b @here -C 10', 'udaddy -s @here -b @own -C 10', short=True, messages=sidr,
               client_says='return status 0', server_says='return status 0')
    yield Case('udaddy, 4 ids', 'udaddy -b @here -C 10 -c 4', 'udaddy -s @here -b @own -C 10 -c 4', messages=sidr,
               client_says='return status 0', server_says='return status 0')


def connections():
    yield Case('rping', *RPING, short=True)
    yield Case('rping IPv6', *RPING, net='IPv6', short=True)
    yield Case('rping VLAN', *RPING, net='VLAN', short=True)
    yield Case('rping VLAN IPv6', *RPING, net='VLAN IPv6')
    yield Case('rping, 64 KiB', RPING[0] + '-S 65000', RPING[1] + '-S 65000')
    yield Case('rping -q', RPING[0] + '-q', RPING[1] + '-q')
    for count in 1, 50:
        yield Case('ucmatose -c %d' % count, 'ucmatose -b @here -p @port -c %d -C 10' % count,
                   'ucmatose -s @here -b @own -p @port -c %d -C 10' % count, short=count == 1,
                   client_says='return status 0', server_says='return status 0')
    yield Case('ucmatose -m', 'ucmatose -b @here -p @port -c 4 -m', 'ucmatose -s @here -b @own -p @port -c 4 -m',
               client_says='return status 0', server_says='return status 0')
    yield play('private data of both', 'data=196', 'data=56', short=True,
               client_says='ESTABLISHED status 0 ' + private(196, 196),
               server_says='CONNECT_REQUEST status 0 ' + private(56, 56))
    yield play('IPv6', 'data=5', 'data=6', net='IPv6', client_says='ESTABLISHED status 0 ' + private(5, 196))
    yield play('the server waits for 9 s', 'wait=9000', '', messages=(*CONNECTED, 'MRA'))
    for program in 'rstream', 'riostream':
        yield Case(program, program + ' -b @here -p @port -S 4096 -C 20 -I 10 -T v',
                   program + ' -s @here -p @port -S 4096 -C 20 -I 10 -T v', short=program == 'rstream')
    yield Case('rdma_client', 'rdma_server -s @here -p @port', 'rdma_client -s @here -p @port',
               client_says='rdma_client: end 0', server_says='rdma_server: end 0')
    yield Case('cmtime -c 100', 'cmtime -b @here -p @port', 'cmtime -s @here -b @own -p @port -c 100', status=(0, None),
               client_says='disconnect +:')


def losses():
    """The wire loses one message. Linux repeats after 4 to 6 s, so the connection stays for 8 s."""
    for name, sender, nth in (('REQ', 'client', 1), ('REP', 'server', 1), ('RTU', 'client', 2), ('DREQ', 'client', 3),
                              ('DREP', 'server', 2)):
        wait = 'wait=8000' if name in ('REP', 'RTU') else ''
        yield play(name + ' is lost', 'data=3', wait, lost=(sender, nth), server_says='ESTABLISHED.*DISCONNECTED',
                   client_says='ESTABLISHED.*DISCONNECTED')
    yield play('SIDR_REQ is lost', 'udp', 'udp', lost=('client', 1), messages=('SIDR_REQ', 'SIDR_REP'),
               client_says='ESTABLISHED')
    yield play('REJ is lost', 'reject data=3 wait=0', '', status=(1, 0), lost=('server', 1), messages=('REQ', 'REJ'),
               client_says='REJECTED')


def measured():
    """perftest: connected by connection management (-R), and with it for the exchange of numbers (-z).

    With -R the server listens a second time, for which the client does not wait; it crashes when it is refused."""
    early = 'REJECTED; error: 8'
    for program in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat':
        command = program + ' -R -F -p @port -u 17 -n 100'
        yield Case(program + ' -R', command, command + ' @here', short=program == 'ib_send_bw',
                   client_says=r'#bytes.*\n \d+', early=early)
    # each end asks its device for as many READs at a time as the other's has, and rxe has more
    for program, reads in ('ib_write_bw', ''), ('ib_read_lat', ' -o 16'):
        command = program + ' -z -F -p @port -u 17 -n 100 -x 1' + reads
        yield Case(program + ' -z', command, command + ' @here', client_says=r'#bytes.*\n \d+')
    command = 'ib_write_bw -R -q 4 -F -p @port -u 17 -n 100'
    yield Case('ib_write_bw -R -q 4', command, command + ' @here', client_says=r'#bytes.*\n \d+', early=early)
    command = 'ib_send_lat -R -c UD -F -p @port -n 100'
    yield Case('ib_send_lat -R -c UD', command, command + ' @here', client_says=r'#bytes.*\n \d+',
               messages=('SIDR_REQ', 'SIDR_REP'), early=early)


def all_cases():
    yield from connections()
    yield from refusals()
    yield from datagrams()
    yield from groups()
    yield from losses()
    yield from measured()


def groups():
    """Joined at both ends; the sender waits for 3 s."""
    yield Case('mckey', 'mckey -m 239.77.0.1 -b @here -C 10', 'mckey -m 239.77.0.1 -s -b @own -C 10', short=True,
               messages=(), listens=False, group='239.77.0.1', client_says='return status 0',
               server_says='return status 0')


PROGRAMS = sorted({os.path.basename(case_end[0]) for case in all_cases() for case_end in (case.server, case.client)
                   if case_end} - {'cm-play'})
