//! The conversation that proves who a client is; at login and again at `COM_CHANGE_USER`.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::sha2_crypt::Sha2Crypt;
use crate::auth::{AuthPlugin, Credential, caching_sha2, salt};
use crate::codec::AuthSwitch;
use crate::error::WireError;
use crate::stream::PacketStream;

/// Who asks to come in.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The user name, as sent.
    pub user: &'a [u8],
    /// The database it named.
    pub database: Option<&'a [u8]>,
    /// Where it comes from; `None` if not over TCP.
    pub peer: Option<SocketAddr>,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// Knows the users.
pub trait Authenticator: Send + Sync {
    /// What is kept of the user's password; `None` if the user is unknown or may not come from there. An unknown
    /// user is led through the conversation of the default plugin and refused at its end, with the same words as a
    /// wrong password.
    fn credential(&self, who: &Identity<'_>) -> Option<Credential>;
}

impl<F> Authenticator for F
where
    F: Fn(&Identity<'_>) -> Option<Credential> + Send + Sync,
{
    fn credential(&self, who: &Identity<'_>) -> Option<Credential> {
        self(who)
    }
}

/// A client's first answer: which plugin made it, and from which salt.
pub(super) struct Claim {
    pub(super) plugin: Option<AuthPlugin>,
    pub(super) answer: Vec<u8>,
    pub(super) salt: [u8; 20],
    /// Whether the client can be asked to use another plugin.
    pub(super) can_switch: bool,
    /// Ask for a new answer in any case.
    pub(super) always_switch: bool,
}

/// How the conversation ended.
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// Whether a password was given at all, for the error's text.
    pub(super) used_password: bool,
}

/// Leads the conversation to its end, up to but without the OK or the error. `default` serves unknown users.
pub(super) async fn prove(
    stream: &mut PacketStream,
    claim: Claim,
    credential: Option<Credential>,
    default: AuthPlugin,
) -> Result<Verdict, WireError> {
    let wanted = match &credential {
        Some(c) => c.plugin().or(claim.plugin).unwrap_or(default),
        None => default,
    };
    let Claim {
        plugin,
        mut answer,
        mut salt,
        can_switch,
        always_switch,
    } = claim;
    if always_switch && can_switch || plugin != Some(wanted) {
        if !can_switch {
            return Err(WireError::Unsupported(format!(
                "the client does not support the authentication this user needs ({})",
                wanted.name()
            )));
        }
        salt = salt::fresh()?;
        let switch = AuthSwitch {
            plugin: wanted.name().into(),
            data: salt.to_vec(),
        };
        stream.put_packet_with(|out| switch.encode(out));
        stream.flush().await?;
        answer = stream.read_packet().await?.to_vec();
    }
    let used_password = !matches!(answer.as_slice(), [] | [0]);
    let allowed = match credential.as_ref().map(|c| (c, c.verify(&answer, &salt))) {
        Some((_, Some(true))) => {
            if used_password && wanted == AuthPlugin::CachingSha2 {
                stream.put_packet(&[caching_sha2::MORE_DATA, caching_sha2::FAST_OK]);
            }
            true
        }
        Some((Credential::Sha2Crypt(stored), None)) => full_path(stream, stored).await?,
        None | Some((_, Some(false) | None)) => false,
    };
    Ok(Verdict {
        allowed,
        used_password,
    })
}

/// Asks for the password itself and checks it.
async fn full_path(stream: &mut PacketStream, stored: &Arc<Sha2Crypt>) -> Result<bool, WireError> {
    if !stream.transport().is_private() {
        return Err(WireError::Tls(
            "this user's first login needs the password itself (caching_sha2_password), which is taken over TLS only; \
             connect with TLS"
                .into(),
        ));
    }
    stream.put_packet(&[caching_sha2::MORE_DATA, caching_sha2::FULL_AUTH]);
    stream.flush().await?;
    let password = stream.read_packet().await?;
    let stored = Arc::clone(stored);
    // Milliseconds of hashing: not on a thread that serves others.
    let check = tokio::task::spawn_blocking(move || {
        stored.verify_full(password.strip_suffix(&[0]).unwrap_or(&password))
    });
    check.await.map_err(|e| WireError::Io(std::io::Error::other(e)))
}
