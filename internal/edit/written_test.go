package edit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/edit"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text   string
		want   edit.Written
		ok     bool
		reason string
	}{
		{"layers.3.mixer:17 scalar 0.125", edit.Written{Layer: "layers.3.mixer", Op: 17, Kind: "scalar", What: "0.125"}, true, "a number"},
		{" layers.*.mlp:3  sibling silu → gelu ", edit.Written{Layer: "layers.*.mlp", Op: 3, Kind: "sibling", What: "silu → gelu"}, true, "a pattern, and words"},
		{"a:b:2 drop", edit.Written{Layer: "a:b", Op: 2, Kind: "drop"}, true, "the last colon counts"},
		{"", edit.Written{}, false, "nothing"},
		{"mixer scalar 2", edit.Written{}, false, "no operator"},
		{"mixer:x scalar 2", edit.Written{}, false, "no number"},
		{"mixer:0 scalar 2", edit.Written{}, false, "the first is 1"},
		{":1 drop", edit.Written{}, false, "no layer"},
		{"mixer:1", edit.Written{}, false, "no kind"},
	} {
		got, err := edit.Parse(tt.text)
		if assert.Equal(t, tt.ok, err == nil, "%s: %v", tt.reason, err) && tt.ok {
			assert.Equal(t, tt.want, got, tt.reason)
		}
	}
}

// Whatever is written, it is read or refused.
func FuzzParse(f *testing.F) {
	f.Add("layers.3.mixer:17 scalar 0.125")
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := edit.Parse(text); err == nil && (w.Op < 1 || w.Layer == "" || w.Kind == "") {
			t.Errorf("%q: %+v", text, w)
		}
	})
}
