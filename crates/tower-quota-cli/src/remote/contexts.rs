//! Reads the services that you operate from a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{Ended, Output};

/// The services of the file, by name.
pub(crate) struct Contexts {
    path: PathBuf,
    services: BTreeMap<String, Context>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Context {
    pub(super) admin: String,
    pub(super) token_file: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
}

/// Lists the services of the file.
pub(crate) fn list() -> Ended {
    let services = Contexts::read()?.services;
    let rows = services.into_iter().map(|(name, context)| {
        json!({ "name": name, "admin": context.admin, "token_file": context.token_file })
    });
    Output::answer(rows.collect::<Vec<Value>>().into())
}

impl Contexts {
    pub(super) fn read() -> Result<Self, Failure> {
        let path = path()?;
        let text = fs::read_to_string(&path).map_err(Failure::at(path.display()))?;
        // The message has no lines of the file, which may have a token by mistake.
        let mut services: BTreeMap<String, Context> = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.unwrap_or_default().matches('\n').count() + 1;
            Failure::Usage(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for context in services.values_mut() {
            let files = [&mut context.token_file, &mut context.ca];
            for file in files.into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        Ok(Self { path, services })
    }

    /// Returns the service with a name.
    pub(super) fn named(mut self, name: &str) -> Result<Context, Failure> {
        self.services.remove(name).ok_or_else(|| {
            let names: Vec<&str> = self.services.keys().map(String::as_str).collect();
            let (path, names) = (self.path.display(), names.join(", "));
            Failure::Usage(format!("{path} has no {name:?}: give one of {names}"))
        })
    }
}

impl Context {
    /// Returns a service without a token.
    pub(super) fn at(admin: String) -> Self {
        Self {
            admin,
            ..Self::default()
        }
    }
}

fn path() -> Result<PathBuf, Failure> {
    let folder = |name: &str| env::var_os(name).filter(|folder| !folder.is_empty());
    let config = folder("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".config")));
    let config = config.ok_or_else(|| {
        Failure::Usage("there is no folder for contexts: set XDG_CONFIG_HOME or HOME".into())
    })?;
    Ok(config.join("tower-quota/contexts.toml"))
}
