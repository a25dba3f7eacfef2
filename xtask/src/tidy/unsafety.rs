//! Unsafe code stands where it may, and says why it is sound.

use super::lexer::code_only;
use super::{Finding, Repository};

/// Crates that have no storage, kernels or foreign interfaces, and so nothing unsafe.
const SAFE_CRATES: &[&str] = &["base", "ir", "nn", "data"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.ending(".rs") {
        let folder = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
        let safe = folder.filter(|folder| SAFE_CRATES.contains(folder));
        let code = code_only(text);
        let (code, source): (Vec<&str>, Vec<&str>) = (code.lines().collect(), text.lines().collect());
        for line in (0..code.len()).filter(|&line| needs_reason(code[line])) {
            if let Some(folder) = safe {
                findings.push(Finding::failure(path, line + 1, format!("unsafe code in `{folder}`, which has none")));
            } else if !has_reason(&code, &source, line) {
                findings.push(Finding::failure(path, line + 1, "unsafe code without a `SAFETY:` comment above it"));
            }
        }
    }
    findings
}

/// Whether this line of code opens an unsafe block or implementation. An `unsafe fn` has its `# Safety` section,
/// which clippy asks for.
fn needs_reason(code: &str) -> bool {
    code.match_indices("unsafe").any(|(at, word)| {
        let after = code[at + word.len()..].trim_start();
        let whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        whole && (after.starts_with('{') || after.starts_with("impl ") || after.starts_with("impl<"))
    })
}

/// Looks on the line itself, then upwards through the statement that the line belongs to (out of its closures and the
/// arms of its `match`, too, as long as nothing stands before), then through the comments above. Several unsafe implementations in a row share one comment.
fn has_reason(code: &[&str], source: &[&str], line: usize) -> bool {
    let states = |at: usize| source[at].contains("SAFETY:");
    if states(line) {
        return true;
    }
    for at in (0..line).rev() {
        let above = code[at].trim();
        if source[at].trim().is_empty() {
            break;
        }
        if states(at) {
            return true;
        }
        let enclosing = above.ends_with('{') && !above.contains("fn ");
        let goes_on = enclosing || above.starts_with("unsafe impl") || above.starts_with("#[");
        if above.ends_with([';', '}', '{']) && !goes_on {
            break;
        }
    }
    is_covered(source, line)
}

/// Whether a comment `SAFETY (of all ...)` speaks for the line: it does for all that follows it in the same block.
fn is_covered(source: &[&str], line: usize) -> bool {
    let mut outermost = indent(source[line]) + 1;
    for above in source[..line].iter().rev().filter(|above| !above.trim().is_empty()) {
        if above.contains("SAFETY (of all") && indent(above) > 0 && indent(above) < outermost {
            return true;
        }
        outermost = outermost.min(indent(above) + 1);
    }
    false
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_block_needs_its_reason() {
        assert_eq!(lines("crates/cpu/src/a.rs", "fn f() {\n    unsafe { g() }\n}\n"), [2]);
        assert_eq!(lines("crates/cpu/src/a.rs", "fn f() {\n    // SAFETY: g reads nothing.\n    unsafe { g() }\n}\n"), []);
        assert_eq!(lines("crates/cpu/src/a.rs", "let x = unsafe { g() }; // SAFETY: so.\n"), []);
    }

    #[test]
    fn a_reason_belongs_to_one_statement() {
        let two = "// SAFETY: first.\nlet x = unsafe { g() };\nlet y = unsafe { h() };\n";
        assert_eq!(lines("crates/cpu/src/a.rs", two), [3]);
        let split = "// SAFETY: within\n// bounds.\nlet x = f(\n    1,\n    unsafe { g() },\n);\n";
        assert_eq!(lines("crates/cpu/src/a.rs", split), []);
        let far = "// SAFETY: lost.\n\nlet x = unsafe { g() };\n";
        assert_eq!(lines("crates/cpu/src/a.rs", far), [3]);
    }

    #[test]
    fn a_reason_reaches_into_a_statement() {
        let arms = "// SAFETY: so.\nlet x = match y {\n    A => return,\n    B => unsafe { g() },\n};\n";
        assert_eq!(lines("crates/cpu/src/a.rs", arms), []);
        let closure = "// SAFETY: so.\nlet x = f(|y| {\n    if y {\n        unsafe { g() }\n    }\n});\n";
        assert_eq!(lines("crates/cpu/src/a.rs", closure), []);
        let later = "// SAFETY: so.\nlet x = f(|y| {\n    z();\n    unsafe { g() }\n});\n";
        assert_eq!(lines("crates/cpu/src/a.rs", later), [4]);
        let inside = "// SAFETY: not here.\nfn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(lines("crates/cpu/src/a.rs", inside), [3]);
    }

    #[test]
    fn a_reason_of_all_covers_the_rest_of_its_block() {
        let block = "mod a {\n    // SAFETY (of all below): so.\n    fn f() {\n        unsafe { g() }\n    }\n\n    \
                     fn h() {\n        unsafe { g() }\n    }\n}\nfn i() {\n    unsafe { g() }\n}\n";
        assert_eq!(lines("crates/cpu/src/a.rs", block), [12]);
        let whole_file = "// SAFETY (of all below): so.\nfn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(lines("crates/cpu/src/a.rs", whole_file), [3]);
    }

    #[test]
    fn implementations_share_a_reason_and_functions_need_none() {
        let both = "// SAFETY: no cell inside.\nunsafe impl Send for A {}\nunsafe impl Sync for A {}\n";
        assert_eq!(lines("crates/cpu/src/a.rs", both), []);
        assert_eq!(lines("crates/cpu/src/a.rs", "unsafe impl<T> Send for A<T> {}\n"), [1]);
        assert_eq!(lines("crates/cpu/src/a.rs", "pub unsafe fn f() {}\n// unsafe {\nlet s = \"unsafe {\";\n"), []);
    }

    #[test]
    fn some_crates_have_nothing_unsafe() {
        assert_eq!(lines("crates/base/src/a.rs", "// SAFETY: fine.\nunsafe { g() }\n"), [2]);
    }
}
