//! Python's operators on tensors: each calls the operation of its name.

use crate::convert::scalar_of;
use crate::error::*;
use crate::op_function::Function;
use crate::tensor_type::*;
use flambeau_base::Scalar;
use flambeau_engine::Tensor;
use flambeau_engine::ops::pointwise::{Operand, call};
use flambeau_engine::ops::table::Call;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// An operation looked up once, when it is first used.
pub struct Named {
    name: &'static str,
    found: OnceLock<&'static Function>,
}

impl Named {
    /// The operation of a name.
    pub const fn new(name: &'static str) -> Named {
        Named { name, found: OnceLock::new() }
    }

    /// The function. `NotImplementedError` where the table has none.
    #[inline]
    pub fn get(&self) -> Ret<&'static Function> {
        if let Some(f) = self.found.get() {
            return Ok(f);
        }
        let f = crate::table::function(self.name)?;
        Ok(self.found.get_or_init(|| f))
    }
}

fn not_implemented() -> Ret<Ptr> {
    // SAFETY: NotImplemented is always there; callers hold the GIL.
    Ok(unsafe { ffi::Py_NewRef(ffi::Py_NotImplemented()) })
}

/// `a op b`, where one of them is a tensor.
fn binary(py: Python<'_>, op: &Named, a: Ptr, b: Ptr) -> Ret<Ptr> {
    let function = op.get()?;
    // The common form: one pointwise row of two tensors (or a tensor and a number), and perhaps numbers with defaults.
    // SAFETY: operands of an operator, which the interpreter holds.
    if let (Some(x), Some(y)) = unsafe { (operand(py, a)?, operand(py, b)?) }
        && let Call::Pointwise(spec) = function.forms[0].row.call
        && function.forms[0].params.len() == 2
        && !big(&x)
        && !big(&y)
        && !crate::profile::listens()
    {
        return wrap(py, call(spec, &[x, y])?);
    }
    match function.try_call(py, &[a, b])? {
        Some(result) => Ok(result),
        None => mismatch(py, function, a, b),
    }
}

/// Foreign types get their turn; two tensors, or a tensor and a number, that do not fit are an error.
#[cold]
fn mismatch(py: Python<'_>, function: &Function, a: Ptr, b: Ptr) -> Ret<Ptr> {
    // SAFETY: operands of an operator.
    let known = |x: Ptr| -> Ret<bool> { Ok(unsafe { is_tensor(x) } || scalar_of(py, x)?.is_some()) };
    if known(a)? && known(b)? {
        return function.call(py, crate::op_function::given_of(&[a, b]));
    }
    not_implemented()
}

fn big(x: &Operand) -> bool {
    matches!(x, Operand::Tensor(t) if t.numel() >= 1 << 16)
}

/// An operand: a tensor or one of Python's numbers.
///
/// # Safety
/// `obj` is an object that outlives the operand.
#[inline]
unsafe fn operand<'a>(py: Python<'_>, obj: Ptr) -> Ret<Option<Operand<'a>>> {
    // SAFETY: the caller's.
    if let Some(t) = unsafe { tensor_of(obj) } {
        return Ok(Some(Operand::Tensor(t)));
    }
    Ok(crate::convert::plain_number(py, obj)?.map(Operand::Scalar))
}

macro_rules! binary_slots {
    ($($slot:ident: $name:literal;)*) => {$(
        unsafe extern "C" fn $slot(a: Ptr, b: Ptr) -> Ptr {
            static OP: Named = Named::new($name);
            guard(|py| binary(py, &OP, a, b))
        }
    )*};
}
/// What `a op b` is for operands of the common kinds; `None` leaves it to the rows.
type Direct = fn(&Tensor, Operand) -> flambeau_base::Result<Tensor>;

/// An operator whose rows choose between kernels by arguments that an operator does not have.
fn direct(py: Python<'_>, op: &Named, plain: Direct, a: Ptr, b: Ptr) -> Ret<Ptr> {
    // SAFETY: operands of an operator, which the interpreter holds.
    if let (Some(Operand::Tensor(x)), Some(y)) = unsafe { (operand(py, a)?, operand(py, b)?) }
        && !big(&Operand::Tensor(x))
        && !big(&y)
        && !crate::profile::listens()
    {
        return wrap(py, plain(x, y)?);
    }
    binary(py, op, a, b)
}

macro_rules! direct_slots {
    ($($slot:ident: $name:literal, $plain:expr;)*) => {$(
        unsafe extern "C" fn $slot(a: Ptr, b: Ptr) -> Ptr {
            static OP: Named = Named::new($name);
            guard(|py| direct(py, &OP, $plain, a, b))
        }
    )*};
}
direct_slots! {
    add: "add", |x, y| x.add(y);
    subtract: "sub", |x, y| x.sub(y);
    true_divide: "div", |x, y| x.div(y);
}

binary_slots! {
    multiply: "mul"; floor_divide: "floor_divide"; remainder: "remainder";
    and: "bitwise_and"; or: "bitwise_or"; xor: "bitwise_xor"; lshift: "bitwise_left_shift"; rshift: "bitwise_right_shift";
}

unsafe extern "C" fn matrix_multiply(a: Ptr, b: Ptr) -> Ptr {
    static OP: Named = Named::new("matmul");
    // SAFETY: operands of an operator.
    guard(|py| {
        if unsafe { is_tensor(a) && is_tensor(b) } { OP.get()?.call(py, crate::op_function::given_of(&[a, b])) } else { not_implemented() }
    })
}

unsafe extern "C" fn power(a: Ptr, b: Ptr, modulus: Ptr) -> Ptr {
    static OP: Named = Named::new("pow");
    guard(|py| {
        // SAFETY: None is always there.
        if modulus != unsafe { ffi::Py_None() } {
            return not_implemented();
        }
        binary(py, &OP, a, b)
    })
}

macro_rules! inplace_slots {
    ($($slot:ident: $name:literal;)*) => {$(
        unsafe extern "C" fn $slot(a: Ptr, b: Ptr) -> Ptr {
            static OP: Named = Named::new($name);
            guard(|py| inplace(py, &OP, a, b))
        }
    )*};
}
inplace_slots! {
    inplace_add: "add_"; inplace_subtract: "sub_"; inplace_multiply: "mul_"; inplace_true_divide: "div_";
    inplace_floor_divide: "floor_divide_"; inplace_remainder: "remainder_"; inplace_and: "bitwise_and_"; inplace_or: "bitwise_or_";
    inplace_xor: "bitwise_xor_"; inplace_lshift: "bitwise_left_shift_"; inplace_rshift: "bitwise_right_shift_";
}

fn inplace(py: Python<'_>, op: &Named, a: Ptr, b: Ptr) -> Ret<Ptr> {
    let function = op.get()?;
    match function.try_call(py, &[a, b])? {
        Some(result) => Ok(result),
        None => mismatch(py, function, a, b),
    }
}

unsafe extern "C" fn inplace_power(a: Ptr, b: Ptr, _: Ptr) -> Ptr {
    static OP: Named = Named::new("pow_");
    guard(|py| inplace(py, &OP, a, b))
}

macro_rules! unary_slots {
    ($($slot:ident: $name:literal;)*) => {$(
        unsafe extern "C" fn $slot(a: Ptr) -> Ptr {
            static OP: Named = Named::new($name);
            guard(|py| OP.get()?.call(py, crate::op_function::given_of(&[a])))
        }
    )*};
}
unary_slots! { negative: "neg"; absolute: "abs"; }

unsafe extern "C" fn invert(a: Ptr) -> Ptr {
    static OP: Named = Named::new("bitwise_not");
    guard(|py| {
        // SAFETY: the interpreter gives an object of this type.
        if let Some(t) = unsafe { tensor_of(a) }
            && !t.dtype().is_integral()
        {
            return Err(type_error(format!(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on {}",
                t.dtype()
            )));
        }
        OP.get()?.call(py, crate::op_function::given_of(&[a]))
    })
}

unsafe extern "C" fn positive(a: Ptr) -> Ptr {
    // SAFETY: the operand.
    unsafe { ffi::Py_NewRef(a) }
}

unsafe extern "C" fn richcompare(a: Ptr, b: Ptr, op: c_int) -> Ptr {
    static OPS: [Named; 6] = [Named::new("lt"), Named::new("le"), Named::new("eq"), Named::new("ne"), Named::new("gt"), Named::new("ge")];
    guard(|py| binary(py, &OPS[op as usize], a, b))
}

/// The one value of a tensor, for Python's conversions.
///
/// # Safety
/// `obj` is an object of `TensorBase`, and the thread is attached.
unsafe fn value_of(obj: Ptr, what: &str) -> Ret<Scalar> {
    // SAFETY: the caller's.
    let t = unsafe { own_tensor(obj)? };
    if t.numel() != 1 {
        let text = format!("only one element tensors can be converted to Python scalars: {what} of shape {:?}", t.shape());
        return Err(value_error(text));
    }
    Ok(t.item()?)
}

unsafe extern "C" fn boolean(obj: Ptr) -> c_int {
    guard_int(|_| {
        // SAFETY: the slot is called with an object of the type.
        let t = unsafe { own_tensor(obj)? };
        match t.numel() {
            1 => Ok(t.item()?.to_bool().into()),
            0 => Err(runtime_error("Boolean value of Tensor with no values is ambiguous")),
            _ => Err(runtime_error("Boolean value of Tensor with more than one value is ambiguous: use .any() or .all()")),
        }
    })
}

unsafe extern "C" fn int(obj: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of the type.
        let value = unsafe { value_of(obj, "int()")? };
        // A float's own conversion raises for what is not finite, and keeps large ones whole.
        let number = crate::convert::scalar_ptr(py, value)?;
        // SAFETY: an owned reference.
        let number = unsafe { Bound::from_owned_ptr(py, number) };
        // SAFETY: an object.
        checked(py, unsafe { ffi::PyNumber_Long(number.as_ptr()) })
    })
}

unsafe extern "C" fn float(obj: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of the type.
        match unsafe { value_of(obj, "float()")? } {
            Scalar::Complex(z) if z.im != 0.0 => Err(runtime_error("value cannot be converted to type double without overflow")),
            value => crate::convert::scalar_ptr(py, Scalar::Float(value.to_f64())),
        }
    })
}

unsafe extern "C" fn index(obj: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of the type.
        let t = unsafe { own_tensor(obj)? };
        if t.numel() != 1 || !t.dtype().is_integral() {
            return Err(type_error(format!(
                "only integer tensors of a single element can be converted to an index: this one is {} of shape {:?}",
                t.dtype(),
                t.shape()
            )));
        }
        let n = match t.item()? {
            Scalar::Bool(b) => Scalar::Int(b.into()),
            other => other,
        };
        crate::convert::scalar_ptr(py, n)
    })
}

unsafe extern "C" fn length(obj: Ptr) -> ffi::Py_ssize_t {
    guarded(-1, |_| {
        // SAFETY: the slot is called with an object of the type.
        let t = unsafe { own_tensor(obj)? };
        match t.shape().first() {
            Some(&n) => Ok(n as ffi::Py_ssize_t),
            None => Err(type_error("len() of a 0-d tensor")),
        }
    })
}

/// The slots of the tensor type.
pub fn slots() -> Vec<ffi::PyType_Slot> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    vec![
        slot(ffi::Py_nb_add, add as *mut c_void),
        slot(ffi::Py_nb_subtract, subtract as *mut c_void),
        slot(ffi::Py_nb_multiply, multiply as *mut c_void),
        slot(ffi::Py_nb_true_divide, true_divide as *mut c_void),
        slot(ffi::Py_nb_floor_divide, floor_divide as *mut c_void),
        slot(ffi::Py_nb_remainder, remainder as *mut c_void),
        slot(ffi::Py_nb_power, power as *mut c_void),
        slot(ffi::Py_nb_matrix_multiply, matrix_multiply as *mut c_void),
        slot(ffi::Py_nb_and, and as *mut c_void),
        slot(ffi::Py_nb_or, or as *mut c_void),
        slot(ffi::Py_nb_xor, xor as *mut c_void),
        slot(ffi::Py_nb_lshift, lshift as *mut c_void),
        slot(ffi::Py_nb_rshift, rshift as *mut c_void),
        slot(ffi::Py_nb_inplace_add, inplace_add as *mut c_void),
        slot(ffi::Py_nb_inplace_subtract, inplace_subtract as *mut c_void),
        slot(ffi::Py_nb_inplace_multiply, inplace_multiply as *mut c_void),
        slot(ffi::Py_nb_inplace_true_divide, inplace_true_divide as *mut c_void),
        slot(ffi::Py_nb_inplace_floor_divide, inplace_floor_divide as *mut c_void),
        slot(ffi::Py_nb_inplace_remainder, inplace_remainder as *mut c_void),
        slot(ffi::Py_nb_inplace_power, inplace_power as *mut c_void),
        slot(ffi::Py_nb_inplace_and, inplace_and as *mut c_void),
        slot(ffi::Py_nb_inplace_or, inplace_or as *mut c_void),
        slot(ffi::Py_nb_inplace_xor, inplace_xor as *mut c_void),
        slot(ffi::Py_nb_inplace_lshift, inplace_lshift as *mut c_void),
        slot(ffi::Py_nb_inplace_rshift, inplace_rshift as *mut c_void),
        slot(ffi::Py_nb_negative, negative as *mut c_void),
        slot(ffi::Py_nb_positive, positive as *mut c_void),
        slot(ffi::Py_nb_absolute, absolute as *mut c_void),
        slot(ffi::Py_nb_invert, invert as *mut c_void),
        slot(ffi::Py_nb_bool, boolean as *mut c_void),
        slot(ffi::Py_nb_int, int as *mut c_void),
        slot(ffi::Py_nb_float, float as *mut c_void),
        slot(ffi::Py_nb_index, index as *mut c_void),
        slot(ffi::Py_tp_richcompare, richcompare as *mut c_void),
        slot(ffi::Py_mp_length, length as *mut c_void),
        slot(ffi::Py_tp_hash, hash as *mut c_void),
    ]
}

unsafe extern "C" fn hash(obj: Ptr) -> ffi::Py_hash_t {
    // By identity, as objects are; never -1, which is for errors.
    (obj as usize >> 4) as ffi::Py_hash_t
}
