use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Instrument;

use crate::problem::{Problem, ProblemKind, Result};

/// A bounded number of places, of which an author gets a part.
pub(crate) struct Places {
    most: usize,
    most_each: usize,
    /// The number of places by author. Requests without an author share the empty name.
    taken: Mutex<HashMap<String, usize>>,
}

/// A place, which its drop frees.
pub(crate) struct Place {
    places: Arc<Places>,
    author: String,
}

impl Places {
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self {
            most,
            most_each,
            taken: Mutex::default(),
        }
    }

    pub(crate) fn enter(self: &Arc<Self>, author: &str) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(author).copied().unwrap_or_default();
        let is_full = taken.values().sum::<usize>() >= self.most;
        if is_full || !author.is_empty() && own >= self.most_each {
            return None;
        }
        taken.insert(author.to_owned(), own + 1);
        Some(Place {
            places: Arc::clone(self),
            author: author.to_owned(),
        })
    }
}

impl Place {
    /// Runs work to its end in a task, which keeps the place even if the answer exceeds its timeout.
    pub(crate) async fn hold<T: Send + 'static>(
        self: Arc<Self>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let working = async move {
            let _place = self;
            work.await
        };
        let ended = tokio::spawn(working.in_current_span()).await;
        ended.map_err(|error| Problem::new(ProblemKind::Unavailable, error))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let taken = &self.places.taken;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.author) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.author);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_takes_not_all_places() {
        let places = Arc::new(Places::new(32, 8));
        let enter = |author: &str, most| -> Vec<Place> {
            core::iter::from_fn(|| places.enter(author))
                .take(most)
                .collect()
        };
        let ann = enter("ann", 99);
        assert_eq!(ann.len(), 8);
        assert!(places.enter("bob").is_some());
        let others = enter("", 99);
        assert_eq!(ann.len() + others.len(), 32);
        assert!(places.enter("bob").is_none());
        drop((ann, others));
        assert!(places.enter("bob").is_some());
        assert!(places.taken.lock().unwrap().is_empty());
    }
}
