//! Figures as text.

/// Writes three significant digits, with commas between thousands.
pub(super) fn written(figure: f64) -> String {
    match figure.abs() {
        small if small < 9.995 => format!("{figure:.2}"),
        medium if medium < 99.95 => format!("{figure:.1}"),
        _ => apart(&format!("{figure:.0}")),
    }
}

/// Writes a figure as short as possible, to fit on top of a bar.
pub(super) fn short(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_owned(),
        thousands if thousands >= 9_999.5 => format!("{:.0}k", figure / 1_000.0),
        thousands if thousands >= 999.5 => format!("{:.1}k", figure / 1_000.0),
        small if small < 9.95 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

fn apart(digits: &str) -> String {
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
