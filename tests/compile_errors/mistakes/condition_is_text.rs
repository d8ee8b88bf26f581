use tower_quota::{Limit, Quota};

fn main() {
    let _ = Limit::new("login", Quota::per_minute(5)).when("/login");
}
