//! Where the elements of a tensor lie in its storage.

use crate::shape::{Dims, Strides, numel, show, wrap_dim};
use crate::{Error, Result};
use smallvec::SmallVec;

/// How a new tensor orders its dimensions in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MemoryFormat {
    /// The last dimension runs fastest.
    #[default]
    Contiguous,
    /// The order of the tensor at hand is kept where it is dense.
    Preserve,
    /// Channels run fastest: NHWC for 4 dimensions.
    ChannelsLast,
    /// Channels run fastest: NDHWC for 5 dimensions.
    ChannelsLast3d,
}

/// Sizes, strides (in elements, never negative) and the offset of the first element.
///
/// ```
/// use flambeau_base::Layout;
/// let x = Layout::contiguous(&[2, 3]).unwrap();
/// let t = x.transpose(0, 1);
/// assert_eq!(t.strides()[..], [1, 3]);
/// assert!(!t.is_contiguous());
/// ```
#[derive(PartialEq, Eq, Debug, Hash)]
pub struct Layout {
    sizes: Dims,
    strides: Strides,
    offset: usize,
    numel: usize,
}

impl Clone for Layout {
    /// By whole slices: `SmallVec`'s own clone goes element by element, and every operation clones layouts.
    #[inline]
    fn clone(&self) -> Layout {
        Layout { sizes: Dims::from_slice(&self.sizes), strides: Strides::from_slice(&self.strides), offset: self.offset, numel: self.numel }
    }
}

/// A stride that is not known yet.
const FOLLOWS: isize = isize::MIN;

impl Layout {
    /// A dense layout with the last dimension fastest.
    pub fn contiguous(sizes: &[usize]) -> Result<Layout> {
        let n = numel(sizes)?;
        Ok(Layout { sizes: Dims::from_slice(sizes), strides: contiguous_strides(sizes), offset: 0, numel: n })
    }

    /// A layout from its parts. `RuntimeError` where a stride is negative or the reach of the strides overflows.
    pub fn strided(op: &str, sizes: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        if sizes.len() != strides.len() {
            return Err(Error::runtime(format!(
                "{op}: mismatch in length of strides and shape: {} sizes {} and {} strides {strides:?}",
                sizes.len(),
                show(sizes),
                strides.len()
            )));
        }
        if let Some(s) = strides.iter().find(|&&s| s < 0) {
            return Err(Error::runtime(format!("{op}: Negative strides are not supported at the moment, got strides: {strides:?} ({s})")));
        }
        let layout = Layout { sizes: Dims::from_slice(sizes), strides: Strides::from_slice(strides), offset, numel: numel(sizes)? };
        if layout.checked_end().is_none() {
            return Err(Error::runtime(format!(
                "{op}: sizes {}, strides {strides:?} and offset {offset} reach past the address space",
                show(sizes)
            )));
        }
        Ok(layout)
    }

    /// A dense layout of these sizes in a memory format, or in the order of dimensions of `like`.
    pub fn in_format(op: &str, sizes: &[usize], format: MemoryFormat, like: Option<&Layout>) -> Result<Layout> {
        let last = |order: &[usize]| -> Result<Layout> { Layout::in_order(sizes, order) };
        match format {
            MemoryFormat::Contiguous => Layout::contiguous(sizes),
            MemoryFormat::ChannelsLast if sizes.len() == 4 => last(&[0, 2, 3, 1]),
            MemoryFormat::ChannelsLast3d if sizes.len() == 5 => last(&[0, 2, 3, 4, 1]),
            MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => Err(Error::runtime(format!(
                "{op}: required rank {} tensor to use {format:?} format, got shape {}",
                if format == MemoryFormat::ChannelsLast { 4 } else { 5 },
                show(sizes)
            ))),
            MemoryFormat::Preserve => match like {
                Some(l) if l.sizes[..] == *sizes && l.is_non_overlapping_and_dense() => Ok(Layout { offset: 0, ..l.clone() }),
                Some(l) if l.sizes[..] == *sizes => Layout::in_order(sizes, &l.stride_order()),
                _ => Layout::contiguous(sizes),
            },
        }
    }

    /// A dense layout whose dimensions, from slowest to fastest, are `order`.
    pub fn in_order(sizes: &[usize], order: &[usize]) -> Result<Layout> {
        let n = numel(sizes)?;
        let mut strides: Strides = SmallVec::from_elem(0, sizes.len());
        let mut step = 1;
        for &d in order.iter().rev() {
            strides[d] = step;
            step *= sizes[d].max(1) as isize;
        }
        Ok(Layout { sizes: Dims::from_slice(sizes), strides, offset: 0, numel: n })
    }

    /// Sizes of the dimensions.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Steps of the dimensions, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Index in the storage of the first element.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// The same with another offset.
    pub fn with_offset(mut self, offset: usize) -> Layout {
        self.offset = offset;
        self
    }

    /// Whether both have the same sizes and strides.
    #[inline]
    pub fn is_alike(&self, other: &Layout) -> bool {
        // Compared one by one: a call of `memcmp` costs more than the few dimensions that there are.
        self.ndim() == other.ndim()
            && self.sizes.iter().zip(&other.sizes).all(|(a, b)| a == b)
            && self.strides.iter().zip(&other.strides).all(|(a, b)| a == b)
    }

    /// Whether the elements lie one after the other, last dimension fastest.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&n, &s) in self.sizes.iter().zip(&self.strides).rev() {
            if n != 1 {
                if s != step && self.numel != 0 {
                    return false;
                }
                step *= n as isize;
            }
        }
        true
    }

    /// Whether the elements lie in a memory format.
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Contiguous | MemoryFormat::Preserve => self.is_contiguous(),
            MemoryFormat::ChannelsLast => self.ndim() == 4 && self.dense_in(&[0, 2, 3, 1]),
            MemoryFormat::ChannelsLast3d => self.ndim() == 5 && self.dense_in(&[0, 2, 3, 4, 1]),
        }
    }

    /// The memory format that the strides suggest, gaps or not: channels last where the channels are the fastest
    /// dimension of four or five, else contiguous. Results of layers take it over.
    pub fn suggested_format(&self) -> MemoryFormat {
        let (format, order): (_, &[usize]) = match self.ndim() {
            4 => (MemoryFormat::ChannelsLast, &[1, 3, 2, 0]),
            5 => (MemoryFormat::ChannelsLast3d, &[1, 4, 3, 2, 0]),
            _ => return MemoryFormat::Contiguous,
        };
        let mut least = 0;
        if self.strides[1] == 0 {
            return MemoryFormat::Contiguous;
        }
        for &d in order {
            // Where all steps are alike (one channel, one row) the order cannot be told, and counts as contiguous.
            if self.sizes[d] == 0 || self.strides[d] < least || (d == 0 && least == self.strides[1]) {
                return MemoryFormat::Contiguous;
            }
            least = self.strides[d] * self.sizes[d].max(1) as isize;
        }
        format
    }

    fn dense_in(&self, order: &[usize]) -> bool {
        let mut step = 1isize;
        for &d in order.iter().rev() {
            if self.sizes[d] != 1 {
                if self.strides[d] != step {
                    return false;
                }
                step *= self.sizes[d] as isize;
            }
        }
        true
    }

    /// Whether every element has an address of its own and there are no gaps.
    pub fn is_non_overlapping_and_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        let mut dims: SmallVec<[(isize, usize); 6]> =
            self.sizes.iter().zip(&self.strides).filter(|(n, _)| **n != 1).map(|(&n, &s)| (s, n)).collect();
        dims.sort_unstable();
        let mut step = 1isize;
        dims.into_iter().all(|(s, n)| {
            let fits = s == step;
            step *= n as isize;
            fits
        })
    }

    /// Whether two indices may have the same address. Decided for the layouts that views make; others count as overlapping.
    pub fn has_overlap(&self) -> bool {
        if self.numel <= 1 {
            return false;
        }
        let mut dims: SmallVec<[(isize, usize); 6]> =
            self.sizes.iter().zip(&self.strides).filter(|(n, _)| **n != 1).map(|(&n, &s)| (s, n)).collect();
        dims.sort_unstable();
        let mut reach = 0isize;
        for (s, n) in dims {
            if s <= reach {
                return true;
            }
            reach += s * (n as isize - 1);
        }
        false
    }

    /// Dimensions from the slowest to the fastest.
    ///
    /// Ties and broadcast dimensions keep their place, as in PyTorch's iterator.
    pub fn stride_order(&self) -> SmallVec<[usize; 6]> {
        order_of(&self.sizes, &[&self.strides])
    }

    /// One past the largest storage index that an element has; `offset` when there are none.
    pub fn end(&self) -> usize {
        self.checked_end().unwrap_or(usize::MAX)
    }

    fn checked_end(&self) -> Option<usize> {
        if self.numel == 0 {
            return Some(self.offset);
        }
        let mut last = self.offset;
        for (&n, &s) in self.sizes.iter().zip(&self.strides) {
            last = last.checked_add((n - 1).checked_mul(s as usize)?)?;
        }
        last.checked_add(1).filter(|&end| end <= isize::MAX as usize)
    }

    // ---- views

    /// Two dimensions exchanged.
    pub fn transpose(&self, a: usize, b: usize) -> Layout {
        let mut out = self.clone();
        if self.ndim() > 0 {
            out.sizes.swap(a, b);
            out.strides.swap(a, b);
        }
        out
    }

    /// Dimensions in another order.
    pub fn permute(&self, order: &[usize]) -> Layout {
        Layout { sizes: order.iter().map(|&d| self.sizes[d]).collect(), strides: order.iter().map(|&d| self.strides[d]).collect(), ..*self }
    }

    /// Dimension `dim` cut to `length` elements from `start` on, `step` apart. The caller has checked the range.
    pub fn slice(&self, dim: usize, start: usize, length: usize, step: usize) -> Layout {
        let mut out = self.clone();
        out.offset += start * self.strides[dim] as usize;
        out.strides[dim] = self.strides[dim].saturating_mul(step as isize);
        out.sizes[dim] = length;
        out.recount();
        out
    }

    /// Dimension `dim` dropped at one index. The caller has checked it.
    pub fn select(&self, dim: usize, index: usize) -> Layout {
        let mut out = self.clone();
        out.offset += index * self.strides[dim] as usize;
        out.sizes.remove(dim);
        out.strides.remove(dim);
        out.recount();
        out
    }

    /// A dimension of size 1 put in.
    pub fn unsqueeze(&self, dim: usize) -> Layout {
        let mut out = self.clone();
        let stride = if dim < self.ndim() { self.sizes[dim] as isize * self.strides[dim] } else { 1 };
        out.sizes.insert(dim, 1);
        out.strides.insert(dim, stride);
        out
    }

    /// Dimensions of size 1 taken out, where `drop` says so.
    pub fn squeeze(&self, drop: impl Fn(usize) -> bool) -> Layout {
        let kept = || (0..self.ndim()).filter(|&d| self.sizes[d] != 1 || !drop(d));
        Layout { sizes: kept().map(|d| self.sizes[d]).collect(), strides: kept().map(|d| self.strides[d]).collect(), ..*self }
    }

    /// Dimensions of size 1 (and new leading ones) repeated by a stride of 0. A size of -1 keeps what is there.
    pub fn expand(&self, op: &str, sizes: &[i64]) -> Result<Layout> {
        let wrong = |why: String| Error::runtime(format!("{op}: {why} (tensor of shape {}, expanded size {sizes:?})", show(&self.sizes)));
        if sizes.len() < self.ndim() {
            return Err(wrong(format!(
                "the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
                sizes.len(),
                self.ndim()
            )));
        }
        let lead = sizes.len() - self.ndim();
        let (mut new, mut strides) = (Dims::new(), Strides::new());
        for (d, &want) in sizes.iter().enumerate() {
            let have = (d >= lead).then(|| (self.sizes[d - lead], self.strides[d - lead]));
            let (n, s) = match (have, want) {
                // Repeated by no stride; where it is one, it steps over all that is behind it.
                (None, 1) if self.ndim() > 0 => (1, FOLLOWS),
                (None, w) if w >= 0 => (w as usize, 0),
                (None, _) => {
                    return Err(wrong(format!("the expanded size ({want}) isn't allowed in a leading, non-existing dimension {d}")));
                }
                (Some((n, s)), -1) => (n, s),
                (Some((n, s)), w) if w == n as i64 => (n, s),
                (Some((1, _)), w) if w >= 0 => (w as usize, 0),
                (Some((n, _)), w) => {
                    return Err(wrong(format!(
                        "The expanded size of the tensor ({w}) must match the existing size ({n}) at non-singleton dimension {d}"
                    )));
                }
            };
            new.push(n);
            strides.push(s);
        }
        for d in (0..strides.len()).rev().filter(|&d| strides[d] == FOLLOWS).collect::<SmallVec<[usize; 6]>>() {
            strides[d] = strides.get(d + 1).map_or(1, |s| s * new[d + 1] as isize);
        }
        let n = numel(&new)?;
        Ok(Layout { sizes: new, strides, offset: self.offset, numel: n })
    }

    /// [`Layout::expand`] to a shape that broadcasting has already found to fit.
    pub fn broadcast_to(&self, sizes: &[usize]) -> Layout {
        if self.sizes[..] == *sizes {
            return self.clone();
        }
        let lead = sizes.len() - self.ndim();
        let strides = (0..sizes.len())
            .map(|d| if d < lead || (self.sizes[d - lead] == 1 && sizes[d] != 1) { 0 } else { self.strides[d - lead] })
            .collect();
        Layout { sizes: Dims::from_slice(sizes), strides, offset: self.offset, numel: sizes.iter().product() }
    }

    /// The same elements under other sizes without moving them, where the strides allow it.
    pub fn view(&self, sizes: &[usize]) -> Option<Layout> {
        if self.is_contiguous() {
            return Some(Layout { strides: contiguous_strides(sizes), sizes: Dims::from_slice(sizes), ..*self });
        }
        let mut strides: Strides = SmallVec::from_elem(0, sizes.len());
        if self.numel == 0 {
            return (self.sizes[..] == *sizes).then(|| self.clone());
        }
        // Old dimensions are taken in runs that can be walked with one stride; each run must be
        // covered by whole new dimensions.
        let mut new = sizes.len();
        let mut run_size = 1;
        for d in (0..self.ndim()).rev() {
            run_size *= self.sizes[d];
            let base = |from: usize| self.strides[from];
            let ends = d == 0 || (self.sizes[d - 1] != 1 && self.strides[d - 1] != run_stride(self, d) * run_length(self, d) as isize);
            if ends {
                let fast = run_fast(self, d);
                let mut covered = 1;
                while new > 0 && (covered < run_size || sizes[new - 1] == 1) {
                    new -= 1;
                    strides[new] = covered as isize * base(fast);
                    covered *= sizes[new];
                }
                if covered != run_size {
                    return None;
                }
                run_size = 1;
            }
        }
        (new == 0).then(|| Layout { sizes: Dims::from_slice(sizes), strides, ..*self })
    }

    fn recount(&mut self) {
        self.numel = self.sizes.iter().product();
    }

    /// Checks dimensions of a permutation: each there once.
    pub fn check_permutation(&self, op: &str, dims: &[i64]) -> Result<SmallVec<[usize; 6]>> {
        if dims.len() != self.ndim() {
            return Err(Error::runtime(format!(
                "{op}: number of dimensions in the tensor input does not match the length of the desired ordering of dimensions: {} and {dims:?}",
                self.ndim()
            )));
        }
        let mut order = SmallVec::<[usize; 6]>::new();
        for &d in dims {
            let d = wrap_dim(op, d, self.ndim())?;
            if order.contains(&d) {
                return Err(Error::runtime(format!("{op}: duplicate dims are not allowed, got {dims:?}")));
            }
            order.push(d);
        }
        Ok(order)
    }
}

/// Fastest dimension of the run that contains `d` as its slowest so far.
fn run_fast(l: &Layout, d: usize) -> usize {
    let mut fast = d;
    let mut at = d;
    loop {
        let next = (at + 1..l.ndim()).find(|&e| l.sizes[e] != 1);
        match next {
            Some(e) if l.sizes[at] == 1 || l.strides[at] == l.strides[e] * l.sizes[e] as isize => {
                fast = e;
                at = e;
            }
            _ => return fast,
        }
    }
}

fn run_stride(l: &Layout, d: usize) -> isize {
    l.strides[run_fast(l, d)]
}

fn run_length(l: &Layout, d: usize) -> usize {
    let fast = run_fast(l, d);
    (d..=fast).map(|e| l.sizes[e]).product()
}

fn contiguous_strides(sizes: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(1, sizes.len());
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1) as isize;
    }
    strides
}

/// Dimensions from the slowest to the fastest, judged by several operands in turn.
///
/// A dimension moves inwards when the first operand that can tell (both strides differ from 0) steps less along it.
pub(crate) fn order_of(sizes: &[usize], operands: &[&Strides]) -> SmallVec<[usize; 6]> {
    let mut order: SmallVec<[usize; 6]> = (0..sizes.len()).collect();
    // Insertion sort, fastest last: stable, and broadcast dimensions do not block it.
    for i in (0..sizes.len()).rev() {
        let mut at = i;
        for j in i + 1..sizes.len() {
            match compare(order[at], order[j], sizes, operands) {
                std::cmp::Ordering::Less => {
                    order.swap(at, j);
                    at = j;
                }
                std::cmp::Ordering::Greater => break,
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    order
}

/// `Less`: the first dimension is faster than the second, though it stands before it.
fn compare(a: usize, b: usize, sizes: &[usize], operands: &[&Strides]) -> std::cmp::Ordering {
    use std::cmp::Ordering::*;
    for strides in operands {
        let (x, y) = (strides[a], strides[b]);
        if x == 0 || y == 0 {
            continue;
        }
        match x.cmp(&y) {
            Equal => {
                // The smaller one is the faster one.
                if sizes[b] > sizes[a] {
                    return Less;
                }
            }
            other => return other,
        }
    }
    Equal
}

///
/// Alike dense operands hand on their layout; otherwise the dimensions keep the operands' order.
impl Layout {
    /// What contiguous operands, all alike, hand on.
    #[inline]
    pub fn of_alike<'a>(mut operands: impl Iterator<Item = &'a Layout>) -> Option<Layout> {
        let first = operands.next()?;
        (first.is_contiguous() && operands.all(|l| l.is_alike(first))).then(|| first.clone().with_offset(0))
    }

    /// See [`Layout`]: the layout of a result computed element by element from these (broadcast) operands.
    pub fn of_result(sizes: &[usize], operands: &[&Layout]) -> Result<Layout> {
        let same = |l: &&Layout| l.sizes[..] == *sizes;
        if let Some(layout) = Layout::of_alike(operands.iter().copied()).filter(|l| l.sizes[..] == *sizes) {
            return Ok(layout);
        }
        if operands.iter().all(|l| same(l) && l.is_contiguous()) || sizes.len() <= 1 {
            return Layout::contiguous(sizes);
        }
        if let Some(first) = operands.first()
            && operands.iter().all(|l| same(l) && l.strides == first.strides)
            && first.is_non_overlapping_and_dense()
        {
            return Ok(Layout { offset: 0, ..(*first).clone() });
        }
        let strides: SmallVec<[Strides; 4]> = operands.iter().map(|l| l.broadcast_to(sizes).strides).collect();
        let refs: SmallVec<[&Strides; 4]> = strides.iter().collect();
        Layout::in_order(sizes, &order_of(sizes, &refs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn l(sizes: &[usize], strides: &[isize]) -> Layout {
        Layout::strided("test", sizes, strides, 0).unwrap()
    }

    #[test]
    fn views_of_strided_layouts() {
        assert_eq!(l(&[2, 3, 4], &[24, 8, 2]).view(&[6, 4]).unwrap().strides()[..], [8, 2]);
        assert_eq!(l(&[2, 3, 4], &[24, 8, 2]).view(&[24]).unwrap().strides()[..], [2]);
        assert!(l(&[3, 2], &[1, 3]).view(&[6]).is_none());
        assert_eq!(l(&[3, 2], &[1, 3]).view(&[3, 1, 2]).unwrap().strides()[..], [1, 6, 3]);
        assert_eq!(l(&[4, 6], &[12, 1]).view(&[2, 2, 3, 2]).unwrap().strides()[..], [24, 12, 2, 1]);
        assert_eq!(l(&[2, 1, 3], &[3, 77, 1]).view(&[6]).unwrap().strides()[..], [1]);
        assert_eq!(l(&[1, 5], &[0, 2]).view(&[5]).unwrap().strides()[..], [2]);
        assert!(l(&[2, 3], &[0, 1]).view(&[6]).is_none());
    }

    #[test]
    fn overlap_and_density() {
        assert!(l(&[3], &[0]).has_overlap());
        assert!(!l(&[1, 5], &[0, 1]).has_overlap());
        assert!(l(&[3, 2], &[1, 1]).has_overlap());
        assert!(!l(&[3, 2], &[1, 3]).has_overlap());
        assert!(l(&[3, 2], &[1, 3]).is_non_overlapping_and_dense());
        assert!(!l(&[3, 2], &[4, 1]).is_non_overlapping_and_dense());
    }

    #[test]
    fn results_keep_the_order_of_operands() {
        let t = l(&[2, 3], &[1, 2]);
        let c = Layout::contiguous(&[2, 3]).unwrap();
        assert_eq!(Layout::of_result(&[2, 3], &[&t]).unwrap().strides()[..], [1, 2]);
        assert_eq!(Layout::of_result(&[2, 3], &[&t, &c]).unwrap().strides()[..], [1, 2]);
        assert_eq!(Layout::of_result(&[2, 3], &[&c, &t]).unwrap().strides()[..], [3, 1]);
    }

    #[test]
    fn reach_is_checked() {
        assert!(Layout::strided("as_strided", &[2, 2], &[isize::MAX, 1], 0).is_err());
        assert!(Layout::strided("as_strided", &[2], &[-1], 0).is_err());
        assert!(Layout::contiguous(&[usize::MAX, 2]).is_err());
    }
}
