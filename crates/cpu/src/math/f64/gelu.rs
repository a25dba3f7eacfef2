//! The Gaussian error linear unit in both its forms, and its derivatives.
//!
//! All four are accurate relative to their value, also far out on the negative side where 1 + erf or 1 + tanh cancels.

use super::erf::{exp_neg_product, shifted_reciprocal};
use super::exp::{Wide, around_zero, exp_parts_wide, gate, gate_derivative};
use super::fma;
use crate::math::{estrin, poly_wide};

/// From here on the normal distribution's tail, and its product with x, is below half of the least subnormal.
const TAIL_END: f64 = 38.7;

/// x · Φ(x), Φ the distribution function of the standard normal; -0 at negative infinity.
#[inline(always)]
pub fn gelu(x: f64) -> f64 {
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let (z, epsilon) = shifted_reciprocal::<4>(t);
    let v = fma(z, epsilon, z - 0.5);
    // Φ(-t) e^(t²/2) = z q
    let q = poly_wide!(v; 0.188_821_282_603_937_88, 0.303_948_320_985_946_04, 0.387_137_400_742_211_8,
        0.373_043_715_919_319_3, 0.241_586_299_564_145, 0.060_321_511_733_226_27, -0.055_675_077_905_278_35,
        -0.052_186_190_607_612_11, 0.008_534_037_009_024_012, 0.029_580_150_475_344_093, -0.000_488_537_486_575_532_7,
        -0.017_994_052_144_028_806, 0.000_734_210_358_007_433_9, 0.012_124_117_331_285_874,
        -0.002_582_567_002_846_175_6, -0.008_364_651_457_854_224, 0.004_474_288_160_798_576,
        0.005_052_244_609_629_529, -0.005_681_001_613_836_462, -0.001_634_072_829_665_966_7,
        0.005_333_347_878_448_312, -0.001_260_575_213_276_508_3, -0.002_833_164_460_385_609_4,
        0.001_788_955_702_374_184_5);
    let zq = z * q;
    let y = t * zq;
    let y_lo = fma(t, fma(z, q, -zq), fma(t, zq, -y));
    let tail = exp_neg_product(0.5 * t, t, epsilon).times(y, y_lo);
    if x < 0.0 { -tail } else { x - tail }
}

/// Derivative of [`gelu`]: Φ(x) + x φ(x).
#[inline(always)]
pub fn gelu_derivative(x: f64) -> f64 {
    const ZERO: [f64; 2] = [0.751_791_524_693_564_5, -1.495_675_917_701_040_7e-17];
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let (z, epsilon) = shifted_reciprocal::<4>(t);
    let v = fma(z, epsilon, z - 0.5);
    // (Φ(-t) - t φ(t)) e^(t²/2) = (t - zero) q
    let q = poly_wide!(v; -0.462_211_244_049_575_3, -0.206_731_797_043_913_92, -0.241_851_747_071_402_06,
        -0.224_666_879_624_356_27, -0.152_079_206_001_839_72, -0.057_224_337_323_068_84, 0.009_895_252_039_736_301,
        0.023_779_299_345_868_26, 0.004_474_166_118_864_426, -0.009_233_894_142_346_797, -0.003_623_813_921_783_842_4,
        0.004_539_964_678_767_923_4, 0.002_015_563_364_848_981, -0.002_862_793_051_351_315_3,
        -0.000_854_389_783_227_74, 0.002_076_493_562_668_761, 1.957_881_733_368_859_2e-5,
        -0.001_489_780_187_491_902_2, 0.000_590_365_511_568_685_9, 0.000_824_382_090_055_944_1,
        -0.000_890_125_246_273_542_1, -6.291_296_843_996_496e-5, 0.000_619_187_933_344_491_9,
        -0.000_326_902_190_395_720_95);
    let (dq, dq_lo) = around_zero(t, ZERO, q);
    let tail = exp_neg_product(0.5 * t, t, 0.0).times(dq, dq_lo);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// sqrt(2/π) and its product with 0.044715, doubled, each as the sum of two floats.
const K1: [f64; 2] = [2.0 * 0.797_884_560_802_865_4, 2.0 * -4.984_654_404_555_46e-17];
const K3: [f64; 2] = [2.0 * 0.035_677_408_136_300_125, 2.0 * -3.087_574_959_077_657_6e-19];
/// From here on the tanh form's tail is below half of the least subnormal.
const TANH_TAIL_END: f64 = 22.0;

/// e^(-2u) for u = sqrt(2/π) (a + 0.044715 a³) in the arithmetic of two floats.
#[inline(always)]
fn exp_neg_cubic(a: f64) -> Wide {
    let s = a * a;
    let s_lo = fma(a, a, -s);
    let c = K3[0] * s;
    let c_lo = fma(K3[0], s, -c) + fma(K3[0], s_lo, K3[1] * s);
    let sum = K1[0] + c;
    let back = sum - c;
    let sum_lo = (K1[0] - back) + (c - (sum - back)) + (K1[1] + c_lo);
    let y = a * sum;
    exp_parts_wide(-y, -fma(a, sum_lo, fma(a, sum, -y)))
}

/// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2; -0 at negative infinity.
#[inline(always)]
pub fn gelu_tanh(x: f64) -> f64 {
    let a = x.abs();
    let t = if a > TANH_TAIL_END { TANH_TAIL_END } else { a };
    gate(if x < -TANH_TAIL_END { -TANH_TAIL_END } else { x }, exp_neg_cubic(t))
}

/// Derivative of [`gelu_tanh`].
#[inline(always)]
pub fn gelu_tanh_derivative(x: f64) -> f64 {
    let a = x.abs();
    let t = if a > TANH_TAIL_END { TANH_TAIL_END } else { a };
    // At -t it is z b / (1 + z)² for z = e^(-2u) and b = 1 + z - 2 t u'.
    const ZERO: [f64; 2] = [0.752_461_422_071_016_3, -3.635_560_509_207_687e-17];
    let e = exp_neg_cubic(t);
    let v = t - 1.0;
    let q = poly_wide!(v; -2.508_878_900_468_824_6, -0.285_857_259_051_880_9, -0.353_721_768_534_162_9,
        0.051_709_606_616_370_814, -0.019_368_686_094_384_243, 0.007_037_828_930_400_191,
        -0.002_192_214_737_457_315_8, 0.000_631_303_255_440_925_8, -0.000_188_486_215_617_648_68,
        5.365_074_458_648_602e-5, -1.369_256_975_565_613_3e-5, 3.493_052_439_953_89e-6, -9.142_857_318_527_547e-7,
        2.201_503_269_097_682_4e-7, -5.019_604_866_532_093e-8, 1.165_622_350_759_891_7e-8, -2.676_368_448_047_446e-9,
        7.394_376_990_393_438e-10, -1.659_972_108_259_338_2e-10);
    let near = t < 2.0;
    let (b, b_lo) = around_zero(t, ZERO, q);
    let slope = fma(3.0 * K3[0], t * t, K1[0]);
    let far = fma(-t, slope, 1.0 + e.value());
    gate_derivative(x, e, if near { b } else { far }, if near { b_lo } else { 0.0 })
}
