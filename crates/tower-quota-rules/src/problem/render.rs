use core::fmt::Write;

use super::one::Problem;

const SHOWN: usize = 60;

pub(super) fn render(problems: &[Problem], more: usize, source: &str, name: &str) -> String {
    // A byte order mark does not belong to the first line.
    let lines: Vec<&str> = source
        .strip_prefix('\u{feff}')
        .unwrap_or(source)
        .lines()
        .collect();
    let mut out = String::new();
    for problem in problems {
        // Writing to a string cannot fail.
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
    writeln!(out, "{}: {}", problem.severity, Shown(&problem.message))?;
    let place = problem.line.zip(problem.column);
    let number = place.map_or(String::new(), |(line, _)| line.to_string());
    let gutter = " ".repeat(number.len());
    let at = if problem.path.is_empty() {
        String::new()
    } else {
        format!(" at {}", Shown(&problem.path))
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
        let shown: String = line
            .chars()
            .skip(start)
            .take(column - start + SHOWN)
            .collect();
        let before = shown.chars().take(column - start);
        let width: usize = before.map(Shown::width).sum();
        writeln!(out, "{gutter} |")?;
        writeln!(out, "{number} | {}", Shown(shown.trim_end()))?;
        writeln!(out, "{gutter} | {}^", " ".repeat(width))?;
    }
    if let Some(help) = &problem.help {
        writeln!(out, "{gutter} = help: {}", Shown(help))?;
    }
    writeln!(out)
}

/// Escapes control characters, which could hide or change the text on a terminal.
struct Shown<'a>(&'a str);

impl Shown<'_> {
    fn width(character: char) -> usize {
        match character {
            '\t' => 4,
            c if is_hidden(c) => c.escape_unicode().count(),
            _ => 1,
        }
    }
}

/// Returns whether a character is invisible, or changes the direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

impl core::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\t' => f.write_str("    ")?,
                c if is_hidden(c) => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
