//! Forked processes.

use super::epochs::{Blocks, ORDERS, checked, loader};
use super::*;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tfseek::io::Store;
use tfseek::{DType, ExampleBuilder, Shuffle};
use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeOptions, EpisodeValues, Episodes, Windows};

/// Set in the process that forks.
const FORKS: &str = "TFSEEK_TEST_FORKS";

#[test]
fn forked_children_make_a_store_of_their_own() {
    if forks_here("forks::forked_children_make_a_store_of_their_own") {
        for scheme in SCHEMES {
            fork_and_read(scheme, 5);
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_forks_with_requests_under_way() {
    if forks_here("forks::a_thousand_forks_with_requests_under_way") {
        for scheme in SCHEMES {
            fork_and_read(scheme, 200);
        }
    }
}

#[test]
fn forked_children_read_with_loaders() {
    if forks_here("forks::forked_children_read_with_loaders") {
        fork_in_epochs(6);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_forks_of_loaders() {
    if forks_here("forks::a_thousand_forks_of_loaders") {
        fork_in_epochs(500);
    }
}

#[test]
fn forked_children_read_windows() {
    if forks_here("forks::forked_children_read_windows") {
        fork_in_windows(6);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_forks_of_windows() {
    if forks_here("forks::a_thousand_forks_of_windows") {
        fork_in_windows(1000);
    }
}

/// Returns true in a process of its own, which runs one test. The process that forks has no other tests in
/// it.
///
/// Each thread that `std` starts takes a lock of its report of stack overflows. A child has a copy that is
/// held for ever, if a thread started while another one forked. There is no such report, as in Python, where
/// these signals are not left to `std` at the start.
#[allow(unsafe_code)]
fn forks_here(test: &str) -> bool {
    if std::env::var_os(FORKS).is_some() {
        return true;
    }
    let mut forking = Command::new(std::env::current_exe().unwrap());
    forking.args(["--exact", test, "--nocapture", "--include-ignored"]);
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        use std::os::unix::process::CommandExt;
        forking.pre_exec(|| {
            for signal in [libc::SIGSEGV, libc::SIGBUS] {
                libc::signal(signal, libc::SIG_IGN);
            }
            Ok(())
        });
    }
    let output = forking.env(FORKS, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}

/// Forks while requests are under way, and reads in the children and in the parent.
fn fork_and_read(scheme: &'static str, rounds: u64) {
    let case = Case::new(scheme);
    let store = case.store();
    let ds = case.open_all(store.clone()).unwrap();
    case.server.latency(Duration::from_millis(2));
    let object = store.list(&case.url(NAMES[1]), false).unwrap().objects.remove(0);
    let source = store.open(&object).unwrap();
    let busy = {
        let ds = ds.clone();
        std::thread::spawn(move || {
            for _ in 0..rounds.div_ceil(2) {
                assert_eq!(labels(&ds).len(), 100)
            }
        })
    };
    for k in 0..rounds {
        source.want(&[0..100, 500..600]);
        std::thread::sleep(Duration::from_millis(k % 5));
        let child = fork(|| {
            let mut buf = Vec::new();
            let ok = (0..100).step_by(7).all(|i| label(&ds, i, &mut buf).ok() == Some(i as i64));
            let part = source.fetch(500..600, &mut Vec::new()).is_ok();
            // Children of children, too.
            let grandchild = fork(|| label(&ds, 99, &mut Vec::new()).ok() == Some(99));
            ok && part && wait(grandchild)
        });
        assert!(wait(child), "{scheme}");
        assert!(source.fetch(0..100, &mut Vec::new()).is_ok());
    }
    busy.join().unwrap();
}

/// Forks while a loader reads, without and with a cache on disk, and reads with a loader in the children.
fn fork_in_epochs(rounds: u64) {
    let (blocks, dir) = (Blocks::new(), tempfile::tempdir().unwrap());
    for cache_dir in [None, Some(dir.path())] {
        let ds = blocks.open(|options| {
            (options.cache_dir, options.cache_bytes) =
                (cache_dir.map(Path::to_path_buf), cache_dir.map(|_| 1 << 30));
        });
        blocks.case.server.latency(Duration::from_millis(2));
        let epoch = || {
            let steps = loader(&ds, &ORDERS[2]).threads(2).build().unwrap();
            assert_eq!(steps.map(|step| checked(&step.unwrap()).len()).sum::<usize>(), 12_000);
        };
        let failed = fork_beside(epoch, rounds, |k| {
            let shuffle = &ORDERS[1 + k as usize % 2];
            let steps = loader(&ds, shuffle).seed(k).threads(2).build().unwrap();
            steps.take(3).map(|step| checked(&step.unwrap()).len()).sum::<usize>() == 3 * 64
        });
        assert_eq!(failed, None, "{cache_dir:?}");
    }
}

/// Forks while a loader reads windows of episodes without stored tables, and reads windows in the children.
fn fork_in_windows(rounds: u64) {
    const EPISODES: u64 = 40;
    const STEPS: u64 = 30;
    let case = Case::new("s3");
    let mut shard = Vec::new();
    for episode in 0..EPISODES {
        let text = |t: u64| vec![(episode + t) as u8; 500];
        let example = ExampleBuilder::new().bytes("steps/text", (0..STEPS).map(text)).encode().unwrap();
        put_record(&mut shard, &example).unwrap();
    }
    case.set("episodes.tfrecord", shard);
    let key = EpisodeKey {
        name: "steps/text".into(),
        kind: DType::Bytes,
        values: EpisodeValues::Steps { width: 1 },
    };
    let options = EpisodeOptions { memory: true, ..EpisodeOptions::default() };
    let ds = case.open("episodes.tfrecord").unwrap();
    let windows = || {
        let robot = Episodes::open(&ds, &EpisodeKeys::new([key.clone()]).unwrap(), &options).unwrap();
        robot.windows().rows("steps/text", "text", &[0], Default::default()).build().unwrap()
    };
    let shared = windows();
    let read = |windows: &Windows, seed: u64, steps: usize| {
        let loader = windows.dataset().record_loader().batch_size(16).shuffle(Shuffle::Global);
        let loader = loader.seed(seed).threads(4).build().unwrap();
        let mut n = 0;
        for step in loader.take(steps) {
            let step = step.unwrap();
            for (record, id) in step.records().unwrap().zip(&step.ids) {
                let record = record.unwrap();
                let expected = vec![(id / STEPS + id % STEPS) as u8; 500];
                assert_eq!(record.example().bytes("text").unwrap().first(), Some(&expected[..]));
                n += 1;
            }
        }
        n
    };
    case.server.latency(Duration::from_millis(1));
    // The first epoch reads episodes, later ones find them in memory.
    let epoch = |windows: &Windows| assert_eq!(read(windows, 1, usize::MAX), EPISODES * STEPS);
    let failed = fork_beside(|| (epoch(&shared), epoch(&windows())), rounds, |k| read(&shared, k, 2) == 32);
    assert_eq!(failed, None);
}

/// Forks while another thread calls `busy` again and again. `child` is called with the number of the round,
/// in a child. Returns the first round that failed.
fn fork_beside<T>(busy: impl Fn() -> T + Sync, rounds: u64, child: impl Fn(u64) -> bool) -> Option<u64> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let mut calls = 0;
            while !done.load(Relaxed) || calls == 0 {
                busy();
                calls += 1;
            }
        });
        let failed = (0..rounds).find(|&k| {
            std::thread::sleep(Duration::from_millis(k % 5));
            !wait(fork(|| child(k)))
        });
        // The other thread ends first.
        done.store(true, Relaxed);
        busy.join().unwrap();
        failed
    })
}

/// Runs `f` in a forked child, which ends with its result.
#[allow(unsafe_code)]
fn fork(f: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: glibc and macOS keep `malloc` usable in a child of a process with threads. The child uses what
    // the test is about, its own memory and sockets, and ends without destructors.
    match unsafe { libc::fork() } {
        0 => {
            let ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(false);
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!ok)) }
        }
        child => {
            assert!(child > 0);
            child
        }
    }
}

/// Returns true if the child ended well, in two minutes.
#[allow(unsafe_code)]
fn wait(child: libc::pid_t) -> bool {
    for _ in 0..12_000 {
        let mut status = 0;
        // SAFETY: `status` is a place for the result, and the child is ours.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return status == 0;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: ends the child, which hangs.
    unsafe { libc::kill(child, libc::SIGKILL) };
    false
}
