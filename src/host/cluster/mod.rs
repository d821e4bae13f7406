//! A cluster of gateways that count together: the link of a gateway, the central node's process, keys (docs/decisions/cluster.md).
//!
//! The machines are `proto::cac::{node, central}`; what is here moves their messages by ZeroMQ and their decisions by rings. Every
//! ZeroMQ socket stays on the thread that made it. A gateway's link thread runs the [`Node`](crate::proto::cac::node::Node); the
//! cores reach it by rings and wake it only when it sleeps.

pub mod central;
mod etcd;
pub mod gateway;
mod inbox;
pub mod keys;
mod link;
pub(in crate::host) mod metrics;
mod operators;
mod pair;
mod said;
pub mod saved;
mod socket;
mod staged;
pub mod view;
mod zap;
