package path

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
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

	raw      *dump.Run // as it was recorded
	recorded map[portKey]*tensor.Tensor
	plain    bool                    // the run does not say its passes
	of       map[string]*Pass        // by step
	entries  map[string][]dump.Entry // of Run, by step
	first    map[Row]fedAt           // where each token was fed first
	ends     map[Row][]fedAt         // the items of which it is the last, in order
	began    map[int]string          // the first step of each sequence
	ports    map[portKey]*tensor.Tensor
	axes     map[nameKey]axis
}

type nameKey struct{ layer, port string }

type portKey struct {
	step string
	nameKey
}

// New lays out a run. The sheet of the other side, if there is one, tells what shapes alone do not.
func New(r *dump.Run, other *Sheet) (*Sheet, error) {
	s := &Sheet{Name: r.Info.Path, of: map[string]*Pass{}, ports: map[portKey]*tensor.Tensor{}, axes: map[nameKey]axis{},
		plain: r.Info.Passes == nil, raw: r, recorded: map[portKey]*tensor.Tensor{}}
	if s.Name == "" {
		s.Name = dump.OnePass
	}
	var err error
	if s.Path, err = dump.ParsePath(s.Name); err != nil {
		return nil, err
	}
	if s.Passes, s.Tokens, err = Passes(r); err != nil {
		return nil, err
	}
	for _, p := range s.Passes {
		s.of[p.Step] = p
	}
	s.index()
	if r.Info.Generation != nil {
		s.Tokens = s.ran()
	}
	s.findAxes(r, other)
	var entries []dump.Entry
	for _, e := range r.Entries {
		p, key := s.of[e.Step], nameKey{e.Layer, e.Port}
		s.recorded[portKey{e.Step, key}] = e.Tensor
		if p == nil || s.axes[key] == none {
			continue
		}
		if e.Tensor, err = s.axes[key].lay(e.Tensor, p); err != nil {
			return nil, fmt.Errorf("step %s: %s: %w", e.Step, e.Label(), err)
		}
		s.ports[portKey{e.Step, key}] = e.Tensor
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s has no tensor with a row for each token that passes fed: its first is %s %s; if rows are padded, say so in pad_mask",
			r.Path, r.Entries[0].Label(), tensor.FormatShape(r.Entries[0].Tensor.Shape()))
	}
	s.Run, s.entries = laid(r, entries), map[string][]dump.Entry{}
	for _, e := range s.Run.Entries {
		s.entries[e.Step] = append(s.entries[e.Step], e)
	}
	return s, nil
}

// With returns the sheet of the same run with other tensors.
func (s *Sheet) With(entries []dump.Entry, other *Sheet) (*Sheet, error) {
	return New(dump.New(s.raw.Path, s.raw.Info, s.raw.OrderBy, entries), other)
}

// ran are the tokens of each sequence without those after the last that a forward pass fed: the last
// tokens of a generation decide no other.
func (s *Sheet) ran() [][]int {
	to := map[int]int{}
	for _, i := range s.items() {
		to[i.Sequence] = max(to[i.Sequence], i.To)
	}
	out := make([][]int, len(s.Tokens))
	for i, ids := range s.Tokens {
		out[i] = ids[:min(to[i], len(ids))]
	}
	return out
}

// laid is a run with other entries, of which no row is padding.
func laid(r *dump.Run, entries []dump.Entry) *dump.Run {
	info := r.Info
	info.Order, info.Passes, info.PadMask, info.PadMasks = nil, nil, nil, nil
	out := dump.New(r.Path, info, r.OrderBy, entries)
	out.Notes = r.Notes
	out.Watch(r.Changed)
	return out
}

// findAxes finds where the rows of all ports are.
func (s *Sheet) findAxes(r *dump.Run, other *Sheet) {
	shapes := map[nameKey][]shaped{}
	float := map[nameKey]bool{}
	var names []nameKey
	for _, e := range r.Entries {
		p, key := s.of[e.Step], nameKey{e.Layer, e.Port}
		if p == nil {
			continue
		}
		if shapes[key] == nil {
			names = append(names, key)
		}
		shapes[key] = append(shapes[key], shaped{p, e.Tensor.Shape()})
		float[key] = float[key] || e.Tensor.DType().IsFloat()
	}
	for _, key := range names {
		known := none
		if other != nil {
			if a, ok := other.axes[key]; ok {
				known = a
			}
		}
		s.axes[key] = axisOf(key.port, float[key], shapes[key], known)
		if s.axes[key] == none {
			s.Left = append(s.Left, label.Join(key.layer, key.port))
		}
	}
}

// Recorded returns a port of a forward pass as it was recorded, whether or not it has rows; nil if it
// was not.
func (s *Sheet) Recorded(step, layer, port string) *tensor.Tensor {
	return s.recorded[portKey{step, nameKey{layer, port}}]
}

// Pass returns the forward pass of a step; nil if there is none.
func (s *Sheet) Pass(step string) *Pass { return s.of[step] }

// Index returns the number of the forward pass of a step; −1 if there is none.
func (s *Sheet) Index(step string) int {
	return slices.IndexFunc(s.Passes, func(p *Pass) bool { return p.Step == step })
}

// Axis is the axis of a port's tensors whose indices are the tokens of a forward pass; −1 if they have
// none, and at most one row for each sequence.
func (s *Sheet) Axis(layer, port string) int {
	if a, ok := s.axes[nameKey{layer, port}]; ok {
		return max(int(a), -1)
	}
	return -1
}

// Rows returns the rows of a port that are the tokens from ≤ i < to of a sequence, in several parts if
// several forward passes fed them; nil if not all of them were recorded.
func (s *Sheet) Rows(layer, port string, sequence, from, to int) ([]*tensor.Tensor, error) {
	return s.rows(nameKey{layer, port}, sequence, from, to)
}

// Padding returns the rows of a port that are padding of an item, as the run recorded them, and
// whether they stand before its tokens; nil if there are none, or the port has no rows of tokens.
func (s *Sheet) Padding(p *Pass, item int, layer, port string) (rows *tensor.Tensor, left bool) {
	a, t := s.axes[nameKey{layer, port}], s.Recorded(p.Step, layer, port)
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
	if from == to {
		return nil, false
	}
	if t, err = t.Slice(int(a), from, to); err != nil {
		return nil, false
	}
	return t, left
}
