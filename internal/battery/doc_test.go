package battery_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
)

const page = "../../docs/models.md"

var update = flag.Bool("update", false, "renew the tables of the page")

// everything is a model that has all that is planned for.
func everything() (checkpoint.Config, battery.Options) {
	c := config(map[string]any{"sliding_window": 24.0, "max_position_embeddings": 512.0, "vocab_size": 1024.0,
		"rope_scaling": map[string]any{"original_max_position_embeddings": 96.0}, "vision_config": map[string]any{"image_size": 24.0, "patch_size": 8.0}})
	return c, battery.Options{Generates: true, Text: true, Chat: "system tools image", Paths: allPaths, Images: checkpoint.Config{"size": map[string]any{"height": 24.0}}}
}

// The page has a row for each case and boundary that is planned.
func TestDocumented(t *testing.T) {
	c, options := everything()
	p := battery.New(c, options)
	require.Empty(t, p.NotTried)
	var b strings.Builder
	b.WriteString("| case | what it is for |\n|---|---|\n")
	for _, x := range p.Cases {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x.Name, x.For)
	}
	at := slices.IndexFunc(p.Paths, func(x battery.Path) bool { return strings.HasPrefix(x.Name, "lengths:") })
	require.GreaterOrEqual(t, at, 0)
	lengths := strings.TrimPrefix(p.Paths[at].Name, "lengths:")
	b.WriteString("\n| boundary | `lengths` |\n|---|---|\n")
	for _, at := range battery.Boundaries(c) {
		var crossed []string
		for _, n := range []int{at.At - 1, at.At, at.At + 1, 2 * at.At} {
			if text := strconv.Itoa(n); slices.Contains(strings.Split(lengths, ","), text) && (n != 2*at.At || at.Key != "") {
				crossed = append(crossed, text)
			}
		}
		require.NotEmpty(t, crossed, at)
		fmt.Fprintf(&b, "| %s | %s |\n", at, strings.Join(crossed, ", "))
	}
	const begin, end = "<!-- the battery -->\n", "<!-- end -->"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok, "the page has the place of the tables")
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := head + begin + "\n" + b.String() + "\n" + end + tail
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
	}
	assert.Equal(t, want, string(data), "go test ./internal/battery -update writes them")
}

func TestImages(t *testing.T) {
	for _, tt := range []struct {
		processor, vision map[string]any
		want              []string
		tokens            int
		reason            string
	}{
		{map[string]any{"crop_size": map[string]any{"height": 336.0}, "size": map[string]any{"shortest_edge": 336.0}}, map[string]any{"image_size": 336.0, "patch_size": 14.0},
			[]string{"picture-336x336-1.png"}, 576, "each image is made one of 336"},
		{map[string]any{"patch_size": 14.0, "merge_size": 2.0, "size": map[string]any{"shortest_edge": 3136.0, "longest_edge": 1e7}}, map[string]any{"spatial_merge_size": 2.0},
			[]string{"picture-112x112-1.png"}, 16, "a token for each 28 × 28 pixels"},
		{map[string]any{"patch_size": 14.0, "merge_size": 2.0, "min_pixels": 40000.0}, nil, []string{"picture-224x224-1.png"}, 64, "a smaller one would be enlarged"},
		{map[string]any{"patch_size": map[string]any{"height": 16.0, "width": 16.0}, "size": map[string]any{"longest_edge": 1024.0}}, map[string]any{"image_size": 1024.0},
			[]string{"picture-64x64-1.png"}, 16, "a token for each patch"},
		{map[string]any{"max_image_size": map[string]any{"longest_edge": 64.0}, "size": map[string]any{"longest_edge": 256.0}, "image_seq_length": 4.0},
			map[string]any{"patch_size": 8.0}, []string{"picture-64x64-1.png"}, 8, "one tile, and the whole image"},
	} {
		c := config(map[string]any{"vision_config": tt.vision, "vocab_size": 32000.0})
		p := battery.New(c, battery.Options{Generates: true, Images: tt.processor, Paths: allPaths})
		i := slices.IndexFunc(p.Cases, func(c battery.Case) bool { return c.Name == "auto-image" })
		require.GreaterOrEqual(t, i, 0, tt.reason)
		assert.Equal(t, tt.want, p.Cases[i].Images[0], tt.reason)
		assert.Contains(t, p.Cases[i].Prompts[0], "<image>", "without a template the prompt has the image")
		assert.InDelta(t, tt.tokens, p.Cases[i].Cost.Tokens-len(p.Cases[i].Prompts[0])/3-p.Cases[i].Steps+1, 1, tt.reason)
	}
	none := battery.New(config(nil), battery.Options{Generates: true, Images: checkpoint.Config{"size": 24.0}})
	assert.False(t, slices.ContainsFunc(none.Cases, func(c battery.Case) bool { return c.Images != nil }), "the model has no eyes")
}

func TestImagesBeyondTheBudget(t *testing.T) {
	c, options := everything()
	c["hidden_size"], c["intermediate_size"], c["mm_tokens_per_image"] = 4096.0, 11008.0, 256.0
	p := battery.New(c, options)
	var with []string
	for _, c := range p.Cases {
		if c.Images != nil {
			with = append(with, c.Name)
		}
	}
	assert.Equal(t, []string{"auto-image"}, with, "always one")
	assert.Contains(t, strings.Join(p.NotTried, "\n"), "case auto-images (two images in a prompt")
}

func TestChats(t *testing.T) {
	for _, tt := range []struct {
		template string
		roles    []string
		tools    bool
		reason   string
	}{
		{"", nil, false, "no template"},
		{"{{ messages }}", []string{"user", "assistant", "user"}, false, "turns alone"},
		{"{% if role == 'system' %}", []string{"system", "user", "assistant", "user"}, false, "a system message"},
		{"{% if role == 'system' %}{{ raise_exception('System role not supported') }}", []string{"user", "assistant", "user"}, false, "it refuses one"},
		{"{{ tools }}", []string{"user", "assistant", "user"}, true, "tools"},
	} {
		p := battery.New(config(nil), battery.Options{Generates: true, Chat: tt.template})
		var roles []string
		tools := false
		for _, c := range p.Cases {
			for _, m := range c.Messages {
				if c.Name == "auto-chat" {
					roles = append(roles, m.Role)
				}
			}
			tools = tools || c.Tools != nil
		}
		assert.Equal(t, tt.roles, roles, tt.reason)
		assert.Equal(t, tt.tools, tools, tt.reason)
	}
}
