//! The memory limit of the process.

/// Returns the memory limit of this process in bytes: the smaller of its control group's limit and the
/// machine's memory. `u64::MAX` if the system reports neither.
pub(crate) fn memory_limit() -> u64 {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Control groups version 2, then version 1. "max" does not parse as a number.
    let group = number("/sys/fs/cgroup/memory.max").or(number("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    group.unwrap_or(u64::MAX).min(installed().unwrap_or(u64::MAX))
}

fn installed() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_above_a_megabyte() {
        assert!(memory_limit() > 1 << 20);
    }
}
