//! Type promotion over the operands of a call.

use crate::{DType, Result, Scalar};
use std::sync::atomic::{AtomicU8, Ordering};

static DEFAULT: AtomicU8 = AtomicU8::new(DType::F32 as u8);

/// The dtype of floating point results that no operand decides; `float32` unless set otherwise.
pub fn default_dtype() -> DType {
    let code = DEFAULT.load(Ordering::Relaxed);
    DType::ALL[code as usize]
}

/// Sets [`default_dtype`]. `TypeError` unless it is a floating point type.
pub fn set_default_dtype(dtype: DType) -> Result<()> {
    if !matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
        return Err(crate::Error::type_error(format!(
            "set_default_dtype: only floating-point types are supported as the default type, got {dtype}"
        )));
    }
    DEFAULT.store(dtype as u8, Ordering::Relaxed);
    Ok(())
}

/// Gathers operands and tells the dtype in which they meet.
///
/// Tensors with dimensions decide; 0-dimensional tensors raise the result only to a higher category,
/// and numbers only where neither has it (the rule of PyTorch's `result_type`).
///
/// ```
/// use flambeau_base::{DType, Promotion, Scalar};
/// let mut p = Promotion::default();
/// p.tensor(DType::I32, 2).unwrap();
/// p.scalar(Scalar::Float(0.5));
/// assert_eq!(p.result().unwrap(), DType::F32);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Promotion {
    dimensioned: Option<DType>,
    zero_dim: Option<DType>,
    number: Option<DType>,
}

impl Promotion {
    /// Adds a tensor of a dtype with so many dimensions.
    pub fn tensor(&mut self, dtype: DType, ndim: usize) -> Result<()> {
        let slot = if ndim > 0 { &mut self.dimensioned } else { &mut self.zero_dim };
        *slot = Some(match *slot {
            Some(d) => d.promote(dtype)?,
            None => dtype,
        });
        Ok(())
    }

    /// Adds a number.
    pub fn scalar(&mut self, scalar: Scalar) {
        let dtype = scalar.dtype();
        self.number = Some(match self.number {
            // Numbers are bool, int64, default float and its complex type: these always promote.
            Some(d) => d.promote(dtype).unwrap_or(dtype),
            None => dtype,
        });
    }

    /// The common dtype; the default dtype when there was no operand.
    pub fn result(self) -> Result<DType> {
        let low = combine(self.zero_dim, self.number)?;
        Ok(combine(self.dimensioned, low)?.unwrap_or_else(default_dtype))
    }
}

/// The higher-ranked dtype, raised where the lower-ranked one is of a higher category.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Result<Option<DType>> {
    let (Some(h), Some(l)) = (higher, lower) else {
        return Ok(higher.or(lower));
    };
    if l.category() <= h.category() {
        return Ok(Some(h));
    }
    if h.is_float() && l.is_complex() {
        return Ok(Some(h.to_complex()));
    }
    h.promote(l).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(tensors: &[(DType, usize)], scalars: &[Scalar]) -> DType {
        let mut p = Promotion::default();
        for &(d, n) in tensors {
            p.tensor(d, n).unwrap();
        }
        for &s in scalars {
            p.scalar(s);
        }
        p.result().unwrap()
    }

    #[test]
    fn ranks_and_categories() {
        use DType::*;
        assert_eq!(meet(&[(F32, 1), (F64, 0)], &[]), F32);
        assert_eq!(meet(&[(I64, 1), (F64, 0)], &[]), F64);
        assert_eq!(meet(&[(U8, 1)], &[Scalar::Int(300)]), U8);
        assert_eq!(meet(&[(Bool, 1)], &[Scalar::Int(2)]), I64);
        assert_eq!(meet(&[(F16, 1)], &[Scalar::Float(2.0)]), F16);
        assert_eq!(meet(&[(I32, 0)], &[Scalar::Int(2)]), I32);
        assert_eq!(meet(&[], &[Scalar::Int(2)]), I64);
        assert_eq!(meet(&[(U8, 1), (I8, 1)], &[]), I16);
        assert_eq!(meet(&[(F16, 1), (BF16, 1)], &[]), F32);
        assert!(U16.promote(I32).is_err());
    }
}
