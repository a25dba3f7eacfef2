//! Files made from the table of operations: the stub of the native module, the reference pages, the list of operations.

mod reference;
mod stub;

use flambeau_engine::ops::table::place;
use flambeau_engine::ops::{Row, ops};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// The rows of each name that is found in a place, in the order in which they are tried.
fn names(bit: u8) -> BTreeMap<&'static str, Vec<&'static Row>> {
    let mut out: BTreeMap<&'static str, Vec<&'static Row>> = BTreeMap::new();
    for row in ops().iter().filter(|r| r.places & bit != 0) {
        out.entry(row.name()).or_default().push(row);
    }
    out
}

/// A namespace that users know, with the bit that stands for it.
const NAMESPACES: [(&str, u8); 4] =
    [("torch", place::TORCH), ("torch.nn.functional", place::NN), ("torch.special", place::SPECIAL), ("torch.linalg", place::LINALG)];

/// Every generated file with its contents.
fn files() -> Vec<(String, String)> {
    let mut files = vec![("python/flambeau/_C.pyi".to_string(), stub::stub()), ("docs/operations.md".to_string(), reference::operations())];
    for (namespace, bit) in NAMESPACES {
        files.push((format!("docs/reference/{namespace}.md"), reference::page(namespace, bit)));
    }
    files.push(("docs/reference/Tensor.md".to_string(), reference::page("Tensor", place::METHOD)));
    files
}

/// Writes the generated files.
pub fn write(root: &Path) -> ExitCode {
    for (path, text) in files() {
        let path = root.join(path);
        let done = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        if let Err(e) = done {
            eprintln!("{}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The generated files that differ from what the table says.
pub fn stale(root: &Path) -> Vec<String> {
    let differs = |(path, text): &(String, String)| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text);
    files().into_iter().filter(differs).map(|(path, _)| path).collect()
}
