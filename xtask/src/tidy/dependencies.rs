//! Crates depend downwards only: `base` <- `ir` <- `engine` <- backends and libraries <- `flambeau` <- front ends.

use super::{Finding, Repository};

/// The storeys of the house, from the ground up. A crate depends on crates of lower storeys only.
const STOREYS: &[&[&str]] = &[
    &["base", "derive"],
    &["ir"],
    &["engine", "dense"],
    &["cpu", "cuda", "wgpu", "nn", "data", "io", "distributed"],
    &["flambeau"],
    &["cli", "python"],
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.ending("/Cargo.toml") {
        let Some(folder) = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        let Some(own) = storey(folder) else {
            findings.push(Finding::failure(path, 1, format!("`{folder}` has no storey: give it one in {}", file!())));
            continue;
        };
        for (line, name) in dependencies(text) {
            if storey(name).is_none_or(|other| other >= own) {
                let message = format!("`{folder}` may not depend on `{name}`, which does not stand below it");
                findings.push(Finding::failure(path, line, message));
            }
        }
    }
    findings
}

fn storey(folder: &str) -> Option<usize> {
    STOREYS.iter().position(|crates| crates.contains(&folder))
}

/// The house's own crates among what a manifest builds on, by folder, with their lines. Tests may look upwards.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if inside {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            let folder = if name == "flambeau" { Some(name) } else { name.strip_prefix("flambeau-") };
            found.extend(folder.map(|folder| (number + 1, folder)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str, manifest: &str) -> Vec<(usize, String)> {
        let path = format!("crates/{folder}/Cargo.toml");
        let findings = check(&Repository::of(&[(&path, manifest)]));
        findings.into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn downward_is_allowed_and_upward_or_sideways_is_not() {
        assert_eq!(found("cpu", "[dependencies]\nflambeau-engine.workspace = true\nhalf = \"2\"\n"), []);
        let up = found("engine", "[dependencies]\n\nflambeau-cpu = { path = \"../cpu\" }\n");
        assert_eq!(up, [(3, "`engine` may not depend on `cpu`, which does not stand below it".into())]);
        assert_eq!(found("nn", "[target.'cfg(unix)'.dependencies]\nflambeau-io.workspace = true\n").len(), 1);
        assert_eq!(found("io", "[build-dependencies]\nflambeau.workspace = true\n").len(), 1);
    }

    #[test]
    fn tests_may_look_upwards() {
        assert_eq!(found("engine", "[dev-dependencies]\nflambeau-cpu.workspace = true\n"), []);
    }

    #[test]
    fn a_new_crate_needs_a_storey() {
        assert!(found("attic", "[dependencies]\n")[0].1.starts_with("`attic` has no storey"));
    }
}
