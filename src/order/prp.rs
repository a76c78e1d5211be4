//! PRP1: a permutation of the numbers below n, computed by a Feistel network with cycle-walking, and its
//! mixing functions.
//!
//! ```text
//! key      k0 .. k7 from (seed, epoch, stream, n), by mix
//! domain   2^bits with bits = max(10, ceil(log2 n)), an index split in two: | left: bits/2 | right: the rest |
//! round j  even: left ^= F(right, kj)     odd: right ^= F(left, kj)
//! get      eight rounds, repeated until the number is below n
//! ```

#![expect(clippy::indexing_slicing, reason = "positions are inside blocks of fixed lengths")]

const G: u64 = 0x9e37_79b9_7f4a_7c15;
const C1: u64 = 0xbf58_476d_1ce4_e5b9;
const C2: u64 = 0x94d0_49bb_1331_11eb;
const TAG: u64 = u64::from_be_bytes(*b"TFRDPRP1");

const ROUNDS: usize = 8;

/// Minimum bits of the domain. In smaller domains, eight rounds do not give all permutations of five or six
/// numbers equally often.
const MIN_BITS: u32 = 10;
/// Number of indices of the smallest domain.
pub(super) const SMALL: usize = 1 << MIN_BITS;

/// Number of indices that go through the rounds together. It fills the processor's pipelines and takes half a
/// page of stack.
const BATCH: usize = 64;
/// Number of indices per loop of a round.
const LANES: usize = 8;

/// Applies the finalizer of SplitMix64.
pub(super) fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(C1);
    z ^= z >> 27;
    z = z.wrapping_mul(C2);
    z ^ (z >> 31)
}

/// Hashes words to one word. The result depends on each word and on their order.
pub(super) fn absorb<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(0, |h, word| mix((h ^ word).wrapping_add(G)))
}

/// Returns the i-th word of the sequence that starts at `h`.
pub(super) fn nth(h: u64, i: u64) -> u64 {
    mix(h.wrapping_add(i.wrapping_mul(G)))
}

/// Returns the high word of the product of `a` and `b`: a number below `b`, if `b` is not 0.
pub(super) fn mulhi(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// PRP1: a permutation of the numbers below `n` that is computed, not stored.
///
/// `get(i)` returns the number at position i, and `inverse` returns the position of a number. The permutation
/// depends only on `(n, seed, epoch, stream)`, and is the same on every machine. `docs/order.md` defines it
/// bit by bit. It is designed to match a randomly drawn permutation in every statistic that matters for
/// training order. It is not a cipher.
///
/// **Cost.** The struct takes 80 bytes, and creating it about 100 ns. If `n` is 1000 or more, a number takes
/// about 30 ns, and up to three times as long just above a power of two. For a smaller `n`, a number takes
/// 1024/n passes through the rounds on average: 300 ns at 100, 10 us at 2. [`fill`](Permutation::fill) takes
/// about half the time per number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    n: u64,
    keys: [u64; ROUNDS],
    /// Width of the left half in bits.
    left: u32,
    /// Width of the right half in bits: the same, or one more.
    right: u32,
}

impl Permutation {
    /// Creates the permutation of the numbers below `n` for a seed, an epoch and a stream. Different streams
    /// give independent permutations under one seed. The shuffle of a whole dataset has stream 0.
    pub(super) fn new(n: u64, seed: u64, epoch: u64, stream: u64) -> Permutation {
        let h = absorb([TAG, seed, epoch, stream, n]);
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(MIN_BITS);
        Permutation {
            n,
            keys: std::array::from_fn(|i| nth(h, i as u64 + 1)),
            left: bits / 2,
            right: bits - bits / 2,
        }
    }

    /// Returns the number at position `i`.
    ///
    /// # Panics
    /// Panics if `i` is not below `n`.
    pub(super) fn get(&self, i: u64) -> u64 {
        self.check(i);
        self.walk(i, |l, r| {
            for pair in self.keys.chunks_exact(2) {
                *l ^= f(*r, pair[0], self.left);
                *r ^= f(*l, pair[1], self.right);
            }
        })
    }

    /// Returns the position of a number: `inverse(get(i)) == i`.
    ///
    /// # Panics
    /// Panics if `number` is not below `n`.
    pub(super) fn inverse(&self, number: u64) -> u64 {
        self.check(number);
        self.walk(number, |l, r| {
            for pair in self.keys.chunks_exact(2).rev() {
                *r ^= f(*l, pair[1], self.right);
                *l ^= f(*r, pair[0], self.left);
            }
        })
    }

    /// Fills `out` with the numbers at the positions from `start` on.
    ///
    /// # Panics
    /// Panics if there are fewer than `start + out.len()` positions.
    pub(super) fn fill(&self, start: u64, out: &mut [u64]) {
        assert!(
            out.len() as u64 <= self.n && start <= self.n - out.len() as u64,
            "no {} positions from {start} on: there are {}",
            out.len(),
            self.n
        );
        for (i, out) in out.iter_mut().enumerate() {
            *out = start + i as u64;
        }
        self.apply(out);
    }

    /// Fills `out` with all numbers of a permutation of at most [`SMALL`] numbers, in their order. It applies
    /// the rounds once to each number of the domain, with tables of the round function. So it takes about 4
    /// us for any `n`.
    pub(super) fn fill_small(&self, out: &mut [u64]) {
        const HALF: usize = 1 << (MIN_BITS / 2);
        let mut tables = [[0u16; HALF]; ROUNDS];
        for (table, key) in tables.iter_mut().zip(self.keys) {
            // Both halves have the same width.
            (0..).zip(table).for_each(|(x, entry)| *entry = f(x, key, self.left) as u16);
        }
        let mut next = [0u16; SMALL];
        for (x, next) in next.iter_mut().enumerate() {
            let mut l = x / HALF;
            let mut r = x % HALF;
            for pair in tables.chunks_exact(2) {
                l ^= usize::from(pair[0][r % HALF]);
                r ^= usize::from(pair[1][l % HALF]);
            }
            *next = (l * HALF + r) as u16;
        }
        for (i, out) in out.iter_mut().enumerate() {
            let mut x = i;
            loop {
                x = usize::from(next[x % SMALL]);
                if (x as u64) < self.n {
                    break;
                }
            }
            *out = x as u64;
        }
    }

    /// Replaces each position by the number at that position. All positions must be below n.
    pub(super) fn apply(&self, positions: &mut [u64]) {
        for positions in positions.chunks_mut(BATCH) {
            self.apply_batch(positions);
        }
    }

    /// Passes a batch through the rounds until all its numbers are below n. After each pass, the finished
    /// numbers are removed and the others are moved together.
    fn apply_batch(&self, positions: &mut [u64]) {
        let mut x = [0; BATCH];
        let mut target: [usize; BATCH] = std::array::from_fn(|i| i);
        let mut open = positions.len();
        x[..open].copy_from_slice(positions);
        while open > 0 {
            // The last chunk may contain unused numbers after `open`. They are in the domain, and computing
            // them costs little.
            for lanes in x[..open.next_multiple_of(LANES)].chunks_exact_mut(LANES) {
                self.feistel(lanes);
            }
            let mut unfinished = 0;
            for i in 0..open {
                let number = x[i];
                let at = target[i];
                positions[at] = number;
                // Branchless: just above a power of two, a branch could not be predicted.
                (x[unfinished], target[unfinished]) = (number, at);
                unfinished += usize::from(number >= self.n);
            }
            open = unfinished;
        }
    }

    /// Applies all rounds once to [`LANES`] numbers. The loops have no dependencies between lanes.
    fn feistel(&self, x: &mut [u64]) {
        let mask = self.mask();
        let mut l = [0; LANES];
        let mut r = [0; LANES];
        for i in 0..LANES {
            (l[i], r[i]) = (x[i] >> self.right, x[i] & mask);
        }
        for pair in self.keys.chunks_exact(2) {
            for i in 0..LANES {
                l[i] ^= f(r[i], pair[0], self.left);
            }
            for i in 0..LANES {
                r[i] ^= f(l[i], pair[1], self.right);
            }
        }
        for i in 0..LANES {
            x[i] = (l[i] << self.right) | r[i];
        }
    }

    /// Applies the rounds until the number is below n (cycle-walking). This terminates, because the rounds
    /// permute the domain: the cycle of a number below n contains a number below n, at the latest the number
    /// itself.
    fn walk(&self, mut x: u64, rounds: impl Fn(&mut u64, &mut u64)) -> u64 {
        let mask = self.mask();
        loop {
            let mut l = x >> self.right;
            let mut r = x & mask;
            rounds(&mut l, &mut r);
            x = (l << self.right) | r;
            if x < self.n {
                return x;
            }
        }
    }

    fn mask(&self) -> u64 {
        (1 << self.right) - 1
    }

    /// Panics if `i` is not below n. The cycle of another number may contain no number below n, so the walk
    /// might not terminate.
    fn check(&self, i: u64) {
        assert!(i < self.n, "no position {i}: there are {}", self.n);
    }
}

/// Computes the round function: two multiplications, and the top `bits` of the result.
fn f(x: u64, key: u64, bits: u32) -> u64 {
    let mut z = (x ^ key).wrapping_mul(C1);
    z ^= z >> 32;
    z.wrapping_mul(C2) >> (u64::BITS - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_permutations_agree_with_single_numbers() {
        let long: &[u64] = if cfg!(miri) { &[100] } else { &[100, 511, 512, 513, 1000, 1023, 1024] };
        for n in (1..70).step_by(if cfg!(miri) { 9 } else { 1 }).chain(long.iter().copied()) {
            let order = Permutation::new(n, 7, n * n, 3 << 32);
            let mut numbers = vec![0; n as usize];
            order.fill_small(&mut numbers);
            assert!((0..n).all(|i| numbers[i as usize] == order.get(i)), "{n}");
            assert!((0..n).all(|i| order.inverse(order.get(i)) == i), "{n}");
        }
    }

    #[test]
    fn positions_out_of_range_panic() {
        let shuffle = Permutation::new(5, 0, 0, 0);
        for bad in [5, 6, 1023, u64::MAX] {
            assert!(std::panic::catch_unwind(|| shuffle.get(bad)).is_err());
            assert!(std::panic::catch_unwind(|| shuffle.inverse(bad)).is_err());
            assert!(std::panic::catch_unwind(|| shuffle.fill(bad, &mut [0])).is_err());
        }
        assert!(std::panic::catch_unwind(|| Permutation::new(0, 0, 0, 0).get(0)).is_err());
        assert!(std::panic::catch_unwind(|| shuffle.fill(0, &mut [0; 6])).is_err());
    }
}
