use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Role, Token};
use crate::AdminError;

/// A file with a token per line, `name:role:token`, which is read again for each request.
pub(crate) struct TokenFile {
    path: PathBuf,
    last: Mutex<LastRead>,
}

struct LastRead {
    tokens: Arc<[Token]>,
    mistake: Option<AdminError>,
}

impl TokenFile {
    pub(crate) fn open(path: PathBuf) -> Result<Self, AdminError> {
        let last = LastRead {
            tokens: read(&path)?,
            mistake: None,
        };
        Ok(Self {
            path,
            last: Mutex::new(last),
        })
    }

    /// Returns the tokens in the file now, or the last ones if the file has a mistake, which must
    /// lock nobody out. Blocks while the file is read.
    pub(crate) fn tokens(&self) -> Arc<[Token]> {
        let read = read(&self.path);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(tokens) => {
                *last = LastRead {
                    tokens,
                    mistake: None,
                };
            }
            Err(mistake) => {
                // Log the same mistake once.
                if last.mistake.as_ref() != Some(&mistake) {
                    tracing::warn!(target: "tower_quota::admin", "the tokens stay as they are: {mistake}");
                }
                last.mistake = Some(mistake);
            }
        }
        Arc::clone(&last.tokens)
    }
}

fn read(path: &Path) -> Result<Arc<[Token]>, AdminError> {
    let unusable = |reason: String| AdminError::TokenFile {
        path: path.display().to_string(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut parts = line.splitn(3, ':').map(str::to_owned);
        let (name, role, token) = (parts.next(), parts.next(), parts.next());
        let (Some(name), Some(role), Some(token)) =
            (name, role.as_deref().and_then(Role::named), token)
        else {
            let fix = "write NAME:ROLE:TOKEN, with the role read, operate or rules";
            return Err(unusable(format!("line {number}: {fix}")));
        };
        let token = Token::new(name, token, role);
        token.check()?;
        tokens.push(token);
    }
    match tokens.is_empty() {
        true => Err(unusable("there is no token in it".into())),
        false => Ok(tokens.into()),
    }
}
