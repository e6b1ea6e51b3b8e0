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
// The floors, from below:
//
//	op                the arithmetic of models: attention, norm, linear, rotary embedding, …
//	diagnose          the scene, what hypotheses say of it, and how that is judged
//	diagnose/rebuild  how the reference made its tensors: which op of which earlier ones
//	diagnose/fault    causes that are an op done wrong
//	diagnose/pattern  causes that the tensors show by themselves
//	diagnose/cause    the catalogue of all causes
package diagnose
