# SPDX-License-Identifier: BSD-3-Clause
"""Charts of benchmarks/report as SVG: lines over a logarithmic or linear scale, and bars."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 40, 60
COLOURS = ('#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf', '#8c564b', '#7f7f7f')


def number(value):
    for factor, unit in ((1 << 20, 'M'), (1 << 10, 'K')):
        if value >= factor and value % factor == 0:
            return '%d%s' % (value // factor, unit)
    return '%g' % float('%.3g' % value)


class Axis:
    def __init__(self, values, log, begin, end):
        values = [value for value in values if value > 0 or not log] or [1]
        self.log, self.begin, self.end = log, begin, end
        self.low, self.high = (min(values), max(values)) if log else (0, max(values) or 1)
        if self.low == self.high:
            self.high = self.low * 2 or 1

    def at(self, value):
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self, wanted=None):
        if wanted:
            return wanted
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            return [10.0 ** n for n in range(first, last + 1) if self.low <= 10.0 ** n <= self.high] or [self.low]
        step = 10 ** math.floor(math.log10(self.high))
        step = next(step * part for part in (0.1, 0.2, 0.25, 0.5, 1, 2) if self.high / (step * part) <= 6)
        return [step * n for n in range(int(self.high / step) + 1)]


def text(x, y, words, anchor='middle', size=12, more=''):
    return '<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s"%s>%s</text>' % (
        x, y, size, anchor, more, escape(words))


def frame(title, note, body):
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
             'font-family="sans-serif">' % (WIDTH, HEIGHT, WIDTH, HEIGHT),
             '<rect width="100%" height="100%" fill="white"/>', text(WIDTH / 2, 20, title, size=15)]
    return '\n'.join(lines + body + [text(WIDTH / 2, HEIGHT - 6, note, size=10, more=' fill="#555"'), '</svg>', ''])


def axes(x, y, xlabel, ylabel, xticks):
    yield '<path d="M%d %d V%d H%d" fill="none" stroke="black"/>' % (LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT)
    for value in x.ticks(xticks):
        yield text(x.at(value), HEIGHT - BOTTOM + 16, number(value), size=11)
    for value in y.ticks():
        yield '<path d="M%d %.1f H%d" stroke="#ddd"/>' % (LEFT, y.at(value), WIDTH - RIGHT)
        yield text(LEFT - 6, y.at(value) + 4, number(value), 'end', 11)
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, xlabel)
    yield text(16, HEIGHT / 2, ylabel, more=' transform="rotate(-90 16 %d)"' % (HEIGHT // 2))


def lines(title, note, series, xlabel, ylabel, xlog=True, ylog=False, xticks=None):
    """series: (name, [(x, y)], dashed)."""
    points = [point for _, line, _ in series for point in line]
    x = Axis([a for a, _ in points], xlog, LEFT, WIDTH - RIGHT)
    y = Axis([b for _, b in points], ylog, HEIGHT - BOTTOM, TOP)
    body = list(axes(x, y, xlabel, ylabel, xticks))
    for i, (name, line, dashed) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        path = ' '.join('%s%.1f %.1f' % ('L' if n else 'M', x.at(a), y.at(b)) for n, (a, b) in enumerate(line))
        body.append('<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>' % (
            path or 'M0 0', colour, ' stroke-dasharray="6 4"' if dashed else ''))
        body.append(text(WIDTH - RIGHT + 10, TOP + 16 + 18 * i, name, 'start', 12, ' fill="%s"' % colour))
    return frame(title, note, body)


def bars(title, note, groups, unit):
    """groups: (name, [(part, value)]): a stacked bar each."""
    parts = []
    for _, values in groups:
        parts += [part for part, _ in values if part not in parts]
    x = Axis([sum(value for _, value in values) for _, values in groups], False, LEFT + 60, WIDTH - RIGHT)
    height = (HEIGHT - TOP - BOTTOM) / max(len(groups), 1)
    body = []
    for value in x.ticks():
        body.append('<path d="M%.1f %d V%d" stroke="#ddd"/>' % (x.at(value), TOP, HEIGHT - BOTTOM))
        body.append(text(x.at(value), HEIGHT - BOTTOM + 16, number(value), size=11))
    for row, (name, values) in enumerate(groups):
        top, at = TOP + row * height + height * 0.15, 0
        body.append(text(LEFT + 52, top + height * 0.4, name, 'end', 11))
        for part, value in values:
            body.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>' % (
                x.at(at), top, max(x.at(at + value) - x.at(at), 0), height * 0.7,
                COLOURS[parts.index(part) % len(COLOURS)], escape('%s %.1f' % (part, value))))
            at += value
    for i, part in enumerate(parts):
        body.append(text(WIDTH - RIGHT + 10, TOP + 16 + 18 * i, part, 'start', 12,
                         ' fill="%s"' % COLOURS[i % len(COLOURS)]))
    body.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, unit))
    return frame(title, note, body)
