//! Tensors: counted handles on storage, layout, dtype and what autograd keeps with them.

mod access;
mod create;
mod front;
mod geometry;
mod operators;
mod print;
mod storage;
mod write;

pub use access::Element;
pub(crate) use access::for_each_offset;
pub use front::{FrontEnd, set_front_end};
pub use print::{PrintOptions, print_options, set_print_options, tensor_text};
pub use storage::Storage;
pub(crate) use write::{Overlap, overlap};

use crate::autograd::meta::AutogradMeta;
use crate::transform::level::Wrapped;
use flambeau_base::{DType, Device, Layout, Result};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A multi-dimensional array of one dtype on one device.
///
/// A `Tensor` is a handle: cloning it gives another handle on the same tensor, with the same
/// gradient and history. Views share memory ([`Tensor::shares_storage`]); operations make new tensors.
///
/// In-place operations from several threads on the same memory, without synchronisation between
/// them, leave unspecified values there (as in PyTorch), never memory that is not the tensor's.
pub struct Tensor(NonNull<Impl>);

/// What is immutable from the engine's side; see NOTE [metadata].
pub(crate) struct Meta {
    pub storage: Storage,
    pub layout: Layout,
    pub dtype: DType,
    /// What its values still have to go through, see [`lazy`].
    pub lazy: u8,
    /// A counter of its own, for tensors that left their storage's (`.data`, `set_`).
    pub version: Option<Arc<AtomicU32>>,
    /// What it stands for inside a transform, see [`crate::transform::level`].
    pub wrapped: Option<Arc<Wrapped>>,
}

pub(crate) struct Impl {
    refs: AtomicUsize,
    /// See [`front`].
    slot: AtomicPtr<()>,
    flags: AtomicU16,
    /// The transform inside which it was made; 0 outside of all.
    born: AtomicU32,
    /// NOTE [metadata]: read without a lock by every operation. It is changed only by
    /// `Tensor::set_meta`, which is unsafe: the caller vouches that no other thread uses the tensor
    /// meanwhile. Safe Rust has no operation that changes it; the Python layer has some (`resize_`,
    /// `set_`, `x.data = y`), holds the GIL in them, and hands aliases to work done without the GIL.
    meta: UnsafeCell<Meta>,
    autograd: Mutex<Option<Box<AutogradMeta>>>,
}

/// Bits of `Impl::flags`, kept beside the autograd metadata so that the common question costs one load.
pub(crate) mod flag {
    pub const REQUIRES_GRAD: u16 = 1;
    pub const GRAD_FN: u16 = 2;
    pub const VIEW: u16 = 4;
    pub const INFERENCE: u16 = 8;
    /// The front end holds its object for the core, see `front`.
    pub const HELD: u16 = 16;
    /// A number that Python gave: takes part in promotion as a number does.
    pub const NUMBER: u16 = 32;
    /// A view made while gradients were off, or one of several outputs: not to be changed in place with gradients.
    pub const FROZEN_VIEW: u16 = 64;
    /// A base that got another layout after views of it were made.
    pub const RELAID: u16 = 128;
    /// It stands for another tensor inside a transform.
    pub const WRAPPED: u16 = 256;
    /// It has a tangent.
    pub const TANGENT: u16 = 512;
}

/// Bits of `Meta::lazy`: the memory holds other values than the tensor has.
///
/// NOTE [lazy values]: `conj()` is a view that only sets a bit. Views hand the bits on. Everything else gets inputs
/// without them: `transform::execute` resolves them first, by a copy. What reads memory outside of an operation
/// (`item`, printing, NumPy) asks [`Tensor::resolved`]; writes in place end in `copy_into`, which knows both ways.
pub(crate) mod lazy {
    /// The values are the conjugates of what is in memory.
    pub const CONJ: u8 = 1;
    /// The values are the negatives of what is in memory (of the conjugates, with both bits).
    pub const NEG: u8 = 2;
}

// SAFETY: everything behind the handle is atomic, behind a lock, or `meta`, for which see NOTE [metadata].
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// A tensor over a storage. The caller has checked that the layout stays inside it.
    pub(crate) fn from_parts(storage: Storage, layout: Layout, dtype: DType) -> Tensor {
        debug_assert!(layout.numel() == 0 || layout.end() * dtype.size() <= storage.nbytes());
        Tensor::from_meta(Meta { storage, layout, dtype, lazy: 0, version: None, wrapped: None })
    }

    pub(crate) fn from_meta(meta: Meta) -> Tensor {
        let mut flags = if crate::autograd::mode::is_inference() { flag::INFERENCE } else { 0 };
        if meta.wrapped.is_some() {
            flags |= flag::WRAPPED;
        }
        let inner = Impl {
            refs: AtomicUsize::new(1),
            slot: AtomicPtr::new(std::ptr::null_mut()),
            flags: AtomicU16::new(flags),
            born: AtomicU32::new(crate::transform::level::current()),
            meta: UnsafeCell::new(meta),
            autograd: Mutex::new(None),
        };
        Tensor(NonNull::from(Box::leak(Box::new(inner))))
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Impl {
        // SAFETY: a handle keeps what it points to alive.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(crate) fn meta(&self) -> &Meta {
        // SAFETY: nobody changes it meanwhile, see NOTE [metadata].
        unsafe { &*self.inner().meta.get() }
    }

    /// Changes storage, layout, dtype and version counter in place.
    ///
    /// # Safety
    /// No other thread uses this tensor during the call, and no borrow of its metadata is alive. See NOTE [metadata].
    pub(crate) unsafe fn set_meta(&self, change: impl FnOnce(&mut Meta)) {
        // SAFETY: the caller's.
        change(unsafe { &mut *self.inner().meta.get() });
    }

    /// The bits of [`flag`] that are set.
    #[inline]
    pub(crate) fn flags(&self) -> u16 {
        self.inner().flags.load(Ordering::Relaxed)
    }

    /// The transform inside which it was made; 0 outside of all.
    pub(crate) fn born(&self) -> u32 {
        self.inner().born.load(Ordering::Relaxed)
    }

    /// Says that a transform made it, on the levels below.
    pub(crate) fn set_born(&self, level: u32) {
        self.inner().born.store(level, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has(&self, bits: u16) -> bool {
        self.flags() & bits != 0
    }

    pub(crate) fn set_flag(&self, bits: u16, on: bool) {
        if on {
            self.inner().flags.fetch_or(bits, Ordering::Relaxed);
        } else {
            self.inner().flags.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    pub(crate) fn autograd(&self) -> MutexGuard<'_, Option<Box<AutogradMeta>>> {
        // A panic while the lock was held leaves plain data, whole in any case.
        self.inner().autograd.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether the two handles are on the same tensor.
    #[inline]
    pub fn is(&self, other: &Tensor) -> bool {
        self.0 == other.0
    }

    /// A number that tells tensors apart while they live.
    #[inline]
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// How many handles there are, the front end's included.
    pub fn handles(&self) -> usize {
        self.inner().refs.load(Ordering::Acquire)
    }

    /// Another tensor over the same storage, with the same version counter and no history.
    pub(crate) fn alias_with(&self, layout: Layout, dtype: DType) -> Tensor {
        self.alias_lazy(layout, dtype, self.meta().lazy)
    }

    /// [`Tensor::alias_with`] with other bits of [`lazy`].
    pub(crate) fn alias_lazy(&self, layout: Layout, dtype: DType, lazy: u8) -> Tensor {
        let meta = self.meta();
        Tensor::from_meta(Meta { storage: meta.storage.clone(), layout, dtype, lazy, version: meta.version.clone(), wrapped: None })
    }

    /// The bits of [`lazy`].
    #[inline]
    pub(crate) fn lazy(&self) -> u8 {
        self.meta().lazy
    }

    /// Whether it is a conjugated view: the memory holds the conjugates of its values.
    pub fn is_conj(&self) -> bool {
        self.lazy() & lazy::CONJ != 0
    }

    /// Whether it is a negated view: the memory holds the negatives of its values.
    pub fn is_neg(&self) -> bool {
        self.lazy() & lazy::NEG != 0
    }

    /// The same values as they stand in memory: a copy of conjugated and negated views, this tensor otherwise.
    pub fn resolved(&self) -> Result<Tensor> {
        if self.lazy() == 0 { Ok(self.clone()) } else { self.copy() }
    }

    /// The same values without history: shares memory and version counter.
    pub fn detach(&self) -> Result<Tensor> {
        Ok(self.alias())
    }

    /// [`Tensor::detach`], which cannot fail.
    pub fn alias(&self) -> Tensor {
        let meta = self.meta();
        let (storage, layout) = (meta.storage.clone(), meta.layout.clone());
        let (version, wrapped) = (meta.version.clone(), meta.wrapped.clone());
        Tensor::from_meta(Meta { storage, layout, dtype: meta.dtype, lazy: meta.lazy, version, wrapped })
    }

    /// How often the memory was written in place: grows with each write through this tensor or any view of it.
    pub fn version(&self) -> u32 {
        self.version_counter().load(Ordering::Acquire)
    }

    pub(crate) fn version_counter(&self) -> &AtomicU32 {
        let meta = self.meta();
        match &meta.version {
            Some(own) => own,
            None => meta.storage.version(),
        }
    }

    /// Notes that the memory was written.
    pub fn bump_version(&self) {
        self.version_counter().fetch_add(1, Ordering::AcqRel);
    }

    /// The same memory with a version counter of its own and no history: writes to it are not seen by autograd.
    pub fn data(&self) -> Tensor {
        let meta = self.meta();
        let version = Some(Arc::new(AtomicU32::new(0)));
        Tensor::from_meta(Meta {
            storage: meta.storage.clone(),
            layout: meta.layout.clone(),
            dtype: meta.dtype,
            lazy: meta.lazy,
            version,
            wrapped: meta.wrapped.clone(),
        })
    }

    /// Device.
    #[inline]
    pub fn device(&self) -> Device {
        self.meta().storage.device()
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.meta().dtype
    }

    /// Sizes, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.meta().layout
    }

    /// Sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout().sizes()
    }

    /// Steps of the dimensions, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout().strides()
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.layout().ndim()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout().numel()
    }

    /// The memory.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.meta().storage
    }

    /// Whether the two look at the same memory.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        self.storage().same(other.storage())
    }

    /// Whether the elements lie one after the other in memory, last dimension fastest.
    pub fn is_contiguous(&self) -> bool {
        self.layout().is_contiguous()
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({} {:?} on {})", self.dtype(), self.shape(), self.device())
    }
}

impl Clone for Tensor {
    #[inline]
    fn clone(&self) -> Tensor {
        let inner = self.inner();
        let before = inner.refs.fetch_add(1, Ordering::AcqRel);
        if before == 1 && !inner.slot.load(Ordering::Acquire).is_null() {
            front::second_owner(self);
        }
        Tensor(self.0)
    }
}

impl Drop for Tensor {
    #[inline]
    fn drop(&mut self) {
        let inner = self.inner();
        if !inner.slot.load(Ordering::Acquire).is_null() {
            return front::drop_shown(self);
        }
        if inner.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: this was the last handle, and the box came from `from_meta`.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}
