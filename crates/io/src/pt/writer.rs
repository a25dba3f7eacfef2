//! Writes the archive of a `.pt` file: a zip file with stored records, each aligned for mapping.
//!
//! The layout is the one that PyTorch 2.15 writes, byte for byte (measured on its files), save for the serialization
//! id, which is made from the contents and so is the same for the same file. Source of the zip structures: PKWARE's
//! APPNOTE 6.3.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::{Result, at_path, corrupt, unsupported};

/// Storages begin at multiples of this, so that a mapped file can be computed on.
pub const ALIGNMENT: u64 = 64;

/// From here on sizes and offsets need the 64-bit fields.
const WIDE: u64 = u32::MAX as u64;

/// While a checksum is taken and written, the data should stay in the second-level cache.
const CHUNK: usize = 256 << 10;

/// The flag that names are UTF-8.
const UTF8: u16 = 0x0800;

/// The flag that checksum and sizes follow the data. An empty record has nothing that could follow.
const DESCRIBED: u16 = 0x0008;

struct Entry {
    name: String,
    crc: u32,
    size: u64,
    offset: u64,
}

impl Entry {
    fn flags(&self) -> u16 {
        if self.size > 0 { UTF8 | DESCRIBED } else { UTF8 }
    }
}

/// Writes a `.pt` file record by record. The pickle comes first, then the storages, then [`finish`](Self::finish).
///
/// ```
/// use flambeau_io::pt::{PtReader, PtWriter};
/// let mut file = Vec::new();
/// let mut writer = PtWriter::new(&mut file, "archive");
/// writer.pickle(b"\x80\x02N.")?;
/// writer.storage("0", &[1, 2, 3, 4])?;
/// writer.finish()?;
///
/// let mut reader = PtReader::new(std::io::Cursor::new(file))?;
/// assert_eq!(reader.record("data/0")?, [1, 2, 3, 4]);
/// # Ok::<(), flambeau_io::Error>(())
/// ```
pub struct PtWriter<W: Write> {
    out: BufWriter<W>,
    at: u64,
    stem: String,
    entries: Vec<Entry>,
    padding: Vec<u8>,
}

impl PtWriter<File> {
    /// Creates a file, or empties the one that is there.
    ///
    /// # Errors
    /// `OSError` where the system refuses.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::create(path).map_err(|e| at_path(path, e))?;
        let stem = path.file_stem().map_or_else(|| "archive".into(), |stem| stem.to_string_lossy());
        Ok(Self::new(file, &stem))
    }
}

impl<W: Write> PtWriter<W> {
    /// Writes to `out`. The folder within the archive is `stem`: a file's name without its extension, or `archive`.
    pub fn new(out: W, stem: &str) -> Self {
        let stem = if stem.is_empty() { "archive" } else { stem };
        Self { out: BufWriter::new(out), at: 0, stem: stem.into(), entries: Vec::new(), padding: Vec::new() }
    }

    /// Writes the pickle of everything but the numbers, and the records that say how to read the rest.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn pickle(&mut self, bytes: &[u8]) -> Result<()> {
        self.record("data.pkl", bytes)?;
        self.record(".format_version", b"1")?;
        self.record(".storage_alignment", ALIGNMENT.to_string().as_bytes())?;
        self.record("byteorder", if cfg!(target_endian = "little") { b"little" } else { b"big" })
    }

    /// Writes the bytes of a storage, in this machine's byte order.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn storage(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        self.record(&format!("data/{key}"), bytes)
    }

    /// Writes a record.
    ///
    /// # Errors
    /// `OSError` where the system refuses; where the name is longer than 65,535 bytes or is there already.
    pub fn record(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let name = format!("{}/{name}", self.stem);
        let name_length = u16::try_from(name.len()).map_err(|_| unsupported(format_args!("a record's name has {} bytes", name.len())))?;
        // Only a record that Rust code names freely can collide; storages are numbered.
        if !name.contains("/data/") && self.entries.iter().any(|entry| entry.name == name) {
            return Err(corrupt(format_args!("record {name} is written twice")));
        }
        let mut entry = Entry { name, crc: 0, size: bytes.len() as u64, offset: self.at };
        self.header(&entry, name_length)?;
        let mut crc = crc32fast::Hasher::new();
        for chunk in bytes.chunks(CHUNK) {
            crc.update(chunk);
            self.put(chunk)?;
        }
        entry.crc = crc.finalize();
        self.descriptor(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the table of contents and gives back what was written to.
    ///
    /// # Errors
    /// `OSError` where the system refuses.
    pub fn finish(mut self) -> Result<W> {
        self.record("version", b"3\n")?;
        let id = self.serialization_id();
        self.record(".data/serialization_id", id.as_bytes())?;
        let start = self.at;
        let entries = std::mem::take(&mut self.entries);
        for entry in &entries {
            self.directory_entry(entry)?;
        }
        self.end(entries.len() as u64, start)?;
        self.out.into_inner().map_err(|error| error.into_error().into())
    }

    fn header(&mut self, entry: &Entry, name_length: u16) -> Result<()> {
        let extra = self.extra(name_length.into(), entry.size);
        let sizes = if entry.size >= WIDE { u32::MAX } else { 0 };
        self.put(b"PK\x03\x04")?;
        self.put_u16(&[0, entry.flags(), 0, 0, 0])?;
        self.put_u32(&[0, sizes, sizes])?;
        self.put_u16(&[name_length, extra.len() as u16])?;
        self.put(entry.name.as_bytes())?;
        self.put(&extra)?;
        self.padding = extra;
        Ok(())
    }

    fn descriptor(&mut self, entry: &Entry) -> Result<()> {
        if entry.size == 0 {
            return Ok(());
        }
        self.put(b"PK\x07\x08")?;
        self.put_u32(&[entry.crc])?;
        if entry.size >= WIDE { self.put_u64(&[entry.size, entry.size]) } else { self.put_u32(&[entry.size as u32, entry.size as u32]) }
    }

    /// The extra field of a local header: sizes where they are wide, and what moves the data to a multiple of 64.
    fn extra(&mut self, name_length: u64, size: u64) -> Vec<u8> {
        let mut extra = std::mem::take(&mut self.padding);
        extra.clear();
        if size >= WIDE {
            extra.extend([1, 0, 16, 0]);
            extra.extend(size.to_le_bytes());
            extra.extend(size.to_le_bytes());
        }
        let start = self.at + 30 + name_length + extra.len() as u64 + 4;
        let padding = (start.next_multiple_of(ALIGNMENT) - start) as u16;
        extra.extend(b"FB");
        extra.extend(padding.to_le_bytes());
        extra.extend(std::iter::repeat_n(b'Z', padding.into()));
        extra
    }

    fn directory_entry(&mut self, entry: &Entry) -> Result<()> {
        let (wide, far) = (entry.size >= WIDE, entry.offset >= WIDE);
        let mut extra = Vec::new();
        if wide || far {
            let length = if wide { 16 } else { 0 } + if far { 8 } else { 0 };
            extra.extend([1, 0, length, 0]);
            if wide {
                extra.extend(entry.size.to_le_bytes());
                extra.extend(entry.size.to_le_bytes());
            }
            if far {
                extra.extend(entry.offset.to_le_bytes());
            }
        }
        let size = if wide { u32::MAX } else { entry.size as u32 };
        self.put(b"PK\x01\x02")?;
        self.put_u16(&[0, 0, entry.flags(), 0, 0, 0])?;
        self.put_u32(&[entry.crc, size, size])?;
        self.put_u16(&[entry.name.len() as u16, extra.len() as u16, 0, 0, 0])?;
        self.put_u32(&[0, if far { u32::MAX } else { entry.offset as u32 }])?;
        self.put(entry.name.as_bytes())?;
        self.put(&extra)
    }

    fn end(&mut self, count: u64, start: u64) -> Result<()> {
        let (size, end) = (self.at - start, self.at);
        self.put(b"PK\x06\x06")?;
        self.put_u64(&[44])?;
        self.put_u16(&[0x031e, 0x002d])?;
        self.put_u32(&[0, 0])?;
        self.put_u64(&[count, count, size, start])?;
        self.put(b"PK\x06\x07")?;
        self.put_u32(&[0])?;
        self.put_u64(&[end])?;
        self.put_u32(&[1])?;

        let short = count.min(u16::MAX.into()) as u16;
        self.put(b"PK\x05\x06")?;
        self.put_u16(&[0, 0, short, short])?;
        self.put_u32(&[size.min(WIDE) as u32, start.min(WIDE) as u32])?;
        self.put_u16(&[0])
    }

    /// Forty digits that tell contents apart: half from the names, half from the checksums.
    fn serialization_id(&self) -> String {
        let fold = |hash: u64, bytes: &[u8]| bytes.iter().fold(hash, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
        let basis = 0xcbf2_9ce4_8422_2325;
        let names = self.entries.iter().fold(basis, |hash, entry| fold(hash, entry.name.as_bytes()));
        let data = self.entries.iter().fold(basis, |hash, entry| fold(hash, &entry.crc.to_le_bytes()));
        format!("{names:020}{data:020}")
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn put_u16(&mut self, values: &[u16]) -> Result<()> {
        values.iter().try_for_each(|v| self.put(&v.to_le_bytes()))
    }

    fn put_u32(&mut self, values: &[u32]) -> Result<()> {
        values.iter().try_for_each(|v| self.put(&v.to_le_bytes()))
    }

    fn put_u64(&mut self, values: &[u64]) -> Result<()> {
        values.iter().try_for_each(|v| self.put(&v.to_le_bytes()))
    }
}
