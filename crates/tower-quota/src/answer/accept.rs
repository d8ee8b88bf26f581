//! `Accept` (RFC 9110, section 12.5.1): which of the three kinds of refusal a client likes best.

use http::header::{ACCEPT, HeaderMap};

/// Longer than any browser's. What is longer is not read.
const MOST_BYTES: usize = 1_024;

/// The kinds of refusal, in the order in which one is taken when the client does not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Problem,
    Text,
    Html,
}

/// What a client says of each kind: for each range that names it, its weight, in thousandths.
#[derive(Clone, Copy, Default)]
struct Wish {
    exact: Option<u16>,
    /// For problem details, which few clients name: JSON.
    alias: Option<u16>,
    family: Option<u16>,
    anything: Option<u16>,
}

impl Kind {
    /// The kind to answer with: problem details unless the client prefers another. It is what a client gets who says
    /// nothing, who says nothing sound, or who wants none of the three.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(ACCEPT).iter();
        match (lines.next(), lines.next()) {
            // Most programs say no more.
            (None, _) => Self::Problem,
            (Some(only), None) if only.as_bytes() == b"*/*" => Self::Problem,
            _ => read(headers).unwrap_or(Self::Problem),
        }
    }
}

/// `None` when nothing can be read out of the field.
fn read(headers: &HeaderMap) -> Option<Kind> {
    let kinds = [Kind::Problem, Kind::Text, Kind::Html];
    let mut wishes = [Wish::default(); 3];
    let mut length = 0;
    for line in headers.get_all(ACCEPT) {
        length += line.len();
        if length > MOST_BYTES {
            return None;
        }
        // A quoted comma or semicolon, which no client sends, makes a range that is not sound.
        for range in line.to_str().ok()?.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            let (range, weight) = weighed(range)?;
            for (kind, wish) in kinds.iter().zip(&mut wishes) {
                if let Some(slot) = wish.slot(*kind, range) {
                    *slot = Some(weight.max(slot.unwrap_or(0)));
                }
            }
        }
    }
    let weights = wishes.map(Wish::weight);
    let best = weights.into_iter().max().filter(|best| *best > 0)?;
    kinds.into_iter().zip(weights).find(|(_, weight)| *weight == best).map(|(kind, _)| kind)
}

impl Wish {
    /// What a range says something about, if it is about this kind.
    fn slot(&mut self, kind: Kind, range: &str) -> Option<&mut Option<u16>> {
        let (exact, alias, family) = match kind {
            Kind::Problem => ("application/problem+json", "application/json", "application/*"),
            Kind::Text => ("text/plain", "text/plain", "text/*"),
            Kind::Html => ("text/html", "text/html", "text/*"),
        };
        let is = |other: &str| range.eq_ignore_ascii_case(other);
        if is(exact) {
            Some(&mut self.exact)
        } else if is(alias) {
            Some(&mut self.alias)
        } else if is(family) {
            Some(&mut self.family)
        } else if is("*/*") {
            Some(&mut self.anything)
        } else {
            None
        }
    }

    /// The most specific range decides.
    fn weight(self) -> u16 {
        self.exact.or(self.alias).or(self.family).or(self.anything).unwrap_or(0)
    }
}

/// A range without its parameters, and its weight. Parameters but the weight make no difference to us.
fn weighed(range: &str) -> Option<(&str, u16)> {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next().filter(|kind| kind.contains('/'))?;
    let mut weight = 1_000;
    for part in parts {
        let (name, value) = part.split_once('=')?;
        if name.eq_ignore_ascii_case("q") {
            weight = thousandths(value)?;
        }
    }
    Some((kind, weight))
}

/// `0.85` is 850: at most three digits after the point, and at most 1 (RFC 9110, section 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    let sound = matches!(whole, "0" | "1") && digits.len() <= 3 && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !sound {
        return None;
    }
    let padded = format!("{whole}{digits:0<3}");
    padded.parse().ok().filter(|weight| *weight <= 1_000)
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HeaderMap};

    use super::Kind::{self, Html, Problem, Text};

    fn wanted(lines: &[&str]) -> Kind {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, line.parse().unwrap());
        }
        Kind::wanted(&headers)
    }

    #[test]
    fn clients_get_what_they_like_best() {
        for (accept, kind) in [
            // A browser's navigation, and its scripts.
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", Html),
            ("*/*", Problem),
            ("application/json, text/plain, */*", Problem),
            ("application/json", Problem),
            ("application/problem+json;q=0.5, text/plain;q=0.4", Problem),
            ("text/plain", Text),
            ("text/*", Text),
            ("text/plain;q=0.2, text/html;q=0.3", Html),
            ("TEXT/HTML; charset=utf-8; Q=1.000", Html),
            ("text/*;q=0.9, text/plain;q=0.1, application/json;q=0.5", Html),
            ("application/json;q=0, text/*;q=0.001", Text),
            ("application/problem+json;q=0, application/json, text/html;q=0.1", Html),
            ("text/html;q=0, */*;q=0.1", Problem),
        ] {
            assert_eq!(wanted(&[accept]), kind, "{accept}");
        }
        assert_eq!(wanted(&["text/plain;q=0.5", "text/html"]), Html);
    }

    #[test]
    fn nothing_sound_is_the_default() {
        let long = "text/html,".repeat(200);
        for accept in [
            "",
            ",,",
            "image/png",
            "*/*;q=0",
            "text/html;q=2",
            "text/html;q=0.1234",
            "text/html;q=-1",
            "text/html;q=",
            "text/html;q",
            "text",
            "text/html;x=\"a,b\"",
            "text/html;q=1.001",
            "text/html;q=٣",
            &long,
        ] {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT, accept.as_bytes().try_into().unwrap());
            assert_eq!(Kind::wanted(&headers), Problem, "{accept}");
        }
        assert_eq!(Kind::wanted(&HeaderMap::new()), Problem);
    }
}
