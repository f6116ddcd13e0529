//! Where in a JSON text a line and column are: `tables.orders.column_vindexes[0]`. The JSON reader's errors carry a
//! line only, and a vschema's lines look much alike.

/// The path of the value that holds the position (both from 1, the column in bytes). Empty at the top.
pub(super) fn path_at(text: &str, line: usize, column: usize) -> String {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let end = (before + column).min(text.len());
    let mut path = Path::default();
    let mut at = 0;
    while at < end {
        at = path.step(text, at);
    }
    path.to_string()
}

/// The line, from 1, of the key that ends such a path; `None` if the path is not there.
pub(super) fn line_of(text: &str, wanted: &str) -> Option<usize> {
    let mut path = Path::default();
    let mut at = 0;
    while at < text.len() {
        let start = at;
        at = path.step(text, at);
        // A step longer than a byte was a string: only there a path gets a new last key.
        if at > start + 1 && path.to_string() == wanted {
            return Some(text.get(..start).unwrap_or_default().matches('\n').count() + 1);
        }
    }
    None
}

enum Level {
    Object { key: String, awaits_key: bool },
    Array(usize),
}

#[derive(Default)]
struct Path(Vec<Level>);

impl Path {
    /// Takes in the token at a byte offset, which lies inside the text; gives the offset behind it.
    fn step(&mut self, text: &str, at: usize) -> usize {
        match text.as_bytes()[at] {
            b'"' => return self.string(text, at),
            b'{' => self.0.push(Level::Object {
                key: String::new(),
                awaits_key: true,
            }),
            b'[' => self.0.push(Level::Array(0)),
            b'}' | b']' => drop(self.0.pop()),
            b',' => match self.0.last_mut() {
                Some(Level::Object { awaits_key, .. }) => *awaits_key = true,
                Some(Level::Array(i)) => *i += 1,
                None => {}
            },
            _ => {}
        }
        at + 1
    }

    fn string(&mut self, text: &str, open: usize) -> usize {
        let mut escaped = false;
        let close = text.bytes().enumerate().skip(open + 1).find(|&(_, b)| {
            let closes = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            closes
        });
        let Some((close, _)) = close else {
            return text.len();
        };
        if let Some(Level::Object {
            key,
            awaits_key: awaits @ true,
        }) = self.0.last_mut()
        {
            text.get(open + 1..close).unwrap_or_default().clone_into(key);
            *awaits = false;
        }
        close + 1
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut dot = "";
        for level in &self.0 {
            match level {
                Level::Object { key, .. } if key.is_empty() => {}
                Level::Object { key, .. } => {
                    f.write_str(dot)?;
                    f.write_str(key)?;
                }
                Level::Array(i) => write!(f, "[{i}]")?,
            }
            dot = ".";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{line_of, path_at};

    #[test]
    fn a_position_names_the_field_that_holds_it() {
        let text =
            "{\n \"tables\": {\n  \"a{\\\"b\": {},\n  \"orders\": {\"x\": [1, {\n   \"colum\": 1}]}\n }\n}";
        assert_eq!(path_at(text, 5, 10), "tables.orders.x[1].colum");
        assert_eq!(path_at(text, 3, 12), "tables.a{\\\"b");
        assert_eq!(path_at(text, 1, 1), "");
        assert_eq!(path_at(text, 99, 99), "");
        assert_eq!(line_of(text, "tables.orders.x[1].colum"), Some(5));
        assert_eq!(line_of(text, "tables.orders"), Some(4));
        assert_eq!(line_of(text, "orders"), None);
    }
}
