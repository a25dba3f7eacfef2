//! Raw views: other layouts over the same storage, without history. The operations in `ops::view` add that.

use super::{Meta, Storage, Tensor};
use flambeau_base::{DType, Error, Layout, Result, show};

impl Tensor {
    /// Checks that every element of a layout lies inside a storage.
    pub(crate) fn check_bounds(op: &str, storage: &Storage, layout: &Layout, dtype: DType) -> Result<()> {
        let needed = layout.end().checked_mul(dtype.size());
        if layout.numel() > 0 && needed.is_none_or(|n| n > storage.nbytes()) {
            return Err(Error::runtime(format!(
                "{op}: sizes {}, strides {:?}, storage offset {} and itemsize {} require {} bytes: setStorage: out of bounds for storage of size {} bytes",
                show(layout.sizes()),
                layout.strides(),
                layout.offset(),
                dtype.size(),
                needed.map_or("too many".to_string(), |n| n.to_string()),
                storage.nbytes()
            )));
        }
        Ok(())
    }

    /// A tensor over a storage at hand. `RuntimeError` where the layout leaves the storage.
    pub fn from_storage(storage: Storage, layout: Layout, dtype: DType) -> Result<Tensor> {
        Tensor::check_bounds("from_storage", &storage, &layout, dtype)?;
        Ok(Tensor::from_parts(storage, layout, dtype))
    }

    /// Points this tensor at other memory (`set_`, `x.data = y`).
    ///
    /// # Safety
    /// No other thread uses this tensor during the call: see NOTE [metadata] in `tensor`.
    pub unsafe fn replace(&self, storage: Storage, layout: Layout, dtype: DType) -> Result<()> {
        Tensor::check_bounds("set_", &storage, &layout, dtype)?;
        let version = self.version();
        // SAFETY: the caller's.
        unsafe {
            self.set_meta(|m| {
                let own = m.version.take().unwrap_or_else(|| std::sync::Arc::new(version.into()));
                *m = Meta { storage, layout, dtype, lazy: 0, version: Some(own), wrapped: None };
            });
        }
        Ok(())
    }

    /// Gives this tensor other sizes (contiguous), growing its storage where it is too small. Values that are there stay.
    ///
    /// # Safety
    /// No other thread uses this tensor during the call: see NOTE [metadata] in `tensor`.
    pub unsafe fn resize(&self, layout: Layout) -> Result<()> {
        let layout = layout.with_offset(self.layout().offset());
        let needed = layout.end().checked_mul(self.dtype().size()).filter(|&n| n <= isize::MAX as usize);
        let needed = needed.ok_or_else(|| Error::runtime(format!("resize_: shape {} is too large", show(layout.sizes()))))?;
        if layout.numel() > 0 {
            self.storage().grow(needed)?;
        }
        // SAFETY: the caller's.
        unsafe { self.set_meta(|m| m.layout = layout) };
        Ok(())
    }

    /// Gives this tensor another layout over its storage (`t_`, `squeeze_`, `as_strided_`).
    ///
    /// # Safety
    /// No other thread uses this tensor during the call: see NOTE [metadata] in `tensor`.
    pub unsafe fn relayout(&self, layout: Layout) -> Result<()> {
        Tensor::check_bounds("as_strided_", self.storage(), &layout, self.dtype())?;
        // SAFETY: the caller's.
        unsafe { self.set_meta(|m| m.layout = layout) };
        Ok(())
    }
}
