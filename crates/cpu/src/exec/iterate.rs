//! The iteration space of a kernel call: dimensions ordered as memory lies, and merged where all operands allow it.

use flambeau_base::{Dims, Strides};
use smallvec::SmallVec;

/// Sizes and, for each operand, strides in bytes; the last dimension is the fastest. There is at least one dimension.
#[derive(Clone, Debug)]
pub struct Space {
    /// Sizes.
    pub sizes: Dims,
    /// Strides in bytes, by operand.
    pub strides: SmallVec<[Strides; 4]>,
    /// The number of elements.
    pub numel: usize,
}

impl Space {
    /// The space of operands given as strides in elements and element sizes; earlier operands decide the order.
    pub fn new(sizes: &[usize], operands: &[(&[isize], usize)]) -> Space {
        let numel: usize = sizes.iter().product();
        if operands.iter().all(|(strides, _)| is_contiguous(sizes, strides)) {
            let strides = operands.iter().map(|(_, size)| SmallVec::from_slice(&[*size as isize])).collect();
            return Space { sizes: SmallVec::from_slice(&[numel]), strides, numel };
        }
        let order = order(sizes, operands);
        let mut space = Space { sizes: Dims::new(), strides: operands.iter().map(|_| Strides::new()).collect(), numel };
        for &d in &order {
            space.push(sizes[d], operands, d);
        }
        if space.sizes.is_empty() {
            space.sizes.push(1);
            space.strides.iter_mut().zip(operands).for_each(|(s, o)| s.push(o.1 as isize));
        }
        space
    }

    /// Adds a faster dimension, as part of the last one where all operands step through both evenly.
    fn push(&mut self, n: usize, operands: &[(&[isize], usize)], d: usize) {
        let step = |k: usize| operands[k].0[d] * operands[k].1 as isize;
        let merges = !self.sizes.is_empty() && (0..operands.len()).all(|k| self.strides[k].last() == Some(&(step(k) * n as isize)));
        if !merges {
            self.sizes.push(n);
            (0..operands.len()).for_each(|k| self.strides[k].push(step(k)));
            return;
        }
        if let Some(last) = self.sizes.last_mut() {
            *last *= n;
        }
        for k in 0..operands.len() {
            if let Some(last) = self.strides[k].last_mut() {
                *last = step(k);
            }
        }
    }

    /// Size of the fastest dimension.
    pub fn inner(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// The step of an operand in the fastest dimension, in bytes.
    pub fn inner_stride(&self, k: usize) -> isize {
        self.strides[k][self.sizes.len() - 1]
    }

    /// Whether an operand lies in one piece, in order.
    pub fn is_linear(&self, k: usize, size: usize) -> bool {
        let mut step = size as isize;
        self.sizes.iter().zip(&self.strides[k]).rev().all(|(&n, &s)| {
            let fits = s == step || n == 1;
            step *= n as isize;
            fits
        })
    }

    /// Whether an operand is one element.
    pub fn is_single(&self, k: usize) -> bool {
        self.strides[k].iter().all(|&s| s == 0)
    }
}

/// Whether elements lie one after the other, last dimension fastest.
fn is_contiguous(sizes: &[usize], strides: &[isize]) -> bool {
    let mut step = 1;
    sizes.iter().zip(strides).rev().all(|(&n, &s)| {
        let fits = s == step || n == 1;
        step *= n as isize;
        fits
    })
}

/// Dimensions of more than one element from the slowest to the fastest, as the first operand that tells two apart has them.
fn order(sizes: &[usize], operands: &[(&[isize], usize)]) -> SmallVec<[usize; 6]> {
    let faster = |a: usize, b: usize| {
        let steps = operands.iter().map(|(s, _)| (s[a].abs(), s[b].abs())).find(|(x, y)| *x != 0 && *y != 0 && x != y);
        steps.is_some_and(|(x, y)| x < y)
    };
    let mut order: SmallVec<[usize; 6]> = SmallVec::new();
    for d in (0..sizes.len()).filter(|&d| sizes[d] != 1) {
        let mut at = order.len();
        while at > 0 && faster(order[at - 1], d) {
            at -= 1;
        }
        order.insert(at, d);
    }
    order
}

/// A place in a space: an index for each dimension.
#[derive(Clone)]
pub struct Cursor {
    index: Dims,
}

impl Cursor {
    /// The place of the element that has so many before it.
    pub fn at(space: &Space, mut position: usize) -> Cursor {
        let mut index: Dims = SmallVec::from_elem(0, space.sizes.len());
        for (i, &n) in index.iter_mut().zip(&space.sizes).rev() {
            *i = position % n;
            position /= n;
        }
        Cursor { index }
    }

    /// How far an operand's element is from its first, in bytes.
    pub fn offset(&self, space: &Space, k: usize) -> isize {
        self.index.iter().zip(&space.strides[k]).map(|(&i, &s)| i as isize * s).sum()
    }

    /// How many elements are left in this row.
    pub fn left(&self, space: &Space) -> usize {
        space.inner() - self.index[self.index.len() - 1]
    }

    /// How many whole rows, a step of the dimension before the last apart, come from here on; 0 within a row.
    pub fn rows(&self, space: &Space) -> usize {
        let last = self.index.len() - 1;
        if self.index[last] != 0 || last == 0 { 0 } else { space.sizes[last - 1] - self.index[last - 1] }
    }

    /// Goes so many whole rows on, not past the end of the dimension before the last.
    pub fn skip_rows(&mut self, space: &Space, rows: usize) {
        let last = self.index.len() - 1;
        self.index[last - 1] += rows - 1;
        self.advance(space, space.inner());
    }

    /// Goes `n` elements on, at most to the start of the next row.
    pub fn advance(&mut self, space: &Space, n: usize) {
        let mut d = self.index.len() - 1;
        self.index[d] += n;
        while self.index[d] == space.sizes[d] && d > 0 {
            self.index[d] = 0;
            d -= 1;
            self.index[d] += 1;
        }
    }
}
