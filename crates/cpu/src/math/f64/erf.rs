//! The error function, its complement and its inverse.

use super::exp::{Wide, exp_parts, exp_parts_wide, power_of_two};
use super::log::log;
use super::{fma, with_sign};
use crate::math::{estrin, poly_wide};

/// Error function: a polynomial in x² below 1, 1 - erfc from there on.
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    let s = x * x;
    let q = poly_wide!(s; 0.128_379_167_095_512_6, -0.376_126_389_031_838_76, 0.112_837_916_709_587_83,
        -0.026_866_170_645_631_93, 0.005_223_977_629_246_368, -0.000_854_832_719_941_939_8, 0.000_120_553_381_642_472_18,
        -1.492_574_826_097_016_8e-5, 1.646_324_876_647_780_6e-6, -1.637_238_879_108_260_7e-7,
        1.479_847_878_252_358_3e-8, -1.187_705_033_681_897_1e-9, 6.763_672_905_290_383e-11);
    let near = fma(a, q, a);
    // erfc(6) is below half a unit in the last place of 1.
    let b = if a > 6.0 { 6.0 } else { a };
    let z = 3.0 / (3.0 + b);
    let (p, n) = exp_parts(-(b * b));
    let far = fma(-(p * power_of_two(n)), z * erfc_quotient(z - 0.5), 1.0);
    with_sign(if a < 1.0 { near } else { far }, x)
}

/// 1 - erf(x), accurate in the upper tail.
#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let a = x.abs();
    let tail = erfc_tail(if a > 27.3 { 27.3 } else { a });
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// erfc(a) for 0 <= a <= 27.3: e^(-a²) times a polynomial in 3 / (3 + a).
#[inline(always)]
fn erfc_tail(a: f64) -> f64 {
    let (z, epsilon) = shifted_reciprocal::<3>(a);
    let v = fma(z, epsilon, z - 0.5);
    let q = erfc_quotient(v);
    let zq = z * q;
    exp_neg_product(a, a, epsilon).times(zq, fma(z, q, -zq))
}

/// erfc(a) e^(a²) / z for z = 3 / (3 + a), of v = z - 1/2.
#[inline(always)]
fn erfc_quotient(v: f64) -> f64 {
    poly_wide!(v; 0.358_002_302_362_779_9, 0.588_929_635_446_588_2, 0.786_971_142_805_458_1,
        0.827_912_698_401_890_2, 0.637_481_393_534_530_8, 0.286_157_169_282_377_83, -0.025_864_888_236_919_664,
        -0.129_453_309_522_968_93, -0.046_789_085_943_558_795, 0.047_236_674_029_060_91, 0.036_714_143_150_664_99,
        -0.020_750_325_952_655_226, -0.023_850_743_160_499_642, 0.012_950_505_187_876_627, 0.015_083_545_862_387_08,
        -0.010_768_499_792_364_914, -0.008_829_193_097_613_092, 0.009_488_841_335_882_17, 0.003_899_267_648_032_940_3,
        -0.006_675_751_965_859_132, -0.000_681_582_511_639_528_6, 0.002_339_585_936_333_335_4)
}

/// Inverse error function; ±inf at ±1, NaN beyond.
///
/// After M. Giles, "Approximating the erfinv function": erfinv(x) / x is smooth in w = -log(1 - x²) near 0 and in sqrt(w)
/// in the tail; the polynomials are our own.
#[inline(always)]
pub fn erfinv(x: f64) -> f64 {
    let w = -log(fma(-x, x, 1.0));
    let v = w - 4.0;
    let near = poly_wide!(v; 1.858_779_112_426_973_5, 0.228_354_685_337_690_1, -0.007_221_059_951_837_538,
        -0.000_203_972_017_501_919, 0.000_118_877_789_126_676_8, -1.551_514_118_192_476e-5, 4.865_424_436_643_924e-7,
        1.772_437_268_956_576_8e-7, -3.343_646_056_463_158e-8, 1.850_050_725_932_059e-9, 2.909_957_942_727_887e-10,
        -7.176_314_385_446_443e-11, 5.241_530_923_917_097e-12, 4.658_487_097_439_922e-13,
        -1.537_438_687_455_870_2e-13, 1.379_031_569_127_152_9e-14, 6.570_377_236_727_053e-16,
        -3.295_408_354_936_519e-16, 3.610_424_282_212_285e-17, 7.221_468_262_305_258e-19, -7.819_398_337_648_075e-19,
        8.821_530_762_677e-20, 4.066_398_729_435_743e-21, -1.743_644_158_121_514_8e-21, 7.425_662_824_789_406e-23,
        1.225_599_552_591_517_6e-23, -1.014_786_399_660_121e-24);
    let v = w.sqrt() - 4.425;
    let far = poly_wide!(v; 4.268_988_381_217_215, 1.010_176_155_638_407_5, 0.000_429_418_803_010_529_3,
        -0.000_477_031_175_805_142_74, 0.000_164_316_723_732_171_27, -4.648_036_631_682_202e-5,
        1.327_916_474_880_302_2e-5, -4.795_921_815_828_637e-6, 2.394_277_577_271_59e-6, -1.352_203_305_431_993e-6,
        7.037_053_589_249_964e-7, -3.019_505_463_415_001e-7, 9.514_939_222_129_528e-8, -1.416_727_778_335_331_6e-8,
        -5.879_343_104_272_778_5e-9, 5.520_684_106_627_999e-9, -2.235_373_847_965_491e-9, 4.768_009_188_830_201e-10,
        1.398_158_499_177_275_2e-11, -6.513_791_401_253_682e-11, 3.422_963_398_632_877e-11,
        -6.869_127_484_422_725e-12, -1.758_296_680_885_044_3e-12, 9.902_101_273_376_84e-13,
        -4.156_015_511_989_521e-14, -2.494_718_271_939_331_8e-14);
    let y = x * if w < 8.0 { near } else { far };
    if x.abs() == 1.0 { f64::INFINITY.copysign(x) } else { y }
}

/// C / (C + a) for a >= 0, as z (1 + ε) with a rounded quotient z; ε corrects it.
#[inline(always)]
pub(super) fn shifted_reciprocal<const C: u32>(a: f64) -> (f64, f64) {
    let c = C as f64;
    let sum = a + c;
    let lost = a - (sum - c);
    let z = c / sum;
    (z, fma(-lost, z, fma(-sum, z, c)) * (1.0 / c))
}

/// e^(-a b + ε) with the product taken exactly.
#[inline(always)]
pub(super) fn exp_neg_product(a: f64, b: f64, epsilon: f64) -> Wide {
    let product = a * b;
    exp_parts_wide(-product, epsilon - fma(a, b, -product))
}
