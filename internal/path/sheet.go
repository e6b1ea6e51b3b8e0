// Package path knows which token each row of a run is. An execution path is a list of forward
// passes (run.json: passes), and a forward pass feeds some tokens of some sequences.
//
// A [Sheet] is a run whose tensors have been laid out in one way: the rows of a forward pass one
// after the other, in the order of its items, without padding. [Sheet.From] puts the rows of other
// sheets, those of a golden of one pass, in the order in which a run fed them: a golden run with a
// step for each of its forward passes, beside which it can be judged like any other.
//
// Which axis of a tensor counts tokens is told by its shapes in all forward passes. Ports of which
// no axis does (attention weights, caches, masks) are left out by name.
package path

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// Sheet is a run of which each row is known.
type Sheet struct {
	Name   string // of the execution path, "chunked:4"
	Path   dump.Path
	Run    *dump.Run // its ports that have a row for each token, laid out, with the steps of the passes
	Tokens [][]int   // of each sequence
	Passes []*Pass
	Left   []string // labels of the ports that have no such rows
	Exact  bool     // rows may depend on later tokens: they hold for whole sequences alone

	raw  *dump.Run        // as it was recorded
	of   map[string]*Pass // by step
	fed  map[Row][]fedAt  // where each token was fed, in order
	axes map[nameKey]axis
}

// nameKey is the name of a port.
type nameKey struct{ layer, port string }

// fedAt is a row of a forward pass.
type fedAt struct {
	pass *Pass
	row  int
}

// New lays out a run. The sheet of the other side, if there is one, tells what shapes alone do not.
func New(r *dump.Run, other *Sheet) (s *Sheet, err error) {
	s = &Sheet{Name: cmp.Or(r.Info.Path, dump.OnePass), raw: r, of: map[string]*Pass{}, fed: map[Row][]fedAt{},
		axes: map[nameKey]axis{}}
	if s.Path, err = dump.ParsePath(s.Name); err != nil {
		return nil, err
	}
	if s.Passes, s.Tokens, err = Passes(r); err != nil {
		return nil, err
	}
	for _, p := range s.Passes {
		s.of[p.Step], p.recorded, p.laid = p, map[nameKey]*tensor.Tensor{}, map[nameKey]*tensor.Tensor{}
		for i, row := range p.Rows {
			s.fed[row] = append(s.fed[row], fedAt{p, i})
		}
	}
	if r.Info.Generation != nil { // its last tokens decide no other, and need not be fed
		for i, ids := range s.Tokens {
			for n := len(ids); n > 0 && s.fed[Row{i, n - 1}] == nil; n-- {
				s.Tokens[i] = ids[:n-1]
			}
		}
	}
	s.findAxes(other)
	entries, err := s.lay()
	if err != nil {
		return nil, err
	}
	info := r.Info
	info.Order, info.Passes, info.PadMask, info.PadMasks = nil, nil, nil, nil // no row is padding
	s.Run = dump.New(r.Path, info, r.OrderBy, entries)
	s.Run.Notes = r.Notes
	s.Run.Watch(r.Changed)
	return s, nil
}

// With returns the sheet of the same run with other tensors.
func (s *Sheet) With(entries []dump.Entry, other *Sheet) (*Sheet, error) {
	return New(dump.New(s.raw.Path, s.raw.Info, s.raw.OrderBy, entries), other)
}

// findAxes finds where the rows of all ports are.
func (s *Sheet) findAxes(other *Sheet) {
	tensors := map[nameKey][]recorded{}
	var names []nameKey
	for _, e := range s.raw.Entries {
		p, key := s.of[e.Step], nameKey{e.Layer, e.Port}
		if p == nil {
			continue
		}
		if tensors[key] == nil {
			names = append(names, key)
		}
		tensors[key] = append(tensors[key], recorded{p, e.Tensor})
		p.recorded[key] = e.Tensor
	}
	for _, key := range names {
		s.axes[key] = axisOf(key.port, tensors[key], other.axis(key))
		if s.axes[key] == none {
			s.Left = append(s.Left, label.Join(key.layer, key.port))
		}
	}
}

// axis is where the rows of a port are; none where no sheet says so.
func (s *Sheet) axis(key nameKey) axis {
	if s != nil {
		if a, ok := s.axes[key]; ok {
			return a
		}
	}
	return none
}

// lay lays out the ports that have rows of tokens.
func (s *Sheet) lay() (entries []dump.Entry, err error) {
	for _, e := range s.raw.Entries {
		p, key := s.of[e.Step], nameKey{e.Layer, e.Port}
		if p == nil || s.axes[key] == none {
			continue
		}
		if e.Tensor, err = s.axes[key].lay(e.Tensor, p); err != nil {
			return nil, fmt.Errorf("step %s: %s: %w", e.Step, e.Label(), err)
		}
		p.laid[key], p.entries = e.Tensor, append(p.entries, e)
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		e := s.raw.Entries[0]
		return nil, fmt.Errorf("%s has no tensor with a row for each token that passes fed: its first is %s %s; "+
			"if rows are padded, say so in pad_mask", s.raw.Path, e.Label(), tensor.FormatShape(e.Tensor.Shape()))
	}
	return entries, nil
}

// Recorded returns a port of a forward pass as it was recorded, whether or not it has rows; nil if it
// was not.
func (s *Sheet) Recorded(step, layer, port string) *tensor.Tensor {
	if p := s.of[step]; p != nil {
		return p.recorded[nameKey{layer, port}]
	}
	return nil
}

// Pass returns the forward pass of a step; nil if there is none.
func (s *Sheet) Pass(step string) *Pass { return s.of[step] }

// Index returns the number of the forward pass of a step; −1 if there is none.
func (s *Sheet) Index(step string) int { return slices.Index(s.Passes, s.of[step]) }

// Axis is the axis of a port's tensors whose indices are the tokens of a forward pass; −1 if they have
// none, and at most one row for each sequence.
func (s *Sheet) Axis(layer, port string) int { return max(int(s.axis(nameKey{layer, port})), -1) }

// Rows returns the rows of a port that are the tokens from ≤ i < to of a sequence, in several parts if
// several forward passes fed them; nil if not all of them were recorded. Of several rows of one token the
// first that was fed counts.
func (s *Sheet) Rows(layer, port string, sequence, from, to int) (parts []*tensor.Tensor, err error) {
	key := nameKey{layer, port}
	a := s.axis(key)
	if a == lastRows {
		for _, at := range s.fed[Row{sequence, to - 1}] {
			item := at.pass.Index(sequence)
			if t := at.pass.laid[key]; t != nil && at.pass.Items[item].To == to {
				t, err = t.Slice(0, item, item+1)
				return []*tensor.Tensor{t}, err
			}
		}
		return nil, nil
	}
	for n := 1; from < to; from, n = from+n, 1 {
		fed := s.fed[Row{sequence, from}]
		if fed == nil || fed[0].pass.laid[key] == nil {
			return nil, nil
		}
		pass, row := fed[0].pass, fed[0].row
		for ; from+n < to; n++ {
			if next := s.fed[Row{sequence, from + n}]; next == nil || next[0] != (fedAt{pass, row + n}) {
				break
			}
		}
		t, err := pass.laid[key].Slice(max(int(a), 0), row, row+n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, t)
	}
	return parts, nil
}

// Padding returns the rows of a port that are padding of an item, as the run recorded them, and
// whether they stand before its tokens; nil if there are none, or the port has no rows of tokens.
func (s *Sheet) Padding(p *Pass, item int, layer, port string) (rows *tensor.Tensor, left bool) {
	a, t := s.axis(nameKey{layer, port}), s.Recorded(p.Step, layer, port)
	if p.grid == nil || a < 0 || t == nil {
		return nil, false
	}
	line, first := p.Place(item, 0)
	t, err := t.Slice(0, line, line+1)
	width := len(p.grid[line])
	if err != nil || t.Shape()[a] != width {
		return nil, false
	}
	from, to := first+p.Items[item].To-p.Items[item].From, width
	if left = first > 0; left {
		from, to = 0, first
	}
	if t, err = t.Slice(int(a), from, to); err != nil || from == to {
		return nil, false
	}
	return t, left
}

// axis says where the rows of a tensor are: the axis that counts tokens, after a batch axis where
// it is not the first; or one row for each sequence, that of its last token in the pass.
type axis int

const (
	lastRows axis = -1
	none     axis = -2
)

// recorded is a tensor of a port in one forward pass.
type recorded struct {
	pass *Pass
	*tensor.Tensor
}

// fits reports whether a shape may be read in this way.
func (a axis) fits(s recorded, float bool) bool {
	n, shape := len(s.pass.Rows), s.Shape()
	batch, tokens := s.pass.Size()
	switch {
	case a == lastRows:
		return (len(shape) == 2 || len(shape) == 3 && shape[1] == 1) && shape[0] == len(s.pass.Items)
	case a == 0:
		return len(shape) > 0 && shape[0] == n && (len(shape) > 1 || !float)
	case a == 1 && (len(shape) < 2 || len(shape) == 2 && float), a == 2 && len(shape) != 4:
		return false
	}
	return shape[0] == 1 && shape[a] == n || tokens > 0 && shape[0] == batch && shape[a] == tokens
}

// rest is the shape without the axes that count sequences and tokens.
func (a axis) rest(shape []int) []int {
	if a == lastRows {
		return slices.DeleteFunc(slices.Clone(shape[1:]), func(d int) bool { return d == 1 })
	}
	return slices.Concat(shape[1:max(a, 1)], shape[a+1:])
}

// axisOf finds where the rows of a port are by its shapes in all forward passes; none if they are not
// tokens. known is what the port of this name on the other side says, none if it does not.
func axisOf(port string, in []recorded, known axis) axis {
	float := slices.ContainsFunc(in, func(s recorded) bool { return s.DType().IsFloat() })
	for _, a := range []axis{known, 1, 0, 2, lastRows} {
		switch {
		case a == none, a == lastRows && label.IsInput(port) && !float:
			continue
		case slices.ContainsFunc(in, func(s recorded) bool {
			return !a.fits(s, float) || !slices.Equal(a.rest(s.Shape()), a.rest(in[0].Shape()))
		}):
		case a == known || !float || !a.overKeys(port, in):
			return a
		}
	}
	return none
}

// overKeys reports whether each row may well hold a number for each token that it looks at, as those
// of masks and attention weights do.
func (a axis) overKeys(port string, in []recorded) bool {
	shape := in[0].Shape()
	if a == lastRows || len(shape) != 4 && (len(shape) != 2 || !label.IsInput(port)) {
		return false
	}
	return !slices.ContainsFunc(in, func(s recorded) bool {
		_, tokens := s.pass.Size()
		longest := slices.MaxFunc(s.pass.Items, func(a, b dump.PassItem) int { return a.To - b.To })
		last := s.Shape()[len(s.Shape())-1]
		return last != longest.To && last != tokens
	})
}

// lay puts the rows of a tensor one after the other, without padding.
func (a axis) lay(t *tensor.Tensor, p *Pass) (*tensor.Tensor, error) {
	if shape := t.Shape(); a <= 0 || shape[0] == 1 && shape[a] == len(p.Rows) {
		return t, nil
	}
	var heads match.View // those before the rows go after them, and back again
	if a == 2 {
		heads = match.View{{Kind: match.Transpose, Order: []int{0, 2, 1, 3}}}
	}
	batch, tokens := p.Size()
	rest := a.rest(t.Shape())
	view := slices.Concat(heads, match.Reshaped(append([]int{batch * tokens}, rest...)))
	if p.grid != nil {
		view = append(view, match.Op{Kind: match.Rows, Keep: slices.Concat(p.grid...)})
	}
	return slices.Concat(view, match.Reshaped(append([]int{1, len(p.Rows)}, rest...)), heads).Apply(t)
}
