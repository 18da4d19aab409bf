# SPDX-License-Identifier: BSD-3-Clause
"""The manual page of a program from a template, whose line @options@ becomes the output of --list-options:
tabs between name, letter, argument, choices and text.

option_page.py TEMPLATE PROGRAM OUTPUT
"""
import re
import subprocess
import sys


def described(text):
    text = re.sub(r' \[([^\[\]]*)\]$', r' (default: \1)', text).rstrip('.')
    return ('\\&' if text[0] in ".'" else '') + text.replace('\\', '\\\\') + '.'


def main():
    template, program, output = sys.argv[1:]
    said = subprocess.run([program, '--list-options'], stdout=subprocess.PIPE, encoding='utf-8', timeout=60,
                          check=True).stdout
    lines = []
    for name, letter, argument, _, text in (line.split('\t') for line in said.splitlines()):
        lines.append('.It %sFl -%s%s' % ('Fl %s , ' % letter if letter else '', name,
                                         ' Ar ' + argument if argument else ''))
        lines.append(described(text))
    if len(lines) < 6:
        sys.exit('%s names no options' % program)
    with open(template, encoding='utf-8') as file:
        page = file.read()
    with open(output, 'w', encoding='utf-8') as file:
        file.write(page.replace('@options@', '\n'.join(lines)))


main()
