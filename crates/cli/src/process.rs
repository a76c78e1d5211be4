//! What this process has used up, as far as the system tells.

use std::time::{Duration, Instant};

/// User and system time of all threads there were.
#[cfg(unix)]
pub(crate) fn cpu() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// User and system time of all threads there were.
#[cfg(not(unix))]
pub(crate) fn cpu() -> Option<Duration> {
    None
}

/// Bytes of memory at their highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident pages, those of maps counted. The system's own peak, since the process began.
    pub(crate) resident: Option<u64>,
    /// What is the process's own: heap and stacks. As often as it was looked at.
    pub(crate) anonymous: Option<u64>,
    /// Page tables, which maps need. As often as it was looked at.
    pub(crate) page_tables: Option<u64>,
}

/// Looks at the process's memory from time to time. Where there is no `/proc` it sees nothing.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) memory: Memory,
    looked: Option<Instant>,
}

impl Watch {
    /// A look takes about 30 us.
    pub(crate) const EVERY: Duration = Duration::from_millis(20);

    pub(crate) fn new() -> Watch {
        Watch { memory: Memory::default(), looked: None }
    }

    /// Looks again if it is time.
    pub(crate) fn at(&mut self, now: Instant) {
        if self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= Watch::EVERY) {
            self.looked = Some(now);
            self.look();
        }
    }

    pub(crate) fn look(&mut self) {
        if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
            self.memory = self.memory.max(Memory::parse(&status));
        }
    }
}

impl Memory {
    /// From the lines of `/proc/self/status`: `RssAnon:     1234 kB`.
    fn parse(status: &str) -> Memory {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
        };
        Memory { resident: field("VmHWM"), anonymous: field("RssAnon"), page_tables: field("VmPTE") }
    }

    fn max(self, other: Memory) -> Memory {
        Memory {
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
    fn lines_of_status() {
        let status =
            "Name:\ttfseek\nVmHWM:\t   10 kB\nVmRSS:\t    8 kB\nRssAnon:\t       4 kB\nVmPTE:\t    x kB\n";
        let memory = Memory::parse(status);
        let want = Memory { resident: Some(10 << 10), anonymous: Some(4 << 10), page_tables: None };
        assert_eq!(memory, want);
        assert_eq!(Memory::parse("VmHWM:\t 18446744073709551615 kB\n"), Memory::default());
        assert_eq!(memory.max(Memory::default()), want);
    }

    #[cfg(unix)]
    #[test]
    fn cpu_time_goes_on() {
        let before = cpu().unwrap();
        let mut x = 0u64;
        while cpu().unwrap() == before {
            x = std::hint::black_box(x + 1);
        }
        assert!(cpu().unwrap() > before);
    }
}
