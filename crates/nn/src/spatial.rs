//! Pools and upsampling: layers without parameters over the last two dimensions.

use crate::Layer;
use crate::module::{Module, Path, Slot};
use flambeau_engine::Tensor;
use flambeau_engine::base::Result;
use flambeau_engine::ops::nn::{Divisor, Filter, Interpolation};

/// The largest elements of windows of height and width.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::Tensor;
/// use flambeau_nn::{Layer, MaxPool2d};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let x = Tensor::from_slice(&[1f32, 5.0, 2.0, 3.0], &[1, 1, 2, 2])?;
/// assert_eq!(MaxPool2d::new(2).forward(&x)?.to_vec::<f32>()?, [5.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MaxPool2d {
    /// Height and width of a window.
    pub kernel: [i64; 2],
    /// How far windows are apart.
    pub stride: [i64; 2],
    /// How far they reach past the ends.
    pub padding: [i64; 2],
    /// How far the elements of a window are apart.
    pub dilation: [i64; 2],
    /// Whether last windows need not be whole.
    pub ceil: bool,
}

impl MaxPool2d {
    /// Square windows side by side.
    pub fn new(kernel: i64) -> MaxPool2d {
        MaxPool2d { kernel: [kernel; 2], stride: [kernel; 2], padding: [0; 2], dilation: [1; 2], ceil: false }
    }
}

/// The means of windows of height and width.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::Tensor;
/// use flambeau_nn::{AvgPool2d, Layer};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let x = Tensor::from_slice(&[1f32, 5.0, 2.0, 4.0], &[1, 1, 2, 2])?;
/// assert_eq!(AvgPool2d::new(2).forward(&x)?.to_vec::<f32>()?, [3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AvgPool2d {
    /// Height and width of a window.
    pub kernel: [i64; 2],
    /// How far windows are apart.
    pub stride: [i64; 2],
    /// How far they reach past the ends, where there are zeros.
    pub padding: [i64; 2],
    /// Whether last windows need not be whole.
    pub ceil: bool,
    /// What sums are divided by.
    pub divisor: Divisor,
}

impl AvgPool2d {
    /// Square windows side by side.
    pub fn new(kernel: i64) -> AvgPool2d {
        AvgPool2d { kernel: [kernel; 2], stride: [kernel; 2], padding: [0; 2], ceil: false, divisor: Divisor::Window }
    }
}

/// The means of the parts into which height and width are cut, so that there are so many of them.
#[derive(Clone, Debug)]
pub struct AdaptiveAvgPool2d(
    /// Height and width of the result.
    pub [usize; 2],
);

/// Height and width times a factor.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::Tensor;
/// use flambeau_engine::ops::nn::Filter;
/// use flambeau_nn::{Layer, Upsample};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let x = Tensor::from_slice(&[1f32, 2.0], &[1, 1, 1, 2])?;
/// assert_eq!(Upsample::new(2, Filter::Nearest).forward(&x)?.shape(), [1, 1, 2, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Upsample {
    /// The factor.
    pub factor: usize,
    /// How values between elements are made.
    pub how: Interpolation,
}

impl Upsample {
    /// With places counted from outer edge to outer edge.
    pub fn new(factor: usize, filter: Filter) -> Upsample {
        Upsample { factor, how: Interpolation { filter, align_corners: false, antialias: false } }
    }
}

macro_rules! without_parameters {
    ($($layer:ty),*) => {$(
        impl Module for $layer {
            fn walk(&self, _: &mut Path, _: &mut dyn FnMut(&str, Slot<'_>)) {}
        }
    )*};
}
without_parameters!(MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Upsample);

impl Layer for MaxPool2d {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.max_pool2d(&self.kernel, &self.stride, &self.padding, &self.dilation, self.ceil)
    }
}

impl Layer for AvgPool2d {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.avg_pool2d(&self.kernel, &self.stride, &self.padding, self.ceil, self.divisor)
    }
}

impl Layer for AdaptiveAvgPool2d {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.adaptive_avg_pool2d(self.0)
    }
}

impl Layer for Upsample {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let sizes: Vec<usize> = x.shape().iter().skip(2).map(|n| n * self.factor).collect();
        x.interpolate(&sizes, self.how)
    }
}
