package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/tensor"
)

// goldens reads the goldens of a fixture as runs, each once.
type goldens struct {
	store *golden.Store

	mu       sync.Mutex
	runs     map[[2]string]*dump.Run        // by variant and case
	programs map[[2]string]*program.Program // alike; nil where there is none
}

// program returns what the reference ran for the goldens of a case; nil if that was not recorded, or
// cannot be used.
func (g *goldens) program(ctx context.Context, variant, caseName string) (*program.Program, error) {
	run, err := g.run(variant, caseName)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := [2]string{variant, caseName}
	p, known := g.programs[key]
	if !known {
		p = reference.InStore(ctx, g.store, variant, caseName, run)
		if g.programs == nil {
			g.programs = map[[2]string]*program.Program{}
		}
		g.programs[key] = p
	}
	return p, nil
}

// GoldenRun returns the goldens of a case of a variant as a run, whose tensors are those of the store.
func GoldenRun(store *golden.Store, variant, caseName string) (*dump.Run, error) {
	return (&goldens{store: store}).run(variant, caseName)
}

// run returns the goldens of a variant and case.
func (g *goldens) run(variant, caseName string) (*dump.Run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := [2]string{variant, caseName}
	if r := g.runs[key]; r != nil {
		return r, nil
	}
	r, err := g.read(variant, caseName)
	if err != nil {
		return nil, err
	}
	if g.runs == nil {
		g.runs = map[[2]string]*dump.Run{}
	}
	g.runs[key] = r
	return r, nil
}

// read makes a run of the goldens of a case. Their hashes are checked: a damaged golden judges
// nothing.
func (g *goldens) read(variant, caseName string) (*dump.Run, error) {
	steps := g.store.Steps(variant, caseName)
	if len(steps) == 0 {
		_, err := g.store.Pass(variant, caseName, "0")
		return nil, err
	}
	var entries []dump.Entry
	var info dump.Info
	var texts []dump.Text
	var note string
	for _, s := range steps {
		pass, err := g.store.Pass(variant, caseName, s)
		if err != nil {
			return nil, err
		}
		p := pass.Provenance
		note = blessed(p.Engine, p.Date, p.Blessed)
		info = dump.Info{Engine: p.Engine, Versions: p.Versions, Device: p.Device, Encoding: fixture.EncodingOf(variant), Attention: p.Attention, Case: caseName, ReferenceText: p.Text, TokenIDs: p.TokenIDs, PadMask: p.PadMask, Date: p.Date, Nonce: p.Nonce, Mode: dump.Standard,
			Path: p.Path, PadMasks: p.PadMasks}
		if p.Passes != nil {
			if err := json.Unmarshal(p.Passes, &info.Passes); err != nil {
				return nil, fmt.Errorf("golden: %s: passes of %s: %w", g.store.Dir(), pass.File, err)
			}
		}
		if p.Activations != nil {
			err := json.Unmarshal(p.Activations, &info.Activations)
			if err := cmp.Or(err, info.Activations.Check()); err != nil {
				return nil, fmt.Errorf("golden: %s: activations of %s: %w", g.store.Dir(), pass.File, err)
			}
		}
		if p.Texts != nil {
			if err := json.Unmarshal(p.Texts, &texts); err != nil {
				return nil, fmt.Errorf("golden: %s: text of %s: %w", g.store.Dir(), pass.File, err)
			}
		}
		tensors, err := g.store.Tensors(variant, caseName, s)
		if err != nil {
			return nil, err
		}
		if err := verify(tensors); err != nil {
			return nil, err
		}
		for _, e := range tensors {
			t, err := e.Tensor()
			if err != nil {
				return nil, err
			}
			entries = append(entries, dump.Entry{Step: s, Layer: e.Layer, Port: e.Port, Tensor: t})
		}
	}
	info.Text = texts
	if _, of := dump.CutPathCase(caseName); of && caseName == dump.PathCase(baseOf(caseName), dump.Generated) {
		if err := generated(&info, entries); err != nil {
			return nil, fmt.Errorf("golden: %s: %s of case %s: %w", g.store.Dir(), variant, caseName, err)
		}
	}
	run := dump.New(g.store.Dir(), info, dump.OrderRunFile, entries)
	run.Watch(g.store.Changed)
	if note != "" {
		run.Notes = append(run.Notes, note)
	}
	return run, nil
}

// of returns the goldens of a case of a variant; nil if there are none, or the variant is "".
func (g *goldens) of(variant, caseName string) (*dump.Run, error) {
	if variant == "" || !slices.Contains(g.store.Variants(caseName), variant) {
		return nil, nil
	}
	return g.run(variant, caseName)
}

// beside returns the goldens of a case in another type than the judging variant's; nil if there are
// none.
func (g *goldens) beside(judging string, other tensor.DType, caseName string) (*dump.Run, error) {
	if judging == other.String() {
		return nil, nil
	}
	return g.of(other.String(), caseName)
}

// verify checks the hashes of tensors, on all cores. Equal tensors lie in one place and are read
// once.
func verify(tensors []golden.Entry) error {
	seen := map[int64]bool{}
	var todo []golden.Entry
	for _, e := range tensors {
		if !seen[e.Offset] || e.Length == 0 {
			seen[e.Offset] = true
			todo = append(todo, e)
		}
	}
	return each.Do(context.Background(), len(todo), func(i int) error { return todo[i].Verify() })
}
