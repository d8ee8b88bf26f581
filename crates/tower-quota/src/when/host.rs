//! Conditions on the host.

use http::header::HOST;

use super::error::sound;
use super::{Condition, PatternError};
use crate::head::RequestHead;

/// Holds of requests for this host: `api.example.com`, an address (IPv6 in brackets), or, as `*.example.com`, every name
/// under a domain, however many labels come before it, but not the domain itself. Upper and lower case, the port and a
/// dot at the end make no difference.
///
/// The host is that of the request's target, as in HTTP/2, or else that of the first `Host` header (RFC 9112, section
/// 3.2). Clients choose it: it tells one of your sites from another, and no client from another. Internationalised names
/// are compared in the form they are sent in, `xn--...`.
///
/// # Panics
/// When this is not a host; see [`try_host`].
#[must_use]
#[track_caller]
pub fn host(pattern: &str) -> Box<dyn Condition> {
    sound(try_host(pattern))
}

/// [`host`] for a pattern that was not written in code.
///
/// # Errors
/// [`PatternError::Host`] when the pattern is empty, has a port, has a star anywhere but in `*.` at its beginning, or
/// has characters that no host has.
pub fn try_host(pattern: &str) -> Result<Box<dyn Condition>, PatternError> {
    let domain = pattern.strip_prefix("*.");
    let name = domain.unwrap_or(pattern);
    let bracketed = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let sound = match bracketed {
        Some(inside) => domain.is_none() && inside.parse::<core::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    if !sound || name.starts_with('.') {
        return Err(PatternError::Host(pattern.to_owned()));
    }
    let name = without_last_dot(name).to_ascii_lowercase();
    Ok(match domain {
        Some(_) => Box::new(move |head: &RequestHead<'_>| asked(head).is_some_and(|host| is_under(host, &name))),
        None => {
            Box::new(move |head: &RequestHead<'_>| asked(head).is_some_and(|host| host.eq_ignore_ascii_case(&name)))
        }
    })
}

/// The host that a request is for, without its port.
fn asked<'r>(head: &RequestHead<'r>) -> Option<&'r str> {
    let host = match head.uri().host() {
        Some(host) => host,
        None => without_port(head.headers().get(HOST)?.to_str().ok()?),
    };
    Some(without_last_dot(host))
}

fn without_port(authority: &str) -> &str {
    // The colons of an IPv6 address are in its brackets.
    let name_ends = authority.find(']').map_or(0, |bracket| bracket + 1);
    match authority[name_ends..].find(':') {
        Some(colon) => &authority[..name_ends + colon],
        None => authority,
    }
}

fn without_last_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether a host is one of those in a domain.
fn is_under(host: &str, domain: &str) -> bool {
    let (host, domain) = (host.as_bytes(), domain.as_bytes());
    // At least one character and the dot come before the domain.
    let Some(dot) = host.len().checked_sub(domain.len() + 1).filter(|dot| *dot > 0) else { return false };
    host[dot] == b'.' && host[dot + 1..].eq_ignore_ascii_case(domain)
}
