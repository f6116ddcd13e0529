//! What the documentation promises to list is listed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use shardgate_tests::tools;

/// Adds every `SGnnnn` of a text.
fn codes_of(text: &str, found: &mut BTreeSet<String>) {
    for (at, _) in text.match_indices("SG") {
        let digits = text
            .get(at + 2..at + 6)
            .filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let longer = text.as_bytes().get(at + 6).is_some_and(u8::is_ascii_digit);
        if let Some(digits) = digits
            && !longer
        {
            found.insert(format!("SG{digits}"));
        }
    }
}

fn codes_under(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            codes_under(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            codes_of(&fs::read_to_string(&path).unwrap(), found);
        }
    }
}

#[test]
fn each_error_code_in_the_source_has_an_entry_and_each_entry_a_code() {
    let root = tools::source_root();
    let mut used = BTreeSet::new();
    for dir in ["gateway", "breaker", "tablet-sim"] {
        codes_under(&root.join(dir), &mut used);
    }
    let errors = fs::read_to_string(root.join("docs/errors.md")).unwrap();
    let entries: BTreeSet<String> = errors
        .lines()
        .filter_map(|l| l.strip_prefix("### "))
        .map(|l| l.trim().to_owned())
        .collect();
    assert!(used.len() > 5, "the source has codes: {used:?}");
    let missing: Vec<_> = used.difference(&entries).collect();
    assert!(missing.is_empty(), "docs/errors.md has no entry for {missing:?}");
    let stale: Vec<_> = entries.difference(&used).collect();
    assert!(
        stale.is_empty(),
        "docs/errors.md has entries that no source uses: {stale:?}"
    );
}

/// The anchor that mdBook and GitHub give a heading.
fn anchor_of(line: &str) -> Option<String> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = tools::source_root();
    let mut pages: Vec<_> = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    pages.extend([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    for page in pages.iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for (at, _) in text.match_indices("](") {
            let link = text[at + 2..].split(')').next().unwrap();
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(file)
            };
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            let there = || fs::read_to_string(&target).unwrap();
            assert!(
                anchor.is_empty()
                    || there()
                        .lines()
                        .any(|line| anchor_of(line).as_deref() == Some(anchor)),
                "{}: {link} has no such heading",
                page.display()
            );
        }
    }
}
