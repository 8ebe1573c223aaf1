//! The control groups of this host that have a quota or a weight of their own, for the head of a recording.
//!
//! Must not know: what runs in them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where the kernel shows its groups (cgroup v2).
const ROOT: &str = "/sys/fs/cgroup";

/// What only a hierarchy of version 2 has.
const VERSION_2: &str = "cgroup.controllers";

/// More groups, or deeper ones, are left out: a head is no list of a whole host.
const GROUPS_MAX: usize = 4096;
const DEPTH_MAX: usize = 32;

/// A line each, as `cgroups-start.txt` lists them; none where the kernel has the first version of groups.
pub(super) fn of_this_host() -> Vec<String> {
    below(Path::new(ROOT))
}

fn below(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    if root.join(VERSION_2).is_file() {
        add(root, "", DEPTH_MAX, &mut lines);
    }
    lines
}

fn add(folder: &Path, path: &str, depth: usize, lines: &mut Vec<String>) {
    let text = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        Some(text.trim_end().replace('\n', " ")).filter(|text| !text.is_empty())
    };
    let (weight, max, idle) = (text("cpu.weight"), text("cpu.max"), text("cpu.idle"));
    let is_set = max.as_ref().is_some_and(|max| !max.starts_with("max"))
        || weight.as_ref().is_some_and(|weight| weight != "100")
        || idle.as_ref().is_some_and(|idle| idle == "1");
    let inode = fs::metadata(folder).map(|about| about.ino()).ok();
    if let Some(inode) = inode.filter(|_| is_set && lines.len() < GROUPS_MAX) {
        let column = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
        let (weight, max, idle) = (column(weight), column(max), column(idle));
        let burst = column(text("cpu.max.burst"));
        lines.push(format!("{path}\t{inode}\t{weight}\t{max}\t{idle}\t-\t-\t-\t{burst}"));
    }
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = folders
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    names.sort();
    for name in names.into_iter().filter(|_| depth > 0) {
        add(&folder.join(&name), &format!("{path}/{name}"), depth - 1, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_with_a_quota_or_a_weight_are_listed() {
        let root = std::env::temp_dir().join(format!("fairlab-groups-{}", std::process::id()));
        let write = |group: &str, name: &str, text: &str| {
            fs::create_dir_all(root.join(group)).expect("a folder");
            fs::write(root.join(group).join(name), text).expect("written");
        };
        write("plain", "cpu.max", "max 100000\n");
        write("plain", "cpu.weight", "100\n");
        write("slow/inner", "cpu.max", "20000 100000\n");
        write("slow/inner", "cpu.max.burst", "5000\n");
        write("heavy", "cpu.weight", "300\n");
        assert_eq!(below(&root), Vec::<String>::new(), "no groups of version 2");
        fs::write(root.join(VERSION_2), "cpu\n").expect("written");
        let lines = below(&root);
        fs::remove_dir_all(&root).expect("removed");
        let columns = lines.iter().map(|line| line.split('\t').collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(columns.len(), 2, "{lines:?}");
        assert_eq!((columns[0][0], columns[0][2], columns[0][3]), ("/heavy", "300", "-"));
        assert_eq!((columns[1][0], columns[1][3], columns[1][8]), ("/slow/inner", "20000 100000", "5000"));
    }
}
