package report

import (
	"fmt"
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
	var order, pass []string // the layers of all passes, and of one
	for i := range rows {
		l := &rows[i]
		units := l.Units()
		if i > 0 && (l.Case != rows[i-1].Case || l.Step != rows[i-1].Step) {
			order, pass = merged(order, pass), nil
		}
		if l.IsInput() || l.Kind == label.RoleComputed.String() || math.IsNaN(float64(units)) {
			continue
		}
		pass = append(pass, l.Layer)
		errors[l.Layer] = max(errors[l.Layer], units)
	}
	d.add(path, caseName, merged(order, pass), errors)
}

// Join adds the runs of another report, but for those that are there.
func (d *PathDepth) Join(other *PathDepth) {
	for _, run := range other.Runs {
		if slices.ContainsFunc(d.Runs, func(r PathError) bool { return r.Path == run.Path && r.Case == run.Case }) {
			continue
		}
		errors := run.by(other.Layers)
		order := slices.DeleteFunc(slices.Clone(other.Layers), func(layer string) bool { _, known := errors[layer]; return !known })
		d.add(run.Path, run.Case, order, errors)
	}
}

// by has the errors of the layers that were compared.
func (e *PathError) by(layers []string) map[string]Float {
	errors := map[string]Float{}
	for i, layer := range layers[:min(len(layers), len(e.Errors))] {
		if !math.IsNaN(float64(e.Errors[i])) {
			errors[layer] = e.Errors[i]
		}
	}
	return errors
}

// add adds a run. A layer that is new stands after the one that it follows.
func (d *PathDepth) add(path, caseName string, order []string, errors map[string]Float) {
	var all []map[string]Float
	for i := range d.Runs {
		all = append(all, d.Runs[i].by(d.Layers))
	}
	all = append(all, errors)
	d.Runs = append(d.Runs, PathError{Path: path, Case: caseName})
	d.Layers = merged(d.Layers, order)
	for k := range d.Runs {
		d.Runs[k].Errors = make([]Float, len(d.Layers))
		for i, layer := range d.Layers {
			e, known := all[k][layer]
			if d.Runs[k].Errors[i] = e; !known {
				d.Runs[k].Errors[i] = nan
			}
		}
	}
}

// merged returns a list with the layers of another order; what is new stands after the layer that it follows there.
func merged(layers, order []string) (out []string) {
	const head = "\x00" // no layer's name
	known, follow, last := map[string]bool{}, map[string][]string{}, head
	for _, layer := range layers {
		known[layer] = true
	}
	for _, layer := range order {
		if !known[layer] {
			known[layer], follow[last] = true, append(follow[last], layer)
		}
		last = layer
	}
	var add func(string)
	add = func(layer string) {
		for _, next := range follow[layer] {
			out = append(out, next)
			add(next)
		}
	}
	for add(head); len(layers) > 0; layers = layers[1:] {
		out = append(out, layers[0])
		add(layers[0])
	}
	return out
}

// Text says how many layers are beyond the limit, and which is the worst.
func (e *PathError) Text(layers []string) string {
	compared, beyond, worst := 0, 0, -1
	for i, x := range e.Errors[:min(len(e.Errors), len(layers))] {
		if math.IsNaN(float64(x)) {
			continue
		}
		compared++
		if x > 1 {
			beyond++
		}
		if worst < 0 || x > e.Errors[worst] {
			worst = i
		}
	}
	switch {
	case compared == 0:
		return "nothing was compared"
	case beyond == 0:
		return fmt.Sprintf("all %s within the limit, at most %s of it, at %s", count(compared, "layer"), num(e.Errors[worst]), Clean(layers[worst]))
	}
	return fmt.Sprintf("%d of %s beyond the limit, up to %s times it, at %s", beyond, count(compared, "layer"), num(e.Errors[worst]), Clean(layers[worst]))
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
