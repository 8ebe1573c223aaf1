//! A command on several lines, which a shell takes as one.
//!
//! Must not know: what the command does.

/// What surrounds a place of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShellQuoting {
    Nothing,
    /// `'…'`: everything is as it stands.
    Quotes,
    /// `$'…'`: backslashes begin escapes.
    Escapes,
}

impl ShellQuoting {
    /// What ends the quotes, continues the line, and begins them once more.
    const fn bridge(self) -> (&'static str, &'static str) {
        match self {
            ShellQuoting::Nothing => ("\\", ""),
            ShellQuoting::Quotes => ("'\\", "'"),
            ShellQuoting::Escapes => ("'\\", "$'"),
        }
    }
}

/// Room that a bridge takes at the end of a line.
const BRIDGE: usize = 2;

/// The command on lines of at most `columns`, each behind `indent` blanks but where a word goes on.
pub(super) fn broken(line: &str, indent: usize, columns: usize) -> String {
    let words = words(line.trim());
    let margin = " ".repeat(indent.min(20));
    let (mut text, mut current) = (String::new(), margin.clone());
    for (index, word) in words.iter().enumerate() {
        let length = word.iter().map(|(piece, _)| piece.len()).sum::<usize>();
        let last = index + 1 == words.len();
        let room = columns - if last { 0 } else { BRIDGE };
        if index > 0 {
            if current.len() + 1 + length > room {
                text += &format!("{current} \\\n");
                current = format!("{margin}  ");
            } else {
                current.push(' ');
            }
        }
        for (piece, inside) in word {
            if current.len() + piece.len() + BRIDGE > columns {
                let (end, begin) = inside.bridge();
                text += &format!("{current}{end}\n");
                current = begin.to_string();
            }
            current += piece;
        }
    }
    text + &current + "\n"
}

/// The words of a line, each in pieces that may not be broken, with what stands around the place before each piece.
fn words(line: &str) -> Vec<Vec<(String, ShellQuoting)>> {
    let (mut words, mut word, mut inside) = (Vec::new(), Vec::new(), ShellQuoting::Nothing);
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        let before = inside;
        let mut piece = character.to_string();
        match (inside, character) {
            (ShellQuoting::Nothing, ' ') => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            (ShellQuoting::Nothing | ShellQuoting::Escapes, '\\') => piece += &escape(&mut rest),
            (ShellQuoting::Nothing, '$') if rest.as_str().starts_with('\'') => {
                piece.extend(rest.next());
                inside = ShellQuoting::Escapes;
            }
            (ShellQuoting::Nothing, '\'') => inside = ShellQuoting::Quotes,
            (ShellQuoting::Quotes | ShellQuoting::Escapes, '\'') => inside = ShellQuoting::Nothing,
            (_, character) if !character.is_ascii() => piece = in_ascii(character, inside),
            _ => {}
        }
        word.push((piece, before));
    }
    words.push(word);
    words
}

/// What belongs to a backslash: the next character, and the digits of a number.
fn escape(rest: &mut std::str::Chars<'_>) -> String {
    let mut text = rest.next().map(String::from).unwrap_or_default();
    let digits = match text.as_str() {
        "x" => 2,
        "u" => 4,
        _ => 0,
    };
    text.extend(rest.by_ref().take(digits));
    text
}

/// A character as an escape, with the quotes that it takes.
fn in_ascii(character: char, inside: ShellQuoting) -> String {
    let escape = format!("\\U{:08x}", character as u32);
    match inside {
        ShellQuoting::Nothing => format!("$'{escape}'"),
        ShellQuoting::Quotes => format!("'$'{escape}''"),
        ShellQuoting::Escapes => escape,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use fairlab_lab::shell::line_of;

    use super::*;

    const COLUMNS: usize = 75;

    #[test]
    fn a_shell_takes_the_lines_as_the_one_command() {
        let long = "a/b c'".repeat(40);
        let plain = "x".repeat(300);
        let controls = "\u{1b}[2J\n\\ä\u{85}'".repeat(30);
        let words =
            ["fairlab", "compare", &long, "--machine", &plain, "", "ä b", &controls, "--kernel", "v6.5"];
        let broken = broken(&format!("  {}", line_of(&words)), 2, COLUMNS);
        assert!(broken.lines().all(|line| line.len() <= COLUMNS && line.is_ascii()), "{broken}");
        let script = format!("fairlab() {{ printf '%s\\0' fairlab \"$@\"; }}\n{broken}");
        let output = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output();
        let back = String::from_utf8(output.expect("bash runs").stdout).expect("text");
        assert_eq!(back.split('\0').collect::<Vec<_>>(), [&words[..], &[""]].concat(), "{broken}");
    }

    #[test]
    fn a_short_command_stays_on_its_line() {
        assert_eq!(
            broken("  fairlab compare x --kernel v6.5", 2, COLUMNS),
            "  fairlab compare x --kernel v6.5\n"
        );
    }
}
