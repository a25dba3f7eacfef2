//! Methods of tensors that are no operations: what tells about them, and what changes what they are.

use crate::attributes::int_ptr;
use crate::conversion;
use crate::convert::{int_of, ints_of, scalar_ptr};
use crate::error::*;
use crate::objects::MemoryFormatObject;
use crate::size::size_object;
use crate::tensor_type::*;
use flambeau_base::{DType, Device, DeviceKind, Layout, MemoryFormat, wrap_dim};
use flambeau_engine::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::ffi::{CStr, c_void};

/// What a method was given.
pub struct Call<'a, 'py> {
    /// For the interpreter.
    pub py: Python<'py>,
    /// The tensor.
    pub tensor: &'a Tensor,
    /// Its object.
    pub object: &'a Bound<'py, PyAny>,
    /// Positional arguments, then named ones.
    args: &'a [Ptr],
    positional: usize,
    names: Ptr,
}

impl<'py> Call<'_, 'py> {
    /// Argument `i`, by position or by name.
    pub fn arg(&self, i: usize, name: &str) -> Ret<Option<Bound<'py, PyAny>>> {
        if i < self.positional {
            // SAFETY: an argument, which the interpreter holds during the call.
            return Ok(Some(unsafe { Bound::from_borrowed_ptr(self.py, self.args[i]) }));
        }
        for k in self.positional..self.args.len() {
            // SAFETY: names is a tuple of as many strings as there are named arguments.
            let key = unsafe { Bound::from_borrowed_ptr(self.py, ffi::PyTuple_GetItem(self.names, (k - self.positional) as isize)) };
            if key.cast::<PyString>()?.to_str()? == name {
                // SAFETY: as above.
                return Ok(Some(unsafe { Bound::from_borrowed_ptr(self.py, self.args[k]) }));
            }
        }
        Ok(None)
    }

    /// The positional arguments.
    pub fn positional(&self) -> impl Iterator<Item = Bound<'py, PyAny>> {
        // SAFETY: arguments, which the interpreter holds during the call.
        self.args[..self.positional].iter().map(|&p| unsafe { Bound::from_borrowed_ptr(self.py, p) })
    }

    /// The named arguments.
    pub fn named(&self) -> Ret<Vec<(String, Bound<'py, PyAny>)>> {
        (self.positional..self.args.len())
            .map(|k| {
                // SAFETY: names is a tuple of as many strings as there are named arguments.
                let (key, value) = unsafe {
                    let key = Bound::from_borrowed_ptr(self.py, ffi::PyTuple_GetItem(self.names, (k - self.positional) as isize));
                    (key, Bound::from_borrowed_ptr(self.py, self.args[k]))
                };
                Ok((key.extract()?, value))
            })
            .collect()
    }

    /// Whether there is no argument at all.
    fn bare(&self) -> bool {
        self.args.is_empty()
    }

    /// An argument that must be there.
    pub fn need(&self, i: usize, name: &str, method: &str) -> Ret<Bound<'py, PyAny>> {
        self.arg(i, name)?.ok_or_else(|| type_error(format!("{method}() missing required argument '{name}' (pos {})", i + 1)))
    }

    /// All positional arguments as integers, or those of the one tuple among them.
    fn spread(&self, method: &str, name: &str) -> Ret<smallvec::SmallVec<[i64; 6]>> {
        if let Some(first) = self.arg(0, name)?
            && let Some(ints) = ints_of(self.py, first.as_ptr())?
        {
            return Ok(ints);
        }
        let wrong = |obj: Ptr| type_error(format!("{method}(): argument '{name}' must be tuple of ints, not {}", type_name(obj)));
        self.args[..self.positional].iter().map(|&x| int_of(self.py, x)?.ok_or_else(|| wrong(x))).collect()
    }

    fn itself(&self) -> Ret<Ptr> {
        Ok(self.object.clone().into_ptr())
    }
}

type Method = fn(&Call) -> Ret<Ptr>;

fn item(c: &Call) -> Ret<Ptr> {
    scalar_ptr(c.py, c.tensor.item()?)
}

fn size(c: &Call) -> Ret<Ptr> {
    match c.arg(0, "dim")? {
        Some(dim) if !dim.is_none() => {
            let dim = int_of(c.py, dim.as_ptr())?
                .ok_or_else(|| type_error(format!("size(): argument 'dim' must be int, not {}", type_name(dim.as_ptr()))))?;
            check_dim(c.tensor, dim)?;
            int_ptr(c.py, c.tensor.shape()[wrap_dim("size", dim, c.tensor.ndim())?])
        }
        _ => size_object(c.py, c.tensor.shape()),
    }
}

/// A dimension of a tensor without dimensions is not there.
fn check_dim(t: &Tensor, dim: i64) -> Ret<()> {
    if t.ndim() == 0 {
        return Err(Raised(pyo3::exceptions::PyIndexError::new_err(format!("Dimension specified as {dim} but tensor has no dimensions"))));
    }
    Ok(())
}

fn stride(c: &Call) -> Ret<Ptr> {
    match c.arg(0, "dim")? {
        Some(dim) if !dim.is_none() => {
            let dim: i64 = dim.extract()?;
            check_dim(c.tensor, dim)?;
            int_ptr(c.py, c.tensor.strides()[wrap_dim("stride", dim, c.tensor.ndim())?] as usize)
        }
        _ => Ok(PyTuple::new(c.py, c.tensor.strides())?.into_any().into_ptr()),
    }
}

fn bool_ptr(b: bool) -> Ret<Ptr> {
    // SAFETY: a plain constructor; callers hold the GIL.
    Ok(unsafe { ffi::PyBool_FromLong(b.into()) })
}

fn is_contiguous(c: &Call) -> Ret<Ptr> {
    if c.bare() {
        return bool_ptr(c.tensor.is_contiguous());
    }
    let format = match c.arg(0, "memory_format")? {
        Some(f) if !f.is_none() => f.cast::<MemoryFormatObject>()?.get().0,
        _ => MemoryFormat::Contiguous,
    };
    bool_ptr(c.tensor.layout().is_contiguous_in(format))
}

fn data_ptr(c: &Call) -> Ret<Ptr> {
    if c.tensor.device().is_meta() {
        return int_ptr(c.py, 0);
    }
    // Whoever asks may write there.
    int_ptr(c.py, if c.tensor.numel() == 0 { 0 } else { c.tensor.data_ptr_mut()? as usize })
}

fn requires_grad_(c: &Call) -> Ret<Ptr> {
    let on = match c.arg(0, "requires_grad")? {
        Some(on) => on.extract::<bool>()?,
        None => true,
    };
    c.tensor.set_requires_grad(on)?;
    c.itself()
}

fn set_(c: &Call) -> Ret<Ptr> {
    let Some(source) = c.arg(0, "source")? else {
        let empty = Tensor::empty(&[0], c.tensor.dtype(), c.tensor.device())?;
        return replace(c, empty.storage().clone(), empty.layout().clone());
    };
    if let Ok(t) = expect_tensor(&source) {
        if t.dtype() != c.tensor.dtype() {
            return Err(runtime_error(format!(
                "set_: Could not set tensor of type {} to a tensor of type {}",
                t.dtype(),
                c.tensor.dtype()
            )));
        }
        if c.arg(1, "storage_offset")?.is_none() {
            return replace(c, t.storage().clone(), t.layout().clone());
        }
    }
    let storage = crate::storage::storage_of(&source)?;
    let offset: i64 = c.arg(1, "storage_offset")?.map_or(Ok(0), |x| x.extract())?;
    let sizes = match c.arg(2, "size")? {
        Some(s) => ints_of(c.py, s.as_ptr())?.ok_or_else(|| type_error("set_(): argument 'size' must be tuple of ints"))?,
        None => smallvec::smallvec![(storage.nbytes() / c.tensor.dtype().size()) as i64],
    };
    let strides = match c.arg(3, "stride")? {
        Some(s) if !s.is_none() => ints_of(c.py, s.as_ptr())?,
        _ => None,
    };
    replace(c, storage, layout_of("set_", &sizes, strides.as_deref(), offset)?)
}

/// A layout of numbers that Python gave.
pub fn layout_of(op: &str, sizes: &[i64], strides: Option<&[i64]>, offset: i64) -> Ret<Layout> {
    let sizes: Vec<usize> = sizes
        .iter()
        .map(|&s| usize::try_from(s).map_err(|_| runtime_error(format!("{op}: negative size {s} in {sizes:?}"))))
        .collect::<Ret<_>>()?;
    let offset = usize::try_from(offset).map_err(|_| runtime_error(format!("{op}: negative storage offset {offset}")))?;
    match strides {
        None => Ok(Layout::contiguous(&sizes)?.with_offset(offset)),
        Some(strides) => {
            let strides: Vec<isize> = strides.iter().map(|&s| s as isize).collect();
            Ok(Layout::strided(op, &sizes, &strides, offset)?)
        }
    }
}

fn replace(c: &Call, storage: flambeau_engine::Storage, layout: Layout) -> Ret<Ptr> {
    if c.tensor.requires_grad() && flambeau_engine::autograd::is_grad_enabled() {
        return Err(runtime_error("set_: the tensor requires grad: wrap the change in no_grad()"));
    }
    // SAFETY: the GIL is held, and work done without it has aliases.
    unsafe { c.tensor.replace(storage, layout, c.tensor.dtype())? };
    c.itself()
}

fn resize_(c: &Call) -> Ret<Ptr> {
    if c.tensor.requires_grad() {
        return Err(runtime_error("cannot resize variables that require grad"));
    }
    let sizes = c.spread("resize_", "size")?;
    let layout = layout_of("resize_", &sizes, None, 0)?;
    if layout.sizes() != c.tensor.shape() {
        // SAFETY: as in `replace`.
        unsafe { c.tensor.resize(layout)? };
        c.tensor.bump_version();
    }
    c.itself()
}

fn detach_(c: &Call) -> Ret<Ptr> {
    if c.tensor.base().is_some() {
        return Err(runtime_error("Can't detach views in-place. Use detach() instead."));
    }
    c.tensor.forget_history();
    c.itself()
}

/// A new object of a class that looks at the memory of a tensor.
fn make_subclass(class: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>, requires_grad: bool) -> Ret<Ptr> {
    // SAFETY: objects; the first is asked whether it is a type before it is taken for one.
    let fits = unsafe { ffi::PyType_Check(class.as_ptr()) != 0 && ffi::PyType_IsSubtype(class.as_ptr().cast(), base_type()) != 0 };
    if !fits {
        return Err(type_error("cls must be a type derived from Tensor"));
    }
    let t = expect_tensor(data)?.alias();
    if requires_grad {
        t.set_requires_grad(true)?;
    }
    wrap_as(class.py(), t, class.as_ptr().cast())
}

unsafe extern "C" fn static_make_subclass(_: Ptr, args: *mut Ptr, n: ffi::Py_ssize_t) -> Ptr {
    guard(|py| {
        // SAFETY: the interpreter gives as many arguments as it says.
        let args = if n == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(args, n as usize) } };
        if args.len() < 2 {
            return Err(type_error("_make_subclass(cls, data, requires_grad=False)"));
        }
        // SAFETY: as above.
        let (class, data) = unsafe { (Bound::from_borrowed_ptr(py, args[0]), Bound::from_borrowed_ptr(py, args[1])) };
        // SAFETY: as above.
        let on = args.get(2).map_or(Ok(false), |x| unsafe { Bound::from_borrowed_ptr(py, *x) }.extract())?;
        make_subclass(&class, &data, on)
    })
}

fn to_list(c: &Call) -> Ret<Ptr> {
    crate::data::to_list(c.py, c.tensor)
}

fn contains(c: &Call) -> Ret<Ptr> {
    let element = c.need(0, "element", "__contains__")?;
    if expect_tensor(&element).is_err() && crate::convert::scalar_of(c.py, element.as_ptr())?.is_none() {
        let class = type_name(element.as_ptr());
        return Err(runtime_error(format!("Tensor.__contains__ only supports Tensor or scalar, but you passed in a {class}.")));
    }
    let equal = crate::op_function::call_named(c.py, "eq", &PyTuple::new(c.py, [c.object, &element])?)?;
    bool_ptr(equal.call_method0("any")?.is_truthy()?)
}

fn complex(c: &Call) -> Ret<Ptr> {
    if c.tensor.numel() != 1 {
        return Err(value_error("only one element tensors can be converted to Python scalars"));
    }
    scalar_ptr(c.py, flambeau_base::Scalar::Complex(c.tensor.item()?.to_complex()))
}

static METHODS: &[(&CStr, Method, &CStr)] = &[
    (c"item", item, c"The one value, as a Python number."),
    (c"tolist", to_list, c"The values as nested lists of Python numbers."),
    (c"size", size, c"The shape, or the size of one dimension."),
    (c"stride", stride, c"The strides in elements, or that of one dimension."),
    (c"dim", |c| int_ptr(c.py, c.tensor.ndim()), c"The number of dimensions."),
    (c"ndimension", |c| int_ptr(c.py, c.tensor.ndim()), c"The number of dimensions."),
    (c"numel", |c| int_ptr(c.py, c.tensor.numel()), c"The number of elements."),
    (c"nelement", |c| int_ptr(c.py, c.tensor.numel()), c"The number of elements."),
    (c"element_size", |c| int_ptr(c.py, c.tensor.dtype().size()), c"Bytes an element."),
    (c"storage_offset", |c| int_ptr(c.py, c.tensor.layout().offset()), c"Index in the storage of the first element."),
    (c"is_contiguous", is_contiguous, c"Whether the elements lie one after the other, in a memory format."),
    (c"data_ptr", data_ptr, c"The address of the first element."),
    (c"is_floating_point", |c| bool_ptr(c.tensor.dtype().is_float()), c"Whether the dtype is a real floating point type."),
    (c"is_complex", |c| bool_ptr(c.tensor.dtype().is_complex()), c"Whether the dtype is complex."),
    (c"is_signed", |c| bool_ptr(c.tensor.dtype().is_signed()), c"Whether the dtype holds negative numbers."),
    (c"is_inference", |c| bool_ptr(c.tensor.is_inference()), c"Whether it was made in inference mode."),
    (c"is_pinned", |_| bool_ptr(false), c"Whether its memory is pinned."),
    (c"is_shared", |_| bool_ptr(false), c"Whether its memory is shared between processes."),
    (
        c"get_device",
        |c| {
            if c.tensor.device().kind == DeviceKind::Cpu {
                scalar_ptr(c.py, (-1i64).into())
            } else {
                int_ptr(c.py, c.tensor.device().index.unwrap_or(0).into())
            }
        },
        c"The number of the device, -1 for the CPU.",
    ),
    (c"_is_view", |c| bool_ptr(c.tensor.base().is_some()), c"Whether it is a view of another tensor."),
    (
        c"is_set_to",
        |c| {
            let other = c.need(0, "tensor", "is_set_to")?;
            let other = expect_tensor(&other)?;
            bool_ptr(c.tensor.shares_storage(other) && c.tensor.layout() == other.layout())
        },
        c"Whether both look at the same memory in the same way.",
    ),
    (c"requires_grad_", requires_grad_, c"Asks for a gradient of this leaf, or does without."),
    (c"detach", |c| wrap(c.py, c.tensor.detach()?), c"The same values without history; shares memory."),
    (c"detach_", detach_, c"Forgets the history."),
    (
        c"retain_grad",
        |c| c.tensor.retain_grad().map_err(Raised::from).map(|()| none()),
        c"Keeps the gradient of a tensor that is not a leaf in its `grad`.",
    ),
    (
        c"register_hook",
        |c| crate::hooks::register(c.object, &c.need(0, "hook", "register_hook")?, false),
        c"Registers a function that sees the gradient, and may replace it.",
    ),
    (
        c"register_post_accumulate_grad_hook",
        |c| crate::hooks::register(c.object, &c.need(0, "hook", "register_post_accumulate_grad_hook")?, true),
        c"Registers a function that runs when this leaf's gradient has been accumulated.",
    ),
    (c"set_", set_, c"Looks at another storage."),
    (c"resize_", resize_, c"Takes another shape, with more memory where that is needed."),
    (c"untyped_storage", |c| crate::storage::storage_ptr(c.py, c.tensor.storage().clone()), c"The memory."),
    (c"_storage_id", |c| int_ptr(c.py, c.tensor.storage().id()), c"A number that tells storages apart."),
    (
        c"as_subclass",
        |c| {
            let class = c.need(0, "cls", "as_subclass")?;
            make_subclass(&class, c.object, false)
        },
        c"The same values as an object of a subclass.",
    ),
    (
        c"numpy",
        |c| crate::numpy::numpy(c.py, c.tensor, c.object, c.arg(0, "force")?.map_or(Ok(false), |x| x.is_truthy())?),
        c"A NumPy array on the same memory.",
    ),
    (c"__array__", |c| crate::numpy::array(c.py, c.tensor, c.object, c.arg(0, "dtype")?), c"For NumPy."),
    (c"to", conversion::to, c"The same values in another dtype, on another device, in another memory format."),
    (c"type", conversion::type_, c"The type's name, or the same values in another dtype."),
    (c"type_as", conversion::type_as, c"The same values in the dtype of another tensor."),
    (c"new_tensor", conversion::new_tensor, c"A tensor of data, of this tensor's dtype."),
    (c"cpu", |c| conversion::to_device(c, Device::CPU), c"The same values on the CPU."),
    (c"cuda", |c| conversion::to_device(c, Device { kind: DeviceKind::Cuda, index: None }), c"The same values on an NVIDIA GPU."),
    (c"float", |c| conversion::to_dtype(c, DType::F32), c"The same values as float32."),
    (c"double", |c| conversion::to_dtype(c, DType::F64), c"The same values as float64."),
    (c"half", |c| conversion::to_dtype(c, DType::F16), c"The same values as float16."),
    (c"bfloat16", |c| conversion::to_dtype(c, DType::BF16), c"The same values as bfloat16."),
    (c"int", |c| conversion::to_dtype(c, DType::I32), c"The same values as int32."),
    (c"long", |c| conversion::to_dtype(c, DType::I64), c"The same values as int64."),
    (c"short", |c| conversion::to_dtype(c, DType::I16), c"The same values as int16."),
    (c"char", |c| conversion::to_dtype(c, DType::I8), c"The same values as int8."),
    (c"byte", |c| conversion::to_dtype(c, DType::U8), c"The same values as uint8."),
    (c"bool", |c| conversion::to_dtype(c, DType::Bool), c"Whether the values differ from zero."),
    (c"cfloat", |c| conversion::to_dtype(c, DType::C64), c"The same values as complex64."),
    (c"cdouble", |c| conversion::to_dtype(c, DType::C128), c"The same values as complex128."),
    (c"__contains__", contains, c"Whether an element equals the argument."),
    (c"__complex__", complex, c"The one value, as a complex number."),
];

/// The name of a method is the closure of its entry: each has a trampoline that looks it up.
macro_rules! trampolines {
    ($($i:literal)*) => {
        [$({
            unsafe extern "C" fn call(obj: Ptr, args: *const Ptr, n: ffi::Py_ssize_t, names: Ptr) -> Ptr {
                // SAFETY: the caller's.
                unsafe { enter($i, obj, args, n, names) }
            }
            call
        },)*]
    };
}

type Trampoline = unsafe extern "C" fn(Ptr, *const Ptr, ffi::Py_ssize_t, Ptr) -> Ptr;

static TRAMPOLINES: [Trampoline; 72] = trampolines!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
    48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71
);

/// # Safety
/// Called by the interpreter with an object of the tensor type and its arguments.
#[inline]
unsafe fn enter(i: usize, obj: Ptr, args: *const Ptr, n: ffi::Py_ssize_t, names: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the caller's.
        unsafe {
            let named = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) as usize };
            let total = n as usize + named;
            let args = if total == 0 { &[][..] } else { std::slice::from_raw_parts(args, total) };
            let call = Call { py, tensor: own_tensor(obj)?, object: Bound::ref_from_ptr(py, &obj), args, positional: n as usize, names };
            (METHODS[i].1)(&call)
        }
    })
}

/// Whether the type has a method of this name that is no operation of the table.
pub fn is_native(name: &str) -> bool {
    METHODS.iter().any(|(n, ..)| n.to_bytes() == name.as_bytes())
}

/// The methods as the type wants them. Never freed.
pub fn methods() -> *mut c_void {
    assert!(METHODS.len() <= TRAMPOLINES.len(), "each method has its trampoline");
    let mut all: Vec<ffi::PyMethodDef> = METHODS
        .iter()
        .zip(TRAMPOLINES)
        .map(|((name, _, doc), f)| ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: f },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        })
        .collect();
    all.push(ffi::PyMethodDef {
        ml_name: c"_make_subclass".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: static_make_subclass },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_STATIC,
        ml_doc: c"A new object of a class that looks at the memory of a tensor.".as_ptr(),
    });
    all.push(ffi::PyMethodDef::zeroed());
    Box::leak(all.into_boxed_slice()).as_mut_ptr().cast()
}
