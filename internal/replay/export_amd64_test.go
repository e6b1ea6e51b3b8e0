package replay

func init() {
	Vector = func(on bool) func() {
		before := vector
		vector = on && before
		return func() { vector = before }
	}
}
