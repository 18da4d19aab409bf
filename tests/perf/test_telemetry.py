#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_telemetry.py PERF LAYOUT [ub]: sends a measuring process every telemetry command while messages flow,
then nonsense. Every answer must be JSON, counters must move, nothing may end the process, and nothing is left
of its socket afterwards."""
import glob
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 300  # seconds, on a busy machine: a longer run counts as hung
NONSENSE = [
    'nobody', ',', ',,', ',-1', ',0x', ',99999999999999999999', ',4294967296', 'a' * 63, 'a' * 500,
    '%s%n%x', '\x01\x7f', ' ', ',1 ', '"', '\\', '{}', 'NAME,12x', 'NAME,', 'NAME,,', 'NAME,-5',
    'NAME,1,2', 'NAME,' + '1' * 200,
]
# Every command of ours, and whether it answers a name alone.
COMMANDS = {
    '/softhca/hca/list': list, '/softhca/hca/counters': dict, '/softhca/ub/counters': dict,
    '/softhca/ub/agent': dict,
    '/softhca/port/list': list,
    '/softhca/port/counters': dict, '/softhca/qp/list': list, '/softhca/qp/counters': None,
    '/softhca/stages': dict, '/softhca/usage': dict, '/softhca/measure': None,
    '/softhca/status': dict, '/softhca/qps': dict, '/softhca/mrs': dict,
    '/softhca/jettys': dict, '/softhca/tps': dict,
    '/softhca/cm': dict, '/softhca/cm/counters': dict, '/softhca/cm/refusals': None,
    '/softhca/gids': dict, '/softhca/clients': dict, '/softhca/findings': dict,
}


class Client:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(path)
        self.hello = json.loads(self.sock.recv(1024).decode())

    def ask(self, command, parameters=None):
        text = command if parameters is None else command + ',' + parameters
        self.sock.send(text.encode('latin-1'))
        answer = json.loads(self.sock.recv(self.hello['max_output_len']).decode('latin-1'))
        return answer.get(command)


def connect(folder, process):
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end and process.poll() is None:
        for path in glob.glob(os.path.join(folder, 'dpdk', 'softhca', 'dpdk_telemetry.v2*')):
            try:
                return Client(path)
            except OSError:
                pass
        time.sleep(0.05)
    sys.exit('no telemetry; softhca-perf: %s' % process.communicate()[0])


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def until_ready(client):
    """The socket is there before the HCAs are."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        names = client.ask('/softhca/hca/list')
        if names:
            known = [command for command in client.ask('/') if command.startswith('/softhca')]
            check(sorted(known) == sorted(COMMANDS), 'commands: %r' % known)
            return names
        time.sleep(0.05)
    raise AssertionError('no HCAs')


def ask_everything(client, names):
    for command, kind in COMMANDS.items():
        for name in names:
            answer = client.ask(command, name)
            check(kind is None or isinstance(answer, kind), '%s,%s: %r' % (command, name, answer))
    for name in names:
        for qpn in client.ask('/softhca/qp/list', name):
            client.ask('/softhca/qp/counters', '%s,%u' % (name, qpn))


def all_tps(client, names):
    """The TPs of each end. The first answers may come while they are being made."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        ends = [list(client.ask('/softhca/tps', name).values()) for name in names]
        if len(ends[0]) == len(ends[1]) == 4:
            break
        time.sleep(0.05)
    return ends


def ub_objects(client, names):
    """Each end's TPs and Jetty, and both say the same of each TP."""
    ends = all_tps(client, names)
    check(len(ends[0]) == len(ends[1]) == 4, 'TPs: %r' % ends)
    pairs = [{(tp['tpn'], tp['remote_tpn']) for tp in end} for end in ends]
    check(pairs[0] == {(b, a) for a, b in pairs[1]}, 'TPs of both ends: %r' % pairs)
    check(all(tp['state'] == 'ACTIVE' and tp['rule'] == 'TIME' for tp in ends[0]), ends[0])
    jettys = client.ask('/softhca/jettys', names[0])
    check(any(j['answers'] != 0 and j['state'] == 'READY' for j in jettys.values()), jettys)
    check(client.ask('/softhca/tps', names[0] + ',4294967295') == {}, 'a list has no end')


def until_they_move(client, name):
    """Counters never go back; those of traffic go on."""
    end = time.monotonic() + TIMEOUT_S
    first = last = client.ask('/softhca/hca/counters', name)
    while time.monotonic() < end:
        now = client.ask('/softhca/hca/counters', name)
        for key in now:
            check(now[key] >= last[key], '%s went from %u to %u' % (key, last[key], now[key]))
        if now['sent_pkts'] > first['sent_pkts'] and now['rcvd_pkts'] > first['rcvd_pkts']:
            return
        last = now
    raise AssertionError('nothing moves')


def wrong_questions(client, name):
    for command in list(COMMANDS) + ['/softhca', '/softhca/', '/softhca/hca', '/softhca/none']:
        for text in NONSENSE:
            answer = client.ask(command, text.replace('NAME', name))
            if command.startswith('/softhca/hca/counters') and text == 'nobody':
                check(answer is None, 'counters of nobody: %r' % answer)
    generator = random.Random(1)
    for _ in range(200):
        text = ''.join(chr(generator.randrange(1, 256)) for _ in range(generator.randrange(1, 300)))
        client.ask(generator.choice(list(COMMANDS)), text)
    client.sock.send(b'')  # an empty message is how a client leaves


def main():
    perf, layout = sys.argv[1:3]
    wire = ['--wire', 'ub'] if sys.argv[3:] else ['--ack-timeout', '17']
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, RUNTIME_DIRECTORY=folder, XDG_RUNTIME_DIR=folder)
        process = subprocess.Popen(
            [perf, '--telemetry', '--no-huge', '--layout', layout, '--duration', '600',
             '--size', '4096'] + wire,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', env=environment)
        try:
            client = connect(folder, process)
            check(client.hello['pid'] == process.pid, 'someone else answers')
            names = until_ready(client)
            ask_everything(client, names)
            until_they_move(client, names[0])
            if sys.argv[3:]:
                ub_objects(client, names)
            wrong_questions(client, names[0])
            second = connect(folder, process)
            ask_everything(second, names)
            until_they_move(second, names[1])
            check(process.poll() is None, 'softhca-perf has ended')
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        quick = subprocess.run(
            [perf, '--telemetry', '--no-huge', '--layout', layout, '--iters', '512', '--verify'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', env=environment)
        check(quick.returncode == 0, quick.stdout)
        left = glob.glob(os.path.join(folder, 'dpdk', 'softhca', 'dpdk_telemetry.v2*'))
        check(not left, 'left behind: %r' % left)
    print('all commands answered while messages were under way')


main()
