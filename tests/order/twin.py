"""An implementation of docs/order.md, for python.rs: commands on standard input, one line of numbers per command."""

import sys

M = 2**64
G, C1, C2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(z):
    z = (z ^ z >> 30) * C1 % M
    z = (z ^ z >> 27) * C2 % M
    return z ^ z >> 31


def absorb(tag, *words):
    h = 0
    for word in (int.from_bytes(tag, "big"), *words):
        h = mix(((h ^ word) + G) % M)
    return h


class Prp:
    def __init__(self, n, seed, epoch, stream):
        h = absorb(b"TFRDPRP1", seed, epoch, stream, n)
        self.n, self.keys = n, [mix((h + (i + 1) * G) % M) for i in range(8)]
        bits = max(10, (n - 1).bit_length())
        self.wl, self.wr = bits // 2, bits - bits // 2

    def rounds(self, x, back):
        def f(x, key, w):
            z = (x ^ key) * C1 % M
            return ((z ^ z >> 32) * C2 % M) >> (64 - w)

        left, right = x >> self.wr, x % 2**self.wr
        for j in reversed(range(8)) if back else range(8):
            if j % 2 == 0:
                left ^= f(right, self.keys[j], self.wl)
            else:
                right ^= f(left, self.keys[j], self.wr)
        return left << self.wr | right

    def get(self, x, back=False):
        while True:
            x = self.rounds(x, back)
            if x < self.n:
                return x


def block(n, b, w, seed, epoch, t):
    nb = -(-n // b)
    last = n - (nb - 1) * b
    pb = Prp(nb, seed, epoch, 1)
    q = pb.get(nb - 1, back=True)
    nw = -(-nb // w)

    def start(j):
        return min(j * w, nb) * b - (b - last if q < min(j * w, nb) else 0)

    j = t // (w * b)
    if j + 1 < nw and t >= start(j + 1):
        j += 1
    u = Prp(start(j + 1) - start(j), seed, epoch, 2 + j).get(t - start(j))
    s = q - j * w
    if 0 <= s < w and u >= s * b:
        if u < s * b + last:
            slot, off = s, u - s * b
        else:
            v = u - s * b - last
            slot, off = s + 1 + v // b, v % b
    else:
        slot, off = u // b, u % b
    return pb.get(j * w + slot) * b + off


def mixture(weights, seed, t, start=0, given=None):
    """The component and sample at a position, with cycles from ``start`` on, before which the components gave ``given``."""
    p = sum(weights)
    y, inside = divmod(t - start, p)
    prp = Prp(p, seed, y, 3 * 2**32)
    components = [c for c, q in enumerate(weights) for _ in range(q)]
    cycle = [components[prp.get(k)] for k in range(inside + 1)]
    c = cycle[-1]
    return c, (given or [0] * len(weights))[c] + y * weights[c] + cycle[:-1].count(c)


def draw(weights, seed, epoch, t):
    n, total = len(weights), sum(weights)
    p = [n * w for w in weights]
    alias, threshold = list(range(n)), [M - 1] * n
    small = [i for i in range(n) if p[i] < total]
    large = [i for i in range(n) if p[i] >= total]
    while small and large:
        s, g = small.pop(), large.pop()
        threshold[s], alias[s] = p[s] * M // total, g
        p[g] -= total - p[s]
        (small if p[g] < total else large).append(g)
    h = absorb(b"TFRDALI1", seed, epoch, 0, n)
    h1, h2 = (mix((h + (2 * t + a) * G) % M) for a in (1, 2))
    j = h1 * n // M
    return j if h2 < threshold[j] else alias[j]


for line in sys.stdin:
    what, *words = line.split()
    weights = [int(w) for w in words.pop(0).split(",")] if what in ("mixture", "changed", "draw") else None
    *args, t = map(int, words)
    if what == "prp":
        prp = Prp(*args)
        out = [prp.get(t + k) for k in range(3)]
        assert [prp.get(x, back=True) for x in out] == [t, t + 1, t + 2]
    elif what == "block":
        out = [block(*args, t + k) for k in range(3)]
    elif what == "changed":
        # Weights that changed at `start`, before which the components gave `given`.
        seed, start, *given = args
        out = [x for k in range(3) for x in mixture(weights, seed, t + k, start, given)]
    elif what == "mixture":
        out = [x for k in range(3) for x in mixture(weights, *args, t + k)]
    elif what == "draw":
        out = [draw(weights, *args, t + k) for k in range(3)]
    else:
        out = [absorb(b"TFRDAUG1", *args, t)]
    print(*out)
