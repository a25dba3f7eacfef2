//! What PyTorch calls element types in its files.

use flambeau_base::DType;

/// Storage classes by the dtype that they stand for. Dtypes that came later have none: their storages are untyped,
/// and each tensor names its dtype.
const STORAGE_CLASSES: [(DType, &str); 12] = [
    (DType::Bool, "BoolStorage"),
    (DType::U8, "ByteStorage"),
    (DType::I8, "CharStorage"),
    (DType::I16, "ShortStorage"),
    (DType::I32, "IntStorage"),
    (DType::I64, "LongStorage"),
    (DType::F16, "HalfStorage"),
    (DType::BF16, "BFloat16Storage"),
    (DType::F32, "FloatStorage"),
    (DType::F64, "DoubleStorage"),
    (DType::C64, "ComplexFloatStorage"),
    (DType::C128, "ComplexDoubleStorage"),
];

/// The storage class of a dtype, in the module `torch`.
///
/// ```
/// use flambeau_base::DType;
/// use flambeau_io::pt::storage_class;
/// assert_eq!(storage_class(DType::BF16), Some("BFloat16Storage"));
/// assert_eq!(storage_class(DType::U16), None);
/// ```
pub fn storage_class(dtype: DType) -> Option<&'static str> {
    STORAGE_CLASSES.iter().find(|(d, _)| *d == dtype).map(|(_, name)| *name)
}

/// The dtype of a storage class.
pub(super) fn storage_dtype(class: &str) -> Option<DType> {
    STORAGE_CLASSES.iter().find(|(_, name)| *name == class).map(|(d, _)| *d)
}
