//! Verdicts for GitHub Actions: Markdown for the job's summary, and workflow commands that show as annotations.
//!
//! Must not know: how rules are judged.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::EscapedText;
use fairlab_lab::OutputFile;
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::answer::gate::{GateAnswer, GateVerdict, RuleAnswer};
use fairlab_lab::provenance::Provenance;

use super::super::table;
use super::{failed, line, to_markdown};
use crate::args::AnswerFormat;
use crate::error::CliError;
use crate::output;

/// What a job calls the file of its summary.
const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Where the summary goes.
#[derive(Debug)]
pub struct JobSummary {
    path: PathBuf,
    file: SummaryFile,
}

#[derive(Debug)]
enum SummaryFile {
    /// The job's: others may have written there, too.
    Job(std::fs::File),
    /// One of its own.
    Own(RefCell<OutputFile>),
}

impl JobSummary {
    /// Opens `path`; where it is the variable itself, the file that the job names.
    pub fn open(path: &Path) -> Result<JobSummary, CliError> {
        if path.to_str().and_then(|path| path.strip_prefix('$')) != Some(VARIABLE) {
            let file = OutputFile::create(path).map_err(|error| failed(path, "--github", &error))?;
            return Ok(JobSummary { path: path.to_path_buf(), file: SummaryFile::Own(RefCell::new(file)) });
        }
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = named.ok_or_else(|| {
            CliError::bad(
                format!("--github: ${VARIABLE} is not set"),
                "name a file outside of GitHub Actions: --github gate.md",
            )
        })?;
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(|error| failed(&path, &format!("${VARIABLE}"), &error))?;
        Ok(JobSummary { path, file: SummaryFile::Job(file) })
    }

    /// Writes it, and prints an annotation for each rule that is not passed: on standard output, or on standard error where that is JSON.
    pub fn write(
        self,
        answer: &CompareAnswer,
        gate: &GateAnswer,
        provenance: &Provenance,
        format: AnswerFormat,
    ) -> Result<(), CliError> {
        let text = format!(
            "{}{}{}\n",
            to_markdown(gate),
            table::to_markdown(answer),
            output::markdown_line(provenance)
        );
        let written = match self.file {
            SummaryFile::Job(mut file) => file.write_all(text.as_bytes()),
            SummaryFile::Own(file) => {
                let mut file = file.into_inner();
                file.write_all(text.as_bytes()).and_then(|()| file.finish())
            }
        };
        written.map_err(|error| failed(&self.path, "--github", &error))?;
        for annotation in gate.rules.iter().filter_map(annotation) {
            match format {
                AnswerFormat::Text => output::print(&format!("{annotation}\n"))?,
                AnswerFormat::Json => output::remark(&annotation),
            }
        }
        Ok(())
    }
}

/// `::error title=…::…`, with what GitHub takes for its own escaped.
fn annotation(rule: &RuleAnswer) -> Option<String> {
    let kind = match rule.outcome {
        GateVerdict::Passed => return None,
        GateVerdict::Regression => "error",
        GateVerdict::Undecided => "warning",
    };
    let data = |text: &str| {
        EscapedText(text).to_string().replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
    };
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    Some(format!("::{kind} title={}::{}", property(&format!("fairlab {}", rule.rule)), data(&line(rule))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::rule;
    use super::*;

    #[test]
    fn annotations_are_one_line_and_hold_no_other_command() {
        let text = annotation(&rule(GateVerdict::Regression, "a::b\n::error::c")).expect("one");
        assert!(text.starts_with("::error title=fairlab p99>+5%25::regression: p99>+5%25 of a::b\\n::error::c: changed by +12.3 %25"), "{text}");
        assert!(!text.contains('\n'));
        assert!(
            annotation(&rule(GateVerdict::Undecided, "a")).is_some_and(|text| text.starts_with("::warning "))
        );
        assert_eq!(annotation(&rule(GateVerdict::Passed, "a")), None);
    }
}
