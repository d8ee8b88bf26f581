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

/// A service. Never print the token.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Context {
    pub(super) admin: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
}

/// Lists the services of the file, without tokens.
pub(crate) fn list() -> Ended {
    let services = Contexts::read()?.services;
    let rows: Vec<Value> = services
        .iter()
        .map(|(name, context)| context.row(name))
        .collect();
    Output::answer(rows.into())
}

impl Contexts {
    pub(super) fn read() -> Result<Self, Failure> {
        let path = path()?;
        let text = fs::read_to_string(&path).map_err(Failure::at(path.display()))?;
        // The text of the error has no lines of the file, which may have tokens.
        let mut services: BTreeMap<String, Context> = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.unwrap_or_default().matches('\n').count() + 1;
            Failure::Usage(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for (name, context) in &mut services {
            if context.token.is_some() && context.token_file.is_some() {
                let text = format!(
                    "{}: {name} has a token and a token_file: remove one",
                    path.display()
                );
                return Err(Failure::Usage(text));
            }
            for file in [&mut context.token_file, &mut context.ca]
                .into_iter()
                .flatten()
            {
                *file = folder.join(&*file);
            }
        }
        if services.values().any(|context| context.token.is_some()) && is_readable_by_others(&path)
        {
            let path = path.display();
            eprintln!("warning: other users can read the tokens in {path}: run chmod 600 {path}");
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

    pub(super) fn token(&self) -> Result<Option<String>, Failure> {
        match &self.token_file {
            Some(path) => read_token(path).map(Some),
            None => Ok(self.token.clone()),
        }
    }

    fn row(&self, name: &str) -> Value {
        let token = match (&self.token, &self.token_file) {
            (Some(_), _) => "in the file".into(),
            (None, Some(path)) => path.display().to_string(),
            (None, None) => String::new(),
        };
        json!({ "name": name, "admin": self.admin, "token": token })
    }
}

pub(super) fn read_token(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::at(path.display()))
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

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Path) -> bool {
    false
}
