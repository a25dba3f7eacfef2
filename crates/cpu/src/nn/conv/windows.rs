//! The windows of a tensor as a matrix that is never made: a row for each position, a column for each element of the
//! window, tap by tap and channel by channel.

use std::ops::Range;

/// Positions of up to three dimensions in each of several images, counted in row-major order, image by image.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Positions of each dimension.
    pub sizes: [usize; 3],
    /// Elements from one to the next.
    pub steps: [isize; 3],
    /// Elements from one image to the next.
    pub image: isize,
}

/// Adjacent positions of the last dimension.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// How many positions of the asked-for range come before.
    pub lane: usize,
    /// How many there are.
    pub len: usize,
    /// The first one's place in each dimension.
    pub at: [usize; 3],
    /// The first one's element.
    pub offset: isize,
}

impl Run {
    /// `len` positions from the `first` on, which lie `step` elements apart.
    #[inline]
    pub fn part(&self, first: usize, len: usize, step: isize) -> Run {
        let at = [self.at[0], self.at[1], self.at[2] + first];
        Run { lane: self.lane + first, len, at, offset: self.offset + first as isize * step }
    }
}

impl Places {
    /// How many positions an image has.
    pub fn count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Makes dimensions that are walked with one step one dimension, the last.
    pub fn merged(mut self) -> Places {
        for _ in 0..2 {
            for d in [1, 2] {
                let joins = self.sizes[d - 1] == 1 || self.steps[d - 1] == self.steps[d] * self.sizes[d] as isize;
                if joins || self.sizes[d] == 1 {
                    self.steps[d] = if self.sizes[d] == 1 { self.steps[d - 1] } else { self.steps[d] };
                    self.sizes[d] *= self.sizes[d - 1];
                    self.sizes[d - 1] = 1;
                }
            }
        }
        self
    }

    /// Calls `f` with the runs that make up a range of positions.
    #[inline]
    pub fn runs(&self, range: Range<usize>, mut f: impl FnMut(Run)) {
        if range.is_empty() {
            return;
        }
        let [_, b, c] = self.sizes;
        let count = self.count();
        let (mut image, inside) = (range.start / count, range.start % count);
        let mut at = [inside / (b * c), inside / c % b, inside % c];
        let mut lane = 0;
        while lane < range.len() {
            let len = (c - at[2]).min(range.len() - lane);
            let offset = image as isize * self.image
                + at[0] as isize * self.steps[0]
                + at[1] as isize * self.steps[1]
                + at[2] as isize * self.steps[2];
            f(Run { lane, len, at, offset });
            lane += len;
            at[2] = 0;
            at[1] += 1;
            if at[1] == b {
                at[1] = 0;
                at[0] += 1;
                if at[0] == self.sizes[0] {
                    at[0] = 0;
                    image += 1;
                }
            }
        }
    }
}

/// One element of the window.
#[derive(Clone, Debug)]
pub struct Tap {
    /// Elements of the tensor from a position's place to this.
    pub offset: isize,
    /// The positions of each dimension at which it lies in the tensor, not in the padding.
    pub valid: [Range<usize>; 3],
    /// Elements of the weight from its first to this.
    pub weight: isize,
}

impl Tap {
    /// The part of a run at which the tap lies in the tensor: how many positions are skipped, and how many are there.
    #[inline]
    pub fn clip(&self, run: &Run) -> Option<(usize, usize)> {
        let [a, b, c] = &self.valid;
        if !a.contains(&run.at[0]) || !b.contains(&run.at[1]) {
            return None;
        }
        let (first, last) = (run.at[2].max(c.start), (run.at[2] + run.len).min(c.end));
        (first < last).then(|| (first - run.at[2], last - first))
    }
}

/// How one dimension is walked: position `p` and kernel element `k` meet the tensor at `p * step + offset(k)`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// How many positions.
    pub positions: usize,
    /// From position to position.
    pub step: usize,
    /// Kernel elements with their offsets.
    pub taps: Vec<(usize, isize)>,
    /// The tensor's size.
    pub size: usize,
}

impl Axis {
    /// The positions at which an offset leads into the tensor.
    fn valid(&self, offset: isize) -> Range<usize> {
        let step = self.step as isize;
        let first = if offset >= 0 { 0 } else { (-offset + step - 1) / step };
        let last = if self.size as isize <= offset { 0 } else { (self.size as isize - 1 - offset) / step + 1 };
        let last = last.clamp(0, self.positions as isize);
        (first.min(last) as usize)..last as usize
    }
}

/// The elements of a window over three dimensions, in row-major order.
pub fn taps(axes: &[Axis; 3], strides: &[isize], weight_strides: &[isize]) -> Vec<Tap> {
    let mut all = Vec::with_capacity(axes.iter().map(|a| a.taps.len()).product());
    for &(k0, o0) in &axes[0].taps {
        for &(k1, o1) in &axes[1].taps {
            for &(k2, o2) in &axes[2].taps {
                all.push(Tap {
                    offset: o0 * strides[0] + o1 * strides[1] + o2 * strides[2],
                    valid: [axes[0].valid(o0), axes[1].valid(o1), axes[2].valid(o2)],
                    weight: k0 as isize * weight_strides[0] + k1 as isize * weight_strides[1] + k2 as isize * weight_strides[2],
                });
            }
        }
    }
    all
}
