package dump_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/whole"
	"github.com/goparity/goparity/tensor"
)

// What is written is what was compared; names of cases and steps do not leave the folder.
func TestWrite(t *testing.T) {
	x, err := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	y, err := tensor.Of([]int64{5, 6}, 2)
	require.NoError(t, err)
	r := dump.New("max", dump.Info{Engine: "max", Case: "short",
		Mode: dump.Standard, Weights: []string{"w.safetensors"},
		Text: []dump.Text{{Path: "chat", Prompt: "a", TokenIDs: []int{1}}}}, dump.OrderRunFile, []dump.Entry{
		{Step: "0", Layer: "m.a", Port: "output", Tensor: x}, {Step: "0", Layer: "m.b", Port: "input_0", Tensor: y}})
	evil := *r
	evil.Info.Case = "../../evil"
	parent := t.TempDir()
	dir := filepath.Join(parent, "a", "saved")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, dump.Write(dir, []*dump.Run{r, &evil}))
	again, err := dump.OpenCases(dir, dump.Options{})
	require.NoError(t, err)
	defer dump.CloseAll(again)
	require.Len(t, again, 2)
	assert.Equal(t, "../../evil", again[1].Info.Case)
	for _, back := range again {
		assert.Equal(t, dump.Schema, back.Info.Schema)
		assert.Equal(t, r.Info.Text, back.Info.Text)
		assert.Empty(t, back.Info.Weights, "their files are not written")
		require.Len(t, back.Entries, 2)
		for i, e := range back.Entries {
			assert.Equal(t, r.Entries[i].Label(), e.Label())
			assert.Equal(t, content(t, r.Entries[i].Tensor), content(t, e.Tensor))
		}
	}
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing was written outside")
}

// A recording that is replaced while it is opened is opened as it was, or as it is.
func TestRecordingReplacedWhileItIsOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "max-cpu")
	record := func(value float32) error {
		var runs []*dump.Run
		for _, name := range []string{"a", "b", "c"} {
			x, err := tensor.Of([]float32{value, value}, 2)
			if err != nil {
				return err
			}
			runs = append(runs, dump.New("max", dump.Info{Engine: "max", Case: name, Mode: dump.Standard},
				dump.OrderRunFile, []dump.Entry{{Step: "0", Layer: "m", Port: "output", Tensor: x}}))
		}
		return whole.Folder(whole.OS{}, dir, func(tmp string) error { return dump.Write(tmp, runs) })
	}
	require.NoError(t, record(1))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for value := float32(2); ; value++ {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, record(value))
			}
		}
	}()
	seen := map[float64]bool{}
	for n := 0; n < 150 || len(seen) < 2 && n < 100_000; n++ {
		runs, err := dump.OpenCases(dir, dump.Options{})
		require.NoError(t, err)
		require.Len(t, runs, 3)
		for _, r := range runs {
			require.Equal(t, runs[0].Entries[0].Tensor.At(0), r.Entries[0].Tensor.At(1))
		}
		seen[runs[0].Entries[0].Tensor.At(0)] = true
		require.NoError(t, dump.CloseAll(runs))
	}
	close(stop)
	<-stopped
	assert.Greater(t, len(seen), 1, "it was replaced meanwhile")
}

func content(t *testing.T, x *tensor.Tensor) string {
	t.Helper()
	var b strings.Builder
	_, err := x.WriteTo(&b)
	require.NoError(t, err)
	return x.DType().String() + b.String()
}
