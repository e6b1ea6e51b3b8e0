package weights

// The limits of the comparison of weights. Those of a "not measured" are of what is read and shown.
const (
	// alikeL2 is the relative L2 error of samples below which two weights are one, damaged. Not measured.
	alikeL2 = 1e-2
	// leastMove is how many times its error a calculated step must move a weight. Not measured.
	leastMove = 4
	// mostExplained is the largest weight that is read again row by row. Not measured.
	mostExplained = 1 << 26
	// chunk is how many elements are read at once: 128 kB a side. Not measured.
	chunk = 1 << 14
	// sampleLen is how many elements each sample has. Not measured.
	sampleLen = 1 << 10
	// samples is how many parts of a weight choose the steps that are looked at. Not measured.
	samples = 4
	// likely is the relative L2 error of samples below twice which a weight may be another one,
	// quantised. To 2 bits: 0.5; of two weights that have nothing in common 1.4.
	likely = 0.8
	// mostLooked is how many layers say how a weight holds others. Not measured: one is enough where
	// nothing is wrong.
	mostLooked = 8
	// mostOthers is with how many weights one that differs is compared. Not measured.
	mostOthers = 512
	// nearly is by what factor the angle of a step may exceed that of the best one, with which a
	// quantised weight may still be the reference's. Clean: equal to 1e-6 where both hold.
	nearly = 1.05
	// muchNearer is the error of another weight of the reference, as a part of the error of that in
	// this place, below which a quantised weight is the other one. Clean, of 2 bits: 0.4.
	muchNearer = 0.6
	// slack is how far an element may be from the interval that is rounded to it, in steps of its
	// format, beside the error of the scales' type. Clean: 0 of gguf-py, 0.02 of mlx; a wrong code
	// is off by 0.5 at least in half of the cases.
	slack = 0.03
	// ulps is how many units of rounding a calculated step (norm + 1, a scale) may be off. Clean:
	// 1.
	ulps = 2
	// expUlps is that of an exponential or a logarithm: numpy's is off by 3.
	expUlps = 4
	// normUlps is that of a normalisation by running statistics, whose factor is a quotient and a
	// root: 3 of torch's own folding.
	normUlps = 6
	// sameDirection is the sine of the angle between a weight and another one below which it is that
	// one times a number, or that of the type's rounding. Clean, float32: 5e-7; bfloat16: 2e-3.
	sameDirection = 1e-5
	// clearScale is how many such angles the number must be away from 1. Not measured.
	clearScale = 8
	// mergeUlps is how many units of rounding of the largest element of a row a merged adapter may be
	// off: B·A is summed in the weight's type. Clean, rank 16: 3.
	mergeUlps = 8
	// sketch is how many random products tell the rank of a difference: ranks up to half of it. Not
	// measured.
	sketch = 136
	// mostSketched is the largest weight whose difference is looked at so. Not measured.
	mostSketched = 1 << 26
	// leastGap is how much larger the square of the last singular value of a low rank is than the
	// next one's. An adapter of rank 16 and 1 % of the weight, merged in bfloat16: 14; of 0.3 %: 2,
	// not told. Two weights that have nothing in common: 1.2.
	leastGap = 9
	// spreadLen is the length, in elements, of the parts that are counted by whether they have
	// wrong ones. Not measured.
	spreadLen = 128
	// leastFit is the error of the scales by their type, in steps at the highest code, from which
	// it is estimated from the elements of a group. Not measured: below it slack is enough.
	leastFit = 0.02
	// mostFit is the highest code for which that is done. Of 6 bits and more, clean groups reach
	// 0.6.
	mostFit = 31
	// mostGain is how far the gain of a weight may be from that of the others whose quantiser makes up
	// for errors, and half of how far from 1. Not measured on GPTQ's own weights; rounded to nearest:
	// 0.01 from 3 bits on, 0.08 of 2 bits.
	mostGain = 0.1
	// leastGroup is how many elements a group needs for that. Not measured: mlx has 32.
	leastGroup = 16
	// fitSlack is how far from rounded to nearest an element may then be, in steps. No element of
	// mlx with 2 to 5 bits is further; where the lowest bit of a code is wrong, three of four are.
	fitSlack = 0.25
)
