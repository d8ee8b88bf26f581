use super::error::TextError;
use super::macros::checked_text;

checked_text! {
    /// Words for clients in an answer, at most 200 characters without control characters.
    WordsText, words, "words for clients, such as \"API key in the header x-api-key\"", {
        "minLength": 1,
        "maxLength": 200
    }
}

fn words(text: &str) -> Result<(), TextError> {
    let is_short = (1..=200).contains(&text.chars().count());
    if is_short && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(TextError::new(
        format_args!("{text:?} cannot be a part of an answer"),
        "give 1 to 200 characters in one line",
    ))
}

#[cfg(test)]
mod tests {
    use super::WordsText;

    #[test]
    fn words_fit_into_one_line() {
        assert!("clé d'API".parse::<WordsText>().is_ok());
        for text in ["", "a\nb", &"a".repeat(201)] {
            assert!(text.parse::<WordsText>().is_err(), "{text}");
        }
    }
}
