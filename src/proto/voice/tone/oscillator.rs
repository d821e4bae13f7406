//! A sine, one octet after the other.

use std::f32::consts::TAU;

/// A vector that turns by the same angle for each octet.
#[derive(Clone, Copy, Debug)]
pub struct Oscillator {
    vector: (f32, f32),
    turn: (f32, f32),
    amplitude: f32,
}

impl Oscillator {
    pub const SILENT: Oscillator = Oscillator { vector: (0.0, 0.0), turn: (0.0, 0.0), amplitude: 0.0 };

    /// Of this frequency, below 4,000 Hz, and amplitude; it begins at zero.
    pub fn new(hz: f32, amplitude: f32) -> Oscillator {
        let (sin, cos) = (hz / 8_000.0 * TAU).sin_cos();
        Oscillator { vector: (amplitude, 0.0), turn: (cos, sin), amplitude }
    }

    pub fn is_silent(&self) -> bool {
        self.amplitude == 0.0
    }

    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> f32 {
        let ((re, im), (cos, sin)) = (self.vector, self.turn);
        self.vector = (re * cos - im * sin, re * sin + im * cos);
        im
    }

    /// Takes back what rounding did to the amplitude; now and then is enough.
    pub fn settle(&mut self) {
        let length = self.vector.0.hypot(self.vector.1);
        if length > 0.0 {
            let factor = self.amplitude / length;
            self.vector = (self.vector.0 * factor, self.vector.1 * factor);
        }
    }
}
