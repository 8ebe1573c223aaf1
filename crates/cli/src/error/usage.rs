//! What the command-line parser found wrong, in our words.
//!
//! Must not know: what any option does.

use std::error::Error as _;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fairlab_event::spelling::closest;

/// What is wrong, in one line.
pub fn problem(error: &Error) -> String {
    let argument = words(error, ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!("there is no command '{}'", words(error, ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => format!("there is no option '{argument}'"),
        ErrorKind::UnknownArgument => format!("'{argument}' is one word too many"),
        ErrorKind::TooManyValues => {
            format!("'{}' is one word too many", words(error, ContextKind::InvalidValue))
        }
        ErrorKind::MissingRequiredArgument => format!("{argument} is missing"),
        ErrorKind::ArgumentConflict if argument == words(error, ContextKind::PriorArg) => {
            format!("{argument} is given twice")
        }
        ErrorKind::ArgumentConflict => {
            format!("{argument} cannot be used with {}", words(error, ContextKind::PriorArg))
        }
        ErrorKind::InvalidValue if words(error, ContextKind::InvalidValue).is_empty() => {
            format!("{argument} lacks its value")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = words(error, ContextKind::InvalidValue);
            let said = reason(error);
            // Some readers say the value themselves.
            match said.strip_prefix(&format!("'{value}'")) {
                Some(rest) if rest.starts_with(' ') => format!("{argument} cannot be '{value}': it{rest}"),
                Some(rest) => format!("{argument} cannot be '{value}'{rest}"),
                None => format!("{argument} cannot be '{value}': {said}"),
            }
        }
        _ => first_sentence(error),
    }
}

/// The error's words for the name that is closest to a misspelt one: `'--sort' may be meant; `, or nothing.
pub fn meant(error: &Error) -> String {
    let kinds = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ];
    // The parser suggests all that are alike somehow.
    let best = kinds.into_iter().find_map(|(wrong, suggested)| {
        let names = all(error, suggested);
        closest(&words(error, wrong), names.iter().map(String::as_str), 1).first().map(ToString::to_string)
    });
    best.map_or(String::new(), |name| format!("'{name}' may be meant; "))
}

/// Why a value is none: what there is instead, or what its reader says.
fn reason(error: &Error) -> String {
    let valid = all(error, ContextKind::ValidValue);
    if !valid.is_empty() {
        return format!("there are {}", valid.join(", "));
    }
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    match said.as_str() {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "a whole number is needed".to_string()
        }
        _ if said.starts_with("number too ") => "this number is too large or too small".to_string(),
        "" => first_sentence(error),
        _ => said,
    }
}

/// The values that an error tells of one kind.
fn all(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    }
}

fn words(error: &Error, kind: ContextKind) -> String {
    all(error, kind).join(" ")
}

/// As the parser says it, on one line.
fn first_sentence(error: &Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words = first.split_whitespace().collect::<Vec<_>>().join(" ");
    words.strip_prefix("error: ").unwrap_or(&words).to_string()
}
