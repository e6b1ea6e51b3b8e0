// Package piece judges a run by the reference's own program, piece by piece: the operators between a
// recorded tensor and those before it are replayed on the candidate's own tensors, and the result is
// held against what the candidate has there.
//
//	local error  e = ‖replayed − recorded‖ / ‖recorded‖, of the tensor and of its worst row
//	noise        n: how far the result moves when every result is rounded as the run rounds
//	             n64: how far it is from the same piece in float64
//	wrong        e > max(3 n, 4 n64, floor), or the same of a row with 3 floor
//
// A piece that is wrong is where the candidate computes something else. A stretch is a set of wrong
// ports that, all left out as sources, leave everything after them right: another way to write the
// same. What cannot be replayed is opaque, and judged by the golden where its sources agree with that.
package piece
