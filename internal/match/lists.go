package match

import "slices"

// collect returns what a function makes of each item.
func collect[T, U any](items []T, of func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = of(item)
	}
	return out
}

// each is collect for what is nothing unless all items have it: nil if a function makes nil of one.
func each[T, U any](items []T, of func(T) *U) []*U {
	out := collect(items, of)
	if slices.Contains(out, nil) {
		return nil
	}
	return out
}

// keep returns the items for which a function holds.
func keep[T any](items []T, holds func(T) bool) []T {
	var out []T
	for _, item := range items {
		if holds(item) {
			out = append(out, item)
		}
	}
	return out
}

// find returns the first item for which a function holds, the zero value if there is none.
func find[T any](items []T, holds func(T) bool) (item T) {
	if i := slices.IndexFunc(items, holds); i >= 0 {
		item = items[i]
	}
	return item
}

// without returns the items but one.
func without[T comparable](items []T, one T) []T {
	return keep(items, func(o T) bool { return o != one })
}
