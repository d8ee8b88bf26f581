//! Defines the texts that `tower_quota::when` checks.

use core::net::{IpAddr, Ipv4Addr};

use http::{HeaderName, Method};
use ipnet::IpNet;
use tower_quota::{key, when};

use super::error::TextError;
use super::macros::checked_text;

checked_text! {
    /// A pattern of paths in the syntax of axum's routes, such as `/users/{id}` or
    /// `/files/{*rest}`.
    PathPattern, path, "a path such as \"/users/{id}\"",
    { "pattern": "^/", "examples": ["/users/{id}", "/files/{*rest}"] }
}

checked_text! {
    /// A host without a port, such as `api.example.com`, or all names below it, such as
    /// `*.example.com`.
    HostPattern, when::try_host, "a host such as \"api.example.com\"",
    { "minLength": 1, "examples": ["api.example.com", "*.example.com"] }
}

checked_text! {
    /// A network or an address, such as `10.0.0.0/8`, `2001:db8::/32` or `192.0.2.7`.
    Network, |text: &str| when::try_address_in(key::client_ip(), [text]), "a network such as \"10.0.0.0/8\"",
    { "minLength": 2, "examples": ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"] }
}

checked_text! {
    /// The full name of a gRPC service, such as `grpc.health.v1.Health`.
    GrpcService, when::try_grpc_service, "a gRPC service such as \"grpc.health.v1.Health\"",
    { "pattern": "^[^/]+$", "examples": ["grpc.health.v1.Health"] }
}

checked_text! {
    /// The full name of a gRPC method, such as `grpc.health.v1.Health/Check`.
    GrpcMethod, when::try_grpc_method, "a gRPC method such as \"grpc.health.v1.Health/Check\"",
    { "pattern": "^[^/]+/[^/]+$", "examples": ["grpc.health.v1.Health/Check"] }
}

checked_text! {
    /// A request method, such as `GET` or `POST`.
    MethodText, method, "a method such as \"GET\"",
    { "pattern": "^[!#$%&'*+.^_`|~0-9A-Z-]+$", "examples": ["GET", "POST"] }
}

checked_text! {
    /// The name of a header, such as `x-api-key`.
    HeaderText, header, "a header such as \"x-api-key\"",
    { "pattern": "^[!#$%&'*+.^_`|~0-9a-zA-Z-]+$", "examples": ["x-api-key"] }
}

/// Checks a pattern of paths, and makes the router's reason a part of a sentence.
impl Network {
    /// Returns the network as the layer compares addresses.
    ///
    /// IPv4-mapped IPv6 networks become IPv4.
    #[must_use]
    pub fn to_net(&self) -> IpNet {
        let range = when::try_network_range(self.as_str()).ok();
        let network = range.and_then(|(first, last)| {
            let mut networks = core::iter::successors(Some(IpNet::from(first)), IpNet::supernet);
            networks.find(|network| network.contains(&last))
        });
        // The text is always a valid network, so the default is never used.
        network.unwrap_or(IpNet::from(IpAddr::V4(Ipv4Addr::BROADCAST)))
    }
}

fn path(text: &str) -> Result<(), TextError> {
    match when::try_path(text) {
        Ok(_) => Ok(()),
        Err(when::PatternError::Path { pattern, reason }) => {
            let mut reason = reason.trim_end_matches('.').replace(": ", ", ");
            if let Some(first) = reason.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            let wrong = format_args!("{pattern:?} is not a pattern of paths, {reason}");
            Err(TextError::new(
                wrong,
                "write it as \"/users/{id}\" or \"/files/{*rest}\"",
            ))
        }
        Err(other) => Err(TextError::of(other)),
    }
}

/// Checks a method. Methods are case-sensitive, so lower case matches no request.
fn method(text: &str) -> Result<(), TextError> {
    let is_method = Method::from_bytes(text.as_bytes()).is_ok();
    let fix = match text.to_ascii_uppercase() {
        upper if is_method && upper == text => return Ok(()),
        upper if is_method => format!("write {upper:?}"),
        _ => "give one such as \"GET\" or \"POST\"".into(),
    };
    Err(TextError::new(
        format_args!("{text:?} is not the method of any request"),
        fix,
    ))
}

fn header(text: &str) -> Result<(), TextError> {
    match HeaderName::from_bytes(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => Err(TextError::new(
            format_args!("{text:?} is not the name of a header"),
            "give one such as \"x-api-key\"",
        )),
    }
}
