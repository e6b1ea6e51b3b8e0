package match

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/nearest"
	"github.com/goparity/goparity/tensor"
)

// Rule is one entry of names: in fixture.yaml. It joins layers that Runs cannot join by itself, or says how their outputs lie.
//
// Golden and Candidate are labels without call count, or the end of labels at a dot; a single one may name one port as file names do
// ("model.pooler-output"). A * stands for a segment or a part of one, and ** for one or more of them. The n-th wildcard of the others takes
// what the
// n-th of the first Golden stood for, so {Golden: ["h.*.attn"], Candidate: ["layers.*.attention"]} renames all blocks.
//
// One golden and several candidates: the candidates' outputs are joined along Axis. Several and one: the candidate's output is
// cut along Axis into the golden ones' widths, in their order, and they share its input.
type Rule struct {
	Golden    []string
	Candidate []string
	Axis      *int   // of a join or split, counted on the candidate; nil is the last
	Transpose []int  // order of the candidate's axes: axis i of the golden is its axis Transpose[i]
	Reshape   []int  // shape that the candidate gets, after Transpose; one size may be -1, which is what is left
	Rows      string // "last": the candidate holds the last row of each sequence only
	Reason    string
}

// LastRow is the value of Rule.Rows.
const LastRow = "last"

// String is the rule in short: "q, k, v = qkv".
func (r *Rule) String() string {
	return strings.Join(r.Golden, ", ") + " = " + strings.Join(r.Candidate, ", ")
}

// Validate says what is wrong with a rule by itself.
func (r *Rule) Validate() error {
	var what string
	many := len(r.Golden) > 1 || len(r.Candidate) > 1
	switch {
	case len(r.Golden) == 0 || slices.Contains(r.Golden, ""):
		what = "golden names no layer"
	case len(r.Candidate) == 0 || slices.Contains(r.Candidate, ""):
		what = "candidate names no layer"
	case len(r.Golden) > 1 && len(r.Candidate) > 1:
		what = "several layers on both sides: join or split, with one layer on one side"
	case many && (r.Transpose != nil || r.Reshape != nil || r.Rows != ""):
		what = "a join or split has no transpose, reshape or rows"
	case !many && r.Axis != nil:
		what = "axis is for a join or split, with several layers on one side"
	case r.Rows != "" && r.Rows != LastRow:
		what = fmt.Sprintf("rows: %q is unknown, want %q", r.Rows, LastRow)
	case slices.ContainsFunc(r.Reshape, func(d int) bool { return d < -1 }) || strings.Count(fmt.Sprint(r.Reshape), "-1") > 1:
		what = "reshape takes sizes, and -1 once for what is left"
	case slices.ContainsFunc(r.others(), func(s string) bool {
		return len(wildcard.FindAllString(s, -1)) > len(wildcard.FindAllString(r.Golden[0], -1))
	}):
		what = "a name has more wildcards than the first golden one"
	}
	if _, err := transposeShape(make([]int, len(r.Transpose)), r.Transpose); what == "" && err != nil {
		what = "transpose: " + err.Error()
	}
	for _, name := range slices.Concat(r.Golden, r.Candidate) {
		if what == "" && !utf8.ValidString(name) {
			what = fmt.Sprintf("%q is not UTF-8", name)
		}
		if _, port := splitPort(name); what == "" && many && port != "" {
			what = fmt.Sprintf("%q names a port: a join or split is of layers", name)
		}
	}
	if _, golden := splitPort(first(r.Golden)); what == "" && !many {
		if _, actual := splitPort(r.Candidate[0]); (golden == "") != (actual == "") {
			what = "name a port on both sides or on none"
		}
	}
	if what != "" {
		return fmt.Errorf("match: rule %s: %s", r, what)
	}
	return nil
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func (r *Rule) others() []string {
	if len(r.Golden) == 0 {
		return nil
	}
	return slices.Concat(r.Golden[1:], r.Candidate)
}

// splitPort cuts the port off a name of a rule; "" if it names a layer.
func splitPort(name string) (layer, port string) {
	if layer, port = label.Split(name); layer == name {
		return name, ""
	}
	return layer, port
}

// lays reports whether the rule says how the candidate's bytes lie.
func (r *Rule) lays() bool { return r.Transpose != nil || r.Reshape != nil || r.Rows != "" }

// layout views a port as the rule says.
func (r *Rule) layout(g, a Port, l layouts) (layout, bool) {
	var v View
	if r.Transpose != nil {
		v = append(v, Op{Kind: Transpose, Order: r.Transpose})
	}
	if r.Reshape != nil {
		v = append(v, reshape(r.reshape(a.Shape)))
	}
	shape, err := v.Shape(a.Shape)
	if err != nil || !sameKind(g.DType, a.DType) {
		return layout{}, false
	}
	lay, ok := l.fit(g.Shape, shape, false, allow{lastRow: r.Rows == LastRow})
	lay.actual = append(v, lay.actual...)
	lay.note = join("by a rule", lay.note)
	return lay, ok
}

// reshape fills in the size that is left.
func (r *Rule) reshape(shape []int) []int {
	at := slices.Index(r.Reshape, -1)
	if at < 0 {
		return r.Reshape
	}
	total, err := tensor.NumElems(shape)
	rest, err2 := tensor.NumElems(with(r.Reshape, at, 1))
	if err != nil || err2 != nil || rest == 0 || total%rest != 0 {
		return with(r.Reshape, at, 0) // does not fit
	}
	return with(r.Reshape, at, total/rest)
}

// applyRules joins what the rules name. A rule without wildcards must find its layers, one with wildcards at least once.
func (m *matcher) applyRules() error {
	var errs []error
	for i := range m.opt.Rules {
		r := &m.opt.Rules[i]
		err := r.Validate()
		if err == nil {
			err = m.applyRule(r)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (m *matcher) applyRule(r *Rule) error {
	label, port := splitPort(r.Golden[0])
	pattern := capturing(label)
	var found []*node
	for _, n := range m.golden.nodes {
		if pattern.MatchString(n.label) {
			found = append(found, n)
		}
	}
	wild := wildcard.MatchString(label)
	if !wild && len(found) > 1 {
		if whole := slices.IndexFunc(found, func(n *node) bool { return n.label == label }); whole >= 0 {
			found = found[whole : whole+1]
		} else {
			return fmt.Errorf("match: rule %s: golden %q is the end of %s: write more of it", r, label, quoted(found))
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("match: rule %s: the golden run has no layer %q%s", r, label, hint(label, m.golden))
	}
	var firstErr error
	done := 0
	for _, n := range found {
		captured := pattern.FindStringSubmatch(n.label)[1:]
		j := &joined{golden: []*node{n}, rule: r}
		err := m.findOthers(r, j, captured)
		if err == nil && port != "" {
			_, actual := splitPort(r.Candidate[0])
			j.ports = [2]string{port, actual}
			err = m.checkPorts(j)
		}
		if err == nil && port == "" {
			err = m.checkFree(j)
		}
		switch {
		case err != nil && firstErr == nil:
			firstErr = err
		case err == nil && port != "":
			m.joins = append(m.joins, j) // the other ports of the two layers are joined as ever
			done++
		case err == nil:
			m.add(j)
			done++
		}
	}
	if done == 0 || !wild && firstErr != nil {
		return fmt.Errorf("match: rule %s: %w", r, firstErr)
	}
	return nil
}

// findOthers fills in the nodes that go with the first golden one.
func (m *matcher) findOthers(r *Rule, j *joined, captured []string) error {
	for i, name := range r.others() {
		s := m.golden
		if i >= len(r.Golden)-1 {
			s = m.actual
		}
		label, _ := splitPort(name)
		n, err := s.find(substitute(label, captured))
		if err != nil {
			return err
		}
		if s == m.golden {
			j.golden = append(j.golden, n)
		} else {
			j.actual = append(j.actual, n)
		}
	}
	return nil
}

func (m *matcher) checkFree(j *joined) error {
	for _, n := range j.golden {
		if m.ofGolden[n] != nil {
			return fmt.Errorf("golden %q is in two rules", n.label)
		}
	}
	for _, n := range j.actual {
		if m.ofActual[n] != nil {
			return fmt.Errorf("candidate %q is in two rules", n.label)
		}
	}
	return nil
}

func (m *matcher) checkPorts(j *joined) error {
	has := func(s *side, n *node, port string) error {
		var ports []string
		for _, list := range n.passes {
			for _, i := range list {
				ports = append(ports, s.ports[i].Port)
			}
		}
		if slices.Contains(ports, port) {
			return nil
		}
		slices.Sort(ports)
		return fmt.Errorf("%s %q has no port %q, only %s", s.name, n.label, port, strings.Join(slices.Compact(ports), ", "))
	}
	return errors.Join(has(m.golden, j.golden[0], j.ports[0]), has(m.actual, j.actual[0], j.ports[1]))
}

// find gives the one layer of a name or of an end of it, as it is or in normal form.
func (s *side) find(name string) (*node, error) {
	form := "." + key(normal(name))
	var best []*node
	rank := 0
	for _, n := range s.nodes {
		r := 0
		switch {
		case n.label == name:
			r = 3
		case strings.HasSuffix(n.label, "."+name):
			r = 2
		case strings.HasSuffix("."+key(n.segs), form):
			r = 1
		}
		if r > rank {
			best, rank = nil, r
		}
		if r == rank && r > 0 {
			best = append(best, n)
		}
	}
	switch len(best) {
	case 1:
		return best[0], nil
	case 0:
		return nil, fmt.Errorf("the %s run has no layer %q%s", s.name, name, hint(name, s))
	}
	return nil, fmt.Errorf("%s %q is the end of %s: write more of it", s.name, name, quoted(best))
}

func hint(name string, s *side) string {
	if near, ok := nearest.Nearest(name, s.labels()); ok {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

var wildcard = regexp.MustCompile(`\*\*?`)

// capturing makes a regular expression of a pattern with * and **, which matches the end of a label at a dot.
func capturing(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s:^|\.)`)
	at := 0
	for _, w := range wildcard.FindAllStringIndex(pattern, -1) {
		b.WriteString(regexp.QuoteMeta(pattern[at:w[0]]))
		if w[1]-w[0] == 2 {
			b.WriteString(`(.*)`)
		} else {
			b.WriteString(`([^.]*)`)
		}
		at = w[1]
	}
	b.WriteString(regexp.QuoteMeta(pattern[at:]) + "$")
	return regexp.MustCompile(b.String())
}

// substitute puts what was captured in the place of the wildcards.
func substitute(pattern string, captured []string) string {
	return wildcard.ReplaceAllStringFunc(pattern, func(string) string {
		if len(captured) == 0 {
			return ""
		}
		s := captured[0]
		captured = captured[1:]
		return s
	})
}
