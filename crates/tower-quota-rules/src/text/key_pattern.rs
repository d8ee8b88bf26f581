use super::error::TextError;
use super::macros::checked_text;

checked_text! {
    /// A pattern of keys. `*` matches any text, `?` any character, and `\` escapes the next character.
    ///
    /// ```
    /// use tower_quota_rules::KeyPattern;
    ///
    /// let pattern: KeyPattern = "sk_free_*".parse()?;
    /// assert!(pattern.matches(b"sk_free_7") && !pattern.matches(b"sk_prod_7"));
    /// # Ok::<(), tower_quota_rules::TextError>(())
    /// ```
    KeyPattern, pattern, "a pattern such as \"sk_free_*\"",
    { "minLength": 1, "examples": ["sk_free_*"] }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternPart {
    /// A byte of the text.
    Byte(u8),
    /// Any character.
    One,
    /// Any text.
    Any,
}

impl KeyPattern {
    /// Returns the text before the first wildcard, and whether it is the entire pattern.
    #[must_use]
    pub fn literal_prefix(&self) -> (Vec<u8>, bool) {
        let mut prefix = Vec::new();
        for part in self.parts() {
            let PatternPart::Byte(byte) = part else {
                return (prefix, false);
            };
            prefix.push(byte);
        }
        (prefix, true)
    }

    /// Returns whether the pattern is a text and a final star.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        let mut wild = self
            .parts()
            .skip_while(|part| matches!(part, PatternPart::Byte(_)));
        wild.next() == Some(PatternPart::Any) && wild.next().is_none()
    }

    /// Returns whether a key matches, in time bounded by the product of both lengths, without
    /// allocating.
    #[must_use]
    pub fn matches(&self, key: &[u8]) -> bool {
        let mut pattern = self.parts();
        let mut at = 0;
        // On a mismatch, go back to the pattern after the last star, and let the star take one more
        // character.
        let mut retry: Option<(Parts<'_>, usize)> = None;
        loop {
            let next = pattern.next();
            let step = match (next, key.get(at)) {
                (None, None) => return true,
                (Some(PatternPart::Any), _) => {
                    retry = Some((pattern.clone(), at));
                    continue;
                }
                (Some(PatternPart::Byte(byte)), Some(found)) if byte == *found => 1,
                (Some(PatternPart::One), Some(_)) => character_length(&key[at..]),
                _ => 0,
            };
            if step > 0 {
                at += step;
                continue;
            }
            let Some((rest, taken)) = &mut retry else {
                return false;
            };
            if *taken >= key.len() {
                return false;
            }
            *taken += 1;
            (pattern, at) = (rest.clone(), *taken);
        }
    }

    /// Returns `true` only if this pattern matches every key of `other`. The answer `false` may be
    /// wrong.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let (prefix, is_exact) = other.literal_prefix();
        if is_exact {
            return self.matches(&prefix);
        }
        self == other || (self.is_prefix() && prefix.starts_with(&self.literal_prefix().0))
    }

    const fn parts(&self) -> Parts<'_> {
        Parts {
            text: self.as_str().as_bytes(),
        }
    }
}

fn character_length(key: &[u8]) -> usize {
    let continues = key
        .iter()
        .skip(1)
        .take(3)
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    if key.first().is_some_and(|byte| *byte >= 0xc0) {
        1 + continues
    } else {
        1
    }
}

#[derive(Clone)]
struct Parts<'a> {
    text: &'a [u8],
}

impl Iterator for Parts<'_> {
    type Item = PatternPart;

    fn next(&mut self) -> Option<PatternPart> {
        let (first, rest) = self.text.split_first()?;
        self.text = rest;
        Some(match first {
            b'*' => PatternPart::Any,
            b'?' => PatternPart::One,
            b'\\' => {
                let (escaped, rest) = self.text.split_first()?;
                self.text = rest;
                PatternPart::Byte(*escaped)
            }
            byte => PatternPart::Byte(*byte),
        })
    }
}

fn pattern(text: &str) -> Result<(), TextError> {
    let escapes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if text.is_empty() {
        return Err(TextError::new(
            "an empty pattern matches no key",
            "write \"*\" for any key",
        ));
    }
    if escapes % 2 == 1 {
        let wrong = format_args!("the pattern {text:?} ends with a backslash that escapes nothing");
        return Err(TextError::new(wrong, "write two for a backslash"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::KeyPattern;

    fn pattern(text: &str) -> KeyPattern {
        text.parse().expect("valid")
    }

    #[test]
    fn stars_match_any_text() {
        for (text, key, matches) in [
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "bca", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c2b", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a?c", "aéc", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("**a", "xa", true),
            ("a", "ab", false),
        ] {
            assert_eq!(
                pattern(text).matches(key.as_bytes()),
                matches,
                "{text} {key}"
            );
        }
    }

    #[test]
    fn wider_pattern_covers_narrower() {
        for (wide, narrow, covers) in [
            ("sk_*", "sk_free_*", true),
            ("sk_free_*", "sk_*", false),
            ("sk_*", "sk_1", true),
            ("*", "x?", true),
            ("a?", "ab", true),
        ] {
            assert_eq!(
                pattern(wide).covers(&pattern(narrow)),
                covers,
                "{wide} {narrow}"
            );
        }
    }

    #[test]
    fn hostile_pattern_matches_in_bounded_time() {
        let hostile = pattern(&"*a".repeat(200));
        assert!(!hostile.matches("a".repeat(199).as_bytes()));
        assert!(!hostile.matches(&[b"a".repeat(20_000), b"b".to_vec()].concat()));
    }
}
