//! A `.pt` file of either format: a pickle, and storages that are read when asked for.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use flambeau_base::DType;

use super::archive::PtReader;
use super::build::{Build, build};
use super::legacy::Legacy;
use super::tensor::StorageInfo;
use crate::error::{Error, Result, at_path, corrupt};
use crate::pickle::{Pickle, parse};

/// A `.pt` file, opened: its pickle has been read, and none of its storages.
///
/// Both formats are read: the zip archive, and the sequence of pickles that PyTorch wrote before 1.6.
///
/// ```
/// use flambeau_io::pt::{PtFile, PtWriter};
/// let mut bytes = Vec::new();
/// let mut writer = PtWriter::new(&mut bytes, "archive");
/// writer.pickle(b"\x80\x02K\x07.")?;
/// writer.finish()?;
/// let file = PtFile::new(std::io::Cursor::new(bytes))?;
/// assert_eq!(file.pickle().root(), flambeau_io::pickle::Value::Int(7));
/// # Ok::<(), flambeau_io::Error>(())
/// ```
pub struct PtFile<R> {
    pickle: Pickle,
    source: Source<R>,
    /// Whether storages are in the other byte order than this machine's.
    swapped: bool,
}

enum Source<R> {
    Zip(Box<PtReader<R>>),
    Legacy(Legacy<R>),
}

impl PtFile<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`new`](Self::new); `OSError` where the system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| at_path(path, e))?;
        Self::new(BufReader::new(file)).map_err(|e| e.context(path.display()))
    }
}

impl<R: Read + Seek> PtFile<R> {
    /// Reads the pickle of a file.
    ///
    /// # Errors
    /// Where it is no file of PyTorch's (saying what else it seems to be), is cut short or damaged.
    pub fn new(mut reader: R) -> Result<Self> {
        let mut start = [0; 16];
        let length = read_start(&mut reader, &mut start)?;
        match &start[..length] {
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Self::zip(PtReader::new(reader)?),
            [0x80, ..] => {
                let (pickle, legacy) = Legacy::new(reader)?;
                let swapped = legacy.little_endian != cfg!(target_endian = "little");
                Ok(Self { pickle, source: Source::Legacy(legacy), swapped })
            }
            other => Err(stranger(other)),
        }
    }

    /// Reads the pickle of an archive.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn zip(mut reader: PtReader<R>) -> Result<Self> {
        if reader.contains("constants.pkl") {
            return Err(corrupt("load: this is a TorchScript archive, which holds a program; only saved tensors can be loaded"));
        }
        let pickle = parse(&reader.record("data.pkl")?).map_err(|e| e.context("load"))?;
        let little = match reader.contains("byteorder") {
            true => match reader.record("byteorder")?.as_slice() {
                b"little" => true,
                b"big" => false,
                _ => {
                    return Err(corrupt("load: the archive's byte order is neither little nor big"));
                }
            },
            // Files from before the record came are from little-endian machines.
            false => true,
        };
        Ok(Self { pickle, source: Source::Zip(Box::new(reader)), swapped: little != cfg!(target_endian = "little") })
    }

    /// The pickle: everything but the numbers.
    pub fn pickle(&self) -> &Pickle {
        &self.pickle
    }

    /// The pickle's bytes, for those who bring a reader of their own. It must not run what the file names.
    ///
    /// # Errors
    /// Where the file cannot be read again.
    pub fn pickle_bytes(&mut self) -> Result<Vec<u8>> {
        match &mut self.source {
            Source::Zip(reader) => reader.record("data.pkl"),
            Source::Legacy(legacy) => legacy.pickle_bytes(),
        }
    }

    /// The storages alone.
    pub fn into_storages(self) -> Storages<R> {
        Storages { source: self.source, swapped: self.swapped }
    }

    /// Makes the objects. The builder is given the file, to read storages from.
    ///
    /// # Errors
    /// As [`build`].
    pub fn build<B: Build>(self, builder: impl FnOnce(Storages<R>) -> B) -> Result<B::Out> {
        build(&self.pickle, &mut builder(Storages { source: self.source, swapped: self.swapped }))
    }
}

/// The storages of a `.pt` file.
pub struct Storages<R> {
    source: Source<R>,
    swapped: bool,
}

impl<R: Read + Seek> Storages<R> {
    /// Checks that the file holds a storage in full, before memory is taken for it.
    ///
    /// # Errors
    /// Where there is no such storage, or it is shorter than the pickle says.
    pub fn check(&mut self, info: &StorageInfo) -> Result<()> {
        let there = match &mut self.source {
            Source::Zip(reader) => reader.size(&record(info))?,
            Source::Legacy(legacy) => legacy.position(info).map(|range| range.end - range.start)?,
        };
        if there == info.nbytes {
            return Ok(());
        }
        Err(corrupt(format_args!(
            "load: storage '{}' should have {} bytes and has {there}: the file is cut short or damaged",
            info.key, info.nbytes
        )))
    }

    /// Reads a storage, in this machine's byte order. `element` is the dtype where the storage itself has none.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn read(&mut self, info: &StorageInfo, element: DType) -> Result<Vec<u8>> {
        self.check(info)?;
        let mut bytes = match &mut self.source {
            Source::Zip(reader) => reader.record(&record(info))?,
            Source::Legacy(legacy) => {
                let mut bytes = Vec::with_capacity(info.nbytes as usize);
                legacy.read_chunks(info, |chunk| bytes.extend_from_slice(chunk))?;
                bytes
            }
        };
        turn(&mut bytes, self.width(info, element));
        Ok(bytes)
    }

    /// Reads a storage piece by piece, see [`PtReader::record_chunks`]. For a storage that is compressed in the file,
    /// prefer [`read`](Self::read), whose memory follows what is really there.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn read_chunks(&mut self, info: &StorageInfo, element: DType, mut give: impl FnMut(&[u8])) -> Result<()> {
        self.check(info)?;
        let width = self.width(info, element);
        let give = |chunk: &mut [u8]| {
            turn(chunk, width);
            give(chunk);
        };
        match &mut self.source {
            Source::Zip(reader) => reader.record_chunks(&record(info), info.nbytes, give),
            Source::Legacy(legacy) => legacy.read_chunks(info, give),
        }
    }

    /// Where in the file a storage's bytes are, if they can be used as they are.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn position(&mut self, info: &StorageInfo) -> Result<Option<Range<u64>>> {
        self.check(info)?;
        if self.swapped {
            return Ok(None);
        }
        match &mut self.source {
            Source::Zip(reader) => reader.position(&record(info)),
            Source::Legacy(legacy) => legacy.position(info).map(Some),
        }
    }

    /// The width of what has to be turned around; 1 if nothing has.
    fn width(&self, info: &StorageInfo, element: DType) -> usize {
        if self.swapped { info.dtype.unwrap_or(element).to_real().size() } else { 1 }
    }
}

/// Changes the byte order of numbers of `width` bytes.
fn turn(bytes: &mut [u8], width: usize) {
    if width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}

fn record(info: &StorageInfo) -> String {
    format!("data/{}", info.key)
}

/// Reads up to as many bytes as `out` has from the start, and goes back there.
fn read_start<R: Read + Seek>(reader: &mut R, out: &mut [u8]) -> Result<usize> {
    reader.seek(SeekFrom::Start(0))?;
    let mut length = 0;
    while length < out.len() {
        match reader.read(&mut out[length..])? {
            0 => break,
            n => length += n,
        }
    }
    reader.seek(SeekFrom::Start(0))?;
    Ok(length)
}

/// What a file seems to be that is none of PyTorch's.
#[cold]
fn stranger(start: &[u8]) -> Error {
    let what = match start {
        [] => "it is empty",
        [b'v', b'e', b'r', b's', b'i', b'o', b'n', b' ', ..] => "it seems to be a Git LFS pointer: the file itself has not been fetched",
        [b'<', ..] => "it seems to be a web page",
        [_, _, _, _, _, _, _, 0, b'{', ..] => "it seems to be a safetensors file: use the safetensors functions",
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "it seems to be a NumPy file",
        _ => "it begins with neither a zip archive nor a pickle",
    };
    corrupt(format_args!("load: this is no file that PyTorch's save wrote: {what}"))
}
