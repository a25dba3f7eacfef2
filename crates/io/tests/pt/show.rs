//! A builder that shows what a file holds, as text.

use std::io::{Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use flambeau_io::Result;
use flambeau_io::pt::{Build, DictKind, PtFile, StorageInfo, Storages, TensorInfo};

pub struct Show<R> {
    storages: Storages<R>,
}

pub fn fixture(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", &format!("{name}.pt")].iter().collect();
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn show<R: Read + Seek>(reader: R) -> Result<String> {
    PtFile::new(reader)?.build(|storages| Show { storages })
}

fn brackets(open: &str, items: &[String], close: &str) -> Result<String> {
    Ok(format!("{open}{}{close}", items.join(", ")))
}

impl<R: Read + Seek> Build for Show<R> {
    type Out = String;

    fn none(&mut self) -> Result<String> {
        Ok("None".into())
    }
    fn bool(&mut self, value: bool) -> Result<String> {
        Ok(format!("{value}"))
    }
    fn int(&mut self, value: i64) -> Result<String> {
        Ok(format!("{value}"))
    }
    fn big_int(&mut self, digits: &[u8]) -> Result<String> {
        Ok(format!("0x{}", digits.iter().rev().map(|b| format!("{b:02x}")).collect::<String>()))
    }
    fn float(&mut self, value: f64) -> Result<String> {
        Ok(format!("{value:?}"))
    }
    fn complex(&mut self, re: f64, im: f64) -> Result<String> {
        Ok(format!("complex({re:?}, {im:?})"))
    }
    fn str(&mut self, value: &str) -> Result<String> {
        Ok(format!("{value:?}"))
    }
    fn bytes(&mut self, value: &[u8], mutable: bool) -> Result<String> {
        Ok(format!("{}{value:?}", if mutable { "bytearray" } else { "bytes" }))
    }
    fn tuple(&mut self, items: Vec<String>) -> Result<String> {
        brackets("(", &items, ")")
    }
    fn set(&mut self, items: Vec<String>, mutable: bool) -> Result<String> {
        brackets(if mutable { "{" } else { "frozenset{" }, &items, "}")
    }
    fn empty_list(&mut self) -> Result<Option<String>> {
        Ok(Some("[...]".into()))
    }
    fn fill_list(&mut self, _: Option<String>, items: Vec<String>) -> Result<String> {
        brackets("[", &items, "]")
    }
    fn empty_dict(&mut self, _: DictKind) -> Result<Option<String>> {
        Ok(None)
    }
    fn fill_dict(&mut self, kind: DictKind, _: Option<String>, pairs: Vec<(String, String)>, attributes: Option<String>) -> Result<String> {
        let pairs: Vec<String> = pairs.into_iter().map(|(k, v)| format!("{k}: {v}")).collect();
        let kind = if kind == DictKind::Plain { String::new() } else { format!("{kind:?}") };
        let attributes = attributes.map(|a| format!(" with {a}")).unwrap_or_default();
        Ok(format!("{kind}{{{}}}{attributes}", pairs.join(", ")))
    }
    fn size(&mut self, sizes: Vec<i64>) -> Result<String> {
        Ok(format!("Size{sizes:?}"))
    }
    fn dtype(&mut self, dtype: flambeau_base::DType) -> Result<String> {
        Ok(format!("{dtype}"))
    }
    fn device(&mut self, name: &str) -> Result<String> {
        Ok(format!("device {name}"))
    }
    fn layout(&mut self, name: &str) -> Result<String> {
        Ok(name.into())
    }
    fn tensor(&mut self, info: &TensorInfo) -> Result<String> {
        let TensorInfo { dtype, offset, sizes, strides, .. } = info;
        let flags: String = [(info.requires_grad, " grad"), (info.conj, " conj"), (info.neg, " neg")]
            .into_iter()
            .filter_map(|(on, word)| on.then_some(word))
            .collect();
        let data = match &info.storage {
            Some(storage) => {
                let bytes = self.storages.read(storage, *dtype)?;
                let mut other = Vec::new();
                self.storages.read_chunks(storage, *dtype, |chunk| other.extend_from_slice(chunk))?;
                assert_eq!(bytes, other);
                format!(" of {} {}", storage.key, bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
            }
            None => " of nothing".into(),
        };
        Ok(format!("<{dtype} {sizes:?} {strides:?} at {offset}{flags}{data}>"))
    }
    fn parameter(&mut self, tensor: String, requires_grad: bool) -> Result<String> {
        Ok(format!("Parameter({tensor}, {requires_grad})"))
    }
    fn attributes(&mut self, tensor: String, attributes: String) -> Result<String> {
        Ok(format!("{tensor} with {attributes}"))
    }
    fn storage(&mut self, info: &Arc<StorageInfo>) -> Result<String> {
        Ok(format!("storage {}", info.key))
    }
}
