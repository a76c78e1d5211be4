//! `limit THREADS SECONDS FILE..`: reads all bytes of all records in a random order, again and again, and
//! sums them. Nothing is verified or parsed. Prints the records per second of all threads as JSON.
//!
//! The files are read into memory first. Each thread has its own part of the order, and touches the first
//! byte of 32 records before it reads them, so that their cache misses overlap.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tfseek::order::{Order, Spec};

/// Number of records that are touched together.
const WINDOW: usize = 32;

fn sum(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |s, w| s.wrapping_add(u64::from_le_bytes(*w)));
    tail.iter().fold(sum, |s, &b| s.wrapping_add(u64::from(b)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let threads: usize = args.next().ok_or("THREADS is missing")?.parse()?;
    let seconds: f64 = args.next().ok_or("SECONDS is missing")?.parse()?;
    let files: Vec<Vec<u8>> = args.map(std::fs::read).collect::<Result<_, _>>()?;
    let mut payloads: Vec<&[u8]> = Vec::new();
    for file in &files {
        let mut rest = &file[..];
        while let Some(len) = rest.first_chunk() {
            let len = usize::try_from(u64::from_le_bytes(*len))?;
            payloads.push(rest.get(12..12 + len).ok_or("a record is cut off")?);
            rest = &rest[len + 16..];
        }
    }
    let n = payloads.len();
    let mut order = vec![0; n];
    Order::new(&Spec::Global, n as u64, 1, 0)?.fill(0, &mut order)?;
    let records: Vec<&[u8]> = order.iter().map(|&i| payloads[i as usize]).collect();

    let (start, time) = (Instant::now(), Duration::from_secs_f64(seconds));
    let read: usize = std::thread::scope(|scope| {
        let parts = records.chunks(n.div_ceil(threads).max(1));
        let running: Vec<_> = parts
            .map(|part| {
                scope.spawn(move || {
                    let mut read = 0;
                    for window in part.chunks(WINDOW).cycle() {
                        black_box(
                            window
                                .iter()
                                .filter_map(|record| record.first())
                                .map(|&b| u64::from(b))
                                .sum::<u64>(),
                        );
                        black_box(window.iter().fold(0, |s: u64, record| s.wrapping_add(sum(record))));
                        read += window.len();
                        if start.elapsed() >= time {
                            break;
                        }
                    }
                    read
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    println!("{{\"rate\": {}}}", read as f64 / start.elapsed().as_secs_f64());
    Ok(())
}
