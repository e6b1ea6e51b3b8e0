package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// AloneOptions say how a golden is made of a program.
type AloneOptions struct {
	Options
	// Wants reports whether the ports of a layer are judged; nil: all are. The others are sources alone.
	Wants func(layer string) bool
	// Keep stores what was replayed, so that it need not be in memory; nil keeps it there.
	Keep func(*tensor.Tensor) (*tensor.Tensor, error)
}

// Alone completes a case that has a program and a candidate, and whose golden has no numbers. The golden of each
// port is what its piece makes of the candidate's own tensors: the metrics of a comparison are then local
// errors. What cannot be replayed is not judged, and its golden is what the candidate has. The golden
// notes how much that is. Along execution paths, the golden's rows are those of one pass of the program over what
// the candidate has, laid out as that. Progress is told of ports.
func Alone(ctx context.Context, k Case, opt AloneOptions) (Case, error) {
	k.alone, k.unjudged = true, map[localise.Key]string{}
	cases := []Case{k}
	a := &alone{AloneOptions: opt, ctx: ctx, k: &cases[0], reasons: map[string]int{}}
	a.Diagnosis.Evidence = a.Diagnosis.Evidence.Once()
	err := a.complete(cases)
	return cases[0], err
}

// complete makes the golden of the case.
func (a *alone) complete(cases []Case) error {
	k := a.k
	js, err := joinAll(cases, a.Match)
	if err != nil {
		return err
	}
	c := &Comparison{Cases: cases, joins: *js, search: search{Diagnosis: a.Diagnosis}}
	if !slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Comparable() || p.Problem != "" }) {
		return &NothingError{js.Unmatched, c.whyNothing()}
	}
	layouts, err := c.layouts(k)
	if err != nil {
		return err
	}
	for _, r := range layouts {
		a.all = append(a.all, &own{alone: a, replayed: r, golden: make([]*tensor.Tensor, len(r.records)),
			made: map[program.ID]*tensor.Tensor{}})
	}
	if err := a.replay(); err != nil {
		return err
	}
	golden := k.Golden
	if k.Along != nil {
		golden, err = a.along()
	} else {
		blank := func(at program.Port) *tensor.Tensor { return c.byKey[k.key(at.Step, at.Layer, at.Name)].entry }
		golden = dump.New(golden.Path, golden.Info, golden.OrderBy, a.all[0].entries(blank))
	}
	if err != nil {
		return err
	}
	golden.Notes, k.Golden = k.Golden.Notes, golden
	return a.finish()
}

// alone makes the golden of one case.
type alone struct {
	AloneOptions
	ctx     context.Context
	k       *Case
	all     []*own
	reasons map[string]int // why pieces were not replayed
	count   int            // how many were
}

// along puts what was replayed of all passes where the candidate's path has its rows.
func (a *alone) along() (*dump.Run, error) {
	type turn struct { // of all sequences of a sheet
		sheet *path.Sheet
		n     int
	}
	turns := map[turn][]*own{}
	for _, o := range a.all {
		at := turn{o.laid.sheet, o.laid.turn}
		turns[at] = append(turns[at], o)
	}
	made := map[[2]int]*path.Sheet{} // by forward pass of the candidate, and sequence
	along := a.k.Along
	for at, of := range turns {
		s, err := at.sheet.With(laidEntries(at.sheet, of), along.Sheet)
		if err != nil {
			return nil, err
		}
		for _, o := range of {
			for _, cell := range o.laid.Grid.Cells {
				if cell.Run != nil {
					for _, i := range cell.Run.Items {
						made[[2]int{i.Pass, cell.Run.Sequence}] = s
					}
				}
			}
		}
	}
	return along.found.With(along.Sheet, func(p *path.Pass, i dump.PassItem) *path.Sheet {
		return made[[2]int{along.Index(p.Step), i.Sequence}]
	})
}

// laidEntries are those of a golden whose passes were replayed; those of the others have no numbers.
func laidEntries(sheet *path.Sheet, of []*own) (entries []dump.Entry) {
	blank := func(at program.Port) *tensor.Tensor { return sheet.Recorded(at.Step, at.Layer, at.Name) }
	laid := map[string]bool{}
	for _, o := range of {
		for _, e := range o.entries(blank) {
			laid[e.Step] = true
			entries = append(entries, e)
		}
	}
	for _, at := range of[0].Ports {
		if t := blank(at); !laid[at.Step] && t != nil {
			entries = append(entries, dump.Entry{Step: at.Step, Layer: at.Layer, Port: at.Name, Tensor: t})
		}
	}
	return entries
}

// replay replays the pieces of all layouts.
func (a *alone) replay() error {
	total, done := int64(0), int64(0)
	for _, o := range a.all {
		total += int64(len(o.records))
	}
	for _, o := range a.all {
		defer o.replayed.done()
		for i := range o.records {
			if err := mapfile.Guard(func() error { return o.port(i) }); err != nil {
				return err
			}
			if done++; a.Progress != nil {
				a.Progress(done, total)
			}
		}
	}
	return nil
}

// own is a program with what was made of what the candidate has for it.
type own struct {
	*alone
	*replayed
	golden []*tensor.Tensor              // by port of the program; nil where the candidate has nothing
	made   map[program.ID]*tensor.Tensor // what was replayed, by value
}

// port replays the piece of a port.
func (o *own) port(i int) error {
	r := &o.records[i]
	ports := o.ports[i]
	if !slices.ContainsFunc(ports, (*Port).Comparable) || slices.ContainsFunc(ports, (*Port).misfit) {
		return nil
	}
	unjudged := func(why string) error {
		for _, p := range ports {
			o.alone.k.unjudged[p.Key] = why
		}
		if r.Tensor == nil { // else the placeholder has the right shape
			return nil
		}
		t, err := r.Tensor.Tensor()
		o.golden[i] = t
		return err
	}
	if o.Wants != nil && !o.Wants(ports[0].Layer) {
		return unjudged("not asked for")
	}
	cut := o.Piece(i, func(j int) bool { return o.records[j].Tensor != nil })
	made, err := replay.Run(o.ctx, cut, func(v *program.Value) (*replay.Array, error) {
		if v.Record > 0 {
			return o.records[v.Record-1].Tensor, nil
		}
		return o.load(v)
	}, replay.Mode{})
	if cause := context.Cause(o.ctx); cause != nil {
		return cause
	}
	if err != nil {
		o.reasons[reason(err)]++
		if ports[0].Judged() {
			o.alone.k.opaque++
		}
		return unjudged("it cannot be replayed: " + err.Error())
	}
	o.count++
	if r.Complete != nil && r.Tensor != nil {
		if r.Tensor, err = r.Complete(made); err != nil {
			return err
		}
	}
	t, err := made.Tensor()
	if err == nil && o.Keep != nil {
		t, err = o.Keep(t)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ports[0].Layer, err)
	}
	o.golden[i] = t
	if id := o.Ports[i].Value; o.made[id] == nil {
		o.made[id] = t
	}
	return nil
}

// entries are those of the golden. Of a port that the candidate lacks it is what was replayed for the same
// value, or else a placeholder, which is compared with nothing.
func (o *own) entries(blank func(program.Port) *tensor.Tensor) (entries []dump.Entry) {
	for i, at := range o.Program.Ports {
		if len(o.ports[i]) == 0 {
			continue
		}
		t := cmp.Or(o.golden[i], o.made[at.Value])
		if t == nil {
			if label.RoleOf(at.Name) == label.RoleTap {
				continue // such as a cache, which is recorded where someone asks for it
			}
			t = blank(at)
		}
		entries = append(entries, dump.Entry{Step: at.Step, Layer: at.Layer, Port: at.Name, Tensor: t})
	}
	return entries
}

// opaque says what was not judged of runs without a golden: an error there shows nowhere else.
func (c *Comparison) opaque() (open []string) {
	for _, k := range c.Cases {
		if k.opaque > 0 {
			open = append(open, fmt.Sprintf("%d outputs of case %s were not replayed, and without a golden nothing else shows an error there", k.opaque, k.Name))
		}
	}
	return open
}

// reason is why a piece cannot be replayed, without its place.
func reason(err error) string {
	if e, is := errors.AsType[*replay.OpaqueError](err); is && e.Op != "" {
		return e.Op + ": " + e.Reason
	}
	return err.Error()
}

// finish says what was judged.
func (a *alone) finish() error {
	note := func(format string, args ...any) {
		a.k.Golden.Notes = append(a.k.Golden.Notes, fmt.Sprintf("case %s: ", a.k.Name)+fmt.Sprintf(format, args...))
	}
	note("judged without a golden: %d of the candidate's tensors are held against what the reference's program (%s) makes of its own tensors before them; "+
		"the model's output was not compared end to end", a.count, a.all[0].Engine)
	reasons := slices.Sorted(maps.Keys(a.reasons))
	for _, why := range reasons {
		note("%d tensors could not be replayed, and are not judged: %s", a.reasons[why], why)
	}
	if a.count == 0 {
		return fmt.Errorf("case %s: %w: no piece could be replayed: %s", a.k.Name, ErrNothing, strings.Join(reasons, "; "))
	}
	return nil
}
