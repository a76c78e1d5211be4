//! The processes, faults and events of a world, drawn from its seed. Any of them can be left out.

use tfseek::order::Spec;
use tfseek::{Damage, Shuffle};
use tfseek_testkit::rng::Rng;

/// The number of a server.
pub(super) type Host = usize;

/// The number of shards at each server.
pub(super) const SHARDS: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct WorldPlan {
    pub(super) seed: u64,
    /// The log is kept.
    pub(super) is_shown: bool,
    /// Servers look at `If-Match`.
    pub(super) has_if_match: bool,
    /// Objects have a version and a time.
    pub(super) has_versions: bool,
    /// Bytes per second of the link.
    pub(super) rate: u64,
    pub(super) cache_bytes: u64,
    pub(super) processes: Vec<ProcessPlan>,
    /// The faults of requests, by their numbers.
    pub(super) faults: Vec<(usize, Fault)>,
    /// The events, each after a number of milliseconds.
    pub(super) events: Vec<(u64, Event)>,
}

/// A process, with threads that share a store and a data set.
#[derive(Clone, Debug)]
pub(super) struct ProcessPlan {
    pub(super) host: Host,
    pub(super) is_cached: bool,
    pub(super) requests: usize,
    pub(super) memory: u64,
    pub(super) threads: Vec<Vec<Work>>,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Reads records at these places, of 1,000.
    Records(Vec<u64>),
    Epoch(EpochPlan),
    Open,
}

#[derive(Clone, Debug)]
pub(super) struct EpochPlan {
    pub(super) shuffle: Shuffle,
    pub(super) seed: u64,
    pub(super) batch: u64,
    pub(super) rank: u64,
    pub(super) ranks: u64,
    pub(super) damage: Damage,
    /// After this number of batches the loader is dropped, and its state resumed.
    pub(super) resumes: Vec<u64>,
    /// The epoch is left after this number of batches.
    pub(super) leaves: Option<u64>,
}

/// A fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no connection.
    Refused,
    /// There is no answer.
    Silent,
    /// This status, and the seconds to wait.
    Busy(u16, u64),
    /// The connection breaks after this number of bytes.
    Reset(usize),
    /// No bytes come after these.
    Stall(usize),
    /// A byte comes each second.
    Drip,
    /// Only the first bytes of the range are sent, and the answer says so.
    Part(usize),
    /// The body is shorter than the answer says.
    Short(usize),
    /// A bit is flipped.
    Flip(usize),
    OtherRange,
    Whole,
}

/// An event that is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An object is replaced.
    Replace(Host, usize),
    /// An object is removed, and is there again in its next version after this number of milliseconds.
    Remove(Host, usize),
    /// A process is killed, and starts again.
    Kill(usize),
    /// A bit of a file in the cache is flipped.
    FlipCached(u64),
    /// A file in the cache loses its end.
    CutCached(u64),
    DeleteCached(u64),
    /// The time of a file in the cache is another: before 2000, or to come.
    TimeCached(u64, bool),
}

impl WorldPlan {
    pub(super) fn new(seed: u64) -> WorldPlan {
        let mut rng = Rng::new(seed);
        let processes = 1 + rng.below(3);
        let is_calm = rng.chance(40);
        let processes: Vec<ProcessPlan> = (0..processes).map(|_| ProcessPlan::new(&mut rng)).collect();
        let faults = if is_calm { 0 } else { rng.below(24) };
        let events = if is_calm { 0 } else { rng.below(8) };
        let number = processes.len();
        let faulty = rng.pick(&[20, 100, 400]);
        WorldPlan {
            seed,
            is_shown: false,
            has_if_match: !rng.chance(64),
            has_versions: !rng.chance(40),
            rate: rng.pick(&[200_000, 1_000_000, 50_000_000]),
            cache_bytes: rng.pick(&[60_000, 200_000, 10_000_000]),
            processes,
            faults: (0..faults).map(|_| (rng.below(faulty), Fault::new(&mut rng))).collect(),
            events: (0..events).map(|_| (rng.below_u64(6000), Event::new(&mut rng, number))).collect(),
        }
    }
}

impl WorldPlan {
    pub(super) fn damages_files(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::FlipCached(_) | Event::CutCached(_)))
    }

    pub(super) fn most_requests(&self) -> usize {
        self.processes.iter().map(|process| process.requests).max().unwrap_or(0)
    }
}

impl ProcessPlan {
    fn new(rng: &mut Rng) -> ProcessPlan {
        let threads = 1 + rng.below(2);
        let works = |rng: &mut Rng| -> Vec<Work> { (0..1 + rng.below(3)).map(|_| Work::new(rng)).collect() };
        ProcessPlan {
            host: usize::from(rng.chance(90)),
            is_cached: !rng.chance(60),
            requests: 1 + rng.below(12),
            memory: rng.pick(&[20_000, 100_000, 1 << 20]),
            threads: (0..threads).map(|_| works(rng)).collect(),
        }
    }
}

impl Work {
    fn new(rng: &mut Rng) -> Work {
        match rng.below(8) {
            0 => Work::Open,
            1 | 2 => Work::Records((0..1 + rng.below(12)).map(|_| rng.below_u64(1000)).collect()),
            _ => Work::Epoch(EpochPlan::new(rng)),
        }
    }
}

impl EpochPlan {
    fn new(rng: &mut Rng) -> EpochPlan {
        let block = Spec::Block { block: 5 + rng.below_u64(40), window: 1 + rng.below_u64(3) };
        let ranks = 1 + rng.below_u64(3);
        EpochPlan {
            shuffle: match rng.below(4) {
                0 => Shuffle::None,
                1 => Shuffle::Global,
                _ => Shuffle::Order(block),
            },
            seed: rng.below_u64(100),
            batch: 1 + rng.below_u64(24),
            rank: rng.below_u64(ranks),
            ranks,
            damage: if rng.chance(80) { Damage::Skip } else { Damage::Raise },
            resumes: (0..rng.below(3)).map(|_| 1 + rng.below_u64(10)).collect(),
            leaves: rng.chance(60).then(|| 1 + rng.below_u64(8)),
        }
    }
}

impl Fault {
    fn new(rng: &mut Rng) -> Fault {
        let bytes = rng.below(30_000);
        match rng.below(18) {
            0 | 1 => Fault::Refused,
            2 => Fault::Silent,
            3..6 => Fault::Busy(rng.pick(&[500, 503, 429, 503]), rng.below_u64(3)),
            6..8 => Fault::Reset(bytes),
            8 => Fault::Stall(bytes),
            9 => Fault::Drip,
            10 | 11 => Fault::Part(1 + bytes),
            12 => Fault::Short(1 + rng.below(2000)),
            13..16 => Fault::Flip(bytes),
            16 => Fault::OtherRange,
            _ => Fault::Whole,
        }
    }

    /// Returns true for what a client cannot make good: the server is wrong.
    pub(super) fn is_of_server(self) -> bool {
        matches!(self, Fault::OtherRange | Fault::Whole | Fault::Part(_))
    }
}

impl Event {
    fn new(rng: &mut Rng, processes: usize) -> Event {
        let host = usize::from(rng.chance(90));
        match rng.below(12) {
            0..3 => Event::Replace(host, rng.below(SHARDS)),
            3 => Event::Remove(host, rng.below(SHARDS)),
            4..6 => Event::Kill(rng.below(processes)),
            6..8 => Event::FlipCached(rng.u64()),
            8 => Event::CutCached(rng.u64()),
            9 | 10 => Event::DeleteCached(rng.u64()),
            _ => Event::TimeCached(rng.u64(), rng.chance(128)),
        }
    }
}
