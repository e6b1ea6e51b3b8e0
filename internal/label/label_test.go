package label_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/label"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct{ label, layer, port, reason string }{
		{"model.norm-output", "model.norm", "output", "plain"},
		{"model.norm(2)-output_0", "model.norm(2)", "output_0", "a call belongs to the layer"},
		{"model-output_last_hidden_state", "model", "output_last_hidden_state", "a field of a model's output"},
		{"model-output.0", "model", "output.0", "an element of the output"},
		{"m.layers.0-input_position_embeddings.1", "m.layers.0", "input_position_embeddings.1",
			"an element of a tuple"},
		{"m.layers.0-computed_0", "m.layers.0", "computed_0", "injected runs"},
		{"gpt-neo.h.0-output", "gpt-neo.h.0", "output", "a dash in a layer's name"},
		{"a-output-b", "a-output-b", "tap", "no port at the end"},
		{"a-output_", "a-output_", "tap", "a role without its word"},
		{"a-outputs", "a-outputs", "tap", "another word"},
		{"a-input", "a-input", "tap", "an input has a number or a name"},
		{"mlp_gate", "mlp_gate", "tap", "saved by hand"},
		{"-output", "-output", "tap", "a port without a layer"},
	} {
		layer, port := label.Split(tt.label)
		assert.Equal(t, [2]string{tt.layer, tt.port}, [2]string{layer, port}, tt.reason)
		assert.Equal(t, tt.label, label.Join(layer, port), tt.reason)
	}
}

func TestCutCall(t *testing.T) {
	for _, tt := range []struct {
		layer, name string
		call        int
		reason      string
	}{
		{"m.norm", "m.norm", 1, "the first call is not written"},
		{"m.norm(2)", "m.norm", 2, "the second one is"},
		{"m.norm(12)", "m.norm", 12, "several digits"},
		{"m.norm(1)", "m.norm(1)", 1, "the first call is never written, so it is a name"},
		{"m.norm(0)", "m.norm(0)", 1, "no call"},
		{"m.norm(02)", "m.norm(02)", 1, "no number as people write it"},
		{"m.norm(x)", "m.norm(x)", 1, "no number"},
		{"m.norm()", "m.norm()", 1, "nothing in it"},
		{"m.norm(2).x", "m.norm(2).x", 1, "not at the end"},
		{"(2)", "(2)", 1, "no name before it"},
		{"m(99999999999999999999)", "m(99999999999999999999)", 1, "more than an int holds"},
	} {
		name, call := label.CutCall(tt.layer)
		assert.Equal(t, tt.name, name, tt.reason)
		assert.Equal(t, tt.call, call, tt.reason)
		assert.Equal(t, tt.name, label.Name(tt.layer), tt.reason)
	}
}

func TestTree(t *testing.T) {
	for _, tt := range []struct{ layer, parent, last, block, stars, reason string }{
		{"model", "", "model", "", "model", "a root"},
		{"m.attn.q_proj", "m.attn", "q_proj", "", "m.attn.q_proj", "no number, no block"},
		{"m.attn.q_proj(2)", "m.attn(2)", "q_proj", "", "m.attn.q_proj(2)", "a parent has the same call"},
		{"m.layers.3.mlp.up", "m.layers.3.mlp", "up", "m.layers.3", "m.layers.*.mlp.up", "a numbered block"},
		{"m.layers.3.mlp(2)", "m.layers.3(2)", "mlp", "m.layers.3(2)", "m.layers.*.mlp(2)", "a block that is shared"},
		{"g.0.layers.1.x", "g.0.layers.1", "x", "g.0", "g.*.layers.*.x", "the outermost number"},
		{"layers.10", "layers", "10", "layers.10", "layers.*", "the block itself"},
		{"conv2.x", "conv2", "x", "", "conv2.x", "a digit in a word is no block"},
	} {
		assert.Equal(t, tt.parent, label.Parent(tt.layer), tt.reason)
		assert.Equal(t, tt.last, label.Last(tt.layer), tt.reason)
		assert.Equal(t, tt.block, label.Block(tt.layer), tt.reason)
		assert.Equal(t, tt.stars, label.Stars(tt.layer), tt.reason)
		assert.Equal(t, tt.parent == "", label.IsRoot(tt.layer), tt.reason)
		if depth := label.Depth(tt.layer); depth > 0 {
			assert.Equal(t, label.Depth(tt.parent)+1, depth, tt.reason)
		} else {
			assert.Empty(t, tt.parent, tt.reason)
		}
	}
}

func TestInside(t *testing.T) {
	for _, tt := range []struct {
		layer, outer string
		inside       bool
		reason       string
	}{
		{"m.attn.q", "m.attn", true, "a child"},
		{"m.attn.q.x", "m", true, "of a child"},
		{"m.attn", "m.attn", false, "not inside itself"},
		{"m.attn2", "m.attn", false, "a longer word"},
		{"m.attn.q(2)", "m.attn", true, "which call ran inside is not told by names"},
		{"m.attn.q(2)", "m.attn(2)", true, "the same call"},
		{"m.attn", "m.attn(2)", false, "another call of itself"},
	} {
		assert.Equal(t, tt.inside, label.Inside(tt.layer, tt.outer), tt.reason)
		assert.Equal(t, tt.inside || tt.layer == tt.outer, label.Within(tt.layer, tt.outer), tt.reason)
	}
	assert.True(t, label.Beside("m.q(2)", "m.k(2)"), "one parent")
	assert.False(t, label.Beside("m.q", "m.k(2)"), "another call of the parent")
}

func TestPort(t *testing.T) {
	for _, tt := range []struct {
		port     string
		role     label.Role
		text     string
		position int
		reason   string
	}{
		{"input_0", label.RoleInput, "input", 0, "positional"},
		{"input_0.1", label.RoleInput, "input", 0, "an element of a tuple"},
		{"input_hidden_states", label.RoleInput, "input", -1, "named"},
		{"computed_12", label.RoleComputed, "computed", 12, "injected runs"},
		{"output", label.RoleOutput, "output", -1, "the only one"},
		{"output_1", label.RoleOutput, "output", 1, "of several"},
		{"output_1.x", label.RoleOutput, "output", -1, "an element with a name"},
		{"output_99999999999999999999", label.RoleOutput, "output", -1, "more than an int holds"},
		{"key_cache", label.RoleOutput, "output", -1, "what a layer keeps"},
		{"output_1.", label.RoleOutput, "output", -1, "an element without a name"},
		{"output_last_hidden_state", label.RoleOutput, "output", -1, "a field"},
		{"tap", label.RoleTap, "tap", -1, "saved by hand"},
		{"logits", label.RoleOutput, "output", -1, "whatever has no other role is an output"},
	} {
		assert.Equal(t, tt.role, label.RoleOf(tt.port), tt.reason)
		assert.Equal(t, tt.text, label.RoleOf(tt.port).String(), tt.reason)
		assert.Equal(t, tt.position, label.Position(tt.port), tt.reason)
		assert.Equal(t, tt.role == label.RoleInput, label.IsInput(tt.port), tt.reason)
	}
	assert.Equal(t, "input_1", label.InputOf("computed_1"))
	assert.Equal(t, "output", label.InputOf("output"))
	assert.True(t, label.IsCache("key_cache") && label.IsCache("value_cache") && !label.IsCache("output"))
}

func TestFew(t *testing.T) {
	assert.Equal(t, "a, b, c, d, e, f", label.Few([]string{"a", "b", "c", "d", "e", "f"}))
	assert.Equal(t, "a, b, c, d, e, f, … and 2 more", label.Few([]string{"a", "b", "c", "d", "e", "f", "g", "h"}))
}

func TestNatural(t *testing.T) {
	sorted := []string{"a", "a.1", "a.2", "a.10", "a.10.b", "a.x", "b2", "b02", "b10"}
	for i, a := range sorted {
		for j, b := range sorted {
			assert.Equal(t, i < j, label.Natural(a, b) < 0, "%s < %s", a, b)
			assert.Equal(t, i == j, label.Natural(a, b) == 0, "%s = %s", a, b)
		}
	}
}

func TestSort(t *testing.T) {
	want := []string{
		"m.embed-output", "m.layers.2.mlp-input_0", "m.layers.2.mlp-output", "m.layers.2-output",
		"m.layers.10.attn-output",
		"m.layers.10-output", "m.norm-output", "m.norm(2)-output", "m-output", "lm_head-output",
	}
	got := slices.Clone(want)
	slices.Sort(got)
	label.Sort(got, func(l string) string { return l })
	assert.Equal(t, want, got)
}

func TestOrdered(t *testing.T) {
	for _, tt := range []struct {
		a, b   string
		want   bool
		reason string
	}{
		{"scores", "probs", false, "names that people made up"},
		{"m.layers.2.mlp", "m.layers.10.attn", true, "blocks by their numbers"},
		{"m.layers.2.mlp.gate", "m.layers.2.mlp.up", false, "inside one block"},
		{"m.layers.2", "m.layers.2.mlp", true, "a container runs after what is inside it"},
		{"m.layers.2.mlp", "m.norm", true, "the final norm comes after the blocks"},
		{"m.layers.2.mlp", "lm_head", true, "the head too"},
		{"m.layers.2.mlp", "m.ln_f", true, "GPT-2's final norm"},
		{"m.layers.2.mlp", "m.final_norm", true, "by its first word"},
		{"m.layers.2.mlp", "m.norm_f", true, "or its last"},
		{"encoder.layer.2", "pooler", true, "BERT's head"},
		{"encoder.layer.2", "classifier", true, "a head of another kind"},
		{"m.norm", "lm_head", false, "without a block names tell nothing"},
		{"heads", "scores", false, "no block, so it may be anything"},
		{"m", "m", true, "one and the same"},
	} {
		assert.Equal(t, tt.want, label.Ordered(tt.a, tt.b), tt.reason)
		assert.Equal(t, tt.want, label.Ordered(tt.b, tt.a), tt.reason)
	}
	assert.Equal(t, []string{"a", "b"}, label.Unordered([]string{"a", "b", "a"}), "each name once, and those that tell nothing of it")
}

// Whatever a label is, it can be cut and joined again, its parent is shorter, and the order is
// total.
func FuzzLabel(f *testing.F) {
	f.Add("model.norm(2)-output.0", "m.layers.10.mlp-input_0")
	f.Add("-output", "a(2)(3)-tap")
	f.Fuzz(func(t *testing.T, a, b string) {
		layer, port := label.Split(a)
		if port != label.Tap || layer == a {
			assert.Equal(t, a, label.Join(layer, port))
		}
		name, call := label.CutCall(layer)
		assert.GreaterOrEqual(t, call, 1)
		if p := label.Parent(layer); p != "" && !strings.Contains(name, ")") { // a call in the middle is a name
			assert.True(t, label.Inside(layer, p), "%q in %q", layer, p)
			assert.Less(t, len(p), len(layer))
		}
		assert.True(t, call > 1 || name == layer)
		assert.Equal(t, label.Natural(a, b), -label.Natural(b, a))
		assert.Equal(t, label.Natural(a, b) == 0, a == b)
		assert.GreaterOrEqual(t, label.Position(port), -1)
	})
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		layer, kind string
		alike       []string
		reason      string
	}{
		{"model.norm", "model.norm", nil, "no number"},
		{"m.layers.12.mlp", "m.layers.#.mlp", []string{"m.layers.#.mlp"}, "one number"},
		{"m.0.conv2(3)", "m.#.conv#(#)", []string{"m.#.conv2(3)", "m.0.conv#(3)", "m.0.conv2(#)"},
			"within words and calls too"},
		{"3", "#", []string{"#"}, "nothing else"},
	} {
		assert.Equal(t, tt.kind, label.Kind(tt.layer), tt.reason)
		assert.Equal(t, tt.alike, label.Alike(tt.layer), tt.reason)
	}
}
