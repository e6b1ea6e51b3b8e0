// Package diagnose says what wrong numbers show by themselves, once localise has said where: a factor,
// another order of the elements, zeros in some rows, the rounding of a narrow type, the tensor of
// another layer. What is an edit of the reference's program is in package edit.
//
// A hypothesis predicts, from recorded tensors (and weights and config where they are given), what
// the candidate would have computed if one particular mistake had been made. It is proven when it
// fits the candidate as well as clean layers fit, and far better than the golden does:
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
// A new one is a function beside its like, and a line in the catalogue:
//
//	// negated is a tensor with the other sign.
//	func negated(s *Scene) []prediction {
//		return []prediction{s.says("value/sign", vec.Scaled(s.right, -1), 0, 0, "the sign is wrong: −x")}
//	}
package diagnose
