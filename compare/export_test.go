package compare

// Sum adds with the compensated sum that block sums are added with.
func Sum(values ...float64) float64 {
	var s sum
	for _, v := range values {
		s.add(v)
	}
	return s.value()
}
