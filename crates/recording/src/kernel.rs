//! Which generation a recording's kernel is: read from what the recording says of itself.
//!
//! Must not know: what the trace holds.

use std::path::Path;

use fairlab_event::System;
use fairlab_files::LabError;
use fairlab_kernel::Generation;

use crate::Recording;

/// A recording's kernel.
#[derive(Clone, Debug)]
pub struct KnownKernel {
    /// The rules that it was built with.
    pub generation: Generation,
    /// What is said of the kernel and the model does not know, a sentence each.
    pub left_out: Vec<String>,
}

/// What kernels that were built for an experiment hold beyond their source: a piece of their release, and the change.
const OWN_CHANGES: [(&str, &str); 1] = [("6.6.9noeabfix", "scale-deadline-off-rq")];

/// The kernel of a recording: the one that a model followed; else told by its release, and where nothing says that, by the beginning of its folder's name.
///
/// # Errors
/// Nothing names a kernel, or the one that is named is not modelled.
pub fn kernel_of(recording: &Recording, folder: &Path) -> Result<KnownKernel, LabError> {
    if let Some(name) = &recording.modelled {
        return Ok(KnownKernel { generation: name.parse()?, left_out: Vec::new() });
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let release = recording.release.as_deref().filter(|release| !release.is_empty());
    let named = release.unwrap_or(&name);
    let Some(NamedBase { name: base, stands_for }) =
        base(named, recording.source.as_deref().unwrap_or_default())
    else {
        let problem = match release {
            Some(release) => format!("'{release}' names no modelled kernel"),
            None => "nothing says of which kernel it is, nor does its name begin with one".to_string(),
        };
        return Err(LabError::new(
            format!("{}: {problem}", folder.display()),
            "'fairlab kernels list' has those that are modelled; verify one recording with --kernel",
        ));
    };
    let (mut wanted, mut left_out) = (base, Vec::new());
    left_out.extend(stands_for.map(|distributor| {
        format!("{wanted} stands for {named}: what {distributor} changed of it is not known")
    }));
    for revert in &recording.reverts {
        let commit = revert.split_whitespace().next().unwrap_or_default();
        let name = format!("{wanted}-{commit}");
        match (name.parse::<Generation>(), commit == revert) {
            (Ok(_), true) => wanted = name,
            _ => left_out.push(format!("the kernel undoes {revert}, which {wanted} does not model")),
        }
    }
    for (_, change) in OWN_CHANGES.iter().filter(|(piece, _)| named.contains(piece)) {
        wanted = format!("{wanted}+{change}");
    }
    let generation = wanted.parse::<Generation>()?;
    Ok(KnownKernel { generation, left_out })
}

/// The generation of a trace's kernel, as far as the trace tells it and a generation is modelled.
pub fn generation_of(system: &System) -> Option<Generation> {
    let named = (!system.kernel.is_empty()).then(|| system.kernel.parse::<Generation>().ok()).flatten();
    named.or_else(|| base(&system.release, "")?.name.parse().ok())
}

/// The generation that a kernel's release names.
struct NamedBase {
    name: String,
    /// The distributor whose kernel it is, where nothing is known of that but the release that it is based on.
    stands_for: Option<&'static str>,
}

/// The generation that a release (`uname -r`), or a folder's name, is of; `source` says of what sources it was built. A distributor's
/// kernel that is not known is taken for its base release.
fn base(release: &str, source: &str) -> Option<NamedBase> {
    let mut parts =
        release.trim_start_matches('v').split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    let (major, minor, patch) = (parts.next()?, parts.next()?, parts.next());
    let is_debians = release.contains("+deb")
        || ["-amd64", "-arm64"].iter().any(|end| release.ends_with(end))
        || source.starts_with("Debian");
    let release_of = |patch: Option<u32>| {
        let whole = patch.map(|patch| format!("v{major}.{minor}.{patch}"));
        whole.into_iter().chain([format!("v{major}.{minor}")])
    };
    let is_ubuntus = ["-generic", "-oem"].iter().any(|end| release.ends_with(end));
    let distributor = match (is_debians, is_ubuntus) {
        (true, _) => Some("Debian"),
        (false, true) => Some("Ubuntu"),
        (false, false) => None,
    };
    // What a distributor's version calls a patch may be none.
    let patch = patch.filter(|_| distributor.is_none());
    let own = distributor.map(|name| format!("{}-{major}.{minor}", name.to_lowercase()));
    let name =
        own.iter().cloned().chain(release_of(patch)).find(|name| name.parse::<Generation>().is_ok())?;
    let stands_for = distributor.filter(|_| own.as_ref() != Some(&name));
    Some(NamedBase { name, stands_for })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(
        release: Option<&str>,
        source: &str,
        reverts: &[&str],
        folder: &str,
    ) -> Result<(String, usize), String> {
        let recording = Recording {
            release: release.map(str::to_string),
            source: Some(source.to_string()),
            reverts: reverts.iter().map(|revert| (*revert).to_string()).collect(),
            ..Recording::default()
        };
        kernel_of(&recording, Path::new(folder))
            .map(|known| (known.generation.name().to_string(), known.left_out.len()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn kernels_are_told_by_their_release() {
        for (release, source, generation) in [
            ("5.10.0-32-cloud-amd64", "", "debian-5.10"),
            ("6.12.107+deb13-cloud-amd64", "", "debian-6.12"),
            ("5.10.218-lab-5.10fix-hz1000", "Debian linux-source-5.10", "debian-5.10"),
            ("5.2.1-lab-5.2.1-hz1000", "v5.2.1, public tree", "v5.2"),
            ("6.6.9-lab-6.6.9-hz100", "", "v6.6.9"),
            ("6.5.0", "", "v6.5"),
            ("5.14.0-1059-oem", "", "ubuntu-5.14"),
            ("5.15.0-204-generic", "", "ubuntu-5.15"),
            ("6.17.0-42-generic", "", "ubuntu-6.17"),
            ("7.0.0-44-generic", "", "ubuntu-7.0"),
            ("6.6-rc7", "", "v6.6"),
        ] {
            assert_eq!(named(Some(release), source, &[], "x"), Ok((generation.to_string(), 0)), "{release}");
        }
    }

    /// Where nothing is known of a distributor's kernel, its base release stands for it, and that is said.
    #[test]
    fn a_base_release_stands_for_a_distributors_kernel() {
        for (release, source, generation, distributor) in [
            ("7.3.4+deb14-amd64", "", "v7.3", "Debian"),
            ("7.3.4+deb14+1-cloud-arm64", "", "v7.3", "Debian"),
            ("4.19.0-27-amd64", "", "v4.19", "Debian"),
            ("6.6.9-mine", "Debian linux-source-6.6", "v6.6", "Debian"),
            ("6.0.0-1021-oem", "", "v6.0", "Ubuntu"),
            ("7.3.0-9-generic", "", "v7.3", "Ubuntu"),
        ] {
            let (release, source) = (Some(release.to_string()), Some(source.to_string()));
            let recording = Recording { release: release.clone(), source, ..Recording::default() };
            let known = kernel_of(&recording, Path::new("x")).expect("a kernel");
            assert_eq!(known.generation.name(), generation);
            let said = format!(
                "{generation} stands for {}: what {distributor} changed of it is not known",
                release.unwrap_or_default()
            );
            assert_eq!(known.left_out, [said]);
        }
    }

    #[test]
    fn what_was_undone_or_added_is_part_of_the_kernel() {
        let reverts = ["eab03c23c2a1", "5068d84054b7 (min_vruntime part)"];
        assert_eq!(
            named(Some("6.6.9-lab-6.6.9noeab-hz100"), "", &reverts, "x"),
            Ok(("v6.6.9-eab03c23c2a1".to_string(), 1))
        );
        assert_eq!(
            named(Some("6.6.9-lab-6.6.9noeabfix-hz100"), "", &reverts, "x"),
            Ok(("v6.6.9-eab03c23c2a1+scale-deadline-off-rq".to_string(), 1))
        );
    }

    #[test]
    fn a_folder_names_the_kernel_where_nothing_else_does() {
        assert_eq!(named(None, "", &[], "runs/v6.6-mine"), Ok(("v6.6".to_string(), 0)));
        assert_eq!(named(Some(""), "", &[], "runs/6.1-mine"), Ok(("v6.1".to_string(), 0)));
    }

    #[test]
    fn a_modelled_run_names_its_kernel_whole() {
        let modelled = Some("debian-6.12+NEXT_BUDDY".to_string());
        let recording = Recording { release: Some("6.12".to_string()), modelled, ..Recording::default() };
        let known = kernel_of(&recording, Path::new("seed-1")).expect("a kernel");
        assert_eq!(known.generation.name(), "debian-6.12+NEXT_BUDDY");
    }

    #[test]
    fn unknown_kernels_are_refused_in_one_line() {
        for (release, folder) in [
            (Some("3.10.0-1160.el7"), "x"),
            (Some("4.9.0-19-amd64"), "x"),
            (None, "mine"),
            (Some("kernel"), "v6.6"),
        ] {
            let problem = named(release, "", &[], folder).expect_err("unknown");
            let expected = if release.is_some() { "names no modelled kernel" } else { "nothing says" };
            assert!(problem.contains(expected) && !problem.contains('\n'), "{problem}");
        }
    }
}
