package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// mostOthers is how many other names of an edit are listed.
const mostOthers = 5

// edits are what was found by changing the reference's program.
type edits struct {
	first  []*report.Cause   // at the place of the verdict; two that explain the error together
	others []*report.Cause   // at other places that are wrong by themselves: proven ones alone
	known  map[string]*twins // by key of an edit
	again  []string          // layers in which a known one was found again
	looked []*looked         // where edits were looked for
	wrong  []string          // keys of those that did not hold in another run
	left   float64           // the work that is left for other places
	// inOnePass says that the first holds for the rows of all forward passes, and not only of the one that is wrong first.
	inOnePass bool
}

// looked is a place where an edit was looked for, and what was found.
type looked struct {
	*replayed
	port  int
	left  *float64       // of edits; nil for the first place
	all   bool           // as one pass: the edit has to hold for the rows of all forward passes
	found *piece.Found   // nil for a place that was not replayed
	of    *program.Piece // whose edits were found
	key   string         // of what was found; "" for nothing
	cause *report.Cause  // nil for nothing
}

// twins are the layers in which the same edit of the same code is the cause.
type twins struct {
	cause  *report.Cause
	layers map[string]bool
}

// withEdits puts edits among the causes that were found otherwise. That of the first place goes in front of those that are
// not proven; an edit is the line of code of a cause that is. A place where a known edit is found again has no cause of
// its own.
func withEdits(causes []report.Cause, e edits) []report.Cause {
	place := func(k *report.Cause) int {
		return slices.IndexFunc(causes, func(x report.Cause) bool {
			return x.Proven && (label.Within(x.Layer, k.Layer) || label.Within(k.Layer, x.Layer))
		})
	}
	first, at := e.first, 0
	if len(first) > 0 && len(causes) > 0 && causes[0].Proven {
		explain(&causes[0], first[0])
		first, at = first[1:], 1
	}
	for i, k := range first {
		causes = slices.Insert(causes, at+i, *k)
	}
	byNumbers := func(x report.Cause) bool { // it explains the layer without the program, and so all that is wrong in it
		return !slices.ContainsFunc(e.first, func(k *report.Cause) bool { return k.Text == x.Text })
	}
	for _, k := range e.others {
		if at := place(k); at >= 0 && (causes[at].Edit == nil || byNumbers(causes[at])) {
			explain(&causes[at], k)
		} else {
			causes = append(causes, *k)
		}
	}
	return slices.DeleteFunc(causes, func(x report.Cause) bool { return x.Edit == nil && slices.Contains(e.again, x.Layer) })
}

// isPlain reports whether a cause says no more than where the wrong numbers are, or what they look like.
func isPlain(id string) bool {
	family, _, _ := strings.Cut(id, "/")
	return slices.Contains([]string{"rows", "columns", "head", "value", "layout", "edit"}, family)
}

// explain says of a proven cause where in the reference's program it is. A proven edit that says why replaces one that only
// says what the wrong numbers are, or that they are another layer's where that layer's weights make them.
func explain(to, k *report.Cause) {
	switch {
	case k.Proven && !isPlain(k.ID) && (isPlain(to.ID) || to.ID == "state/stale" && k.Edit.Kind == "weight"):
		*to = *k
	case to.Edit == nil:
		to.Edit = k.Edit
		to.Text = strings.TrimSuffix(to.Text, ".") + "; in the reference's program, " + k.Text
	}
}

// edited looks for the edits at the place of the verdict, and at other places that are wrong by themselves.
func (c *Comparison) edited() (found edits, err error) {
	first := c.targetOf(c.Verdict)
	if c.Verdict.Kind == localise.KindInteraction { // right alone: no change of the layer makes it so
		return found, nil
	}
	found.known, found.left = map[string]*twins{}, piece.Elsewhere
	for r := range c.known() {
		at := r.portOf(first)
		if first == nil { // the golden is within its tolerance there
			at = r.faultIn(c.Verdict)
		}
		if at >= 0 && len(found.first) == 0 {
			if found.first, err = found.at(&looked{replayed: r, port: at}, false); err != nil {
				return found, err
			}
			for _, k := range found.first {
				k.Layer = c.Verdict.Layer
			}
			if found.inOnePass, err = found.holdsInOnePass(c.Verdict); err != nil {
				return found, err
			}
		}
		for i, t := range r.result.Faults {
			if t == at {
				continue
			}
			more, err := found.at(&looked{replayed: r, port: t, left: &found.left}, i >= maxPlaces || c.ofWholeRun())
			if err != nil {
				return found, err
			}
			for _, k := range more {
				if k.Proven {
					found.others = append(found.others, k)
				}
				if k.Edit.Kind == "term" {
					found.addedAfter(k)
				}
			}
		}
	}
	found.others = slices.DeleteFunc(found.others, func(k *report.Cause) bool { return !k.Proven }) // refuted in another run
	for _, t := range found.known {
		if n := t.cause.Edit.Twins; n[1] > 1 {
			n[0] = len(t.layers)
			t.cause.Text += fmt.Sprintf(" (%d of %d layers)", n[0], n[1])
		}
	}
	return found, nil
}

// holdsInOnePass reports whether the edit that was proven at the first place holds for the rows of all forward passes.
func (e *edits) holdsInOnePass(v *localise.Verdict) (bool, error) {
	if v.OnePass == nil || len(e.looked) == 0 || e.looked[0].cause == nil || !e.looked[0].cause.Proven {
		return false, nil
	}
	again := *e.looked[0]
	again.all = true
	err := again.look([]string{again.key}, true)
	return err == nil && again.found.Twin, err
}

// addedAfter takes a residual that is missing for the order of a norm, where what is missing is added after it.
func (e *edits) addedAfter(k *report.Cause) {
	for _, f := range e.first {
		if f.ID == "residual/missing" && label.Block(k.Layer) == label.Block(f.Layer) {
			f.ID = "norm/order"
			f.Text += fmt.Sprintf("; at %s, %s", k.Layer, k.Edit.Text)
		}
	}
}

// at looks for the edit of a place, or the two that explain it together; none where it was not replayed, or none
// fits. One that is known of another layer is counted there. With twin, no other is looked for.
func (e *edits) at(l *looked, twin bool) ([]*report.Cause, error) {
	if twin && len(e.known) == 0 {
		return nil, nil
	}
	if err := l.look(slices.Collect(maps.Keys(e.known)), twin); err != nil || l.found == nil {
		return nil, err
	}
	found, layer := l.found, l.ports[l.port][0].Layer
	if !twin && !found.Twin {
		e.looked = append(e.looked, l)
	}
	switch {
	case len(found.Fits) == 0 || len(found.Fits[0].Parts) > 0 && !found.Proven: // of pairs there are too many to guess
		if len(e.first) == 0 && len(e.others) == 0 {
			l.c.search.notes = append(l.c.search.notes, tried(found))
		}
		return nil, nil
	case found.Twin:
		f := found.Fits[0]
		e.known[edit.Key(l.of, f.Edit)].layers[l.twins(f.Edit)[0]] = true
		e.again = append(e.again, layer)
		return nil, nil
	case len(found.Fits[0].Parts) > 0:
		return e.both(l), nil
	}
	if err := e.holding(l); err != nil {
		return nil, err
	}
	f := found.Fits[0]
	layers, k := l.twins(f.Edit), l.causeOf(f.Edit)
	l.key, l.cause = edit.Key(l.of, f.Edit), k
	if f.From != "" && len(e.first)+len(e.others) > 0 { // what stands elsewhere may follow from the first fault
		k.Proven = false
	}
	if k.Proven && len(layers) > 0 {
		k.Edit.Twins = []int{1, len(layers)}
		e.known[l.key] = &twins{k, map[string]bool{layers[0]: true}}
	}
	return []*report.Cause{k}, nil
}

// holding takes of the edits that are the same function at a place the first that holds in the other runs, too, in which
// that place was looked at: of one token at position 0, a rotation is the same as none. Where none does nothing is
// proven, and what another run proved is not where it does not hold here.
func (e *edits) holding(here *looked) (err error) {
	found := here.found
	if !found.Proven {
		return nil
	}
	var same []*looked
	for _, l := range e.looked {
		a, b := l.ports[l.port][0].Layer, here.ports[here.port][0].Layer
		if l.replayed != here.replayed && (label.Within(a, b) || label.Within(b, a)) {
			same = append(same, l)
		}
	}
	refuted := func(l *looked, key string) bool {
		if l.key == key || err != nil {
			return false
		}
		again := *l
		err = again.look([]string{key}, true)
		if err != nil || again.found.Twin || again.found.Tried == 0 { // it explains the place, or cannot be tried there
			return false
		}
		e.wrong = append(e.wrong, key)
		return true
	}
	fits := append([]piece.Fit{found.Fits[0]}, found.Also[:min(len(found.Also), mostOthers)]...)
	at := slices.IndexFunc(fits, func(f piece.Fit) bool {
		key := edit.Key(here.of, f.Edit)
		return len(f.Parts) == 0 && !slices.Contains(e.wrong, key) && // of the same code in another layer, too
			!slices.ContainsFunc(same, func(l *looked) bool { return refuted(l, key) })
	})
	if found.Proven = at >= 0; found.Proven {
		found.Fits[0] = fits[at]
	}
	here.key = edit.Key(here.of, found.Fits[0].Edit)
	for _, l := range same {
		if l.cause != nil && l.cause.Proven && refuted(here, l.key) {
			l.cause.Proven = false
		}
	}
	return err
}

// look looks for the edit of the place. With only, no other than those that are known by their keys is looked for.
func (l *looked) look(known []string, only bool) error {
	site := l.result.Site(l.port, l.load, nil, false)
	if site == nil || len(l.ports[l.port]) == 0 {
		l.found = nil
		return nil
	}
	err := l.find(site, false, false, known, only)
	if err == nil && len(l.found.Fits) == 0 && site.AnyOrder {
		site = l.result.Site(l.port, l.load, nil, true)
		err = l.find(site, true, false, known, only)
	}
	if err == nil && len(l.found.Fits) == 0 && site.Chooses() {
		err = l.find(site, false, true, known, only)
	}
	return err
}

// both words two edits that explain an error together, but for what is known; away from the first place one of them.
func (e *edits) both(l *looked) (causes []*report.Cause) {
	for _, x := range l.found.Fits[0].Parts {
		if e.known[edit.Key(l.of, x)] == nil && (len(causes) == 0 || len(e.first) == 0) {
			causes = append(causes, l.causeOf(x))
		}
	}
	return causes
}

// find looks for the edit of a site, with scores of those of a choice; where forward passes were laid out, of the rows of
// the first that is wrong.
func (l *looked) find(site *piece.Site, replayed, scores bool, known []string, only bool) (err error) {
	var fed *edit.Fed
	if !l.all {
		var rows []bool
		if fed, rows = l.fed(l.port, site); fed != nil {
			site = l.result.Site(l.port, l.load, rows, replayed)
		}
	}
	if scores {
		site = cmp.Or(site.OfScores(), site)
	}
	site.Weights, site.Known, site.KnownOnly, site.Fed = slices.Concat(l.readable(), l.elsewhere(site, l.port)), known, only, fed
	site.Left = l.left
	l.of = site.Piece
	l.found, err = piece.Find(l.c.ctx, &site.Search)
	return err
}

// twins lists the layers that run the line of an edit, its own first.
func (l *looked) twins(e edit.Edit) (layers []string) {
	places := e.Places()
	if len(places) == 0 || edit.Frame(l.of, places[0]) < 0 {
		return nil
	}
	own, frame := l.of.Ops[places[0]], edit.Frame(l.of, places[0])
	layers = append(layers, own.Layer)
	for _, o := range l.Ops {
		if o.Name == own.Name && o.Stack >= 0 && len(l.Stacks[o.Stack]) > 0 && l.Stacks[o.Stack][0] == frame && !slices.Contains(layers, o.Layer) {
			layers = append(layers, o.Layer)
		}
	}
	return layers
}

// faultIn returns the first port that is wrong by itself in a verdict's layer; −1 for none.
func (r *replayed) faultIn(v *localise.Verdict) int {
	i := slices.IndexFunc(r.result.Faults, func(t int) bool {
		return len(r.ports[t]) > 0 && slices.Contains([]string{v.Layer, v.Before}, r.ports[t][0].Layer) && r.ports[t][0].Step == v.Step
	})
	if i < 0 {
		return -1
	}
	return r.result.Faults[i]
}

// readableWeights lists the weights that may be read in place of one another: those of the program, and those of the checkpoint
// that it does not read, where both have the same names.
func (r *replayed) readableWeights() (list []edit.Weight) {
	seen := map[string]bool{}
	for _, v := range r.Values {
		if v.Weight != "" && !seen[v.Weight] {
			seen[v.Weight] = true
			list = append(list, edit.Weight{Name: v.Weight, Shape: v.Shape, DType: v.DType, Open: func() *tensor.Tensor {
				t, _ := r.c.search.Evidence.Weight(r.Program, &v) // replay says what is wrong
				return t
			}})
		}
	}
	if len(list) == 0 || r.c.search.Evidence == nil {
		return list
	}
	weights, _, _ := r.c.search.Evidence()
	if slices.ContainsFunc(list, func(w edit.Weight) bool { return weights[w.Name] == nil }) {
		return list
	}
	for _, x := range weights.Named() {
		if !seen[x.Name] {
			list = append(list, edit.Weight{Name: x.Name, Shape: x.Shape(), DType: x.DType(), Open: func() *tensor.Tensor { return x.Tensor }})
		}
	}
	return list
}

// causeOf words what was found, or one part of it.
func (l *looked) causeOf(e edit.Edit) *report.Cause {
	found, of, f := l.found, l.of, l.found.Fits[0]
	f.Edit = e
	k := &report.Cause{ID: edit.Label(of, e), Layer: l.ports[l.port][0].Layer, Proven: found.Proven, Fit: report.Float(f.Relative), FitGolden: report.Float(found.Relative)}
	if f.Kind == "rounding" && f.Overflows {
		k.ID = "dtype/overflow"
	}
	if shape := of.Values[of.Out].Shape; f.Kind == "layout" && len(of.Ops) == 0 && len(shape) > 1 && f.Compared() == shape[len(shape)-1] {
		k.ID = "output/last-token" // one row is compared, and it is another one
	}
	k.Edit = &report.Edit{Kind: f.Kind, Text: f.Text, Weight: f.Weight, Fit: report.Float(f.Relative)}
	if len(f.At) > 0 {
		at := of.Origin[f.At[0]]
		k.Edit.Operator, k.Edit.At = of.Ops[f.At[0]].Full, fmt.Sprintf("%s:%d", l.Ops[at].Layer, l.Ordinals()[at])
	}
	parts := found.Fits[0].Parts
	var code []string
	if f.Frame > 0 {
		code = append(code, l.line(f.Frame-1))
	} else {
		places := f.Places()
		if len(parts) == 0 {
			places = slices.Concat(places, found.AlsoAt())
		}
		for _, i := range places {
			code = append(code, l.frame(of.Origin[i]))
		}
	}
	for _, at := range append(code, f.Code) {
		if at != "" && !slices.Contains(k.Edit.Code, at) {
			k.Edit.Code = append(k.Edit.Code, at)
		}
		if line, _, _ := strings.Cut(at, " "); line != "" && !slices.Contains(k.Edit.Lines, line) {
			k.Edit.Lines = append(k.Edit.Lines, line)
		}
	}
	others := map[string]bool{}
	for _, o := range append(slices.Clone(found.Also), found.Fits[1:]...) {
		if len(parts) == 0 && (o.Kind != f.Kind || o.Text != f.Text) { // which may be of several operators
			others[o.Kind+": "+o.Text] = true
		}
	}
	k.Edit.Others = slices.Sorted(maps.Keys(others))
	k.Edit.Others = k.Edit.Others[:min(len(k.Edit.Others), mostOthers)]
	what := cmp.Or(strings.Join(k.Edit.Code[:min(2, len(k.Edit.Code))], " and "), k.Edit.Weight, "the input")
	k.Text = fmt.Sprintf("%s: %q reproduces the candidate to %.1g", what, f.Text, f.Relative)
	for _, o := range parts {
		if o.Text != e.Text {
			k.Text += fmt.Sprintf(", together with %q", o.Text)
		}
	}
	if len(k.Edit.Others) > 0 {
		k.Text += "; so does " + strconv.Quote(k.Edit.Others[0])
	}
	return k
}

// tried says that no edit was found, and what comes nearest.
func tried(found *piece.Found) string {
	text := fmt.Sprintf("no single edit of the reference's program explains the error at the place: %d of %d were tried", min(found.Tried-found.Pairs, found.Listed), found.Listed)
	if found.Pairs > 0 {
		text += fmt.Sprintf(", and %d pairs", found.Pairs)
	}
	if found.Skipped > 0 {
		text += fmt.Sprintf("; %d could not be listed there", found.Skipped)
	}
	if found.Near != nil {
		text += fmt.Sprintf("; %q leaves %.1g of its %.1g", found.Near.Text, found.Near.Relative, found.Relative)
	}
	return text
}
