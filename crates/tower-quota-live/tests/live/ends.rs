//! Tests of files that are cut, written in parts, or include another.

use std::fs;
use std::io::Write;
use std::time::Duration;

use tower_quota_live::{ChangeError, FileRules, LiveOptions, MemoryRules, NewVersion};

use crate::fixture::{Instance, document, eventually, pause, yaml};

fn whole(units: u64) -> String {
    document(units) + "end: true\n"
}

/// Returns the first limit of a document.
fn cut(units: u64) -> String {
    let text = document(units);
    let (second, _) = text.match_indices("  - {").nth(1).unwrap();
    text[..second].to_owned()
}

#[tokio::test]
async fn cut_file_never_replaces_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("rules.yaml"), folder.path().join("copy"));
    fs::write(&path, whole(500)).unwrap();
    let start = async || {
        let options = LiveOptions::new().local_copy(&copy);
        Instance::start(FileRules::new(&path).unwrap(), options).await
    };
    let instance = start().await;
    assert_eq!(instance.limits("ann").await, [500, 1_000]);
    fs::write(&path, cut(700)).unwrap();
    eventually("the cut file is refused", async || {
        instance.live.refresh().await;
        let error = instance.live.state().last_error.unwrap_or_default();
        error.contains("ends before its last line `end: true`")
    })
    .await;
    assert_eq!(instance.limits("ann").await, [500, 1_000]);
    instance.live.close(Duration::from_secs(9)).await;

    let again = start().await;
    assert_eq!(again.limits("ann").await, [500, 1_000]);
    assert!(!again.live.state().is_healthy());
    fs::write(&path, whole(700)).unwrap();
    eventually("the whole file is in force", async || {
        again.live.refresh().await;
        again.limits("ann").await == [700, 1_400] && again.live.state().is_healthy()
    })
    .await;
}

#[tokio::test]
async fn file_written_with_a_pause_is_read_whole() {
    write_with_a_pause("").await;
}

#[tokio::test]
async fn including_file_written_with_a_pause_is_read_whole() {
    write_with_a_pause("include: org.yaml\n").await;
}

/// Writes a file that begins with these lines, and pauses after its first limit.
async fn write_with_a_pause(first_lines: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    let organisation = "instances: 1\nend: true\n";
    fs::write(folder.path().join("org.yaml"), organisation).unwrap();
    let whole = |units| first_lines.to_owned() + &whole(units);
    let cut = |units| first_lines.to_owned() + &cut(units);
    fs::write(&path, whole(500)).unwrap();
    let options = LiveOptions::new().poll_every(Duration::from_secs(600));
    let instance = Instance::start(FileRules::new(&path).unwrap(), options).await;
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(cut(700).as_bytes()).unwrap();
    file.flush().unwrap();
    // The reader waits while the writer pauses for longer than the time after which a file is stable.
    pause(Duration::from_millis(300)).await;
    assert_eq!(instance.limits("ann").await, [500, 1_000]);
    file.write_all(&whole(700).as_bytes()[cut(700).len()..])
        .unwrap();
    drop(file);
    eventually("the whole file is in force", async || {
        instance.limits("ann").await == [700, 1_400]
    })
    .await;
    let state = instance.live.state();
    assert_eq!(
        (state.reloads.rejected, state.is_healthy()),
        (0, true),
        "{state:?}"
    );
}

#[tokio::test]
async fn put_of_cut_document_is_refused() {
    let instance = Instance::in_memory().await;
    let first = instance.put(yaml(document(500))).await;
    instance.put(yaml(whole(600))).await;
    let put = instance.live.put(None, yaml(cut(700))).await;
    assert!(matches!(put, Err(ChangeError::Invalid(_))), "{put:?}");
    let check = instance.live.check(cut(700)).await;
    assert!(matches!(check, Err(ChangeError::Invalid(_))), "{check:?}");
    assert_eq!(instance.limits("ann").await, [600, 1_200]);
    let back = instance.live.rollback(None, first.number, "ann").await;
    back.unwrap();
    assert_eq!(instance.limits("ann").await, [500, 1_000]);
}

#[tokio::test]
async fn included_file_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let (path, included) = (folder.path().join("rules.yaml"), shared.join("org.yaml"));
    let one = |units: u64| {
        document(units)
            .lines()
            .take(2)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let own = "include: shared/org.yaml\nlimits: [{ name: own, quota: 7 per 300 days fixed_window, key: header user }]\n";
    fs::write(&included, one(500)).unwrap();
    fs::write(&path, own).unwrap();
    let options = LiveOptions::new().poll_every(Duration::from_secs(600));
    let instance = Instance::start(FileRules::new(&path).unwrap(), options).await;
    assert_eq!(instance.limits("ann").await, [500, 7]);
    for units in [600, 700] {
        // A new version is read again after a quarter of a second, and that reading would find this change too.
        pause(Duration::from_millis(600)).await;
        fs::write(&included, one(units)).unwrap();
        eventually("the included file is in force", async || {
            instance.limits("ann").await == [units, 7]
        })
        .await;
    }
    let text = instance.live.in_force().unwrap().version.text.clone();
    assert!(text.contains("700") && !text.contains("include:"), "{text}");

    fs::write(&path, own.replace("name: own", "name: one")).unwrap();
    eventually("the name of an included limit is refused", async || {
        instance.live.refresh().await;
        let error = instance.live.state().last_error.unwrap_or_default();
        error.contains("the included document has a limit \"one\"")
    })
    .await;
    assert_eq!(instance.limits("ann").await, [700, 7]);
}

#[tokio::test]
async fn included_file_may_appear_later() {
    let folder = tempfile::tempdir().unwrap();
    let (service, shared) = (folder.path().join("service"), folder.path().join("shared"));
    fs::create_dir(&service).unwrap();
    let path = service.join("rules.yaml");
    let own = "include: ../shared/org.yaml\nlimits: [{ name: two, quota: 7 per 300 days fixed_window, key: header user }]\n";
    fs::write(&path, own).unwrap();
    let options = LiveOptions::new().poll_every(Duration::from_secs(600));
    let instance = Instance::start(FileRules::new(&path).unwrap(), options).await;
    let error = instance.live.state().last_error.unwrap_or_default();
    assert!(
        error.contains("\"../shared/org.yaml\" cannot be included"),
        "{error}"
    );
    assert!(!instance.live.is_ready());
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("org.yaml"), cut(500)).unwrap();
    eventually("the included file is in force", async || {
        instance.live.refresh().await;
        instance.limits("ann").await == [500, 7]
    })
    .await;
    assert!(instance.live.state().is_healthy());
}

#[tokio::test]
async fn text_without_file_includes_nothing() {
    let instance = Instance::start(MemoryRules::new(), LiveOptions::new()).await;
    let put = NewVersion::new("include: org.yaml\nlimits: []", "ann");
    let error = instance.live.put(None, put).await.unwrap_err().to_string();
    assert!(
        error.contains("only a file can include \"org.yaml\""),
        "{error}"
    );
}
