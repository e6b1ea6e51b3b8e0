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
	Layers []string    `json:"layers"` // those with an output, as the runs have them: the one pass has all, in the reference's order
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
	var layers []string
	var errors []Float
	for i := range rows {
		if l := &rows[i]; !l.IsInput() && l.Kind != label.RoleComputed.String() {
			layers, errors = append(layers, l.Layer), append(errors, l.Units())
		}
	}
	d.add(path, caseName, layers, errors)
}

// Join adds the runs of another report, but for those that are there.
func (d *PathDepth) Join(other *PathDepth) {
	for _, run := range other.Runs {
		if !slices.ContainsFunc(d.Runs, func(r PathError) bool { return r.Path == run.Path && r.Case == run.Case }) {
			d.add(run.Path, run.Case, other.Layers, run.Errors)
		}
	}
}

// add adds a run, by layers and their errors; a layer that stands there several times has the worst.
func (d *PathDepth) add(path, caseName string, layers []string, errors []Float) {
	at := map[string]int{}
	for i, layer := range d.Layers {
		at[layer] = i
	}
	run := PathError{Path: path, Case: caseName, Errors: slices.Repeat([]Float{nan}, len(d.Layers))}
	for i, layer := range layers[:min(len(layers), len(errors))] {
		if math.IsNaN(float64(errors[i])) {
			continue
		}
		k, known := at[layer]
		if !known {
			k, d.Layers, run.Errors = len(d.Layers), append(d.Layers, layer), append(run.Errors, nan)
			at[layer] = k
		}
		if !(run.Errors[k] >= errors[i]) {
			run.Errors[k] = errors[i]
		}
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		r.Errors = append(r.Errors, slices.Repeat([]Float{nan}, len(d.Layers)-len(r.Errors))...)
	}
	d.Runs = append(d.Runs, run)
}

// Text says how many layers are beyond the limit, and which is the worst.
func (e *PathError) Text(layers []string) string {
	compared, beyond, worst := 0, 0, Float(-1)
	at := ""
	for i, x := range e.Errors[:min(len(e.Errors), len(layers))] {
		if x >= 0 { // else it was not compared
			compared++
		}
		if x > 1 {
			beyond++
		}
		if x > worst {
			worst, at = x, layers[i]
		}
	}
	if compared == 0 {
		return "nothing was compared"
	}
	return fmt.Sprintf("%d of %s beyond the limit, the worst is off by %s times it, at %s", beyond, count(compared, "layer"), num(worst), Clean(at))
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
		return nan
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
	whole, asked := c[compare.RelL2]
	row, ofRow := c[compare.RowRelL2]
	if !asked && !ofRow {
		row = compare.Default(l.types()...).Limits().RowRelL2
	} else if !ofRow {
		row = whole
	}
	if !asked {
		whole = math.Inf(1)
	}
	return max(over(m.RelL2, whole), over(m.RowRelL2, row))
}

// types are those of a row's two sides.
func (l *Layer) types() (types []tensor.DType) {
	for _, s := range []*Side{l.Golden, l.Actual} {
		if s != nil {
			if d, err := tensor.ParseDType(s.DType); err == nil {
				types = append(types, d)
			}
		}
	}
	return types
}
