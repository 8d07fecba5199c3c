//! Captures of any format as `serve` and `open` take them: converted before an address is printed,
//! under the names of their files, several at once.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{ONE_RANGE, assert_says, flopwatch, text};
use crate::serve::{Serving, TIMELINE, get, made, refused, serve};

fn written(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn json_at(url: &str) -> (u16, Value) {
    let (status, body) = made(url);
    let text = String::from_utf8_lossy(&body).into_owned();
    (status, serde_json::from_str(&text).expect(&text))
}

/// `http://ADDRESS` of what is served.
fn origin(serving: &Serving) -> String {
    let address = serving.urls[0].strip_prefix("http://").unwrap();
    format!("http://{}", address.split_once('/').unwrap().0)
}

#[test]
fn captures_of_any_format_are_served_together_under_the_names_of_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let trace = written(folder.path(), "hta_control.json", ONE_RANGE.as_bytes());
    let serving = serve(
        &[&trace, Path::new(TIMELINE)],
        "captures/synthetic.h5/artifacts/timeline.h5",
    );
    let origin = origin(&serving);
    let (status, list) = json_at(&format!("{origin}/v1/captures"));
    let held = |file: &str, name: &str, events: u64| {
        json!({
            "file": file,
            "capture": format!("local/{name}/{name}"),
            "path": format!("/v1/namespaces/local/captures/{name}/artifacts/timeline.h5"),
            "events": events,
            "dropped": false,
        })
    };
    let both = json!({"captures": [
        held("hta_control.json", "hta-control.json", 1),
        held("synthetic.h5", "synthetic.h5", 7000),
    ]});
    assert_eq!((status, &list), (200, &both));
    for capture in list["captures"].as_array().unwrap() {
        let (status, body) = get(&format!("{origin}{}", capture["path"].as_str().unwrap()));
        assert!(status == 200 && body.starts_with(b"\x89HDF"), "{capture}");
    }
    // Of several the viewer is opened without a file, to list them.
    if flopwatch_viewer::is_built() {
        assert_eq!(serving.urls[0], format!("{origin}/"));
    }
}

#[test]
fn two_captures_of_a_service_are_compared_and_a_wrong_name_tells_which_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let trace = written(folder.path(), "after.json", ONE_RANGE.as_bytes());
    let serving = serve(
        &[Path::new(TIMELINE), &trace],
        "captures/after.json/artifacts/timeline.h5",
    );
    let base = format!(
        "{}/v1/namespaces/local/captures/synthetic.h5/analyses/kernel-changes",
        origin(&serving)
    );
    let (status, compared) = json_at(&format!("{base}?with=local/after.json/after.json"));
    assert_eq!(status, 200, "{compared}");
    for wrong in ["dropped-1", "local/gone/gone", "/tmp/after.json"] {
        let (status, problem) = json_at(&format!("{base}?with={wrong}"));
        assert_eq!((status, &problem["reason"]), (400, &json!("BadInputs")), "{wrong}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains(wrong) && detail.contains("local/after.json/after.json"),
            "{detail}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason_before_an_address_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(TIMELINE).unwrap();
    let good = written(folder.path(), "good.json", ONE_RANGE.as_bytes());
    let result = folder.path().join("result");
    std::fs::create_dir(&result).unwrap();
    written(&result, "capture.nsys-rep", b"no report");
    for (path, words) in [
        (written(folder.path(), "cut.h5", &whole[..whole.len() / 2]), "cut.h5"),
        (
            written(folder.path(), "notes.txt", b"no capture"),
            "no format that is read",
        ),
        (folder.path().join("gone.json"), "gone.json: No such file"),
        (result, "no format that is read"),
    ] {
        let output = refused(&[&good, &path]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert_says(&output, words);
        assert_eq!(output.stdout, b"", "{}", path.display());
    }
}

#[test]
fn a_folder_serves_each_capture_in_it_and_tells_which_one_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "a.json", ONE_RANGE.as_bytes());
    written(folder.path(), "b.json", ONE_RANGE.trim_end_matches("]}").as_bytes());
    written(folder.path(), "cut.sqlite", b"SQLite format 3\0and no more");
    written(folder.path(), "notes.txt", b"no capture");
    let told = folder.path().join("told");
    let mut command = flopwatch(&["serve"]);
    command.arg(folder.path()).stderr(std::fs::File::create(&told).unwrap());
    let serving = Serving::start(&mut command, "captures/b.json/artifacts/timeline.h5");
    let (_, list) = json_at(&format!("{}/v1/captures", origin(&serving)));
    let files = list["captures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|capture| &capture["file"]);
    assert_eq!(files.collect::<Vec<_>>(), [&json!("a.json"), &json!("b.json")]);
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains("reading a.json (1 of 3)"), "{told}");
    assert!(told.contains("cut.sqlite is left out: "), "{told}");
    assert!(told.contains("b.json: ends before its end ("), "{told}");
    assert!(!told.contains("a.json: ends"), "{told}");
    assert!(!told.contains("notes.txt"), "{told}");
}

/// A folder with a program `xdg-open` in it that writes its argument to the file `opened` there.
fn browser(folder: &Path) -> PathBuf {
    let program = written(
        folder,
        "xdg-open",
        b"#!/bin/sh\nprintf %s \"$1\" > \"${0%/*}/opening\"\nmv \"${0%/*}/opening\" \"${0%/*}/opened\"\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.join("opened")
}

/// The text of a file, once it holds those words.
#[expect(clippy::disallowed_methods, reason = "there is no runtime")]
fn wait_for(path: &Path, words: &str) -> String {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.contains(words) {
            return text;
        }
        assert!(Instant::now() < until, "{}: {text}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn open_shows_the_printed_address_in_the_browser_of_the_desktop() {
    if !flopwatch_viewer::is_built() {
        println!("skipped: the program was built without the viewer");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let opened = browser(folder.path());
    let mut path = folder.path().as_os_str().to_owned();
    path.push(":/usr/bin:/bin");
    let open = |more: &[&str]| {
        let mut command = flopwatch(&["open"]);
        command.arg(TIMELINE).args(more).env("PATH", &path).env("DISPLAY", ":9");
        Serving::start(&mut command, "timeline.h5")
    };
    let serving = open(&["--no-browser"]);
    assert!(serving.urls[0].contains("?file="), "{:?}", serving.urls);
    drop(serving);
    assert!(!opened.exists(), "opens a browser that nobody asked for");
    let serving = open(&[]);
    assert_eq!(wait_for(&opened, "http"), serving.urls[0]);
}

#[test]
fn where_there_is_no_display_open_says_what_to_do_and_serves_all_the_same() {
    if !flopwatch_viewer::is_built() {
        println!("skipped: the program was built without the viewer");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let mut command = flopwatch(&["open"]);
    command.arg(TIMELINE).stderr(std::fs::File::create(&told).unwrap());
    for variable in ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"] {
        command.env_remove(variable);
    }
    let serving = Serving::start(&mut command, "timeline.h5");
    let (status, _) = get(serving.urls.last().unwrap());
    assert_eq!(status, 200);
    assert!(wait_for(&told, "there is no display").contains("ssh -L"));
}
