//! Keys as text.

use core::fmt;
use core::str::FromStr;

use super::error::TextError;
use super::macros::written_as_text;
use super::name::NameText;
use super::pattern::HeaderText;

/// A key that requests are counted by, as text: `client_ip`, `header x-api-key`, `path_segment 0`.
///
/// Each is an extractor of [`tower_quota::key`].
///
/// ```
/// use tower_quota_rules::KeyText;
///
/// let key: KeyText = "client_ip /48".parse()?;
/// assert_eq!(key, KeyText::ClientIp { v4: None, v6: Some(48) });
/// # Ok::<(), tower_quota_rules::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyText {
    /// `none`: all requests together.
    None,
    /// `client_ip`, `client_ip /48 v4/24`: the client's address, or its network of these lengths in bits.
    ClientIp {
        /// The leading bits of an IPv4 address, if not the document's.
        v4: Option<u8>,
        /// The leading bits of an IPv6 address, if not the document's.
        v6: Option<u8>,
    },
    /// `header x-api-key`: a header's value.
    Header(HeaderText),
    /// `bearer`: a bearer token.
    Bearer,
    /// `basic_user`: the user of Basic authentication.
    BasicUser,
    /// `cookie session`: a cookie's value.
    Cookie(Box<str>),
    /// `query api_key`: a parameter of the query.
    Query(Box<str>),
    /// `route`: the pattern of the route that axum has matched.
    Route,
    /// `path_parameter id`: a parameter of the route that axum has matched.
    PathParameter(Box<str>),
    /// `path_segment 0`: a segment of the path, counted from 0.
    PathSegment(usize),
    /// `path`: the path.
    Path,
    /// `host`: the requested host.
    Host,
    /// `method`: the method.
    Method,
    /// `grpc_service`: the gRPC service.
    GrpcService,
    /// `grpc_method`: the gRPC method with its service.
    GrpcMethod,
    /// `metadata x-tenant`: a value of gRPC metadata.
    Metadata(HeaderText),
    /// `code tenant`: an extractor that code gives by this name.
    Code(NameText),
}

/// The first words of keys.
const WORDS: [&str; 17] = [
    "none",
    "client_ip",
    "header",
    "bearer",
    "basic_user",
    "cookie",
    "query",
    "route",
    "path_parameter",
    "path_segment",
    "path",
    "host",
    "method",
    "grpc_service",
    "grpc_method",
    "metadata",
    "code",
];

impl FromStr for KeyText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let text = text.trim();
        let (word, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let argument = argument.trim_start();
        let named = |of: fn(Box<str>) -> Self, example: &str| match argument.is_empty() {
            true => Err(TextError::new(
                format_args!("the key {word:?} does not say which"),
                format_args!("write {example:?}"),
            )),
            false => Ok(of(argument.into())),
        };
        let key = match word {
            "client_ip" => return prefixes(argument),
            "header" => return Ok(Self::Header(argument.parse()?)),
            "metadata" => return Ok(Self::Metadata(argument.parse()?)),
            "code" => return Ok(Self::Code(argument.parse()?)),
            "cookie" => return named(Self::Cookie, "cookie session"),
            "query" => return named(Self::Query, "query api_key"),
            "path_parameter" => return named(Self::PathParameter, "path_parameter id"),
            "path_segment" => {
                let wrong = |_| {
                    TextError::new(
                        format_args!("{argument:?} is not the number of a segment"),
                        "count from 0, as in \"path_segment 0\"",
                    )
                };
                return argument.parse().map(Self::PathSegment).map_err(wrong);
            }
            "none" => Self::None,
            "bearer" => Self::Bearer,
            "basic_user" => Self::BasicUser,
            "route" => Self::Route,
            "path" => Self::Path,
            "host" => Self::Host,
            "method" => Self::Method,
            "grpc_service" => Self::GrpcService,
            "grpc_method" => Self::GrpcMethod,
            unknown => return Err(unknown_key(unknown)),
        };
        if argument.is_empty() {
            return Ok(key);
        }
        Err(TextError::new(
            format_args!("{argument:?} after the key {word:?} means nothing"),
            format_args!("write {word:?} alone"),
        ))
    }
}

fn unknown_key(word: &str) -> TextError {
    let wrong = format!("{word:?} is not a key");
    match crate::problem::nearest(word, WORDS) {
        Some(near) => TextError::new(wrong, format_args!("write {near:?}, if that is meant")),
        None => TextError::new(
            wrong,
            "give one such as \"client_ip\", \"header x-api-key\" or \"none\"",
        ),
    }
}

/// Reads the lengths of prefixes: `/48 v4/24`.
fn prefixes(text: &str) -> Result<KeyText, TextError> {
    let (mut v4, mut v6) = (None, None);
    for word in text.split_whitespace() {
        let (field, bits, most) = match (word.strip_prefix("v4/"), word.strip_prefix('/')) {
            (Some(bits), _) => (&mut v4, bits, 32),
            (None, Some(bits)) => (&mut v6, bits, 128),
            (None, None) => {
                return Err(TextError::new(
                    format_args!("{word:?} is not the length of a prefix"),
                    "write \"client_ip /48 v4/24\" for IPv6 and IPv4",
                ));
            }
        };
        let bits = bits.parse().ok().filter(|bits| (1..=most).contains(bits));
        if bits.is_none() || field.is_some() {
            let wrong = format_args!("{word:?} is not the length of a prefix");
            return Err(TextError::new(wrong, format_args!("give 1 to {most} once")));
        }
        *field = bits;
    }
    Ok(KeyText::ClientIp { v4, v6 })
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::ClientIp { v4, v6 } => {
                f.write_str("client_ip")?;
                if let Some(bits) = v6 {
                    write!(f, " /{bits}")?;
                }
                match v4 {
                    Some(bits) => write!(f, " v4/{bits}"),
                    None => Ok(()),
                }
            }
            Self::Header(name) => write!(f, "header {name}"),
            Self::Bearer => f.write_str("bearer"),
            Self::BasicUser => f.write_str("basic_user"),
            Self::Cookie(name) => write!(f, "cookie {name}"),
            Self::Query(name) => write!(f, "query {name}"),
            Self::Route => f.write_str("route"),
            Self::PathParameter(name) => write!(f, "path_parameter {name}"),
            Self::PathSegment(number) => write!(f, "path_segment {number}"),
            Self::Path => f.write_str("path"),
            Self::Host => f.write_str("host"),
            Self::Method => f.write_str("method"),
            Self::GrpcService => f.write_str("grpc_service"),
            Self::GrpcMethod => f.write_str("grpc_method"),
            Self::Metadata(name) => write!(f, "metadata {name}"),
            Self::Code(name) => write!(f, "code {name}"),
        }
    }
}

written_as_text!(KeyText, "a key such as \"client_ip\" or \"header x-api-key\"", {
    "pattern": "^\\s*(none|client_ip(\\s+(v4)?/[0-9]+){0,2}|(header|metadata|code|cookie|query|path_parameter)\\s+\\S.*\
|path_segment\\s+[0-9]+|bearer|basic_user|route|path|host|method|grpc_service|grpc_method)\\s*$",
    "examples": ["client_ip", "client_ip /48 v4/24", "header x-api-key", "bearer", "query api_key", "path_segment 0", "none"]
});
