//! The limit of the crate, which is not public.
#![allow(dead_code, unused_imports, reason = "the layer uses more")]

#[path = "../../src/limit/adaptive.rs"]
mod adaptive;
#[path = "../../src/limit/sample.rs"]
mod sample;
#[path = "../../src/limit/search.rs"]
mod search;
#[path = "../../src/limit/sync.rs"]
mod sync;
#[path = "../../src/limit/window.rs"]
mod window;

pub(crate) use self::adaptive::Limit;
pub(crate) use self::sample::{Kind, Sample};
pub(crate) use self::search::Search;
pub(crate) use self::settings::LimitSettings;
pub(crate) use self::window::Window;

mod settings {
    /// The range, without the error of the crate.
    #[derive(Clone, Debug)]
    pub(crate) struct LimitSettings {
        pub(crate) floor: usize,
        pub(crate) start: usize,
        pub(crate) ceiling: usize,
    }
}
