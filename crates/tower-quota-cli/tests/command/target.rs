//! The target of the commands in a test.

use crate::command::{Ran, command};
use crate::service::{TOKEN, TestService};

pub(crate) const RULES: &str = "\
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 3/minute }]
tiers: { pro: { limits: { minute: 30/minute } } }
assign: [{ key: \"pro_*\", tier: pro }]
";

/// The target of a command, an admin API with a token.
pub(crate) struct TestTarget {
    variables: Vec<(&'static str, String)>,
}

impl TestTarget {
    pub(crate) fn admin(service: &TestService) -> Self {
        Self {
            variables: vec![
                ("TOWER_QUOTA_ADMIN", service.admin.clone()),
                ("TOWER_QUOTA_TOKEN", TOKEN.into()),
            ],
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(
            command(arguments)
                .envs(self.variables.clone())
                .output()
                .unwrap(),
        )
    }
}
