package report

// What the tests of the metrics' form need.
var (
	Num      = num
	Percent  = percent
	Sentence = sentence
)
