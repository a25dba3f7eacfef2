//! Documents stay true: their links lead somewhere, and the paths, commands and names that they set in code exist.

use super::{Finding, Repository};
use std::collections::{BTreeMap, HashSet};

/// Endings that make a word in code a path even where its first folder is unknown.
const FILES: &[&str] = &["rs", "py", "pyi", "md", "toml"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let words = Words::of(repository);
    let mut findings = Vec::new();
    for (path, text) in repository.ending(".md") {
        // What a changelog names may be gone by now; its links may not.
        let history = path == "CHANGELOG.md";
        for (number, line) in prose(text).into_iter().enumerate() {
            let dead = link_targets(line).filter_map(|target| dead_link(repository, path, target));
            let stale = code_spans(line).filter(|_| !history).filter_map(|span| words.stale(repository, path, span));
            let messages: Vec<String> = dead.chain(stale).collect();
            findings.extend(messages.into_iter().map(|message| Finding::failure(path, number + 1, message)));
        }
    }
    findings
}

/// The lines of a document, those of fenced code blocks emptied: examples there are run or shown, not named.
fn prose(text: &str) -> Vec<&str> {
    let mut fenced = false;
    text.lines()
        .map(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            if fenced || fence { "" } else { line }
        })
        .collect()
}

/// Targets of `[text](target)` and `[name]: target`.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let named = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
    inline.chain(named)
}

/// What stands between single backticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    let parts: Vec<&str> = line.split('`').collect();
    let closed = if parts.len() % 2 == 1 { parts.len() } else { parts.len() - 1 };
    (1..closed).step_by(2).map(|at| parts[at]).collect::<Vec<_>>().into_iter()
}

fn dead_link(repository: &Repository, document: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { document.to_string() } else { beside(document, path) };
    if !repository.paths.contains(path.trim_end_matches('/')) {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    let text = repository.files.get(&path)?;
    let lost = !anchor.is_empty() && path.ends_with(".md") && !anchors(text).contains(anchor);
    lost.then(|| format!("the link `{target}` leads to no heading of `{path}`"))
}

/// `target` as seen from the folder of `document`, with `.` and `..` resolved.
fn beside(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let heading = |line: &&str| line.starts_with('#');
    let slug = |line: &str| {
        let kept = line.trim_start_matches('#').trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    prose(text).into_iter().filter(heading).map(slug).collect()
}

/// What code in documents may name: words of the sources, targets of the Makefile, commands of xtask.
struct Words<'a> {
    sources: HashSet<&'a str>,
    commands: BTreeMap<&'static str, HashSet<&'a str>>,
    /// First folders of paths that builds make and git ignores.
    made: HashSet<&'a str>,
}

impl<'a> Words<'a> {
    fn of(repository: &'a Repository) -> Self {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let text = |path: &str| repository.files.get(path).map_or("", String::as_str);
        let source = |path: &str| !path.ends_with(".md") && !path.starts_with("data/");
        let sources = repository.files.iter().filter(|(path, _)| source(path));
        let targets = text("Makefile").lines().filter_map(|line| line.split_once(':')).map(|(target, _)| target);
        Self {
            sources: sources.flat_map(|(_, text)| text.split(move |c| !is_word(c))).collect(),
            commands: BTreeMap::from([("make", targets.collect()), ("cargo xtask", text("xtask/src/main.rs").split('"').collect())]),
            made: text(".gitignore").lines().filter_map(|line| line.strip_prefix('/')).collect(),
        }
    }

    /// What is wrong with a span of code, if anything is.
    fn stale(&self, repository: &Repository, document: &str, span: &str) -> Option<String> {
        for (program, known) in &self.commands {
            let command = span.strip_prefix(program).and_then(|rest| rest.strip_prefix(' '));
            if let Some(word) = command.and_then(|rest| rest.split_whitespace().next()) {
                let dead = !known.contains(word) && !word.contains('=');
                return dead.then(|| format!("`{span}`: there is no such command"));
            }
        }
        if self.is_path(repository, span) {
            return (!exists(repository, document, span)).then(|| format!("there is no `{span}`"));
        }
        let dead = names(span).into_iter().find(|name| !self.sources.contains(name))?;
        Some(format!("`{span}`: no source has the name `{dead}`"))
    }

    fn is_path(&self, repository: &Repository, span: &str) -> bool {
        if span.contains(|c: char| !(c.is_alphanumeric() || "_-./".contains(c))) {
            return false;
        }
        let first = span.split('/').next().unwrap_or_default();
        let known = repository.paths.contains(first) || repository.paths.contains(&format!("crates/{first}"));
        let file = span.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && FILES.contains(&end));
        !self.made.contains(first) && (file || (known && span.contains('/')))
    }
}

/// Whether a path is there: from the root, from the document, or as the end of one path.
fn exists(repository: &Repository, document: &str, span: &str) -> bool {
    let span = span.trim_end_matches('/');
    let end = format!("/{span}");
    repository.paths.contains(span)
        || repository.paths.contains(&beside(document, span))
        || repository.paths.iter().any(|path| path.ends_with(&end))
}

/// The names in a span that can only be ours: `a::b`, `snake_case`, `CamelCase`, `call()`. Plain words, dotted Python
/// names and whole expressions are left alone.
fn names(span: &str) -> Vec<&str> {
    let bare = span.strip_suffix("()").or_else(|| span.strip_suffix('!')).unwrap_or(span);
    let parts: Vec<&str> = bare.split("::").collect();
    let identifier = |part: &&str| {
        !part.is_empty() && !part.starts_with(|c: char| c.is_ascii_digit()) && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let humps = bare.chars().filter(char::is_ascii_uppercase).count() > 1 && bare.contains(|c: char| c.is_ascii_lowercase());
    let ours = parts.len() > 1 || bare != span || bare.contains('_') || humps;
    let foreign = matches!(parts[0], "std" | "core" | "alloc");
    if ours && !foreign && parts.iter().all(identifier) { parts } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: (&str, &str) = ("Makefile", "all:\n\ntest: all\n\tcargo test\n");
    const XTASK: (&str, &str) = ("xtask/src/main.rs", "match words { [\"tidy\"] => {} }");
    const SOURCE: (&str, &str) = ("crates/engine/src/tensor/view.rs", "impl Tensor { pub fn as_strided(&self) {} }");
    const IGNORE: (&str, &str) = (".gitignore", "/target\n/out\n");

    fn messages(document: (&str, &str)) -> Vec<String> {
        let repository = Repository::of(&[MAKEFILE, XTASK, SOURCE, IGNORE, ("docs/b.md", "# One `two`, Three\n"), document]);
        check(&repository).into_iter().map(|finding| finding.message).collect()
    }

    #[track_caller]
    fn clean(text: &str) {
        assert_eq!(messages(("docs/a.md", text)), [""; 0], "{text}");
    }

    #[track_caller]
    fn stale(text: &str, part: &str) {
        let found = messages(("docs/a.md", text));
        assert!(found.len() == 1 && found[0].contains(part), "{text}: {found:?}");
    }

    #[test]
    fn links_lead_somewhere() {
        clean("[b](b.md), [up](../Makefile), [t](../crates/engine/), [x](https://x.org/y), ![p](b.md)\n[r]: b.md\n");
        clean("[b](b.md#one-two-three) and [here](#top)\n# Top\n");
        stale("[b](c.md)", "`c.md` leads nowhere");
        stale("[b](b.md#four)", "no heading");
        stale("[r]: gone.md", "gone.md");
        clean("```\n[b](c.md)\n```\n");
    }

    #[test]
    fn paths_exist() {
        clean("`crates/engine/src/tensor/`, `tensor/view.rs`, `view.rs`, `docs/b.md`, `b.md`, `target/fast`, `and/or`");
        stale("`crates/engine/src/gone.rs`", "gone.rs");
        stale("`engine/autograd/`", "engine/autograd/");
        stale("`gone.py`", "gone.py");
    }

    #[test]
    fn commands_exist() {
        clean("`make test`, `make PYTHON=python3 test`, `cargo xtask tidy`");
        stale("`make tea`", "make tea");
        stale("`cargo xtask bake`", "cargo xtask bake");
    }

    #[test]
    fn names_exist() {
        clean("`Tensor::as_strided`, `as_strided()`, `x`, `Tensor`, `std::mem::gone`, `torch.gone_name`, `a_b + c_d`");
        stale("`Tensor::gone`", "`gone`");
        stale("`gone_name`", "gone_name");
        stale("`GoneName`", "GoneName");
        stale("`gone()`", "gone");
    }

    #[test]
    fn history_may_name_what_is_gone() {
        assert_eq!(messages(("CHANGELOG.md", "`GoneName`")), [""; 0]);
        assert_eq!(messages(("CHANGELOG.md", "[x](gone.md)")).len(), 1);
    }
}
