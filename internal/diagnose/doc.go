// Package diagnose says why a candidate computes something else, once localise has said where.
//
// A [Hypothesis] predicts, from recorded tensors (and weights and config where they are given),
// what the candidate would have computed if one particular mistake had been made. A prediction is
// made of the candidate's own tensors, so that it is as good downstream of other errors as it is in
// their absence. It is proven when it fits the candidate as well as clean layers fit, and far
// better than the golden does:
//
//	fit        = ‖c − p‖ / ‖p‖   candidate c, prediction p
//	fit_golden = ‖c − g‖ / ‖g‖   golden g
//	proven     ⇔ c agrees with p within the port's noise floor, tensor and worst row,
//	             and fit ≤ fit_golden / margin
//
// At most one cause is proven at a place: of several that fit alike, the one with the fewest
// numbers taken from the candidate. A hypothesis that takes numbers from the candidate (a scale, a
// shift) says how many. What cannot be predicted is a guess, and is marked as one.
//
// What is predicted is in package pattern.
package diagnose
