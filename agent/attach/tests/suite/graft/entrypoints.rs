//! Entrypoints of every kind: scripts, an init before the program, and programs that are better
//! left alone.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::capture::{Capture, counts};
use super::container::{Container, Spec, Tools, WORKLOAD, rig, wait_until};
use super::{SESSION, collect, grafted};

/// A folder for a container with one more file in it, seen there as `/flopwatch/tools/NAME`.
fn folder_with(name: &str, make: impl FnOnce(&Path)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    make(&tools.join(name));
    std::fs::set_permissions(tools.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// Compiles a C program, with the compiler and options that make it what it is.
fn compile(compiler: &[&str], source: &str, to: &Path) {
    let file = to.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .arg(&file)
        .arg("-o")
        .arg(to)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whether a program of a Debian package is there; the recipe installs it, CI allows no skip.
fn has(program: &str, package: &str) -> bool {
    let found = ["/usr/bin", "/usr/local/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        println!("skipped: no {program} (apt-get install {package})");
    }
    found
}

const PROGRAM: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    int main(void) { const char *p = getenv(\"LD_PRELOAD\"); printf(\"preload=%s\\n\", p ? p : \"none\"); return 6; }\n";

/// Starts a program that must be left alone, and checks that it is, at once, with its reason.
fn is_left_alone(folder: TempDir, command: &str, reason: &str, detail: &str) {
    let Some(rig) = rig() else { return };
    let mut container = Container::start_in(rig, &Spec::of(&[command]), folder);
    assert_eq!(container.end().code(), Some(6));
    assert!(
        container.started.elapsed() < Duration::from_secs(30),
        "it waited for a session: {:?}",
        container.started.elapsed()
    );
    assert_eq!(container.stdout(), "preload=none\n");
    let state = container.state();
    let expected = format!("{{\"grafted\":false,\"reason\":\"{reason}\"");
    assert!(state.starts_with(&expected) && state.contains(detail), "{state}");
}

#[test]
fn a_program_of_musl_is_left_alone() {
    if !has("musl-gcc", "musl-tools") {
        return;
    }
    let folder = folder_with("program", |to| compile(&["musl-gcc"], PROGRAM, to));
    let detail = "/flopwatch/tools/program is a program of musl (/lib/ld-musl-x86_64.so.1)";
    is_left_alone(folder, "/flopwatch/tools/program", "musl", detail);
}

#[test]
fn a_static_program_is_left_alone() {
    let folder = folder_with("program", |to| compile(&["cc", "-static"], PROGRAM, to));
    let detail = "/flopwatch/tools/program is a static program";
    is_left_alone(folder, "/flopwatch/tools/program", "static_program", detail);
}

#[test]
fn a_script_of_a_musl_shell_is_left_alone() {
    if !has("musl-gcc", "musl-tools") {
        return;
    }
    let folder = folder_with("shell", |to| compile(&["musl-gcc"], PROGRAM, to));
    let script = folder.path().join("tools/entrypoint");
    std::fs::write(&script, "#!/flopwatch/tools/shell\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let detail = "/flopwatch/tools/shell is a program of musl";
    is_left_alone(folder, "/flopwatch/tools/entrypoint", "musl", detail);
}

/// A library that needs a version of glibc which is to come.
fn library_of_the_future(folder: &Path) -> PathBuf {
    let at = |name: &str| folder.join(name);
    std::fs::write(at("versions"), "GLIBC_2.99 { future; };\n").unwrap();
    let versions = format!("-Wl,--version-script={}", at("versions").display());
    let libc = [
        "cc",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-Wl,-soname,libc.so.6",
        &versions,
    ];
    compile(&libc, "void future(void) {}\n", &at("libc-to-come.so"));
    let against = at("libc-to-come.so");
    let library = at("libToolsInjection64.so");
    let line = ["cc", "-shared", "-fPIC", "-nostdlib", against.to_str().unwrap()];
    let file = at("user.c");
    std::fs::write(&file, "void future(void);\nvoid use(void) { future(); }\n").unwrap();
    let compiled = Command::new(line[0])
        .args(["-shared", "-fPIC", "-nostdlib", "-o"])
        .args([&library, &file, &against])
        .status();
    assert!(compiled.unwrap().success());
    library
}

#[test]
fn a_glibc_that_is_too_old_for_the_tools_is_left_alone() {
    let Some(rig) = rig() else { return };
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools/target-linux-x64");
    std::fs::create_dir_all(&tools).unwrap();
    let made = tempfile::tempdir().unwrap();
    std::fs::copy(library_of_the_future(made.path()), tools.join("libToolsInjection64.so")).unwrap();
    let mut container = Container::start_in(
        rig,
        &Spec::of(&[WORKLOAD, "--print-env"]).tools(Tools::Script("#!/bin/sh\nexit 1\n")),
        folder,
    );
    assert_eq!(container.end().code(), Some(0));
    let state = container.state();
    assert!(
        state.starts_with("{\"grafted\":false,\"reason\":\"old_glibc\""),
        "{state}"
    );
    assert!(state.contains("and the profiler needs 2.99"), "{state}");
    assert!(!container.stdout().contains("LD_PRELOAD"));
}

#[test]
fn a_shell_entrypoint_is_grafted_and_the_program_that_it_starts_is_captured() {
    let Some(rig) = rig() else { return };
    for script in [
        format!("#!/bin/sh\nset -e\nexport BY=script\nexec {WORKLOAD} \"$@\"\n"),
        format!("#!/bin/bash\n{WORKLOAD} \"$@\" &\ntrap 'kill -TERM $!' TERM\nwait $!\nwait $!\nexit $?\n"),
    ] {
        let folder = folder_with("entrypoint", |to| std::fs::write(to, &script).unwrap());
        let mut container = Container::start_in(
            rig,
            &Spec::of(&["/flopwatch/tools/entrypoint", "--fail-code", "7"]),
            folder,
        );
        let target = grafted(rig, &container);
        container.reports();
        collect(&target, "x");
        container.works_for(Duration::from_millis(1500));
        target.stop_collection(SESSION, "x").unwrap();
        Capture::read(rig, &container.file("run/out/x.qdstrm")).agrees_with(&counts(&container.stdout()), 1, 1);
        container.signal(Signal::SIGTERM);
        assert_eq!(container.end().code(), Some(7), "{script}");
        assert!(container.stdout().lines().next_back().unwrap().ends_with("term=1"));
    }
}

#[test]
fn an_init_before_the_program_reaps_and_passes_signals_on_as_ever() {
    if !has("tini", "tini") {
        return;
    }
    let Some(rig) = rig() else { return };
    let mut container = Spec::of(&["/usr/bin/tini", "--", WORKLOAD, "--fail-code", "4"]).start(rig);
    grafted(rig, &container);
    container.reports();
    container.signal(Signal::SIGHUP);
    wait_until("SIGHUP", || container.stdout().contains("hup=1 int=0"));
    container.terminates(4);
    let stdout = container.stdout();
    assert!(
        stdout.lines().next_back().unwrap().ends_with("hup=1 int=0 term=1"),
        "{stdout}"
    );
    assert!(stdout.contains("wait=ECHILD"), "{stdout}");
    // A warning of tini would say that it is not the first process, or that a child of another was
    // handed to it.
    assert_eq!(std::fs::read_to_string(container.file("out/stderr")).unwrap(), "");
}
