use core::error::Error;
use core::fmt;
use core::str::FromStr;

use super::values::{
    ValueKey, basic_user, bearer, cookie, grpc_method, grpc_service, host, method, path,
    path_segment, query, try_header, try_metadata,
};
#[cfg(feature = "axum")]
use super::values::{path_parameter, route};

impl ValueKey {
    /// An example of a text for each extractor.
    pub const EXAMPLES: [&str; 14] = [
        "header x-api-key",
        "bearer",
        "basic_user",
        "cookie session",
        "query key",
        "route",
        "path_parameter id",
        "path_segment 0",
        "path",
        "host",
        "method",
        "grpc_service",
        "grpc_method",
        "metadata x-api-key",
    ];
}

impl FromStr for ValueKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        let text = text.trim();
        let (word, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let argument = argument.trim_start();
        let takes_name = |example: &&str| example.starts_with(&format!("{word} "));
        if argument.is_empty()
            && let Some(example) = Self::EXAMPLES.into_iter().find(takes_name)
        {
            return Err(KeyTextError(format!(
                "the key {word:?} does not say which: write {example:?}"
            )));
        }
        let not_a_header = |_| {
            KeyTextError(format!(
                "{argument:?} is not the name of a header: give one such as \"x-api-key\""
            ))
        };
        let not_a_number = |_| {
            KeyTextError(format!(
                "{argument:?} is not the number of a segment: count from 0, as in \"path_segment 0\""
            ))
        };
        let key = match word {
            "header" => return try_header(argument).map_err(not_a_header),
            "metadata" => return try_metadata(argument).map_err(not_a_header),
            "cookie" => return Ok(cookie(String::from(argument))),
            "query" => return Ok(query(String::from(argument))),
            #[cfg(feature = "axum")]
            "path_parameter" => return Ok(path_parameter(String::from(argument))),
            "path_segment" => return argument.parse().map(path_segment).map_err(not_a_number),
            "bearer" => bearer(),
            "basic_user" => basic_user(),
            #[cfg(feature = "axum")]
            "route" => route(),
            #[cfg(not(feature = "axum"))]
            "route" | "path_parameter" => {
                return Err(KeyTextError(format!(
                    "the key {text:?} is axum's: build the service with the feature `axum`"
                )));
            }
            "path" => path(),
            "host" => host(),
            "method" => method(),
            "grpc_service" => grpc_service(),
            "grpc_method" => grpc_method(),
            _ => {
                return Err(KeyTextError(format!(
                    "{word:?} is not a key: give one such as \"header x-api-key\" or \"path\""
                )));
            }
        };
        if argument.is_empty() {
            return Ok(key);
        }
        Err(KeyTextError(format!(
            "{argument:?} after the key {word:?} means nothing: write {word:?} alone"
        )))
    }
}

/// Writes text that parses back.
impl fmt::Display for ValueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.as_str())
    }
}

/// An invalid extractor text. The message says how to fix the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTextError(String);

impl fmt::Display for KeyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for KeyTextError {}
