//! The configuration that a tree is built with: a small one of ours, or the user's with what the shim needs laid over it.
//!
//! Must not know: how kbuild is run.

use fairlab_files::LabError;
use fairlab_kernel::generation::PreemptionModel;

/// What every build needs, whatever else is chosen.
const NEEDED: &str = include_str!("../../shim/needed.config");
/// What a build has where the user gives no configuration.
const SMALL: &str = include_str!("../../shim/small.config");

/// Frequencies of the tick that x86 can be built for.
pub const FREQUENCIES: [u32; 4] = [100, 250, 300, 1000];

/// Where a task that runs kernel code can be preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptionChoice {
    /// As the tree chooses by itself or the user's configuration says.
    #[default]
    Default,
    /// Nowhere (`CONFIG_PREEMPT_NONE`).
    None,
    /// Where it offers itself (`CONFIG_PREEMPT_VOLUNTARY`).
    Voluntary,
    /// Everywhere (`CONFIG_PREEMPT`).
    Full,
    /// At the tick, unless a real-time task asks (`CONFIG_PREEMPT_LAZY`).
    Lazy,
    /// As in voluntary kernels, but by code that is built to be preempted (`CONFIG_PREEMPT_DYNAMIC`, as long as nobody asks for more): what
    /// hangs on `CONFIG_PREEMPTION` is as in full ones, such as how many tasks an idle CPU takes at once.
    Dynamic,
}

impl From<PreemptionModel> for PreemptionChoice {
    fn from(model: PreemptionModel) -> PreemptionChoice {
        match model {
            PreemptionModel::None => PreemptionChoice::None,
            PreemptionModel::Voluntary => PreemptionChoice::Voluntary,
            PreemptionModel::Full => PreemptionChoice::Full,
            PreemptionModel::Lazy => PreemptionChoice::Lazy,
        }
    }
}

impl PreemptionChoice {
    /// What is meant for a tree: without a word of anybody's what the tree's own configuration for x86 becomes. `kinds` is its
    /// kernel/Kconfig.preempt, `own` its x86_64_defconfig, `user` the user's configuration.
    pub(super) fn of_tree(self, kinds: &str, own: &str, user: Option<&str>) -> PreemptionChoice {
        match (self, user) {
            (PreemptionChoice::Default, Some(user)) if is_dynamic(user) => PreemptionChoice::Dynamic,
            (PreemptionChoice::Default, Some(_)) => PreemptionChoice::Default,
            (PreemptionChoice::Default, None) => match trees_own(kinds, own) {
                PreemptionChoice::None | PreemptionChoice::Voluntary if is_dynamic_by_default(kinds) => {
                    PreemptionChoice::Dynamic
                }
                model => model,
            },
            (named, _) => named,
        }
    }

    /// Each by its name.
    pub const NAMED: [(&'static str, PreemptionChoice); 5] = [
        ("none", PreemptionChoice::None),
        ("voluntary", PreemptionChoice::Voluntary),
        ("full", PreemptionChoice::Full),
        ("lazy", PreemptionChoice::Lazy),
        ("dynamic", PreemptionChoice::Dynamic),
    ];

    const fn symbol(self) -> Option<&'static str> {
        match self {
            PreemptionChoice::Default => None,
            PreemptionChoice::None => Some("CONFIG_PREEMPT_NONE"),
            PreemptionChoice::Voluntary => Some("CONFIG_PREEMPT_VOLUNTARY"),
            // The shim leaves a dynamic one's kernel work whole.
            PreemptionChoice::Full | PreemptionChoice::Dynamic => Some("CONFIG_PREEMPT"),
            PreemptionChoice::Lazy => Some("CONFIG_PREEMPT_LAZY"),
        }
    }
}

/// Whether a configuration is of a kernel that can be preempted where its command line says, and is not until then.
fn is_dynamic(config: &str) -> bool {
    let is_less = ["CONFIG_PREEMPT_VOLUNTARY", "CONFIG_PREEMPT_NONE"].iter().any(|less| is_set(config, less));
    is_set(config, "CONFIG_PREEMPT_DYNAMIC") && is_less
}

/// The model that a tree has for x86: its own configuration's, if Kconfig lets that be chosen, or else the default of Kconfig's choice.
fn trees_own(kinds: &str, own: &str) -> PreemptionChoice {
    let models = [
        ("PREEMPT_NONE", PreemptionChoice::None),
        ("PREEMPT_VOLUNTARY", PreemptionChoice::Voluntary),
        ("PREEMPT", PreemptionChoice::Full),
        ("PREEMPT_LAZY", PreemptionChoice::Lazy),
    ];
    // x86 has all that architectures may have.
    let may_be_chosen = |symbol: &str| {
        let lines = block(kinds, symbol);
        !lines.is_empty() && !lines.contains(&"depends on !ARCH_HAS_PREEMPT_LAZY")
    };
    let named =
        models.iter().find(|(symbol, _)| is_set(own, &format!("CONFIG_{symbol}")) && may_be_chosen(symbol));
    let of_choice = || {
        let defaults = kinds.lines().map(str::trim).filter_map(|line| line.strip_prefix("default PREEMPT"));
        let symbols = defaults.map(|rest| format!("PREEMPT{}", rest.split(' ').next().unwrap_or_default()));
        symbols.filter_map(|symbol| models.iter().find(|(known, _)| *known == symbol)).next()
    };
    named.or_else(of_choice).map_or(PreemptionChoice::Voluntary, |(_, model)| *model)
}

/// The lines of a symbol in Kconfig.
fn block<'k>(kinds: &'k str, symbol: &str) -> Vec<&'k str> {
    let rest = kinds.lines().skip_while(|line| line.strip_prefix("config ") != Some(symbol)).skip(1);
    rest.take_while(|line| !line.starts_with("config ")).map(str::trim).collect()
}

/// Whether x86 gets `CONFIG_PREEMPT_DYNAMIC` where nobody says otherwise: since v5.17.
fn is_dynamic_by_default(kinds: &str) -> bool {
    block(kinds, "PREEMPT_DYNAMIC").iter().any(|line| line.starts_with("default y"))
}

/// The text that kbuild's configuration starts from: later lines win.
pub(super) fn text(user: Option<&str>, hz: u32, preemption: PreemptionChoice) -> String {
    let mut text = format!("{}{NEEDED}", user.unwrap_or(SMALL));
    for frequency in FREQUENCIES {
        text += &line(&format!("CONFIG_HZ_{frequency}"), frequency == hz);
    }
    text += &format!("CONFIG_HZ={hz}\n");
    if let Some(wanted) = preemption.symbol() {
        for (_, preemption) in PreemptionChoice::NAMED {
            let symbol = preemption.symbol().unwrap_or_default();
            text += &line(symbol, symbol == wanted);
        }
        text += &line("CONFIG_PREEMPT_RT", false);
    }
    text
}

fn line(symbol: &str, is_set: bool) -> String {
    if is_set { format!("{symbol}=y\n") } else { format!("# {symbol} is not set\n") }
}

/// What a finished `.config` must say: else what was asked for was not to be had.
pub(super) fn check(finished: &str, hz: u32, preemption: PreemptionChoice) -> Result<(), LabError> {
    for symbol in ["CONFIG_SMP", "CONFIG_FAIR_GROUP_SCHED", "CONFIG_X86_64", "CONFIG_HIGH_RES_TIMERS"] {
        if !is_set(finished, symbol) {
            return Err(LabError::new(
                format!("the tree cannot be configured with {symbol}"),
                "give a tree and a configuration that have it",
            ));
        }
    }
    if !finished.lines().any(|line| line == format!("CONFIG_HZ={hz}")) {
        return Err(LabError::new(
            format!("the tree cannot be configured for {hz} Hz"),
            "take another HZ: 100, 250, 300 or 1000",
        ));
    }
    match preemption.symbol() {
        Some(symbol) if !is_set(finished, symbol) => {
            let name = PreemptionChoice::NAMED
                .iter()
                .find(|(_, known)| *known == preemption)
                .map_or("", |(name, _)| name);
            Err(LabError::new(format!("the tree has no preemption model '{name}'"), "take another one"))
        }
        _ if is_set(finished, "CONFIG_PREEMPT_RT") => Err(LabError::new(
            "the configuration is of PREEMPT_RT, whose locks sleep, and an image has none that can",
            "give a configuration without CONFIG_PREEMPT_RT",
        )),
        _ => Ok(()),
    }
}

fn is_set(config: &str, symbol: &str) -> bool {
    config.lines().any(|line| line.strip_prefix(symbol) == Some("=y"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_the_settings() {
        let text =
            text(Some("CONFIG_HZ_1000=y\nCONFIG_PSI=y\nCONFIG_MODULES=y\n"), 250, PreemptionChoice::Full);
        let last = |symbol: &str| {
            text.lines().rev().find(|line| {
                line.contains(&format!("{symbol}=")) || line.ends_with(&format!("{symbol} is not set"))
            })
        };
        assert_eq!(last("CONFIG_HZ_250"), Some("CONFIG_HZ_250=y"));
        assert_eq!(last("CONFIG_HZ_1000"), Some("# CONFIG_HZ_1000 is not set"));
        assert_eq!(last("CONFIG_PREEMPT"), Some("CONFIG_PREEMPT=y"));
        assert_eq!(last("CONFIG_MODULES"), Some("# CONFIG_MODULES is not set"));
        assert_eq!(last("CONFIG_PSI"), Some("CONFIG_PSI=y"));
    }

    #[test]
    fn a_tree_is_preempted_as_it_chooses_itself() {
        let model = |name: &str, depends: &str| format!("config {name}\n\tbool \"x\"\n{depends}");
        let choice = |defaults: &str, depends: &str| {
            let models = ["PREEMPT_NONE", "PREEMPT_VOLUNTARY"].map(|name| model(name, depends)).concat();
            format!("choice\n{defaults}{models}{}", model("PREEMPT", "\tselect PREEMPTION\n"))
        };
        let (none, by_lazy) =
            ("\tdefault PREEMPT_NONE\n", "\tdefault PREEMPT_LAZY if ARCH_HAS_PREEMPT_LAZY\n");
        let switch = model("PREEMPT_DYNAMIC", "\tdefault y if HAVE_PREEMPT_DYNAMIC_CALL\n");
        let lazy = model("PREEMPT_LAZY", "\tdepends on ARCH_HAS_PREEMPT_LAZY\n");
        // Of Linux 5.10, 6.6, 6.18 and 7.0.
        let old = choice(none, "") + &model("PREEMPT_DYNAMIC", "") + "config SCHED_CORE\n\tdefault y\n";
        let dynamic = choice(none, "") + &switch;
        let with_lazy = choice(none, "") + &lazy + &switch;
        let newest =
            choice(&format!("{by_lazy}{none}"), "\tdepends on !ARCH_HAS_PREEMPT_LAZY\n") + &lazy + &switch;
        let own = "CONFIG_PREEMPT_VOLUNTARY=y\n";
        let of = |kinds: &str, user| PreemptionChoice::Default.of_tree(kinds, own, user);
        assert_eq!(of(&old, None), PreemptionChoice::Voluntary);
        assert_eq!(of(&dynamic, None), PreemptionChoice::Dynamic);
        assert_eq!(of(&with_lazy, None), PreemptionChoice::Dynamic);
        assert_eq!(of(&newest, None), PreemptionChoice::Lazy);
        assert_eq!(PreemptionChoice::Default.of_tree(&old, "", None), PreemptionChoice::None);
        assert_eq!(PreemptionChoice::Default.of_tree(&newest, "", None), PreemptionChoice::Lazy);
        assert_eq!(
            PreemptionChoice::Default.of_tree(&dynamic, "CONFIG_PREEMPT=y\n", None),
            PreemptionChoice::Full
        );
        assert_eq!(PreemptionChoice::Default.of_tree("", "", None), PreemptionChoice::Voluntary);
        let user = "CONFIG_PREEMPT_VOLUNTARY=y\n";
        assert_eq!(of(&dynamic, Some(user)), PreemptionChoice::Default);
        let both = format!("{user}CONFIG_PREEMPT_DYNAMIC=y\n");
        assert_eq!(of(&dynamic, Some(&both)), PreemptionChoice::Dynamic);
        assert_eq!(
            of(&dynamic, Some("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n")),
            PreemptionChoice::Default
        );
        assert_eq!(PreemptionChoice::Full.of_tree(&dynamic, own, None), PreemptionChoice::Full);
    }

    #[test]
    fn what_was_not_to_be_had_is_told() {
        let finished = "CONFIG_SMP=y\nCONFIG_X86_64=y\nCONFIG_FAIR_GROUP_SCHED=y\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_HZ=250\nCONFIG_PREEMPT_VOLUNTARY=y\n";
        assert_eq!(check(finished, 250, PreemptionChoice::Voluntary), Ok(()));
        assert!(
            check(finished, 1000, PreemptionChoice::Default)
                .is_err_and(|error| error.problem.contains("1000 Hz"))
        );
        assert!(
            check(finished, 250, PreemptionChoice::Lazy).is_err_and(|error| error.problem.contains("'lazy'"))
        );
        let sleeping = format!("{finished}CONFIG_PREEMPT_RT=y\n");
        assert!(
            check(&sleeping, 250, PreemptionChoice::Default)
                .is_err_and(|error| error.problem.contains("PREEMPT_RT"))
        );
        let without = finished.replace("CONFIG_SMP=y", "# CONFIG_SMP is not set");
        assert!(
            check(&without, 250, PreemptionChoice::Default)
                .is_err_and(|error| error.problem.contains("CONFIG_SMP"))
        );
    }
}
