package dequant

// Ignoring is what an entry of an ignore list leaves as it is.
var Ignoring = ignoring
