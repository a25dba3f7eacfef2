//! Reads the archive of a `.pt` file.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config, ZipFile, ZipReadOptions};
use zip::result::ZipError;

use crate::error::{Error, Result, at_path, corrupt, unsupported};

/// What a `.pt` file can be read from.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// Pieces of this size stay in the second-level cache between being read, summed and copied.
pub(super) const CHUNK: u64 = 256 << 10;

/// How many bytes a compressed record is read in at a time: its announced size is not believed.
const STEP: usize = 1 << 20;

/// The records of a `.pt` file, read when asked for.
///
/// Checksums are verified, save where a file was written without any (all zero, an option of PyTorch's).
pub struct PtReader<R> {
    zip: ZipArchive<R>,
    /// The archive's folder, with a slash at its end.
    folder: String,
    /// The length of the whole file.
    length: u64,
}

impl PtReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// `OSError` where the system refuses; as [`new`](Self::new).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| at_path(path, e))?;
        Self::new(BufReader::new(file)).map_err(|e| e.context(path.display()))
    }
}

impl<R: Read + Seek> PtReader<R> {
    /// Reads the table of contents.
    ///
    /// # Errors
    /// Where the input is no `.pt` archive, or is cut short (the table of contents is at its end).
    pub fn new(mut reader: R) -> Result<Self> {
        let length = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        // An archive begins where the file does. Looked for elsewhere, it was not found where an alignment made the table of
        // contents begin at certain places: for file names of 21 letters.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let zip = ZipArchive::with_config(config, reader).map_err(|e| match e {
            ZipError::Io(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => Error::from(e),
            e => corrupt(format_args!("the archive's table of contents cannot be read: the file is cut short or damaged ({e})")),
        })?;
        let folder = zip
            .file_names_raw()
            .filter_map(|name| Some(std::str::from_utf8(name).ok()?.strip_suffix("data.pkl")?.to_owned()))
            .find(|folder| folder.ends_with('/') && folder.matches('/').count() == 1);
        match folder {
            Some(folder) => Ok(Self { zip, folder, length }),
            None => Err(corrupt("the zip archive holds no data.pkl, so PyTorch's save did not write it")),
        }
    }

    /// The names of all records, without the archive's folder.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.zip.file_names_raw().filter_map(|name| std::str::from_utf8(name).ok()?.strip_prefix(&self.folder))
    }

    /// Whether there is a record of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// How many bytes a record claims to have.
    ///
    /// # Errors
    /// Where there is no such record.
    pub fn size(&self, name: &str) -> Result<u64> {
        let index = self.index(name).ok_or_else(|| missing(name))?;
        Ok(self.zip.by_index_data(index).map_err(|e| broken(name, e))?.size())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Where there is no such record, or it is cut short or damaged. Memory follows what is really there.
    pub fn record(&mut self, name: &str) -> Result<Vec<u8>> {
        let size = self.available(name)?;
        let mut out = Vec::new();
        let mut file = self.entry(name)?;
        let limit = file.size();
        out.try_reserve_exact(size as usize).map_err(|_| no_memory(name, size))?;
        (&mut file).take(limit.saturating_add(1)).read_to_end(&mut out).map_err(|e| damaged(name, e))?;
        if out.len() as u64 != limit {
            return Err(damaged(name, format_args!("{} bytes of {limit}", out.len())));
        }
        Ok(out)
    }

    /// Reads a record of as many bytes as `out` has.
    ///
    /// # Errors
    /// As [`record`](Self::record), and where the record has another size.
    pub fn record_into(&mut self, name: &str, out: &mut [u8]) -> Result<()> {
        let mut rest = &mut *out;
        self.record_chunks(name, rest.len() as u64, |chunk| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(chunk.len());
            now.copy_from_slice(chunk);
            rest = later;
        })
    }

    /// Reads a record of `size` bytes piece by piece, in pieces that stay in the cache. Each has a length that is a
    /// multiple of 16, save for the last.
    ///
    /// # Errors
    /// As [`record`](Self::record), and where the record has another size. Pieces have been given out by then.
    pub fn record_chunks(&mut self, name: &str, size: u64, mut give: impl FnMut(&mut [u8])) -> Result<()> {
        let mut file = self.entry(name)?;
        if file.size() != size {
            return Err(damaged(name, format_args!("{} bytes, {size} expected", file.size())));
        }
        let mut buffer = vec![0; size.min(CHUNK) as usize];
        let mut left = size;
        while left > 0 {
            let chunk = &mut buffer[..left.min(CHUNK) as usize];
            file.read_exact(chunk).map_err(|e| damaged(name, e))?;
            left -= chunk.len() as u64;
            give(chunk);
        }
        // The checksum is compared at the end of the data, which has to be met.
        match file.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(damaged(name, "longer than announced")),
            Err(e) => Err(damaged(name, e)),
        }
    }

    /// Where in the file a record's bytes are, if they are there as they are: not compressed, not beyond the end.
    ///
    /// # Errors
    /// Where there is no such record, or its header is damaged.
    pub fn position(&mut self, name: &str) -> Result<Option<std::ops::Range<u64>>> {
        let file = self.entry(name)?;
        let (Some(start), size) = (file.data_start(), file.size()) else {
            return Ok(None);
        };
        let stored = file.compression() == zip::CompressionMethod::Stored && file.compressed_size() == size;
        drop(file);
        let end = start.checked_add(size).filter(|&end| end <= self.length);
        Ok(end.filter(|_| stored).map(|end| start..end))
    }

    /// Gives back what is read from.
    pub fn into_inner(self) -> R {
        self.zip.into_inner()
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.zip.index_for_name(&format!("{}{name}", self.folder))
    }

    fn entry(&mut self, name: &str) -> Result<ZipFile<'_, R>> {
        let index = self.index(name).ok_or_else(|| missing(name))?;
        let unchecked = self.zip.by_index_data(index).map_err(|e| broken(name, e))?.crc32() == 0;
        let options = ZipReadOptions::new().ignore_crc32(unchecked);
        self.zip.by_index_with_options(index, options).map_err(|e| broken(name, e))
    }

    /// How much memory to ask for at once: all where the bytes are in the file, little where they are compressed.
    fn available(&mut self, name: &str) -> Result<u64> {
        let size = self.size(name)?;
        match self.position(name)? {
            Some(_) => Ok(size),
            None => Ok(size.min(STEP as u64)),
        }
    }
}

#[cold]
fn missing(name: &str) -> Error {
    corrupt(format_args!("the archive has no record '{name}'"))
}

#[cold]
fn damaged(name: &str, what: impl std::fmt::Display) -> Error {
    corrupt(format_args!("record '{name}' is cut short or damaged: {what}"))
}

#[cold]
fn broken(name: &str, error: ZipError) -> Error {
    match error {
        ZipError::UnsupportedArchive(what) => unsupported(format_args!("record '{name}': {what}")),
        ZipError::CompressionMethodNotSupported(method) => {
            unsupported(format_args!("record '{name}' is compressed by method {method}; stored and deflated can be read"))
        }
        error => damaged(name, error),
    }
}

#[cold]
fn no_memory(name: &str, size: u64) -> Error {
    Error::new(flambeau_base::ErrorKind::OutOfMemory, format!("record '{name}' needs {size} bytes, which are not there"))
}
