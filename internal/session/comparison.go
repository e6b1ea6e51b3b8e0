package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// ErrNothing says that the two sides have no port in common: a comparison of nothing never passes.
var ErrNothing = errors.New("nothing could be compared")

// Case is one prompt: the reference's run and the candidate's.
type Case struct {
	Name           string
	Golden, Actual *dump.Run
	Injected       *dump.Run // the candidate on golden inputs, nil if there is none
	Golden64       *dump.Run // the reference in float64, nil if there is none
}

// Options say how two runs are compared.
type Options struct {
	Match match.Options
	// Criteria gives what judges a port, and where that was written, "" for the defaults of package compare. nil: the defaults.
	Criteria func(layer, port string, golden, actual tensor.DType) (compare.Criteria, string)
	// Progress is told how many bytes of all have been compared; nil is silent. It is called from several goroutines.
	Progress func(done, total int64)
	// Diagnosis is what the search for causes is given.
	Diagnosis Diagnosis
}

// Comparison is everything that is known about the candidate's runs of a fixture.
type Comparison struct {
	Cases     []Case
	Ports     []*Port // of all cases and steps, in the golden's execution order; those that only the golden has too
	Verdict   *localise.Verdict
	Notes     []string
	Order     *report.Order
	Unmatched report.Unmatched

	ctx        context.Context // of Compare: what is looked at later ends with it too
	diagnosis  Diagnosis
	diagnosing sync.Once
	causes     []diagnose.Cause // once diagnosed
	causeNotes []string

	live    bool              // the candidate ran now
	missing map[string]string // golden layer that was not joined → why

	mu     sync.Mutex
	absent []*Port // ports that must be there and are not

	indexing sync.Once
	several  bool
	runs     map[string][]LayerRun // by layer
}

// Compare matches and judges all cases. The results do not depend on the number of cores.
func Compare(ctx context.Context, cases []Case, opt Options) (*Comparison, error) {
	c := &Comparison{Cases: cases, missing: map[string]string{}, ctx: ctx, diagnosis: opt.Diagnosis}
	for _, k := range cases {
		if err := c.match(k, opt.Match); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Problem != "" || p.Joined() && p.Golden.Len() > 0 }) {
		return nil, fmt.Errorf("%w: %s", ErrNothing, c.whyNothing())
	}
	if err := c.judge(ctx, opt); err != nil {
		return nil, err
	}
	c.excuse()
	for _, k := range cases {
		if err := c.inject(k, opt.Match); err != nil {
			return nil, err
		}
	}
	if err := c.locate(ctx); err != nil {
		return nil, err
	}
	c.sanity()
	return c, nil
}

// judge compares all joined ports, on all cores.
func (c *Comparison) judge(ctx context.Context, opt Options) error {
	criteria := opt.Criteria
	if criteria == nil {
		criteria = func(_, _ string, g, a tensor.DType) (compare.Criteria, string) {
			return compare.Default(g, a), ""
		}
	}
	var total int64
	var done atomic.Int64
	var todo []*Port
	for _, p := range c.Ports {
		if p.Joined() {
			todo = append(todo, p)
			total += size(p)
		}
	}
	return each(ctx, len(todo), func(i int) error {
		p := todo[i]
		p.limits(criteria)
		p.Base, p.Err = p.judge(p.Criteria)
		p.Agrees = p.Err == nil && p.agrees()
		if opt.Progress != nil {
			opt.Progress(done.Add(size(p)), total)
		}
		return nil
	})
}

func size(p *Port) int64 {
	return int64(p.Golden.Len()*p.Golden.DType().Size() + p.Actual.Len()*p.Actual.DType().Size())
}

// joined lists the outputs that two runs have in common, without comparing them.
func joined(cases []Case, opt match.Options) (map[portKey]bool, error) {
	c := &Comparison{missing: map[string]string{}}
	for _, k := range cases {
		if err := c.match(k, opt); err != nil {
			return nil, err
		}
	}
	set := map[portKey]bool{}
	for _, p := range c.Ports {
		if p.Joined() && p.Judged() {
			set[p.key()] = true
		}
	}
	return set, nil
}

// require marks the ports of a set that were not joined this time, and gives their layers.
func (c *Comparison) require(set map[portKey]bool) (lost []string) {
	for _, p := range c.Ports {
		if p.Actual == nil && set[p.key()] {
			c.absent = append(c.absent, p)
			if !slices.Contains(lost, p.Layer) {
				lost = append(lost, p.Layer)
			}
		}
	}
	return lost
}

// names lists the layers of both sides.
func (c *Comparison) names() []string {
	seen := map[string]bool{}
	var names []string
	for _, k := range c.Cases {
		for _, r := range []*dump.Run{k.Golden, k.Actual} {
			for _, e := range r.Entries {
				if !seen[e.Layer] {
					seen[e.Layer] = true
					names = append(names, e.Layer)
				}
			}
		}
	}
	return names
}

func (c *Comparison) whyNothing() string {
	if slices.ContainsFunc(c.Ports, (*Port).Joined) {
		return "all tensors that both sides have are empty, their shapes have a 0: dump a run with tokens"
	}
	for _, k := range c.Cases {
		g, a := k.Golden.Steps(), k.Actual.Steps()
		if !slices.ContainsFunc(g, func(s string) bool { return slices.Contains(a, s) }) {
			return fmt.Sprintf("the golden has the steps %s, the candidate has %s: give the folder of one step on each side",
				strings.Join(g, ", "), strings.Join(a, ", "))
		}
	}
	names := func(l []report.Lone) string {
		var s []string
		for _, u := range l[:min(3, len(l))] {
			s = append(s, u.Name)
		}
		return strings.Join(s, ", ")
	}
	return fmt.Sprintf("no port of the golden (%s …) is like one of the candidate (%s …): join them with names rules in fixture.yaml",
		names(c.Unmatched.Golden), names(c.Unmatched.Actual))
}
