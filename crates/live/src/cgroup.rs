//! Control groups with the cpu controller, and with cpusets where they are asked for, of either version, for as long as a workload
//! runs.
//!
//! Must not know: who runs in them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use fairlab_kernel::{CfsLimit, CpuMask};
use fairlab_sim::workload::cgroup::{GroupFile, GroupSpec, effective_cpus};

use fairlab_files::owner::{self, ProcessOwner};

/// Where control groups are mounted, as a rule.
const MOUNT: &str = "/sys/fs/cgroup";

/// How the names of our own groups begin, and how those end for which the place passes the controller on.
const PREFIX: &str = "fairlab-";
const PASSED_ON: &str = "-passed";

/// Trees that this process has made: each gets a name of its own.
static CREATED: AtomicU32 = AtomicU32::new(0);

/// The version of a hierarchy, which differ in files and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// `cpu.shares`, `cpu.cfs_quota_us`; any thread may be in any group.
    One,
    /// `cpu.weight`, `cpu.max`; threads of one process may part within a threaded tree.
    Two,
}

/// Groups below one of our own, which is made in the group that we are started in, so that limits which hold for us hold for
/// them, or in the nearest around it that may have groups with the controller; all are taken down when this is dropped.
#[derive(Debug)]
pub(crate) struct CgroupFolders {
    version: Version,
    top: PathBuf,
    /// The group that we are started in.
    home: PathBuf,
    /// The group that ours is made in.
    place: PathBuf,
    /// The place did not pass the controller on before, and does not afterwards.
    passed_on: bool,
    /// Our own group, which holds the process.
    base: PathBuf,
    /// By the workload's numbers, parents before their children.
    folders: Vec<PathBuf>,
    /// What their files say now.
    specs: Mutex<Vec<GroupSpec>>,
    /// Groups say where tasks in them may run.
    has_cpusets: bool,
    /// The cpusets of the first version, which are groups of their own hierarchy.
    cpusets: Option<CpusetFolders>,
    /// Where a recording takes remarks.
    marker: Option<PathBuf>,
}

impl CgroupFolders {
    /// Makes these groups, each with a remark to the recording at `marker`.
    ///
    /// # Errors
    /// No hierarchy has the cpu controller, or this user may not.
    pub fn create(specs: &[GroupSpec], marker: Option<&Path>) -> Result<CgroupFolders, String> {
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        CgroupFolders::below(Path::new(MOUNT), &memberships, specs, marker)
    }

    fn below(
        mount: &Path,
        memberships: &str,
        specs: &[GroupSpec],
        marker: Option<&Path>,
    ) -> Result<CgroupFolders, String> {
        let (version, top) = find(mount).ok_or_else(|| {
            format!("no control group hierarchy with the cpu controller is mounted at {}", mount.display())
        })?;
        let home = home(version, &top, memberships, "cpu");
        let mut refused = None;
        for place in home.ancestors().take_while(|place| place.starts_with(&top)) {
            if !serves(version, place) {
                continue;
            }
            match CgroupFolders::begin(version, &top, &home, place, specs, marker) {
                Ok(mut groups) => {
                    specs.iter().try_for_each(|spec| groups.add(spec, specs))?;
                    if version == Version::One && groups.has_cpusets {
                        groups.cpusets = Some(CpusetFolders::create(mount, memberships, specs)?);
                    }
                    return Ok(groups);
                }
                // What the group that we are in says tells most.
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused
            .unwrap_or_else(|| format!("no control group with the cpu controller is at {}", top.display())))
    }

    /// Our own group, in `place`, with this process in it. What was done until an error is undone.
    fn begin(
        version: Version,
        top: &Path,
        home: &Path,
        place: &Path,
        specs: &[GroupSpec],
        marker: Option<&Path>,
    ) -> Result<CgroupFolders, String> {
        let has_cpusets = specs.iter().any(|spec| spec.cpus.is_some());
        if has_cpusets && version == Version::Two && !has(&place.join("cgroup.controllers"), "cpuset") {
            return Err(format!("the control group {} has no cpuset controller", place.display()));
        }
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        remove_left_behind(place);
        let passed_on =
            version == Version::Two && place != top && !has_cpu(&place.join("cgroup.subtree_control"));
        let end = if passed_on { PASSED_ON } else { "" };
        let base = place.join(format!("{PREFIX}{}-{number}{end}", ProcessOwner::this().token()));
        make(&base)?;
        let (top, home, place) = (top.to_path_buf(), home.to_path_buf(), place.to_path_buf());
        let marker = marker.map(Path::to_path_buf);
        let (folders, cpusets, specs) = (Vec::new(), None, Mutex::new(specs.to_vec()));
        let groups = CgroupFolders {
            version,
            top,
            home,
            place,
            passed_on,
            base,
            folders,
            specs,
            has_cpusets,
            cpusets,
            marker,
        };
        if version == Version::Two {
            groups.pass_on()?;
        }
        groups.tell(&groups.base, &GroupSpec::new(""));
        if version == Version::Two {
            // A controller is passed on before there is a process in the group, or to threaded groups only.
            write(&groups.base.join("cgroup.procs"), &std::process::id().to_string())?;
        }
        Ok(groups)
    }

    /// Lets the place pass the controller on. At the top it may as it is; elsewhere, beside processes in it, there may be
    /// threaded groups only, and those only where no group beside them holds processes of its own.
    fn pass_on(&self) -> Result<(), String> {
        if self.place != self.top {
            let holds_processes =
                fs::read_to_string(self.place.join("cgroup.procs")).map_or(true, |list| !list.is_empty());
            if holds_processes {
                write(&self.base.join("cgroup.type"), "threaded")?;
            }
        }
        self.allow_cpu(&self.place)
    }

    fn add(&mut self, spec: &GroupSpec, specs: &[GroupSpec]) -> Result<(), String> {
        let parent = spec.parent.and_then(|parent| self.folders.get(parent)).unwrap_or(&self.base).clone();
        let folder = parent.join(spec.folder(specs));
        make(&folder)?;
        self.folders.push(folder.clone());
        let set = |file: &str, value: String| write(&folder.join(file), &value);
        let (quota, period_us) = (spec.max.quota(), spec.max.period().0 / 1_000);
        match self.version {
            Version::One => {
                set("cpu.shares", shares(spec.weight).to_string())?;
                if let Some(quota) = quota {
                    set("cpu.cfs_period_us", period_us.to_string())?;
                    set("cpu.cfs_quota_us", (quota.0 / 1_000).to_string())?;
                }
            }
            Version::Two => {
                write(&folder.join("cgroup.type"), "threaded")?;
                self.allow_cpu(&parent)?;
                set("cpu.weight", spec.weight.to_string())?;
                if let Some(quota) = quota {
                    set("cpu.max", format!("{} {period_us}", quota.0 / 1_000))?;
                }
                if let Some(cpus) = spec.cpus.filter(|cpus| *cpus != CpuMask::ALL) {
                    set("cpuset.cpus", cpus.to_string())?;
                }
            }
        }
        if spec.max.burst().0 > 0 {
            set(self.burst_file(), (spec.max.burst().0 / 1_000).to_string())?;
        }
        if spec.idle {
            set("cpu.idle", "1".to_string())?;
        }
        self.tell(&folder, spec);
        Ok(())
    }

    /// Tells the recording of a group before anybody enters it: in the columns of the snapshot's list of groups. Who enters
    /// it the kernel's own events tell.
    fn tell(&self, folder: &Path, spec: &GroupSpec) {
        let (Some(marker), Ok(about)) = (&self.marker, fs::metadata(folder)) else { return };
        let path = folder.strip_prefix(&self.top).unwrap_or(folder).display();
        let quota = spec.max.quota().map_or("max".to_string(), |quota| (quota.0 / 1_000).to_string());
        let (period_us, idle) = (spec.max.period().0 / 1_000, u32::from(spec.idle));
        let line = format!("CGROUP\t/{path}\t{}\t{}\t{quota} {period_us}\t{idle}", about.ino(), spec.weight);
        let _ = fs::write(marker, line);
    }

    fn burst_file(&self) -> &'static str {
        if self.version == Version::One { "cpu.cfs_burst_us" } else { "cpu.max.burst" }
    }

    /// Writes to files of a group what it says from now on.
    pub fn write(&self, group: usize, file: GroupFile) -> Result<(), String> {
        let folder = self.folder(group)?;
        let mut specs = self.specs.lock().unwrap_or_else(PoisonError::into_inner);
        let set = |file: &str, value: &str| write(&folder.join(file), value);
        match (file, self.version) {
            (GroupFile::Weight(weight), Version::One) => set("cpu.shares", &shares(weight).to_string())?,
            (GroupFile::Weight(weight), Version::Two) => set("cpu.weight", &weight.to_string())?,
            (GroupFile::Idle(idle), _) => set("cpu.idle", if idle { "1" } else { "0" })?,
            (GroupFile::Max(max), _) => self.limit(folder, specs[group].max, max)?,
            (GroupFile::Cpus(cpus), Version::Two) => {
                set("cpuset.cpus", &cpus.map_or("\n".to_string(), |cpus| cpus.to_string()))?;
            }
            (GroupFile::Cpus(_), Version::One) => {}
        }
        match file {
            GroupFile::Weight(weight) => specs[group].weight = weight,
            GroupFile::Idle(idle) => specs[group].idle = idle,
            GroupFile::Max(max) => specs[group].max = max,
            GroupFile::Cpus(cpus) => {
                specs[group].cpus = cpus;
                if let Some(cpusets) = &self.cpusets {
                    cpusets.change(&specs)?;
                }
            }
        }
        Ok(())
    }

    /// Another limit. A burst above the quota is refused, whichever of the two is written first.
    fn limit(&self, folder: &Path, before: CfsLimit, max: CfsLimit) -> Result<(), String> {
        let set = |file: &str, value: String| write(&folder.join(file), &value);
        if before.burst().0 > 0 {
            set(self.burst_file(), "0".to_string())?;
        }
        let (quota, period_us) = (max.quota(), max.period().0 / 1_000);
        match self.version {
            Version::One => {
                set("cpu.cfs_quota_us", "-1".to_string())?;
                set("cpu.cfs_period_us", period_us.to_string())?;
                if let Some(quota) = quota {
                    set("cpu.cfs_quota_us", (quota.0 / 1_000).to_string())?;
                }
            }
            Version::Two => {
                let quota = quota.map_or("max".to_string(), |quota| (quota.0 / 1_000).to_string());
                set("cpu.max", format!("{quota} {period_us}"))?;
            }
        }
        match max.burst().0 {
            0 => Ok(()),
            burst => set(self.burst_file(), (burst / 1_000).to_string()),
        }
    }

    fn allow_cpu(&self, folder: &Path) -> Result<(), String> {
        let all = if self.has_cpusets { "+cpu +cpuset" } else { "+cpu" };
        write(&folder.join("cgroup.subtree_control"), all)
    }

    /// Puts the calling thread into a group, and with it whatever it creates from then on.
    pub fn enter(&self, group: usize) -> Result<(), String> {
        self.put(rustix::thread::gettid().as_raw_nonzero().get(), Some(group))
    }

    /// Puts the calling thread into the group that stands for the root: that in which the workload was started.
    pub fn leave(&self) -> Result<(), String> {
        self.put(rustix::thread::gettid().as_raw_nonzero().get(), None)
    }

    /// Puts a thread into a group, or into the one that stands for the root. One that has ended meanwhile is in none.
    pub fn put(&self, tid: i32, group: Option<usize>) -> Result<(), String> {
        let (file, root) = match self.version {
            Version::One => ("tasks", &self.home),
            Version::Two => ("cgroup.threads", &self.base),
        };
        let folder = group.map_or(Ok(root.as_path()), |group| self.folder(group))?;
        put_into(&folder.join(file), tid)?;
        self.cpusets.as_ref().map_or(Ok(()), |cpusets| cpusets.put(tid, group))
    }

    fn folder(&self, group: usize) -> Result<&Path, String> {
        self.folders.get(group).map(PathBuf::as_path).ok_or_else(|| format!("there is no group {group}"))
    }
}

/// Threads go back to where they came from, for a group with threads stays.
impl Drop for CgroupFolders {
    fn drop(&mut self) {
        let _ = write(&self.home.join("cgroup.procs"), &std::process::id().to_string());
        for folder in self.folders.iter().rev().chain([&self.base]) {
            let _ = fs::remove_dir(folder);
        }
        if self.passed_on {
            let all = if self.has_cpusets { "-cpuset -cpu" } else { "-cpu" };
            let _ = write(&self.place.join("cgroup.subtree_control"), all);
        }
    }
}

/// Cpusets of the first version: a group for each of the workload's, which says where tasks in it may run.
#[derive(Debug)]
struct CpusetFolders {
    home: PathBuf,
    base: PathBuf,
    folders: Vec<PathBuf>,
    online: CpuMask,
    effective: Mutex<Vec<CpuMask>>,
}

impl CpusetFolders {
    fn create(mount: &Path, memberships: &str, specs: &[GroupSpec]) -> Result<CpusetFolders, String> {
        let top = mount.join("cpuset");
        if !top.join("cpuset.cpus").is_file() {
            return Err(format!("no hierarchy with the cpuset controller is mounted at {}", mount.display()));
        }
        let home = home(Version::One, &top, memberships, "cpuset");
        remove_left_behind(&home);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let base = home.join(format!("{PREFIX}{}-{number}", ProcessOwner::this().token()));
        let online = read_cpus(&home)?;
        let effective = effective_cpus(specs, &online).unwrap_or_else(|| vec![online; specs.len()]);
        let mut cpusets =
            CpusetFolders { home, base, folders: Vec::new(), online, effective: Mutex::default() };
        cpusets.add(&cpusets.home, &cpusets.base, &online)?;
        for (spec, cpus) in specs.iter().zip(&effective) {
            let parent = spec.parent.and_then(|parent| cpusets.folders.get(parent));
            let parent = parent.unwrap_or(&cpusets.base).clone();
            let folder = parent.join(spec.folder(specs));
            cpusets.add(&parent, &folder, cpus)?;
            cpusets.folders.push(folder);
        }
        cpusets.effective = Mutex::new(effective);
        Ok(cpusets)
    }

    /// A new group has neither CPUs nor memory.
    fn add(&self, parent: &Path, folder: &Path, cpus: &CpuMask) -> Result<(), String> {
        make(folder)?;
        let memory = fs::read_to_string(parent.join("cpuset.mems")).unwrap_or_default();
        write(&folder.join("cpuset.mems"), memory.trim())?;
        write(&folder.join("cpuset.cpus"), &cpus.to_string())
    }

    /// Groups say something else from now on. A group may never have a CPU that the one above it has not.
    fn change(&self, specs: &[GroupSpec]) -> Result<(), String> {
        let mut effective = self.effective.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = effective_cpus(specs, &self.online).unwrap_or_else(|| vec![self.online; specs.len()]);
        let all = self.folders.iter().zip(effective.iter().zip(&wanted));
        for (folder, (before, after)) in all.clone() {
            write(&folder.join("cpuset.cpus"), &before.or(after).to_string())?;
        }
        for (folder, (_, after)) in all.rev() {
            write(&folder.join("cpuset.cpus"), &after.to_string())?;
        }
        *effective = wanted;
        Ok(())
    }

    fn put(&self, tid: i32, group: Option<usize>) -> Result<(), String> {
        let folder = group.map_or(Some(&self.home), |group| self.folders.get(group));
        folder.map_or(Ok(()), |folder| put_into(&folder.join("tasks"), tid))
    }
}

impl Drop for CpusetFolders {
    fn drop(&mut self) {
        let _ = write(&self.home.join("cgroup.procs"), &std::process::id().to_string());
        for folder in self.folders.iter().rev().chain([&self.base]) {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn read_cpus(folder: &Path) -> Result<CpuMask, String> {
    let path = folder.join("cpuset.cpus");
    let text =
        fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    CpuMask::parse_list(&text)
}

/// Puts a thread into the group whose list of threads this is; one that has ended meanwhile is in none.
fn put_into(list: &Path, tid: i32) -> Result<(), String> {
    match fs::write(list, tid.to_string()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        Err(error) => Err(format!("cannot write '{tid}' to {}: {error}", list.display())),
        Ok(()) => Ok(()),
    }
}

/// Groups of ours whose process was killed before it could take them down, and what was passed on for them. The kernel keeps those
/// in which a process is.
fn remove_left_behind(place: &Path) {
    let owner_of = |name: &str| ProcessOwner::parse(name.strip_prefix(PREFIX)?.split('-').next()?);
    owner::remove_left_behind(place, owner_of, |folder| {
        remove_groups(folder);
        let passed_on = folder.to_str().is_some_and(|name| name.ends_with(PASSED_ON));
        if passed_on && !folder.exists() {
            let _ = write(&place.join("cgroup.subtree_control"), "-cpu");
        }
    });
}

/// A group and those below it, the innermost first.
fn remove_groups(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

/// The group of the hierarchy at `top` that a process with these memberships (`/proc/self/cgroup`) is in; the top where that
/// cannot be seen from here.
fn home(version: Version, top: &Path, memberships: &str, controller: &str) -> PathBuf {
    let is_ours = |controllers: &str| match version {
        Version::One => controllers.split(',').any(|name| name == controller),
        Version::Two => controllers.is_empty(),
    };
    let mut parts = memberships.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
    let ours = parts.find(|part| part.len() == 3 && is_ours(part[1]));
    let below = ours.map_or("", |part| part[2]).trim_start_matches('/');
    let home = top.join(below);
    if below.is_empty() || below.starts_with("..") || !home.is_dir() { top.to_path_buf() } else { home }
}

/// Whether groups with the controller can be made in this one.
fn serves(version: Version, place: &Path) -> bool {
    match version {
        Version::One => place.join("tasks").is_file(),
        Version::Two => has_cpu(&place.join("cgroup.controllers")),
    }
}

/// Whether the controller is in such a list.
fn has_cpu(list: &Path) -> bool {
    has(list, "cpu")
}

fn has(list: &Path, controller: &str) -> bool {
    fs::read_to_string(list).unwrap_or_default().split_whitespace().any(|name| name == controller)
}

/// `cpu.shares` of a weight: 1024 of 100, as the kernel converts them (`sched_weight_from_cgroup()`).
fn shares(weight: u64) -> u64 {
    (weight * 1024 + 50) / 100
}

fn find(mount: &Path) -> Option<(Version, PathBuf)> {
    if has_cpu(&mount.join("cgroup.controllers")) {
        return Some((Version::Two, mount.to_path_buf()));
    }
    let folders = ["cpu", "cpu,cpuacct"].map(|name| mount.join(name));
    folders
        .into_iter()
        .find(|folder| folder.join("cgroup.procs").is_file())
        .map(|folder| (Version::One, folder))
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir(folder)
        .map_err(|error| format!("cannot make the control group {}: {error}", folder.display()))
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("cannot write '{value}' to {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Mutex;

    use super::*;

    /// Who moves this process is alone.
    static MOVING: Mutex<()> = Mutex::new(());

    #[test]
    fn weights_are_shares_of_the_first_version() {
        assert_eq!([1, 100, 10_000].map(shares), [10, 1024, 102_400]);
    }

    #[test]
    fn groups_of_the_dead_are_taken_down_and_those_of_the_living_kept() {
        let place = std::env::temp_dir().join(format!("fairlab-groups-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        let this = ProcessOwner::this().token();
        let gone = this.replacen(&std::process::id().to_string(), "4294967295", 1);
        let names = [
            format!("{PREFIX}{gone}-0"),
            format!("{PREFIX}{gone}-1{PASSED_ON}"),
            format!("{PREFIX}{this}-0"),
        ];
        for name in &names {
            fs::create_dir_all(place.join(name).join("inner/most")).expect("a folder");
        }
        fs::write(place.join("cgroup.subtree_control"), "cpu").expect("a file");
        remove_left_behind(&place);
        let left = names.iter().map(|name| place.join(name).exists()).collect::<Vec<_>>();
        assert_eq!(left, [false, false, true]);
        // What was passed on for one of them is not any more.
        assert_eq!(fs::read_to_string(place.join("cgroup.subtree_control")).expect("a file"), "-cpu");
        fs::remove_dir_all(place).expect("removed");
    }

    #[test]
    fn a_host_without_the_controller_is_told_so() {
        let error =
            CgroupFolders::below(Path::new("/nowhere"), "", &[], None).expect_err("nothing is mounted there");
        assert_eq!(error, "no control group hierarchy with the cpu controller is mounted at /nowhere");
    }

    #[test]
    fn a_process_is_in_one_group_of_each_hierarchy() {
        let mount = std::env::temp_dir().join(format!("fairlab-cgroups-{}", std::process::id()));
        fs::create_dir_all(mount.join("a/b")).expect("folders");
        fs::write(mount.join("a/cgroup.controllers"), "cpu memory\n").expect("a file");
        fs::write(mount.join("a/b/cgroup.controllers"), "memory\n").expect("a file");
        fs::write(mount.join("a/tasks"), "").expect("a file");
        let of = |version, memberships: &str| {
            let home = home(version, &mount, memberships, "cpu");
            home.strip_prefix(&mount).expect("below the top").display().to_string()
        };
        assert_eq!(of(Version::Two, "1:cpu:/x\n0::/a/b\n"), "a/b");
        assert_eq!(of(Version::Two, "0::/../../a/b\n"), "", "it lies outside of this namespace");
        assert_eq!(of(Version::One, "4:memory:/a/b\n3:cpuacct,cpu:/a\n0::/a/b\n"), "a");
        assert_eq!(of(Version::One, "3:cpu:/gone\n"), "");
        assert_eq!(of(Version::Two, ""), "");
        let serving = [Version::One, Version::Two]
            .map(|version| ["a", "a/b"].map(|name| serves(version, &mount.join(name))));
        assert_eq!(serving, [[true, false], [true, false]]);
        fs::remove_dir_all(&mount).expect("taken down");
    }

    /// Whether this user may make groups here, found out without the code that is tested.
    fn may_make_groups() -> bool {
        let probe = |top: &str| {
            let folder = format!("{top}/fairlab-probe-{}", std::process::id());
            let made = fs::create_dir(&folder).is_ok();
            made && fs::remove_dir(&folder).is_ok()
        };
        let second = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        let has_cpu = second.split_whitespace().any(|name| name == "cpu");
        if has_cpu {
            probe(MOUNT)
        } else {
            ["cpu", "cpu,cpuacct"].iter().any(|name| probe(&format!("{MOUNT}/{name}")))
        }
    }

    #[test]
    fn groups_are_made_entered_and_taken_down() {
        let _alone = MOVING.lock();
        let specs = [
            GroupSpec { weight: 200, ..GroupSpec::new("outer") },
            GroupSpec { parent: Some(0), ..GroupSpec::new("inner") },
        ];
        if !may_make_groups() {
            let error = CgroupFolders::create(&specs, None).expect_err("this user may not");
            assert!(error.contains("control group"), "{error}");
            return;
        }
        let marker = std::env::temp_dir().join(format!("fairlab-marker-{}", std::process::id()));
        let groups = CgroupFolders::create(&specs, Some(&marker)).expect("groups");
        let told = fs::read_to_string(&marker).expect("a remark");
        let _ = fs::remove_file(&marker);
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                groups.enter(1).expect("a place in the inner group");
                fs::read_to_string("/proc/thread-self/cgroup").expect("the thread's groups")
            });
            let entered = entered.join().expect("the thread");
            assert!(entered.contains("/outer/inner"), "{entered}");
        });
        let base = groups.base.clone();
        assert!(base.join("outer/inner").is_dir());
        // A file holds the last one.
        let inode = fs::metadata(base.join("outer/inner")).expect("the group").ino();
        assert!(told.starts_with("CGROUP\t/") && told.contains("/fairlab-"), "{told}");
        assert!(told.ends_with(&format!("/outer/inner\t{inode}\t100\tmax 100000\t0")), "{told}");
        assert_eq!(groups.enter(2), Err("there is no group 2".to_string()));
        drop(groups);
        assert!(!base.exists());
    }

    /// The second version has rules for groups with processes: there, as in a booted kernel, this process is put into groups of
    /// the test's, once for each rule.
    #[test]
    fn groups_are_made_as_near_as_the_rules_for_processes_allow() {
        let _alone = MOVING.lock();
        let top = Path::new(MOUNT);
        if !has_cpu(&top.join("cgroup.controllers")) || !may_make_groups() {
            match CgroupFolders::create(&[GroupSpec::new("one")], None) {
                Ok(groups) => assert_eq!(groups.place, groups.home, "the first version has no such rules"),
                Err(error) => assert!(error.contains("control group"), "{error}"),
            }
            return;
        }
        let outer = top.join(format!("fairlab-near-{}", std::process::id()));
        let inner = outer.join("inner");
        fs::create_dir_all(&inner).expect("groups");
        let back = home(Version::Two, top, &fs::read_to_string("/proc/self/cgroup").expect("groups"), "cpu");
        let enter = |group: &Path| {
            write(&group.join("cgroup.procs"), &std::process::id().to_string()).expect("a move");
        };
        let made_in = || {
            let groups = CgroupFolders::create(&[GroupSpec { weight: 200, ..GroupSpec::new("one") }], None)
                .expect("groups");
            groups.enter(0).expect("a place");
            assert_eq!(
                fs::read_to_string(groups.folders[0].join("cpu.weight")).expect("a weight").trim(),
                "200"
            );
            let place = groups.base.parent().map(Path::to_path_buf);
            drop(groups);
            place.expect("a group around ours")
        };
        write(&top.join("cgroup.subtree_control"), "+cpu").expect("the top passes it on");
        enter(&outer);
        assert_eq!(made_in(), outer, "beside a group without processes");
        // What one group had passed on it does not pass on afterwards.
        assert!(!has_cpu(&outer.join("cgroup.subtree_control")));
        enter(&inner);
        assert_eq!(made_in(), outer, "the inner one has not got the controller");
        write(&outer.join("cgroup.subtree_control"), "+cpu").expect("it is passed on");
        assert_eq!(made_in(), inner);
        write(&outer.join("cgroup.subtree_control"), "-cpu").expect("not any more");
        let mut neighbour = Command::new("sleep").arg("60").spawn().expect("a process");
        write(&inner.join("cgroup.procs"), &neighbour.id().to_string()).expect("a move");
        while fs::read_to_string(inner.join("cgroup.procs")).expect("a list").lines().count() < 2 {
            std::thread::yield_now();
        }
        enter(&outer);
        assert_eq!(made_in(), top, "threads and processes of two groups cannot lie beside each other");
        enter(&back);
        neighbour.kill().and_then(|()| neighbour.wait()).expect("its end");
        for folder in [&inner, &outer] {
            fs::remove_dir(folder).expect("taken down");
        }
    }
}
