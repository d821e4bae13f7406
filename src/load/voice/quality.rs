//! How good a call was: the E-model (ITU-T G.107) with what is known of the path.

/// R without any impairment, with the default values of G.107.
const R_0: f64 = 93.2;
/// How well G.711 with concealment stands loss at random (G.113 appendix I).
const LOSS_ROBUSTNESS: f64 = 25.1;

/// The mean opinion score to expect of G.711 with this delay one way, in ms, and this share of the voice impaired. Delay counts by the usual
/// approximation of G.107's curve without echo: 0.024 for each ms, and 0.11 more for each beyond 177.3.
pub fn mos(delay_ms: f64, impaired: f64) -> f64 {
    let delay = 0.024 * delay_ms + 0.11 * (delay_ms - 177.3).max(0.0);
    let percent = 100.0 * impaired;
    let loss = 95.0 * percent / (percent + LOSS_ROBUSTNESS);
    let r = (R_0 - delay - loss).clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_e_model() {
        let near = |delay, impaired, score: f64| assert!((mos(delay, impaired) - score).abs() < 0.02, "{}", mos(delay, impaired));
        near(0.0, 0.0, 4.41);
        near(100.0, 0.0, 4.36);
        near(100.0, 0.01, 4.27);
        near(300.0, 0.0, 3.71);
        near(100.0, 1.0, 1.12);
    }
}
