package report

// What the tests of the figures' form need.
var (
	Num      = num
	Percent  = percent
	Sentence = sentence
)
