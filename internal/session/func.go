package session

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Engine computes one forward pass in this process: tensors by label.
type Engine func(caseName, step string, ids [][]int, golden []dump.Entry) (map[string]*tensor.Tensor, error)

// CompareFunc compares what an engine in this process computes with the goldens.
func (f *Fixture) CompareFunc(run Engine) (*judge.Comparison, error) {
	f.used.Store(true)
	if err := f.open(); err != nil {
		return nil, err
	}
	var cases []judge.Case
	for _, y := range f.yaml.Cases {
		g, err := f.goldens.run(f.goldens.first, y.Name)
		if err != nil {
			return nil, err
		}
		a, err := runEngine(g, run)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", y.Name, err)
		}
		k := judge.Case{Name: y.Name, Golden: g, Actual: a}
		if k.Golden64, err = f.goldens.float64(y.Name); err != nil {
			return nil, err
		}
		cases = append(cases, k)
	}
	c, err := judge.Compare(f.cfg.context(), cases, f.compareOptions())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compared = append(f.compared, c)
	return c, nil
}

func runEngine(golden *dump.Run, run Engine) (*dump.Run, error) {
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
		out, err := run(golden.Info.Case, step, golden.Info.Tokens(), pass)
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", step, err)
		}
		var made []dump.Entry
		for _, name := range slices.Sorted(maps.Keys(out)) {
			layer, port := label.Split(name)
			if _, isTap := at[name]; port == label.Tap && !isTap {
				port = "output"
			}
			if out[name] == nil {
				return nil, fmt.Errorf("step %s: %s is nil", step, name)
			}
			made = append(made, dump.Entry{Step: step, Layer: layer, Port: port, Tensor: out[name]})
		}
		// A map has no order: that of the golden where it has the label.
		slices.SortStableFunc(made, func(a, b dump.Entry) int { return at[a.Label()] - at[b.Label()] })
		entries = append(entries, made...)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("the function returned no tensors")
	}
	info := dump.Info{Engine: "func", Case: golden.Info.Case, Mode: dump.Standard}
	return dump.New("parity.Func", info, dump.OrderRunFile, entries), nil
}
