//! The one error type.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What kind of mistake an error reports. Each is an exception class of Python.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// `RuntimeError`: the operation cannot be carried out on these values.
    Runtime,
    /// `IndexError`: a dimension or an index that is not there.
    Index,
    /// `TypeError`: an argument of the wrong type.
    Type,
    /// `ValueError`: an argument of the right type that cannot be used.
    Value,
    /// `NotImplementedError`: right, but not there (yet) for this dtype or device.
    NotImplemented,
    /// `OutOfMemoryError`: the memory is not there.
    OutOfMemory,
    /// `pickle.UnpicklingError`: a file that holds what may not be loaded.
    Unpickling,
    /// `OSError`: a file that cannot be read or written.
    Io,
    /// `AttributeError`: a name that is not there.
    Attribute,
    /// `linalg.LinAlgError`: a matrix that has no such factorisation, or an algorithm that does not converge.
    LinAlg,
}

/// An error that names the operation, the shapes and dtypes involved and what would fit.
///
/// ```
/// use flambeau_base::{Error, ErrorKind};
/// let error = Error::index("select: index 7 is out of range for dimension 0 of size 3");
/// assert_eq!(error.kind(), ErrorKind::Index);
/// assert!(error.to_string().contains("out of range"));
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    notes: Vec<String>,
    foreign: Option<Arc<dyn Any + Send + Sync>>,
}

/// A result whose error is an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind, with its text.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), notes: Vec::new(), foreign: None }))
    }

    /// The operation cannot be carried out on these values.
    #[cold]
    pub fn runtime(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Runtime, message)
    }

    /// A dimension or an index that is not there.
    #[cold]
    pub fn index(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Index, message)
    }

    /// An argument of the wrong type.
    #[cold]
    pub fn type_error(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Type, message)
    }

    /// An argument of the right type that cannot be used.
    #[cold]
    pub fn value(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Value, message)
    }

    /// Right, but not there (yet) for this dtype or device.
    #[cold]
    pub fn not_implemented(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotImplemented, message)
    }

    /// An error of a front end (a Python exception, say), carried through the engine untouched.
    #[cold]
    pub fn foreign(message: impl Into<String>, payload: Arc<dyn Any + Send + Sync>) -> Error {
        Error(Box::new(Inner { kind: ErrorKind::Runtime, message: message.into(), notes: Vec::new(), foreign: Some(payload) }))
    }

    /// What kind of mistake it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The same error with a line more, below its text: what was given and would fit, where programs know the text itself
    /// from PyTorch and look for it. Python shows it as a note of the exception (PEP 678).
    pub fn note(mut self, line: impl Into<String>) -> Error {
        self.0.notes.push(line.into());
        self
    }

    /// The lines of [`Error::note`].
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// What a front end gave to [`Error::foreign`].
    pub fn payload(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.0.foreign.as_ref()
    }

    /// The same error with a few words in front, such as the place where it happened.
    pub fn context(mut self, words: impl fmt::Display) -> Error {
        self.0.message = format!("{words}: {}", self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.notes.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, error.to_string())
    }
}
