//! Files in folders, which change while the server runs.

use std::fs;
use std::path::Path;

use tower_quota_server::envoy::{EnvoyConfig, EnvoyFiles, EnvoySource, Problems};

fn load(path: &Path, merge: bool) -> Result<EnvoyConfig, Problems> {
    EnvoyFiles::new(path, merge).poll().unwrap()
}

fn file(domain: &str) -> String {
    format!("domain: {domain}\ndescriptors: [{{key: a, rate_limit: {{unlimited: true}}}}]\n")
}

#[test]
fn folder_is_read_like_a_config_map() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("..2026_11_29");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a.yaml"), file("a")).unwrap();
    fs::create_dir(folder.path().join("more")).unwrap();
    fs::write(folder.path().join("more/b"), file("b")).unwrap();
    fs::write(folder.path().join(".hidden.yaml"), "no limits").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(data.join("a.yaml"), folder.path().join("a.yaml")).unwrap();
    #[cfg(not(unix))]
    fs::copy(data.join("a.yaml"), folder.path().join("a.yaml")).unwrap();
    let config = load(folder.path(), false).unwrap();
    assert_eq!((config.domains(), config.limits()), (2, 2));
    let config = load(&folder.path().join("a.yaml"), false).unwrap();
    assert_eq!((config.domains(), config.limits()), (1, 1));

    fs::write(folder.path().join("c.yaml"), file("b")).unwrap();
    let problems = load(folder.path(), false).unwrap_err().to_string();
    assert!(
        problems.contains("the domain \"b\" is also in"),
        "{problems}"
    );
    let merged = load(folder.path(), true).unwrap_err().to_string();
    assert!(merged.contains("\"b.a\" is given twice"), "{merged}");
}

#[test]
fn unusable_folder_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let problem = |path: &Path| load(path, false).unwrap_err().to_string();
    assert!(problem(folder.path()).contains("the folder has no files: add a YAML file"));
    assert!(problem(&folder.path().join("nope")).contains("nope: "));
    fs::write(folder.path().join("a.yaml"), b"domain: \xff\n").unwrap();
    assert!(problem(folder.path()).contains("a.yaml: stream did not contain valid UTF-8"));
}

#[test]
fn changed_files_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, file("a")).unwrap();
    let mut files = EnvoyFiles::new(folder.path(), false);
    assert_eq!(files.poll().unwrap().unwrap().limits(), 1);
    assert!(files.poll().is_none());
    // A new time of a file is no change.
    fs::write(&path, file("a")).unwrap();
    assert!(files.poll().is_none());

    fs::write(folder.path().join("b.yaml"), file("b")).unwrap();
    let config = files.poll().unwrap().unwrap();
    assert_eq!(config.domains(), 2);
    // A problem is reported once.
    fs::write(&path, "domain: a\nlimits: []\n").unwrap();
    let problems = files.poll().unwrap().unwrap_err().to_string();
    assert!(
        problems.contains("a.yaml:2:1: the key \"limits\" is unknown"),
        "{problems}"
    );
    assert!(files.poll().is_none());
    for name in ["a.yaml", "b.yaml"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let problems = files.poll().unwrap().unwrap_err().to_string();
    assert!(problems.contains("the folder has no files"), "{problems}");
    drop(folder);
    assert!(
        files
            .poll()
            .unwrap()
            .unwrap_err()
            .to_string()
            .contains("check the path")
    );
}

#[tokio::test(start_paused = true)]
async fn source_follows_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
    fs::write(&first, file("a")).unwrap();
    let mut source = EnvoySource::files(folder.path(), false);
    assert_eq!(source.next().await.unwrap().limits(), 1);
    for (path, text, problem) in [
        (&first, String::new(), "a.yaml: the file has no domain"),
        (&second, file("b"), "a.yaml: the file has no domain"),
        (&first, file("b"), "b.yaml:1:9: the domain \"b\" is also in"),
        (&first, file("a"), ""),
        (
            &second,
            "domain: b\ndescriptors: [{key: a, rate_limit: {unit: day}}]\n".into(),
            "has no \"requests_per_unit\"",
        ),
    ] {
        fs::write(path, text).unwrap();
        match source.next().await {
            Ok(config) => assert_eq!((config.domains(), problem), (2, "")),
            Err(problems) => assert!(problems.to_string().contains(problem), "{problems}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn pipe_in_a_folder_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), file("a")).unwrap();
    let pipe = folder.path().join("pipe.yaml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.yaml")).unwrap();
    let path = folder.path().to_owned();
    let (sender, read) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(load(&path, false)));
    // A read of the pipe would wait for a writer.
    let read = read.recv_timeout(std::time::Duration::from_secs(60));
    let problems = read.unwrap().unwrap_err().to_string();
    for name in ["pipe.yaml", "zero.yaml"] {
        let problem = format!("{name}: this is no file: check the file and its permissions");
        assert!(problems.contains(&problem), "{problems}");
    }
}

#[cfg(unix)]
#[test]
fn swapped_link_is_a_change() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    for version in ["one", "two"] {
        let data = folder.path().join(format!("..{version}"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("limits.yaml"), file(version)).unwrap();
    }
    symlink("..one", folder.path().join("..data")).unwrap();
    symlink("..data/limits.yaml", folder.path().join("limits.yaml")).unwrap();
    let mut files = EnvoyFiles::new(folder.path(), false);
    assert!(files.poll().unwrap().is_ok());
    assert!(files.poll().is_none());
    symlink("..two", folder.path().join("..new")).unwrap();
    fs::rename(folder.path().join("..new"), folder.path().join("..data")).unwrap();
    assert_eq!(files.poll().unwrap().unwrap().domains(), 1);
    assert!(files.poll().is_none());
}
