//! Examples of each command, which its help and its manual page end with.
//!
//! Must not know: what the commands do. A test parses every line.

/// Commands by their words, each with command lines and what they ask for.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "",
        &[
            ("fairlab summary trace.dat", "who waits in a trace, and for how long"),
            ("fairlab explain trace.dat --worst 3", "why the longest waits were so long"),
            ("fairlab blame trace.dat --task api", "who makes a service wait, in all"),
            (
                "fairlab compare schbench -t 16 --kernel v6.5 --kernel v6.12",
                "what another kernel does to a workload",
            ),
            ("fairlab bisect schbench -t 16 --good v6.5 --bad v6.12", "which commit does it"),
        ],
    ),
    (
        "run",
        &[
            ("fairlab run schbench -m 2 -t 16 --kernel v6.12", "a benchmark with its own options"),
            (
                "fairlab run service.toml --machine xeon-2s80 --kernel v6.12 --duration 5s",
                "a workload of one's own",
            ),
            ("fairlab run hackbench -g 4 --kernel v6.6 --trace run.dat", "the run as a trace"),
        ],
    ),
    (
        "compare",
        &[
            ("fairlab compare schbench -t 16 --kernel v6.5 --kernel v6.12 --runs 20", "two kernels"),
            (
                "fairlab compare --folder before --folder after --export answer.html",
                "two sets of recordings, as a page",
            ),
            (
                "fairlab compare pipe --kernel v6.5 --kernel v6.12 --metric p99 --explain",
                "why one metric differs",
            ),
            (
                "fairlab compare pipe --kernel v6.5 --kernel v6.12 --fail-on 'p99>+5%'",
                "a gate: status 1 is a regression",
            ),
        ],
    ),
    (
        "watch",
        &[
            (
                "fairlab watch --over v6.6..v6.12 examples/catalogue --out watched",
                "which commits changed which of the catalogue's workloads",
            ),
            (
                "fairlab watch --follow --over src:linux@origin/master --out watched",
                "what came to a branch since the last time",
            ),
            (
                "fairlab watch --over src:debian:6.1,src:debian:6.12 --on ray://head.example:10001",
                "a list of kernels, on a cluster",
            ),
        ],
    ),
    ("watch list", &[("fairlab watch list examples/catalogue", "the cases")]),
    ("watch keys", &[("fairlab watch keys", "what a case's file may say")]),
    ("watch report", &[("fairlab watch report watched --format md", "what was found, as tables")]),
    (
        "bisect",
        &[
            (
                "fairlab bisect schbench -t 16 --good v6.5 --bad v6.12",
                "the commit that changed what schbench measures",
            ),
            (
                "fairlab bisect pipe --good v6.5 --bad v6.12 --metric 'p99 > 2ms'",
                "the commit since which a claim holds",
            ),
            (
                "fairlab bisect schbench -m 1 -t '{threads}' --vary threads=1..64 --metric p99",
                "from how many threads on a metric is another",
            ),
        ],
    ),
    (
        "try",
        &[
            ("fairlab try --patch mine.patch --on ~/linux", "a patch to a tree"),
            ("fairlab try --patch mine.patch --on debian:6.12", "a patch to Debian's source of 6.12"),
            (
                "fairlab try --patch v6.11..v6.12 --on ~/linux --machine laptop8",
                "a range of commits, on one machine",
            ),
        ],
    ),
    (
        "sweep",
        &[(
            "fairlab sweep sweep.toml --jobs 2",
            "all combinations that the file lists; continues where it was stopped",
        )],
    ),
    (
        "query",
        &[(
            "fairlab query sweep --by kernel,threads --metric throughput",
            "the cells of a sweep, summed up by two columns",
        )],
    ),
    ("merge", &[("fairlab merge counts/ --by service", "the counts of many hosts, by the value of a label")]),
    (
        "convert",
        &[
            ("fairlab convert perf.data trace.pftrace", "for ui.perfetto.dev"),
            (
                "fairlab convert trace.dat part.parquet --time 1.5..2 --task web",
                "half a second of the tasks called web, as a table",
            ),
        ],
    ),
    ("record", &[("fairlab record -o slow.dat -- sleep 10", "ten seconds of this host")]),
    ("live", &[("fairlab live hackbench -g 4", "hackbench on this host's own kernel")]),
    ("calibrate", &[("fairlab calibrate -o mine.toml", "a machine file with this host's costs")]),
    (
        "boot",
        &[
            (
                "fairlab boot debian:trixie --topology 1x4x2 -- schbench -t 4 -r 4",
                "Debian's kernel on four cores of two threads",
            ),
            (
                "fairlab boot ./bzImage --probes --out recording -- hackbench -g 1",
                "a kernel of one's own, with what it decides by",
            ),
        ],
    ),
    ("latency", &[("fairlab latency perf.data -s max", "tasks by their longest wait")]),
    (
        "explain",
        &[
            ("fairlab explain trace.dat --worst 3", "the three longest waits"),
            ("fairlab explain trace.dat --task web --time 10s..11s", "those of a service in one second"),
        ],
    ),
    (
        "blame",
        &[
            ("fairlab blame trace.dat --task api", "who makes a service wait, in all"),
            ("fairlab blame before.dat after.dat --task api", "what of that a change has changed"),
        ],
    ),
    (
        "summary",
        &[
            ("fairlab summary trace.dat --machine host", "with this host's caches and nodes"),
            (
                "fairlab summary trace.dat --counts web1.json --label service=web",
                "a small file that merge and compare add up",
            ),
        ],
    ),
    (
        "timehist",
        &[(
            "fairlab timehist perf.data --state -C 0-3",
            "switches of four CPUs, with the state of the task that left",
        )],
    ),
    ("view", &[("fairlab view before.dat after.dat -o both.html", "two traces on one line of time")]),
    (
        "verify",
        &[
            ("fairlab verify recording --fail-under 99%", "a recorded kernel against its model"),
            (
                "fairlab verify recording --against src:debian:6.12",
                "replayed on its model and a tree's own code",
            ),
            (
                "fairlab verify --kernel v6.12 --against src:mine hackbench -g 2",
                "the model beside a tree's own code",
            ),
        ],
    ),
    (
        "fidelity",
        &[("fairlab fidelity recordings --sums", "every recording of a folder, each against its own kernel")],
    ),
    ("scenario", &[("fairlab scenario run eevdf-vhost", "a published report, tried again")]),
    ("scenario list", &[("fairlab scenario list", "all that there are")]),
    ("scenario keys", &[("fairlab scenario keys", "what a report's file may say")]),
    ("scenario show", &[("fairlab scenario show eevdf-vhost", "what it claims")]),
    (
        "scenario run",
        &[
            ("fairlab scenario run eevdf-vhost --quick", "fewer and shorter runs"),
            (
                "fairlab scenario run lb-bias --workload mine.dat --machine host",
                "a recording on the report's two kernels",
            ),
        ],
    ),
    ("kernels", &[("fairlab kernels diff v6.5 v6.6", "what a release brought")]),
    ("kernels list", &[("fairlab kernels list", "releases and distributors' kernels")]),
    (
        "kernels build",
        &[("fairlab kernels build ~/linux --patch mine.patch --name mine", "for --kernel src:mine")],
    ),
    ("kernels remove", &[("fairlab kernels remove mine", "a kernel that was built")]),
    ("kernels show", &[("fairlab kernels show v6.6-run-to-parity", "a release without one commit")]),
    ("kernels diff", &[("fairlab kernels diff v6.5 v6.6", "what a release brought")]),
    ("kernels log", &[("fairlab kernels log --format json", "all commits that are modelled, for programs")]),
    ("machines", &[("fairlab machines show xeon-2s80", "CPUs, domains and costs of a preset")]),
    ("machines list", &[("fairlab machines list", "all presets")]),
    ("machines show", &[("fairlab machines show host --format toml", "this host as a machine file")]),
    ("workloads", &[("fairlab workloads show schbench", "a benchmark's options")]),
    ("workloads list", &[("fairlab workloads list", "all that there are")]),
    (
        "workloads show",
        &[("fairlab workloads show tasks", "the words of files that say threads by their steps")],
    ),
    (
        "completions",
        &[("fairlab completions bash", "for ~/.local/share/bash-completion/completions/fairlab")],
    ),
    (
        "man",
        &[
            ("fairlab man compare", "a page, for 'man -l -'"),
            ("fairlab man --out ~/.local/share/man/man1", "all pages"),
        ],
    ),
];

/// The command and all below it with their examples. `words` lead to it from the program.
pub fn with_examples(command: clap::Command, words: &str) -> clap::Command {
    let below = command.get_subcommands().map(|command| command.get_name().to_string()).collect::<Vec<_>>();
    let examples = EXAMPLES.iter().find(|(name, _)| *name == words).map_or(&[][..], |(_, examples)| examples);
    let command = match examples.is_empty() {
        true => command,
        false => command.after_help(text(examples)),
    };
    below.into_iter().fold(command, |command, name| {
        let words = format!("{words} {name}").trim().to_string();
        command.mut_subcommand(name, |command| with_examples(command, &words))
    })
}

fn text(examples: &[(&str, &str)]) -> String {
    let lines = examples.iter().map(|(line, about)| format!("  {line}\n      {about}\n"));
    format!("Examples:\n{}", lines.collect::<String>().trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::{program, split_workload_options};
    use super::*;

    fn commands(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        found.push(words.to_string());
        for below in command.get_subcommands() {
            commands(below, format!("{words} {}", below.get_name()).trim(), found);
        }
    }

    /// schbench's own help has its options.
    #[test]
    fn every_command_has_examples() {
        let mut all = Vec::new();
        commands(&program(), "", &mut all);
        let without = |words: &&String| !EXAMPLES.iter().any(|(name, _)| *name == words.as_str());
        assert_eq!(all.iter().filter(without).collect::<Vec<_>>(), ["schbench"]);
        assert_eq!(EXAMPLES.len(), all.len() - 1, "examples of a command that there is not");
    }

    #[test]
    fn every_example_is_a_command_line() {
        for (words, examples) in EXAMPLES {
            for (line, _) in *examples {
                assert!(
                    words.is_empty()
                        || line.starts_with(&format!("fairlab {words} "))
                        || line == &format!("fairlab {words}"),
                    "{line}"
                );
                let split = shlex::split(line).expect("words").into_iter().map(Into::into).collect();
                let parsed = program().try_get_matches_from(split_workload_options(&program(), split));
                assert!(
                    parsed.is_ok(),
                    "{line}: {}",
                    parsed.err().map(|error| error.to_string()).unwrap_or_default()
                );
            }
        }
    }
}
