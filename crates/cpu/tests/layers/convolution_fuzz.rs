//! The convolution kernels against the plain loops, which compute those of integers: all sorts of sizes and layouts, with
//! results that begin as NaN, so that numbers nobody wrote are seen, and gaps between rows that must stay as they are.

use flambeau_cpu as _;
use flambeau_engine::backend::backend;
use flambeau_engine::backend::layers::{Conv, ConvKind, ConvOperand};
use flambeau_engine::base::{DType, Device};

/// A source of numbers that are the same on every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next() as usize % all.len()]
    }

    fn up_to(&mut self, most: usize) -> usize {
        1 + self.next() as usize % most
    }
}

/// An operand: its integers, and which of the elements in memory belong to it.
#[derive(Clone)]
struct Operand {
    sizes: [usize; 5],
    strides: [isize; 5],
    values: Vec<i64>,
    own: Vec<bool>,
}

impl Operand {
    /// In row-major order or channels last, with or without gaps behind rows and elements.
    fn new(dice: &mut Dice, sizes: [usize; 5]) -> Operand {
        let order = dice.of(&[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 2, 3, 4, 1], [0, 2, 3, 4, 1], [1, 0, 2, 4, 3]]);
        let gaps = dice.of(&[false, false, true]);
        let mut strides = [0isize; 5];
        let mut step = if gaps { dice.of(&[1, 1, 2]) } else { 1 };
        for d in order.into_iter().rev() {
            strides[d] = step as isize;
            step *= sizes[d].max(1);
            step += if gaps { dice.of(&[0, 0, 3]) } else { 0 };
            if sizes[d] == 1 {
                // Nobody walks there.
                strides[d] = dice.of(&[strides[d], strides[d], 0, 1, 5]);
            }
        }
        let mut all = Operand { sizes, strides, values: vec![0; step + 1], own: vec![false; step + 1] };
        for i in 0..sizes.iter().product() {
            let at = all.at(i);
            all.own[at] = true;
            all.values[at] = dice.next() as i64 % 3;
        }
        all
    }

    /// The element in memory of the `i`th in row-major order.
    fn at(&self, mut i: usize) -> usize {
        let mut at = 0;
        for d in (0..5).rev() {
            at += i % self.sizes[d] * self.strides[d] as usize;
            i /= self.sizes[d];
        }
        at
    }

    /// Its numbers as another type, with something else in the gaps, or everywhere where it is a result.
    fn as_type<T: Copy>(&self, result: bool, number: impl Fn(i64) -> T, gap: T) -> Vec<T> {
        let own = self.own.iter().zip(&self.values);
        own.map(|(&own, &v)| if own && !result { number(v) } else { gap }).collect()
    }
}

/// A call whose operands are yet to be filled in, and the operands.
struct Case {
    call: Conv,
    operands: [Operand; 3],
    bias: Option<Vec<i64>>,
}

impl Case {
    /// A case, unless it came out too large or has windows larger than the input.
    fn new(dice: &mut Dice) -> Option<Case> {
        let kind = dice.of(&[ConvKind::Output, ConvKind::Input, ConvKind::Weight]);
        let groups = dice.of(&[1, 1, 2, 3, 5, 18]);
        let channels = [dice.of(&[1, 1, 1, 2, 3, 4, 16, 19]), dice.of(&[1, 1, 2, 3, 4, 8, 17])];
        let batch = dice.of(&[1, 1, 2, 3]);
        let ([mut input, mut kernel, mut output, mut stride, mut dilation], mut padding) = ([[1; 3]; 5], [0; 3]);
        for d in dice.of(&[2, 1, 1, 0])..3 {
            input[d] = if d == 2 { dice.of(&[1, 3, 5, 8, 16, 17, 33, 70]) } else { dice.up_to(9) };
            kernel[d] = dice.of(&[1, 1, 2, 3, 3, 4]);
            stride[d] = dice.of(&[1, 1, 2, 2, 3, 5]);
            padding[d] = dice.of(&[0, 0, 1, 2, 4]);
            dilation[d] = dice.of(&[1, 1, 2, 3]);
            let room = (input[d] + 2 * padding[d]).checked_sub(dilation[d] * (kernel[d] - 1) + 1)?;
            // Transposed convolutions may have inputs that are not looked at to the end.
            output[d] = (room / stride[d] + 1).saturating_sub(dice.of(&[0, 0, 0, 1, 2])).max(1);
        }
        let [inner, outer] = channels;
        let volume = |sizes: [usize; 3]| sizes.iter().product::<usize>();
        let places = if kind == ConvKind::Input { volume(input) } else { volume(output) };
        if batch * groups * inner * outer * volume(kernel) * places > 400_000 {
            return None;
        }
        let with = |n, c, [a, b, e]: [usize; 3]| [n, c, a, b, e];
        let all = [with(batch, groups * inner, input), with(groups * outer, inner, kernel), with(batch, groups * outer, output)];
        let operands = all.map(|sizes| Operand::new(dice, sizes));
        let own = groups * if kind == ConvKind::Input { inner } else { outer };
        let biased = kind != ConvKind::Weight && dice.of(&[true, false]);
        let bias = biased.then(|| (0..own).map(|_| dice.next() as i64 % 3).collect());
        let [x, w, y] = [0, 1, 2].map(|i| ConvOperand { ptr: std::ptr::null_mut(), strides: operands[i].strides });
        let (dtype, bias_ptr) = (DType::I64, std::ptr::null());
        let call = Conv { kind, dtype, batch, groups, channels, input, kernel, output, stride, padding, dilation, x, w, y, bias: bias_ptr };
        Some(Case { call, operands, bias })
    }

    /// The result as it lies in memory.
    fn run<T: Copy>(&self, dtype: DType, number: impl Fn(i64) -> T + Copy, gap: T) -> Vec<T> {
        let result = match self.call.kind {
            ConvKind::Input => 0,
            ConvKind::Weight => 1,
            ConvKind::Output => 2,
        };
        let mut held = [0, 1, 2].map(|i| self.operands[i].as_type(i == result, number, gap));
        let bias: Option<Vec<T>> = self.bias.as_ref().map(|b| b.iter().map(|&v| number(v)).collect());
        let mut call = Conv { dtype, ..self.call };
        for (to, from) in [&mut call.x, &mut call.w, &mut call.y].into_iter().zip(&mut held) {
            to.ptr = from.as_mut_ptr().cast();
        }
        call.bias = bias.as_ref().map_or(std::ptr::null(), |b| b.as_ptr().cast());
        // SAFETY: all the strides stay in the operands, of which none overlaps another.
        unsafe { backend(Device::CPU).unwrap().conv(&call) }.unwrap();
        std::mem::take(&mut held[result])
    }

    /// Panics where floating point numbers are not those of the plain loops.
    fn check(&self, number: usize) {
        let wanted = self.run(DType::I64, |v| v, i64::MIN);
        let wanted = wanted.iter().map(|&v| if v == i64::MIN { f64::NAN } else { v as f64 });
        let single = self.run(DType::F32, |v| v as f32, f32::NAN);
        let double = self.run(DType::F64, |v| v as f64, f64::NAN);
        for (i, (wanted, (single, double))) in wanted.zip(single.into_iter().zip(double)).enumerate() {
            let same = |found: f64| found == wanted || found.is_nan() && wanted.is_nan();
            assert!(same(f64::from(single)), "case {number}, float32, element {i}: {single}, not {wanted}: {:?}", self.call);
            assert!(same(double), "case {number}, float64, element {i}: {double}, not {wanted}: {:?}", self.call);
        }
    }
}

#[test]
fn kernels_give_the_numbers_of_the_plain_loops() {
    let mut dice = Dice(7);
    let cases = std::iter::from_fn(|| Some(Case::new(&mut dice))).flatten().take(1500);
    cases.enumerate().for_each(|(number, case)| case.check(number));
}
