//! Size classes: multiples of 64 bytes up to 1 KiB, then eight to each doubling.

use super::{ALIGNMENT, SMALL};

/// Up to this size, classes are the multiples of the alignment.
const LINEAR: usize = 1 << 10;
const LINEAR_CLASSES: usize = LINEAR / ALIGNMENT;
/// log2 of the number of classes to a doubling.
const STEPS: u32 = 3;

/// Classes from this one on hold more than [`SMALL`] bytes.
pub(super) const SMALL_CLASSES: usize = class_of(SMALL) + 1;

/// Classes of sizes up to 2^46 bytes, more than an address space of 47 bits can give.
pub(super) const CLASSES: usize = class_of(if usize::BITS == 64 { 1 << 46 } else { 1 << 30 }) + 1;

/// The class of the smallest size that holds `nbytes` (> 0) bytes.
#[inline]
pub(super) const fn class_of(nbytes: usize) -> usize {
    if nbytes <= LINEAR {
        return nbytes.div_ceil(ALIGNMENT) - 1;
    }
    let last = nbytes - 1;
    let exponent = last.ilog2();
    let step = (last >> (exponent - STEPS)) & ((1 << STEPS) - 1);
    LINEAR_CLASSES + (((exponent - LINEAR.ilog2()) as usize) << STEPS) + step
}

/// How many bytes a block of the class has.
#[inline]
pub(super) const fn class_size(class: usize) -> usize {
    if class < LINEAR_CLASSES {
        return (class + 1) * ALIGNMENT;
    }
    let rest = class - LINEAR_CLASSES;
    let exponent = LINEAR.ilog2() + (rest >> STEPS) as u32;
    let step = rest & ((1 << STEPS) - 1);
    ((1 << STEPS) + step + 1) << (exponent - STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_its_sizes_and_the_one_below_does_not() {
        let mut sizes: Vec<usize> = (1..100_000).collect();
        for shift in 17..46 {
            sizes.extend([(1 << shift) - 1, 1 << shift, (1 << shift) + 1, (5 << shift) / 4, (5 << shift) / 4 + 1]);
        }
        for nbytes in sizes {
            let class = class_of(nbytes);
            assert!(class_size(class) >= nbytes, "{nbytes}");
            assert_eq!(class_size(class) % ALIGNMENT, 0);
            assert!(class == 0 || class_size(class - 1) < nbytes, "{nbytes}");
            assert!(class_size(class) - nbytes < ALIGNMENT.max(nbytes / 8 + 1), "{nbytes}");
        }
        assert_eq!(class_size(SMALL_CLASSES - 1), SMALL);
        assert_eq!(class_size(class_of(64 << 20)), 64 << 20);
    }
}
