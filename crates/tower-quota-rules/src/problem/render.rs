use core::fmt::Write;

use super::one::Problem;

const SHOWN: usize = 60;

pub(super) fn render(problems: &[Problem], more: usize, source: &str, name: &str) -> String {
    // Skip a byte order mark, which does not belong to the first line.
    let lines: Vec<&str> = source
        .strip_prefix('\u{feff}')
        .unwrap_or(source)
        .lines()
        .collect();
    let mut out = String::new();
    for problem in problems {
        // Ignore the result, because writing to a string cannot fail.
        let _ = write_problem(&mut out, problem, &lines, name);
    }
    if more > 0 {
        let _ = writeln!(out, "and {more} more");
    }
    out
}

fn write_problem(
    out: &mut String,
    problem: &Problem,
    lines: &[&str],
    name: &str,
) -> core::fmt::Result {
    writeln!(out, "{}: {}", problem.severity, shown(&problem.message))?;
    let place = problem.line.zip(problem.column);
    let number = place.map_or(String::new(), |(line, _)| line.to_string());
    let gutter = " ".repeat(number.len());
    let at = if problem.path.is_empty() {
        String::new()
    } else {
        format!(" at {}", shown(&problem.path))
    };
    match place {
        Some((line, column)) => writeln!(out, "{gutter}--> {name}:{line}:{column}{at}")?,
        None => writeln!(out, "{gutter}--> {name}{at}")?,
    }
    let excerpt =
        place.and_then(|(line, column)| Some((lines.get(line.checked_sub(1)? as usize)?, column)));
    if let Some((line, column)) = excerpt {
        let column = column.saturating_sub(1) as usize;
        let start = column.saturating_sub(SHOWN);
        let mut excerpt = line.chars().skip(start);
        let before: String = excerpt.by_ref().take(column - start).collect();
        let after: String = excerpt.take(SHOWN).collect();
        let before = shown(&before);
        let width = before.chars().count();
        writeln!(out, "{gutter} |")?;
        writeln!(out, "{number} | {before}{}", shown(after.trim_end()))?;
        writeln!(out, "{gutter} | {}^", " ".repeat(width))?;
    }
    if let Some(help) = &problem.help {
        writeln!(out, "{gutter} = help: {}", shown(help))?;
    }
    writeln!(out)
}

/// Escapes control characters, which could hide or change the text on a terminal.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => out += "    ",
            c if is_hidden(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Returns whether a character is invisible, or changes the direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
