package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Func is an engine in this process: it computes one forward pass, and returns its tensors by
// label.
type Func func(Pass) (map[string]*tensor.Tensor, error)

// Pass is a forward pass that a Func is asked for.
type Pass struct {
	Case, Step string
	TokenIDs   [][]int
	Golden     []dump.Entry // the reference's tensors; nil along an execution path

	Path  string          // the execution path; "" for one pass over whole sequences
	Items []dump.PassItem // what is fed along it
}

// Run runs the steps of a golden. A label without a port is an output, unless the golden has it as
// a tap.
func (f Func) Run(golden *dump.Run) (*dump.Run, error) {
	var entries []dump.Entry
	for _, step := range golden.Steps() {
		var pass []dump.Entry
		for _, e := range golden.Entries {
			if e.Step == step {
				pass = append(pass, e)
			}
		}
		made, err := f.run(Pass{Case: golden.Info.Case, Step: step, TokenIDs: golden.Info.Tokens(), Golden: pass})
		if err != nil {
			return nil, err
		}
		entries = append(entries, made...)
	}
	return funcRun(dump.Info{Case: golden.Info.Case, TokenIDs: golden.Info.TokenIDs}, entries)
}

// Along runs the forward passes of an execution path. Rows of several sequences are expected one
// after the other; along padding and mask, padded to one length.
func (f Func) Along(caseName, path string, tokens [][]int, passes [][]dump.PassItem) (*dump.Run, error) {
	parsed, err := dump.ParsePath(path)
	if err != nil {
		return nil, err
	}
	ids, err := json.Marshal(tokens)
	if err != nil {
		return nil, err
	}
	info := dump.Info{Case: caseName, Schema: dump.Schema, TokenIDs: ids, Path: path, Passes: passes, PadMasks: map[string][][]int{}}
	var entries []dump.Entry
	for k, items := range passes {
		step := strconv.Itoa(k)
		if parsed.Kind == dump.Padding || parsed.Kind == dump.Mask {
			if mask := padMask(items, parsed.Side == dump.Left); k == 0 {
				info.PadMask = mask
			} else {
				info.PadMasks[step] = mask
			}
		}
		made, err := f.run(Pass{Case: caseName, Step: step, TokenIDs: tokens, Path: path, Items: items})
		if err != nil {
			return nil, err
		}
		entries = append(entries, made...)
	}
	return funcRun(info, entries)
}

// padMask has 1 for tokens, and 0 for padding and for what is hidden after them.
func padMask(items []dump.PassItem, left bool) (mask [][]int) {
	longest := 0
	for _, i := range items {
		longest = max(longest, i.To-i.From+len(i.Hidden))
	}
	for _, i := range items {
		first := slices.Repeat([]int{1}, i.To-i.From)
		last := make([]int, longest-len(first))
		if left {
			first, last = last, first
		}
		mask = append(mask, slices.Concat(first, last))
	}
	return mask
}

// run calls the function, and lists what it returned.
func (f Func) run(pass Pass) (made []dump.Entry, err error) {
	at := map[string]int{}
	for _, e := range pass.Golden {
		at[e.Label()] = e.Seq
	}
	out, err := f(pass)
	if err != nil {
		return nil, fmt.Errorf("case %s: step %s: %w", pass.Case, pass.Step, err)
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		layer, port := label.Split(name)
		if _, isTap := at[name]; port == label.Tap && !isTap {
			port = "output"
		}
		if out[name] == nil {
			return nil, fmt.Errorf("case %s: step %s: %s is nil", pass.Case, pass.Step, name)
		}
		made = append(made, dump.Entry{Step: pass.Step, Layer: layer, Port: port, Tensor: out[name]})
	}
	// A map has no order: that of the golden where it has the label.
	slices.SortStableFunc(made, func(a, b dump.Entry) int { return at[a.Label()] - at[b.Label()] })
	return made, nil
}

func funcRun(info dump.Info, entries []dump.Entry) (*dump.Run, error) {
	if len(entries) == 0 {
		return nil, fmt.Errorf("case %s: the function returned no tensors", info.Case)
	}
	info.Engine, info.Mode = "func", dump.Standard
	return dump.New("parity.Func", info, dump.OrderRunFile, entries), nil
}
