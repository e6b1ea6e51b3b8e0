package path

import (
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// Segment is a part of a sequence that a forward pass fed: its tokens From ≤ i < To are the rows from
// At on of the pass.
type Segment struct {
	Pass     *Pass
	From, To int
	At       int
}

// History lists the parts of a sequence up to a forward pass, since it began with an empty cache,
// first to last. What the prefix cache held is a part of the sequence that left it there. It is nil
// where not all of them are known.
func (s *Sheet) History(sequence, pass int) (list []Segment) {
	for k := pass; k >= 0; k-- {
		p := s.Passes[k]
		i := p.Index(sequence)
		if i < 0 {
			continue
		}
		item := p.Items[i]
		list = append(list, Segment{p, item.From, item.To, p.Offset(i)})
		if item.CachedTokens > 0 {
			list = append(list, s.cached(sequence, k, item.CachedTokens)...)
			break
		}
		if item.From == 0 {
			break
		}
	}
	slices.Reverse(list)
	at := 0
	for _, seg := range list {
		if seg.From != at {
			return nil
		}
		at = seg.To
	}
	return list
}

// cached is the history, last to first, of the first n tokens of a sequence in another one that an
// earlier pass fed.
func (s *Sheet) cached(sequence, pass, n int) (list []Segment) {
	tokens := s.Tokens[sequence]
	for k := pass - 1; k >= 0; k-- {
		for _, item := range s.Passes[k].Items {
			other := s.Tokens[item.Sequence]
			if item.Sequence == sequence || item.To < n || !slices.Equal(other[:n], tokens[:n]) {
				continue
			}
			for _, seg := range s.History(item.Sequence, k) {
				if seg.From < n {
					seg.To = min(seg.To, n)
					list = append(list, seg)
				}
			}
			slices.Reverse(list)
			return list
		}
	}
	return nil
}

// Offset is the first row of an item.
func (p *Pass) Offset(item int) (at int) {
	for _, i := range p.Items[:item] {
		at += i.To - i.From
	}
	return at
}

// Padding returns the rows of a port that are padding of an item, as the run recorded them, and
// whether they stand before its tokens; nil if there are none, or the port has no rows of tokens.
func (s *Sheet) Padding(p *Pass, item int, layer, port string) (rows *tensor.Tensor, left bool) {
	a := s.axes[nameKey{layer, port}]
	if p.grid == nil || a < 0 {
		return nil, false
	}
	i := slices.IndexFunc(s.raw.Entries, func(e dump.Entry) bool { return e.Step == p.Step && e.Layer == layer && e.Port == port })
	if i < 0 {
		return nil, false
	}
	line := slices.IndexFunc(p.grid, func(row []bool) bool { return &row[0] == &sequences(p.grid)[item][0] })
	t, err := s.raw.Entries[i].Tensor.Slice(0, line, line+1)
	if err != nil || t.Shape()[a] != len(p.grid[line]) {
		return nil, false
	}
	n := real(p.grid[line])
	from, to := n, len(p.grid[line])
	if left = !p.grid[line][0]; left {
		from, to = 0, to-n
	}
	if from == to {
		return nil, false
	}
	if t, err = t.Slice(int(a), from, to); err != nil {
		return nil, false
	}
	return t, left
}
