//! What crosses the border between kernel and user space: map keys, values, events, configuration.
#![no_std]
