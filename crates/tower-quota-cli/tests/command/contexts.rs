//! Tests of the file with your services.

use std::fs;

use crate::command::{Files, Ran, command};
use crate::service::{TOKEN, TestService};

/// A folder with a file of contexts.
struct TestContexts(Files);

impl TestContexts {
    fn write(text: &str) -> Self {
        let files = Files::new();
        fs::create_dir(files.path("tower-quota")).unwrap();
        files.write("tower-quota/contexts.toml", text);
        Self(files)
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = command(arguments);
        command.env("XDG_CONFIG_HOME", self.0.path(""));
        Ran::of(command.envs(variables.iter().copied()).output().unwrap())
    }
}

#[test]
fn context_has_address_and_token() {
    let service = TestService::start();
    let text = format!(
        "[orders]\nadmin = \"{admin}\"\ntoken_file = \"orders-token\"\n\n\
         [billing]\nadmin = \"http://127.0.0.1:2\"\n",
        admin = service.admin
    );
    let contexts = TestContexts::write(&text);
    contexts
        .0
        .write("tower-quota/orders-token", format!("{TOKEN}\n"));
    for (arguments, variables) in [
        (
            &["history", "--context", "orders"][..],
            &[("TOWER_QUOTA_ADMIN", "http://127.0.0.1:1")][..],
        ),
        (
            &["history"],
            &[
                ("TOWER_QUOTA_CONTEXT", "orders"),
                ("TOWER_QUOTA_TOKEN", "of another"),
            ],
        ),
    ] {
        let ran = contexts.run(arguments, variables);
        assert_eq!((ran.code, ran.error.as_str()), (0, ""), "{arguments:?}");
    }
    let listed = contexts.run(&["contexts"], &[]).expect(0);
    assert!(
        listed.contains("billing") && listed.contains("orders-token"),
        "{listed}"
    );
    let rows = contexts.run(&["contexts", "--json"], &[]).json(0);
    assert_eq!(rows[1]["name"], "orders");
}

#[test]
fn two_named_services_are_refused() {
    let contexts = TestContexts::write("[orders]\nadmin = \"http://127.0.0.1:1\"\n");
    let both = [
        ("TOWER_QUOTA_ADMIN", "http://127.0.0.1:2"),
        ("TOWER_QUOTA_CONTEXT", "orders"),
    ];
    let ran = contexts.run(&["history"], &both);
    assert!(
        ran.code == 2 && ran.error.contains("two services"),
        "{}",
        ran.error
    );
    // An argument wins over variables.
    let ran = contexts.run(&["history", "--context", "orders"], &both);
    assert!(
        ran.code == 3 && ran.error.contains("127.0.0.1:1"),
        "{}",
        ran.error
    );
}

#[test]
fn mistake_in_contexts_names_line_and_no_token() {
    let admin = "admin = \"http://127.0.0.1:1\"";
    for (text, part) in [
        (
            format!("[orders]\n{admin}\ntokn = \"{TOKEN}\"\n"),
            "contexts.toml:3: unknown field `tokn`",
        ),
        (
            format!("[orders]\n{admin}\ntoken = \"{TOKEN}\"\n"),
            "contexts.toml:3: unknown field `token`",
        ),
        (
            format!("[orders]\n{admin}\ntoken = \"{TOKEN}\n"),
            "contexts.toml:3: ",
        ),
        (
            "[orders]\ntoken_file = \"a\"\n".to_owned(),
            "missing field `admin`",
        ),
        (
            format!("[billing]\n{admin}\n"),
            "has no \"orders\": give one of billing",
        ),
    ] {
        let ran = TestContexts::write(&text).run(&["history", "--context", "orders"], &[]);
        assert!(
            ran.code == 2 && ran.error.contains(part),
            "{part}: {}",
            ran.error
        );
        assert!(!ran.error.contains(TOKEN), "{}", ran.error);
    }
    let ran = TestContexts::write("").run(&["history"], &[]);
    assert!(
        ran.code == 2 && ran.error.contains("--context"),
        "{}",
        ran.error
    );
}
