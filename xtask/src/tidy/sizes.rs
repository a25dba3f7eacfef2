//! A file holds one family, a function one thought.

use super::{Finding, Repository};

const LONG_FILE: usize = 400;
const LONGEST_FILE: usize = 800;
const LONG_FUNCTION: usize = 80;

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.ending(".rs").chain(repository.ending(".py")) {
        if is_exempt(text) {
            continue;
        }
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            findings.push(Finding::failure(path, lines, format!("{lines} lines; more than {LONGEST_FILE} hold more than one family")));
        } else if lines > LONG_FILE {
            findings.push(Finding::warning(path, lines, format!("{lines} lines; about {LONG_FILE} is usual")));
        }
        if path.ends_with(".rs") {
            findings.extend(long_functions(path, text));
        }
    }
    findings
}

/// Generated files and tables say so at their head: `@generated`, or a comment `tidy: table`.
fn is_exempt(text: &str) -> bool {
    text.lines().take(10).any(|line| line.contains("@generated") || line.contains("tidy: table"))
}

/// Functions as rustfmt sets them: the closing brace stands in the column where the function begins.
fn long_functions(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut findings = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let body = &lines[start..];
        let Some(length) = body.iter().position(|l| indent(l) == indent(line) && l.trim_start().starts_with('}')) else {
            continue;
        };
        if length + 1 > LONG_FUNCTION {
            let message = format!("`{name}` has {} lines; seldom more than {LONG_FUNCTION}", length + 1);
            findings.push(Finding::warning(path, start + 1, message));
        }
    }
    findings
}

/// The name of the function with a body that begins on this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let words = ["pub", "const", "unsafe", "async", "extern", "\"C\"", "pub(crate)", "pub(super)"];
    if line.trim_end().ends_with(['}', ';']) || !before.split_whitespace().all(|word| words.contains(&word)) {
        return None;
    }
    let name = after.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: String) -> Vec<(bool, usize)> {
        let findings = check(&Repository::of(&[(path, &text)]));
        findings.iter().map(|finding| (finding.warning, finding.line)).collect()
    }

    #[test]
    fn long_files_warn_and_longer_ones_fail() {
        assert_eq!(messages("a.py", "x\n".repeat(400)), []);
        assert_eq!(messages("a.py", "x\n".repeat(401)), [(true, 401)]);
        assert_eq!(messages("a.rs", "x\n".repeat(801)), [(false, 801)]);
        assert_eq!(messages("a.md", "x\n".repeat(801)), []);
    }

    #[test]
    fn generated_files_and_tables_may_be_long() {
        assert_eq!(messages("a.rs", format!("// @generated\n{}", "x\n".repeat(900))), []);
        assert_eq!(messages("a.rs", format!("//! Rows.\n// tidy: table\n{}", "x\n".repeat(900))), []);
    }

    #[test]
    fn long_functions_warn_where_they_begin() {
        let function = |lines: usize| format!("impl A {{\n    pub fn f(&self) {{\n{}    }}\n}}\n", "        x;\n".repeat(lines - 2));
        assert_eq!(messages("a.rs", function(80)), []);
        assert_eq!(messages("a.rs", function(81)), [(true, 2)]);
    }
}
