//! New tensors.

use super::{Storage, Tensor};
use flambeau_base::{DType, Device, Error, Layout, Result, show};

impl Tensor {
    /// A tensor of a dense layout with values not set.
    pub(crate) fn empty_layout(layout: Layout, dtype: DType, device: Device) -> Result<Tensor> {
        let nbytes = bytes_for(&layout, dtype)?;
        Ok(Tensor::from_parts(Storage::allocate(device, nbytes, false)?, layout, dtype))
    }

    /// A contiguous tensor whose values are not set.
    pub fn empty(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::empty_layout(Layout::contiguous(shape)?, dtype, device)
    }

    /// A tensor of these sizes and strides whose values are not set.
    pub fn empty_strided(shape: &[usize], strides: &[isize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::empty_layout(Layout::strided("empty_strided", shape, strides, 0)?, dtype, device)
    }

    /// A contiguous tensor of zeros.
    pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::zeros_layout(Layout::contiguous(shape)?, dtype, device)
    }

    pub(crate) fn zeros_layout(layout: Layout, dtype: DType, device: Device) -> Result<Tensor> {
        let nbytes = bytes_for(&layout, dtype)?;
        Ok(Tensor::from_parts(Storage::allocate(device, nbytes, true)?, layout, dtype))
    }
}

fn bytes_for(layout: &Layout, dtype: DType) -> Result<usize> {
    let elements = if layout.numel() == 0 { 0 } else { layout.end() };
    elements
        .checked_mul(dtype.size())
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| Error::runtime(format!("empty: Storage size calculation overflowed for shape {} of {dtype}", show(layout.sizes()))))
}
