//! Elements as unsigned numbers of the same order.

use super::order::{Item, Long};
use flambeau_base::{F8E4M3, F8E5M2, bf16, f16};

/// An element type with an order: NaN is the largest, and all NaNs and both zeros are alike.
pub(super) trait Key: Copy + Send + Sync {
    type Item: Item;
    /// The element at a place of a row; the other way round where `descending`.
    fn item(self, descending: bool, place: u32) -> Self::Item;
}

/// Key in the upper half, place in the lower.
#[inline(always)]
fn short(key: u32, descending: bool, place: u32) -> u64 {
    let key = if descending { !key } else { key };
    (key as u64) << 32 | place as u64
}

/// Positive floats are ordered as their bits are, negative ones the other way round.
#[inline(always)]
pub(super) fn float_key(x: f32) -> u32 {
    // Adding zero makes minus zero zero.
    let bits = (x + 0.0).to_bits();
    let key = if bits >> 31 != 0 { !bits } else { bits | 1 << 31 };
    if x.is_nan() { u32::MAX } else { key }
}

#[inline(always)]
fn double_key(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    let key = if bits >> 63 != 0 { !bits } else { bits | 1 << 63 };
    if x.is_nan() { u64::MAX } else { key }
}

macro_rules! keys {
    ($($t:ty => $item:ty, |$x:ident| $key:expr;)*) => {$(
        impl Key for $t {
            type Item = $item;
            #[inline(always)]
            fn item(self, descending: bool, place: u32) -> $item {
                let $x = self;
                <$item>::pack($key, descending, place)
            }
        }
    )*};
}

trait Pack<K> {
    fn pack(key: K, descending: bool, place: u32) -> Self;
}

impl Pack<u32> for u64 {
    #[inline(always)]
    fn pack(key: u32, descending: bool, place: u32) -> u64 {
        short(key, descending, place)
    }
}

impl Pack<u64> for Long {
    #[inline(always)]
    fn pack(key: u64, descending: bool, place: u32) -> Long {
        Long { key: if descending { !key } else { key }, place }
    }
}

keys! {
    u8 => u64, |x| x as u32;
    i8 => u64, |x| (x as i32 as u32) ^ 1 << 31;
    u16 => u64, |x| x as u32;
    i16 => u64, |x| (x as i32 as u32) ^ 1 << 31;
    u32 => u64, |x| x;
    i32 => u64, |x| x as u32 ^ 1 << 31;
    u64 => Long, |x| x;
    i64 => Long, |x| x as u64 ^ 1 << 63;
    f32 => u64, |x| float_key(x);
    f64 => Long, |x| double_key(x);
    f16 => u64, |x| float_key(x.to_f32());
    bf16 => u64, |x| float_key(x.to_f32());
    F8E4M3 => u64, |x| float_key(x.to_f32());
    F8E5M2 => u64, |x| float_key(x.to_f32());
}

/// Runs an expression with `$t` standing for the type of a dtype that has an order.
macro_rules! with_key {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use flambeau_base::{F8E4M3, F8E5M2, bf16, f16};
        match $dtype {
            DType::Bool | DType::U8 => {
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
            complex => Err(crate::sort::no_order(complex)),
        }
    }};
}
pub(super) use with_key;
