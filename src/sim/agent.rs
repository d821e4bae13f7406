//! (being written)
pub struct RandomAgent;
pub struct RandomPlan;
