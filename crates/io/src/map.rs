//! Files in memory.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flambeau_base::Device;
use flambeau_engine::Storage;
use memmap2::{MmapMut, MmapOptions};

use crate::error::{Result, at_path, corrupt};

/// A file mapped privately: pages are read when touched, and a write goes to a copy of its page, never to the file.
pub(crate) struct Map {
    /// Never looked at through a reference again: tensors write through `start`.
    _map: MmapMut,
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to the map, which is never moved or unmapped before it is dropped; what is done through
// the pointer is the business of the storages, which are `Send` and `Sync` themselves.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>> {
        let file = File::open(path).map_err(|e| at_path(path, e))?;
        // SAFETY: the mapping is private, so nothing here changes the file. Another process that writes to the file
        // changes values in pages not yet copied, and one that cuts it short makes reading fail with a signal, as for
        // every program that maps files; no reference to the bytes is made that would rely on either.
        let map = unsafe { MmapOptions::new().no_reserve_swap().map_copy(&file) };
        let mut map = map.map_err(|e| at_path(path, e))?;
        let (start, length) = (map.as_mut_ptr(), map.len());
        Ok(Arc::new(Self { _map: map, start, length }))
    }

    /// The bytes of a range, which must lie inside, as a storage that keeps the map alive.
    pub(crate) fn storage(self: &Arc<Self>, range: Range<u64>) -> Result<Storage> {
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end)) else {
            return Err(corrupt("a range of bytes that no memory has"));
        };
        if start > end || end > self.length {
            return Err(corrupt(format_args!("bytes {start}..{end} of a file of {} bytes", self.length)));
        }
        let pointer = self.start.wrapping_add(start);
        // SAFETY: the range lies inside the map, which the storage keeps and which may be written (to private pages).
        Ok(unsafe { Storage::borrow(Device::CPU, pointer, end - start, false, Box::new(self.clone())) })
    }

    /// Whether elements of so many bytes could lie there: maps begin at a page.
    pub(crate) fn is_aligned(place: u64, size: usize) -> bool {
        place.is_multiple_of(size as u64)
    }
}
