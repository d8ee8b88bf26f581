use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{Role, Token};
use crate::AdminError;

/// The longest time for which a request waits for the file.
const DEADLINE: Duration = Duration::from_secs(1);

/// A file with a token per line, `name:role:token`, which is read again for each request.
pub(crate) struct TokenFile {
    path: PathBuf,
    last: Mutex<LastRead>,
    turn: Arc<tokio::sync::Mutex<()>>,
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
            turn: Arc::default(),
        })
    }

    /// Returns the tokens in the file now, or the last ones if the file has a mistake or does not
    /// answer, which must lock nobody out.
    pub(crate) async fn tokens(self: &Arc<Self>) -> Arc<[Token]> {
        // One request at a time reads, and the others use the last tokens. Otherwise a flood of
        // requests without a token, or a file that hangs, takes all threads that may block.
        if let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() {
            let file = Arc::clone(self);
            let read = spawn_blocking(move || {
                file.read_again();
                drop(turn);
            });
            if timeout(DEADLINE, read).await.is_err() {
                let path = self.path.display();
                tracing::warn!(target: "tower_quota::admin", "the tokens stay as they are: {path} does not answer");
            }
        }
        Arc::clone(&self.last().tokens)
    }

    fn last(&self) -> MutexGuard<'_, LastRead> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_again(&self) {
        let read = read(&self.path);
        let mut last = self.last();
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
