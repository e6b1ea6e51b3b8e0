package edit

// With lists edits with one more kind.
func With(kind func()) (undo func()) {
	before := wholes
	wholes = append(wholes[:len(wholes):len(wholes)], func(*site) { kind() })
	return func() { wholes = before }
}
