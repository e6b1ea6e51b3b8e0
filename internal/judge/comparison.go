package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
)

// ErrNothing says that the two sides have no port in common: a comparison of nothing never passes.
var ErrNothing = errors.New("nothing could be compared")

// NothingError is an [ErrNothing] with what each side has.
type NothingError struct {
	Unmatched report.Unmatched
	why       string
}

func (e *NothingError) Error() string { return ErrNothing.Error() + ": " + e.why }

func (e *NothingError) Unwrap() error { return ErrNothing }

// Options say how two runs are compared.
type Options struct {
	Match match.Options
	// Criteria returns what judges a port; nil for the defaults of package compare.
	Criteria CriteriaFunc
	// Coarser reports whether a port may be of a type that is coarser than the encoding of its run;
	// nil if none may.
	Coarser func(layer, port string, d tensor.DType) bool
	// Progress, if any, is told from several goroutines how many of all bytes have been compared.
	Progress  func(done, total int64)
	Diagnosis Diagnosis
	// Strict lets a local fault within the limits of its criteria fail: every piece of a program is replayed.
	Strict bool
	// Vacuous allows limits that other tensors than the golden keep, too, see [compare.Criteria.Vacuous].
	Vacuous bool
	// Scope says what must be compared for a pass, see [Comparison.Demand]. Each pattern must match a layer.
	Scope Scope
}

func (o *Options) criteria() CriteriaFunc {
	if o.Criteria != nil {
		return o.Criteria
	}
	return func(_, _ string, d tensor.DType) (compare.Criteria, string) { return compare.Default(d), "" }
}

// Comparison is everything that is known about the candidate's runs of a fixture.
type Comparison struct {
	Cases []Case
	joins
	Layers  *Layers           // the same ports, by layer
	Verdict *localise.Verdict // where the candidate leaves the reference; nil if nothing fails, or no place is known
	Live    bool              // the candidate ran now

	scope  Scope
	strict bool

	match   match.Options   // of all cases
	advise  sync.Once       // see suggest
	ctx     context.Context // of Compare; it also ends what is looked at later
	search  search          // for causes
	replays []*replayed     // of the cases that have a program, once something fails
	loaded  func() ([]weights.Result, []string)

	findings []finding
}

// Compare joins and measures all cases. The results do not depend on the number of cores. Files
// that changed since they were opened are an error, whatever was read of them.
func Compare(ctx context.Context, cases []Case, opt Options) (c *Comparison, err error) {
	err = mapfile.Guard(func() (err error) {
		c, err = compareRuns(ctx, cases, opt)
		return err
	})
	if gone := changed(cases); gone != nil { // it names the file
		err = gone
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Changed returns an error if a file of a run is not as it was when it was opened: tests may have
// read it since.
func (c *Comparison) Changed() error { return changed(c.Cases) }

func changed(cases []Case) error {
	for _, k := range cases {
		for _, r := range k.runs() {
			if err := r.Changed(); err != nil {
				return fmt.Errorf("case %s: %w: compare again when nothing writes it", k.Name, err)
			}
		}
	}
	return nil
}

func compareRuns(ctx context.Context, cases []Case, opt Options) (*Comparison, error) {
	for _, k := range cases {
		if err := k.standard(); err != nil {
			return nil, err
		}
	}
	cases = slices.Clone(cases)
	for i := range cases {
		cases[i].judged = cases[i].encoding()
	}
	js, err := joinAll(cases, opt.Match)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Cases: cases, joins: *js, ctx: ctx, search: search{Diagnosis: opt.Diagnosis}, scope: opt.Scope, strict: opt.Strict,
		match: opt.Match}
	c.search.Evidence, c.search.causes = c.search.Evidence.Once(), sync.OnceValue(c.findCauses)
	c.loaded = sync.OnceValues(c.compareLoaded)
	c.Layers = newLayers(c.Ports, c.missing)
	c.setNeighbours(opt.Vacuous)
	if err := c.checkScope(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Problem != "" || p.Joined() && p.Golden.Len() > 0 }) {
		if !c.textAlone() {
			return nil, &NothingError{c.Unmatched, c.whyNothing()}
		}
		return c, nil
	}
	if err := c.measure(opt); err != nil {
		return nil, err
	}
	for i := range cases {
		c.allowBoundaries(&cases[i])
	}
	c.judgeTokens()
	for _, k := range cases {
		if err := c.inject(k, opt.Match); err != nil {
			return nil, err
		}
	}
	if err := c.locate(); err != nil {
		return nil, err
	}
	c.noteEncoding()
	c.noteCosts()
	c.noteRounding()
	c.noteDoubts()
	return c, nil
}

// measure compares all joined ports, on all cores.
func (c *Comparison) measure(opt Options) error {
	size := func(p *Port) int64 {
		return int64(p.Golden.Len()*p.Golden.DType().Size() + p.Actual.Len()*p.Actual.DType().Size())
	}
	var total int64
	var done atomic.Int64
	var joined []*Port
	for _, p := range c.Ports {
		if p.Joined() {
			joined = append(joined, p)
			total += size(p)
		}
	}
	return vec.Each(c.ctx, len(joined), func(i int) error {
		p := joined[i]
		p.measure(opt)
		if opt.Progress != nil {
			opt.Progress(done.Add(size(p)), total)
		}
		if _, fault := errors.AsType[*compare.FaultError](p.Err); fault {
			return p.Err
		}
		return nil
	})
}

// Names lists the layers of both sides.
func (c *Comparison) Names() (names []string) {
	seen := map[string]bool{}
	for _, k := range c.Cases {
		for _, r := range k.sides() {
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
		return "all tensors that both sides have are empty (a 0 in the shape): dump a run with tokens"
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
	return fmt.Sprintf("no port of the golden (%s …) matches one of the candidate (%s …): parity names proposes rules that join them",
		names(c.Unmatched.Golden), names(c.Unmatched.Actual))
}

// injected is what a port was in the run on golden inputs: an output, or for an input what had been
// computed before it was replaced.
type injected struct {
	result compare.Result
	agrees bool
	// Of outputs: ‖a_injected − g‖, ‖a_standard − a_injected‖ and the cosine of the two errors;
	// hasSplit says that they are known.
	hasSplit                bool
	local, inherited, angle float64

	sides *sides
}

// inject compares the injected run of a case, port by port of the standard comparison.
func (c *Comparison) inject(k Case, opt match.Options) error {
	if k.Injected == nil {
		return nil
	}
	opt.Partial = true
	res, err := k.Match(k.Injected, opt)
	if err != nil {
		return fmt.Errorf("injected run: %w", err)
	}
	for _, rule := range res.Unused {
		c.Note("injected run: " + rule)
	}
	for _, pair := range res.Pairs {
		first := k.Golden.Entries[pair.Golden[0]]
		p := c.byKey[k.key(first.Step, first.Layer, first.Port)]
		if p == nil || pair.Problem != "" || p.Judged() == pair.Computed {
			continue // an input that was replaced is the golden one
		}
		in := &injected{sides: &sides{k.Golden, k.Injected, pair}}
		g, a, err := in.sides.views()
		if err != nil {
			return err
		}
		if in.result, err = compare.Tensors(g, a, compare.Tolerance{}); err != nil {
			return err
		}
		in.agrees = in.result.Agrees(p.floor())
		if p.Joined() && p.Judged() {
			if d, err := compare.Tensors(a, p.Actual, compare.Tolerance{}); err == nil {
				in.split(d.NormDiff, p.Base.Result.NormDiff)
			}
		}
		p.Injected = in
	}
	return nil
}

// split sets the two parts of the standard run's error, e_standard = e_local + e_inherited. Norms
// are not subtracted; the cosine follows from the three of them.
func (in *injected) split(inherited, standard float64) {
	in.hasSplit, in.local, in.inherited = true, in.result.NormDiff, inherited
	if p := in.local * inherited; p > 0 {
		in.angle = math.Max(-1, math.Min(1, (standard*standard-in.local*in.local-inherited*inherited)/(2*p)))
	}
}
