//! Tests the service whose dependency becomes slow.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::example::program;

/// Returns the answers in time and the refusals of the service that sheds load, and the answers in time of the other service.
fn figures(line: &str) -> Option<[u32; 3]> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "1x" | "5x", shed, refused, _, "ms", _, without, _, "ms"] = words[..] else {
        return None;
    };
    Some([shed, refused, without].map(|number| number.parse().unwrap()))
}

#[test]
fn shedding_answers_more_requests_in_time() {
    let mut process = Command::new(program("shedding"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let title = lines.next().unwrap();
    assert!(title.contains("with shedding"), "{title}");
    let heads = lines.next().unwrap();
    // The queue of the other service makes all of its answers late.
    let is_shown = lines.by_ref().any(|line| {
        let figures = figures(&line);
        let [shed, refused, without] = figures.unwrap_or_else(|| panic!("{heads}\n{line}"));
        refused > 0 && shed > without
    });
    assert!(is_shown);
    process.kill().unwrap();
    process.wait().unwrap();
}
