//! Values with wildcards.

/// The parts of a value around its `*`, each of which stands for any number of characters.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Box<[Box<str>]>);

impl Pattern {
    /// Returns `None` for a value without a wildcard.
    pub(super) fn new(text: &str) -> Option<Self> {
        let parts: Box<[Box<str>]> = text.split('*').map(Into::into).collect();
        (parts.len() > 1).then_some(Self(parts))
    }

    pub(super) fn matches(&self, value: &str) -> bool {
        let [first, middle @ .., last] = &*self.0 else {
            return false;
        };
        let inner = value.strip_prefix(&**first);
        let Some(mut rest) = inner.and_then(|inner| inner.strip_suffix(&**last)) else {
            return false;
        };
        for part in middle {
            match rest.split_once(&**part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_match_any_characters() {
        for (pattern, value, matches) in [
            ("*", "", true),
            ("*", "anything", true),
            ("img/*", "img/", true),
            ("img/*", "im/", false),
            ("*.png", "a.png", true),
            ("*.png", ".pn", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("ab*ba", "aba", false),
            ("x*mid*y", "x mid y", true),
            ("x*mid*y", "xmidy", true),
            ("x*mid*y", "x y", false),
            ("x*one*two*y", "x two one y", false),
            ("x*one*two*y", "x one two y", true),
            ("a**b", "ab", true),
            ("é*é", "éé", true),
        ] {
            let found = Pattern::new(pattern).map(|pattern| pattern.matches(value));
            assert_eq!(found, Some(matches), "{pattern} {value}");
        }
        assert!(Pattern::new("plain").is_none());
    }
}
