// Package compare turns one pair of tensors, golden g and actual a, into figures and a verdict.
//
// [Tensors] computes all figures in one pass. The rule is that of numpy and torch, in float64:
//
//	mismatch ⇔ not (|a − g| ≤ atol + rtol·|g|)
//
// NaN matches nothing (unless EqualNaN: then NaN matches NaN), an infinity only itself, and where
// both sides are integers or bools they must be equal, whatever the tolerance. Maxima and sums run
// over the pairs of two finite values; the others are counted, and the rule decides about them.
//
// [Criteria] asks for more than a tolerance (relative L2, cosine, ULP, KL …) and judges a pair;
// [Default] has limits by element type. [Explain] goes over a failed pair again and says where it
// differs and which tolerance would pass.
package compare
