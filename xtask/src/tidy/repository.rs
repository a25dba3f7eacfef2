//! The files that the checks read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// All text files that git knows or would add, by path from the root, with `/` between folders.
pub struct Repository {
    pub files: BTreeMap<String, String>,
    /// Every path there is: those files, other files, and the folders above them.
    pub paths: BTreeSet<String>,
}

impl Repository {
    /// Reads the working tree that this crate stands in.
    pub fn read() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent folder")?;
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("git cannot be run: {error}"))?;
        if !listed.status.success() {
            return Err(String::from_utf8_lossy(&listed.stderr).trim().to_string());
        }
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut files = Vec::new();
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            // A file that was deleted and not yet committed is still listed.
            if let Ok(bytes) = std::fs::read(root.join(name)) {
                files.push((name.to_string(), bytes));
            }
        }
        Ok(Self::new(files))
    }

    /// A repository of these files; what is not UTF-8 counts as a path only.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut repository = Self { files: BTreeMap::new(), paths: BTreeSet::new() };
        for (path, bytes) in files {
            let folders = path.match_indices('/').map(|(at, _)| path[..at].to_string());
            repository.paths.extend(folders);
            repository.paths.insert(path.clone());
            if let Ok(text) = String::from_utf8(bytes) {
                repository.files.insert(path, text);
            }
        }
        repository
    }

    /// The files whose names end so, for instance `.rs`.
    pub fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        let end = end.to_string();
        let texts = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        texts.filter(move |(path, _)| path.ends_with(&end))
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self::new(files.iter().map(|(path, text)| (path.to_string(), text.as_bytes().to_vec())))
    }
}
