//! Links the objects of a tree and the shim into an image: static, without libc, at fixed low addresses.
//!
//! Must not know: how objects are compiled, how an image is loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_files::LabError;

use super::command::succeed;
use super::kbuild::Kbuild;
use super::stubs::{self, ReleaseNumbers, Stubs};

/// Where the image begins: low enough for the kernel's addresses of 31 bits, above what a process may not map.
const BASE: &str = "0x10000000";

/// Sections that the kernel's own linker script lays out; the script is the tree's macros, so it is preprocessed with its headers.
const SCRIPT: &str = "#include <asm-generic/vmlinux.lds.h>\n#include <asm/cache.h>\n\
    FL_BEGIN\n.fl_stext : { SCHED_TEXT LOCK_TEXT FL_CPUIDLE }\nFL_AFTER_TEXT\n\
    .fl_sched : { SCHED_DATA }\n.fl_percpu : ALIGN(4096) { PERCPU_INPUT(64) }\n\
    .fl_init : ALIGN(8) { __fl_initcalls_start = .; KEEP(*(.initcall*.init)) __fl_initcalls_end = .; }\nFL_END\n";

/// Symbols that the script defines.
const DEFINED: [&str; 10] = [
    "__per_cpu_start",
    "__per_cpu_end",
    "__per_cpu_load",
    "__fl_initcalls_start",
    "__fl_initcalls_end",
    "__sched_class_highest",
    "__sched_class_lowest",
    "__begin_sched_classes",
    "__end_sched_classes",
    "__start___bug_table",
];

/// What the link left to stubs.
pub(super) struct LinkedImage {
    pub stubs: Stubs,
    pub image: PathBuf,
}

/// Links.
pub(super) fn link(kbuild: &Kbuild<'_>, release: ReleaseNumbers) -> Result<LinkedImage, LabError> {
    let linker = Linker { folder: kbuild.objects.join("fairlab"), kbuild, stop: kbuild.stop };
    linker.script()?;
    linker.join_rest()?;
    let lookers = linker.join_sched()?;
    linker.join_all()?;
    let (undefined, constants) = linker.undefined()?;
    let stubs = stubs::make(&undefined, release)?;
    let assembly = format!("{}{}", stubs.assembly, stubs::lookers(&lookers));
    linker.write("stubs.S", &assembly)?;
    linker.run("gcc", ["-c", "-o", "stubs.o", "stubs.S"])?;
    linker.image(&stubs, &constants)?;
    Ok(LinkedImage { stubs, image: linker.folder.join("image") })
}

struct Linker<'l> {
    folder: PathBuf,
    kbuild: &'l Kbuild<'l>,
    stop: &'l AtomicBool,
}

impl Linker<'_> {
    fn write(&self, name: &str, text: &str) -> Result<(), LabError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|error| {
            LabError::new(format!("{}: {error}", path.display()), "check the place and its free space")
        })
    }

    fn run<I: AsRef<std::ffi::OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = I>,
    ) -> Result<String, LabError> {
        let mut command: Command = self.kbuild.tools.command(program);
        command.args(arguments).current_dir(&self.folder);
        Ok(succeed(&mut command, "link the image", self.stop)?.text())
    }

    /// The linker's scripts, with the tree's macros.
    fn script(&self) -> Result<(), LabError> {
        let idle = if self.kbuild.found.has("CPUIDLE_TEXT") { "CPUIDLE_TEXT" } else { "" };
        self.write("image.lds.S", &SCRIPT.replace("FL_CPUIDLE", idle))?;
        let mut words = vec!["-E".to_string(), "-P".into(), "-x".into(), "c".into()];
        for define in ["__ASSEMBLY__", "__ASSEMBLER__", "LINKER_SCRIPT", "PAGE_SIZE=4096", "__KERNEL__"] {
            words.push(format!("-D{define}"));
        }
        let (tree, objects) = (self.kbuild.tree.display(), self.kbuild.objects.display());
        for folder in ["arch/x86/include", "include", "arch/x86/include/uapi", "include/uapi"] {
            words.push(format!("-I{tree}/{folder}"));
            let made = folder
                .replace("x86/include", "x86/include/generated")
                .replace("include/uapi", "include/generated/uapi");
            let made = made.replace("generated/generated", "generated");
            words.push(format!("-I{objects}/{made}"));
        }
        words.push(format!("-I{objects}/include"));
        words.extend([
            "-include".to_string(),
            format!("{tree}/include/linux/kconfig.h"),
            "image.lds.S".to_string(),
        ]);
        let text = self.run("gcc", words)?;
        let text = text
            .replace("FL_BEGIN", "SECTIONS {")
            .replace("FL_AFTER_TEXT", "} INSERT AFTER .text; SECTIONS {")
            .replace("FL_END", "} INSERT BEFORE .data;");
        self.write("image.lds", &text)
    }

    /// The tree's units beside the scheduler. Their start-up calls are not ours to make.
    fn join_rest(&self) -> Result<(), LabError> {
        let units = self.kbuild.units().into_iter().map(|unit| format!("../{unit}"));
        let words = ["-r", "-z", "muldefs", "-o", "rest.o"].map(str::to_string).into_iter().chain(units);
        self.run("ld", words)?;
        self.run("objcopy", ["-w", "-R", ".initcall*", "-R", ".rela.initcall*", "rest.o"]).map(|_| ())
    }

    /// The scheduler, whose looks for the next CPU are counted. Returns the functions by which it looks.
    fn join_sched(&self) -> Result<BTreeSet<String>, LabError> {
        let objects = self.kbuild.sched_objects()?;
        let words = ["-r", "-o", "sched.o"].map(PathBuf::from).into_iter().chain(objects);
        self.run("ld", words)?;
        let lookers: BTreeSet<String> = self
            .symbols(&["-u", "sched.o"])?
            .into_iter()
            .map(|(_, name)| name)
            .filter(|name| stubs::looks(name))
            .collect();
        let renames = lookers.iter().map(|name| format!("--redefine-sym={name}=fl_look_{name}"));
        self.run("objcopy", renames.chain(["sched.o".to_string()]))?;
        Ok(lookers)
    }

    fn join_all(&self) -> Result<(), LabError> {
        let words =
            ["-r", "-z", "muldefs", "-o", "kern.o", "shim.o", "plain.o", "image.o", "sched.o", "rest.o"];
        self.run("ld", words).map(|_| ())
    }

    /// Letter and name of symbols.
    fn symbols(&self, arguments: &[&str]) -> Result<Vec<(char, String)>, LabError> {
        let said = self.run("nm", arguments)?;
        let symbol = |line: &str| {
            let mut words = line.split_whitespace().rev();
            let (name, letter) = (words.next()?, words.next()?);
            Some((letter.chars().next()?, name.to_string()))
        };
        Ok(said.lines().filter_map(symbol).collect())
    }

    /// What nobody defines, each with whether it is called; and read-only views of per-CPU variables, which the tree's own script
    /// makes.
    fn undefined(&self) -> Result<(BTreeMap<String, bool>, Vec<String>), LabError> {
        let symbols = self.symbols(&["kern.o"])?;
        let defined: BTreeSet<&str> =
            symbols.iter().filter(|(letter, _)| *letter != 'U').map(|(_, name)| name.as_str()).collect();
        let script = fs::read_to_string(self.folder.join("image.lds")).unwrap_or_default();
        let by_script =
            |name: &str| DEFINED.contains(&name) || name == "__stop___bug_table" || defines(&script, name);
        let called = self.called()?;
        let (mut undefined, mut constants) = (BTreeMap::new(), Vec::new());
        for (letter, name) in &symbols {
            if *letter != 'U' || by_script(name) || name.starts_with("fl_look_") {
                continue;
            }
            match name.strip_prefix("const_") {
                Some(variable) if defined.contains(variable) => constants.push(format!("{name}={variable}")),
                _ => {
                    undefined.insert(name.clone(), called.contains(name));
                }
            }
        }
        Ok((undefined, constants))
    }

    /// Names that instructions call.
    fn called(&self) -> Result<BTreeSet<String>, LabError> {
        let said = self.run("objdump", ["-r", "kern.o"])?;
        let name = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            (words.next()? == "R_X86_64_PLT32").then_some(())?;
            let target = words.next()?;
            let end = target.find("-0x").or_else(|| target.find("+0x")).unwrap_or(target.len());
            Some(target[..end].to_string())
        };
        Ok(said.lines().filter_map(name).collect())
    }

    fn image(&self, stubs: &Stubs, constants: &[String]) -> Result<(), LabError> {
        let mut words: Vec<String> = [
            "-m",
            "elf_x86_64",
            "-static",
            "-no-pie",
            "-nostdlib",
            "--build-id=sha1",
            "-z",
            "max-page-size=4096",
            "-z",
            "separate-code",
            "-z",
            "noexecstack",
            "-z",
            "norelro",
            "--orphan-handling=place",
            "-T",
            "image.lds",
            "-e",
            "fl_image",
            "-o",
            "image",
            "kern.o",
            "stubs.o",
        ]
        .map(str::to_string)
        .to_vec();
        words.push(format!("-Ttext-segment={BASE}"));
        words.extend(stubs.absent.iter().chain(constants).map(|symbol| format!("--defsym={symbol}")));
        self.run("ld", words).map(|_| ())
    }
}

/// Whether a linker's script gives a symbol its value.
fn defines(script: &str, name: &str) -> bool {
    script.match_indices(name).any(|(at, _)| {
        let before =
            script[..at].chars().next_back().is_none_or(|char| !char.is_alphanumeric() && char != '_');
        before && script[at + name.len()..].trim_start().starts_with("= .")
    })
}

/// Whether a path is an image.
pub(super) fn is_image(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_symbols_are_known() {
        let script = ".x : { __begin_sched_classes = .; *(a) end_of_it = .; }";
        assert!(defines(script, "__begin_sched_classes") && defines(script, "end_of_it"));
        assert!(
            !defines(script, "begin_sched_classes") && !defines(script, "of_it") && !defines(script, "other")
        );
    }
}
