//! Blocks from the operating system, and how much of them it can give.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{ALIGNMENT, LARGE};

static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Requests of this size or more are compared with the memory that is free at that moment.
const CHECKED: usize = 32 << 20;

/// The bytes that are held from the system.
pub(super) fn reserved() -> usize {
    RESERVED.load(Relaxed)
}

/// A block of `size` bytes; as error the memory that was available, where that is known.
pub(super) fn map(size: usize) -> Result<NonNull<u8>, Option<usize>> {
    if size >= CHECKED {
        let available = available_memory();
        if available.is_some_and(|available| size > available) {
            return Err(available);
        }
        // Memory that was given out but not yet written still counts as available.
        let total = total_memory();
        if total.is_some_and(|total| size.saturating_add(reserved()) > total) {
            return Err(total.map(|total| total.saturating_sub(reserved())));
        }
    }
    let ptr = if size >= LARGE { map_large(size) } else { map_small(size) };
    match ptr {
        Some(ptr) => {
            RESERVED.fetch_add(size, Relaxed);
            Ok(ptr)
        }
        None => Err(available_memory()),
    }
}

/// Returns a block to the system.
///
/// # Safety
///
/// `ptr` came from [`map`] with this size and is not used any more.
pub(super) unsafe fn unmap(ptr: NonNull<u8>, size: usize) {
    RESERVED.fetch_sub(size, Relaxed);
    if size >= LARGE {
        // SAFETY: from `map_large`, by the caller's promise.
        unsafe { unmap_large(ptr, size) }
    } else {
        // SAFETY: from `map_small`, by the caller's promise, with this layout.
        unsafe { System.dealloc(ptr.as_ptr(), Layout::from_size_align_unchecked(size, ALIGNMENT)) }
    }
}

fn map_small(size: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
    // SAFETY: sizes of classes are not zero.
    NonNull::new(unsafe { System.alloc(layout) })
}

#[cfg(target_os = "linux")]
fn map_large(size: usize) -> Option<NonNull<u8>> {
    // Map one alignment more than needed, then cut the ends off.
    let padded = size.checked_add(LARGE)?;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address that the kernel chooses.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), padded, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let start = (base as usize).next_multiple_of(LARGE);
    let (before, after) = (start - base as usize, base as usize + padded - (start + size));
    // SAFETY: both ranges lie in the new mapping, outside of the block; sizes of classes are whole pages. Advice
    // that the kernel does not take changes nothing.
    unsafe {
        if before > 0 {
            libc::munmap(base, before);
        }
        if after > 0 {
            libc::munmap((start + size) as *mut libc::c_void, after);
        }
        libc::madvise(start as *mut libc::c_void, size, libc::MADV_HUGEPAGE);
    }
    NonNull::new(start as *mut u8)
}

/// # Safety
///
/// As for [`unmap`].
#[cfg(target_os = "linux")]
unsafe fn unmap_large(ptr: NonNull<u8>, size: usize) {
    // SAFETY: the block is a mapping of its own of this size.
    unsafe { libc::munmap(ptr.as_ptr().cast(), size) };
}

#[cfg(not(target_os = "linux"))]
fn map_large(size: usize) -> Option<NonNull<u8>> {
    map_small(size)
}

/// # Safety
///
/// As for [`unmap`].
#[cfg(not(target_os = "linux"))]
unsafe fn unmap_large(ptr: NonNull<u8>, size: usize) {
    // SAFETY: from `map_small` with this layout.
    unsafe { System.dealloc(ptr.as_ptr(), Layout::from_size_align_unchecked(size, ALIGNMENT)) }
}

/// The bytes of memory and swap that the system, and the control group of the process, can still give; `None`
/// where the system does not say.
pub fn available_memory() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return linux::available();
    #[cfg(not(target_os = "linux"))]
    return total_memory();
}

/// The bytes of memory and swap that this process could have if it were alone.
fn total_memory() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return linux::total();
    #[cfg(all(unix, not(target_os = "linux")))]
    // SAFETY: `sysconf` only reads.
    return unsafe {
        let (pages, size) = (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE));
        (pages > 0 && size > 0).then_some((pages as usize).saturating_mul(size as usize))
    };
    #[cfg(not(unix))]
    return None;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    pub(super) fn available() -> Option<usize> {
        let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
        let free = field(&meminfo, "MemAvailable:")? + field(&meminfo, "SwapFree:").unwrap_or(0);
        Some(groups().iter().filter_map(Group::available).fold(free, usize::min))
    }

    pub(super) fn total() -> Option<usize> {
        static TOTAL: OnceLock<Option<usize>> = OnceLock::new();
        *TOTAL.get_or_init(|| {
            let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
            let total = field(&meminfo, "MemTotal:")? + field(&meminfo, "SwapTotal:").unwrap_or(0);
            Some(groups().iter().filter_map(Group::limit).fold(total, usize::min))
        })
    }

    /// The bytes in a line such as `MemFree:  123 kB`.
    pub(super) fn field(meminfo: &str, name: &str) -> Option<usize> {
        let rest = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        rest.trim().trim_end_matches("kB").trim().parse::<usize>().ok()?.checked_mul(1024)
    }

    /// A memory control group that the process is in, itself or an ancestor.
    pub(super) struct Group {
        folder: PathBuf,
        limit_file: &'static str,
        usage_file: &'static str,
        /// The line of `memory.stat` that counts cached file pages, which the kernel would give up.
        reclaimable: &'static str,
    }

    impl Group {
        fn read(&self, file: &str) -> Option<String> {
            std::fs::read_to_string(self.folder.join(file)).ok()
        }

        fn limit(&self) -> Option<usize> {
            // "max", or in version 1 a number larger than any memory, stands for no limit.
            let limit = self.read(self.limit_file)?.trim().parse::<usize>().ok()?;
            (limit < 1 << 60).then(|| limit.saturating_add(self.swap_limit()))
        }

        fn swap_limit(&self) -> usize {
            self.read("memory.swap.max").and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        }

        fn available(&self) -> Option<usize> {
            let limit = self.limit()?;
            let usage = self.read(self.usage_file)?.trim().parse::<usize>().ok()?;
            let stat = self.read("memory.stat").unwrap_or_default();
            let reclaimable = stat.lines().find_map(|line| line.strip_prefix(self.reclaimable)?.trim().parse::<usize>().ok()).unwrap_or(0);
            Some(limit.saturating_sub(usage.saturating_sub(reclaimable)))
        }
    }

    fn groups() -> &'static [Group] {
        static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
        GROUPS.get_or_init(|| find(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default()))
    }

    /// The groups that `/proc/self/cgroup` names, from that of the process up to the root of each hierarchy.
    pub(super) fn find(proc_cgroup: &str) -> Vec<Group> {
        let mut groups = Vec::new();
        for line in proc_cgroup.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let (root, limit_file, usage_file, reclaimable) = if controllers.is_empty() {
                ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ")
            } else if controllers.split(',').any(|name| name == "memory") {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
            } else {
                continue;
            };
            let path = Path::new(path.trim_start_matches('/'));
            for ancestor in path.ancestors() {
                groups.push(Group { folder: Path::new(root).join(ancestor), limit_file, usage_file, reclaimable });
            }
        }
        groups
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn meminfo_is_in_kibibytes() {
            let text = "MemTotal:       24000 kB\nMemAvailable:    12000 kB\n";
            assert_eq!(field(text, "MemAvailable:"), Some(12000 * 1024));
            assert_eq!(field(text, "SwapFree:"), None);
        }

        #[test]
        fn all_ancestors_limit() {
            let groups = find("12:cpu,cpuacct:/a\n5:memory:/docker/x\n0::/user.slice/b\n");
            let folders: Vec<_> = groups.iter().map(|group| group.folder.to_str().unwrap()).collect();
            let memory = ["/sys/fs/cgroup/memory/docker/x", "/sys/fs/cgroup/memory/docker", "/sys/fs/cgroup/memory/"];
            let unified = ["/sys/fs/cgroup/user.slice/b", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/"];
            assert_eq!(folders, [memory, unified].concat());
        }

        #[test]
        fn this_machine_has_memory() {
            let (total, available) = (total().unwrap(), available().unwrap());
            assert!(available > 0 && available <= total);
        }
    }
}
