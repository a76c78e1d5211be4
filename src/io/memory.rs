//! Memory: the process's limit, and allocations that may fail.

use std::io;

/// Lengthens `buf` to `len` zero-filled bytes. A lack of memory is an error and does not abort.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`]; `buf` is then as it was.
pub(crate) fn grow(buf: &mut Vec<u8>, len: usize) -> io::Result<()> {
    buf.try_reserve(len.saturating_sub(buf.len())).map_err(|_| io::ErrorKind::OutOfMemory)?;
    buf.resize(len, 0);
    Ok(())
}

/// As [`grow`], without room for more: for a buffer that has its final size.
pub(crate) fn grow_exact<T: Clone + Default>(buf: &mut Vec<T>, len: usize) -> io::Result<()> {
    buf.try_reserve_exact(len.saturating_sub(buf.len())).map_err(|_| io::ErrorKind::OutOfMemory)?;
    buf.resize(len, T::default());
    Ok(())
}

/// Returns `len` zeros.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`].
pub(crate) fn zeroed<T: Clone + Default>(len: u64) -> io::Result<Vec<T>> {
    let mut buf = Vec::new();
    grow_exact(&mut buf, usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?)?;
    Ok(buf)
}

/// Returns the bytes of memory that this process may have: the limit of its control group, or the machine's memory. `u64::MAX` where
/// the system does not tell.
pub(crate) fn memory_limit() -> u64 {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Version 2, then version 1 of control groups; "max" is no number.
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
    fn a_limit_is_more_than_this_test_needs() {
        assert!(memory_limit() > 1 << 20);
    }
}
