//! What was asked of the kernel beyond what it comes with: parameters, features, tunables.
//!
//! What a kernel does not have is told with what it has instead: a recording under other settings than were asked for would
//! mislead.
//!
//! Must not know: what any of them does.

use std::path::PathBuf;

use crate::files;
use crate::job::KernelSetting;

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSetting {
    pub problem: String,
    pub hint: String,
}

/// Where a kernel keeps its scheduler's settings.
pub struct SettingFolders {
    debug: PathBuf,
    sysctl: PathBuf,
}

impl Default for SettingFolders {
    fn default() -> SettingFolders {
        SettingFolders { debug: "/sys/kernel/debug".into(), sysctl: "/proc/sys/kernel".into() }
    }
}

/// Whether the kernel took its parameters: it hands those that it does not know, or whose value makes no sense to it, to the first
/// process, as arguments or as variables.
///
/// # Errors
/// It did not take one.
pub fn check_parameters(parameters: &[String], handed_on: &[String]) -> Result<(), RefusedSetting> {
    match parameters.iter().find(|parameter| handed_on.contains(parameter)) {
        None => Ok(()),
        Some(parameter) => Err(RefusedSetting {
            problem: format!("this kernel did not take its parameter '{parameter}'"),
            hint: "see Documentation/admin-guide/kernel-parameters of its release".to_string(),
        }),
    }
}

/// What the kernel handed on to this process, its first.
pub fn handed_on() -> Vec<String> {
    let variables = std::env::vars_os().map(|(name, value)| {
        let (name, value) = (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
        format!("{name}={value}")
    });
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    arguments.chain(variables).collect()
}

impl SettingFolders {
    /// Applies settings in their order.
    ///
    /// # Errors
    /// The kernel has none of that name, or does not take the value.
    pub fn apply(&self, settings: &[KernelSetting]) -> Result<(), RefusedSetting> {
        settings.iter().try_for_each(|setting| match setting {
            KernelSetting::Feature(name) => self.switch(name),
            KernelSetting::Value { name, value } => self.write(name, value),
        })
    }

    fn switch(&self, name: &str) -> Result<(), RefusedSetting> {
        let places = [self.debug.join("sched/features"), self.debug.join("sched_features")];
        let place = places.iter().find(|place| place.is_file()).unwrap_or(&places[0]);
        let text = files::line(place);
        let plain = |word: &str| word.strip_prefix("NO_").unwrap_or(word).to_string();
        if !text.split_whitespace().any(|word| plain(word) == plain(name)) {
            return Err(RefusedSetting {
                problem: format!("this kernel has no scheduler feature {}", plain(name)),
                hint: format!("it has {text}"),
            });
        }
        files::write(place, name).map_err(|error| RefusedSetting {
            problem: format!("this kernel does not switch its feature {name}: {error}"),
            hint: format!("it has {text}"),
        })
    }

    fn write(&self, name: &str, value: &str) -> Result<(), RefusedSetting> {
        let place = self.place(name).ok_or_else(|| RefusedSetting {
            problem: format!("this kernel's scheduler has no setting '{name}'"),
            hint: format!("it has {}", self.names().join(", ")),
        })?;
        let before = files::line(&place);
        files::write(&place, value).map_err(|error| RefusedSetting {
            problem: format!("this kernel does not take '{value}' for {name}: {error}"),
            hint: format!("it is '{before}' without"),
        })?;
        // Some files keep as many bits of a number as they have.
        let (after, number) = (files::line(&place), |text: &str| text.parse::<u64>().ok());
        match (number(value), number(&after)) {
            (Some(wanted), Some(is)) if wanted != is => Err(RefusedSetting {
                problem: format!("this kernel makes {is} of '{value}' for {name}"),
                hint: format!("it is '{before}' without"),
            }),
            _ => Ok(()),
        }
    }

    /// The file of a setting, by the name that it has in debugfs or as a sysctl, in this kernel or another: `base_slice_ns`,
    /// `sched_latency_ns`, `kernel.sched_autogroup_enabled`.
    fn place(&self, name: &str) -> Option<PathBuf> {
        let name = name.strip_prefix("kernel.").unwrap_or(name);
        let stem = name.strip_prefix("sched_").unwrap_or(name);
        let places = [self.debug.join("sched").join(stem), self.sysctl.join(format!("sched_{stem}"))];
        places.into_iter().find(|place| place.is_file())
    }

    /// The names of all settings but features.
    fn names(&self) -> Vec<String> {
        let folder = self.debug.join("sched");
        let is_file = |name: &String| folder.join(name).is_file();
        let of_debug = files::names(&folder).into_iter().filter(is_file);
        let below = files::names(folder.join("llc_balancing"));
        let below = below.into_iter().map(|name| format!("llc_balancing/{name}"));
        let is_setting = |name: &String| !matches!(name.as_str(), "features" | "debug" | "verbose");
        let of_sysctl = files::names(&self.sysctl).into_iter();
        let is_scheduler = |name: &String| name.starts_with("sched_") && self.sysctl.join(name).is_file();
        of_debug.filter(is_setting).chain(below).chain(of_sysctl.filter(is_scheduler)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Files as a kernel has them.
    fn places(name: &str) -> SettingFolders {
        let folder = std::env::temp_dir().join(format!("fairlab-settings-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let (debug, sysctl) = (folder.join("debug"), folder.join("sysctl"));
        fs::create_dir_all(debug.join("sched/llc_balancing")).expect("a folder");
        fs::create_dir_all(&sysctl).expect("a folder");
        for (file, text) in [
            ("debug/sched/features", "PLACE_LAG NO_NEXT_BUDDY\n"),
            ("debug/sched/base_slice_ns", "2250000\n"),
            ("debug/sched/llc_balancing/enabled", "1\n"),
            ("debug/sched/debug", "x"),
            ("sysctl/sched_autogroup_enabled", "0\n"),
            ("sysctl/panic", "0\n"),
        ] {
            fs::write(folder.join(file), text).expect("written");
        }
        SettingFolders { debug, sysctl }
    }

    fn apply(places: &SettingFolders, words: &[&str]) -> Result<(), RefusedSetting> {
        let settings: Vec<KernelSetting> =
            words.iter().map(|word| word.parse().expect("a setting")).collect();
        places.apply(&settings)
    }

    #[test]
    fn settings_are_found_by_the_names_of_any_kernel() {
        let places = places("found");
        let words = [
            "NEXT_BUDDY",
            "base_slice_ns=3000000",
            "kernel.sched_autogroup_enabled=1",
            "llc_balancing/enabled=0",
        ];
        assert_eq!(apply(&places, &words), Ok(()));
        let of = |file: &str| files::text(places.debug.join("..").join(file));
        // A plain file keeps what is longer than what is written; the kernel's do not.
        assert!(of("debug/sched/features").starts_with("NEXT_BUDDY"));
        assert_eq!(of("debug/sched/base_slice_ns"), "3000000\n");
        assert_eq!(
            (of("sysctl/sched_autogroup_enabled"), of("debug/sched/llc_balancing/enabled")),
            ("1\n".into(), "0\n".into())
        );
        assert_eq!(apply(&places, &["sched_base_slice_ns=1400000", "autogroup_enabled=0"]), Ok(()));
        assert_eq!(of("debug/sched/base_slice_ns"), "1400000\n");
    }

    #[test]
    fn what_a_kernel_lacks_is_told_with_what_it_has() {
        let places = places("lacks");
        let told = |word: &str| apply(&places, &[word]).expect_err("refused");
        let feature = told("NO_WAKEUP_PREEMPTION");
        assert_eq!(feature.problem, "this kernel has no scheduler feature WAKEUP_PREEMPTION");
        assert_eq!(feature.hint, "it has PLACE_LAG NO_NEXT_BUDDY");
        let value = told("latency_ns=1");
        assert_eq!(value.problem, "this kernel's scheduler has no setting 'latency_ns'");
        assert_eq!(value.hint, "it has base_slice_ns, llc_balancing/enabled, sched_autogroup_enabled");
        assert!(told("panic=1").problem.contains("'panic'"), "only the scheduler's");
    }

    #[test]
    fn parameters_that_the_kernel_hands_on_were_not_taken() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let handed_on = words(&["sched_verbose", "TERM=linux", "isolcpuss=1"]);
        assert_eq!(check_parameters(&words(&["isolcpus=1"]), &handed_on), Ok(()));
        let refused = check_parameters(&words(&["nohz_full=1", "isolcpuss=1"]), &handed_on);
        assert_eq!(
            refused.expect_err("unknown").problem,
            "this kernel did not take its parameter 'isolcpuss=1'"
        );
    }
}
