package weights

// FirstOfB is the first number of B that an adapter has for a weight; −1 if it has none.
func FirstOfB(a *Adapter, name string) float64 {
	if l := a.of(name); l != nil {
		return l.b[0]
	}
	return -1
}
