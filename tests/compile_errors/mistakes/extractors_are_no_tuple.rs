use tower_quota::{Limit, Quota, key};

fn main() {
    let _ = Limit::new("minute", Quota::per_minute(60)).by(key::all(key::client_ip(), key::method()));
}
