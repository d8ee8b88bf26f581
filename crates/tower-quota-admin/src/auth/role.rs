use core::fmt;

use http::Method;

/// The rights of a token, or of a request from your own layer. A role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads everything, for dashboards.
    Read,
    /// Resets, grants, blocks, allows and overrides single clients.
    Operate,
    /// Changes the rules.
    Rules,
}

impl Role {
    /// Returns the role required by an operation. Other operations require the highest role.
    pub(crate) fn needed(method: &Method, path: &str) -> Self {
        match (method.as_str(), path) {
            ("GET" | "HEAD", _)
            | (
                "POST",
                "/v1/rules/check"
                | "/v1/clients/find"
                | "/v1/clients/peek"
                | "/v1/clients/refusals"
                | "/v1/explain",
            ) => Self::Read,
            ("POST" | "PUT" | "DELETE", path) if is_of_clients(path) => Self::Operate,
            _ => Self::Rules,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut roles = [Self::Read, Self::Operate, Self::Rules].into_iter();
        roles.find(|role| role.as_str() == name)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Rules => "rules",
        }
    }
}

fn is_of_clients(path: &str) -> bool {
    let mut parts = ["/v1/clients/", "/v1/blocks", "/v1/overrides"].into_iter();
    parts.any(|part| path.starts_with(part))
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
