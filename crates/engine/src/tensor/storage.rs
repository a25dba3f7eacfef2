//! Bytes on a device.

use crate::backend::backend;
use flambeau_base::{Device, Error, Result};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A counted handle on bytes. Tensors that are views of one another share it.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    ptr: AtomicPtr<u8>,
    nbytes: AtomicUsize,
    device: Device,
    /// NOTE [read-only memory]: borrowed memory that its owner does not let us write (a read-only NumPy
    /// array) is copied on the first write. The old bytes stay alive with the storage, so a reader on
    /// another thread never loses them.
    read_only: AtomicBool,
    version: AtomicU32,
    owner: Owner,
    /// Whether it stays as large as it is: memory that somebody else sees too would come apart by growing.
    fixed: bool,
    /// The owners of what it was moved to.
    more: Mutex<Vec<Owner>>,
}

enum Owner {
    Nobody,
    Allocated(NonNull<u8>, usize),
    Borrowed(#[allow(dead_code, reason = "kept for its drop")] Box<dyn Any + Send + Sync>),
}

// SAFETY: an `Owner` is only a record of memory that is given back once, by whoever drops the storage.
unsafe impl Send for Owner {}
// SAFETY: as above; a shared record gives nobody access to the memory.
unsafe impl Sync for Owner {}

impl Storage {
    /// Fresh memory on a device, zeroed if asked for.
    pub fn allocate(device: Device, nbytes: usize, zeroed: bool) -> Result<Storage> {
        if device.is_meta() {
            return Ok(Storage::from_parts(std::ptr::null_mut(), nbytes, device, false, Owner::Nobody));
        }
        let ptr = backend(device)?.allocate(nbytes, zeroed)?;
        Ok(Storage::from_parts(ptr.as_ptr(), nbytes, device, false, Owner::Allocated(ptr, nbytes)))
    }

    /// Memory of somebody else's, kept alive by `owner`.
    ///
    /// # Safety
    /// `ptr` is valid for reads of `nbytes` (and for writes, unless `read_only`) as long as `owner` lives.
    pub unsafe fn borrow(device: Device, ptr: *mut u8, nbytes: usize, read_only: bool, owner: Box<dyn Any + Send + Sync>) -> Storage {
        Storage::from_parts(ptr, nbytes, device, read_only, Owner::Borrowed(owner))
    }

    /// The same, refusing to grow.
    pub fn of_fixed_size(mut self) -> Storage {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.fixed = true;
        }
        self
    }

    fn from_parts(ptr: *mut u8, nbytes: usize, device: Device, read_only: bool, owner: Owner) -> Storage {
        Storage(Arc::new(Inner {
            ptr: AtomicPtr::new(ptr),
            nbytes: AtomicUsize::new(nbytes),
            device: device.of_memory(),
            read_only: AtomicBool::new(read_only),
            version: AtomicU32::new(0),
            owner,
            fixed: false,
            more: Mutex::new(Vec::new()),
        }))
    }

    /// Size in bytes.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.0.nbytes.load(Ordering::Relaxed)
    }

    /// Where the bytes are.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The first byte, to read. Null on the meta device.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.0.ptr.load(Ordering::Acquire)
    }

    /// The first byte, to write: read-only memory is copied first, see NOTE [read-only memory].
    pub fn writable_ptr(&self) -> Result<*mut u8> {
        if self.0.read_only.load(Ordering::Acquire) {
            self.replace(self.nbytes())?;
        }
        Ok(self.ptr())
    }

    /// Whether the two are the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that tells storages apart while they live.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// How many tensors (and others) hold it.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether writes go to a copy, see NOTE [read-only memory].
    pub fn is_read_only(&self) -> bool {
        self.0.read_only.load(Ordering::Acquire)
    }

    /// Makes it at least so large; bytes that are there keep their values. `RuntimeError` where the size is fixed.
    pub fn grow(&self, nbytes: usize) -> Result<()> {
        if nbytes > self.nbytes() {
            if self.0.fixed {
                return Err(Error::runtime(format!(
                    "Trying to resize storage that is not resizable: its {} bytes are shared with their owner (a NumPy array, for instance), and {nbytes} are asked for. Clone the tensor first",
                    self.nbytes()
                )));
            }
            if self.0.device.is_meta() {
                self.0.nbytes.store(nbytes, Ordering::Relaxed);
            } else {
                self.replace(nbytes)?;
            }
        }
        Ok(())
    }

    /// Moves the bytes to fresh memory of so many bytes. The old memory is kept: a view on another thread may be reading it.
    fn replace(&self, nbytes: usize) -> Result<()> {
        let mut more = self.0.more.lock().map_err(|_| Error::runtime("a storage's lock was poisoned"))?;
        let fresh = backend(self.0.device)?.allocate(nbytes, false)?;
        let kept = self.nbytes().min(nbytes);
        // SAFETY: the old memory holds `kept` bytes, the new one too, and fresh memory overlaps nothing.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr(), fresh.as_ptr(), kept) };
        more.push(Owner::Allocated(fresh, nbytes));
        self.0.ptr.store(fresh.as_ptr(), Ordering::Release);
        self.0.nbytes.store(nbytes, Ordering::Relaxed);
        self.0.read_only.store(false, Ordering::Release);
        Ok(())
    }

    #[inline]
    pub(crate) fn version(&self) -> &AtomicU32 {
        &self.0.version
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let more = self.more.get_mut().unwrap_or_else(|e| e.into_inner());
        for owner in std::iter::once(&self.owner).chain(more.iter()) {
            if let &Owner::Allocated(ptr, nbytes) = owner
                && let Ok(backend) = backend(self.device)
            {
                // SAFETY: this memory came from the same backend with this size, and nobody holds the storage any more.
                unsafe { backend.deallocate(ptr, nbytes) };
            }
        }
    }
}
