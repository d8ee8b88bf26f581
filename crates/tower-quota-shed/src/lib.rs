//! Load shedding for tower services.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
