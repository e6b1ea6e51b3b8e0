package weights

// The limits of the comparison of weights. Those of a "not measured" are of what is read and shown.
const (
	// chunk is how many elements are read at once: 128 kB a side. Not measured.
	chunk = 1 << 14
	// sampleLen is how many elements each sample has. Not measured.
	sampleLen = 1 << 10
	// samples is how many parts of a weight choose the steps that are looked at. Not measured.
	samples = 4
	// likely is the relative L2 error of samples below twice which a weight may be another one,
	// quantised. To 2 bits: 0.5; of two weights that have nothing in common 1.4.
	likely = 0.8
	// slack is how far an element may be from the interval that is rounded to it, in steps of its
	// format, beside the error of the scales' type. Clean: 0 of gguf-py, 0.02 of mlx; a wrong code
	// is off by 0.5 at least in half of the cases.
	slack = 0.03
	// ulps is how many units of rounding a calculated step (norm + 1, a scale) may be off. Clean:
	// 1.
	ulps = 2
	// spreadLen is the length, in elements, of the parts that are counted by whether they have
	// wrong ones. Not measured.
	spreadLen = 128
	// leastFit is the error of the scales by their type, in steps at the highest code, from which
	// it is estimated from the elements of a group. Not measured: below it slack is enough.
	leastFit = 0.02
	// mostFit is the highest code for which that is done. Of 6 bits and more, clean groups reach
	// 0.6.
	mostFit = 31
	// leastGroup is how many elements a group needs for that. Not measured: mlx has 32.
	leastGroup = 16
	// fitSlack is how far from rounded to nearest an element may then be, in steps. No element of
	// mlx with 2 to 5 bits is further; where the lowest bit of a code is wrong, three of four are.
	fitSlack = 0.25
)
