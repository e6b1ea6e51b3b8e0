package paths

// Decode is decodeForeign.
var Decode = decodeForeign
