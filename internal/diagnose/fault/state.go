package fault

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// states lists attention over other keys and values than the tokens fed so far have, in a forward
// pass of an execution path.
type states struct {
	List
	o    *rebuild.Attention
	mask *op.Mask
	fed  *diagnose.Fed
	n    int // tokens of the sequence
}

// State is a KV cache that holds, or shows, something else.
func State(o *rebuild.Attention) List {
	fed := o.Scene().Fed
	if fed == nil || fed.Steps || o.Sequences != 1 || o.Axis != op.OverKeys || o.Tokens > longestCache {
		return nil
	}
	s := &states{o: o, mask: o.Mask, fed: fed, n: o.Tokens}
	if fed.From > 0 {
		s.chunks()
		s.hidden()
		s.moved()
		s.windows()
		s.positions()
	}
	s.foreign()
	s.padding()
	return s.List
}

// allows reports whether the reference lets a token see another one.
func (s *states) allows(t, key int) bool { return s.mask.Allow == nil || s.mask.Allow(0, t, key) }

// own returns the slots of the sequence's own tokens.
func (s *states) own(k, v *rebuild.Rows) []rebuild.Slot {
	slots := make([]rebuild.Slot, s.n)
	for i := range slots {
		slots[i] = rebuild.Slot{K: k, V: v, KAt: i, VAt: i, Position: float64(i), Token: i}
	}
	return slots
}

// state appends a fault.
func (s *states) state(id string, rank int, text string, of func(k, v *rebuild.Rows) *rebuild.Cache) {
	s.add(s.o.Over(of), rank-1, "%s", text).ID = id // before what is no matter of state, and fits as well
}

// sees appends a fault that shows other tokens of the sequence.
func (s *states) sees(id string, rank int, text string, seen func(t, key int) bool) {
	s.state(id, rank, text, func(k, v *rebuild.Rows) *rebuild.Cache { return &rebuild.Cache{Slots: s.own(k, v), Seen: seen} })
}

// holds appends a fault that puts other keys and values into the slots in front of the forward pass.
func (s *states) holds(id string, rank int, text string, change func(slot *rebuild.Slot, at int)) {
	s.state(id, rank, text, func(k, v *rebuild.Rows) *rebuild.Cache {
		slots := s.own(k, v)
		for i := range slots {
			change(&slots[i], i)
		}
		return &rebuild.Cache{Slots: slots, Seen: s.allows}
	})
}

// chunks are forward passes that do not see what came before, or see what comes after.
func (s *states) chunks() {
	const id = "state/chunk"
	from := s.fed.From
	s.sees(id, 0, "a forward pass does not see what earlier ones fed", func(t, key int) bool { return s.allows(t, key) && key >= from })
	if s.n-from > 1 {
		s.sees(id, 0, "the tokens of a forward pass see those that come after them in it", func(t, key int) bool { return s.allows(t, key) || key >= from })
		s.sees(id, 1, "the tokens of a forward pass see what comes after them in it, and nothing before it", func(_, key int) bool { return key >= from })
		s.sees(id, 1, "the mask of a forward pass counts from 0: its tokens see the first ones of the cache, as many as stand before them in it",
			func(t, key int) bool { return key <= t-from })
		s.sees(id, 1, "the tokens of a forward pass see what earlier ones fed, and not each other", func(t, key int) bool { return s.allows(t, key) && key < from })
	}
}

// hidden are tokens of the cache that are not seen.
func (s *states) hidden() {
	const id = "state/slot"
	from := s.fed.From
	drop := func(rank int, text string, gone func(t, key int) bool) {
		s.sees(id, rank, text, func(t, key int) bool { return s.allows(t, key) && !gone(t, key) })
	}
	drop(0, "the last token that earlier forward passes fed is not seen: the cache is taken to be one shorter", func(_, key int) bool { return key == from-1 })
	drop(1, "the first token of the cache is not seen", func(_, key int) bool { return key == 0 })
	drop(0, "no token sees itself: it is written behind what is read", func(t, key int) bool { return key == t })
	if from > 2 {
		drop(2, "the last two tokens that earlier forward passes fed are not seen", func(_, key int) bool { return key == from-1 || key == from-2 })
	}
}

// moved are keys and values that lie in other slots.
func (s *states) moved() {
	const id = "state/slot"
	from := s.fed.From
	put := func(slot *rebuild.Slot, k, v int) {
		if k >= 0 {
			slot.KAt, slot.Position = k, float64(k)
		}
		if v >= 0 {
			slot.VAt = v
		}
	}
	late := func(at int) int {
		if at >= from {
			return at
		}
		return max(at-1, 0)
	}
	early := func(at int) int {
		if at >= from-1 {
			return at
		}
		return at + 1
	}
	for _, m := range []struct {
		text string
		of   func(int) int
	}{{"lie a slot late: the first is there twice, the last is lost", late}, {"lie a slot early: the first is lost, the last is there twice", early}} {
		s.holds(id, 0, "the keys and values of earlier forward passes "+m.text, func(slot *rebuild.Slot, at int) { put(slot, m.of(at), m.of(at)) })
		s.holds(id, 0, "the keys of earlier forward passes "+m.text, func(slot *rebuild.Slot, at int) { put(slot, m.of(at), -1) })
		s.holds(id, 0, "the values of earlier forward passes "+m.text, func(slot *rebuild.Slot, at int) { put(slot, -1, m.of(at)) })
	}
	shift := func(at int) int {
		if at == 0 || at >= from {
			return -1
		}
		return at - 1
	}
	s.holds(id, 1, "the keys and values of earlier forward passes lie a slot late, with zeros in the first", func(slot *rebuild.Slot, at int) {
		if at == 0 {
			*slot = rebuild.Slot{Token: at}
		} else if to := shift(at); to >= 0 {
			put(slot, to, to)
		}
	})
	s.holds(id, 1, "the slot of the last token that earlier forward passes fed holds zeros", func(slot *rebuild.Slot, at int) {
		if at == from-1 {
			*slot = rebuild.Slot{Token: at}
		}
	})
	s.holds(id, 1, "the slots of the forward pass's own tokens hold zeros: they are not written before they are read", func(slot *rebuild.Slot, at int) {
		if at >= from {
			*slot = rebuild.Slot{Token: at}
		}
	})
	s.holds(id, 1, "the first token of the forward pass is written over the last one before it", func(slot *rebuild.Slot, at int) {
		if at == from-1 {
			put(slot, from, from)
		}
	})
	s.holds(id, 1, "the first token of the forward pass is written over the first one of the cache", func(slot *rebuild.Slot, at int) {
		if at == 0 {
			put(slot, from, from)
		}
	})
	s.holds(id, 2, "the keys and values of earlier forward passes lie in turned order", func(slot *rebuild.Slot, at int) {
		if at < from {
			put(slot, from-1-at, from-1-at)
		}
	})
}

// windows are other sliding windows, seen only where one is crossed.
func (s *states) windows() {
	const id = "state/window"
	w := s.mask.Window
	add := func(rank, size int, text string) {
		s.sees(id, rank, text, func(t, key int) bool { return key <= t && t-key < size })
	}
	if w == 0 || !s.mask.Causal {
		return
	}
	add(0, s.n, "the sliding window is not there: the cache keeps what lies in front of it")
	for _, by := range []int{1, -1, 2, -2} {
		if w+by > 0 {
			add(0, w+by, fmt.Sprintf("the sliding window is %d tokens and not %d", w+by, w))
		}
	}
	for _, size := range []int{2 * w, w / 2} {
		if size > 0 {
			add(0, size, fmt.Sprintf("the sliding window is %d tokens and not %d", size, w))
		}
	}
	s.holds(id, 2, "the ring of the sliding window is written one slot further on", func(slot *rebuild.Slot, at int) {
		if at >= w {
			slot.KAt, slot.VAt, slot.Position = at-1, at-1, float64(at-1)
		}
	})
}

// positions are rotations of the forward pass by other positions. The keys of earlier ones keep what
// they were rotated by.
func (s *states) positions() {
	if !isRotated(s.o) {
		return
	}
	const id = "state/position"
	from := s.fed.From
	add := func(rank int, text string, q, k func(t int) float64) {
		s.state(id, rank, text, func(key, value *rebuild.Rows) *rebuild.Cache {
			slots := s.own(key, value)
			for t := from; t < s.n; t++ {
				slots[t].Position = k(t)
			}
			return &rebuild.Cache{Slots: slots, Seen: s.allows, Position: q}
		})
	}
	place := func(t int) float64 { return float64(t) }
	moved := func(by int) func(t int) float64 { return func(t int) float64 { return float64(t + by) } }
	add(0, "the positions of the forward pass begin at 0 again", moved(-from), moved(-from))
	add(1, "all tokens of the forward pass have the position of its first", func(int) float64 { return float64(from) }, func(int) float64 { return float64(from) })
	offsets := []int{1, -1, 2, -2, 3, -3}
	if p := s.fed.Padding; p > 3 {
		offsets = append(offsets, p, -p)
	}
	for _, by := range offsets {
		if by == -from {
			continue
		}
		text := fmt.Sprintf("the positions of the forward pass are off by %+d", by)
		add(max(abs(by)-1, 0), text, moved(by), moved(by))
		add(abs(by)+1, text+", those of q alone", moved(by), place)
		add(abs(by)+1, text+", those of k alone", place, moved(by))
	}
	add(2, "the positions of q begin at 0 again in the forward pass", moved(-from), place)
	add(2, "the positions of k begin at 0 again in the forward pass", place, moved(-from))
}

// foreign are keys and values of another sequence, or of the run before.
func (s *states) foreign() {
	for _, other := range s.fed.Others {
		if other.Kind != diagnose.Beside && other.Kind != diagnose.Before {
			continue
		}
		id, whose := "state/sequence", "of "+other.Text
		if other.Kind == diagnose.Before {
			id = "state/stale"
			whose = "that " + other.Text + " left there"
		}
		k, v := s.o.Foreign(other)
		if k == nil || v == nil {
			continue
		}
		take := func(rank int, text string, of func(at int) bool, keys, values bool) {
			s.holds(id, rank, text+" "+whose, func(slot *rebuild.Slot, at int) {
				if at >= min(k.Len(), other.Cached) || !of(at) {
					return
				}
				if keys {
					slot.K, slot.KAt = k, at
				}
				if values {
					slot.V, slot.VAt = v, at
				}
			})
		}
		if from := s.fed.From; from > 0 {
			before := func(at int) bool { return at < from }
			take(0, "the keys and values of earlier tokens are those", before, true, true)
			take(1, "the keys of earlier tokens are those", before, true, false)
			take(1, "the values of earlier tokens are those", before, false, true)
			for _, m := range []int{1, 2, 4} {
				if m < from {
					take(1, fmt.Sprintf("the first %d slots have the keys and values", m), func(at int) bool { return at < m }, true, true)
					take(1, fmt.Sprintf("the last %d slots in front of the forward pass have the keys and values", m),
						func(at int) bool { return at < from && at >= from-m }, true, true)
				}
			}
		}
		s.behind(id, other, k, v)
	}
}

// behind are keys and values that are seen in front of those of the sequence, or behind them.
func (s *states) behind(id string, other diagnose.Other, k, v *rebuild.Rows) {
	m := k.Len()
	add := func(rank int, text string, front bool) {
		s.state(id, rank, text, func(own, values *rebuild.Rows) *rebuild.Cache {
			slots := s.own(own, values)
			n := len(slots)
			for i := range m {
				slots = append(slots, rebuild.Slot{K: k, V: v, KAt: i, VAt: i, Position: float64(i), Token: -1})
			}
			return &rebuild.Cache{Slots: slots, Seen: func(t, slot int) bool {
				if slot >= n {
					return front || slot-n > t
				}
				return s.allows(t, slot)
			}}
		})
	}
	what := fmt.Sprintf("the keys and values of %s", other.Text)
	add(1, what+" are seen, too", true)
	if other.Kind == diagnose.Before {
		add(1, what+" that lie behind the sequence's own are seen, too", false)
	}
}

// padding are keys and values of padding that are seen.
func (s *states) padding() {
	const id = "mask/padding"
	for _, other := range s.fed.Others {
		if other.Kind != diagnose.Left && other.Kind != diagnose.Right {
			continue
		}
		k, v := s.o.Foreign(other)
		if k == nil || v == nil {
			continue
		}
		m, left := k.Len(), other.Kind == diagnose.Left
		add := func(rank int, text string, position func(i int) float64, seen func(t, slot, n int) bool) {
			s.state(id, rank, text, func(own, values *rebuild.Rows) *rebuild.Cache {
				slots := s.own(own, values)
				n := len(slots)
				for i := range m {
					slots = append(slots, rebuild.Slot{K: k, V: v, KAt: i, VAt: i, Position: position(i), Token: -1})
				}
				return &rebuild.Cache{Slots: slots, Seen: func(t, slot int) bool { return seen(t, slot, n) }}
			})
		}
		all := func(t, slot, n int) bool {
			if slot >= n && left { // padding stands in front of the tokens, as far as a window reaches
				return s.mask.Window == 0 || t+m-(slot-n) < s.mask.Window
			}
			return slot >= n && !s.mask.Causal || slot < n && s.allows(t, slot)
		}
		swapped := func(t, slot, n int) bool { // the mask of the other side
			if left {
				return slot >= n || s.allows(t, slot) && slot < n-m
			}
			return slot < n && s.allows(t, slot) && slot >= m
		}
		last := func(t, slot, n int) bool {
			return slot == n+m-1 && left || slot == n && !left || slot < n && s.allows(t, slot)
		}
		at := []func(i int) float64{func(int) float64 { return 0 }}
		if isRotated(s.o) {
			at = append(at, func(int) float64 { return 1 }, func(i int) float64 { return float64(i) }, func(i int) float64 { return float64(i - m) })
		}
		for _, position := range at {
			add(0, "the padding is seen", position, all)
			add(1, "the mask hides as many tokens on the other side, and shows the padding", position, swapped)
			add(1, "one token of padding is seen", position, last)
		}
	}
}

func abs(n int) int { return max(n, -n) }

// shifts are other positions of the tokens of a forward pass, by what they say.
func (s *states) shifts(add func(rank int, text string, by int)) {
	from, pads := s.fed.From, s.fed.Padding
	if from > 0 {
		add(0, "the positions of the forward pass begin at 0 again", -from)
	}
	if pads > 0 {
		add(0, "the positions count the padding in front", pads)
	}
	for _, by := range []int{1, -1, 2, -2, 3, -3} {
		if by != -from && by != pads {
			add(1, fmt.Sprintf("the positions of the forward pass are off by %+d", by), by)
		}
	}
}

// called gives faults of positions the id that they have in the steps of a run without a path.
func (s *states) called(id string) List {
	for i := range s.List {
		if s.fed.Steps {
			s.List[i].ID = id
		}
	}
	return s.List
}

// fedOf is what faults of positions need; nil outside of execution paths.
func fedOf(s *diagnose.Scene) *states {
	if s.Fed == nil {
		return nil
	}
	return &states{fed: s.Fed}
}

// FedTable is a table of positions that is read at other rows in a forward pass.
func FedTable(o *rebuild.Table) List {
	s := fedOf(o.Scene())
	if s == nil || TableID(o.Layer) != "embedding/position" {
		return nil
	}
	n := o.W.Shape()[0]
	s.shifts(func(rank int, text string, by int) {
		s.add(o.At(func(i int) int { return min(max(i+by, 0), n-1) }), rank-1, "%s", text)
	})
	return s.called("embedding/position")
}

// FedAddedTable is a table of positions that is added at other rows in a forward pass.
func FedAddedTable(o *rebuild.AddedTable) List {
	s := fedOf(o.Scene())
	if s == nil {
		return nil
	}
	s.shifts(func(rank int, text string, by int) {
		s.add(o.Adding(1, func(at int) int { return at + by }), rank-1, "%s", text)
	})
	return s.called("embedding/position")
}

// FedAngles are cosines and sines of other positions in a forward pass.
func FedAngles(o *rebuild.Angles) List {
	s := fedOf(o.Scene())
	if s == nil {
		return nil
	}
	s.shifts(func(rank int, text string, by int) {
		s.add(with(o, func(a *rebuild.Angles) { a.Offset += float64(by) }), rank-1, "%s", text)
	})
	return s.called("rope/offset")
}
