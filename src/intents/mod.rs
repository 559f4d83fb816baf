//! intents (register to be completed)
