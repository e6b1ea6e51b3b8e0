package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Func is an engine in this process: it computes one forward pass, and returns its tensors by
// label.
type Func func(caseName, step string, ids [][]int, golden []dump.Entry) (map[string]*tensor.Tensor, error)

// Run runs the steps of a golden. A label without a port is an output, unless the golden has it as
// a tap.
func (f Func) Run(golden *dump.Run) (*dump.Run, error) {
	var entries []dump.Entry
	for _, step := range golden.Steps() {
		var pass []dump.Entry
		at := map[string]int{}
		for _, e := range golden.Entries {
			if e.Step == step {
				at[e.Label()] = e.Seq
				pass = append(pass, e)
			}
		}
		out, err := f(golden.Info.Case, step, golden.Info.Tokens(), pass)
		if err != nil {
			return nil, fmt.Errorf("case %s: step %s: %w", golden.Info.Case, step, err)
		}
		var made []dump.Entry
		for _, name := range slices.Sorted(maps.Keys(out)) {
			layer, port := label.Split(name)
			if _, isTap := at[name]; port == label.Tap && !isTap {
				port = "output"
			}
			if out[name] == nil {
				return nil, fmt.Errorf("case %s: step %s: %s is nil", golden.Info.Case, step, name)
			}
			made = append(made, dump.Entry{Step: step, Layer: layer, Port: port, Tensor: out[name]})
		}
		// A map has no order: that of the golden where it has the label.
		slices.SortStableFunc(made, func(a, b dump.Entry) int { return at[a.Label()] - at[b.Label()] })
		entries = append(entries, made...)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("case %s: the function returned no tensors", golden.Info.Case)
	}
	info := dump.Info{Engine: "func", Case: golden.Info.Case, Mode: dump.Standard}
	return dump.New("parity.Func", info, dump.OrderRunFile, entries), nil
}
