package match

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// Order compares the sequences in which the joined layers were executed first. It tells at how many
// positions the two differ, and the first five. Independent siblings may swap, so a difference is to
// be reported, not to be failed. It means something only where both sides recorded their order. Of a
// fused layer the first part counts.
func Order(golden, actual []Port, r *Result) (same bool, differ int, first []string) {
	partner := map[string]string{} // golden layer of a candidate's
	layers := sequence(golden)
	for _, g := range layers {
		for _, a := range r.Layers[g] {
			if partner[a] == "" {
				partner[a] = g
			}
		}
	}
	var got []string
	in := map[string]bool{}
	for _, a := range sequence(actual) {
		if g := partner[a]; g != "" && !in[g] {
			in[g] = true
			got = append(got, g)
		}
	}
	want := slices.DeleteFunc(layers, func(g string) bool { return !in[g] })
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		if differ++; len(first) < maxOrder {
			first = append(first, fmt.Sprintf("position %d: golden %s, candidate %s", i, want[i], got[i]))
		}
	}
	return differ == 0, differ, first
}

// sequence lists the layers by their first port that was recorded after the call, which a computed
// one is not.
func sequence(ports []Port) []string {
	sorted := slices.Clone(ports)
	slices.SortStableFunc(sorted, func(a, b Port) int { return cmp.Compare(a.Seq, b.Seq) })
	var out []string
	seen := map[string]bool{}
	for _, p := range sorted {
		if label.RoleOf(p.Port) != label.RoleComputed && !seen[p.Layer] {
			seen[p.Layer] = true
			out = append(out, p.Layer)
		}
	}
	return out
}
