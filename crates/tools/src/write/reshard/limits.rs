//! Limits of the machine: memory, free space and open files.

use std::fs;
use std::path::{Path, PathBuf};

/// The limit on memory where the system does not state one.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// Returns the memory that this process may use: the least of the physical memory and the limits of its
/// control groups, of both versions. Where the system states neither, 4 GiB.
pub fn memory_limit() -> u64 {
    memory_below(Path::new("/")).unwrap_or(UNKNOWN_MEMORY)
}

/// Reads the limits from the files of the system below a root.
fn memory_below(root: &Path) -> Option<u64> {
    let physical = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounted = root.join("sys/fs/cgroup");
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        match controllers {
            "" => add_group(&mounted, group, "memory.max", &mut files),
            _ if controllers.split(',').any(|name| name == "memory") => {
                add_group(&mounted.join("memory"), group, "memory.limit_in_bytes", &mut files);
            }
            _ => {}
        }
    }
    // "max" is no number, and means no limit.
    let limits = files.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.chain(physical).min()
}

/// Adds the file of a group and the files of the groups around it. In a container the group may be mounted as
/// the root.
fn add_group(mounted: &Path, group: &str, name: &str, files: &mut Vec<PathBuf>) {
    let group = Path::new(group.trim_start_matches('/'));
    files.extend(group.ancestors().map(|group| mounted.join(group).join(name)));
}

/// The file system of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskSpace {
    /// Identity of the file system.
    pub(crate) device: u64,
    /// Bytes that this user may still write.
    pub(crate) free: u64,
}

/// Returns the free space at a folder, if the system states it.
#[cfg(unix)]
pub(crate) fn disk_space(folder: &Path) -> Option<DiskSpace> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(folder).ok()?.dev();
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(DiskSpace { device, free: found.f_bavail.checked_mul(found.f_frsize)? })
}

#[cfg(not(unix))]
pub(crate) fn disk_space(_: &Path) -> Option<DiskSpace> {
    None
}

/// Returns the number of files that this process may open. If it is less than `wanted`, the process first
/// raises its own limit as far as it may.
#[cfg(unix)]
pub(super) fn open_files(wanted: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|&current| current < wanted) else {
        return limit.current.unwrap_or(u64::MAX);
    };
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }) {
        Ok(()) => raised,
        Err(_) => current,
    }
}

#[cfg(not(unix))]
pub(super) fn open_files(_: u64) -> u64 {
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || memory_below(dir.path());
        assert_eq!(found(), None);
        put("proc/meminfo", "MemFree: 5 kB\nMemTotal:       1000 kB\n");
        assert_eq!(found(), Some(1_024_000));
        put("proc/self/cgroup", "4:cpu,memory:/a/b\n3:memoryish:/x\n0::/c\n");
        put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(), Some(1_024_000));
        put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "900000\n");
        assert_eq!(found(), Some(900_000));
        put("sys/fs/cgroup/c/memory.max", "max\n");
        assert_eq!(found(), Some(900_000));
        put("sys/fs/cgroup/memory.max", "800000\n");
        assert_eq!(found(), Some(800_000));
        assert!(memory_limit() > 0);
    }

    #[test]
    #[cfg(unix)]
    fn the_machine_has_limits() {
        let space = disk_space(Path::new(".")).unwrap();
        assert!(space.free > 0);
        assert_eq!(disk_space(Path::new("/no/such/folder")), None);
        let now = open_files(0);
        assert!(now > 0 && open_files(now) == now);
    }
}
