use core::fmt;
use core::str::FromStr;

use tower_quota::key::ValueKey;

use super::error::TextError;
use super::macros::written_as_text;
use super::name::NameText;

/// A counted key as text, such as `client_ip`, `header x-api-key` or `path_segment 0`.
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
    /// `none`, for a counter of all requests.
    None,
    /// `client_ip` or `client_ip /48 v4/24`, the client's address or network.
    ClientIp {
        /// The leading bits of an IPv4 address, instead of the document's.
        v4: Option<u8>,
        /// The leading bits of an IPv6 address, instead of the document's.
        v6: Option<u8>,
    },
    /// `header x-api-key`, `bearer` or `path_segment 0`, a value of the request.
    Value(ValueKey),
    /// `code tenant`, an extractor from your code.
    Code(NameText),
}

impl FromStr for KeyText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let text = text.trim();
        let (word, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match word {
            "none" if argument.is_empty() => Ok(Self::None),
            "none" => Err(TextError::new(
                format_args!(
                    "{:?} after the key \"none\" means nothing",
                    argument.trim_start()
                ),
                "write \"none\" alone",
            )),
            "client_ip" => prefixes(argument),
            "code" => Ok(Self::Code(argument.trim_start().parse()?)),
            word if value_words().any(|known| known == word) => {
                text.parse().map(Self::Value).map_err(TextError::of)
            }
            unknown => Err(unknown_key(unknown)),
        }
    }
}

fn value_words() -> impl Iterator<Item = &'static str> {
    ValueKey::EXAMPLES
        .into_iter()
        .filter_map(|example| example.split(' ').next())
}

fn unknown_key(word: &str) -> TextError {
    let words = ["none", "client_ip", "code"];
    let wrong = format!("{word:?} is not a key");
    match crate::problem::nearest(word, value_words().chain(words)) {
        Some(near) => TextError::new(wrong, format_args!("write {near:?}, if that is meant")),
        None => TextError::new(
            wrong,
            "give one such as \"client_ip\", \"header x-api-key\" or \"none\"",
        ),
    }
}

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
            Self::Value(key) => write!(f, "{key}"),
            Self::Code(name) => write!(f, "code {name}"),
        }
    }
}

fn pattern() -> String {
    let values = ValueKey::EXAMPLES.map(|example| match example.split_once(' ') {
        Some((word, "0")) => format!(r"{word}\s+[0-9]+"),
        Some((word, _)) => format!(r"{word}\s+\S.*"),
        None => example.into(),
    });
    format!(
        r"^\s*(none|client_ip(\s+(v4)?/[0-9]+){{0,2}}|code\s+\S.*|{})\s*$",
        values.join("|")
    )
}

written_as_text!(KeyText, "a key such as \"client_ip\" or \"header x-api-key\"", {
    "pattern": pattern(),
    "examples": ["client_ip", "client_ip /48 v4/24", "header x-api-key", "bearer", "query api_key", "path_segment 0", "none"]
});
