//! The repository's own tools: `cargo xtask codegen` and `cargo xtask tidy`.

mod codegen;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  codegen  write the files that are made from the table of operations
  tidy     check sizes of files, documents, dependencies between crates, unsafe code and leftovers";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["codegen"] => codegen::write(&tidy::root()),
        ["tidy"] => tidy::run(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
