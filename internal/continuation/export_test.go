package continuation

// Decode is decodeForeign.
var Decode = decodeForeign
