# SPDX-License-Identifier: Apache-2.0
"""No call is made inside a begun call. From call_begin to the end of a call its record, and then its
answer, lie in memory of the thread that the next call of the thread uses, too (devshim/call.h). Reads C files
of the house style (a function's braces in column 0), follows who calls whom by name, and prints each place
where a function that has begun a call, and has not ended it, calls what may make another. What is called
through a pointer is not seen here: call.c finds it when it happens.

    begun.py FILE.c...      status 1 when there is such a place
"""
import re
import sys

MAKES = {'call_begin', 'channel_wait', 'channel_wait_data', 'channel_await', 'channel_await_once'}
ENDS = {'call_post', 'call_end'}
SENDS = {'call_wait', 'call_wait_transfer'}     # of the begun call itself
TAKES_CALL = re.compile(r'\bstruct call \*')
OWN_CALL = re.compile(r'^\s*struct call \w+[;,]', re.M)
CALLED = re.compile(r'\b(\w+)\s*\(')


def blank(match):
    return '\n' * match.group(0).count('\n')


def functions(path):
    """Yields name, whether static, head, first line, lines of the body."""
    text = open(path, encoding='utf-8').read()
    text = re.sub(r'/\*.*?\*/', blank, text, flags=re.S)
    text = re.sub(r'//[^\n]*', '', text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    lines = text.split('\n')
    at = 0
    while at < len(lines):
        if lines[at].startswith('{'):
            first = at
            while first and lines[first - 1].strip() and not re.match(r'[}#]', lines[first - 1]) \
                    and not lines[first - 1].endswith(';'):
                first -= 1
            head = ' '.join(lines[first:at])
            end = next((i for i in range(at, len(lines)) if lines[i].startswith('}')), len(lines))
            name = CALLED.search(re.sub(r'__attribute__\(\(.*?\)\)', '', head))
            if name and '=' not in head:
                yield name.group(1), 'static' in head.split(), head, at + 2, lines[at + 1:end]
            at = end
        at += 1


class Tree:
    def __init__(self, paths):
        self.found = {}         # key: (path, head, first line, body)
        for path in paths:
            for name, static, head, line, body in functions(path):
                self.found[(path, name) if static else name] = (path, head, line, body)
        self.calls = {k: set(self.called(k)) for k in self.found}

    def resolve(self, path, name):
        return (path, name) if (path, name) in self.found else name

    def called(self, key):
        path, _, _, body = self.found[key]
        return [self.resolve(path, w) for w in CALLED.findall('\n'.join(body))]

    def reach(self, start, which=lambda key: True):
        """All functions that call one of `start`, or what does; with the one that each calls."""
        why = dict.fromkeys(start)
        more = True
        while more:
            more = False
            for key in self.found:
                if key in why or not which(key):
                    continue
                to = sorted((k for k in self.calls[key] if k in why), key=str)
                if to:
                    why[key] = to[0]
                    more = True
        return why


def text(key):
    return key if isinstance(key, str) else key[1]


def chain(why, key):
    names = []
    while key is not None:
        names.append(text(key))
        key = why[key]
    return ' > '.join(names)


def check(tree):
    bad = 0
    with_call = lambda key: bool(TAKES_CALL.search(tree.found[key][1]))
    makes = tree.reach(MAKES)
    begins = tree.reach({'call_begin'}, with_call)
    sends = tree.reach(ENDS | SENDS, with_call)
    ends = tree.reach(ENDS, with_call)
    # What is begun and ended for a caller by its helpers is the caller's.
    for key, (path, head, line, body) in tree.found.items():
        own = OWN_CALL.search('\n'.join(body))
        if key in MAKES | ENDS | SENDS or not (own or with_call(key)):
            continue
        begun = not own and key not in begins
        for i, row in enumerate(body):
            for word in CALLED.findall(row):
                to = tree.resolve(path, word)
                if to in begins:
                    begun = True
                elif to in sends:
                    begun = begun and to not in ends
                elif to in makes and begun:
                    bad += 1
                    print(f'{path}:{line + i}: {text(key)} has begun a call and makes another: '
                          f'{chain(makes, to)}')
    return bad


tree = Tree(sys.argv[1:])
# An empty answer must not come from a parser that has found nothing.
if not any(k in tree.calls and 'call_begin' in tree.calls[k] for k in tree.found):
    sys.exit('begun.py: no function here begins a call')
sys.exit(1 if check(tree) else 0)
