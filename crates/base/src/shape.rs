//! Sizes of dimensions and how two of them fit together.

use crate::{Error, Result};
use smallvec::SmallVec;

/// Sizes of the dimensions, held inline up to six.
pub type Dims = SmallVec<[usize; 6]>;
/// Steps of the dimensions in elements, held inline up to six.
pub type Strides = SmallVec<[isize; 6]>;

/// The number of elements; an error where it does not fit the address space.
pub fn numel(sizes: &[usize]) -> Result<usize> {
    if sizes.contains(&0) {
        return Ok(0);
    }
    let mut n = 1usize;
    for &size in sizes {
        n = n
            .checked_mul(size)
            .filter(|&n| n <= isize::MAX as usize)
            .ok_or_else(|| Error::runtime(format!("a tensor of shape {} has more elements than an address can count", show(sizes))))?;
    }
    Ok(n)
}

/// A shape as text: `[2, 3]`.
pub fn show(sizes: &[usize]) -> String {
    format!("{sizes:?}")
}

/// A dimension counted from the end, when negative, as one counted from the start.
///
/// A scalar counts as having one dimension. `IndexError` where the dimension is not there.
pub fn wrap_dim(op: &str, dim: i64, ndim: usize) -> Result<usize> {
    let n = ndim.max(1) as i64;
    if dim < -n || dim >= n {
        return Err(Error::index(format!(
            "{op}: Dimension out of range (expected to be in range of [{}, {}], but got {dim}) for a tensor of {ndim} dimensions",
            -n,
            n - 1
        )));
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

/// The shape that two shapes broadcast to.
///
/// ```
/// use flambeau_base::broadcast;
/// assert_eq!(broadcast("add", &[4, 1], &[3]).unwrap()[..], [4, 3]);
/// let error = broadcast("add", &[4, 2], &[3]).unwrap_err();
/// assert!(error.to_string().contains("must match the size of tensor b (3)"));
/// ```
pub fn broadcast(op: &str, a: &[usize], b: &[usize]) -> Result<Dims> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = Dims::from_slice(long);
    let lead = long.len() - short.len();
    for (i, &y) in short.iter().enumerate() {
        let x = out[lead + i];
        if x != y {
            out[lead + i] = match (x, y) {
                (1, n) | (n, 1) => n,
                _ => return Err(mismatch(op, a, b, lead + i)),
            };
        }
    }
    Ok(out)
}

/// The shape that all shapes broadcast to.
pub fn broadcast_all<'a>(op: &str, shapes: impl IntoIterator<Item = &'a [usize]>) -> Result<Dims> {
    let mut shapes = shapes.into_iter();
    let mut out = Dims::from_slice(shapes.next().unwrap_or(&[]));
    for shape in shapes {
        if out[..] != *shape {
            out = broadcast(op, &out, shape)?;
        }
    }
    Ok(out)
}

#[cold]
fn mismatch(op: &str, a: &[usize], b: &[usize], dim: usize) -> Error {
    let n = a.len().max(b.len());
    let size = |s: &[usize]| s[dim + s.len() - n];
    Error::runtime(format!(
        "{op}: The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {dim}: shapes {} and {} do not broadcast",
        size(a),
        size(b),
        show(a),
        show(b)
    ))
}
