//! PyTorch's `.pt` files, read and written.
//!
//! A file is a pickle, in which tensors are calls and storages are references, and beside it the bytes of the
//! storages. [`PtFile`] reads the pickle as data, [`Build`] says what is to be made of it, and the bounds of every
//! tensor are checked before a byte is read for it. [`PtReader`] and [`PtWriter`] are the archive itself, for those
//! who bring their own pickle.

mod archive;
mod build;
mod file;
mod legacy;
mod load;
mod names;
mod save;
mod tensor;
mod writer;

pub use archive::{PtReader, ReadSeek};
pub use build::{Build, DictKind, MAX_DEPTH, build};
pub use file::{PtFile, Storages};
pub use load::{TensorLoader, load, load_mapped, load_state_dict, read};
pub use names::storage_class;
pub use save::{save, save_state_dict, write};
pub use tensor::{StorageInfo, TensorInfo};
pub use writer::{ALIGNMENT, PtWriter};
