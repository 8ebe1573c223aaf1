//! A floor under agreement: whether a model agrees with a recording as often as is asked for.
//!
//! Must not know: how decisions are judged.

use fairlab_verify::{Agreement, JudgedShare};
use serde_json::{Value, json};

use crate::error::CliError;

/// A judgement that would come of chance more often than this is none.
const CHANCE: f64 = 0.025;

/// Whether agreement reaches a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloorStanding {
    Reached,
    Below,
    /// Too few decisions were judged.
    Undecided,
}

/// What was asked, and what was found.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    wanted: f64,
    all: JudgedShare,
}

impl Floor {
    /// `wanted` of all decisions that were judged are to agree.
    pub fn of(wanted: f64, agreement: &Agreement) -> Floor {
        let mut all = JudgedShare::default();
        for tally in agreement.kinds.iter().map(|(_, tally)| tally.all) {
            all.judged += tally.judged;
            all.agree += tally.agree;
        }
        Floor { wanted, all }
    }

    fn share(&self) -> Option<f64> {
        (self.all.judged > 0).then(|| self.all.agree as f64 / self.all.judged as f64)
    }

    /// The least number of decisions among which one miss does not decide.
    fn needed(&self) -> u64 {
        // Arithmetic alone leaves a little above a whole number.
        (1.0 / (1.0 - self.wanted) - 1e-9).ceil() as u64
    }

    fn standing(&self) -> FloorStanding {
        let Some(share) = self.share() else { return FloorStanding::Undecided };
        let is_enough = self.wanted >= 1.0 || self.all.judged >= self.needed();
        if !is_enough {
            let by_chance = at_least(self.all.missed(), self.all.judged, 1.0 - self.wanted);
            return if by_chance < CHANCE { FloorStanding::Below } else { FloorStanding::Undecided };
        }
        if share >= self.wanted { FloorStanding::Reached } else { FloorStanding::Below }
    }

    fn word(&self) -> &'static str {
        match self.standing() {
            FloorStanding::Reached => "passed",
            FloorStanding::Below => "below",
            FloorStanding::Undecided => "undecided",
        }
    }

    /// In a line.
    pub fn text(&self) -> String {
        let per_cent = |share: f64| format!("{:.2} %", share * 100.0);
        let (wanted, judged, word) = (per_cent(self.wanted), self.all.judged, self.word());
        let Some(share) = self.share() else {
            return format!("--fail-under {wanted}: undecided, no decision was judged\n");
        };
        let few = match self.standing() {
            FloorStanding::Undecided => format!("; {} decisions would tell, at least", self.needed()),
            _ => String::new(),
        };
        format!("--fail-under {wanted}: {word}, {} of {judged} decisions agree{few}\n", per_cent(share))
    }

    /// The floor for programs.
    pub fn json(&self) -> Value {
        json!({
            "wanted": self.wanted,
            "outcome": self.word(),
            "judged": self.all.judged,
            "agree_share": self.share(),
        })
    }

    /// What the program ends with.
    pub fn outcome(&self) -> Result<(), CliError> {
        match self.standing() {
            FloorStanding::Reached => Ok(()),
            FloorStanding::Below => Err(CliError::No),
            FloorStanding::Undecided => Err(CliError::Undecided),
        }
    }
}

/// How often chance gives `count` or more of `all`, each with probability `each`.
fn at_least(count: u64, all: u64, each: f64) -> f64 {
    let mut chance = (1.0 - each).powf(all as f64);
    let mut below = 0.0;
    for made in 0..count {
        below += chance;
        chance *= (all - made) as f64 / (made + 1) as f64 * each / (1.0 - each);
    }
    1.0 - below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(wanted: f64, judged: u64, agree: u64) -> Floor {
        Floor { wanted, all: JudgedShare { judged, agree } }
    }

    #[test]
    fn a_floor_is_reached_missed_or_neither() {
        let of = |wanted, judged, agree| floor(wanted, judged, agree).standing();
        assert_eq!(of(0.99, 1_000, 995), FloorStanding::Reached);
        assert_eq!(of(0.99, 1_000, 990), FloorStanding::Reached);
        assert_eq!(of(0.99, 1_000, 989), FloorStanding::Below);
        assert_eq!(
            (of(0.99, 0, 0), of(0.99, 50, 50), of(0.99, 50, 49)),
            (FloorStanding::Undecided, FloorStanding::Undecided, FloorStanding::Undecided)
        );
        assert_eq!(of(0.99, 50, 30), FloorStanding::Below, "twenty misses of fifty are no chance");
        assert_eq!((of(1.0, 3, 3), of(1.0, 3, 2)), (FloorStanding::Reached, FloorStanding::Below));
    }

    #[test]
    fn the_line_says_the_figure() {
        assert_eq!(
            floor(0.99, 1_000, 989).text(),
            "--fail-under 99.00 %: below, 98.90 % of 1000 decisions agree\n"
        );
        assert_eq!(
            floor(0.99, 50, 50).text(),
            "--fail-under 99.00 %: undecided, 100.00 % of 50 decisions agree; 100 decisions would tell, at least\n"
        );
    }

    #[test]
    fn chance_is_counted_exactly() {
        assert!((at_least(1, 3, 0.5) - 0.875).abs() < 1e-12 && (at_least(3, 3, 0.5) - 0.125).abs() < 1e-12);
        assert!((at_least(0, 9, 0.1) - 1.0).abs() < 1e-12);
    }
}
