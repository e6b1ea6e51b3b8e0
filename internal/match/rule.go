package match

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Rule is one entry of names: in fixture.yaml. It joins layers that Runs cannot join by itself, or
// says how their outputs lie.
//
// Golden and Candidate are labels without call, or the end of labels at a dot; a single one may name
// one port as file names do ("model.pooler-output"). A * stands for a segment or a part of one, and
// ** for one or more of them. The n-th wildcard of the others takes what the n-th of the first
// Golden stood for, so {Golden: ["h.*.attn"], Candidate: ["layers.*.attention"]} renames all blocks.
//
// One golden and several candidates: the candidates' outputs are joined along Axis. Several and one:
// the candidate's output is cut along Axis into the golden ones' widths, in their order, and they
// share its input.
type Rule struct {
	Golden    []string `yaml:"golden" json:"golden"`
	Candidate []string `yaml:"candidate" json:"candidate"`
	Axis      *int     `yaml:"axis,-64..63" json:"axis,omitempty"`              // of a join or split, counted on the candidate; nil is the last
	Transpose []int    `yaml:"transpose,0..63" json:"transpose,omitempty"`      // order of the candidate's axes: axis i of the golden is its axis Transpose[i]
	Reshape   []int    `yaml:"reshape,-1..2147483647" json:"reshape,omitempty"` // shape that the candidate gets, after Transpose; one size may be -1, which is what is left
	Rows      string   `yaml:"rows,last" json:"rows,omitempty"`                 // "last": the candidate holds the last row of each sequence only
	Reason    string   `yaml:"reason" json:"reason"`
}

// LastRow is the value of Rule.Rows.
const LastRow = "last"

// String is the rule in short: "q, k, v = qkv".
func (r *Rule) String() string {
	return strings.Join(r.Golden, ", ") + " = " + strings.Join(r.Candidate, ", ")
}

// Validate says what is wrong with a rule by itself.
func (r *Rule) Validate() error {
	if what := r.wrong(); what != "" {
		return fmt.Errorf("match: rule %s: %s", r, what)
	}
	return nil
}

func (r *Rule) wrong() string {
	many := len(r.Golden) > 1 || len(r.Candidate) > 1
	switch {
	case len(r.Golden) == 0 || slices.Contains(r.Golden, ""):
		return "golden names no layer"
	case len(r.Candidate) == 0 || slices.Contains(r.Candidate, ""):
		return "candidate names no layer"
	case len(r.Golden) > 1 && len(r.Candidate) > 1:
		return "several layers on both sides: join or split, with one layer on one side"
	case many && r.lays():
		return "a join or split has no transpose, reshape or rows"
	case !many && r.Axis != nil:
		return "axis is for a join or split, with several layers on one side"
	case r.Rows != "" && r.Rows != LastRow:
		return fmt.Sprintf("rows: %q is unknown, want %q", r.Rows, LastRow)
	case slices.ContainsFunc(r.Reshape, func(d int) bool { return d < -1 }),
		len(keep(r.Reshape, func(d int) bool { return d == -1 })) > 1:
		return "reshape takes sizes, and -1 once for what is left"
	}
	if _, err := permuted(make([]int, len(r.Transpose)), r.Transpose); err != nil {
		return "transpose: " + err.Error()
	}
	for _, name := range slices.Concat(r.Golden, r.Candidate) {
		_, port := splitPort(name)
		switch {
		case !utf8.ValidString(name):
			return fmt.Sprintf("%q is not UTF-8", name)
		case wildcards(name) > wildcards(r.Golden[0]):
			return "a name has more wildcards than the first golden one"
		case many && port != "":
			return fmt.Sprintf("%q names a port: a join or split is of layers", name)
		}
	}
	_, golden := splitPort(r.Golden[0])
	if _, actual := splitPort(r.Candidate[0]); (golden == "") != (actual == "") {
		return "name a port on both sides or on none"
	}
	return ""
}

// Expand returns what the names of a rule stand for where the first Golden is this layer.
func (r *Rule) Expand(layer string) (golden, candidate []string, ok bool) {
	found := capturing(r.Golden[0]).FindStringSubmatch(layer)
	if found == nil {
		return nil, nil, false
	}
	fill := func(name string) string { return substitute(name, found[1:]) }
	return collect(r.Golden, fill), collect(r.Candidate, fill), true
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
func (r *Rule) layout(g, a *port, padding padMask) (placement, bool) {
	var v View
	if r.Transpose != nil {
		v = append(v, Op{Kind: Transpose, Order: r.Transpose})
	}
	if r.Reshape != nil {
		v = append(v, Reshaped(r.reshape(a.shape))...)
	}
	shape, err := v.Shape(a.shape)
	if err != nil || !sameKind(g, a) {
		return placement{}, false
	}
	f, ok := padding.Fit(g.shape, shape, allowance{LastRow: r.Rows == LastRow})
	f.Actual = append(v, f.Actual...)
	f.Note = join("by a rule", f.Note)
	return f, ok
}

// reshape fills in the size that is left, 0 if none fits.
func (r *Rule) reshape(shape []int) []int {
	out := slices.Clone(r.Reshape)
	at := slices.Index(out, -1)
	if at < 0 {
		return out
	}
	out[at] = 1
	total, err := tensor.NumElems(shape)
	rest, err2 := tensor.NumElems(out)
	if out[at] = 0; err == nil && err2 == nil && rest > 0 && total%rest == 0 {
		out[at] = total / rest
	}
	return out
}

// applyRules joins what the rules name. A rule without wildcards must find its layers, one with
// wildcards at least once.
func (m *matcher) applyRules() error {
	var errs []error
	for i := range m.opt.Rules {
		r := &m.opt.Rules[i]
		err := r.Validate()
		if err == nil {
			err = m.applyRule(r)
		}
		if lack := (*notOne)(nil); m.opt.Partial && errors.As(err, &lack) && len(lack.found) == 0 {
			m.Unused = append(m.Unused, fmt.Sprintf("the rule %s is left out: %v", r, lack))
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (m *matcher) applyRule(r *Rule) error {
	name, _ := splitPort(r.Golden[0])
	pattern, wild := capturing(name), wildcards(name) > 0
	found := m.golden.called(name)
	if wild {
		found = keep(m.golden.nodes, func(n *node) bool { return pattern.MatchString(n.label) })
	}
	if len(found) == 0 || !wild && len(found) > 1 {
		return fmt.Errorf("match: rule %s: %w", r, &notOne{m.golden, name, found})
	}
	errs := collect(found, func(n *node) error {
		captured := pattern.FindStringSubmatch(n.label) // nil for a name that is one in normal form only
		return m.applyTo(r, n, captured[min(1, len(captured)):])
	})
	if slices.Contains(errs, nil) {
		return nil
	}
	return fmt.Errorf("match: rule %s: %w", r, errs[0])
}

// applyTo joins what a rule names, from its first golden layer on.
func (m *matcher) applyTo(r *Rule, first *node, captured []string) error {
	j := &joined{golden: []*node{first}, rule: r}
	for i, name := range slices.Concat(r.Golden[1:], r.Candidate) {
		s, nodes := m.actual, &j.actual
		if i < len(r.Golden)-1 {
			s, nodes = m.golden, &j.golden
		}
		name, _ = splitPort(name)
		name = substitute(name, captured)
		found := s.called(name)
		if len(found) != 1 {
			return &notOne{s, name, found}
		}
		*nodes = append(*nodes, found[0])
	}
	_, j.ports[0] = splitPort(r.Golden[0])
	_, j.ports[1] = splitPort(r.Candidate[0])
	if j.ofPorts() {
		if err := errors.Join(j.golden[0].checkPort(j.ports[0]), j.actual[0].checkPort(j.ports[1])); err != nil {
			return err
		}
		m.joins = append(m.joins, j) // the other ports of the two layers are joined as ever
		return nil
	}
	for _, n := range j.nodes() {
		if n.join != nil {
			return fmt.Errorf("%s %q is in two rules", n.side.name, n.label)
		}
	}
	m.addJoin(j)
	return nil
}

// checkPort says which ports a layer has if this is none of them.
func (n *node) checkPort(name string) error {
	var ports []*port
	for _, c := range n.calls {
		ports = append(ports, slices.Concat(c.ports[:]...)...)
	}
	names := slices.Compact(sortedNames(ports))
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%s %q has no port %q, only %s", n.side.name, n.label, name, strings.Join(names, ", "))
}

// called returns the layer of a name or, if there is none, those whose labels end with it at a dot,
// as it is or in normal form.
func (s *side) called(name string) []*node {
	if n := s.named[name]; n != nil {
		return []*node{n}
	}
	if s.ends[0] == nil {
		s.ends = [2]map[string][]*node{{}, {}}
		for _, n := range s.nodes {
			for i, end := range [2]string{n.label, strings.Join(n.form, ".")} {
				for more := true; more; _, end, more = strings.Cut(end, ".") {
					s.ends[i][end] = append(s.ends[i][end], n)
				}
			}
		}
	}
	if found := s.ends[0][name]; len(found) > 0 {
		return found
	}
	return s.ends[1][strings.Join(normal(name), ".")]
}

// notOne is the error of a name that means no layer or several. Its text is made when it is read:
// it takes a search.
type notOne struct {
	side  *side
	name  string
	found []*node
}

func (e *notOne) Error() string {
	if len(e.found) > 0 {
		return fmt.Sprintf("%s %q is the end of %s: write more of it", e.side.name, e.name, quoted(e.found))
	}
	return fmt.Sprintf("the %s run has no layer %q%s", e.side.name, e.name, didYouMean(e.name, labels(e.side.nodes)))
}

func labels(nodes []*node) []string { return collect(nodes, func(n *node) string { return n.label }) }

var wildcard = regexp.MustCompile(`\*\*?`)

func wildcards(name string) int { return len(wildcard.FindAllStringIndex(name, -1)) }

// capturing makes a regular expression of a pattern with * and **, which matches the end of a label
// at a dot.
func capturing(pattern string) *regexp.Regexp {
	expr := strings.NewReplacer(`\*\*`, `(.*)`, `\*`, `([^.]*)`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s:^|\.)` + expr + "$")
}

// substitute puts what was captured in the place of the wildcards, and nothing where that is not
// enough.
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
