/// Parses a number without a sign. Larger numbers saturate at 64 bits.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let are_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().unwrap_or(u64::MAX))
}
