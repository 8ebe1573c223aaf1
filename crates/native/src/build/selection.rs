//! Which files of a tree a build can read: a kernel has 80,000, and the scheduler needs a fifth.
//!
//! Must not know: where a tree comes from.

use std::fs;
use std::path::Path;

use fairlab_files::LabError;

/// Folders of which all is kept.
const WHOLE: [&str; 10] = [
    "arch/x86",
    "include",
    "init",
    "kernel",
    "lib",
    "scripts",
    "tools/arch/x86",
    "tools/include",
    "tools/build",
    "tools/scripts",
];

/// Folders of which no header is kept.
const WITHOUT_HEADERS: [&str; 7] = ["Documentation", "drivers", "net", "samples", "sound", "tools", "arch"];

/// What `tar` need not unpack of a packed tree, at least.
pub(super) const UNNEEDED: [&str; 9] = [
    "*/Documentation/*.rst",
    "*/Documentation/*.yaml",
    "*/Documentation/*.txt",
    "*/drivers/*.[chS]",
    "*/sound/*.[chS]",
    "*/net/*.c",
    "*/fs/*/*.[chS]",
    "*/tools/testing/*",
    "*/tools/perf/*",
];

/// Whether a build can read a file of that name, relative to the tree.
pub(super) fn is_needed(name: &str) -> bool {
    if name.is_empty() || is_product(name) {
        return false;
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    if ["Kconfig", "Makefile", "Kbuild"].iter().any(|kind| last.starts_with(kind)) {
        return true;
    }
    let below = |folder: &str| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    if WHOLE.iter().any(|folder| below(folder)) {
        return true;
    }
    let is_header = last.ends_with(".h") && !WITHOUT_HEADERS.iter().any(|folder| below(folder));
    is_header || name == "fs/seq_file.c" || name.starts_with("localversion")
}

/// What a build in the tree itself leaves there: it would stand in the way of one outside.
fn is_product(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let folders = ["include/config/", "include/generated/", "arch/x86/include/generated/"];
    let ends = [".o", ".a", ".ko", ".cmd", ".d", ".mod", ".lex.c", ".tab.c", ".tab.h", ".order"];
    name == ".config"
        || folders.iter().any(|folder| name.starts_with(folder))
        || ends.iter().any(|end| last.ends_with(end))
}

/// The files of a folder that a build can read, by name.
pub(super) fn walk(folder: &Path) -> Result<Vec<String>, LabError> {
    let mut names = Vec::new();
    descend(folder, "", &mut names).map_err(|error| {
        LabError::new(format!("{}: {error}", folder.display()), "check the path and its permissions")
    })?;
    names.sort_unstable();
    Ok(names)
}

fn descend(folder: &Path, prefix: &str, names: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.ends_with(".git") {
            descend(&entry.path(), &format!("{name}/"), names)?;
        } else if (kind.is_file() || kind.is_symlink() && entry.path().is_file()) && is_needed(&name) {
            names.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_reads() {
        for needed in [
            "Makefile",
            "Kconfig",
            "kernel/sched/fair.c",
            "Documentation/Kconfig",
            "drivers/acpi/Kconfig.debug",
            "arch/x86/entry/thunk_64.S",
            "mm/slab.h",
            "io_uring/io-wq.h",
            "fs/seq_file.c",
            "include/config.h",
        ] {
            assert!(is_needed(needed), "{needed}");
        }
        for other in [
            "",
            ".config",
            "include/config/auto.conf",
            "kernel/sched/fair.o",
            "kernel/.bounds.s.cmd",
            "drivers/net/tun.c",
            "drivers/gpu/drm/big.h",
            "arch/arm64/kernel/smp.c",
            "fs/ext4/super.c",
            "scripts/kconfig/lexer.lex.c",
            "Documentation/index.rst",
            "kernelly/x.c",
        ] {
            assert!(!is_needed(other), "{other}");
        }
    }
}
