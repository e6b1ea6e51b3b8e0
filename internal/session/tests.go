package session

import (
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/judge"
)

// tests are the names of the tests that judged a fixture, by what they judged: nil where nothing was
// compared. They end at the same time where tests run in parallel.
type tests struct {
	mu sync.Mutex
	by map[*judge.Comparison][]string
}

// Tested says that a test has judged a comparison of the fixture, nil if there is none.
func (f *Fixture) Tested(c *judge.Comparison, test string) {
	f.tests.mu.Lock()
	defer f.tests.mu.Unlock()
	if f.tests.by == nil {
		f.tests.by = map[*judge.Comparison][]string{}
	}
	f.tests.by[c] = append(f.tests.by[c], test)
}

// of lists the tests of a comparison, and those that compared nothing: their subtests are of the
// fixture's own report.
func (t *tests) of(c *judge.Comparison) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.Concat(t.by[c], t.by[nil])
	slices.Sort(names)
	return slices.Compact(names)
}
