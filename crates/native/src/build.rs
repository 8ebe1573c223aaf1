//! Builds a kernel's own scheduler: from the sources that a user has to an image that can be loaded, kept by what it was made of.
//!
//! The tree is copied by links (`selection.rs`, `tree.rs`), or a commit written (`commit.rs`), configured and compiled by its own kbuild (`kbuild.rs`), joined with the
//! shim and with stubs (`stubs.rs`), and linked (`link.rs`). Copy and objects stay, so that a change of one file is built in seconds.
//!
//! Must not know: how an image is loaded, what runs on it.

mod answer;
mod backports;
mod cache;
mod command;
mod commit;
mod config;
mod given;
mod kbuild;
mod link;
mod manifest;
mod packages;
mod probes;
#[cfg(test)]
pub(crate) mod repository;
mod selection;
mod source;
mod stubs;
mod tools;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fairlab_files::{LabError, Progress};

pub use answer::{BuiltAnswer, BuiltEntry};
pub use backports::{probed_commits, shown_commits};
pub use cache::{CachedKernel, checksum_of, kernels, named, remove};
pub(crate) use command::{run, run_with, said_well, succeed};
pub use config::{FREQUENCIES, PreemptionChoice};
pub use manifest::{Manifest, Stub};
pub use packages::point_releases;
pub use source::Source;
pub(crate) use source::git;

use cache::{ImageKey, TreeCopyState, Workspace};
use commit::RepositoryCommit;
use kbuild::Kbuild;
use probes::TreeFeatures;
use source::{ReadableTree, TreeFiles};
use stubs::ReleaseNumbers;
use tools::Tools;

/// Releases that the shim was written for: what is older lacks things that it takes for granted.
const OLDEST: ReleaseNumbers = (5, 10);

/// How a kernel is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// Patches, applied in order by `patch -p1` to a copy.
    pub patches: Vec<PathBuf>,
    /// The user's own configuration; what the shim needs is laid over it.
    pub config: Option<PathBuf>,
    /// Ticks a second: 100, 250, 300 or 1000.
    pub hz: u32,
    /// Where kernel code can be preempted.
    pub preemption: PreemptionChoice,
    /// Whether basic blocks of the scheduler are counted.
    pub counts_blocks: bool,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions {
            patches: Vec::new(),
            config: None,
            hz: 250,
            preemption: PreemptionChoice::Default,
            counts_blocks: false,
        }
    }
}

/// So many commits of one repository are built at once, each with copy and objects of its own.
pub const LANES: usize = 2;

/// What a build does one after the other. What is there already is left out.
const STEPS: [&str; 6] = ["fetching", "unpacking", "copying", "configuring", "compiling", "linking"];

/// Whoever is told each step before it begins.
struct BuildSteps<'s> {
    on_step: &'s dyn Fn(&str, Progress),
}

impl BuildSteps<'_> {
    /// Tells a step of [`STEPS`], and what it is done to.
    fn tell(&self, step: &str, what: &str) {
        let done = STEPS.iter().position(|known| *known == step).unwrap_or(0);
        (self.on_step)(&format!("{step} {what}"), Progress { done, total: STEPS.len() });
    }
}

/// Builds a kernel, or finds it built. `on_step` is told each step before it begins: none, if the kernel is there.
///
/// # Errors
/// There is no such tree, it cannot be built, this system lacks something, or `stop` was set.
pub fn build(
    source: &Source,
    options: &BuildOptions,
    on_step: &dyn Fn(&str, Progress),
    stop: &AtomicBool,
) -> Result<CachedKernel, LabError> {
    check(options)?;
    let (config, patches) = (options.config_text()?, options.patch_texts()?);
    let steps = BuildSteps { on_step };
    let started = Instant::now();
    let origin = source.origin(&steps, stop)?;
    let tools = Tools::find(&steps, stop)?;
    let build = KernelBuild { source, options, origin: &origin, tools: &tools, stop, started };
    let key = build.key(config.as_deref(), &patches)?;
    if let Some(built) = key.kept()? {
        return Ok(built);
    }
    let lanes = if matches!(origin.files, TreeFiles::Committed { .. }) { LANES } else { 1 };
    let place = Workspace::of(&build.place(), lanes)?;
    // Whoever had the place before may have built it.
    if let Some(built) = key.kept()? {
        return Ok(built);
    }
    steps.tell("copying", "the tree");
    build.stand(&place)?;
    build.make(&place, config.as_deref(), &key, &steps)
}

fn check(options: &BuildOptions) -> Result<(), LabError> {
    if !FREQUENCIES.contains(&options.hz) {
        return Err(LabError::new(
            format!("a kernel for x86 cannot tick {} times a second", options.hz),
            "take 100, 250, 300 or 1000",
        ));
    }
    if cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    Err(LabError::new("kernels can be built on x86-64 only", "take a modelled kernel"))
}

impl BuildOptions {
    /// The user's configuration.
    fn config_text(&self) -> Result<Option<String>, LabError> {
        let Some(path) = &self.config else { return Ok(None) };
        let hint = "give a kernel's .config";
        let text = String::from_utf8_lossy(&given::read(path, hint)?).into_owned();
        if text.lines().any(|line| line.starts_with("CONFIG_") && line.contains('=')) {
            return Ok(Some(text));
        }
        Err(LabError::new(format!("{} is no kernel's configuration", path.display()), hint))
    }

    /// The patches, each with something to change.
    fn patch_texts(&self) -> Result<Vec<Vec<u8>>, LabError> {
        let text = |path: &PathBuf| {
            let bytes = given::read(path, "give the path of a patch")?;
            tree::changes_something(path, &bytes)?;
            Ok(bytes)
        };
        self.patches.iter().map(text).collect()
    }
}

struct KernelBuild<'b> {
    source: &'b Source,
    options: &'b BuildOptions,
    origin: &'b ReadableTree,
    tools: &'b Tools,
    stop: &'b AtomicBool,
    started: Instant,
}

impl KernelBuild<'_> {
    fn compiler(&self) -> Result<String, LabError> {
        let said = run(self.tools.command("gcc").arg("--version"), self.stop)?;
        Ok(said.text().lines().next().unwrap_or_default().to_string())
    }

    /// All that the image is made of.
    fn key(&self, config: Option<&str>, patches: &[Vec<u8>]) -> Result<ImageKey, LabError> {
        let mut key = ImageKey::new();
        key.add("source", self.origin.content.as_bytes());
        patches.iter().for_each(|patch| key.add("patch", patch));
        key.add("config", config::text(config, self.options.hz, self.options.preemption).as_bytes());
        key.add("preemption", format!("{:?}", self.options.preemption).as_bytes());
        key.add("compiler", self.compiler()?.as_bytes());
        key.add("blocks", &[u8::from(self.options.counts_blocks)]);
        for (name, text) in SHIM {
            key.add(name, text.as_bytes());
        }
        Ok(key)
    }

    /// What the place of copy and objects is known by: the tree's place, and how it is built. A tree with whatever patches, and
    /// all commits of a repository, share one: what differs between them is built.
    fn place(&self) -> String {
        let BuildOptions { hz, preemption, config, counts_blocks, .. } = self.options;
        format!("{} {hz} {preemption:?} {config:?} {counts_blocks}", self.origin.place)
    }

    /// Makes the copy of the tree what the tree is, with the patches.
    fn stand(&self, place: &Workspace) -> Result<(), LabError> {
        let copy = place.tree();
        let mut unsure = BTreeSet::new();
        for patch in &self.options.patches {
            unsure.extend(tree::patched(patch)?);
        }
        let (mut changed, commit) = match &self.origin.files {
            TreeFiles::Listed { folder, names } => {
                let before = place.stands()?.map_or_else(|| unsure.clone(), |before| before.unsure);
                (tree::follow(folder, names, &copy, &before)?, String::new())
            }
            TreeFiles::Committed { folder, commit } => {
                (RepositoryCommit { folder, hash: commit }.stand(place, self.stop)?, commit.clone())
            }
        };
        changed.extend(unsure.iter().cloned());
        place.set_stand(&TreeCopyState { commit, unsure })?;
        self.options.patches.iter().try_for_each(|patch| tree::patch(&copy, patch, self.stop))?;
        // What stood here before would leave its mark on a configuration that is only brought up to date.
        if changed.iter().any(|name| decides_configuration(name)) {
            place.forget_configuration()
        } else {
            Ok(())
        }
    }

    fn make(
        &self,
        place: &Workspace,
        config: Option<&str>,
        key: &ImageKey,
        steps: &BuildSteps<'_>,
    ) -> Result<CachedKernel, LabError> {
        let (copy, objects, shim) = (place.tree(), place.objects()?, place.shim(&SHIM)?);
        let release = release_of(&copy)?;
        let found = TreeFeatures::of(&copy);
        let text = |name: &str| fs::read_to_string(copy.join(name)).unwrap_or_default();
        let (kinds, own) = (text("kernel/Kconfig.preempt"), text("arch/x86/configs/x86_64_defconfig"));
        let kbuild = Kbuild {
            preemption: self.options.preemption.of_tree(&kinds, &own, config),
            tree: &copy,
            objects: &objects,
            shim: &shim,
            tools: self.tools,
            found: &found,
            counts_blocks: self.options.counts_blocks,
            stop: self.stop,
        };
        steps.tell("configuring", &format!("Linux {}", release.text));
        kbuild.configure(config, self.options.hz)?;
        steps.tell("compiling", "kernel/sched");
        kbuild.compile()?;
        steps.tell("compiling", "the shim");
        kbuild.compile_shim()?;
        steps.tell("linking", "the image");
        let linked = link::link(&kbuild, release.numbers)?;
        let finished = fs::read_to_string(objects.join(".config")).unwrap_or_default();
        let mut manifest = self.manifest(&copy, &release, &found, linked.stubs, &finished)?;
        if kbuild.preemption == PreemptionChoice::Dynamic {
            manifest.preemption = "dynamic".to_string();
        }
        key.keep(&linked.image, manifest)
    }

    fn manifest(
        &self,
        copy: &Path,
        release: &TreeRelease,
        found: &TreeFeatures,
        stubs: stubs::Stubs,
        finished: &str,
    ) -> Result<Manifest, LabError> {
        let sched = copy.join("kernel/sched");
        let mut tunables: Vec<String> = ["core.c", "fair.c", "rt.c", "deadline.c", "debug.c", "topology.c"]
            .iter()
            .filter_map(|file| fs::read(sched.join(file)).ok())
            .flat_map(|bytes| manifest::tunables(&String::from_utf8_lossy(&bytes)))
            .collect();
        // A file of debugfs for each CPU, which the shim sets on all at once.
        tunables.extend(found.has("FAIR_SERVER").then(|| "fair_server_runtime".to_string()));
        if found.has("OLD_SYSCTLS") {
            tunables.extend(manifest::old_tunables(OLD_ROWS));
        }
        tunables.sort_unstable();
        tunables.dedup();
        let set = |symbol: &str| finished.lines().any(|line| line == format!("{symbol}=y"));
        let preemption = if set("CONFIG_PREEMPT_LAZY") {
            "lazy"
        } else if set("CONFIG_PREEMPT") {
            "full"
        } else if set("CONFIG_PREEMPT_VOLUNTARY") {
            "voluntary"
        } else {
            "none"
        };
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Manifest {
            schema: manifest::SCHEMA.to_string(),
            source: self.source.to_string(),
            package: self.origin.package.clone(),
            release: release.text.clone(),
            hz: self.options.hz,
            preemption: preemption.to_string(),
            patches: self.options.patches.iter().map(name).collect(),
            compiler: self.compiler()?,
            counts_blocks: self.options.counts_blocks,
            probes: found.names(),
            features: manifest::features(&fs::read_to_string(sched.join("features.h")).unwrap_or_default()),
            tunables,
            stubs: stubs.silent,
            missing: stubs.stopping,
            config: finished.lines().filter(|line| line.starts_with("CONFIG_")).map(str::to_string).collect(),
            checksum: String::new(),
            built_s: self.started.elapsed().as_secs_f64(),
        })
    }
}

/// Whether a file of that name has a say in what a configuration becomes.
fn decides_configuration(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.starts_with("Kconfig") || name.starts_with("scripts/") || name.starts_with("arch/x86/Makefile")
}

/// A tree's release.
struct TreeRelease {
    numbers: ReleaseNumbers,
    text: String,
}

/// The release that a tree's Makefile says.
fn release_of(tree: &Path) -> Result<TreeRelease, LabError> {
    let text = fs::read_to_string(tree.join("Makefile")).unwrap_or_default();
    let of = |name: &str| {
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(" =")?.trim().to_string()))
    };
    let number = |name: &str| of(name).and_then(|word| word.parse::<u32>().ok());
    let (Some(version), Some(patch)) = (number("VERSION"), number("PATCHLEVEL")) else {
        return Err(LabError::new(
            "the tree's Makefile says no release",
            "give the top folder of a kernel's tree",
        ));
    };
    let sub = of("SUBLEVEL").filter(|word| !word.is_empty()).map_or(String::new(), |word| format!(".{word}"));
    let text = format!("{version}.{patch}{sub}{}", of("EXTRAVERSION").unwrap_or_default());
    if (version, patch) < OLDEST {
        return Err(LabError::new(
            format!("the tree is of Linux {text}: 5.10 is the oldest that can be built"),
            "take a newer tree, or a modelled kernel",
        ));
    }
    Ok(TreeRelease { numbers: (version, patch), text })
}

/// What has the rows that old trees keep elsewhere.
const OLD_ROWS: &str = include_str!("../shim/settings.c");

/// The shim's sources.
const SHIM: [(&str, &str); 21] = [
    ("stubs.txt", include_str!("../shim/stubs.txt")),
    ("abi.h", include_str!("../shim/abi.h")),
    ("guard.h", include_str!("../shim/guard.h")),
    ("shim.h", include_str!("../shim/shim.h")),
    ("shim.c", include_str!("../shim/shim.c")),
    ("percpu.c", include_str!("../shim/percpu.c")),
    ("topology.c", include_str!("../shim/topology.c")),
    ("clock.c", include_str!("../shim/clock.c")),
    ("interrupt.c", include_str!("../shim/interrupt.c")),
    ("stack.c", include_str!("../shim/stack.c")),
    ("stop.c", include_str!("../shim/stop.c")),
    ("process.c", include_str!("../shim/process.c")),
    ("group.c", include_str!("../shim/group.c")),
    ("task.c", include_str!("../shim/task.c")),
    ("event.c", include_str!("../shim/event.c")),
    ("settings.c", OLD_ROWS),
    ("read.c", include_str!("../shim/read.c")),
    ("boot.c", include_str!("../shim/boot.c")),
    ("table.c", include_str!("../shim/table.c")),
    ("plain.c", include_str!("../shim/plain.c")),
    ("image.c", include_str!("../shim/image.c")),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn key(change: impl Fn(&mut BuildOptions)) -> String {
        let origin = ReadableTree {
            place: "folder /x".to_string(),
            content: "files 1".to_string(),
            package: String::new(),
            files: TreeFiles::Listed { folder: PathBuf::new(), names: Vec::new() },
        };
        let mut options = BuildOptions::default();
        change(&mut options);
        let (source, tools, stop) =
            (Source::Debian("6.1".to_string()), Tools::default(), AtomicBool::new(false));
        let build = KernelBuild {
            source: &source,
            options: &options,
            origin: &origin,
            tools: &tools,
            stop: &stop,
            started: Instant::now(),
        };
        let config = options.config_text().expect("a configuration");
        build.key(config.as_deref(), &options.patch_texts().expect("patches")).expect("a key").name()
    }

    #[test]
    fn a_key_changes_with_all_that_an_image_is_made_of() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let (patch, config) = (folder.path().join("patch"), folder.path().join("config"));
        fs::write(&patch, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n").expect("written");
        fs::write(&config, "CONFIG_PSI=y\n").expect("written");
        let keys = [
            key(|_| {}),
            key(|options| options.hz = 1000),
            key(|options| options.preemption = PreemptionChoice::Full),
            key(|options| options.counts_blocks = true),
            key(|options| options.patches.push(patch.clone())),
            key(|options| options.config = Some(config.clone())),
        ];
        assert_eq!(keys[0], key(|_| {}));
        let different: BTreeSet<&String> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn what_is_no_patch_or_configuration_is_refused_before_a_build() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let refused = |patch: Option<PathBuf>, config: Option<PathBuf>| {
            let options =
                BuildOptions { patches: patch.into_iter().collect(), config, ..BuildOptions::default() };
            let source = Source::Folder(PathBuf::from("/no/such/tree"));
            let error = build(&source, &options, &|_, _| {}, &AtomicBool::new(false)).expect_err("refused");
            assert!(error.lines.is_empty() && !error.problem.contains('\n'), "{error}");
            error.problem
        };
        let missing = folder.path().join("missing");
        for (patch, problem) in [
            (file("empty", ""), "is no patch: it is empty"),
            (file("words", "a word\n"), "is no patch: it changes no file"),
            (file("names", "--- a/x\n+++ b/x\n"), "is no patch: it changes no file"),
            (missing.clone(), "missing: No such file"),
            (folder.path().to_path_buf(), "is no regular file"),
            (PathBuf::from("/dev/zero"), "/dev/zero is no regular file"),
        ] {
            let told = refused(Some(patch), None);
            assert!(told.contains(problem), "{told}");
        }
        for (config, problem) in [
            (file("none", ""), "is no kernel's configuration"),
            (missing, "missing: No such file"),
            (PathBuf::from("/dev/zero"), "/dev/zero is no regular file"),
        ] {
            let told = refused(None, Some(config));
            assert!(told.contains(problem), "{told}");
        }
    }

    #[test]
    fn what_decides_a_configuration() {
        for name in ["Kconfig", "kernel/Kconfig.preempt", "scripts/cc-version.sh", "arch/x86/Makefile"] {
            assert!(decides_configuration(name), "{name}");
        }
        for name in ["kernel/sched/fair.c", "kernel/sched/Makefile", "include/linux/kconfig.h"] {
            assert!(!decides_configuration(name), "{name}");
        }
    }

    #[test]
    fn a_trees_release_is_its_makefiles() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let of = |text: &str| {
            fs::write(folder.path().join("Makefile"), text).expect("written");
            release_of(folder.path()).map(|named| (named.numbers, named.text)).map_err(|error| error.problem)
        };
        let made = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\nEXTRAVERSION = -rc1\n";
        assert_eq!(of(made), Ok(((6, 12), "6.12.3-rc1".to_string())));
        assert!(
            of("VERSION = 4\nPATCHLEVEL = 19\nSUBLEVEL =\n")
                .is_err_and(|problem| problem.contains("Linux 4.19:"))
        );
        assert!(of("all:\n").is_err());
    }

    #[test]
    fn impossible_frequencies_are_refused() {
        let source = Source::Debian("6.1".to_string());
        let options = BuildOptions { hz: 123, ..BuildOptions::default() };
        let told = build(&source, &options, &|_, _| {}, &AtomicBool::new(false)).map(|_| ());
        assert!(told.is_err_and(|error| error.problem.contains("123 times")));
    }
}
