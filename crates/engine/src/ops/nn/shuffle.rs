//! Channels traded for space, and channels in another order.

use super::spatial::format_of;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{Error, MemoryFormat, Result, show};
use smallvec::SmallVec;

/// The values in a memory format, if they have another.
fn in_format(t: Tensor, format: MemoryFormat) -> Result<Tensor> {
    if t.layout().is_contiguous_in(format) { Ok(t) } else { t.copy_in(format) }
}

fn factor(op: &str, name: &str, x: &Tensor, r: i64) -> Result<i64> {
    if x.ndim() < 3 {
        return Err(Error::runtime(format!(
            "{op} expects input to have at least 3 dimensions, but got input with {} dimension(s): shape {}",
            x.ndim(),
            show(x.shape())
        )));
    }
    if r <= 0 {
        return Err(Error::runtime(format!("{op} expects a positive {name}, but got {r}")));
    }
    Ok(r)
}

impl Tensor {
    /// From (…, C·r², H, W) to (…, C, H·r, W·r): each group of r² channels becomes a square of r×r elements.
    ///
    /// Source: Shi and others, "Real-time single image and video super-resolution using an efficient sub-pixel
    /// convolutional neural network", 2016. `RuntimeError` where r² does not divide the channels.
    pub fn pixel_shuffle(&self, r: i64) -> Result<Tensor> {
        let r = factor("pixel_shuffle", "upscale_factor", self, r)?;
        let (lead, [c, h, w]) = split(self);
        let square = r.checked_mul(r).filter(|s| c % s == 0).ok_or_else(|| {
            Error::runtime(format!(
                "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input of shape {} has {c} channels and upscale_factor is {r}",
                show(self.shape())
            ))
        })?;
        let n = lead.len() as i64;
        let tail = self.reshape(&join(&lead, &[c / square, r, r, h, w]))?;
        let order: SmallVec<[i64; 8]> = (0..n).chain([n, n + 3, n + 1, n + 4, n + 2]).collect();
        let out = tail.permute(&order)?.reshape(&join(&lead, &[c / square, h * r, w * r]))?;
        in_format(if out.shares_storage(self) { out.copy()? } else { out }, format_of(self))
    }

    /// From (…, C, H·r, W·r) to (…, C·r², H, W): what undoes [`Tensor::pixel_shuffle`].
    ///
    /// `RuntimeError` where r does not divide height and width.
    pub fn pixel_unshuffle(&self, r: i64) -> Result<Tensor> {
        let r = factor("pixel_unshuffle", "downscale_factor", self, r)?;
        let (lead, [c, h, w]) = split(self);
        if h % r != 0 || w % r != 0 {
            return Err(Error::runtime(format!(
                "pixel_unshuffle expects height and width to be divisible by downscale_factor, but input of shape {} has height {h}, width {w} and downscale_factor is {r}",
                show(self.shape())
            )));
        }
        let n = lead.len() as i64;
        let tail = self.reshape(&join(&lead, &[c, h / r, r, w / r, r]))?;
        let order: SmallVec<[i64; 8]> = (0..n).chain([n, n + 2, n + 4, n + 1, n + 3]).collect();
        let out = tail.permute(&order)?.reshape(&join(&lead, &[c * r * r, h / r, w / r]))?;
        in_format(if out.shares_storage(self) { out.copy()? } else { out }, format_of(self))
    }

    /// Channels (dimension 1) in another order: as a matrix of `groups` rows, read by columns.
    ///
    /// Source: Zhang and others, "ShuffleNet", 2017. `RuntimeError` where `groups` does not divide the channels.
    pub fn channel_shuffle(&self, groups: i64) -> Result<Tensor> {
        if self.ndim() < 3 {
            return Err(Error::runtime(format!(
                "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
                show(self.shape())
            )));
        }
        let channels = self.shape()[1] as i64;
        if groups <= 0 || channels % groups != 0 {
            return Err(Error::runtime(format!(
                "channel_shuffle: Number of groups to divide channels in must be positive and divide them. Value of groups: {groups}, channels: {channels}"
            )));
        }
        let sizes: SmallVec<[i64; 6]> = self.shape().iter().map(|&n| n as i64).collect();
        let rows = self.reshape(&join(&sizes[..1], &join(&[groups, channels / groups], &sizes[2..])))?;
        in_format(rows.transpose(1, 2)?.reshape(&sizes)?, format_of(self))
    }
}

/// The sizes in front of the last three, and those.
fn split(x: &Tensor) -> (SmallVec<[i64; 6]>, [i64; 3]) {
    let sizes: SmallVec<[i64; 6]> = x.shape().iter().map(|&n| n as i64).collect();
    let (lead, last) = sizes.split_at(sizes.len() - 3);
    (lead.iter().copied().collect(), [last[0], last[1], last[2]])
}

fn join(a: &[i64], b: &[i64]) -> SmallVec<[i64; 8]> {
    a.iter().chain(b).copied().collect()
}

fn channel_shuffle(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.channel_shuffle(a.int(1)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", |a| Ok(a.tensor(0)?.pixel_shuffle(a.int(1)?)?.into()))
        .doc("From (…, C·r², H, W) to (…, C, H·r, W·r): each group of r² channels becomes squares of r×r elements.")
        .places(place::TORCH | place::NN)
        .without_out()
        .samples(&["T(1,8,2,3), 2", "T(9,2,2), 3", "T(2,1,4,2,2), 2"]),
    function("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", |a| Ok(a.tensor(0)?.pixel_unshuffle(a.int(1)?)?.into()))
        .doc("From (…, C, H·r, W·r) to (…, C·r², H, W): what undoes `pixel_shuffle`.")
        .places(place::TORCH | place::NN)
        .without_out()
        .samples(&["T(1,2,4,6), 2", "T(1,3,3), 3"]),
    function("channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle)
        .doc("Channels (dimension 1) in another order: as a matrix of `groups` rows, read by columns.")
        .places(place::TORCH | place::NN)
        .without_out()
        .samples(&["T(1,6,2,3), 3", "T(2,4,3), 2"]),
    function("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle)
        .doc("Alias of `channel_shuffle`.")
        .places(place::TORCH | place::NN)
        .without_out()
        .samples(&["T(1,6,2,3), 3"]),
];
