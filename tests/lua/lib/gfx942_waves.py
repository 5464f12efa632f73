"""Executes a code object for gfx942, instruction by instruction as llvm-objdump prints them, by our own reading of AMD's
CDNA 3 instruction set: the definitions in front of a kernel run nowhere else. An access of memory is complete as late as
the machine allows, or earlier, as the seed decides: at the latest when s_waitcnt demands it. Until then the registers that it
writes must not be used. A wave's loads and stores of global memory complete in order, so do its accesses of LDS; scalar loads
do not. Which wave goes on is random, too, or by random priorities. Accesses of LDS by several waves must be ordered by barriers,
or by additions to a counter that the other wave has read.

    python3 gfx942_waves.py OBJECT ENTRY THREADS BLOCKS SEED ARGUMENT...
    python3 gfx942_waves.py --spoil SEEDS OBJECT ENTRY THREADS BLOCKS SEED ARGUMENT...

An ARGUMENT is in:FILE, the bytes that it points to; out:FILE:BYTES, written at the end; or int:N. --spoil takes each wait,
barrier and arrival out of the code, one at a time, and prints which of them make no difference, and why.
"""
import math
import os
import random
import re
import struct
import subprocess
import sys

LANES = range(64)
M32, M64 = 0xffffffff, 0xffffffffffffffff
VCC, EXEC, M0 = 106, 126, 124
STEPS = 200  # instructions at most before another wave goes on
UNDER_WAY = {'vmcnt': 63, 'lgkmcnt': 15}  # the most of each counter; more are not issued
EARLY = (0.9, 0, 0.3)  # how likely the oldest access is complete whenever another one begins


class Fault(Exception):
    pass


def number(b):
    return struct.unpack('<f', struct.pack('<I', b))[0]


def bits(x):
    try:
        return struct.unpack('<I', struct.pack('<f', x))[0]
    except OverflowError:
        return 0xff800000 if x < 0 else 0x7f800000


def signed(x, n=32):
    return x - (1 << n) if x >> (n - 1) else x


def code(path, entry):
    """address -> (operation, operands, address behind it), and the first address."""
    tool = os.environ.get('OBJDUMP', '/usr/lib/llvm-22/bin/llvm-objdump')
    text = subprocess.run([tool, '-d', path], capture_output=True, text=True, check=True).stdout
    out, inside, first = {}, False, None
    for line in text.split('\n'):
        m = re.match(r'^[0-9a-f]+ <(.*)>:', line)
        if m:
            inside = m[1] == entry
        m = re.match(r'\t(\S+)\s*(.*?)\s*// ([0-9A-F]{12}): ([0-9A-F ]+)', line)
        if not inside or not m:
            continue
        at = int(m[3], 16)
        op = re.sub(r'_e(32|64)$', '', m[1])
        operands = re.split(r',\s*(?![^\[]*\])', m[2]) if m[2] else []
        mods = operands[-1].split()[1:] if operands else []
        if operands:
            operands[-1] = operands[-1].split()[0]
        out[at] = (op, operands, mods, at + 4 * len(m[4].split()))
        first = at if first is None else first
    if first is None:
        raise Fault('there is no kernel ' + entry)
    return out, first


class Memory:
    """Buffers, each at an address of its own."""

    def __init__(self):
        self.buffers = []
        self.loaded, self.stored = set(), set()

    def add(self, data):
        base = (len(self.buffers) + 1) << 32
        self.buffers.append(data)
        return base

    def find(self, at, n):
        i, off = (at >> 32) - 1, at & M32
        if not 0 <= i < len(self.buffers) or off + n > len(self.buffers[i]):
            raise Fault(f'global address {at:#x}')
        return self.buffers[i], off

    def get(self, at, n):
        b, off = self.find(at, n)
        return int.from_bytes(b[off:off + n], 'little')

    def put(self, at, n, x):
        b, off = self.find(at, n)
        b[off:off + n] = (x & ((1 << 8 * n) - 1)).to_bytes(n, 'little')


INLINE = {'0.5': 0x3f000000, '-0.5': 0xbf000000, '1.0': 0x3f800000, '-1.0': 0xbf800000, '2.0': 0x40000000,
          '-2.0': 0xc0000000, '4.0': 0x40800000, '-4.0': 0xc0800000, '0.15915494': 0x3e22f983}
NAMES = {'vcc': VCC, 'vcc_lo': VCC, 'vcc_hi': VCC + 1, 'exec': EXEC, 'exec_lo': EXEC, 'exec_hi': EXEC + 1, 'm0': M0}


def register(x):
    """(kind, number) of a register or of the first of several; None: a constant. Accumulation registers follow the others."""
    if x in NAMES:
        return 's', NAMES[x]
    m = re.match(r'([sva])\[?(\d+)', x)
    if m and m[1] == 'a':
        return 'v', 256 + int(m[2])
    return (m[1], int(m[2])) if m and not x.startswith('src') else None


def constant(x, wide=False):
    if x in INLINE:
        return INLINE[x]
    try:
        return int(x, 0) & (M64 if wide else M32)
    except ValueError:
        raise Fault('operand ' + x) from None


class Wave:
    def __init__(self, block, n):
        self.block, self.n, self.pc = block, n, block.first
        self.s = [0] * 128
        self.v = [[0] * 64 for _ in range(512)]
        self.v[0] = [64 * n + i for i in LANES]
        self.scc, self.before = 0, ('s_nop', [])
        self.s[0], self.s[1], self.s[2] = block.arguments & M32, block.arguments >> 32, block.n
        self.put64(EXEC, M64)
        self.under_way = {'vmcnt': [], 'lgkmcnt': []}  # (what, the registers that it writes, what completes it)
        self.late = {}  # register -> how many accesses under way write it
        # It sleeps if nothing has been written since it looked. The polls passed, and the last of them.
        self.asleep, self.seen, self.passed = False, 0, set()
        self.clock = [0] * (block.threads // 64)  # of each wave, what this one knows to be done
        self.clock[n] = 1

    def begin(self, counter, what, regs, complete):
        queue, b = self.under_way[counter], self.block
        for r in regs:
            self.late[r] = self.late.get(r, 0) + 1
        while len(queue) >= UNDER_WAY[counter]:
            self.finish(counter)
        queue.append((what, regs, complete))
        while queue and b.chance.random() < b.early:
            self.finish(counter)

    def finish(self, counter):
        """Complete one access that may be the next one: scalar loads are as late as they can be."""
        queue = self.under_way[counter]
        i = next((i for i, x in enumerate(queue) if x[0] != 'scalar load'), None)
        if i is None or self.block.early and self.block.chance.random() < 0.3:
            some = [j for j, x in enumerate(queue) if x[0] == 'scalar load']
            i = self.block.chance.choice(some) if some else i
        what, regs, complete = queue.pop(i)
        for r in regs:
            if self.late[r] == 1:
                del self.late[r]
            else:
                self.late[r] -= 1
        complete()
        return what

    def wait(self, at, counter, n):
        """Complete one access, if more than n are under way: other waves may go on before the next one is. False: none was."""
        if len(self.under_way[counter]) <= n:
            return False
        if n and any(x[0] == 'scalar load' for x in self.under_way[counter]):
            raise Fault('scalar loads are under way, which complete in any order')
        what = self.finish(counter)
        self.block.forced.setdefault((at, counter), set()).add(what)
        if len(self.under_way[counter]) == n:
            self.block.last.setdefault((at, counter), set()).add(what)
        return True

    def look(self, kind, i, n=1):
        for j in range(i, i + n):
            if (kind, j) in self.late:
                raise Fault(f'{kind}{j} is used, and a load that writes it is under way')

    def complete_put(self, e, x, y, i=0):
        """Write what has been loaded for the threads of mask e."""
        n = register(x)[1] + i
        to = self.v[n]
        self.v[n] = [y[j] & M32 if e >> j & 1 else to[j] for j in LANES]

    def get64(self, i):
        return self.s[i] | self.s[i + 1] << 32

    def put64(self, i, x):
        self.s[i], self.s[i + 1] = x & M32, x >> 32 & M32

    def S(self, x, wide=False):
        r = register(x)
        if r is None:
            return constant(x, wide)
        if r[0] != 's':
            raise Fault(f'{x} as a scalar')
        if self.late:
            self.look('s', r[1], 2 if wide else 1)
        return self.get64(r[1]) if wide else self.s[r[1]]

    def word(self, x, i=0):
        """Word i of a vector operand, of all lanes."""
        minus = x.startswith('-') and x[1:2] in ('v', 's', '|')
        x = x[1:] if minus else x
        absolute = x.startswith('|')
        x = x.strip('|')
        r = register(x)
        if self.late and r:
            self.look(r[0], r[1] + i)
        if r is None:
            c = constant(x, True)
            y = [c >> 32 * i & M32] * 64
        elif r[0] == 's':
            y = [self.s[r[1] + i]] * 64
        else:
            y = self.v[r[1] + i]
        if absolute:
            y = [z & 0x7fffffff for z in y]
        return [z ^ 0x80000000 for z in y] if minus else y

    def pair(self, x):
        lo, hi = self.word(x), self.word(x, 1)
        return [a | b << 32 for a, b in zip(lo, hi)]

    def mask(self):
        return self.get64(EXEC)

    def put(self, x, y, i=0):
        kind, n = register(x)
        if kind != 'v':
            raise Fault(f'{x} as a vector')
        if self.late:
            self.look('v', n + i)
        e, to = self.mask(), self.v[n + i]
        self.v[n + i] = [y[j] & M32 if e >> j & 1 else to[j] for j in LANES]

    def put_mask(self, x, y):
        e = self.mask()
        self.put64(register(x)[1], sum(1 << j for j in LANES if e >> j & 1 and y[j]))

    def active(self):
        e = self.mask()
        return [j for j in LANES if e >> j & 1]


def fp(f):
    def g(*a):
        x = [number(z) for z in a]
        try:
            return bits(f(*x))
        except (OverflowError, ValueError, ZeroDivisionError):
            return 0x7fc00000
    return g


def least(*a):
    a = [x for x in a if x == x]
    return min(a) if a else math.nan


def most(*a):
    a = [x for x in a if x == x]
    return max(a) if a else math.nan


def exp2(x):
    return math.nan if x != x else math.inf if x >= 128 else 0.0 if x < -126 else 2.0 ** x


def log2(x):
    return -math.inf if x == 0 else math.nan if x < 0 or x != x else x if x == math.inf else math.log2(x)


def rcp(x):
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def perm(a, b, sel):
    both, out = a << 32 | b, 0
    for i in range(4):
        s = sel >> 8 * i & 255
        if s > 7 and s != 12:
            raise Fault('v_perm of signs')
        out |= 0 if s == 12 else (both >> 8 * s & 255) << 8 * i
    return out


def bfe(x, at, n):
    return x >> (at & 31) & ((1 << (n & 31)) - 1)


def round_even(x):
    return float(round(x)) if abs(x) < 2 ** 23 else x


def to_int(x, low, high):
    return 0 if x != x else int(min(max(x, low), high)) & M32


def to_half(x):
    try:
        return struct.unpack('<H', struct.pack('<e', number(x)))[0]
    except OverflowError:
        return 0xfc00 if number(x) < 0 else 0x7c00


def of_half(x):
    return bits(struct.unpack('<e', struct.pack('<H', x & 0xffff))[0])


s32 = signed
VECTOR = {
    'v_mov_b32': lambda a: a, 'v_accvgpr_read_b32': lambda a: a, 'v_accvgpr_write_b32': lambda a: a,
    'v_accvgpr_mov_b32': lambda a: a, 'v_not_b32': lambda a: ~a, 'v_and_b32': lambda a, b: a & b, 'v_or_b32': lambda a, b: a | b,
    'v_xor_b32': lambda a, b: a ^ b, 'v_add_u32': lambda a, b: a + b, 'v_sub_u32': lambda a, b: a - b,
    'v_subrev_u32': lambda a, b: b - a, 'v_mul_lo_u32': lambda a, b: a * b, 'v_mul_hi_u32': lambda a, b: a * b >> 32,
    'v_mul_u32_u24': lambda a, b: (a & 0xffffff) * (b & 0xffffff),
    'v_mul_i32_i24': lambda a, b: s32(a & 0xffffff, 24) * s32(b & 0xffffff, 24),
    'v_mad_u32_u24': lambda a, b, c: (a & 0xffffff) * (b & 0xffffff) + c,
    'v_mad_i32_i24': lambda a, b, c: s32(a & 0xffffff, 24) * s32(b & 0xffffff, 24) + c,
    'v_lshlrev_b32': lambda a, b: b << (a & 31), 'v_lshrrev_b32': lambda a, b: b >> (a & 31),
    'v_ashrrev_i32': lambda a, b: s32(b) >> (a & 31), 'v_bfe_u32': bfe,
    'v_bfe_i32': lambda a, b, c: s32(bfe(a, b, c), c & 31) if c & 31 else 0, 'v_bfi_b32': lambda a, b, c: (a & b) | (~a & c),
    'v_add3_u32': lambda a, b, c: a + b + c, 'v_or3_b32': lambda a, b, c: a | b | c,
    'v_lshl_or_b32': lambda a, b, c: (a << (b & 31)) | c, 'v_and_or_b32': lambda a, b, c: (a & b) | c,
    'v_add_lshl_u32': lambda a, b, c: (a + b) << (c & 31), 'v_lshl_add_u32': lambda a, b, c: (a << (b & 31)) + c,
    'v_xad_u32': lambda a, b, c: (a ^ b) + c, 'v_perm_b32': perm,
    'v_min_u32': min, 'v_max_u32': max, 'v_min_i32': lambda a, b: min(s32(a), s32(b)), 'v_max_i32': lambda a, b: max(s32(a), s32(b)),
    'v_min3_u32': min, 'v_max3_u32': max, 'v_min3_i32': lambda a, b, c: min(s32(a), s32(b), s32(c)), 'v_max3_i32': lambda a, b, c: max(s32(a), s32(b), s32(c)),
    'v_med3_i32': lambda a, b, c: sorted(map(s32, (a, b, c)))[1],
    'v_add_f32': fp(lambda a, b: a + b), 'v_sub_f32': fp(lambda a, b: a - b), 'v_subrev_f32': fp(lambda a, b: b - a),
    'v_mul_f32': fp(lambda a, b: a * b), 'v_fma_f32': fp(lambda a, b, c: a * b + c), 'v_fmamk_f32': fp(lambda a, b, c: a * b + c),
    'v_fmaak_f32': fp(lambda a, b, c: a * b + c), 'v_max_f32': fp(most), 'v_min_f32': fp(least), 'v_max3_f32': fp(most),
    'v_min3_f32': fp(least), 'v_med3_f32': fp(lambda *a: sorted(a)[1]), 'v_exp_f32': fp(exp2), 'v_log_f32': fp(log2),
    'v_rcp_f32': fp(rcp), 'v_rsq_f32': fp(lambda a: rcp(math.sqrt(a))), 'v_sqrt_f32': fp(math.sqrt),
    'v_floor_f32': fp(math.floor), 'v_rndne_f32': fp(round_even), 'v_cvt_f32_u32': lambda a: bits(float(a)),
    'v_cvt_f32_i32': lambda a: bits(float(s32(a))), 'v_cvt_u32_f32': lambda a: to_int(number(a), 0, M32),
    'v_cvt_i32_f32': lambda a: to_int(number(a), -2 ** 31, 2 ** 31 - 1), 'v_cvt_f16_f32': to_half, 'v_cvt_f32_f16': of_half,
    'v_alignbit_b32': lambda a, b, c: (a << 32 | b) >> (c & 31), 'v_bfrev_b32': lambda a: int(f'{a:032b}'[::-1], 2),
    'v_med3_i16': lambda a, b, c: sorted(s32(x & 0xffff, 16) for x in (a, b, c))[1] & 0xffff,
    'v_mul_hi_i32': lambda a, b: s32(a) * s32(b) >> 32, 'v_ffbh_u32': lambda a: 32 - a.bit_length() if a else M32,
    'v_add_u16': lambda a, b: a + b & 0xffff, 'v_sub_u16': lambda a, b: a - b & 0xffff,
    'v_mul_lo_u16': lambda a, b: a * b & 0xffff, 'v_lshlrev_b16': lambda a, b: b << (a & 15) & 0xffff,
    'v_lshrrev_b16': lambda a, b: (b & 0xffff) >> (a & 15),
    'v_pack_b32_f16': lambda a, b: (a & 0xffff) | (b & 0xffff) << 16,
}
COMPARE = {'lt': lambda a, b: a < b, 'le': lambda a, b: a <= b, 'gt': lambda a, b: a > b, 'ge': lambda a, b: a >= b,
           'eq': lambda a, b: a == b, 'ne': lambda a, b: a != b, 'lg': lambda a, b: a != b and a == a and b == b,
           'neq': lambda a, b: a != b, 'nlt': lambda a, b: not a < b, 'nle': lambda a, b: not a <= b,
           'ngt': lambda a, b: not a > b, 'nge': lambda a, b: not a >= b, 'u': lambda a, b: a != a or b != b,
           'o': lambda a, b: a == a and b == b}
SCALAR = {
    's_add_i32': lambda x, y: (x + y, not -2 ** 31 <= s32(x) + s32(y) < 2 ** 31), 's_sub_i32': lambda x, y: (x - y, not
        -2 ** 31 <= s32(x) - s32(y) < 2 ** 31), 's_add_u32': lambda x, y: (x + y, x + y > M32),
    's_sub_u32': lambda x, y: (x - y, y > x), 's_mul_i32': lambda x, y: (x * y, None), 's_mul_hi_u32': lambda x, y: (x * y >> 32, None),
    's_and_b32': lambda x, y: (x & y, x & y != 0), 's_or_b32': lambda x, y: (x | y, x | y != 0),
    's_xor_b32': lambda x, y: (x ^ y, x ^ y != 0), 's_lshl_b32': lambda x, y: (x << (y & 31), x << (y & 31) & M32 != 0),
    's_lshr_b32': lambda x, y: (x >> (y & 31), x >> (y & 31) != 0), 's_ashr_i32': lambda x, y: (s32(x) >> (y & 31),
        s32(x) >> (y & 31) != 0), 's_max_i32': lambda x, y: (max(s32(x), s32(y)), s32(x) >= s32(y)),
    's_min_i32': lambda x, y: (min(s32(x), s32(y)), s32(x) <= s32(y)), 's_max_u32': lambda x, y: (max(x, y), x >= y),
    's_min_u32': lambda x, y: (min(x, y), x <= y), 's_andn2_b32': lambda x, y: (x & ~y, x & ~y & M32 != 0),
    's_bfe_u32': lambda x, y: (bfe(x, y, y >> 16), bfe(x, y, y >> 16) != 0),
    's_mul_hi_i32': lambda x, y: (s32(x) * s32(y) >> 32, None), 's_lshl1_add_u32': lambda x, y: ((x << 1) + y, (x << 1) + y > M32),
    's_lshl2_add_u32': lambda x, y: ((x << 2) + y, (x << 2) + y > M32), 's_lshl3_add_u32': lambda x, y: ((x << 3) + y,
        (x << 3) + y > M32), 's_lshl4_add_u32': lambda x, y: ((x << 4) + y, (x << 4) + y > M32),
}
SCALAR64 = {'and': lambda x, y: x & y, 'or': lambda x, y: x | y, 'xor': lambda x, y: x ^ y, 'andn2': lambda x, y: x & ~y,
            'orn2': lambda x, y: x | ~y, 'nor': lambda x, y: ~(x | y), 'nand': lambda x, y: ~(x & y)}


PASSES = 0x3fffffff  # a counter of so many arrivals holds no wave back


def registers(x, n):
    return [('v', register(x)[1] + i) for i in range(n)]


def offset_of(mods, name='offset'):
    for m in mods:
        if m.startswith(name + ':'):
            return int(m.split(':')[1], 0)
    return 0


def selected(mods, name, n, default):
    for m in mods:
        if m.startswith(name + ':'):
            return [int(x) for x in m.split('[')[1].rstrip(']').split(',')]
    return [default] * n


def scalar(w, op, a, mods):
    if op in ('s_mov_b32', 's_movk_i32'):
        x = w.S(a[1])
        w.s[register(a[0])[1]] = x if op == 's_mov_b32' else s32(x & 0xffff, 16) & M32
    elif op == 's_mov_b64':
        x = w.S(a[1], True)
        w.put64(register(a[0])[1], x)
    elif op in ('s_not_b32', 's_not_b64'):
        wide = op.endswith('64')
        x = ~w.S(a[1], wide) & (M64 if wide else M32)
        w.scc = int(x != 0)
        if wide:
            w.put64(register(a[0])[1], x)
        else:
            w.s[register(a[0])[1]] = x
    elif op == 's_bcnt1_i32_b64':
        x = bin(w.S(a[1], True)).count('1')
        w.s[register(a[0])[1]], w.scc = x, int(x != 0)
    elif op in ('s_cselect_b32', 's_cselect_b64'):
        wide = op.endswith('64')
        x = w.S(a[1] if w.scc else a[2], wide)
        if wide:
            w.put64(register(a[0])[1], x)
        else:
            w.s[register(a[0])[1]] = x
    elif op in ('s_bitcmp0_b32', 's_bitcmp1_b32'):
        w.scc = int(w.S(a[0]) >> (w.S(a[1]) & 31) & 1 == int(op[8]))
    elif op == 's_brev_b32':
        w.s[register(a[0])[1]] = int(f'{w.S(a[1]):032b}'[::-1], 2)
    elif op == 's_abs_i32':
        w.s[register(a[0])[1]] = abs(s32(w.S(a[1]))) & M32
        w.scc = int(w.S(a[1]) != 0)
    elif op.startswith('s_cmp'):
        m = re.match(r's_cmpk?_(\w\w)_([iu])(32|64)$', op)
        wide = m[3] == '64'
        x, y = w.S(a[0], wide), w.S(a[1], wide)
        if m[2] == 'i':
            x, y = s32(x), s32(y)
        w.scc = int(COMPARE[m[1]](x, y))
    elif op.endswith('saveexec_b64'):
        old, x = w.mask(), w.S(a[1], True)
        new = SCALAR64[op[2:].split('_')[0]](x, old) & M64
        w.put64(register(a[0])[1], old)
        w.put64(EXEC, new)
        w.scc = int(new != 0)
    elif op in ('s_lshl_b64', 's_lshr_b64', 's_ashr_i64'):
        x, n = w.S(a[1], True), w.S(a[2]) & 63
        x = (x << n if op == 's_lshl_b64' else x >> n if op == 's_lshr_b64' else signed(x, 64) >> n) & M64
        w.put64(register(a[0])[1], x)
        w.scc = int(x != 0)
    elif op.endswith('_b64') and op[2:-4] in SCALAR64:
        x = SCALAR64[op[2:-4]](w.S(a[1], True), w.S(a[2], True)) & M64
        w.put64(register(a[0])[1], x)
        w.scc = int(x != 0)
    elif op in ('s_addc_u32', 's_subb_u32'):
        x, y = w.S(a[1]), w.S(a[2])
        r = x + y + w.scc if op == 's_addc_u32' else x - y - w.scc
        w.s[register(a[0])[1]], w.scc = r & M32, int(r > M32 or r < 0)
    elif op.startswith('s_load_dword'):
        n = int(op.partition('x')[2] or 1)
        base, off = w.S(a[1], True), w.S(a[2]) + offset_of(mods)
        to = register(a[0])[1]

        def complete():
            for i in range(n):
                w.s[to + i] = w.block.memory.get(base + off + 4 * i, 4)
        w.block.memory.find(base + off, 4 * n)
        w.begin('lgkmcnt', 'scalar load', [('s', to + i) for i in range(n)], complete)
    elif op == 's_sext_i32_i16':
        w.s[register(a[0])[1]] = s32(w.S(a[1]) & 0xffff, 16) & M32
    elif op in SCALAR:
        r, scc = SCALAR[op](w.S(a[-2]), w.S(a[-1]))
        w.s[register(a[0])[1]] = r & M32
        w.scc = w.scc if scc is None else int(scc)
    elif op in ('s_mulk_i32', 's_addk_i32'):
        n, y = register(a[0])[1], s32(w.S(a[1]) & 0xffff, 16)
        w.s[n] = (w.s[n] * y if op == 's_mulk_i32' else w.s[n] + y) & M32
    else:
        raise Fault('no instruction ' + op)


def shared(w, op, a, mods):
    b = w.block
    if op == 'ds_bpermute_b32':
        at, x, e = w.word(a[1]), w.word(a[2]), w.mask()
        y = [x[at[j] >> 2 & 63] if e >> (at[j] >> 2 & 63) & 1 else 0 for j in LANES]
        w.begin('lgkmcnt', 'exchange', registers(a[0], 1), lambda: w.complete_put(e, a[0], y))
        return
    high = 16 if op.endswith('_d16_hi') and 'write' in op else 0
    m = re.match(r'ds_(read|write)(2?)(st64)?_([bui])(8|16|32|64|128)$', op[:-7] if high else op)
    if op in ('ds_add_u32', 'ds_add_rtn_u32'):
        returns = op == 'ds_add_rtn_u32'
        at, x, e, lanes = w.word(a[1 if returns else 0]), w.word(a[-1]), w.mask(), w.active()
        for j in lanes:
            b.check(at[j] + offset_of(mods), 4)
        knows = w.clock

        def complete():
            old = [0] * 64
            for j in lanes:
                i = at[j] + offset_of(mods)
                b.touch(w, knows, i, 4, True, True)
                b.counted[i] = [max(z) for z in zip(b.counted.get(i, w.clock), w.clock)]
                old[j] = b.get(i, 4)
                b.put(i, 4, old[j] + (0 if 'spoilt' in mods else x[j]))
            w.clock = [z + (u == w.n) for u, z in enumerate(w.clock)]
            if returns:
                w.complete_put(e, a[0], old)
        w.begin('lgkmcnt', 'LDS addition with a result' if returns else 'LDS addition', registers(a[0], 1) if returns else [], complete)
        return
    if not m:
        raise Fault('no instruction ' + op)
    size = int(m[5]) // 8
    step = size * (64 if m[3] else 1)
    at = w.word(a[1 if m[1] == 'read' else 0])
    offsets = [step * offset_of(mods, 'offset0'), step * offset_of(mods, 'offset1')] if m[2] else [offset_of(mods)]
    words = max(1, size // 4)
    e, lanes = w.mask(), w.active()
    x = [] if m[1] == 'read' else [[w.word(a[1 + k], i) for i in range(words)] for k in range(len(offsets))]
    for j in lanes:
        for off in offsets:
            b.check(at[j] + off, size)

    knows, polls = w.clock, w.at in b.polls

    def complete():
        for k, off in enumerate(offsets):
            got = [[0] * 64 for _ in range(words)]
            for i in sorted({at[j] + off for j in lanes}):
                b.touch(w, knows, i, size, m[1] == 'write', polls)
                if polls and 'spoilt' not in mods and i in b.counted:
                    b.learn(w, b.counted[i])
            for j in lanes:
                if m[1] == 'write':
                    b.put(at[j] + off, size, sum(x[k][i][j] << 32 * i for i in range(words)) >> high)
                    continue
                y = PASSES if 'spoilt' in mods else b.get(at[j] + off, size)
                if m[4] == 'i':
                    y = s32(y, 8 * size) & M32
                for i in range(words):
                    got[i][j] = y >> 32 * i & M32
            if m[1] == 'read':
                w.seen = b.writes
                for i in range(words):
                    w.complete_put(e, a[0], got[i], k * words + i)
    w.begin('lgkmcnt', 'LDS ' + m[1], registers(a[0], len(offsets) * words) if m[1] == 'read' else [], complete)


def to_lds(w, op, a, mods):
    """buffer_load_dword ... offen lds: LDS gets the words of all lanes one behind the other from m0 on, and zero of what is not in the
    buffer."""
    b = w.block
    if op != 'buffer_load_dword' or mods != ['offen', 'lds'] or a[2] != '0':
        raise Fault(f'no instruction {op} {" ".join(mods)}')
    if w.before[0][0] == 's' and w.before[0] != 's_nop' and w.before[1][:1] == ['m0']:
        raise Fault('m0 is read right behind its write')
    s, e, lanes, knows, to = register(a[1])[1], w.mask(), w.active(), w.clock, w.s[M0]
    for i in range(s, s + 4):
        w.look('s', i)
    base, size, at = w.s[s] | (w.s[s + 1] & 0xffff) << 32, w.s[s + 2], w.word(a[0])
    if w.s[s + 1] >> 16 or w.s[s + 3] != 0x20000:
        raise Fault('a buffer of another kind')
    for j in lanes:
        b.check(to + 4 * j, 4)
        if at[j] + 4 <= size:
            b.memory.find(base + at[j], 4)

    def complete():
        for j in lanes:
            b.touch(w, knows, to + 4 * j, 4, True)
            b.put(to + 4 * j, 4, b.memory.get(base + at[j], 4) if at[j] + 4 <= size else 0)
    b.memory.loaded.add(base >> 32)
    w.begin('vmcnt', 'copy to LDS', [], complete)


def from_buffer(w, op, a, mods):
    """buffer_load_dword[xN] ... offen: words of memory, zeros of what is not in the buffer."""
    m = re.match(r'buffer_load_dword(?:x(\d))?$', op)
    if not m or 'offen' not in mods:
        raise Fault(f'no instruction {op} {" ".join(mods)}')
    n, s, e, lanes = int(m[1] or 1), register(a[2])[1], w.mask(), w.active()
    for i in range(s, s + 4):
        w.look('s', i)
    base, size = w.s[s] | (w.s[s + 1] & 0xffff) << 32, w.s[s + 2]
    if w.s[s + 1] >> 16 or w.s[s + 3] != 0x20000:
        raise Fault('a buffer of another kind')
    more = w.S(a[3]) + offset_of(mods)
    at = [x + more for x in w.word(a[1])]
    there = [j for j in lanes if at[j] + 4 * n <= size]
    for j in there:
        w.block.memory.find(base + at[j], 4 * n)

    def complete():
        got = [[0] * 64 for _ in range(n)]
        for j in there:
            y = w.block.memory.get(base + at[j], 4 * n)
            for i in range(n):
                got[i][j] = y >> 32 * i & M32
        for i in range(n):
            w.complete_put(e, a[0], got[i], i)
    w.block.memory.loaded.add(base >> 32)
    w.begin('vmcnt', 'load', registers(a[0], n), complete)


def memory(w, op, a, mods):
    if op in ('global_atomic_add_f32', 'global_atomic_add'):
        at = w.pair(a[0]) if a[2] == 'off' else [w.S(a[2], True) + s32(x) for x in w.word(a[0])]
        x, f = w.word(a[1]), VECTOR['v_add_f32'] if 'f32' in op else VECTOR['v_add_u32']
        lanes = w.active()

        def add():
            for j in lanes:
                i = at[j] + offset_of(mods) & M64
                w.block.memory.put(i, 4, f(w.block.memory.get(i, 4), x[j]))
        w.begin('vmcnt', 'store', [], add)
        return
    high = 16 if op.endswith('_d16_hi') and 'store' in op else 0
    m = re.match(r'global_(load|store)_(dword|ushort|short|ubyte|byte|sbyte)(?:x(\d))?$', op[:-7] if high else op)
    if not m:
        raise Fault('no instruction ' + op)
    n = int(m[3] or 1)
    size = 4 * n if m[2] == 'dword' else 2 if 'short' in m[2] else 1
    load = m[1] == 'load'
    where, base = a[1 if load else 0], a[2]
    at = w.pair(where) if base == 'off' else [w.S(base, True) + s32(x) for x in w.word(where)]
    off = offset_of(mods)
    e, lanes = w.mask(), w.active()
    x = [] if load else [w.word(a[1], i) for i in range(n)]
    for j in lanes:
        w.block.memory.find(at[j] + off & M64, size)

    def complete():
        got = [[0] * 64 for _ in range(n)]
        for j in lanes:
            if not load:
                w.block.memory.put(at[j] + off & M64, size, sum(x[i][j] << 32 * i for i in range(n)) >> high)
                continue
            y = w.block.memory.get(at[j] + off & M64, size)
            for i in range(n):
                got[i][j] = y >> 32 * i & M32
        if load:
            for i in range(n):
                w.complete_put(e, a[0], got[i], i)
    if load:
        w.block.memory.loaded.update(at[j] >> 32 for j in lanes)
    else:
        w.block.memory.stored.update(at[j] >> 32 for j in lanes)
    w.begin('vmcnt', m[1], registers(a[0], n) if load else [], complete)


def fnuz(x):
    """The value of a byte of e4m3 in the machine's own encoding."""
    e, m = x >> 3 & 15, x & 7
    if x == 0x80:
        return float('nan')
    return (m * 2.0 ** -10 if e == 0 else (8 + m) * 2.0 ** (e - 11)) * (-1 if x & 0x80 else 1)


# What is multiplied: its bits, and the value of them.
MULTIPLIED = {'f16': (16, lambda x: number(of_half(x))), 'bf16': (16, lambda x: number(x << 16)), 'i8': (8, lambda x: signed(x, 8)),
              'fp8_fp8': (8, fnuz)}


def matrix(w, op, a):
    """v_mfma_f32_NxNxK, N 16 or 32: lane l has row, or column, l mod N of the operands, and of 8 bytes of what is contracted, E
    elements, E (l / N) and the next; of the result column l mod N, and in register r row 4 (64 / N) (r / 4) + 4 (l / N) + r mod 4."""
    m = re.match(r'v_mfma_([fi])32_(\d+)x\d+x(\d+)_(\w+)$', op)
    if not m or m[4] not in MULTIPLIED:
        raise Fault('no instruction ' + op)
    n, k, (size, value) = int(m[2]), int(m[3]), MULTIPLIED[m[4]]
    sum_of, of_sum = (number, bits) if m[1] == 'f' else (lambda x: x, lambda x: x & M32)
    x, y = [[w.word(z, i) for i in range(2)] for z in a[1:3]]
    each, word = 64 // size, 32 // size
    operand = [[[value(z[e // word][n * (j // each) + i] >> size * (e % word) & ((1 << size) - 1)) for j in range(k) for e in [j % each]]
                for i in range(n)] for z in (x, y)]
    out = []
    for r in range(n * n // 64):
        c = w.word(a[3], r) if register(a[3]) else w.word(a[3])
        first = 4 * (64 // n) * (r // 4) + r % 4
        out.append([of_sum(sum_of(c[l]) + sum(p * q for p, q in zip(operand[0][first + 4 * (l // n)], operand[1][l % n]))) for l in LANES])
    if w.late:
        w.look('v', register(a[0])[1], n * n // 64)
    for r in range(n * n // 64):
        w.v[register(a[0])[1] + r] = out[r]


PACKED = {'v_pk_mul_f32': lambda a, b: a * b, 'v_pk_add_f32': lambda a, b: a + b, 'v_pk_fma_f32': lambda a, b, c: a * b + c}


def packed(w, op, a, mods):
    n, f = len(a) - 1, fp(PACKED[op])
    lo, hi = selected(mods, 'op_sel', n, 0), selected(mods, 'op_sel_hi', n, 1)
    minus = [selected(mods, 'neg_lo', n, 0), selected(mods, 'neg_hi', n, 0)]
    out = []
    for h, sel in enumerate((lo, hi)):
        x = [[z ^ minus[h][i] << 31 for z in (w.word(a[i + 1], sel[i]) if register(a[i + 1]) else w.word(a[i + 1]))] for i in range(n)]
        out.append([f(*z) for z in zip(*x)])
    for h in range(2):
        w.put(a[0], out[h], h)


def packed_halves(w, a, mods):
    """v_pk_mul_f16, as it stands without modifiers; a number stands for the lower half alone."""
    if mods and any(not m.startswith('op_sel_hi') for m in mods):
        raise Fault('no modifier ' + ' '.join(mods))
    sel = selected(mods, 'op_sel_hi', 2, 1)
    x = [w.word(z) for z in a[1:]]
    out = [0] * 64
    for h in range(2):
        y = [[number(of_half(p >> 16 * (h and s))) for p in z] for z, s in zip(x, sel)]
        out = [o | to_half(bits(p * q)) << 16 * h for o, p, q in zip(out, *y)]
    w.put(a[0], out)


def part(x, name):
    """What a modifier selects of a word."""
    kind, _, i = name.partition('_')
    n = {'DWORD': 32, 'WORD': 16, 'BYTE': 8}[kind]
    return x >> n * int(i or 0) & ((1 << n) - 1)


def signed_part(x, name):
    """The same with the sign of what is selected in all higher bits."""
    n = {'D': 32, 'W': 16, 'B': 8}[name[0]]
    y = part(x, name)
    return (y - (1 << n) if y >> n - 1 else y) & M32


def of_parts(w, op, a, mods):
    sel = dict(m.split(':') for m in mods)
    x = []
    for i, y in enumerate(a[1:3]):
        signed = y.startswith('sext(')
        read = signed_part if signed else part
        x.append([read(z, sel.get(f'src{i}_sel', 'DWORD')) for z in w.word(y[5:-1] if signed else y)])
    if op == 'v_cndmask_b32_sdwa' and sel['dst_sel'] == 'DWORD':
        m = w.S(a[3], True)
        w.put(a[0], [x[1][j] if m >> j & 1 else x[0][j] for j in LANES])
        return
    m = re.match(r'v_cmp_(\w+)_u(32|16)_sdwa$', op)
    if m:
        w.put_mask(a[0], [COMPARE[m[1]](*z) for z in zip(*x)])
        return
    if sel.get('dst_sel') != 'DWORD' or op[:-5] not in VECTOR:
        raise Fault('no instruction ' + op)
    w.put(a[0], [VECTOR[op[:-5]](*z) for z in zip(*x)])


def vector(w, op, a, mods):
    if op.endswith('_sdwa'):
        of_parts(w, op, a, mods)
        return
    if mods and not all(re.match(r'(op_sel|neg_|offset)', m) for m in mods):
        raise Fault('no modifier ' + ' '.join(mods))
    if op in VECTOR:
        f = VECTOR[op]
        w.put(a[0], [f(*z) for z in zip(*[w.word(x) for x in a[1:]])])
    elif op.startswith('v_mfma'):
        matrix(w, op, a)
    elif op == 'v_pk_mul_f16':
        packed_halves(w, a, mods)
    elif op == 'v_pk_mov_b32':
        sel = selected(mods, 'op_sel', 2, 0)
        x = [w.word(z, i) if register(z) else w.word(z) for z, i in zip(a[1:], sel)]
        for i in range(2):
            w.put(a[0], x[i], i)
    elif op in PACKED:
        packed(w, op, a, mods)
    elif op == 'v_cndmask_b32':
        m = w.S(a[3], True)
        x, y = w.word(a[1]), w.word(a[2])
        w.put(a[0], [y[j] if m >> j & 1 else x[j] for j in LANES])
    elif op.startswith('v_cmp_'):
        m = re.match(r'v_cmp_(\w+)_([iuf])(32|64|16)$', op)
        x, y = [w.pair(z) if m[3] == '64' else w.word(z) for z in a[1:3]]
        if m[3] == '16':
            x, y = [[e & 0xffff for e in z] for z in (x, y)]
        as_type = number if m[2] == 'f' else (lambda z: signed(z, int(m[3]))) if m[2] == 'i' else lambda z: z
        w.put_mask(a[0], [COMPARE[m[1]](as_type(p), as_type(q)) for p, q in zip(x, y)])
    elif op == 'v_mov_b64':
        x = [w.word(a[1], i) if register(a[1]) else [constant(a[1], True) >> 32 * i & M32] * 64 for i in range(2)]
        for i in range(2):
            w.put(a[0], x[i], i)
    elif op in ('v_lshlrev_b64', 'v_lshrrev_b64', 'v_lshl_add_u64'):
        if op == 'v_lshl_add_u64':
            x, n, y = w.pair(a[1]), w.word(a[2]), w.pair(a[3])
            r = [(p << (q & 7)) + z for p, q, z in zip(x, n, y)]
        else:
            n, x = w.word(a[1]), w.pair(a[2])
            r = [p << (q & 63) if op == 'v_lshlrev_b64' else p >> (q & 63) for p, q in zip(x, n)]
        w.put(a[0], [z & M32 for z in r])
        w.put(a[0], [z >> 32 & M32 for z in r], 1)
    elif re.match(r'v_(add|sub|subrev)(c|b|brev)?_co_u32$', op):
        m = w.S(a[4], True) if len(a) > 4 else 0
        x, y = w.word(a[2]), w.word(a[3])
        x, y = (y, x) if 'rev' in op else (x, y)
        r = [p + q + (m >> j & 1) if 'add' in op else p - q - (m >> j & 1) for j, (p, q) in enumerate(zip(x, y))]
        w.put(a[0], r)
        w.put_mask(a[1], [not 0 <= z <= M32 for z in r])
    elif op == 'v_writelane_b32':
        w.look(*register(a[0]))
        row = list(w.v[register(a[0])[1]])
        row[w.S(a[2]) & 63] = w.S(a[1])
        w.v[register(a[0])[1]] = row
    elif op == 'v_readlane_b32':
        w.s[register(a[0])[1]] = w.word(a[1])[w.S(a[2]) & 63]
    elif op in ('v_mad_u64_u32', 'v_mad_i64_i32'):
        as_type = s32 if 'i64' in op else lambda z: z
        r = [as_type(p) * as_type(q) + z & M64 for p, q, z in zip(w.word(a[2]), w.word(a[3]), w.pair(a[4]))]
        w.put(a[0], [z & M32 for z in r])
        w.put(a[0], [z >> 32 for z in r], 1)
    elif op == 'v_readfirstlane_b32':
        lanes = w.active() or [0]
        w.s[register(a[0])[1]] = w.word(a[1])[lanes[0]]
    elif op in ('v_mbcnt_lo_u32_b32', 'v_mbcnt_hi_u32_b32'):
        m, low, x = w.word(a[1])[0], 'lo' in op, w.word(a[2])
        below = [(1 << min(j, 32)) - 1 if low else (1 << max(j - 32, 0)) - 1 for j in LANES]
        w.put(a[0], [x[j] + bin(m & below[j]).count('1') for j in LANES])
    elif op in ('v_fmac_f32',):
        f = VECTOR['v_fma_f32']
        w.put(a[0], [f(*z) for z in zip(w.word(a[1]), w.word(a[2]), w.word(a[0]))])
    else:
        raise Fault('no instruction ' + op)


class Block:
    def __init__(self, n, program, memory, arguments, threads, seed):
        self.n, self.memory, self.arguments, self.threads = n, memory, arguments, threads
        self.chance = chance = random.Random(1000 * seed + n)
        self.early, self.ordered = EARLY[seed % len(EARLY)], seed % 2 == 0
        self.program, self.first = program
        self.lds = bytearray(chance.randrange(256) for _ in range(65536))
        self.waves = [Wave(self, i) for i in range(threads // 64)]
        self.all, self.woken, self.writes = list(self.waves), False, 0
        if self.ordered:
            chance.shuffle(self.waves)
        # What s_waitcnt has waited for, what was the last of it, and the polls that a wave has gone on from to write anything.
        self.forced, self.last, self.followed = {}, {}, set()
        # Of bytes or words of LDS: who has written them and when; who has read them and when; what is known from a counter.
        self.written, self.read, self.counted = {}, {}, {}

    def check(self, at, n):
        if at % min(n, 16) or at + n > 65536:
            raise Fault(f'{n} bytes of LDS at {at:#x}')

    def get(self, at, n):
        return int.from_bytes(self.lds[at:at + n], 'little')

    def put(self, at, n, x):
        self.lds[at:at + n] = (x & ((1 << 8 * n) - 1)).to_bytes(n, 'little')
        self.writes += 1
        for w in self.all:
            self.woken |= w.asleep
            w.asleep = False

    def touch(self, w, knows, at, n, writes, counts=False):
        """An access by a wave that knew so much when it began. Those of counters are in any order."""
        for i in range(at // self.grain, (at + n - 1) // self.grain + 1):
            who, when = self.written.get(i, (w.n, 0))
            if who != w.n and knows[who] < when:
                raise Fault(f'LDS at {i * self.grain:#x} is used by wave {w.n}, in no order with what wave {who} writes')
            reads = self.read.setdefault(i, {})
            if not counts:
                if writes:
                    for who, when in reads.items():
                        if who != w.n and knows[who] < when:
                            raise Fault(f'LDS at {i * self.grain:#x} is written by wave {w.n}, in no order with what wave {who} reads')
                    self.written[i] = w.n, w.clock[w.n]
                    reads.clear()
                else:
                    reads[w.n] = w.clock[w.n]

    def learn(self, w, clock):
        w.clock = [max(x) for x in zip(w.clock, clock)]

    def complete_any(self):
        some = [(w, counter) for w in self.all for counter, queue in w.under_way.items() if queue]
        if some:
            w, counter = self.chance.choice(some)
            w.finish(counter)
        return bool(some)

    def step(self, w):
        """One instruction of a wave. False: another one goes on; None: the wave has ended; 'barrier'."""
        op, a, mods, behind = self.program[w.pc]
        at, w.pc = w.pc, behind
        w.at = at
        try:
            if op == 's_endpgm':
                return None
            if op == 's_barrier':
                return 'barrier'
            if op == 's_sleep':
                return False
            if op == 's_waitcnt':
                for x in a + mods:
                    counter, _, n = x.rstrip(')').partition('(')
                    if w.wait(at, counter, int(n)):
                        w.pc = at
                        break
                return True
            if op in ('s_nop', 's_setprio'):
                w.before = op, a
                return True
            if op == 's_branch' or op.startswith('s_cbranch_'):
                cond = {'s_branch': True, 's_cbranch_scc1': w.scc, 's_cbranch_scc0': not w.scc,
                        's_cbranch_vccz': not w.get64(VCC), 's_cbranch_vccnz': w.get64(VCC),
                        's_cbranch_execz': not w.mask(), 's_cbranch_execnz': w.mask()}[op]
                if cond:
                    w.pc = behind + 4 * s32(int(a[0]) & 0xffff, 16)
                return True
            if op[0] == 's' and mods and not op.startswith('s_load'):
                raise Fault('no modifier ' + ' '.join(mods))
            kind = scalar if op[0] == 's' else shared if op[:3] == 'ds_' else memory if op[:7] == 'global_' else \
                to_lds if op[:7] == 'buffer_' and 'lds' in mods else from_buffer if op[:7] == 'buffer_' else vector
            kind(w, op, a, mods)
            w.before = op, a
            if at in self.polls:
                w.passed.add(at)
            elif kind in (memory, to_lds, from_buffer) or kind is shared and 'read' not in op and 'permute' not in op:
                self.followed |= w.passed
        except Fault as e:
            raise Fault(f'block {self.n}, wave {w.n} at {at:x}, {op} {", ".join(a)}: {e}') from None
        return True

    def run(self):
        ready, met, count = list(self.waves), [], 0
        while ready or met:
            if met and len(met) == len(ready) + len(met):
                for w in met:
                    for other in met:
                        self.learn(w, other.clock)
                for w in met:
                    w.clock = [z + (u == w.n) for u, z in enumerate(w.clock)]
                ready, met = met, []
            awake = [w for w in ready if not w.asleep]
            if not awake:
                if self.complete_any():
                    continue
                raise Fault(f'block {self.n}: all waves wait, {len(met)} of them at a barrier')
            w = min(awake, key=self.waves.index) if self.ordered else self.chance.choice(awake)
            for _ in range(self.chance.randrange(1, STEPS)):
                go = self.step(w)
                count += 1
                if go is not True or self.woken and (self.ordered or self.chance.random() < 0.5):
                    break
            self.woken = False
            if count > self.most:
                raise Fault(f'block {self.n}: there is no end')
            if go is None:
                ready.remove(w)
            elif go == 'barrier':
                ready.remove(w)
                met.append(w)
            elif go is False:
                w.asleep = w.seen == self.writes
        while self.complete_any():
            pass
        return count


def polls_of(program):
    """The loads of counters in front of each s_sleep."""
    polls, last = set(), None
    for at in sorted(program):
        if program[at][0] == 'ds_read_b32':
            last = at
        elif program[at][0] == 's_sleep':
            polls.add(last)
    return polls


def loops_of(program):
    """Of each innermost loop with products: how many products, and how many waits for all accesses of global memory."""
    loops = []
    for at, (op, a, _, behind) in program.items():
        if 'branch' in op and behind + 4 * s32(int(a[0]) & 0xffff, 16) <= at:
            inside = [program[i] for i in program if behind + 4 * s32(int(a[0]) & 0xffff, 16) <= i <= at]
            loops.append((len(inside), at, inside))
    found, ends = [], []
    for n, at, inside in sorted(loops, key=lambda x: x[:2]):
        products = sum(x[0].startswith('v_mfma') for x in inside)
        if products and not any(at - 4 * n <= end <= at for end in ends):
            ends.append(at)
            found.append((products, sum(x[0] == 's_waitcnt' and 'vmcnt(0)' in x[1] + x[2] for x in inside)))
    return found


class Launch:
    def __init__(self, threads, blocks, arguments):
        self.threads, self.blocks, self.arguments = threads, blocks, arguments

    def run(self, program, seed, most=10 ** 9):
        """The memory after all blocks, the count of instructions, and the blocks."""
        mem, kernel, outputs, done = Memory(), bytearray(), [], []
        for x in self.arguments:
            if isinstance(x, int):
                kernel += struct.pack('<i', x)
                continue
            kernel += bytes(-len(kernel) % 8)
            name, data = x
            data = bytearray(data)
            if name:
                outputs.append((name, data))
            kernel += struct.pack('<Q', mem.add(data))
        arguments, count = mem.add(kernel + bytes(256)), 0
        polls = polls_of(program[0])
        small = [x[0] for x in program[0].values() if re.match(r'ds_(read|write)_[bui](8|16)', x[0])]
        grain = 4 if not small else 1 if any(re.search('[bui]8', x) for x in small) else 2
        for n in range(self.blocks):
            b = Block(n, program, mem, arguments, self.threads, seed)
            b.polls, b.most, b.grain = polls, most, grain
            count += b.run()
            done.append(b)
        return outputs, count, done, mem


def spoilt(program):
    """(address, what, how, the code without it) of each wait, barrier and arrival."""
    polls = polls_of(program)
    for at in sorted(program):
        op, a, mods, behind = program[at]
        if op == 's_waitcnt':
            for x in a + mods:
                counter, _, n = x.rstrip(')').partition('(')
                others = [y for y in a + mods if y != x]
                yield at, counter, 'one more', {**program, at: (op, others + [f'{counter}({int(n) + 1})'], [], behind)}
                yield at, counter, 'all', {**program, at: (op, others, [], behind)}
        elif op == 's_barrier':
            yield at, 'barrier', 'taken out', {**program, at: ('s_nop', [], [], behind)}
        elif op in ('ds_add_u32', 'ds_add_rtn_u32'):
            yield at, 'arrival', 'taken out', {**program, at: (op, a, mods + ['spoilt'], behind)}
        elif at in polls:
            yield at, 'flag wait', 'taken out', {**program, at: (op, a, mods + ['spoilt'], behind)}


def spoil(launch, program, first, seeds):
    forced, last, followed, want, most, moved = {}, {}, set(), {}, 0, set()
    for seed in seeds:
        want[seed], count, done, mem = launch.run((program, first), seed)
        most = max(most, count)
        moved |= mem.loaded & mem.stored
        for b in done:
            for to, x in (forced, b.forced), (last, b.last):
                for k, v in x.items():
                    to.setdefault(k, set()).update(v)
            followed |= b.followed
    totals = {}
    for at, what, how, code_without in spoilt(program):
        why = 'not found'
        key = (at, what)
        kinds = (last if how == 'one more' else forced).get(key, set())
        if what in UNDER_WAY and not kinds:
            why = 'nothing is under way'
        elif what == 'flag wait' and at not in followed:
            why = 'nothing but the end follows'
        else:
            for seed in seeds:
                try:
                    if launch.run((code_without, first), seed, 3 * most + 10000)[0] != want[seed]:
                        why = 'found: wrong results'
                except Fault as e:
                    e = str(e)
                    kind = [k for k, text in (('no order in LDS', 'in no order'), ('use of a register', 'under way'),
                            ('all wait', 'all waves wait')) if text in e]
                    why = 'found: ' + (kind[0] if kind else 'another fault')
                if why != 'not found':
                    break
            else:
                if what in ('flag wait', 'barrier') and not moved:
                    why = 'what it orders is in order without it'
                elif what in UNDER_WAY and kinds <= {'LDS write', 'LDS addition'}:
                    why = 'LDS takes the accesses of a wave in order'
                elif what in UNDER_WAY and kinds <= {'store'} and not moved:
                    why = 'nobody loads what is stored'
                elif what in UNDER_WAY and not kinds & {'store', 'copy to LDS'}:
                    why = 'another wait precedes the use'
        totals[what, how, why] = totals.get((what, how, why), 0) + 1
        if why == 'not found':
            print(f'not found: {what}, {how}, at {at:x}: {" ".join(sorted(kinds))}')
    for (what, how, why), n in sorted(totals.items()):
        print(f'{what}, {how}: {n} {why}')


def main():
    argv = sys.argv[1:]
    seeds = None
    if argv[0] == '--spoil':
        seeds, argv = range(1, 1 + int(argv[1])), argv[2:]
    path, entry, threads, blocks, seed = argv[0], argv[1], *map(int, argv[2:5])
    arguments = []
    for x in argv[5:]:
        kind, _, remainder = x.partition(':')
        if kind == 'int':
            arguments.append(int(remainder))
        elif kind == 'in':
            arguments.append((None, open(remainder, 'rb').read()))
        else:
            name, _, n = remainder.rpartition(':')
            arguments.append((name, b'\xff' * int(n) if not os.path.exists(name) else open(name, 'rb').read()))
    program, first = code(path, entry)
    launch = Launch(threads, blocks, arguments)
    try:
        if seeds:
            spoil(launch, program, first, seeds)
        outputs, count, _, _ = launch.run((program, first), seed)
    except Fault as e:
        print(e)
        sys.exit(1)
    for name, data in outputs:
        open(name, 'wb').write(data)
    if not seeds:
        print(f'{count} instructions of waves')
    for products, waits in loops_of(program):
        print(f'loop: {products} products, {waits} vmcnt(0)')


main()
