// Package weights compares two sets of weights: a checkpoint, and another form of it or what an
// engine loaded. Each weight of the reference gets a status:
//
//	equal      all elements are equal
//	step       they are equal after known steps, which hold for all weights of that role
//	quantised  the candidate is quantised, and each element is as near as its format can have it
//	differs    how and where is said
//	missing    the candidate has none
//	unused     the candidate has it, the reference does not
//
// Steps are: cast (rounded to nearest), dequantised, transposed, interleaved (rows of q and k, as
// llama.cpp has them), fused, split, stacked, tied, norm + 1, a scale of a closed list. Fewer steps
// are better, none is best. A step that one weight has and the others of its role have not is a
// fault.
package weights
