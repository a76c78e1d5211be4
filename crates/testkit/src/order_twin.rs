//! A naive implementation of docs/order.md: products in u128, and tables instead of computed positions.

use tfseek::order::{Component, MixSpec, Spec, Subset};

/// Returns a mix of classes with the weight 1 each.
pub fn balanced(classes: impl IntoIterator<Item = Subset>) -> Spec {
    let class = |records| Component::new(1, Spec::Global.filtered(records));
    Spec::Mix(MixSpec::new(classes.into_iter().map(class).collect()))
}

/// Returns z mod 2^64.
fn wrap(z: u128) -> u64 {
    (z % (1 << 64)) as u64
}

fn mul(a: u64, b: u64) -> u64 {
    wrap(u128::from(a) * u128::from(b))
}

fn add(a: u64, b: u64) -> u64 {
    wrap(u128::from(a) + u128::from(b))
}

const G: u64 = 0x9e3779b97f4a7c15;
const C1: u64 = 0xbf58476d1ce4e5b9;
const C2: u64 = 0x94d049bb133111eb;

pub fn mix(z: u64) -> u64 {
    let z = mul(z ^ (z >> 30), C1);
    let z = mul(z ^ (z >> 27), C2);
    z ^ (z >> 31)
}

pub fn absorb(words: &[u64]) -> u64 {
    let mut h = 0;
    for word in words {
        h = mix(add(h ^ word, G));
    }
    h
}

/// PRP1 with any number of rounds. The library uses 8. Tests of quality use fewer rounds to show that they
/// detect a weak permutation.
pub struct Feistel {
    n: u64,
    keys: Vec<u64>,
    left: u32,
    right: u32,
}

impl Feistel {
    pub fn new(rounds: u64, n: u64, seed: u64, epoch: u64, stream: u64) -> Feistel {
        let mut bits = 10;
        while bits < 64 && 1u128 << bits < u128::from(n) {
            bits += 1;
        }
        let h = absorb(&[0x5446524450525031, seed, epoch, stream, n]);
        let keys = (1..=rounds).map(|i| mix(add(h, mul(i, G)))).collect();
        Feistel { n, keys, left: bits / 2, right: bits - bits / 2 }
    }

    pub fn get(&self, i: u64) -> u64 {
        let f = |x: u64, key: u64, width: u32| {
            let z = mul(x ^ key, C1);
            mul(z ^ (z >> 32), C2) >> (64 - width)
        };
        let mut x = i;
        loop {
            let (mut l, mut r) = (x >> self.right, x % (1 << self.right));
            for (j, key) in self.keys.iter().enumerate() {
                if j % 2 == 0 { l ^= f(r, *key, self.left) } else { r ^= f(l, *key, self.right) }
            }
            x = (l << self.right) | r;
            if x < self.n {
                return x;
            }
        }
    }

    pub fn all(&self) -> Vec<u64> {
        (0..self.n).map(|i| self.get(i)).collect()
    }
}

pub fn prp(n: u64, seed: u64, epoch: u64, stream: u64) -> Feistel {
    Feistel::new(8, n, seed, epoch, stream)
}

/// Returns the block order as a table: the records of the shuffled blocks, window by window, with each window
/// shuffled.
pub fn block_order(n: u64, block: u64, window: u64, seed: u64, epoch: u64, stream: u64) -> Vec<u64> {
    let blocks = prp(n.div_ceil(block), seed, epoch, stream + 1).all();
    let mut order = Vec::new();
    for (j, blocks) in blocks.chunks(window as usize).enumerate() {
        let laid_out: Vec<u64> = blocks.iter().flat_map(|k| k * block..n.min((k + 1) * block)).collect();
        let shuffle = prp(laid_out.len() as u64, seed, epoch, stream + 2 + j as u64);
        order.extend(shuffle.all().into_iter().map(|u| laid_out[u as usize]));
    }
    order
}

/// Returns the order of balanced classes in blocks: of each window the first samples of a mixture of its
/// classes.
pub fn balanced_blocks(classes: &[i64], block: u64, window: u64, seed: u64, epoch: u64) -> Vec<u64> {
    let n = classes.len() as u64;
    let blocks = prp(n.div_ceil(block), seed, epoch, 1).all();
    let mut order = Vec::new();
    for (j, blocks) in blocks.chunks(window as usize).enumerate() {
        let laid_out: Vec<u64> = blocks.iter().flat_map(|k| k * block..n.min((k + 1) * block)).collect();
        let mut present: Vec<i64> = laid_out.iter().map(|record| classes[*record as usize]).collect();
        present.sort_unstable();
        present.dedup();
        let seed = absorb(&[0x5446524442414c31, seed, epoch, 0, j as u64]);
        let cycles = laid_out.len().div_ceil(present.len()) as u64;
        let samples = mixture(&vec![1; present.len()], seed, cycles);
        for (class, i) in samples.into_iter().take(laid_out.len()) {
            let is_own = |record: &u64| classes[*record as usize] == present[class];
            let own: Vec<u64> = laid_out.iter().copied().filter(is_own).collect();
            let len = own.len() as u64;
            let shuffle = prp(len, seed, i / len, (class as u64 + 1) << 40);
            order.push(own[shuffle.get(i % len) as usize]);
        }
    }
    order
}

/// Returns the first cycles of a mixture: the components of each cycle, shuffled, each with its samples in
/// order.
pub fn mixture(weights: &[u64], seed: u64, cycles: u64) -> Vec<(usize, u64)> {
    let mut given = vec![0; weights.len()];
    mixture_after(&mut given, weights, seed, cycles)
}

/// Does the same after the components have given some samples, and counts those that they give.
pub fn mixture_after(given: &mut [u64], weights: &[u64], seed: u64, cycles: u64) -> Vec<(usize, u64)> {
    let mut order = Vec::new();
    for y in 0..cycles {
        let laid_out: Vec<usize> =
            weights.iter().enumerate().flat_map(|(c, q)| (0..*q).map(move |_| c)).collect();
        let shuffle = prp(laid_out.len() as u64, seed, y, 3 << 32);
        for u in shuffle.all() {
            let c = laid_out[u as usize];
            order.push((c, given[c]));
            given[c] += 1;
        }
    }
    order
}

/// Returns weighted draw `t`. The alias table is built for each draw.
pub fn draw(weights: &[u32], seed: u64, epoch: u64, stream: u64, t: u64) -> u64 {
    let n = weights.len() as u128;
    let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    let mut p: Vec<u128> = weights.iter().map(|w| n * u128::from(*w)).collect();
    let mut threshold = vec![u64::MAX; weights.len()];
    let mut alias: Vec<usize> = (0..weights.len()).collect();
    let mut small: Vec<usize> = (0..weights.len()).filter(|i| p[*i] < sum).collect();
    let mut large: Vec<usize> = (0..weights.len()).filter(|i| p[*i] >= sum).collect();
    while !small.is_empty() && !large.is_empty() {
        let (s, g) = (small.pop().unwrap(), large.pop().unwrap());
        threshold[s] = ((p[s] << 64) / sum) as u64;
        alias[s] = g;
        p[g] -= sum - p[s];
        if p[g] < sum { small.push(g) } else { large.push(g) }
    }
    let h = absorb(&[0x54465244414c4931, seed, epoch, stream, weights.len() as u64]);
    let at = |a: u64| mix(add(h, mul(2 * t + a, G)));
    let j = ((u128::from(at(1)) * n) >> 64) as usize;
    (if at(2) < threshold[j] { j } else { alias[j] }) as u64
}
