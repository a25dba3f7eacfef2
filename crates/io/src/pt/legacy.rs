//! The format of PyTorch before 1.6: pickles one after another, then the storages.
//!
//! In order: a magic number, the version 1001, a description of the machine, the objects, the list of the storages'
//! keys, and for each key a count of elements (8 bytes, little-endian) and the elements.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use super::archive::CHUNK;
use super::tensor::{StorageInfo, storage};
use crate::error::{Error, Result, corrupt, unsupported};
use crate::pickle::{Node, Pickle, Value, parse_prefix};

const MAGIC: &[u8] = &[0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// Where the storages of a file are.
pub(super) struct Legacy<R> {
    reader: R,
    places: HashMap<String, Range<u64>>,
    /// Where the pickle of the objects is.
    pickle: Range<usize>,
    pub(super) little_endian: bool,
}

impl<R: Read + Seek> Legacy<R> {
    /// Reads everything but the storages.
    pub(super) fn new(mut reader: R) -> Result<(Pickle, Self)> {
        let length = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        let mut pickles = Pickles { reader: &mut reader, read: Vec::new(), at: 0 };
        let magic = pickles.next()?;
        if !matches!(magic.get(magic.root()), Some(Node::BigInt(digits)) if **digits == *MAGIC) {
            return Err(corrupt("load: this is a pickle, and none that PyTorch's save wrote"));
        }
        let version = pickles.next()?.root();
        if version != Value::Int(1001) {
            return Err(unsupported(format_args!("load: the legacy format's version {version:?}; 1001 is known")));
        }
        let little_endian = little_endian(&pickles.next()?)?;
        let start = pickles.at;
        let pickle = pickles.next()?;
        let place = start..pickles.at;
        let keys = pickles.next()?;
        let mut at = pickles.at as u64;

        let sizes = element_sizes(&pickle)?;
        let mut places = HashMap::new();
        let keys_list = keys.list(keys.root()).ok_or_else(|| corrupt("load: the storages' keys are no list"))?;
        for &key in keys_list {
            let key = keys.as_str(key).ok_or_else(|| corrupt("load: a storage's key is no text"))?;
            let size = *sizes.get(key).ok_or_else(|| corrupt(format_args!("load: no tensor uses storage '{key}'")))?;
            reader.seek(SeekFrom::Start(at))?;
            let mut count = [0; 8];
            reader.read_exact(&mut count).map_err(|_| cut(key))?;
            let count = u64::from_le_bytes(count);
            let end = count.checked_mul(size).and_then(|bytes| (at + 8).checked_add(bytes));
            let end = end.filter(|&end| end <= length).ok_or_else(|| cut(key))?;
            places.insert(key.to_owned(), at + 8..end);
            at = end;
        }
        Ok((pickle, Self { reader, places, pickle: place, little_endian }))
    }

    pub(super) fn pickle_bytes(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.pickle.len()];
        self.reader.seek(SeekFrom::Start(self.pickle.start as u64))?;
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn position(&self, info: &StorageInfo) -> Result<Range<u64>> {
        self.places.get(&info.key).cloned().ok_or_else(|| corrupt(format_args!("load: the file has no storage '{}'", info.key)))
    }

    /// Reads a storage piece by piece. Its place has been found to lie within the file.
    pub(super) fn read_chunks(&mut self, info: &StorageInfo, mut give: impl FnMut(&mut [u8])) -> Result<()> {
        let place = self.position(info)?;
        self.reader.seek(SeekFrom::Start(place.start))?;
        let mut left = place.end - place.start;
        let mut buffer = vec![0; left.min(CHUNK) as usize];
        while left > 0 {
            let chunk = &mut buffer[..left.min(CHUNK) as usize];
            self.reader.read_exact(chunk).map_err(|_| cut(&info.key))?;
            left -= chunk.len() as u64;
            give(chunk);
        }
        Ok(())
    }
}

fn little_endian(machine: &Pickle) -> Result<bool> {
    let pairs = machine.dict(machine.root()).ok_or_else(|| corrupt("load: the description of the machine is no dict"))?;
    let little = pairs.iter().find(|(key, _)| machine.as_str(*key) == Some("little_endian"));
    Ok(!matches!(little, Some((_, Value::Bool(false)))))
}

/// The bytes of an element, storage by storage: what follows the pickles does not say them.
fn element_sizes(pickle: &Pickle) -> Result<HashMap<String, u64>> {
    let mut sizes = HashMap::new();
    for node in pickle.nodes() {
        if let Node::Persistent(id) = node {
            // Storages are ('storage', ...); other references ('module', ...) belong to programs, which are refused
            // where they are met.
            if pickle.as_tuple(*id).and_then(|parts| pickle.as_str(*parts.first()?)) == Some("storage") {
                let info = storage(pickle, *id)?;
                sizes.insert(info.key, info.dtype.map_or(1, |dtype| dtype.size() as u64));
            }
        }
    }
    Ok(sizes)
}

/// Pickles one after another, whose lengths are known only when they are read.
struct Pickles<'a, R> {
    reader: &'a mut R,
    read: Vec<u8>,
    at: usize,
}

impl<R: Read> Pickles<'_, R> {
    fn next(&mut self) -> Result<Pickle> {
        loop {
            match parse_prefix(&self.read[self.at..]) {
                Ok((pickle, length)) => {
                    self.at += length;
                    return Ok(pickle);
                }
                // Too little may have been read: try again with twice as much, until there is no more.
                Err(error) => {
                    let more = self.read.len().max(1 << 16) as u64;
                    if self.reader.by_ref().take(more).read_to_end(&mut self.read)? == 0 {
                        return Err(error.context("load"));
                    }
                }
            }
        }
    }
}

#[cold]
fn cut(key: &str) -> Error {
    corrupt(format_args!("load: storage '{key}' reaches beyond the end of the file, which is cut short"))
}
