//! CPU time and memory of this process, where the system reports them.

use std::time::{Duration, Instant};

/// Returns the user and system time of all threads of the process, including those that ended.
#[cfg(unix)]
pub(crate) fn cpu() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// Returns the user and system time of all threads of the process, including those that ended.
#[cfg(not(unix))]
pub(crate) fn cpu() -> Option<Duration> {
    None
}

/// Peak memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeakMemory {
    /// Resident pages, including the pages of maps. This is the system's own peak since the process started.
    pub(crate) resident: Option<u64>,
    /// Anonymous pages: heap and stacks. This is the highest sample.
    pub(crate) anonymous: Option<u64>,
    /// Page tables, which maps require. This is the highest sample.
    pub(crate) page_tables: Option<u64>,
}

/// Samples the memory of the process at intervals. Without `/proc` there are no samples.
#[derive(Debug, Default)]
pub(crate) struct MemoryMonitor {
    pub(crate) peak: PeakMemory,
    sampled: Option<Instant>,
}

impl MemoryMonitor {
    /// Interval between samples. One sample takes about 30 us.
    pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

    /// Takes a sample if the interval since the last one has passed.
    pub(crate) fn sample_if_due(&mut self, now: Instant) {
        if self.sampled.is_none_or(|at| now.saturating_duration_since(at) >= MemoryMonitor::INTERVAL) {
            self.sampled = Some(now);
            self.sample();
        }
    }

    pub(crate) fn sample(&mut self) {
        if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
            self.peak = self.peak.max(PeakMemory::parse(&status));
        }
    }
}

impl PeakMemory {
    /// Parses the lines of `/proc/self/status`, such as `RssAnon:     1234 kB`.
    fn parse(status: &str) -> PeakMemory {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
        };
        PeakMemory { resident: field("VmHWM"), anonymous: field("RssAnon"), page_tables: field("VmPTE") }
    }

    fn max(self, other: PeakMemory) -> PeakMemory {
        PeakMemory {
            resident: self.resident.max(other.resident),
            anonymous: self.anonymous.max(other.anonymous),
            page_tables: self.page_tables.max(other.page_tables),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        let status =
            "Name:\ttfseek\nVmHWM:\t   10 kB\nVmRSS:\t    8 kB\nRssAnon:\t       4 kB\nVmPTE:\t    x kB\n";
        let memory = PeakMemory::parse(status);
        let want = PeakMemory { resident: Some(10 << 10), anonymous: Some(4 << 10), page_tables: None };
        assert_eq!(memory, want);
        assert_eq!(PeakMemory::parse("VmHWM:\t 18446744073709551615 kB\n"), PeakMemory::default());
        assert_eq!(memory.max(PeakMemory::default()), want);
    }

    #[cfg(unix)]
    #[test]
    fn cpu_time_advances() {
        let before = cpu().unwrap();
        let mut x = 0u64;
        while cpu().unwrap() == before {
            x = std::hint::black_box(x + 1);
        }
        assert!(cpu().unwrap() > before);
    }
}
