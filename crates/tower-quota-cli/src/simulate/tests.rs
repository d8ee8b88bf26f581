//! Tests of replays: the decisions are those of the layer.
