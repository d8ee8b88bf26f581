//! The regions of a document that this program writes.

use std::error::Error;

/// Returns the document with its region of this name filled anew. A region lies between `<!-- measured: NAME -->` and
/// `<!-- /measured: NAME -->`.
///
/// # Errors
/// When there is no such region: the figures would be lost.
pub(super) fn filled(document: &str, name: &str, text: &str) -> Result<String, Box<dyn Error>> {
    let (before, _, after) = split(document, name)?;
    Ok(format!("{before}\n\n{}\n\n{after}", text.trim()))
}

/// Returns the present text of a region.
#[cfg(test)]
pub(super) fn held<'a>(document: &'a str, name: &str) -> Result<&'a str, Box<dyn Error>> {
    Ok(split(document, name)?.1.trim())
}

/// Returns the text up to the opening mark, the text within, and the text from the closing mark.
fn split<'a>(document: &'a str, name: &str) -> Result<(&'a str, &'a str, &'a str), Box<dyn Error>> {
    let (opening, closing) = (
        format!("<!-- measured: {name} -->"),
        format!("<!-- /measured: {name} -->"),
    );
    let missing = |mark: &str| format!("the document has no {mark}");
    let begin = document.find(&opening).ok_or_else(|| missing(&opening))? + opening.len();
    let end = document[begin..]
        .find(&closing)
        .ok_or_else(|| missing(&closing))?
        + begin;
    Ok((&document[..begin], &document[begin..end], &document[end..]))
}
