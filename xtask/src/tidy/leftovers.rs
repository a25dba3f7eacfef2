//! Work that was put off, tests that were switched off, and prints that were forgotten.

use super::lexer::code_only;
use super::{Finding, Repository};

/// Notes to come back to: issues are the place for them. Split, so that this file does not find itself.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Rust code that is a placeholder, a switched-off test or a forgotten print.
const RUST: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];

/// Python tests that do not run, or that may fail.
const PYTHON: &[&str] = &[concat!("mark.", "skip"), concat!("pytest.", "skip("), concat!("mark.", "xfail")];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in &repository.files {
        let (code, words) = match path.rsplit('.').next() {
            Some("rs") => (code_only(text), RUST),
            Some("py") => (text.clone(), PYTHON),
            Some("md" | "toml" | "pyi") => (String::new(), &[][..]),
            _ if path == "Makefile" || path.starts_with(".ci/") => (String::new(), &[][..]),
            _ => continue,
        };
        for (source, found) in [(text, NOTES), (&code, words)] {
            for (number, line) in source.lines().enumerate() {
                if let Some(word) = found.iter().find(|word| has_word(line, word)) {
                    let word = word.trim_end_matches(['(', '!']);
                    findings.push(Finding::failure(path, number + 1, format!("`{word}` was left here")));
                }
            }
        }
    }
    findings
}

/// Whether `word` stands in `line` and continues no longer one; a note to come back to must end there, too.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let begins = !line[..at].ends_with(part);
        let goes_on = line[at + word.len()..].starts_with(part);
        begins && !(goes_on && NOTES.contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn notes_are_found_in_comments_and_documents() {
        let note = concat!("x\n// TO", "DO: later\n");
        assert_eq!(lines("a.rs", note), [2]);
        assert_eq!(lines("a.md", note), [2]);
        assert_eq!(lines("a.txt", note), []);
        assert_eq!(lines("a.rs", concat!("const TO", "DOS: u8 = 1;\n")), []);
    }

    #[test]
    fn placeholders_are_found_in_code_only() {
        assert_eq!(lines("a.rs", "fn f() { todo!() }\n// todo!()\nlet s = \"dbg!(x)\";\n#[ignore = \"slow\"]\n"), [1, 4]);
    }

    #[test]
    fn python_tests_run() {
        let switched_off = [concat!("@pytest.mark.", "skipif(x)\n"), concat!("pytest.", "skip('no')\n")];
        assert!(switched_off.iter().all(|text| lines("tests/a.py", text) == [1]));
        assert_eq!(lines("tests/a.py", "skip_ws(1)\n"), []);
    }
}
