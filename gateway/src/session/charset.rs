//! The character set a client names by number when it logs in.

use mysql_common::collations::{Collation, CollationId};

use super::Session;
use crate::tablet::SettingName;

/// What a login's collation id asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoginCharset {
    /// The character set's name, lower case.
    pub(super) charset: String,
    /// What is replayed behind `SET NAMES`; `None` if a tablet connection's own `utf8mb4` will do.
    pub(super) names: Option<String>,
}

/// Every id is taken: one that is 0, unknown, or a newer server's becomes `utf8mb4`, as the servers take their default.
pub(super) fn of_login(id: u16) -> LoginCharset {
    let utf8mb4 = || LoginCharset {
        charset: "utf8mb4".into(),
        names: None,
    };
    let id = CollationId::from(id);
    if id == CollationId::UNKNOWN_COLLATION_ID {
        return utf8mb4();
    }
    let found = Collation::resolve(id);
    let (charset, collation) = (
        found.charset().to_ascii_lowercase(),
        found.collation().to_ascii_lowercase(),
    );
    // MySQL 8 clients send utf8mb4_0900_ai_ci, which MariaDB does not know, meaning no more than "utf8mb4".
    let ours = charset == "utf8mb4" && (collation == "utf8mb4_general_ci" || collation.contains("_0900_"));
    // What a client cannot speak is not its word: the servers refuse these as well.
    let speakable = !matches!(
        charset.as_str(),
        "ucs2" | "utf16" | "utf16le" | "utf32" | "binary" | ""
    );
    if ours || !speakable {
        return utf8mb4();
    }
    let names = format!("{charset} COLLATE {collation}");
    LoginCharset {
        charset,
        names: Some(names),
    }
}

impl Session {
    /// Takes over what the client's login says of its character set.
    pub(super) fn apply_login_charset(&mut self) {
        let asked = of_login(self.client.login().charset);
        self.state.charset = asked.charset;
        match asked.names {
            Some(names) => self.state.settings.set(SettingName::Names, names),
            None => self.state.settings.unset(&SettingName::Names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_a_client_may_send_is_taken() {
        for id in 0..=u16::MAX {
            let found = of_login(id);
            assert!(!found.charset.is_empty(), "{id}");
        }
        for id in [0, 45, 255, 309, 35] {
            assert_eq!(
                of_login(id),
                LoginCharset {
                    charset: "utf8mb4".into(),
                    names: None
                },
                "{id}"
            );
        }
        assert_eq!(
            of_login(8).names.as_deref(),
            Some("latin1 COLLATE latin1_swedish_ci")
        );
        assert_eq!(
            of_login(224).names.as_deref(),
            Some("utf8mb4 COLLATE utf8mb4_unicode_ci")
        );
    }
}
