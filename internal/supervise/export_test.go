package supervise

var ReadLines = readLines
