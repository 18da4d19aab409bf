#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-ctl metrics: OpenMetrics text of the counters; its listener; the dashboard's queries.

test_metrics.py SOFTHCA-CTL SOFTHCAD SOFTHCA-PERF DASHBOARD [unittest arguments]

Class Prometheus starts a real one, where it is installed.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from daemon import Daemon, ctl, die_with_parent, folder, free_port

CTL, DAEMON, PERF, DASHBOARD = [os.path.abspath(word) for word in sys.argv[1:5]]
TIMEOUT_S = 300  # seconds, on a busy machine: a longer run counts as hung
LIMIT_OF_CLIENT = 2  # seconds, of softhca-ctl metrics
SAMPLE = re.compile(r'(softhca_[a-z0-9_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (-?\d+)$')
SUFFIXES = {'counter': '_total', 'gauge': '', 'info': '_info'}


def families(text):
    """{name: (type, {labels: value})}; complains of violations of OpenMetrics."""
    lines = text.split('\n')
    assert lines[-2:] == ['# EOF', ''], lines[-2:]
    found, name = {}, None
    for line in lines[:-2]:
        if line.startswith('# TYPE '):
            name, kind = line.split()[2:]
            assert name not in found and not name.endswith('_total'), line
            found[name] = (kind, {})
        elif line.startswith('# HELP '):
            assert line.split()[2] == name and not found[name][1], line
        else:
            match = SAMPLE.match(line)
            assert match, line
            kind, samples = found[name]
            assert match.group(1) == name + SUFFIXES[kind] and match.group(2) not in samples, line
            samples[match.group(2)] = int(match.group(3))
    assert all(samples for _, samples in found.values())
    return found


def dashboard():
    """(title, expression) of every query"""
    with open(DASHBOARD, encoding='utf-8') as file:
        panels = json.load(file)['panels']
    return [(panel['title'], target['expr']) for panel in panels for target in panel['targets']]


class Embedded:
    """A telemetry socket like that of a program with embedded HCAs: all have one prefix and these names."""
    ANSWERS = {'/softhca/hca/list': ['sh0_0'], '/softhca/status': {'health': 'well', 'port_state': 'ACTIVE'},
               '/softhca/usage': {'qps': 1}}

    def __init__(self, folder_of_all, number=0, answer_when=None):
        place = os.path.join(folder_of_all, 'dpdk', 'softhca')
        os.makedirs(place, exist_ok=True)
        self.asked = threading.Event()  # for its status
        self.answer_when = answer_when
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(os.path.join(place, 'dpdk_telemetry.v2' + (':%d' % number if number else '')))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.send(json.dumps({'version': 'fake', 'pid': 1, 'max_output_len': 16384}).encode())
            for question in iter(lambda p=peer: p.recv(4096), b''):
                command = question.decode().split(',')[0]
                if command == '/softhca/status':
                    self.asked.set()
                    if self.answer_when:
                        self.answer_when.wait(TIMEOUT_S)
                peer.send(json.dumps({command: self.ANSWERS.get(command)}).encode())
            peer.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        context = folder()
        cls.place = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.daemons = []
        for side in 'ab':
            d = Daemon(DAEMON, cls.place, 'met%d%s' % (os.getpid(), side), 'net_ring0', '10.71.0.1/24')
            cls.addClassCleanup(d.close)
            cls.daemons.append(d.start())
        cls.name = cls.daemons[0].name

    def ctl(self, *words, status=0):
        run = ctl(CTL, *words)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout if status == 0 else run.stderr

    def traffic(self):
        """A client and a server on the first daemon."""
        port = str(free_port())
        server = subprocess.Popen([PERF, '--device', self.daemons[0].socket, '--once', '--server', port],
                                  stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        self.addCleanup(server.kill)
        subprocess.run([PERF, '--device', self.daemons[0].socket, '--client', 'localhost:' + port, '--iters', '64',
                        '--size', '4096'], stdout=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)
        self.assertEqual(server.wait(TIMEOUT_S), 0)

    def listener(self, *words, env=None):
        process = subprocess.Popen([CTL, 'metrics', '--listen', '127.0.0.1:0', *words], stdout=subprocess.PIPE,
                                   encoding='utf-8', preexec_fn=die_with_parent, env=env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = process.stdout.readline()
        self.assertRegex(said, r'^serves /metrics on port \d+$')
        process.port = int(said.split()[-1])
        return process


class Text(Case):
    compared = {'port_rcv_data', 'port_xmit_packets', 'port_rcv_missed', 'sq_wqes', 'retransmissions', 'rx_late_depth',
                'ub_resent_nak', 'ipc_clients_accepted'}

    def both(self):
        """Counters and metrics of the first daemon of one moment: again until it rests and has no objects of programs."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            counters = json.loads(self.ctl('counters', '--json', '--prefix', self.name))['counters']
            found = families(self.ctl('metrics', '--prefix', self.name))
            after = json.loads(self.ctl('counters', '--json', '--prefix', self.name))['counters']
            qps = [n for labels, n in found['softhca_objects'][1].items() if labels.endswith('object="qps"')]
            changed = {name for name in counters if counters[name] != after[name]} & self.compared
            if (not changed and not any(qps)) or time.monotonic() > end:
                return counters, found
            time.sleep(0.05)

    def test_counters(self):
        """The same values as counters, under names of node_exporter where that has them."""
        self.traffic()
        counters, found = self.both()
        self.assertGreaterEqual(counters['sq_wqes'], 64)
        runtime = '/var/run' if os.getuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp')
        device = 'device="%s",process="%s",folder="%s/dpdk"' % (self.name, self.name, runtime)
        port = device + ',port="1"'
        for metric, counter in (('port_data_received_bytes', 'port_rcv_data'),
                                ('port_packets_transmitted', 'port_xmit_packets'),
                                ('port_discards_received', 'port_rcv_missed')):
            self.assertEqual(found['softhca_' + metric], ('counter', {port: counters[counter]}))
        for counter in 'sq_wqes', 'retransmissions', 'rx_late_depth', 'ub_resent_nak', 'ipc_clients_accepted':
            self.assertEqual(found['softhca_' + counter], ('counter', {device: counters[counter]}))
        missing = [name for name in counters if not name.startswith(('port_', 'fault_', 'memif_')) and
                   'softhca_' + name not in found]
        self.assertEqual(missing, [])
        self.assertEqual(found['softhca_state_id'], ('gauge', {port: 4}))
        self.assertEqual(found['softhca_ipc_clean_up_longest_ns'][0], 'gauge')
        self.assertEqual(found['softhca_cm_now_ids'][0], 'gauge')
        self.assertEqual(found['softhca_cm_received_req'][0], 'counter')
        self.assertEqual(found['softhca_objects'][1][device + ',object="qps"'], 0)

    def test_all(self):
        """Both daemons, each metric once."""
        found = families(self.ctl('metrics'))
        for name in 'softhca_state_id', 'softhca_sq_wqes', 'softhca_objects':
            text = ' '.join(found[name][1])
            for d in self.daemons:
                self.assertIn('device="%s"' % d.name, text)

    def test_same_name(self):
        """Programs with embedded HCAs have the same names: each sample once, and which is whose."""
        with folder() as place:
            for number in range(2):
                self.addCleanup(Embedded(place, number).close)
            run = subprocess.run([CTL, 'metrics', '--prefix', 'softhca'], stdout=subprocess.PIPE, encoding='utf-8',
                                 timeout=TIMEOUT_S, check=True, env=dict(os.environ, XDG_RUNTIME_DIR=place))
            self.assertEqual({labels for labels in families(run.stdout)['softhca_healthy'][1] if place in labels}, {
                'device="sh0_0",process="softhca%s",folder="%s/dpdk"' % (number, place) for number in ('', ':1')})

    def test_dashboard(self):
        """It asks for nothing that is not there."""
        found = families(self.ctl('metrics', '--prefix', self.name))
        names = {name + SUFFIXES[kind] for name, (kind, _) in found.items()}
        asked = {name for _, expr in dashboard() for name in re.findall(r'softhca_\w+', expr)}
        self.assertGreater(len(asked), 20)
        self.assertEqual(asked - names, set())

    def test_refused(self):
        self.assertIn('no HCA was found', self.ctl('metrics', '--prefix', 'nosuch', status=1))
        self.assertIn('expected ADDRESS:PORT', self.ctl('metrics', '--listen', '9477', status=1))
        self.assertIn('expected ADDRESS:PORT', self.ctl('metrics', '--listen', 'host.invalid:1', status=1))
        self.assertIn('metrics are no JSON', self.ctl('metrics', '--json', status=2))
        self.assertIn('unexpected argument "x"', self.ctl('metrics', 'x', status=2))


class Listener(Case):
    def ask(self, process, request):
        with socket.create_connection(('127.0.0.1', process.port), TIMEOUT_S) as s:
            s.sendall(request)
            parts = iter(lambda: s.recv(65536), b'')
            return b''.join(parts).decode()

    def test_answers(self):
        process = self.listener('--prefix', self.name)
        url = 'http://127.0.0.1:%d/metrics' % process.port
        for _ in range(3):
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                self.assertIn('application/openmetrics-text; version=1.0.0', answer.headers['Content-Type'])
                self.assertIn('softhca_sq_wqes', families(answer.read().decode()))
        for request, status in ((b'GET / HTTP/1.1\r\n\r\n', '404'), (b'POST /metrics HTTP/1.1\r\n\r\n', '405'),
                                (b'GET /metricsx HTTP/1.1\r\n\r\n', '404'), (b'\n\n', '405'),
                                (b'GET /' + b'x' * 5000, '431')):
            self.assertTrue(self.ask(process, request).startswith('HTTP/1.1 ' + status), request)
        self.assertIn('# EOF', self.ask(process, b'GET /metrics?x=1 HTTP/1.0\n\n'))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT_S), 0)

    def test_crowd(self):
        """Clients that send no byte, or one now and then, or do not read, delay others only briefly."""
        process = self.listener('--prefix', self.name)
        idle = [socket.create_connection(('127.0.0.1', process.port)) for _ in range(40)]
        for s in idle[:20]:
            s.sendall(b'GET /metrics')
        with urllib.request.urlopen('http://127.0.0.1:%d/metrics' % process.port, timeout=TIMEOUT_S) as answer:
            families(answer.read().decode())
        with open('/proc/%d/status' % process.pid, encoding='utf-8') as file:
            self.assertIn('Threads:\t1\n', file.read())
        self.assertLess(len(os.listdir('/proc/%d/fd' % process.pid)), 40)
        for s in idle:
            s.settimeout(TIMEOUT_S)
            try:
                self.assertEqual(s.recv(1), b'')
            except ConnectionResetError:
                pass
            s.close()

    @staticmethod
    def all_of(s):
        with s, contextlib.suppress(ConnectionResetError):
            return b''.join(iter(lambda: s.recv(65536), b'')).decode()
        return ''

    def test_slow_answer(self):
        """A client that asks while the text is made, for longer than clients have, is answered."""
        with folder() as place:
            answer = threading.Event()
            fake = Embedded(place, 0, answer)
            self.addCleanup(fake.close)
            process = self.listener('--prefix', 'softhca', env=dict(os.environ, XDG_RUNTIME_DIR=place))
            deadline, late = time.monotonic() + TIMEOUT_S, True
            while late and time.monotonic() < deadline:
                answer.clear()
                fake.asked.clear()
                began = time.monotonic()
                first = socket.create_connection(('127.0.0.1', process.port), TIMEOUT_S)
                self.assertIn('404', self.ask(process, b'GET / HTTP/1.1\r\n\r\n'))  # so the first one is accepted
                second = socket.create_connection(('127.0.0.1', process.port), TIMEOUT_S)
                second.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
                self.assertTrue(fake.asked.wait(TIMEOUT_S))
                first.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
                late = time.monotonic() - began > LIMIT_OF_CLIENT / 2  # on a busy machine: it may have ended
                time.sleep(LIMIT_OF_CLIENT + 0.1)
                answer.set()
                said = [self.all_of(s) for s in (second, first)]
            for text in said:
                self.assertIn('# EOF', text)

    def test_daemon_ends(self):
        """A listener goes on without a daemon, and finds the next one."""
        d = Daemon(DAEMON, self.place, 'met%dc' % os.getpid(), 'net_ring0', '10.71.0.9/24')
        self.addCleanup(d.close)
        process = self.listener('--prefix', d.name)

        def devices():
            time.sleep(1.1)  # as long as a text is given again
            return 'softhca_state_id{' in self.ask(process, b'GET /metrics HTTP/1.1\r\n\r\n')
        self.assertFalse(devices())
        d.start()
        end = time.monotonic() + TIMEOUT_S
        while not devices():
            self.assertLess(time.monotonic(), end)
        d.stop()
        self.assertFalse(devices())


@unittest.skipUnless(shutil.which('prometheus'), 'prometheus is not installed')
class Prometheus(Case):
    CONFIG = ('global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: softhca\n    static_configs:\n'
              '      - targets: ["127.0.0.1:%d"]\n')

    def query(self, expr):
        url = 'http://127.0.0.1:%d/api/v1/query?%s' % (self.port, urllib.parse.urlencode({'query': expr}))
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                return json.load(answer)['data']['result']
        except urllib.error.HTTPError as error:
            self.fail('%s: %s' % (expr, error.read().decode()))
        except (urllib.error.URLError, ConnectionError):
            return []  # it is about to start

    def start(self, target):
        self.port = free_port()
        config = os.path.join(self.place, 'prometheus.yml')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(self.CONFIG % target)
        with open(os.path.join(self.place, 'prometheus.log'), 'wb') as log:
            process = subprocess.Popen(
                ['prometheus', '--config.file=' + config, '--storage.tsdb.path=%s/data' % self.place,
                 '--web.listen-address=127.0.0.1:%d' % self.port], stdout=log, stderr=log, preexec_fn=die_with_parent)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def wait(self, expr):
        end = time.monotonic() + TIMEOUT_S
        while not (result := self.query(expr)):
            self.assertLess(time.monotonic(), end, expr)
            time.sleep(0.3)
        return result

    def test_dashboard(self):
        """Every query of the dashboard has data."""
        process = self.listener('--prefix', self.name)
        self.start(process.port)
        self.wait('softhca_sq_wqes_total')
        self.traffic()
        self.wait('increase(softhca_sq_wqes_total[1m]) > 0')
        self.wait('up{job="softhca"} == 1')
        for title, expr in dashboard():
            expr = expr.replace('$device', '.*').replace('$__rate_interval', '1m')
            result = self.wait(expr)  # without data after a scrape that came too late
            print('%-40s %d series' % (title, len(result)))
            self.assertEqual(result[0]['metric']['device'], self.name)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
