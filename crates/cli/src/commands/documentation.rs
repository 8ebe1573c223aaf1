//! `fairlab completions`, `fairlab man`: what shells and `man` need to know of the program, made of its own options.
//!
//! Must not know: what any command does.

use std::fs;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use fairlab_event::ShownPath;
use fairlab_event::spelling::may_be_meant;
use fairlab_files::write_whole;

use crate::args::{CompletionsArgs, ManArgs, program};
use crate::error::CliError;
use crate::output;

/// Prints the completions of a shell.
pub fn complete(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program(), "fairlab", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Prints a manual page, or writes all.
pub fn man(args: &ManArgs) -> Result<(), CliError> {
    let mut program = program().disable_help_subcommand(true);
    program.build();
    match &args.out {
        Some(folder) => {
            let made = fs::create_dir_all(folder).and_then(|()| write_pages(&program, folder));
            made.map_err(|error| {
                CliError::bad(
                    format!("cannot write manual pages into {}: {error}", ShownPath(folder)),
                    "check the place and its free space",
                )
            })
        }
        None => output::print(&page(find(&program, &args.command)?)?),
    }
}

/// The command of these words.
fn find<'p>(program: &'p Command, words: &[String]) -> Result<&'p Command, CliError> {
    words.iter().try_fold(program, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let names = command.get_subcommands().map(Command::get_name);
            let meant = may_be_meant(word, names);
            CliError::bad(
                format!("there is no command '{word}'"),
                format!("{meant}'fairlab --help' lists all"),
            )
        })
    })
}

fn page(command: &Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .manual("Fairlab")
        .source(concat!("fairlab ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// The page of a command and those of the commands below it.
fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    write_whole(&folder.join(format!("{name}.1")), page(command)?)?;
    command.get_subcommands().try_for_each(|command| write_pages(command, folder))
}
