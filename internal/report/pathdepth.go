package report

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// OnePass is the path of the candidate's own run of one pass.
const OnePass = "one-pass"

// PathDepth is how far the runs along execution paths are off in each layer of the model: what a
// picture of path × depth shows.
type PathDepth struct {
	Layers []string    `json:"layers"` // those with an output, in the reference's order
	Runs   []PathError `json:"runs"`   // the candidate's own one pass first, where it was given
}

// PathError is the error of one run along the depth.
type PathError struct {
	Path   string  `json:"path"` // "decode:8", or [OnePass]
	Case   string  `json:"case"`
	Errors []Float `json:"errors"` // by layer; NaN where the layer was not compared
}

// Add adds a run by its rows in the order of a report: the error of a layer is that of its worst
// output in all forward passes, in units of the limit ([Layer.Units]).
func (d *PathDepth) Add(path, caseName string, rows []Layer) {
	errors := map[string]Float{}
	order := newChain(nil)
	pass, last := "", head
	for i := range rows {
		l := &rows[i]
		units := l.Units()
		if l.IsInput() || l.Kind == label.RoleComputed.String() || math.IsNaN(float64(units)) {
			continue
		}
		if at := l.Case + "\x00" + l.Step; at != pass {
			pass, last = at, head
		}
		last = order.after(last, l.Layer)
		errors[l.Layer] = max(errors[l.Layer], units)
	}
	d.add(path, caseName, order.list(), errors)
}

// Join adds the runs of another report, but for those that are there.
func (d *PathDepth) Join(other *PathDepth) {
	for _, run := range other.Runs {
		if slices.ContainsFunc(d.Runs, func(r PathError) bool { return r.Path == run.Path && r.Case == run.Case }) {
			continue
		}
		errors := map[string]Float{}
		var order []string
		for i, layer := range other.Layers[:min(len(other.Layers), len(run.Errors))] {
			if e := run.Errors[i]; !math.IsNaN(float64(e)) {
				errors[layer] = e
				order = append(order, layer)
			}
		}
		d.add(run.Path, run.Case, order, errors)
	}
}

// add adds a run. A layer that is new stands behind the one that it follows.
func (d *PathDepth) add(path, caseName string, order []string, errors map[string]Float) {
	layers := newChain(d.Layers)
	last := head
	for _, layer := range order {
		last = layers.after(last, layer)
	}
	before := make(map[string]int, len(d.Layers))
	for i, layer := range d.Layers {
		before[layer] = i
	}
	d.Layers = layers.list()
	for k := range d.Runs {
		errors := make([]Float, len(d.Layers))
		for i, layer := range d.Layers {
			if was, known := before[layer]; known && was < len(d.Runs[k].Errors) {
				errors[i] = d.Runs[k].Errors[was]
			} else {
				errors[i] = Float(math.NaN())
			}
		}
		d.Runs[k].Errors = errors
	}
	run := PathError{Path: path, Case: caseName, Errors: make([]Float, len(d.Layers))}
	for i, layer := range d.Layers {
		e, known := errors[layer]
		if run.Errors[i] = e; !known {
			run.Errors[i] = Float(math.NaN())
		}
	}
	d.Runs = append(d.Runs, run)
}

// chain is a list of layers into which others are inserted, in constant time. Links are indices of
// names.
type chain struct {
	names []string // names[head] is none
	next  []int
	at    map[string]int
}

const head = 0

func newChain(layers []string) *chain {
	c := &chain{names: make([]string, 1, len(layers)+1), next: make([]int, 1, len(layers)+1), at: make(map[string]int, len(layers))}
	last := head
	for _, layer := range layers {
		last = c.after(last, layer)
	}
	return c
}

// after inserts a layer behind another one, if it is not there, and returns where it is.
func (c *chain) after(last int, layer string) int {
	if i, known := c.at[layer]; known {
		return i
	}
	i := len(c.names)
	c.names, c.next = append(c.names, layer), append(c.next, c.next[last])
	c.next[last], c.at[layer] = i, i
	return i
}

func (c *chain) list() (layers []string) {
	for i := c.next[head]; i != head; i = c.next[i] {
		layers = append(layers, c.names[i])
	}
	return layers
}

// Units is by how much a row is off, in units of its limit: max(rel_l2/limit, row_rel_l2/limit), or
// the larger of cost and row_cost over theirs; where other criteria judged, row_rel_l2 over the
// default limit of the two types. A row that passes has at most 1, one that fails more than 1, and
// infinity where a NaN or an infinity has no match, or nothing could be compared. NaN: the row was
// not judged.
func (l *Layer) Units() Float {
	switch {
	case l.Status == StatusMissing || l.Status == StatusError:
		return Float(math.Inf(1))
	case !l.compared() || l.Standard == nil || l.Tolerance == nil:
		return Float(math.NaN())
	case l.Status == StatusPass:
		return min(l.units(), 1)
	}
	return max(l.units(), Float(math.Nextafter(1, 2)))
}

func (l *Layer) units() Float {
	m, c := l.Standard, l.Tolerance.Criteria
	over := func(figure Float, limit float64) Float {
		switch {
		case m.BadNonFinite > 0 || math.IsNaN(float64(figure)):
			return Float(math.Inf(1))
		case figure == 0:
			return 0
		}
		return figure / Float(limit)
	}
	if limit, ok := c[compare.Cost]; ok && m.Costs != nil {
		return max(over(m.Cost, limit), over(m.RowCost, limit))
	}
	limits := c.Limits()
	_, whole := c[compare.RelL2]
	_, row := c[compare.RowRelL2]
	switch {
	case whole && !row:
		limits.RowRelL2 = limits.RelL2
	case !whole && !row:
		limits = compare.Default(l.types()...).Limits()
		fallthrough
	case !whole:
		limits.RelL2 = math.Inf(1)
	}
	return max(over(m.RelL2, limits.RelL2), over(m.RowRelL2, limits.RowRelL2))
}

// types are those of a row's two sides.
func (l *Layer) types() (types []tensor.DType) {
	for _, s := range []*Side{l.Golden, l.Actual} {
		if s == nil {
			continue
		}
		if d, err := tensor.ParseDType(s.DType); err == nil {
			types = append(types, d)
		}
	}
	return types
}
