//! Simulations: several real cores, cards, agents and links under one seed. One module per subject.

mod calls;
