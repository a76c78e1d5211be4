//! PRP1: a permutation of the numbers below n as a function of the number, and the mixing it is made of.
//!
//! ```text
//! key      k0 .. k7 from (seed, epoch, stream, n), by mix
//! domain   2^bits with bits = max(10, ceil(log2 n)), an index cut in two: | left: bits/2 | right: the rest |
//! round j  even: left ^= F(right, kj)     odd: right ^= F(left, kj)
//! get      eight rounds, and again until the number is below n
//! ```

use std::fmt;

const G: u64 = 0x9e37_79b9_7f4a_7c15;
const C1: u64 = 0xbf58_476d_1ce4_e5b9;
const C2: u64 = 0x94d0_49bb_1331_11eb;
const TAG: u64 = u64::from_be_bytes(*b"TFRDPRP1");

const ROUNDS: usize = 8;

/// With smaller domains eight rounds do not reach all permutations of five or six numbers equally often.
const MIN_BITS: u32 = 10;

/// Indices that go through the rounds together. Enough to fill the processor's pipelines, and half a page of stack.
const BATCH: usize = 64;
/// As many lanes as one loop of a round takes.
const LANES: usize = 8;

/// SplitMix64's finisher.
pub(super) fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(C1);
    z ^= z >> 27;
    z = z.wrapping_mul(C2);
    z ^ (z >> 31)
}

/// Words to one word; each of them, and their order, matters.
pub(super) fn absorb<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(0, |h, word| mix((h ^ word).wrapping_add(G)))
}

/// The i-th word of the sequence that starts at `h`.
pub(super) fn nth(h: u64, i: u64) -> u64 {
    mix(h.wrapping_add(i.wrapping_mul(G)))
}

/// The high word of the product: a number below `b`, if `a` is any u64.
pub(super) fn mulhi(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// PRP1: a permutation of the numbers below `n` that is computed, not stored.
///
/// A shuffle that takes no memory and no time to set up: `get(i)` is the number at place i, `inverse` the place of a number.
/// It is a function of `(n, seed, epoch, stream)` and nothing else, the same on every machine; `docs/order.md` defines it to
/// the bit. It is built to be as good as a drawn shuffle in every statistic of training order. It is no cipher.
///
/// ```
/// use tfseek::order::Permutation;
/// let shuffle = Permutation::new(10, 42, 0, 0);
/// let order: Vec<u64> = (0..10).map(|i| shuffle.get(i)).collect();
/// assert_eq!(order[..6], [9, 3, 0, 8, 1, 4]);
/// assert_eq!(shuffle.inverse(8), 3);
/// ```
///
/// **Cost.** 80 bytes; about 100 ns to make; about 30 ns a number where `n` is 1000 or more, up to three times that
/// just above a power of two. Below, a number takes 1024/n turns: 300 ns at 100, 10 us at 2. [`fill`](Permutation::fill) takes
/// about half.
#[derive(Clone, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    keys: [u64; ROUNDS],
    /// Bits of the left part.
    left: u32,
    /// Bits of the right part: as many, or one more.
    right: u32,
}

impl Permutation {
    /// The permutation of the numbers below `n` for this seed, epoch and stream. Streams are for several independent
    /// permutations under one seed; the shuffle of a whole dataset has stream 0.
    pub fn new(n: u64, seed: u64, epoch: u64, stream: u64) -> Permutation {
        let h = absorb([TAG, seed, epoch, stream, n]);
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(MIN_BITS);
        Permutation {
            n,
            keys: std::array::from_fn(|i| nth(h, i as u64 + 1)),
            left: bits / 2,
            right: bits - bits / 2,
        }
    }

    /// The number at place `i`.
    ///
    /// # Panics
    /// If `i` is not below `n`.
    pub fn get(&self, i: u64) -> u64 {
        self.check(i);
        self.walk(i, |l, r| {
            for pair in self.keys.chunks_exact(2) {
                *l ^= f(*r, pair[0], self.left);
                *r ^= f(*l, pair[1], self.right);
            }
        })
    }

    /// The place of a number: `inverse(get(i)) == i`.
    ///
    /// # Panics
    /// If `number` is not below `n`.
    pub fn inverse(&self, number: u64) -> u64 {
        self.check(number);
        self.walk(number, |l, r| {
            for pair in self.keys.chunks_exact(2).rev() {
                *r ^= f(*l, pair[1], self.right);
                *l ^= f(*r, pair[0], self.left);
            }
        })
    }

    /// The numbers at the places from `start` on.
    ///
    /// # Panics
    /// If there are fewer than `start + out.len()` places.
    pub fn fill(&self, start: u64, out: &mut [u64]) {
        assert!(
            out.len() as u64 <= self.n && start <= self.n - out.len() as u64,
            "{} places from {start} on, of {}",
            out.len(),
            self.n
        );
        for (i, out) in out.iter_mut().enumerate() {
            *out = start + i as u64;
        }
        self.apply(out);
    }

    /// Puts the number at each place in its stead. The places are below n.
    pub(super) fn apply(&self, places: &mut [u64]) {
        for places in places.chunks_mut(BATCH) {
            self.apply_batch(places);
        }
    }

    /// Turn by turn for all of them; those that are below n drop out, and the others close up.
    fn apply_batch(&self, places: &mut [u64]) {
        let mut x = [0; BATCH];
        let mut home: [usize; BATCH] = std::array::from_fn(|i| i);
        let mut open = places.len();
        x[..open].copy_from_slice(places);
        while open > 0 {
            // What lies behind `open` is some number of the domain, and its turn costs little.
            for lanes in x[..open.next_multiple_of(LANES)].chunks_exact_mut(LANES) {
                self.turn(lanes);
            }
            let mut still = 0;
            for i in 0..open {
                let (number, at) = (x[i], home[i]);
                places[at] = number;
                // Without a branch: just above a power of two nobody could guess it.
                (x[still], home[still]) = (number, at);
                still += usize::from(number >= self.n);
            }
            open = still;
        }
    }

    /// All rounds, once, for some lanes: loops that wait for nothing but their own lane.
    fn turn(&self, x: &mut [u64]) {
        let mask = self.mask();
        let (mut l, mut r) = ([0; LANES], [0; LANES]);
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

    /// A number below n stays on its cycle in the domain until it meets another below n, at the latest itself.
    fn walk(&self, mut x: u64, rounds: impl Fn(&mut u64, &mut u64)) -> u64 {
        let mask = self.mask();
        loop {
            let (mut l, mut r) = (x >> self.right, x & mask);
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

    /// Outside of the n numbers a walk might never come back.
    fn check(&self, i: u64) {
        assert!(i < self.n, "no place {i}: there are {}", self.n);
    }
}

impl fmt::Debug for Permutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permutation").field("n", &self.n).finish_non_exhaustive()
    }
}

/// The round function: two multiplications, the top `bits` of the result.
fn f(x: u64, key: u64, bits: u32) -> u64 {
    let mut z = (x ^ key).wrapping_mul(C1);
    z ^= z >> 32;
    z.wrapping_mul(C2) >> (u64::BITS - bits)
}
