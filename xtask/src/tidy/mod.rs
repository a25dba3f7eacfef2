//! `cargo xtask tidy`: what no compiler checks. Each check is a module with a function from the repository to
//! findings; a new one is a module and a line in `CHECKS`.

mod dependencies;
mod documents;
mod leftovers;
mod lexer;
mod repository;
mod sizes;
mod unsafety;

use repository::Repository;
use std::process::ExitCode;

/// Something that a check has to say about a place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    /// A warning is printed and does not fail the run.
    warning: bool,
    message: String,
}

impl Finding {
    fn failure(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, warning: false, message: message.into() }
    }

    fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::failure(path, line, message) }
    }
}

type Check = fn(&Repository) -> Vec<Finding>;

const CHECKS: &[Check] = &[dependencies::check, documents::check, leftovers::check, sizes::check, unsafety::check];

/// The repository's root.
pub fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs all checks on the repository around this crate and prints what they found.
pub fn run() -> ExitCode {
    let repository = match Repository::read() {
        Ok(repository) => repository,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&repository)).collect();
    for path in crate::codegen::stale(&root()) {
        findings.push(Finding { path, line: 1, warning: false, message: "is stale: run `cargo xtask codegen`".into() });
    }
    findings.sort();
    for finding in &findings {
        let kind = if finding.warning { "warning" } else { "error" };
        println!("{}:{}: {kind}: {}", finding.path, finding.line, finding.message);
    }
    let warnings = findings.iter().filter(|finding| finding.warning).count();
    let failures = findings.len() - warnings;
    println!("tidy: {} files, {warnings} warnings, {failures} errors", repository.files.len());
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
