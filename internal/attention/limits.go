package attention

// The limits of what is said of heads.
const (
	// uniform is the part of the largest entropy from which a head looks at all keys alike: of ten keys
	// none then has more than 1.7 times its share. The heads of MiniLM have 0.946 at most; small random
	// models 0.5 to 0.8, or more than 0.99 where their weights are so small that they are uniform.
	uniform = 0.99
	// leastQueries is how many queries tell how a head looks. By reason.
	leastQueries = 4
	// sumError is how far the weights of a query may sum up beside 1: rounding in 8 bits of significand.
	sumError = 0.02
	// wholeRows is the part of the queries whose weights have to sum to 1, where learned sinks take some.
	wholeRows = 0.5

	// comesOut is how far a context may be from what its weights make of the recorded values: rounding in 8 bits.
	comesOut = 0.02

	mostContext = 1 << 24 // elements of a context of which the weights are calculated
)
