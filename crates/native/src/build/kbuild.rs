//! Compiles a tree's scheduler, and what of the rest it needs, by the tree's own kbuild; the shim with the flags that it used.
//!
//! Must not know: where the tree comes from, how objects are linked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;

use fairlab_files::LabError;

use super::command::{ProgramOutput, run};
use super::config::{self, PreemptionChoice};
use super::probes::TreeFeatures;
use super::tools::Tools;

/// Units of the tree beside `kernel/sched/`; those that a tree lacks are left out.
const UNITS: [&str; 23] = [
    "lib/bitmap.o",
    "lib/find_bit.o",
    "lib/cpumask.o",
    "lib/rbtree.o",
    "lib/plist.o",
    "lib/timerqueue.o",
    "lib/vsprintf.o",
    "lib/ctype.o",
    "lib/hexdump.o",
    "lib/string.o",
    "lib/kstrtox.o",
    "lib/random32.o",
    "lib/llist.o",
    "lib/refcount.o",
    "lib/string_helpers.o",
    "lib/list_debug.o",
    "kernel/smp.o",
    "kernel/time/hrtimer.o",
    "kernel/locking/spinlock.o",
    "kernel/irq_work.o",
    "kernel/task_work.o",
    "init/init_task.o",
    "fs/seq_file.o",
];

/// A call at each basic block.
const COUNTED: &str = "-fsanitize-coverage=trace-pc";

/// The words by which a folder of objects was configured.
pub(super) const CONFIGURED: &str = "fairlab.config";

/// One build: a tree, and the folder of its objects.
pub(super) struct Kbuild<'b> {
    pub tree: &'b Path,
    pub objects: &'b Path,
    /// Where the shim's sources are.
    pub shim: &'b Path,
    pub tools: &'b Tools,
    pub found: &'b TreeFeatures,
    /// Whether basic blocks are counted.
    pub counts_blocks: bool,
    /// Where kernel code can be preempted, as the tree has it.
    pub preemption: PreemptionChoice,
    pub stop: &'b AtomicBool,
}

impl Kbuild<'_> {
    fn make(&self) -> Command {
        let mut command = self.tools.command("make");
        command.args(["--silent", "--no-print-directory", "-C"]).arg(self.tree);
        let jobs = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        command.arg(format!("O={}", self.objects.display())).arg(format!("-j{jobs}"));
        // Neither is needed by what is linked here, and both want libraries of the host.
        command.args([
            "CONFIG_OBJTOOL=",
            "CONFIG_STACK_VALIDATION=",
            "KBUILD_BUILD_TIMESTAMP=0",
            "KBUILD_BUILD_USER=fairlab",
        ]);
        command
    }

    fn run(&self, command: &mut Command, what: &str) -> Result<ProgramOutput, LabError> {
        let said = run(command, self.stop)?;
        if said.succeeded { Ok(said) } else { Err(self.failed(what, &said.errors)) }
    }

    /// The first error that a compiler tells, with names relative to the tree.
    fn failed(&self, what: &str, errors: &str) -> LabError {
        let error = first_error(errors).unwrap_or_else(|| "it does not say why".to_string());
        let tree = format!("{}/", self.tree.display());
        let shim = format!("{}/", self.shim.display());
        let error = error.replace(&tree, "").replace(&shim, "shim/").replace("../", "");
        let hint = if error.starts_with("shim/") || error.contains(" shim/") {
            "the shim does not know what this tree has there"
        } else {
            "mend it there, or take another tree"
        };
        LabError::new(format!("the tree does not build ({what}): {error}"), hint)
    }

    /// Configures, unless the folder was configured by these words before.
    pub fn configure(&self, user: Option<&str>, hz: u32) -> Result<(), LabError> {
        let preemption = self.preemption;
        let text = config::text(user, hz, preemption);
        let (kept, finished) = (self.objects.join(CONFIGURED), self.objects.join(".config"));
        if fs::read_to_string(&kept).is_ok_and(|kept| kept == text) && finished.is_file() {
            return Ok(());
        }
        let told = |error: std::io::Error| unwritable(&kept, &error);
        fs::write(&kept, &text).map_err(told)?;
        let mut command = self.make();
        if user.is_some() {
            fs::write(&finished, &text).map_err(told)?;
            command.arg("olddefconfig");
        } else {
            command.arg(format!("KCONFIG_ALLCONFIG={}", kept.display())).arg("allnoconfig");
        }
        let done = self
            .run(&mut command, "configuration")
            .and_then(|_| config::check(&fs::read_to_string(&finished).map_err(told)?, hz, preemption));
        if done.is_err() {
            // Another try begins from nothing.
            let _ = fs::remove_file(&kept);
        }
        done
    }

    /// The units of this tree beside `kernel/sched/`.
    pub fn units(&self) -> Vec<&'static str> {
        let stem = |unit: &str| unit.trim_end_matches(".o").to_string();
        let is_there = |unit: &&&str| {
            let is_list_debug = unit.contains("list_debug");
            ["c", "S"].iter().any(|kind| self.tree.join(format!("{}.{kind}", stem(unit))).is_file())
                && (!is_list_debug || self.checks_lists())
        };
        UNITS.iter().filter(is_there).copied().collect()
    }

    fn checks_lists(&self) -> bool {
        let config = fs::read_to_string(self.objects.join(".config")).unwrap_or_default();
        config.lines().any(|line| line == "CONFIG_DEBUG_LIST=y" || line == "CONFIG_LIST_HARDENED=y")
    }

    /// The tree's objects; kbuild makes its headers first.
    pub fn compile(&self) -> Result<(), LabError> {
        let guard = self.shim.join("guard.h");
        let mut flags = format!("-include {}", guard.display());
        if self.counts_blocks {
            flags = format!("{flags} {COUNTED}");
        }
        if !self.found.has("OWN_CAPACITY") {
            flags += " -DFL_CAPACITY_IS_OURS";
        }
        if self.preemption == PreemptionChoice::Dynamic {
            flags += " -DFL_DYNAMIC";
        }
        let mut command = self.make();
        command.arg(format!("KCFLAGS={flags}")).args(self.units()).arg("kernel/sched/");
        self.run(&mut command, "kernel/sched").map(|_| ())
    }

    /// The objects of `kernel/sched/`: those that kbuild put together, for others may be there of a tree that stood here before.
    pub fn sched_objects(&self) -> Result<Vec<PathBuf>, LabError> {
        let folder = self.objects.join("kernel/sched");
        let archive = folder.join("built-in.a");
        let listed = fs::read(&archive).map_err(|error| unwritable(&archive, &error))?;
        Ok(members(&String::from_utf8_lossy(&listed)).map(|name| folder.join(name)).collect())
    }

    /// The shim's objects: `shim.o` with the tree's headers, `plain.o` and `image.o` without.
    pub fn compile_shim(&self) -> Result<(), LabError> {
        let kept = self.objects.join("kernel/sched/.fair.o.cmd");
        let text = fs::read_to_string(&kept).map_err(|error| unwritable(&kept, &error))?;
        let Some(flags) = flags_of(&text) else {
            return Err(LabError::new(
                "kbuild keeps its commands in a form that is not known",
                "take another tree",
            ));
        };
        let folder = self.objects.join("fairlab");
        let probes = folder.join("probes.h");
        fs::create_dir_all(&folder)
            .and_then(|()| match fs::read_to_string(&probes) {
                Ok(there) if there == self.found.header() => Ok(()),
                _ => fs::write(&probes, self.found.header()),
            })
            .map_err(|error| unwritable(&folder, &error))?;
        let (shim, tree) = (self.shim.display(), self.tree.display());
        let with = format!(
            "{flags} -g -w -fmacro-prefix-map={shim}=shim -I {tree}/kernel/sched -I {tree} -I ./fairlab -I {shim}"
        );
        let without = format!(
            "{} -g -w -fno-stack-protector -fno-tree-loop-distribute-patterns -I {shim}",
            plain_flags(&flags)
        );
        for (name, flags) in [("shim", &with), ("plain", &without), ("image", &without)] {
            let line = format!("{flags} -MD -MF fairlab/{name}.d -c -o fairlab/{name}.o {shim}/{name}.c");
            let (object, kept) = (folder.join(format!("{name}.o")), folder.join(format!("{name}.cmd")));
            if fs::read_to_string(&kept).is_ok_and(|kept| kept == line) && self.is_current(&object) {
                continue;
            }
            // What stands there is of another command until this one has succeeded.
            let _ = fs::remove_file(&kept);
            let mut command = self.tools.command("sh");
            self.run(command.args(["-c", &line]).current_dir(self.objects), "the shim")?;
            fs::write(&kept, &line).map_err(|error| unwritable(&kept, &error))?;
        }
        Ok(())
    }

    /// Whether an object is newer than all that the compiler read for it.
    fn is_current(&self, object: &Path) -> bool {
        let time = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        let read = fs::read_to_string(object.with_extension("d")).unwrap_or_default();
        let built = time(object);
        let mut files = dependencies(&read).peekable();
        files.peek().is_some()
            && files.all(|file| time(&self.objects.join(file)).is_some_and(|time| Some(time) < built))
    }
}

/// The objects that an archive of `kernel/sched/` names: it is thin, and holds nothing but names.
fn members(archive: &str) -> impl Iterator<Item = &str> {
    let names = archive.lines().filter_map(|line| line.strip_suffix('/'));
    names.map(|name| name.rsplit('/').next().unwrap_or(name)).filter(|name| name.ends_with(".o"))
}

/// The files that a compiler's account of what it read names.
fn dependencies(account: &str) -> impl Iterator<Item = &str> {
    account.split_once(": ").map_or("", |(_, files)| files).split_whitespace().filter(|word| *word != "\\")
}

fn unwritable(path: &Path, error: &std::io::Error) -> LabError {
    LabError::new(format!("{}: {error}", path.display()), "check the place and its free space")
}

/// The command by which kbuild compiled `fair.c`, without what is that file's own or a probe's.
fn flags_of(kept: &str) -> Option<String> {
    let line = kept.lines().next()?;
    let command = line.split_once(":= ")?.1;
    let command = command.split(" -c -o ").next()?;
    let own = |word: &str| {
        word.starts_with("-Wp,-MMD")
            || word.starts_with("-fsanitize-coverage")
            || word.starts_with("-DKBUILD_")
            || word.starts_with("-D__KBUILD_")
    };
    let words: Vec<&str> = command.split(' ').filter(|word| !own(word)).collect();
    let named = "-DKBUILD_MODFILE='\"shim\"' -DKBUILD_BASENAME='\"shim\"' -DKBUILD_MODNAME='\"shim\"' -D__KBUILD_MODNAME=kmod_shim";
    Some(format!("{} {named}", words.join(" ")))
}

/// The same without the tree: no header, no definition.
fn plain_flags(flags: &str) -> String {
    let mut words = Vec::new();
    let mut rest = flags.split(' ');
    while let Some(word) = rest.next() {
        match word {
            "-include" | "-I" => {
                rest.next();
            }
            "-nostdinc" => {}
            word if word.starts_with("-I") || word.starts_with("-D") => {}
            word => words.push(word),
        }
    }
    words.join(" ")
}

/// The first error of a compiler, an assembler or a linker, or else make's own last word.
pub(super) fn first_error(errors: &str) -> Option<String> {
    let compilers = |line: &&str| {
        line.contains(": error:") || line.contains(": fatal error:") || line.contains(": Error:")
    };
    let linkers = |line: &&str| line.contains("undefined reference") || line.starts_with("ld:");
    let kconfigs =
        |line: &&str| line.starts_with("Kconfig") || line.contains("Kconfig") && line.contains(": ");
    let makes = |line: &&str| line.contains("*** ");
    let found = errors.lines().find(compilers);
    let found = found.or_else(|| errors.lines().find(linkers)).or_else(|| errors.lines().find(kconfigs));
    let found = found
        .or_else(|| errors.lines().find(makes))
        .or_else(|| errors.lines().rfind(|line| !line.trim().is_empty()));
    found.map(|line| line.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_has_file_and_line() {
        for (said, first) in [
            (
                "In file included from kernel/sched/build_policy.c:1:\n/t/kernel/sched/fair.c:12:5: warning: unused\n/t/kernel/sched/fair.c:77:9: error: 'x' undeclared\nother.c:1:1: error: later\nmake[1]: *** [kernel/sched/fair.o] Error 1\n",
                "/t/kernel/sched/fair.c:77:9: error: 'x' undeclared",
            ),
            (
                "a.c:3:10: fatal error: gone.h: No such file\ncompilation terminated.\n",
                "a.c:3:10: fatal error: gone.h: No such file",
            ),
            (
                "Kconfig:32: can't open file \"Documentation/Kconfig\"\nmake: *** [Makefile:236] Error 2\n",
                "Kconfig:32: can't open file \"Documentation/Kconfig\"",
            ),
            (
                "x\nmake: *** No rule to make target 'lib/x.o'.  Stop.\n",
                "make: *** No rule to make target 'lib/x.o'.  Stop.",
            ),
            (
                "/tmp/x.s: Assembler messages:\n/tmp/x.s:5: Error: no such instruction\n",
                "/tmp/x.s:5: Error: no such instruction",
            ),
        ] {
            assert_eq!(first_error(said).as_deref(), Some(first));
        }
        assert_eq!(first_error("\n \n"), None);
    }

    #[test]
    fn an_archive_names_its_objects() {
        let thin = "!<thin>\n//                                              48        `\ncore.o/\nkernel/sched/fair.o/\n\n/0              0           0     0     644     2040      `\n";
        assert_eq!(members(thin).collect::<Vec<_>>(), ["core.o", "fair.o"]);
        assert_eq!(members("!<arch>\n").count(), 0);
    }

    #[test]
    fn what_a_compiler_read_is_known() {
        let read: Vec<&str> = dependencies("fairlab/x.o: /t/a.c \\\n /t/b.h \\\n  include/c.h\n").collect();
        assert_eq!(read, ["/t/a.c", "/t/b.h", "include/c.h"]);
        assert_eq!(dependencies("").count(), 0);
    }

    const KEPT: &str = "savedcmd_kernel/sched/fair.o := gcc -Wp,-MMD,kernel/sched/.fair.o.d -nostdinc -I/t/include -I ./kernel -include /t/kconfig.h -D__KERNEL__ -O2 -fsanitize-coverage=trace-pc -DKBUILD_MODFILE='\"kernel/sched/fair\"' -c -o kernel/sched/fair.o /t/kernel/sched/fair.c\n\nsource_x := y\n";

    #[test]
    fn the_shim_has_the_trees_flags() {
        let flags = flags_of(KEPT).expect("flags");
        assert!(flags.starts_with("gcc -nostdinc -I/t/include -I ./kernel -include /t/kconfig.h -D__KERNEL__ -O2 -DKBUILD_MODFILE='\"shim\"'"), "{flags}");
        assert_eq!(plain_flags(&flags), "gcc -O2");
        assert_eq!(flags_of(""), None);
    }
}
