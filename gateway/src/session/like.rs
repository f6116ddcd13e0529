//! `LIKE` over names, for the `SHOW` statements that the gateway answers itself.

/// Whether `name` matches a `LIKE` pattern: `%` any run, `_` any one character, `\` takes the next literally. Case is
/// ignored, as the servers do for the names of databases, variables and tablets in `SHOW`.
pub fn like(name: &str, pattern: &str) -> bool {
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let pattern = compile(pattern);
    matches(&name, &pattern)
}

enum Piece {
    Run,
    Any,
    Char(char),
}

fn compile(pattern: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => out.push(Piece::Run),
            '_' => out.push(Piece::Any),
            '\\' => out.extend(chars.next().unwrap_or('\\').to_lowercase().map(Piece::Char)),
            c => out.extend(c.to_lowercase().map(Piece::Char)),
        }
    }
    out
}

/// Greedy matching with one point to go back to: linear in practice, never exponential.
fn matches(name: &[char], pattern: &[Piece]) -> bool {
    let (mut n, mut p) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(Piece::Run) => {
                back = Some((n, p));
                p += 1;
                continue;
            }
            Some(Piece::Any) => {
                n += 1;
                p += 1;
                continue;
            }
            Some(Piece::Char(c)) if *c == name[n] => {
                n += 1;
                p += 1;
                continue;
            }
            Some(Piece::Char(_)) | None => {}
        }
        let Some((from, run)) = back else { return false };
        back = Some((from + 1, run));
        n = from + 1;
        p = run + 1;
    }
    pattern[p..].iter().all(|piece| matches!(piece, Piece::Run))
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn patterns_match_as_the_servers_match_them() {
        for (name, pattern, expected) in [
            ("commerce", "commerce", true),
            ("Commerce", "cOMM%", true),
            ("commerce", "%", true),
            ("commerce", "", false),
            ("", "", true),
            ("", "%", true),
            ("a_b", r"a\_b", true),
            ("axb", r"a\_b", false),
            ("axb", "a_b", true),
            ("aaaaaaaaaaaaaaaaaaaab", "%a%a%a%a%a%c", false),
            ("sql_mode", "sql%e", true),
            ("sql_mode", "%mod", false),
        ] {
            assert_eq!(like(name, pattern), expected, "{name} LIKE {pattern}");
        }
    }
}
