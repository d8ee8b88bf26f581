//! The other files in the folder are the examples. Every example is a complete program.
