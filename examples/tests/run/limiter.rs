//! Tests of the job without HTTP.

use std::process::Command;

use crate::example::program;

#[test]
fn limiter_runs_to_its_end() {
    let output = Command::new(program("limiter")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in [
        "mail 1: waited 0 ms, sent\n",
        "mail 3: waited 0 ms, invalid address\n",
        "mail 8: waited",
        "hour: 99",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}
