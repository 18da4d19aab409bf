# SPDX-License-Identifier: BSD-3-Clause
"""The place where tests/interop/cm-rxe runs programs: a daemon on the wire of a virtual machine with rxe. The daemon
captures the messages of both connection managers."""
import os
import re
import shutil
import signal
import socket
import time

import cm_judge
import cm_mad
import guest
from verbs_rig import Failed
from verbs_rxe import ADDRESSES, STOOD_STILL, Remote, RxeRig

from cm_cases import HERE, OWN, PORT, PROGRAMS

OURS = {'IPv4': '10.77.0.1', 'IPv6': '2001:db8:77::1', 'VLAN': '10.78.0.1', 'VLAN IPv6': '2001:db8:78::1'}
GUEST = {'IPv4': '10.77.0.2', 'IPv6': '2001:db8:77::2', 'VLAN': '10.78.0.2', 'VLAN IPv6': '2001:db8:78::2'}
VLAN = 77
FIRST_PORT = 21000
FIXED_PORTS = {'udaddy': 7174}  # programs without an option for it
LISTENS_S = 240
LEFT_S = 240
FIGURE_S = 300
VANISH_S = 180
TRIES = 4  # of a client that may be early, or of programs whose machine stood still
GROUP_REPORT = bytes.fromhex('04000000')  # before a group that is joined, in a report of IGMPv3


class CmRig(RxeRig):
    guest_programs = ()
    addresses = [*ADDRESSES, '10.78.0.1/24 vlan 77', '2001:db8:78::1/64 vlan 77']

    def __init__(self, build, place):
        self.play = os.path.join(build, 'tests/interop/cm-play')
        self.storm = os.path.join(build, 'tests/interop/cm-storm')
        self.guest_programs = (*PROGRAMS, self.play, self.storm)
        self.place = place
        self.next_port = FIRST_PORT
        super().__init__(build, place, 'rxe')
        del self.gids  # by address here

    def words(self, command, case, here, own, port):
        names = {HERE: here, OWN: own, PORT: str(port)}
        return [names.get(word, word) for word in command]

    def ours(self, words):
        return self.begin(0, [self.play if word == 'cm-play' else word for word in words])

    def wait_listening(self, program, port):
        deadline = time.monotonic() + LISTENS_S
        while program.returncode is None:
            ids = self.daemons[0].ask('/softhca/cm') or {}
            if any(entry['state'] == 'LISTENING' and entry.get('source_port') == port for entry in entries(ids)):
                return
            if time.monotonic() > deadline:
                raise Failed('it does not listen', program.said())
            time.sleep(0.05)

    def wait_messages(self, case, raw):
        """The last ones may still be under way when the programs have ended."""
        deadline = time.monotonic() + LISTENS_S
        while time.monotonic() < deadline:
            messages = (cm_mad.open_frame(data) for _, data in cm_mad.read_pcapng(raw))
            if {message['name'] for message in messages if message} >= set(case.messages):
                return
            time.sleep(0.05)

    def wait_joined(self, raw, group):
        """Until the group is joined, as the wire shows it: the sender waits for 3 s only."""
        deadline = time.monotonic() + LISTENS_S
        while time.monotonic() < deadline:
            if any(GROUP_REPORT + socket.inet_aton(group) in data for _, data in cm_mad.read_pcapng(raw)):
                return
            time.sleep(0.05)

    def begin_pair(self, case, role, port, raw):
        """Ends (ours, theirs): the server first."""
        here, there = (GUEST, OURS) if role == 'client' else (OURS, GUEST)
        here, there = here[case.net], there[case.net]
        server = self.words(case.server, case, here, here, port)
        client = self.words(case.client, case, here, there, port)
        if role == 'client':
            theirs = Remote(self.channel, server, case.limit, 'r%d' % port if case.listens else 0) \
                if server else Nothing()
            if case.group:
                self.wait_joined(raw, case.group)
            return self.ours(client), theirs
        ours = self.ours(server) if server else Nothing()
        if case.listens:
            self.wait_listening(ours, port)
        if case.group:
            self.wait_joined(raw, case.group)
        return ours, Remote(self.channel, client, case.limit)

    def capture(self, name):
        """Begins a capture; captured() ends it and keeps the messages of connection management. Returns the file."""
        raw = os.path.join(self.place, name + '.pcapng')
        self.daemons[0].ask('/softhca/capture,' + raw)
        return raw

    def captured(self, raw, target):
        counts = self.daemons[0].ask('/softhca/capture,off')
        if counts['lost'] or counts['failed']:
            raise Failed('the capture is not whole: %s' % counts)
        frames = [frame for frame in cm_mad.read_pcapng(raw) if cm_mad.open_frame(frame[1])]
        os.unlink(raw)
        cm_mad.write_pcap(target, frames)

    def run(self, case, role):
        """Returns the text for the table."""
        for left in reversed(range(TRIES)):
            try:
                return self.run_once(case, role)
            except Failed as failed:
                early = case.early is not None and case.early in failed.said
                if left == 0 or not (early or STOOD_STILL.search(failed.said)):
                    raise

    def run_once(self, case, role):
        port = FIXED_PORTS.get((case.server or case.client)[0], self.next_port)
        self.next_port += 1
        name = '%s-%d' % (role, port)
        target = os.path.join(self.place, name + '.pcap')
        raw = self.capture(name)
        self.lose(case, role)
        try:
            ours, theirs = self.begin_pair(case, role, port, raw)
            client, server = (ours, theirs) if role == 'client' else (theirs, ours)
            self.finish(case, client, server)
            if client.returncode == case.status[0]:
                self.wait_messages(case, raw)
        except TimeoutError:
            raise Failed('the virtual machine does not answer', guest.tail(self.console)) from None
        finally:
            self.captured(raw, target)
        if case.lost and not self.was_lost():
            raise Failed('no message was lost: %s' % self.daemons[0].ask('/softhca/impair'))
        self.judge(case, client, server, target)
        self.nothing_left()
        return self.shown(target)

    def lose(self, case, role):
        """A rule that fires once; the programs send no datagrams of their own."""
        self.daemons[0].ask('/softhca/impair,off')
        if case.lost:
            sender, nth = case.lost
            rule = 'dir=%s,drop,opcode=ud-send-only,nth=%d' % ('out' if sender == role else 'in', nth)
            said = self.daemons[0].ask('/softhca/impair,' + rule)
            if 'error' in said:
                raise Failed('%s: %s' % (rule, said['error']))

    def was_lost(self):
        faults = self.daemons[0].ask('/softhca/impair') or {}
        return any('rule_' in key and re.search(': fired (once|[1-9])', text) for key, text in faults.items())

    def finish(self, case, client, server):
        try:
            client.finish(case.limit)
            if case.status[1] is not None and client.returncode == case.status[0]:
                server.finish(case.limit)
        finally:
            for end in client, server:
                end.kill()

    def judge(self, case, client, server, target):
        said = 'client: %s\nserver: %s' % (client.said(), server.said())
        reason = case.judge(client, server)
        bad, counts = cm_judge.judge(target)
        bad += cm_judge.compare_with_tshark(target) if shutil.which('tshark') else []
        tag = VLAN if 'VLAN' in case.net else None
        bad += ['tag %s instead of %s' % (found, tag) for found in cm_judge.tags(target) if found != tag]
        seen = {name for _, name in counts}
        missing = [name for name in case.messages if name not in seen]
        if not reason and bad:
            reason = '%d complaints about the capture: %s' % (len(bad), bad[0])
        if not reason and missing:
            reason = 'not on the wire: ' + ', '.join(missing)
        if reason:
            raise Failed(reason, '\n'.join([said, conversation(target), *bad[:10]]))

    def shown(self, target):
        counts = cm_judge.judge(target)[1]
        ours = sum(n for (who, _), n in counts.items() if who in OURS.values())
        return '%d messages of ours, %d of theirs' % (ours, sum(counts.values()) - ours)

    def serve(self, *words):
        """A server in the virtual machine, whose end is not awaited; its port."""
        port = self.next_port
        self.next_port += 1
        self.channel.send('serve', 'r%d' % port, *words[:1], *[str(port) if w == PORT else w for w in words[1:]])
        if self.channel.line(LISTENS_S) != ['listening']:
            raise Failed('the server in the virtual machine does not listen')
        return port

    def vanish(self):
        """Stops the virtual machine: returns the events that the program of a connection and the program of a request
        get, with their times. The last case."""
        port = self.serve('cm-play', 'listen', GUEST['IPv4'], PORT)
        target = [self.play, 'connect', GUEST['IPv4'], str(port)]
        ends = {'DISCONNECTED status': self.begin(0, [*target, 'wait=2000'])}
        deadline = time.monotonic() + LISTENS_S
        while 'ESTABLISHED' not in ends['DISCONNECTED status'].said():
            if time.monotonic() > deadline:
                raise Failed('not connected', ends['DISCONNECTED status'].said())
            time.sleep(0.05)
        self.machine.send_signal(signal.SIGSTOP)
        begin, shown = time.monotonic(), []
        ends['UNREACHABLE status -110'] = self.begin(0, target)
        while ends:
            for event in [event for event, end in ends.items() if end.returncode is not None]:
                if event not in ends[event].said():
                    raise Failed('no ' + event, ends[event].said())
                del ends[event]
                shown.append('%s after %.0f s' % (event.split()[0], time.monotonic() - begin))
            if time.monotonic() > begin + VANISH_S:
                raise Failed('nothing told %s within %d s' % (list(ends), VANISH_S))
            time.sleep(0.05)
        super().nothing_left()
        return ', '.join(shown)

    def figure(self, count):
        """Makes `count` connections by the same program: both ends on the daemon, then both in the virtual machine."""
        words = [str(self.next_port), str(count), '64']
        ours = self.begin(0, ['env', '-u', 'SOFTHCA_DEBUG', self.storm, OURS['IPv4'], *words]).finish(FIGURE_S)
        theirs = Remote(self.channel, ['cm-storm', GUEST['IPv4'], *words], FIGURE_S).finish(FIGURE_S)
        return 'softhca  %srxe      %s' % (ours, theirs)

    def ping_once(self, deadline):
        begun = self.daemons[0].ask('/softhca/ping,to=%s,count=3,mtu=yes' % GUEST['IPv4'])
        if 'session' not in begun:
            raise Failed('the ping does not begin: %s' % begun)
        while True:
            told = self.daemons[0].ask('/softhca/ping,session=%d' % begun['session'])
            if told['done'] or time.monotonic() > deadline:
                return told
            time.sleep(0.05)

    def ping(self):
        """A peer that is not ours is told apart, and the ping harms nothing there."""
        deadline, told = time.monotonic() + LEFT_S, {'peer': 'silent'}
        while told['peer'] == 'silent' and time.monotonic() < deadline:  # again if the machine stood still
            told = self.ping_once(deadline)
        if (told['done'], told['peer'], told['sent'], told['received'], told['passed']) != (1, 'cm', 3, 0, 0):
            raise Failed('the ping says: %s' % told)
        return 'no softhca answers, its connection manager does'

    def nothing_left(self):
        super().nothing_left()
        deadline = time.monotonic() + LEFT_S
        while True:
            left = [e for e in entries(self.daemons[0].ask('/softhca/cm') or {}) if e['id'] != 0]
            if not left:
                return
            if time.monotonic() > deadline:
                raise Failed('ids that are left in the daemon: %s' % left)
            time.sleep(0.05)


class Nothing:
    """A server that is not there."""
    returncode = 0

    def said(self):
        return ''

    def finish(self, limit):
        del limit
        return ''

    def kill(self):
        pass


def entries(answer):
    """The entries of a list of telemetry."""
    return [entry for entry in answer.values() if isinstance(entry, dict)]


def conversation(path):
    """A capture in words."""
    lines, begin = [], None
    for when, data in cm_mad.read_pcap(path):
        message = cm_mad.open_frame(data)
        begin = when if begin is None else begin
        fields = message['fields']
        lines.append('%8.3f %s %s %s' % (when - begin, message['src'], message['name'], ' '.join(
            '%s=%x' % (key, fields[key]) for key in ('local_comm', 'remote_comm', 'request', 'reason', 'status')
            if key in fields)))
    return '\n'.join(lines)
