# SPDX-License-Identifier: BSD-3-Clause
"""summary.py DIRECTORY [lossy]: joins the JSON files softhca-perf left there into results.json,
prints one table per test, all operations side by side, and fails if a row is not verified or, unless
the link was lossy, if anything was sent twice."""
import glob
import json
import os
import sys

# test -> (title, [(column, value of a row, decimals)])
TABLES = {
    'bw': ('bandwidth', [
        ('Gbit/s', lambda row: row['gbit_per_s'], 2),
        ('Mmsg/s', lambda row: row['mmsg_per_s'], 3),
        ('ns/msg', lambda row: row['ns_per_msg'], 1),
    ]),
    'lat': ('latency, us', [
        ('p50', lambda row: row['lat_us']['p50'], 2),
        ('p99', lambda row: row['lat_us']['p99'], 2),
        ('p999', lambda row: row['lat_us']['p999'], 2),
    ]),
}


def rows_of(path):
    """A file holds a list of rows, an object with this list among others, or a row per line."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    try:
        document = json.loads(text)
    except ValueError:
        document = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(document, list):
        return document
    for value in document.values():
        if isinstance(value, list):
            return [dict(row, host=row.get('host', document.get('host'))) for row in value]
    return [document]


def load(directory):
    rows, broken = [], []
    # in the order they were measured
    for path in sorted(glob.glob(os.path.join(directory, '*-*.json')), key=os.path.getmtime):
        try:
            rows += rows_of(path)
        except (OSError, ValueError) as error:
            broken.append('%s: %s' % (path, error))
    return rows, broken


def print_table(test, rows):
    title, columns = TABLES[test]
    ops = sorted({row['op'] for row in rows}, key=[row['op'] for row in rows].index)
    cells = {(row['op'], row['size']): row for row in rows}
    width = 10 * len(columns)
    print('\n%s' % title)
    print('%9s' % '' + ''.join(' |' + op.center(width) for op in ops))
    print('%9s' % '#bytes' + ''.join(
        ' |' + ''.join('%10s' % name for name, _, _ in columns) for _ in ops))
    for size in sorted({row['size'] for row in rows}):
        line = '%9d' % size
        for op in ops:
            row = cells.get((op, size))
            line += ' |' + ''.join('%10s' % ('%.*f' % (decimals, value(row)) if row else '')
                                   for _, value, decimals in columns)
        print(line)


def complaints(rows, lossy):
    if not rows:
        yield 'no results'
    for row in rows:
        where = '%(op)s %(test)s %(size)d B' % row
        if row['verified'] is not True:
            yield where + ': data not verified'
        if row['retransmissions'] and not lossy:
            yield where + ': %d retransmissions on a clean link' % row['retransmissions']


def main():
    directory = sys.argv[1]
    rows, broken = load(directory)
    with open(os.path.join(directory, 'results.json'), 'w', encoding='utf-8') as out:
        json.dump(rows, out, indent=1)
    for test in TABLES:
        selected = [row for row in rows if row['test'] == test]
        if selected:
            print_table(test, selected)
    print()
    wrong = broken + list(complaints(rows, 'lossy' in sys.argv[2:]))
    for complaint in wrong:
        print('error:', complaint, file=sys.stderr)
    if not wrong:
        print('%d rows, all data verified, %d retransmissions' % (
            len(rows), sum(row['retransmissions'] for row in rows)))
    return 1 if wrong else 0


sys.exit(main())
