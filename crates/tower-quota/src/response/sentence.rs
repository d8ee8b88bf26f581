use core::fmt::Write;

/// A sentence for people, as plain text or in a JSON string.
pub(super) struct Sentence<'t> {
    text: &'t mut String,
    is_json: bool,
}

impl<'t> Sentence<'t> {
    pub(super) const fn plain(text: &'t mut String) -> Self {
        Self {
            text,
            is_json: false,
        }
    }

    pub(super) const fn in_json(json: &'t mut String) -> Self {
        Self {
            text: json,
            is_json: true,
        }
    }

    /// Appends words that need no escapes.
    pub(super) fn words(&mut self, words: &str) {
        self.text.push_str(words);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.text.push_str(itoa::Buffer::new().format(number));
    }

    /// Appends any text, such as a name from the policy.
    pub(super) fn any(&mut self, text: &str) {
        if self.is_json {
            push_escaped(self.text, text);
        } else {
            self.text.push_str(text);
        }
    }

    pub(super) fn quoted(&mut self, text: &str) {
        let quote = if self.is_json { "\\\"" } else { "\"" };
        self.words(quote);
        self.any(text);
        self.words(quote);
    }
}

/// Appends a text, escaped by RFC 8259, section 7.
pub(super) fn push_escaped(json: &mut String, text: &str) {
    let is_plain = |byte| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        json.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            // Writing to a string cannot fail.
            ..' ' => _ = write!(json, "\\u{:04x}", u32::from(character)),
            _ => json.push(character),
        }
    }
}
