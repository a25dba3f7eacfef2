//! Values between the host's memory and tensors.

use super::Tensor;
use flambeau_base::{Complex32, Complex64, DType, Device, Error, F8E4M3, F8E5M2, Layout, Result, Scalar, bf16, f16, show};

/// A Rust type that is an element type.
///
/// # Safety
/// `DTYPE` has the size and representation of the type, and `read` makes a value of every bit pattern:
/// a bool's byte may be any number (`x.view(torch.bool)`), and all but 0 mean true.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// The value as a number.
    fn to_scalar(self) -> Scalar;
    /// The nearest value to a number.
    fn from_scalar(s: Scalar) -> Self;
    /// Reads an element.
    ///
    /// # Safety
    /// `ptr` is an element of this dtype.
    unsafe fn read(ptr: *const Self) -> Self {
        // SAFETY: the caller's.
        unsafe { *ptr }
    }
}

macro_rules! element {
    ($($t:ty => $dtype:ident, $to:expr, $from:expr $(, $read:item)?;)*) => {$(
        // SAFETY: the dtype is defined as this type's representation.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            fn to_scalar(self) -> Scalar {
                let to: fn($t) -> Scalar = $to;
                to(self)
            }
            fn from_scalar(s: Scalar) -> $t {
                let from: fn(Scalar) -> $t = $from;
                from(s)
            }
            $($read)?
        }
    )*};
}
element! {
    bool => Bool, Scalar::Bool, Scalar::to_bool, unsafe fn read(ptr: *const bool) -> bool {
        // SAFETY: the caller's; a byte may be read as a number whatever it holds.
        unsafe { *ptr.cast::<u8>() != 0 }
    };
    u8 => U8, |x| Scalar::Int(x as i64), |s| s.to_i64() as u8;
    i8 => I8, |x| Scalar::Int(x as i64), |s| s.to_i64() as i8;
    i16 => I16, |x| Scalar::Int(x as i64), |s| s.to_i64() as i16;
    i32 => I32, |x| Scalar::Int(x as i64), |s| s.to_i64() as i32;
    i64 => I64, Scalar::Int, Scalar::to_i64;
    u16 => U16, |x| Scalar::Int(x as i64), |s| s.to_i64() as u16;
    u32 => U32, |x| Scalar::Int(x as i64), |s| s.to_i64() as u32;
    u64 => U64, |x| i64::try_from(x).map_or(Scalar::UInt(x), Scalar::Int), |s| match s { Scalar::Float(x) => x as u64, other => other.to_i64() as u64 };
    F8E4M3 => F8E4M3, |x| Scalar::Float(x.to_f32() as f64), |s| F8E4M3::from_f32(s.to_f64() as f32);
    F8E5M2 => F8E5M2, |x| Scalar::Float(x.to_f32() as f64), |s| F8E5M2::from_f32(s.to_f64() as f32);
    f16 => F16, |x| Scalar::Float(x.to_f64()), |s| f16::from_f32(s.to_f64() as f32);
    bf16 => BF16, |x| Scalar::Float(x.to_f64()), |s| bf16::from_f32(s.to_f64() as f32);
    f32 => F32, |x| Scalar::Float(x as f64), |s| s.to_f64() as f32;
    f64 => F64, Scalar::Float, Scalar::to_f64;
    Complex32 => C64, |z| Scalar::Complex(Complex64::new(z.re as f64, z.im as f64)), |s| { let z = s.to_complex(); Complex32::new(z.re as f32, z.im as f32) };
    Complex64 => C128, Scalar::Complex, Scalar::to_complex;
}

/// Runs an expression with `$t` standing for the Rust type of a dtype.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use $crate::base::*;
        match $dtype {
            DType::Bool => {
                type $t = bool;
                $body
            }
            DType::U8 => {
                type $t = u8;
                $body
            }
            DType::I8 => {
                type $t = i8;
                $body
            }
            DType::I16 => {
                type $t = i16;
                $body
            }
            DType::I32 => {
                type $t = i32;
                $body
            }
            DType::I64 => {
                type $t = i64;
                $body
            }
            DType::U16 => {
                type $t = u16;
                $body
            }
            DType::U32 => {
                type $t = u32;
                $body
            }
            DType::U64 => {
                type $t = u64;
                $body
            }
            DType::F8E4M3 => {
                type $t = F8E4M3;
                $body
            }
            DType::F8E5M2 => {
                type $t = F8E5M2;
                $body
            }
            DType::F16 => {
                type $t = f16;
                $body
            }
            DType::BF16 => {
                type $t = bf16;
                $body
            }
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::C64 => {
                type $t = Complex32;
                $body
            }
            DType::C128 => {
                type $t = Complex64;
                $body
            }
        }
    }};
}

impl Tensor {
    /// A tensor that holds these values.
    ///
    /// `RuntimeError` unless there are as many as the shape has elements.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<Tensor> {
        let layout = Layout::contiguous(shape)?;
        if layout.numel() != values.len() {
            return Err(Error::runtime(format!("from_slice: {} values do not fill shape {}", values.len(), show(shape))));
        }
        let out = Tensor::empty_layout(layout, T::DTYPE, Device::CPU)?;
        // SAFETY: the fresh storage holds `numel` elements of this size, and nothing else points to it.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), out.storage().ptr().cast::<T>(), values.len()) };
        Ok(out)
    }

    /// Address of the first element, to read.
    ///
    /// `NotImplementedError` on the meta device, which has no values.
    pub fn data_ptr(&self) -> Result<*mut u8> {
        if self.device().is_meta() {
            return Err(Error::not_implemented("Cannot copy out of meta tensor; no data!"));
        }
        if self.has(super::flag::WRAPPED) && self.is_batched() {
            return Err(crate::transform::level::refuse_read());
        }
        // An offset inside the storage, or at its end when there are no elements.
        Ok(self.storage().ptr().wrapping_add(self.layout().offset() * self.dtype().size()))
    }

    /// Address of the first element, to write. Read-only memory is copied first.
    pub fn data_ptr_mut(&self) -> Result<*mut u8> {
        if self.device().is_meta() || (self.has(super::flag::WRAPPED) && self.is_batched()) {
            return self.data_ptr();
        }
        Ok(self.storage().writable_ptr()?.wrapping_add(self.layout().offset() * self.dtype().size()))
    }

    /// The values in row-major order. `TypeError` unless the dtype is that of `T`.
    ///
    /// ```
    /// # use flambeau_engine::Tensor;
    /// # fn example() -> flambeau_engine::base::Result<()> {
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::type_error(format!("to_vec: the tensor is {}, asked for {}", self.dtype(), T::DTYPE)));
        }
        if self.lazy() != 0 {
            return self.alias().resolved()?.to_vec();
        }
        let base = self.data_ptr()?.cast::<T>();
        let layout = self.layout();
        if layout.numel() == 0 {
            return Ok(Vec::new());
        }
        let mut out = Vec::with_capacity(layout.numel());
        // SAFETY: the layout was checked to stay inside the storage.
        for_each_offset(layout, |at| out.push(unsafe { T::read(base.offset(at)) }));
        Ok(out)
    }

    /// The values in row-major order as numbers.
    pub fn to_scalars(&self) -> Result<Vec<Scalar>> {
        with_element!(self.dtype(), T => Ok(self.to_vec::<T>()?.into_iter().map(Element::to_scalar).collect()))
    }

    /// The one value. `RuntimeError` unless there is just one.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Error::runtime(format!(
                "item: a Tensor with {} elements cannot be converted to Scalar (shape {})",
                self.numel(),
                show(self.shape())
            )));
        }
        if self.lazy() != 0 {
            return self.alias().resolved()?.item();
        }
        let ptr = self.data_ptr()?;
        // SAFETY: there is one element, it lies inside the storage and is aligned for its type.
        with_element!(self.dtype(), T => Ok(unsafe { T::read(ptr.cast::<T>()) }.to_scalar()))
    }
}

/// Calls `f` with the distance of each element from the first, in row-major order.
pub(crate) fn for_each_offset(layout: &Layout, mut f: impl FnMut(isize)) {
    let (sizes, strides) = (layout.sizes(), layout.strides());
    let mut index = vec![0usize; sizes.len()];
    let mut at = 0isize;
    for _ in 0..layout.numel() {
        f(at);
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < sizes[d] {
                break;
            }
            at -= strides[d] * sizes[d] as isize;
            index[d] = 0;
        }
    }
}
