//! Errors as the user sees them: one line, and an exit code.

mod usage;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use fairlab_event::EscapedText;
use fairlab_files::without_numbers;
use fairlab_lab::LabError;

use crate::progress::code_of_signal;

/// Why there is no answer.
#[derive(Debug)]
pub enum CliError {
    /// Bad use or input: what is wrong and where; what to do; lines that show it.
    Bad { problem: String, hint: String, lines: Vec<String> },
    /// Something of ours broke: what, and the line that repeats it.
    Fault(LabError),
    /// The answer has been printed, and it is "no": a regression for sure, nothing found.
    No,
    /// The answer has been printed, and it leaves open what was asked.
    Undecided,
    /// Stopped by the user; what was finished has been printed.
    Interrupted,
    /// The reader of our output has gone: no error.
    OutputClosed,
    /// Our output cannot be written.
    Output(io::Error),
}

impl CliError {
    pub fn bad(problem: impl Into<String>, hint: impl Into<String>) -> CliError {
        CliError::Bad { problem: problem.into(), hint: hint.into(), lines: Vec::new() }
    }

    /// Bad use that the command-line parser found: what is wrong, the word that may be meant, and where all words are listed.
    pub fn from_usage(error: &clap::Error, program: &clap::Command, arguments: &[OsString]) -> CliError {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return CliError::without_command(&error.render().to_string(), program);
        }
        let command = words_of_command(program, arguments);
        CliError::bad(usage::problem(error), format!("{}'{command} --help' lists all", usage::meant(error)))
    }

    /// The error with the option that a word among the workload's may have been meant to be: the parser takes what it does not know for
    /// one of the workload's own.
    #[must_use]
    pub fn with_misspelt(self, misspelt: &[(String, String)]) -> CliError {
        let CliError::Bad { problem, hint, lines } = self else { return self };
        let is_missing = problem.starts_with("no kernel is given");
        let meant = misspelt.iter().find(|(word, _)| is_missing || problem.contains(word.as_str()));
        let hint = match meant {
            Some((word, option)) => format!("'{option}' may be meant by '{word}'; {hint}"),
            None => hint,
        };
        CliError::Bad { problem, hint, lines }
    }

    /// Nothing, or a command that wants another behind it: its help has a line `Usage: fairlab kernels <COMMAND>`.
    fn without_command(help: &str, program: &clap::Command) -> CliError {
        let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
        let words: Vec<&str> = usage.split(' ').take_while(|word| !word.starts_with(['<', '['])).collect();
        let command = words.iter().skip(1).try_fold(program, |command, word| command.find_subcommand(word));
        let names =
            command.into_iter().flat_map(|command| command.get_subcommands().map(clap::Command::get_name));
        let (names, said) = (names.collect::<Vec<_>>().join(", "), words.join(" "));
        CliError::bad(
            format!("'{said}' lacks a command"),
            format!("there are {names}; '{said} --help' says what each does"),
        )
    }

    /// Tells the user, and gives the exit code. No other place decides on one: 0 is an answer, 1 the answer no, 2 bad use or input, 3 an
    /// answer that leaves it open; 101 a fault of ours; 128 and more a signal. docs/ci.md has them command by command.
    pub fn report(self) -> ExitCode {
        match self {
            CliError::Bad { .. } | CliError::Output(_) => {
                eprintln!("fairlab: {self}");
                ExitCode::from(2)
            }
            CliError::Fault(_) => {
                eprintln!("fairlab: {self}");
                ExitCode::from(FAULT)
            }
            CliError::No => ExitCode::from(1),
            CliError::Undecided => ExitCode::from(3),
            CliError::Interrupted => ExitCode::from(code_of_signal()),
            CliError::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

/// The exit status of a fault of ours: that of a Rust program which panics.
const FAULT: u8 = 101;

/// The words of a command line that name a command: `fairlab kernels show`.
fn words_of_command(program: &clap::Command, arguments: &[OsString]) -> String {
    let (mut words, mut command) = (program.get_name().to_string(), program);
    for word in arguments.iter().skip(1).map_while(|word| word.to_str()) {
        let Some(next) = command.find_subcommand(word) else { break };
        command = next;
        words += &format!(" {word}");
    }
    words
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Bad { problem, hint, lines } => {
                write!(
                    f,
                    "{}; {}",
                    EscapedText(&without_numbers(problem)),
                    EscapedText(&without_numbers(hint))
                )?;
                lines.iter().try_for_each(|line| write!(f, "\n{}", EscapedText(line)))
            }
            CliError::Fault(error) => write!(f, "{error}"),
            CliError::No => f.write_str("no"),
            CliError::Undecided => f.write_str("undecided"),
            CliError::Interrupted => f.write_str("interrupted"),
            CliError::OutputClosed => f.write_str("output closed"),
            CliError::Output(error) => write!(f, "cannot write the answer: {error}; check where it goes"),
        }
    }
}

impl From<LabError> for CliError {
    fn from(error: LabError) -> CliError {
        match error.is_fault() {
            true => CliError::Fault(error),
            false => CliError::Bad { problem: error.problem, hint: error.hint, lines: error.lines },
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::Output(error),
        }
    }
}
