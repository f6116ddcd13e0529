//! Character sets: which ones a lexer on bytes may trust, and which names introduce a string.

/// Whether `character_set_client` may be this one.
///
/// In big5, cp932, gbk, gb18030 and sjis the second byte of a character may be 0x5C, the backslash (and in some
/// 0x60, the backtick). Read as bytes, such a character escapes the quote that follows it, so the gateway and the
/// server would disagree on where a string ends. `ucs2`, `utf16`, `utf16le` and `utf32` are refused by servers
/// themselves. An unknown name is not safe.
pub fn charset_is_safe(name: &str) -> bool {
    SAFE.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether `_name` introduces a string. `name` comes without its underscore.
pub(crate) fn is_introducer(name: &[u8]) -> bool {
    name.len() <= 8
        && SAFE
            .iter()
            .chain(UNSAFE)
            .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

// `eucjpms`, `euckr`, `gb2312` and `ujis` keep both bytes of a pair above 0x7F or at least off ASCII punctuation.
const SAFE: &[&str] = &[
    "utf8mb4", "utf8", "utf8mb3", "latin1", "binary", "ascii", "latin2", "latin5", "latin7", "cp1250",
    "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "euckr", "eucjpms", "gb2312", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "macce", "macroman", "tis620", "ujis", "armscii8",
];

// In `swe7` the backtick and the at sign are letters.
const UNSAFE: &[&str] = &[
    "big5", "cp932", "gbk", "gb18030", "sjis", "swe7", "ucs2", "utf16", "utf16le", "utf32",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charset_whose_second_byte_may_be_a_backslash_is_not_safe() {
        for name in [
            "big5", "CP932", "gbk", "gb18030", "sjis", "ucs2", "utf16", "utf32", "klingon", "",
        ] {
            assert!(!charset_is_safe(name), "{name}");
        }
        for name in ["utf8mb4", "UTF8", "latin1", "binary"] {
            assert!(charset_is_safe(name), "{name}");
        }
    }

    #[test]
    fn an_unsafe_charset_still_introduces_a_string() {
        assert!(is_introducer(b"utf8mb4") && is_introducer(b"GBK") && is_introducer(b"binary"));
        assert!(!is_introducer(b"id") && !is_introducer(b""));
    }
}
