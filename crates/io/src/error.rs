//! The errors of files, in one place so that all formats speak alike.

pub use flambeau_base::{Error, Result};

use std::fmt::Display;
use std::path::Path;

use flambeau_base::ErrorKind;

/// A pickle whose bytes make no sense, with the place.
#[cold]
pub(crate) fn corrupt_pickle(at: usize, what: impl Display) -> Error {
    Error::new(ErrorKind::Unpickling, format!("pickle: at byte {at}: {what}"))
}

/// A pickle that is well-formed and holds what a checkpoint may not hold.
#[cold]
pub(crate) fn unpickling(what: impl Display) -> Error {
    Error::new(ErrorKind::Unpickling, what.to_string())
}

/// A file whose bytes make no sense.
#[cold]
pub(crate) fn corrupt(what: impl Display) -> Error {
    Error::new(ErrorKind::Runtime, what.to_string())
}

/// A file that is right, and holds what is not there (yet).
#[cold]
pub(crate) fn unsupported(what: impl Display) -> Error {
    Error::new(ErrorKind::NotImplemented, what.to_string())
}

/// A file that the system does not give or take.
#[cold]
pub(crate) fn at_path(path: &Path, error: std::io::Error) -> Error {
    Error::from(error).context(path.display())
}
