//! Ubuntu's kernels: of almost every release there is one, with stable updates and little of its own in the scheduler.
//!
//! Must not know: how one is fetched.

use std::fmt;

/// A kernel of Ubuntu's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UbuntuPackage {
    /// The release that it is built from.
    pub release: &'static str,
    /// The suite whose archive has its newest build.
    pub(super) suite: &'static str,
    /// For which machines it is built. Several releases are for new machines only (`oem`).
    pub(super) flavour: &'static str,
}

const fn kernel(release: &'static str, suite: &'static str, flavour: &'static str) -> UbuntuPackage {
    UbuntuPackage { release, suite, flavour }
}

/// Those that are known by name, of each release whose rules the model has.
pub const KERNELS: [UbuntuPackage; 22] = [
    kernel("4.18", "bionic-updates", "generic"),
    kernel("5.0", "bionic-updates", "generic"),
    kernel("5.3", "bionic-updates", "generic"),
    kernel("5.4", "focal-updates", "generic"),
    kernel("5.6", "focal-updates", "oem"),
    kernel("5.8", "focal-updates", "generic"),
    kernel("5.10", "focal-updates", "oem"),
    kernel("5.11", "focal-updates", "generic"),
    kernel("5.13", "focal-updates", "generic"),
    kernel("5.14", "focal-updates", "oem"),
    kernel("5.15", "jammy-updates", "generic"),
    kernel("5.17", "jammy-updates", "oem"),
    kernel("5.19", "jammy-updates", "generic"),
    kernel("6.0", "jammy-updates", "oem"),
    kernel("6.1", "jammy-updates", "oem"),
    kernel("6.2", "jammy-updates", "generic"),
    kernel("6.5", "jammy-updates", "generic"),
    kernel("6.8", "noble-updates", "generic"),
    kernel("6.11", "noble-updates", "generic"),
    kernel("6.14", "noble-updates", "generic"),
    kernel("6.17", "noble-updates", "generic"),
    kernel("7.0", "resolute-updates", "generic"),
];

impl UbuntuPackage {
    /// The one of a release.
    pub fn of(release: &str) -> Option<UbuntuPackage> {
        KERNELS.into_iter().find(|kernel| kernel.release == release)
    }

    /// What its packages are called, as a regular expression: `linux-image-unsigned-5.15.0-139-generic`.
    pub(super) fn packages(self) -> String {
        let release = self.release.replace('.', "\\.");
        format!("^linux-image-unsigned-{release}\\.0-[0-9]+-{}$", self.flavour)
    }

    /// Which build of it a package is: 139.
    pub(super) fn build(self, package: &str) -> Option<u32> {
        package.strip_suffix(self.flavour)?.trim_end_matches('-').rsplit('-').next()?.parse().ok()
    }
}

impl fmt::Display for UbuntuPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ubuntu:{}", self.release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_told_apart_by_their_numbers() {
        let kernel = UbuntuPackage::of("5.15").expect("a kernel");
        assert_eq!(kernel.packages(), "^linux-image-unsigned-5\\.15\\.0-[0-9]+-generic$");
        assert_eq!(kernel.build("linux-image-unsigned-5.15.0-139-generic"), Some(139));
        assert_eq!(kernel.build("linux-image-unsigned-5.15.0-1012-azure"), None);
        assert_eq!(UbuntuPackage::of("5.1"), None);
    }

    #[test]
    fn each_is_of_a_release_that_is_modelled() {
        for kernel in KERNELS {
            format!("v{}", kernel.release).parse::<fairlab_kernel::Generation>().expect("modelled");
        }
    }
}
