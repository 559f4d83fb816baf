//! The one door through which foreign text reaches a terminal (to be completed).
